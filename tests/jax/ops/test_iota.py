# SPDX-License-Identifier: Apache-2.0
"""Counting up in types that end before the array does: integers begin again at their least."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "int8", "uint8"])
def test_integers_wrap(device, cpu, dtype):
    def f(x):
        # by itself, and as part of other work
        return lax.iota(dtype, 600), lax.iota(dtype, 600).astype(jnp.int32) + x

    x = np.arange(600, dtype=np.int32)
    got, want = (jax.jit(f)(jax.device_put(x, d)) for d in (device, cpu))
    for a, b in zip(got, want):
        a, b = (np.asarray(y).astype(np.int32) for y in (a, b))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16",
                                   "bfloat16", "float32", "float64", "int64", "uint64"])
def test_counts_of_all_lengths(dtype):
    with jax.enable_x64(True):
        for n in (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 5001):
            want = np.arange(n).astype(jnp.dtype(dtype))
            f = jax.jit(lambda x, n=n: lax.iota(dtype, n) + x)
            np.testing.assert_array_equal(np.asarray(f(np.zeros(n, dtype=want.dtype))), want)
        # past what 24 bits hold
        last = jax.jit(lambda: (lax.iota(jnp.float32, (1 << 24) + 40) * 1)[-40:])()
        np.testing.assert_array_equal(np.asarray(last),
                                      np.arange(1 << 24, (1 << 24) + 40).astype(np.float32))
