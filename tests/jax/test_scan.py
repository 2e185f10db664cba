# SPDX-License-Identifier: Apache-2.0
"""Running sums, products and extremes: windows over all that comes before an element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]

SCANS = {"cumsum": lax.cumsum, "cumprod": lax.cumprod, "cummax": lax.cummax,
         "cummin": lax.cummin}


def both(f, *args):
    here = jax.device_get(jax.jit(f)(*args))
    with jax.default_device(CPU):
        there = jax.device_get(jax.jit(f)(*args))
    return here, there


# 8 and 9: window by window, and not; 11: a run of eight and a rest; 63 to 65 and 511 to 513:
# another level of runs; 16384: a row of the device; 40,000: several tiles.
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 10, 11, 31, 32, 33, 63, 64, 65, 127, 128, 511, 512,
                               513, 1000, 16384, 16385, 40000])
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("reverse", [False, True])
def test_integers_agree_exactly(name, n, reverse):
    x = np.random.default_rng(n).integers(-5, 6, n).astype(np.int32)
    x[::7] = 1
    here, there = both(lambda a: SCANS[name](a, reverse=reverse), x)
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("shape,axis", [((65, 33), 0), ((65, 33), 1), ((3, 40, 17), 1),
                                        ((1, 64, 2), 1), ((9, 1), 0), ((0, 12), 1),
                                        ((12, 0), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_each_dim_is_scanned_apart(shape, axis, reverse):
    x = np.random.default_rng(3).integers(-99, 99, shape).astype(np.int64).astype(np.int32)
    here, there = both(lambda a: lax.cumsum(a, axis, reverse=reverse), x)
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "float16", "bfloat16",
                                   "float32", "complex64"])
def test_types_of_small_numbers_agree_exactly(dtype):
    x = jnp.asarray(np.random.default_rng(5).integers(0, 2, (4, 100)), dtype)
    here, there = both(lambda a: lax.cumsum(a, 1), x)
    np.testing.assert_array_equal(here, there)


def test_floats_agree_within_the_sum_of_their_errors():
    x = np.random.default_rng(7).standard_normal((8, 3000)).astype(np.float32)
    here, _ = both(lambda a: lax.cumsum(a, 1), x)
    true = np.cumsum(x.astype(np.float64), 1)
    # Runs of 6, 5, 5, 5 and 4: as many additions, for the sums of runs and again for those within
    # them and what is before, each half a unit of the sum of magnitudes.
    bound = 2 * 25 * np.finfo(np.float32).eps / 2 * np.cumsum(np.abs(x.astype(np.float64)), 1)
    assert (np.abs(here - true) <= bound).all()
    here, there = both(lambda a: lax.cumlogsumexp(a, 1), x)
    np.testing.assert_allclose(here, there, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("n", [1000, 5000, 40000])
def test_sums_of_many_numbers_are_rounded_few_times(dtype, n):
    """Added one by one to a large sum each of these is rounded: 11 times half a unit, where XLA's
    CPU backend has 4. PyTorch's cumsum of 16 bits comes so."""
    draw = np.random.default_rng(n)
    for x in np.ones(n), draw.random(n), draw.random(n) * 1e-3:
        x = (x / max(1, n / 1000)).astype(jnp.dtype(dtype))
        for reverse in False, True:
            here = np.asarray(jax.jit(lambda a, r=reverse: lax.cumsum(a, 0, r))(x), np.float64)
            true = x.astype(np.float64)
            true = np.cumsum(true[::-1])[::-1] if reverse else np.cumsum(true)
            assert np.max(np.abs(here - true) / true) < 6 * float(jnp.finfo(dtype).eps) / 2


def test_special_values_spread_as_far_as_they_reach():
    x = np.ones(50, np.float32)
    x[20], x[30] = np.inf, np.nan
    for name, f in SCANS.items():
        for reverse in (False, True):
            here, there = both(lambda a, f=f, r=reverse: f(a, reverse=r), x)
            np.testing.assert_array_equal(here, there, err_msg=name)


def test_an_initial_value_counts_once():
    def f(x):
        return lax.reduce_window(x, jnp.int32(1000), lax.add, (20,), (1,), [(19, 0)])
    x = np.arange(20, dtype=np.int32)
    np.testing.assert_array_equal(jax.device_get(jax.jit(f)(x)), np.cumsum(x) + 1000)


# 63 and 64: window by window, and not; all and one less; sums of several powers of two.
@pytest.mark.parametrize("n,w", [(200, 63), (200, 64), (200, 65), (200, 127), (200, 199),
                                 (200, 200), (64, 64), (65, 64), (5000, 1000), (5000, 4097)])
@pytest.mark.parametrize("reverse", [False, True])
def test_wide_windows_agree_exactly(n, w, reverse):
    pads = [(0, 0), (0, w - 1) if reverse else (w - 1, 0)]
    x = np.random.default_rng(w).integers(-9, 10, (3, n)).astype(np.int32)
    for body, initial in ((lax.add, 7), (lax.max, -1000)):
        here, there = both(lambda a, body=body, initial=initial: lax.reduce_window(
            a, jnp.int32(initial), body, (1, w), (1, 1), pads), x)
        if body is lax.max:
            np.testing.assert_array_equal(here, there)
        else:                   # an initial value counts once
            padded = np.pad(x, pads)
            np.testing.assert_array_equal(here, np.stack(
                [padded[:, i:i + w].sum(1) for i in range(n)], 1) + initial)


# Arrays together: runs of 4, of 2, and none; each with sizes of whole runs and of a rest.
@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [12, 16, 61, 64, 257])
@pytest.mark.parametrize("reverse", [False, True])
def test_arrays_are_scanned_together_in_order(k, n, reverse):
    """By a body that keeps the order: the last one marked, what it carries, and sums."""
    rng = np.random.default_rng(k * n)
    marks = rng.integers(0, 3, (2, n)).astype(np.int32)
    rest = [rng.integers(-9, 10, (2, n)).astype(np.int32) for _ in range(k - 1)]

    def body(a, b):
        return (a[0] | b[0], *(lax.select(b[0] > 0, y, x + y)
                               for x, y in zip(a[1:], b[1:], strict=True)))

    pads = [(0, 0), (0, n - 1) if reverse else (n - 1, 0)]
    here = jax.device_get(jax.jit(lambda *v: lax.reduce_window(
        v, tuple(jnp.int32(0) for _ in v), body, (1, n), (1, 1), pads))(marks, *rest))
    assert (here[0] == (np.bitwise_or.accumulate(marks[:, ::-1], 1)[:, ::-1] if reverse
                        else np.bitwise_or.accumulate(marks, 1))).all()
    for x, got in zip(rest, here[1:], strict=True):
        for row in range(2):
            for i in range(n):
                window = range(i, n) if reverse else range(i + 1)
                want = 0
                for j in window:
                    want = x[row, j] if marks[row, j] else want + x[row, j]
                assert got[row, i] == want, (row, i)


@pytest.mark.parametrize("shape,axis", [((512, 96), 0), ((96, 512), 1), ((49152,), 0)])
def test_a_scan_needs_less_memory_than_its_array(shape, axis):
    x = np.ones(shape, np.float32)
    f = jax.jit(lambda a: lax.cumsum(a, axis)).lower(x).compile()
    assert f.memory_analysis().temp_size_in_bytes < x.nbytes / 2
    np.testing.assert_array_equal(jax.device_get(f(x)), np.cumsum(x, axis))


def test_gradients_and_loops_scan_too():
    x = np.random.default_rng(9).integers(-3, 4, (5, 70)).astype(np.float32)
    here, there = both(jax.grad(lambda a: (lax.cumsum(a, 1) * a).sum()), x)
    np.testing.assert_array_equal(here, there)
    here, there = both(lambda a: lax.fori_loop(0, 3, lambda i, b: lax.cumsum(b, 1), a), x)
    np.testing.assert_array_equal(here, there)
