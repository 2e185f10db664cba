# SPDX-License-Identifier: Apache-2.0
"""Time grows with the size, or a little faster where there is sorting, and not with its square."""

import pathlib
import sys
import time

import jax
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import families  # noqa: E402

SMALL, LARGE = 1 << 12, 1 << 16     # which fits a CPU's own cache
# 16 times the elements: n log n is 21 times the time, n * n is 256 times.
LIMIT = 80
ROUNDS, SECONDS = 3, 5              # so many at least; and until then while it looks too slow


def runs(name, device):
    f, arguments, _ = families.FAMILIES[name]
    for n in (SMALL, LARGE):
        args = jax.device_put(arguments(n), device)
        g = jax.jit(f).lower(*args).compile()
        jax.block_until_ready(g(*args))
        yield lambda g=g, args=args: jax.block_until_ready(g(*args))


@pytest.mark.parametrize("name", families.FAMILIES)
def test_time_does_not_grow_with_the_square(name, device):
    """The shortest of several turns each, since others may be at work on the machine."""
    sides = [(run, []) for run in runs(name, device)]
    began, rounds = time.monotonic(), 0
    while True:
        for run, times in sides:
            for _ in range(3):
                begun = time.perf_counter()
                run()
                times.append(time.perf_counter() - begun)
        rounds += 1
        small, large = (min(times) for _, times in sides)
        if rounds >= ROUNDS and (large < LIMIT * small or time.monotonic() - began > SECONDS):
            break
    assert large < LIMIT * small, (
        f"{name}: {LARGE // SMALL} times the elements take {large / small:.0f} times as long")
