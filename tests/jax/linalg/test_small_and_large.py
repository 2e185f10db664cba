# SPDX-License-Identifier: Apache-2.0
"""Matrices whose entries have squares that are too small, or too large, for their type."""

import functools

import jax
import numpy as np
import pytest


@pytest.mark.parametrize("scale", [2.0**-75, 2.0**-100, 2.0**100])
def test_pivots(scale, device):
    a = np.random.default_rng(1).standard_normal((20, 6, 5)).astype(np.float32)
    qr = jax.jit(functools.partial(jax.lax.linalg.qr, pivoting=True))
    _, want, order = (np.asarray(x) for x in qr(jax.device_put(a, device)))
    _, r, pivots = (np.asarray(x) for x in qr(jax.device_put(a * np.float32(scale), device)))
    np.testing.assert_array_equal(pivots, order)
    np.testing.assert_allclose(r / scale, want, rtol=0, atol=1e-5)
