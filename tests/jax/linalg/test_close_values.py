# SPDX-License-Identifier: Apache-2.0
"""Vectors of values that lie within rounding of each other, among many matrices of which few have
such a root of the secular equation that rounding alone is left of the equation near it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

MATRICES = 20_000
UNITS = 40      # of the matrix's norm


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


def diagonals(n, dtype, numbers):
    """Matrices of two diagonals, of these numbers, of a unit and of what it is small beside."""
    rng = np.random.RandomState(11)
    few = [0, 1, np.finfo(dtype).eps, 1e-3]
    d, e = rng.choice(few + numbers, (MATRICES, n)), rng.choice(few, (MATRICES, n))
    return np.eye(n) * d[..., None], np.eye(n, k=1) * e[..., None]


def check(a, residual):
    norm = np.maximum(np.linalg.norm(a, axis=(1, 2)), np.finfo(a.dtype).tiny)
    errors = np.linalg.norm(residual, axis=(1, 2)) / norm / np.finfo(a.dtype).eps
    assert errors.max() < UNITS, f"{np.sum(errors >= UNITS)} of {MATRICES}: {errors.max():.0f}"


@pytest.mark.parametrize("n, dtype", [(16, np.float32), (8, np.float64)])
def test_singular_vectors_of_close_values(n, dtype, device):
    a = np.add(*diagonals(n, dtype, [])).astype(dtype)
    u, s, vh = (np.asarray(x) for x in jax.jit(jnp.linalg.svd)(jax.device_put(a, device)))
    check(a, np.float64(u * s[:, None]) @ vh - a)


def test_eigenvectors_of_close_values(device):
    d, e = diagonals(8, np.float32, [-1])
    a = (d + e + np.swapaxes(e, 1, 2)).astype(np.float32)
    w, v = (np.asarray(x) for x in jax.jit(jnp.linalg.eigh)(jax.device_put(a, device)))
    check(a, np.float64(a) @ v - v * np.float64(w)[:, None])
