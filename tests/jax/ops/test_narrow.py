# SPDX-License-Identifier: Apache-2.0
"""Many rows of few elements: folded, searched, spread and turned, against JAX's CPU backend or
numpy."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 17, 31, 32, 33]
FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]
TYPES = [np.int8, np.uint8, np.int16, np.int32, np.uint32, *FLOATS]


def numbers(seed, shape, dtype, special=True):
    """Few different ones, so that many are equal; of floats with all that is special."""
    rng = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -4
    x = rng.integers(low, 5, shape).astype(dtype)
    if np.dtype(dtype).kind not in "iu" and special:
        at = rng.integers(0, 40, shape)
        for k, v in enumerate([np.nan, np.inf, -np.inf, -0.0, 0.0]):
            x[at == k] = v
    return x


def both(f, device, cpu, *args, signs=False):
    got, want = ([np.asarray(y) for y in jax.tree.leaves(jax.jit(f)(
        *[jax.device_put(a, d) for a in args]))] for d in (device, cpu))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        kept = np.float64 if a.dtype.kind not in "biu" else a.dtype
        a, b = a.astype(kept), b.astype(kept)
        np.testing.assert_array_equal(a, b)
        if signs and kept is np.float64:
            np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a),
                                          np.signbit(b) & ~np.isnan(b))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_the_largest_and_where_it_is(device, dtype):
    with jax.enable_x64(True):
        for width in WIDTHS:
            for rows in (3, 1000):
                x = numbers(width, (rows, width), dtype)
                got = jax.jit(lambda x: [x.max(1), x.min(1), x.argmax(1), x.argmin(1)])(
                    jax.device_put(x, device))
                wide = x.astype(np.float64)     # numpy: XLA's f16 loses NaNs here
                for a, b in zip(got, [wide.max(1), wide.min(1), wide.argmax(1), wide.argmin(1)],
                                strict=True):
                    np.testing.assert_array_equal(np.asarray(a).astype(np.float64), b)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_sums(device, cpu, dtype):
    with jax.enable_x64(True):
        for width in WIDTHS:        # whole numbers: any order gives the same
            both(lambda x: [x.sum(1), (x + 1).sum(1), x[:, :3].prod(1)], device, cpu,
                 numbers(width, (777, width), dtype, special=False))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: np.dtype(t).name)
def test_one_element_is_folded_with_the_initial_value(device, dtype):
    pairs = [(lax.add, np.add), (lax.mul, np.multiply), (lax.max, np.maximum),
             (lax.min, np.minimum)]
    firsts = [dtype(first) for first in (0, -0.0, 2, np.inf, -np.inf)]
    x = numbers(5, (300, 1, 1, 2), dtype)

    def f(x):
        many = lax.reduce((x, -x), (dtype(1), dtype(2)),
                          lambda a, b: (lax.max(a[0], b[1]), lax.sub(a[1], b[0])), (1, 2))
        return [lax.reduce(x, first, op, (1, 2)) for first in firsts for op, _ in pairs] + \
            list(many)

    with jax.enable_x64(True), np.errstate(invalid="ignore"):
        y = x[:, 0, 0]      # numpy: XLA looks at no initial value here
        want = [op(first, y) for first in firsts for _, op in pairs] + \
            [np.maximum(dtype(1), -y), dtype(2) - y]
        for a, b in zip(jax.jit(f)(jax.device_put(x, device)), want, strict=True):
            np.testing.assert_array_equal(np.asarray(a).astype(np.float64), b.astype(np.float64))


def found(x, index, first, take):
    """Where the largest is, by a body that `take` makes of comparisons of values and indices."""
    def body(a, b):
        p, q = take(a[0], a[1], b[0], b[1])
        return lax.select(p, a[0], b[0]), lax.select(q, a[1], b[1])
    return lax.reduce((x, index), first, body, (1,))


@pytest.mark.parametrize("name, take", [
    ("first", lambda x, i, y, j: (x >= y, (x > y) | ((x == y) & (i < j)))),
    ("last", lambda x, i, y, j: (x >= y, (x > y) | ((x == y) & (i > j)))),
    ("turned", lambda x, i, y, j: (x >= y, (x > y) | ((x == y) & (j > i)))),
    ("not_later", lambda x, i, y, j: (x >= y, (x > y) | ((x == y) & (i <= j)))),
    ("asked", lambda x, i, y, j: (((x == y) & (i < j)) | (x > y), i < j))])
def test_indices_are_what_the_body_makes_of_them(device, cpu, name, take):
    x = numbers(3, (500, 9), np.float32, special=False)
    up = np.broadcast_to(np.arange(9, dtype=np.int32), x.shape)

    def f(x, up):
        count = lax.broadcasted_iota(jnp.int32, x.shape, 1)
        rows = lax.broadcasted_iota(jnp.int32, x.shape, 0)
        low, zero, late = (np.float32(-9), np.int32(0)), (np.float32(9), np.int32(0)), \
            (np.float32(1), np.int32(4))
        return [found(x, i, first, take) for i in (count, rows, up, 8 - count)
                for first in (low, zero, late)]
    if name == "asked":        # associative enough with an index that counts alone
        f = lambda x, up: found(x, lax.broadcasted_iota(jnp.int32, x.shape, 1),  # noqa: E731
                                (np.float32(-9), np.int32(0)), take)
    both(f, device, cpu, x, up)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, ml_dtypes.bfloat16, np.int64],
                         ids=lambda t: np.dtype(t).name)
def test_spread_and_turned(device, cpu, dtype):
    with jax.enable_x64(True):
        for width in WIDTHS:
            x, y = numbers(1, (1001,), dtype), numbers(2, (1001, width), dtype)
            both(lambda x, y: [x[:, None] * y, x[:, None] * y[0], y.T, (y.T * 2).T, y + x[:, None],
                               jnp.stack([x] * width, -1)], device, cpu, x, y,
                 signs=True)


@pytest.mark.parametrize("k", [1, 7, 255, 256, 257, 700])
def test_products_of_truths(device, cpu, k):
    rng = np.random.default_rng(k)
    a, b = (rng.random(s) < 1 / k ** .5 for s in ((65, k), (k, 33)))
    v = np.ones(k, bool)
    both(lambda a, b, v: [a @ b, ~(a @ b), a @ v, v @ b, jnp.einsum("ik,ik->i", a, a)],
         device, cpu, a, b, v)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64, np.int16],
                         ids=lambda t: np.dtype(t).name)
def test_rows_that_are_added_and_put(device, cpu, dtype):
    rng = np.random.default_rng(7)
    with jax.enable_x64(True):
        for width in (1, 3, 8, 15, 16, 17, 64, 255, 256, 257, 300):
            x, u = (rng.integers(-9, 9, (n, width)).astype(dtype) for n in (50, 4000))
            i = rng.integers(-60, 60, 4000).astype(np.int32)
            once = rng.permutation(60)[:40].astype(np.int32)
            both(lambda x, i, u, once: [x.at[i].add(u), x.at[once].set(u[:40]),
                                        jax.ops.segment_sum(u, i, 50)],
                 device, cpu, x, i, u, once)
