# SPDX-License-Identifier: Apache-2.0
"""Pools and other windows of few elements, which run as elementwise work on parts of an array, and
larger ones, which go along one dim after the other, in turns or as rows; against plain loops."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

FOLDS = {"add": (lax.add, np.add, 0), "max": (lax.max, np.maximum, -np.inf),
         "min": (lax.min, np.minimum, np.inf), "mul": (lax.mul, np.multiply, 1)}


def fold(x, first, f, window, stride, padding, base=None, hole=None):
    """Windows in order of their elements, each step rounded."""
    base, hole = base or (1,) * x.ndim, hole or (1,) * x.ndim
    wide = np.full([(n - 1) * b + 1 for n, b in zip(x.shape, base)], first, x.dtype)
    wide[tuple(slice(None, None, b) for b in base)] = x
    wide = np.pad(wide, padding, constant_values=first)
    spans = [(w - 1) * h + 1 for w, h in zip(window, hole)]
    shape = [(n - s) // t + 1 for n, s, t in zip(wide.shape, spans, stride)]
    out = np.full(shape, first, x.dtype)
    for at in itertools.product(*map(range, window)):
        part = tuple(slice(a * h, a * h + (n - 1) * t + 1, t)
                     for a, h, n, t in zip(at, hole, shape, stride))
        out = f(out, wide[part]).astype(x.dtype)
    return out


def numbers(*shape, dtype=np.float32):
    rng = np.random.default_rng(7)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-50, 50, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


# 20 elements and 21: elementwise, and a fold.
@pytest.mark.parametrize("window", [(1, 1), (2, 2), (3, 3), (4, 5), (3, 7), (5, 5)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("pad", [0, 2])
@pytest.mark.parametrize("name", FOLDS)
def test_a_pool_is_a_fold_in_order(name, window, stride, pad):
    f, plain, first = FOLDS[name]
    x = numbers(2, 3, 19, 70)
    window, stride = (1, 1, *window), (1, 1, *stride)
    padding = ((0, 0), (0, 0), (pad, 0), (1, pad))
    got = jax.jit(lambda x: lax.reduce_window(x, np.float32(first), f, window, stride, padding))(x)
    want = fold(x, first, plain, window, stride, padding)
    if np.prod(window) <= 20 or name in ("max", "min"):
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, jnp.bfloat16])
def test_channels_may_come_last(dtype, channels):
    x = numbers(3, 13, 14, channels, dtype=np.int32 if dtype != np.float32 else dtype)
    x = x.astype(dtype)
    least = np.array(np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf, dtype)
    got = jax.jit(lambda x: lax.reduce_window(x, least, lax.max, (1, 3, 3, 1), (1, 2, 2, 1),
                                              "SAME"))(x)
    want = fold(x, least, np.maximum, (1, 3, 3, 1), (1, 2, 2, 1),
                ((0, 0), (1, 1), (0, 1), (0, 0)))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("first", [0.0, 2.5, np.nan])
@pytest.mark.parametrize("base,hole", [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 2), (2, 1))])
def test_holes_and_a_first_value_that_counts(base, hole, first):
    x = numbers(9, 12)
    f = jax.jit(lambda x: lax.reduce_window(x, np.float32(first), lax.add, (2, 3), (1, 2), "VALID",
                                            base_dilation=base, window_dilation=hole))
    # What is a hole is not there: it adds nothing, and the first value counts once.
    want = first + fold(x, 0, np.add, (2, 3), (1, 2), ((0, 0), (0, 0)), base, hole)
    np.testing.assert_allclose(f(x), want, rtol=1e-6, atol=1e-6)


def test_a_first_value_may_be_an_argument():
    f = jax.jit(lambda x, first: lax.reduce_window(x, first, lax.max, (2, 2), (1, 1), "SAME"))
    x = numbers(5, 6)
    for first in (-np.inf, 0.25):
        want = fold(x, first, np.maximum, (2, 2), (1, 1), ((0, 1), (0, 1)))
        np.testing.assert_array_equal(f(x, np.float32(first)), want)


def test_nan_zeros_and_infinities_come_through():
    x = np.array([[0.0, -0.0, np.nan, 1], [np.inf, -np.inf, 2, -0.0]], np.float32)
    for name in ("max", "min", "add"):
        f, plain, first = FOLDS[name]
        got = jax.jit(lambda x: lax.reduce_window(x, np.float32(first), f, (1, 2), (1, 1),
                                                  "VALID"))(x)
        want = fold(x, first, plain, (1, 2), (1, 1), ((0, 0), (0, 0)))
        np.testing.assert_array_equal(got, want)


# Places of the largest: 9 and 11 elements, of two arrays.
@pytest.mark.parametrize("window", [(3, 3), (1, 11)])
def test_a_window_may_be_over_two_arrays(window):
    x = numbers(12, 30)
    place = np.arange(x.size, dtype=np.int32).reshape(x.shape)

    def later(a, b):
        wins = a[0] >= b[0]
        return lax.select(wins, a[0], b[0]), lax.select(wins, a[1], b[1])

    got, at = jax.jit(lambda x, p: lax.reduce_window(
        (x, p), (np.float32(-np.inf), np.int32(-1)), later, window, window, "VALID"))(x, place)
    want = fold(x, -np.inf, np.maximum, window, window, ((0, 0), (0, 0)))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x.ravel()[at], want)


@pytest.mark.parametrize("window,stride", [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (1, 1))])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_gradients_of_pools(window, stride, padding, device, cpu):
    x = numbers(2, 11, 12, 3)
    window, stride = (1, *window, 1), (1, *stride, 1)
    for f, first in ((lax.max, -jnp.inf), (lax.add, 0.0)):
        g = jax.grad(lambda x: (lax.reduce_window(x, first, f, window, stride, padding) ** 2).sum())
        got, want = (jax.jit(g)(jax.device_put(x, d)) for d in (device, cpu))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, jnp.bfloat16, np.float16])
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_large_window_goes_along_one_dim_after_the_other(name, dtype, stride):
    f, plain, first = FOLDS[name]
    if np.issubdtype(dtype, np.integer) and name in ("max", "min"):
        first = getattr(np.iinfo(dtype), "min" if name == "max" else "max")
    x = numbers(3, 31, 40, dtype=dtype)
    window, strides, hole, base = (2, 5, 7), (1, stride, 1), (1, 2, 1), (1, 1, 2)
    padding = ((1, 0), (0, 4), (3, 3))
    with np.errstate(over="ignore"):
        want = fold(x, first, plain, window, strides, padding, base, hole)
    run = jax.jit(lambda x: lax.reduce_window(x, np.asarray(first, dtype), f, window, strides,
                                              padding, base, hole))
    got = np.asarray(run(x))
    if np.issubdtype(dtype, np.integer) or name in ("max", "min"):
        np.testing.assert_array_equal(got, want)
    else:
        bound = 1e-5 if dtype == np.float32 else 0.1
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), bound, bound)
    if dtype == np.float16 and name == "add":      # rounded once
        exact = fold(x.astype(np.float64), first, plain, window, strides, padding, base, hole)
        np.testing.assert_allclose(got, exact, 2 ** -11, 1e-6)
    # Products of floats stay whole.
    if np.issubdtype(dtype, np.integer) or name != "mul":
        flops = run.lower(x).compile().cost_analysis()["flops"]
        assert flops < want.size * np.prod(window) * 0.75


# Size and stride: windows side by side, of several runs, of a prime; neighbours that windows cut.
@pytest.mark.parametrize("long", [(32, 32), (46, 23), (23, 23), (42, 7), (24, 6), (21, 5)])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("pad", [(0, 0), (5, 9), (-3, 2)])
@pytest.mark.parametrize("name", ["add", "max"])
def test_a_long_window_goes_in_turns(name, pad, dim, long):
    f, plain, first = FOLDS[name]
    x = numbers(2, *(100 if d == dim else 5 for d in (1, 2, 3)))
    window, stride = ([n if d == dim else 1 for d in range(4)] for n in long)
    padding = [pad if d == dim else (0, 0) for d in range(4)]
    run = jax.jit(lambda x: lax.reduce_window(x, np.float32(first), f, window, stride, padding))
    want = fold(np.pad(x, [(max(a, 0), max(b, 0)) for a, b in padding], constant_values=first)
                [tuple(slice(max(-a, 0), None) for a, b in padding)], first, plain, window, stride,
                ((0, 0),) * 4)
    np.testing.assert_allclose(run(x), want, 1e-5, 1e-5)
    if long != (21, 5):
        flops = run.lower(x).compile().cost_analysis()["flops"]
        assert flops < max(want.size * long[0], 1.3 * x.size)


@pytest.mark.parametrize("dims", [(1, 2), (2, 3), (1,), (1, 2, 3)])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int8])
@pytest.mark.parametrize("name", ["add", "max"])
def test_a_window_over_all_is_a_reduction(name, dtype, dims):
    f, plain, first = FOLDS[name]
    first = np.iinfo(dtype).min if dtype == np.int8 and name == "max" else first
    x = numbers(3, 23, 22, 21, dtype=dtype)
    window = [x.shape[d] if d in dims else 1 for d in range(4)]
    run = jax.jit(lambda x: lax.reduce_window(x, np.asarray(first, dtype), f, window, [1] * 4,
                                              "VALID"))
    exact = x.astype(np.float64 if dtype != np.int8 else np.int64)
    want = getattr(exact, "sum" if name == "add" else "max")(dims, keepdims=True).astype(dtype)
    got = np.asarray(run(x))
    assert got.shape == want.shape
    bound = 2 ** -8 if dtype == jnp.bfloat16 else 1e-4
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), bound, bound)
    ops = run.lower(x).compile().cost_analysis()["flops"]
    assert ops < 1.5 * x.size


# Of elements that lie behind each other rows are reduced; one by one they take longer.
@pytest.mark.parametrize("window", [(5, 5), (3, 7), (2, 11), (2, 16), (2, 20)])
@pytest.mark.parametrize("pad", [(0, 0), (3, 8), (-1, 2)])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int8])
@pytest.mark.parametrize("name", ["add", "max"])
def test_the_last_dim_of_windows_side_by_side_is_rows(name, dtype, pad, window):
    f, plain, first = FOLDS[name]
    first = -128 if dtype == np.int8 and name == "max" else first
    x = numbers(2, 23, 66, dtype=np.int32 if dtype == np.int8 else np.float32).astype(dtype)
    window, padding = (1, *window), ((0, 0), (0, 0), pad)
    run = jax.jit(lambda x: lax.reduce_window(x, np.asarray(first, dtype), f, window, window,
                                              padding))
    exact = x[:, :, max(-pad[0], 0):].astype(np.int64 if dtype == np.int8 else np.float32)
    want = fold(exact, first, plain, window, window, ((0, 0), (0, 0), np.maximum(pad, 0)))
    bound = 2 ** -8 if dtype == jnp.bfloat16 else 1e-5
    np.testing.assert_allclose(np.asarray(run(x)).astype(np.float32),
                               want.astype(dtype).astype(np.float32), bound, bound)
    if dtype == np.float32 and pad == (0, 0):
        memory = run.lower(x).compile().memory_analysis()
        assert memory.generated_code_size_in_bytes < 1000


# As many elements as there are, but with holes between them: padding is what it ends on.
@pytest.mark.parametrize("shape,hole", [((5, 5), (2, 2)), ((24, 3), (1, 2)), ((41, 1), (3, 1))])
@pytest.mark.parametrize("name", FOLDS)
def test_a_window_with_holes_is_not_over_all(name, shape, hole):
    f, plain, first = FOLDS[name]
    x = numbers(2, *shape)
    padding = ((0, 0), *((0, (n - 1) * (h - 1)) for n, h in zip(shape, hole)))
    run = jax.jit(lambda x: lax.reduce_window(x, np.float32(first), f, (1, *shape), (1, 1, 1),
                                              padding, window_dilation=(1, *hole)))
    want = fold(x, first, plain, (1, *shape), (1, 1, 1), padding, hole=(1, *hole))
    np.testing.assert_allclose(run(x), want, 1e-5, 1e-5)


def test_a_large_window_with_few_elements_in_two_goes_along_dims(device):
    run = jax.jit(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 5, 5, 1), (1, 3, 3, 1),
                                              "VALID"))
    x = numbers(2, 20, 23, 6)
    got = run(x)
    np.testing.assert_array_equal(got, fold(x, -np.inf, np.maximum, (1, 5, 5, 1), (1, 3, 3, 1),
                                            ((0, 0),) * 4))
    flops = run.lower(x).compile().cost_analysis()["flops"]
    assert flops < got.size * 25 * 0.9
