# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities and both zeros through folds and choices, by NumPy's answers.

XLA's CPU backend loses NaN in a reduction by max or min, so it is no oracle here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

# Widths on both sides of a lane, a vector, a row's limit and a tile of the model.
WIDTHS = [1, 3, 8, 9, 16, 17, 63, 64, 65, 160, 161, 511, 513, 2047, 2049, 5003]
PLACES = ["first", "last", "middle", "nowhere"]
FOLDS = ["max", "min"]


def rows(width, place, special, dtype):
    """Seven rows, of which the odd ones have the special value."""
    a = np.random.default_rng(width).uniform(-1, 1, (7, width)).astype(dtype)
    if place != "nowhere":
        a[1::2, {"first": 0, "last": -1, "middle": width // 2}[place]] = special
    return a


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("axis", [0, 1])
def test_folds_keep_nan_and_infinities(width, axis, device):
    cases = [(place, special) for place in PLACES for special in (np.nan, np.inf, -np.inf)]
    a = np.stack([rows(width, *c, np.float32) for c in cases])
    f = jax.jit(lambda x: [getattr(jnp, n)(x, axis + 1) for n in FOLDS])
    for n, got in zip(FOLDS, f(jax.device_put(a, device))):
        np.testing.assert_array_equal(np.asarray(got), getattr(np, n)(a, axis + 1), err_msg=n)
    got = np.asarray(jax.jit(lambda x: x.sum(axis + 1))(jax.device_put(a, device)))
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64).sum(axis + 1)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(a.shape[1:]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_choices_between_specials_are_those_of_numpy(dtype, device):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3.5], np.float32)
    x, y = (v.ravel().repeat(80) for v in np.meshgrid(values, values))
    a, b = (jax.device_put(v.astype(jnp.dtype(dtype)), device) for v in (x, y))
    for name in ("maximum", "minimum", "greater", "greater_equal", "less", "less_equal",
                 "equal", "not_equal", "copysign"):
        got = np.asarray(jax.jit(getattr(jnp, name))(a, b)).astype(np.float32)
        np.testing.assert_array_equal(got, getattr(np, name)(x, y).astype(np.float32), name)
    for name in ("isnan", "isinf", "isfinite", "signbit", "abs", "negative", "sign"):
        got = np.asarray(jax.jit(getattr(jnp, name))(a)).astype(np.float32)
        np.testing.assert_array_equal(got, getattr(np, name)(x).astype(np.float32), name)


@pytest.mark.parametrize("width", WIDTHS)
def test_order_puts_nan_last_and_keeps_equals_in_place(width, device):
    rng = np.random.default_rng(width)
    a = rng.choice(np.array([np.nan, np.inf, -np.inf, 1, -1, 2, 0.5], np.float32), (3, width))
    x = jax.device_put(a, device)
    np.testing.assert_array_equal(np.asarray(jnp.sort(x, 1)), np.sort(a, 1))
    np.testing.assert_array_equal(np.asarray(jnp.argsort(x, 1)),
                                  np.argsort(a, 1, kind="stable"))
    np.testing.assert_array_equal(np.asarray(jnp.argmax(x, 1)), np.argmax(a, 1))
    np.testing.assert_array_equal(np.asarray(jnp.argmin(x, 1)), np.argmin(a, 1))
