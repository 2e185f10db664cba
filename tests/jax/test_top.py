# SPDX-License-Identifier: Apache-2.0
"""The first elements of a sort: lax.top_k, and what sorts and cuts by itself."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

GROUP, WORTH = 32, 4    # of runtime/compiler/lower/top.c


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
    order = np.argsort(-bits(x), axis=-1, kind="stable")[..., :k]
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
