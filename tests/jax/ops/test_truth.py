# SPDX-License-Identifier: Apache-2.0
"""Masks whose bytes are neither 0 nor 1, as `.view(bool)` and `np.frombuffer` make them: what numpy
says of them is true here, too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.array([0, 1, 2, 255, 128, 3, 0, 255] * 40, np.uint8).view(bool)
Y = np.frombuffer(bytes([1, 0, 1, 2, 0, 4, 0, 255] * 40), bool)


@pytest.mark.parametrize("f", [
    lambda np, a, b: ~a, lambda np, a, b: a & b, lambda np, a, b: a | b, lambda np, a, b: a ^ b,
    lambda np, a, b: a == b, lambda np, a, b: a.sum(), lambda np, a, b: np.sort(a),
    lambda np, a, b: a.astype("int32"), lambda np, a, b: np.where(a, 10, 20),
    lambda np, a, b: a.astype("float32") @ b.astype("float32")])
def test_what_masks_compute(f):
    x, y = X.copy(), Y.copy()
    # numpy itself computes with bytes here and there: what it is held to are masks as it makes them
    want = f(np, x.view(np.uint8) != 0, y.view(np.uint8) != 0)
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda a, b: f(jnp, a, b))(x, y)), want)


@pytest.mark.parametrize("turn", [lambda a: a[::-1], lambda a: a.reshape(8, 40).T,
                                  lambda a: a[1::3], lambda a: np.broadcast_to(a, (3, a.size))])
def test_masks_with_strides(turn):
    got = np.asarray(jax.jit(lambda a: a.astype(jnp.int32))(turn(X)))
    np.testing.assert_array_equal(got, turn(X.view(np.uint8) != 0))


def test_masks_of_callbacks():
    def f(x):
        m = jax.pure_callback(lambda _: X, jax.ShapeDtypeStruct(X.shape, bool), x)
        return m.sum() + x, ~m

    n, m = jax.jit(f)(1)
    assert n == X.view(np.uint8).astype(bool).sum() + 1
    np.testing.assert_array_equal(np.asarray(m), X.view(np.uint8) == 0)
