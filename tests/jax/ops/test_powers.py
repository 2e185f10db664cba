# SPDX-License-Identifier: Apache-2.0
"""Powers by constants, of which some are written as products, quotients and roots: as numpy has
them, and of what is no ordinary number as IEEE 754 has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

TYPES = {"float64": 1e-15, "float32": 3e-7, "float16": 1e-3, "bfloat16": 1e-2}
POWERS = [0, 1, 2, 3, -1, 0.5, 4, -2, 1.5, -0.5]


def power(x, by):
    return jax.jit(lambda x: lax.pow(x, jnp.full_like(x, by)))(x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("by", POWERS)
def test_of_numbers(dtype, by):
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).uniform(0.1, 4, 5000), dtype)
        x = jnp.concatenate([x, -x]) if by == int(by) else x
        true = np.power(np.asarray(x, np.float64), by)
        np.testing.assert_allclose(np.asarray(power(x, by), np.float64), true, rtol=TYPES[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_what_is_none(dtype):
    inf, nan = np.inf, np.nan
    want = {0: [1, 1, 1, 1, 1], 1: [0, -0.0, inf, -inf, nan], 2: [0, 0, inf, inf, nan],
            3: [0, -0.0, inf, -inf, nan], -1: [inf, -inf, 0, -0.0, nan], 0.5: [0, 0, inf, inf, nan]}
    with jax.enable_x64(True):
        for by, true in want.items():
            here = np.asarray(power(jnp.asarray([0, -0.0, inf, -inf, nan], dtype), by))
            np.testing.assert_array_equal(here, np.asarray(true, dtype))
            assert np.all(np.isnan(here) | (np.signbit(here) == np.signbit(true))), by


@pytest.mark.parametrize("by", [2, 3, 0.5])
def test_of_gradients(by):
    x = np.random.default_rng(1).uniform(0.5, 2, 100).astype(np.float32)
    here = jax.grad(lambda x: jnp.sum(lax.pow(x, jnp.float32(by))))(x)
    np.testing.assert_allclose(here, by * x ** (by - 1), rtol=1e-5)
