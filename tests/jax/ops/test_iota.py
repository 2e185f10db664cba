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
