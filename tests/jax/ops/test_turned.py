# SPDX-License-Identifier: Apache-2.0
"""Elementwise work on transposed arrays that is transposed back, against the CPU backend."""

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
