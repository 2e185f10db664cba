# SPDX-License-Identifier: Apache-2.0
"""Random bits have XLA's order and width in every shape, word for word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

SHAPES = [(), (1,), (5,), (8,), (2, 3), (3, 2), (3, 5), (5, 3), (2, 3, 4), (3, 3, 3), (4, 1, 7)]


@pytest.mark.parametrize("algorithm", [lax.RandomAlgorithm.RNG_THREE_FRY,
                                       lax.RandomAlgorithm.RNG_PHILOX])
@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint16, jnp.uint32])
@pytest.mark.parametrize("shape", SHAPES)
def test_generator_agrees_with_cpu(shape, dtype, algorithm, device, cpu):
    words = 2 if algorithm == lax.RandomAlgorithm.RNG_THREE_FRY else 3
    key = np.arange(2 * words, dtype=np.uint32) * 0x9e3779b1 if words == 2 else \
        np.arange(4, dtype=np.uint32) * 0x9e3779b1

    def f(k):
        return lax.rng_bit_generator(k, shape, dtype=dtype, algorithm=algorithm)

    got, want = (jax.jit(f)(jax.device_put(key, d)) for d in (device, cpu))
    for a, b in zip(got, want):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
