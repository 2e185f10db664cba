# SPDX-License-Identifier: Apache-2.0
"""Numbers rounded to fewer bits: every number of the types of 8 and 16 bits, as JAX's CPU backend
rounds them."""
import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax

TYPES = [np.float16] + [getattr(ml_dtypes, "float8_" + name) for name in (
    "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_every_number_keeps_the_bits_that_it_may(device, cpu, dtype):
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x = np.arange(256 ** bits.itemsize).astype(bits).view(dtype)
    kept = [(e, m) for e in (1, 2, 4, 5, 6, 8, 11) for m in (0, 1, 2, 9, 10, 52)]

    @jax.jit
    def reduced(x):
        return [lax.reduce_precision(x, *k) for k in kept]

    got, want = (reduced(jax.device_put(x, d)) for d in (device, cpu))
    for k, a, b in zip(kept, got, want):
        a, b = (np.asarray(y).astype(np.float64) for y in (a, b))
        np.testing.assert_array_equal(a, b, err_msg=str(k))
        np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a),
                                      np.signbit(b) & ~np.isnan(b), err_msg=str(k))
