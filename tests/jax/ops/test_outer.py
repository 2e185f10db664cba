# SPDX-License-Identifier: Apache-2.0
"""Sums of products of arrays that are spread out as rows and columns are, which become products
of matrices. Against NumPy in f64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SIZES = [1, 2, 3, 17]


def close(f, *args):
    """Apart by some roundings of what is summed, of magnitudes; whole numbers not at all."""
    got = np.asarray(jax.jit(f)(*args))
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, f(*args))
        return
    wide = [x.astype(np.float64) for x in args]
    most = 4 * float(jnp.finfo(got.dtype).eps) * f(*[abs(x) for x in wide])
    assert (abs(got.astype(np.float64) - f(*wide)) <= most).all()


def arrays(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [(4 * rng.uniform(-1, 1, s)).astype(dtype) for s in shapes]


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int32, np.uint8])
@pytest.mark.parametrize("n", [*SIZES, 300])
def test_outer_products(dtype, n):
    # Like NumPy's, sums of bytes are of wider ones, unless they are asked for.
    for rows in SIZES:
        for cols in SIZES if dtype == np.float32 else [c for c in SIZES if c >= rows]:
            x, y, z = arrays(dtype, (n, rows), (n, cols), (5, n, rows))
            close(lambda x, y: (x[:, :, None] * y[:, None, :]).sum(0, dtype=x.dtype), x, y)
            close(lambda x, y: (x[:, None, :] * y[:, :, None]).sum(0, dtype=x.dtype), x, y)
            close(lambda x, y: (x.T[:, None, :] * y.T[None]).sum(-1, dtype=x.dtype), x, y)
            close(lambda z, y: (z[:, :, None, :] * y[None, :, :, None]).sum(1, dtype=z.dtype),
                  z, y)
            close(lambda z, y: (z[..., None] * y[:, None, :]).sum((0, 1), dtype=z.dtype), z, y)


def test_sums_of_specials_are_those_of_the_products():
    x, y = arrays(np.float32, (9, 4), (9, 5))
    x[0, 0], x[1, 1], y[2, 2], y[3, 3], x[4, 2] = np.nan, np.inf, -np.inf, 0, -0.0
    got = jax.jit(lambda x, y: (x[:, :, None] * y[:, None, :]).sum(0))(x, y)
    want = (x[:, :, None] * y[:, None, :]).sum(0)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
    zeros = np.zeros((3, 2), np.float32)
    got = jax.jit(lambda x, y: (x[:, :, None] * y[:, None, :]).sum(0))(-zeros, zeros)
    assert not np.signbit(np.asarray(got)).any()
