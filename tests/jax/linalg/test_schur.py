# SPDX-License-Identifier: Apache-2.0
"""Schur forms of many matrices for which the QR algorithm's shifts are hard to tell."""

import jax
import numpy as np
import pytest

UNITS = 40      # of the matrix's norm and the root of its rows


def check(a, device):
    t, z = (np.float64(x) for x in jax.jit(jax.lax.linalg.schur)(jax.device_put(a, device)))
    unit = np.finfo(a.dtype).eps * UNITS * a.shape[-1] ** 0.5
    assert np.isfinite(t).all(), f"{(~np.isfinite(t).all((1, 2))).sum()} did not converge"
    norm = np.linalg.norm(np.float64(a), axis=(1, 2))
    turned = np.swapaxes(z, 1, 2)
    assert (np.linalg.norm(z @ t @ turned - a, axis=(1, 2)) / norm).max() < unit
    assert np.linalg.norm(turned @ z - np.eye(a.shape[-1]), axis=(1, 2)).max() < unit


def eigenvector_residuals(a, device):
    values, vectors = (np.complex128(x) for x in
                       jax.jit(jax.numpy.linalg.eig)(jax.device_put(a, device)))
    residual = np.linalg.norm(a @ vectors - vectors * values[:, None], axis=1)
    unit = np.finfo(a.dtype).eps * np.linalg.norm(np.float64(a), axis=(1, 2))
    return residual / unit[:, None]


@pytest.mark.parametrize("n", [6, 18])
def test_values_that_are_the_same(n, device):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((400, n, n))
    a = x * rng.choice([1, 1, 1, 2, -1], (400, 1, n)) @ np.linalg.inv(x)
    check(a.astype(np.float32), device)


@pytest.mark.parametrize("n", [3, 11])
def test_one_large_entry(n, device):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((400, n, n))
    a[np.arange(400), rng.integers(n, size=400), rng.integers(n, size=400)] = \
        10.0 ** rng.uniform(-30, 30, 400)
    check(a.astype(np.float32), device)


# After balancing, what is below the diagonal may be small beside it and yet be all there is of a
# vector, by the scale of its row.
@pytest.mark.parametrize("n", [3, 6])
def test_eigenvectors_of_columns_of_all_sizes(n, device):
    a = np.random.default_rng(n).standard_normal((2000, n, n)) * np.logspace(0, -20, n)
    a = a.astype(np.float32)
    assert eigenvector_residuals(a, device).max() < UNITS * n


@pytest.mark.parametrize("n", [5, 8])
def test_pairs_that_are_the_same(n, device):
    rng = np.random.default_rng(n)
    a = rng.choice([0, 1, -1, 0.5], (20_000, n, n))
    check((a - np.swapaxes(a, 1, 2))[np.any(a != np.swapaxes(a, 1, 2), (1, 2))]
          .astype(np.float32), device)


# Rows that balancing scaled by much show what is added to keep small divisors from 0.
def test_eigenvectors_of_scaled_rows(device):
    eps = 2.0 ** -23
    a = np.float32([
        [[1e-3, 0, 0], [1, eps, eps], [0, -1, 1e-3]],
        [[-1, eps, 0], [1, eps, 0], [0, 1, 0]],
        [[1, -1, 0], [eps, 0, -1], [0, 0, 1]],
    ])
    assert eigenvector_residuals(a, device).max() < UNITS
