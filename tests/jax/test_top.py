# SPDX-License-Identifier: Apache-2.0
"""The first elements of a sort: lax.top_k, and what sorts and cuts by itself."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

GROUP, WORTH, ROUNDS = 32, 4, 16    # of runtime/compiler/lower/top.c
ROW = 16384             # the elements of a row of the device's, at most


def bits(x):
    """Numbers whose order is the total order of x."""
    x = np.ascontiguousarray(x)
    if np.issubdtype(x.dtype, np.integer):
        return x.astype(np.int64)
    n = x.dtype.itemsize * 8
    i = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    return np.where(i < 0, i ^ ((1 << (n - 1)) - 1), i)


def check(x, k):
    values, places = (np.asarray(v) for v in jax.jit(lambda a: lax.top_k(a, k))(x))
    order = np.argsort(~bits(x), axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(bits(values), bits(np.take_along_axis(x, order, -1)))


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        low = np.iinfo(dtype).min
        return rng.choice(np.array([low, low + 1, -1, 0, 1, 5, -low - 1], dtype), shape)
    x = rng.standard_normal(shape).astype(dtype)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], dtype)
    mask = rng.uniform(size=shape) < 0.2
    x[mask] = rng.choice(special, mask.sum())
    return x


# Around the size from which on groups are chosen, once and twice, and around whole groups.
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("more", [-1, 0, 1, 17])
def test_sizes(k, levels, more):
    check(numbers((3, WORTH * k * GROUP ** levels + more), np.float32, k), k)


# Around the number of elements that are found one after the other, of short rows and long ones.
@pytest.mark.parametrize("k", [1, 2, ROUNDS, ROUNDS + 1])
@pytest.mark.parametrize("n", [ROUNDS + 1, 64, 130, ROW, ROW + 1])
def test_few(k, n):
    check(numbers((5, n), np.float32, k), k)
    check(numbers((3, 2, n), np.int8, k), k)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_few_of_wide_keys(dtype):
    with jax.enable_x64(True):
        check(numbers((5, 100), dtype), 3)
        check(np.arange(50, dtype=dtype) / (1 << 40) if dtype == np.float64 else
              np.arange(50, dtype=dtype), 3)


@pytest.mark.parametrize("k", [1, 3])
def test_few_of_equals(k):
    least = np.full((2, 4, 8), -1, np.int32)
    check(least.view(np.float32), k)
    check(np.full((300, 8), np.iinfo(np.int32).min, np.int32), k)
    check(np.zeros((64,), np.float32), k)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.float16, ml_dtypes.bfloat16,
                                   np.float32])
@pytest.mark.parametrize("n", [1001, 5003])
def test_types(dtype, n):
    check(numbers((2, 3, n), dtype), 5)


@pytest.mark.parametrize("name", ["equal", "rising", "falling", "least", "few above"])
def test_orders(name):
    n = 50257
    x = {"equal": np.ones(n), "rising": np.arange(n), "falling": -np.arange(n),
         "least": np.full(n, -np.nan),
         # Later groups come first, and equals of them last.
         "few above": np.arange(n) % 977 == 976}[name].astype(np.float32)
    check(np.stack([x, x[::-1], np.arange(n) * x]).astype(np.float32), 60)


def test_a_least_number_of_all_ones_is_found_before_what_fills_a_group():
    x = np.full((1, 1001), -1, np.int32).view(np.float32)
    check(x, 7)


def test_rising_sorts_and_single_arrays():
    x = numbers((4, 3000), np.float32)
    here = np.asarray(jax.jit(lambda a: lax.sort(a, num_keys=1)[:, 2:9:3])(x))
    with jax.default_device(jax.devices("cpu")[0]):
        there = np.asarray(jax.jit(lambda a: lax.sort(a, num_keys=1)[:, 2:9:3])(x))
    np.testing.assert_array_equal(here, there)
    whole = jax.jit(lambda a: (lax.sort(a)[:, :3], lax.sort(a)[:, -1]))(jnp.asarray(x))
    assert whole[0].shape == (4, 3) and whole[1].shape == (4,)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [20, 999, 5000])
def test_an_approximate_top_is_the_top(dtype, n):
    x = numbers((3, n), dtype)
    for find, sign in (lax.approx_max_k, -1), (lax.approx_min_k, 1):
        values, places = (np.asarray(v) for v in jax.jit(lambda a, f=find: f(a, 7))(x))
        order = np.argsort(sign * bits(x), axis=-1, kind="stable")[..., :7]
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(bits(values), bits(np.take_along_axis(x, order, -1)))
