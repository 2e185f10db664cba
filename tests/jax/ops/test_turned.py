# SPDX-License-Identifier: Apache-2.0
"""Elementwise work on transposed arrays that is transposed back, and what is spread out and folded
along short rows, against the CPU backend."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def agree(f, *args):
    want = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    got = jax.jit(f)(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6, 1e-6), got, want)


@pytest.mark.parametrize("there", list(itertools.permutations(range(3))))
def test_every_order_there_and_back(there):
    back = tuple(np.argsort(there))
    x, y = (RNG.normal(size=(3, 5, 7)).astype(np.float32) for _ in range(2))
    z = y.transpose(there)

    def f(x, y, z):
        a, b = x.transpose(there), y.transpose(there)
        rows = jnp.arange(a.shape[1], dtype=np.float32)[:, None]
        more = (jnp.tanh(a) - z) * rows + jax.lax.broadcasted_iota(np.float32, a.shape, 2)
        return (a + b).transpose(back), more.transpose(back), jnp.where(b > z, a, 1).transpose(back)

    agree(f, x, y, z)


def test_another_order_back():
    x = RNG.normal(size=(3, 5, 7)).astype(np.float32)
    agree(lambda x: (jnp.sin(x.transpose(2, 0, 1)) + 1).transpose(2, 0, 1), x)


def test_in_loops_and_with_other_users():
    x, y = (RNG.normal(size=(6, 6)).astype(np.float32) for _ in range(2))

    def f(x, y):
        z = jax.lax.fori_loop(0, 3, lambda i, z: (jnp.sin(z.T) + y.T * i).T, x)
        t = jnp.cos(z.T)
        return z, (t * t).T, t.sum(0)

    agree(f, x, y)


# Against NumPy: XLA's CPU backend loses NaN here, and takes bytes for ones with a sign.
@pytest.mark.parametrize("few", [2, 30, 256, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
def test_all_of_many_with_all_of_a_few(dtype, few):
    x, y = ((RNG.normal(size=n) * 20).astype(np.int32).astype(dtype) for n in (1500, few))
    x[:3], y[0] = 0, 0
    if dtype == np.float32:
        x[3], x[4], x[5], y[1] = np.nan, np.inf, -0.0, -0.0

    def f(np, x, y):
        a = x[:, None]
        number = np.arange(few, dtype=np.int32)
        both = x.reshape(-1, 3)[:, :, None] * y
        return ((a == y).any(1), (a >= y).all(1), (a < y).sum(1), (a - y).max(1), (a * y).min(1),
                np.where(a == y, number, few).min(1), np.isin(x, y), both.max(2),
                (a * y).sum(1, dtype=dtype), (a == y).any(0), np.argmax(a == y, 1))

    with np.errstate(all="ignore"):
        want = f(np, x, y)
    for k, (a, b) in enumerate(zip(jax.jit(lambda x, y: f(jnp, x, y))(x, y), want, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=str(k))
