# SPDX-License-Identifier: Apache-2.0
"""What JAX's profiler shows of five runs on the device: exits 1 unless it is all of them.

    python traced.py        with JAX_PLATFORMS=tessera,cpu
"""

import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp

RUNS = 5
PLANE = "/device:CUSTOM:TESSERA:0"


def main():
    step = jax.jit(lambda a, b: jnp.tanh(a @ b) + a)
    a = b = jnp.ones((128, 128))
    step(a, b).block_until_ready()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(RUNS):
                a = step(a, b)
            a.block_until_ready()
        path, = pathlib.Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(path))
    seen = {line.name: [(e.start_ns, e.end_ns) for e in line.events]
            for plane in data.planes if plane.name == PLANE for line in plane.lines}
    print("profile:", {name: len(events) for name, events in seen.items()}, flush=True)
    for name in ("XLA Modules", "XLA Ops"):
        events = sorted(seen.get(name, []))
        if len(events) != RUNS or any(end <= start for start, end in events) or \
                any(b[0] < a[1] for a, b in zip(events, events[1:])):
            sys.exit(f"{name}: {events}, not {RUNS} runs one after the other")


if __name__ == "__main__":
    main()
