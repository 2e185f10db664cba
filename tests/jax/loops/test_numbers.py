# SPDX-License-Identifier: Apache-2.0
"""Small arrays that a loop's steps take apart into numbers and put together again: results are
those of XLA's CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def agree(f, *args, tol=1e-4):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tol,
                                   atol=tol)


def numbers(n):
    return RNG.uniform(0.5, 1.5, n).astype(np.float32)


def runge_kutta(f, h):
    def step(y, _):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y
    return step


def lorenz(y):
    return jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def pendulum(y):
    return jnp.array([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])


def rates(y):
    return jnp.stack([y[(i + 1) % len(y)] - y[i] * y[i] for i in range(len(y))])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("f, size", [(lorenz, 3), (pendulum, 2), (rates, 1), (rates, 8),
                                     (rates, 9)])
def test_differential_equations(f, size, n):
    agree(lambda y: lax.scan(runge_kutta(f, 0.01), y, None, length=n), numbers(size))
    agree(lambda y: lax.fori_loop(0, n, lambda i, y: y + 0.01 * f(y), y), numbers(size))


@pytest.mark.parametrize("n", [3, 21])
def test_steps_of_integers_truths_and_choices(n):
    def step(s, x):
        a = jnp.stack([s[2] + x, s[0] ^ s[1], s[1] * 3])
        big = jnp.stack([s[0], s[1], x]) > a
        b = jnp.where(big, a, a + 1) + jnp.clip(a, 0, x)
        return jnp.where(s[0] > 3, b, -b), big[1]

    agree(lambda s, x: lax.scan(step, s, x), RNG.integers(0, 9, 3).astype(np.int32),
          RNG.integers(0, 9, n).astype(np.int32), tol=0)


def test_without_a_loop():
    def f(a, b, c, v):
        u = jnp.stack([a, b, c]) * v + c
        w = jnp.exp(u) - jnp.stack([c, a, b])
        return w[0] * w[2], u, jnp.clip(w, a, b)[2], (w > v)[1].astype(np.int32)

    agree(f, *np.float32([0.3, 0.9, 0.4]), numbers(3))
    agree(jax.vmap(f), *numbers((3, 5)), numbers((5, 3)))
    agree(jax.grad(lambda *a: f(*a)[0], (0, 3)), *np.float32([0.3, 0.9, 0.4]), numbers(3))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("fold", [jnp.sum, jnp.max, jnp.min, jnp.prod,
                                  lambda e: jnp.any(e > 0.9), lambda e: jnp.all(e < 1.2),
                                  lambda e: jnp.sum(e > 0.9), lambda e: jnp.argmin(e)])
def test_numbers_that_are_folded_to_one(fold, size):
    """The error of a step, by which the next one is chosen; y stays what it was where it is NaN."""
    def step(s):
        y, n = s
        z = y + 0.01 * rates(y)
        e = fold(jnp.abs(z - y) * 50).astype(jnp.float32)
        return jnp.where(e < 1e3, z * (1 + e / 99), y), n + 1

    for y in [numbers(size), np.full(size, np.nan, np.float32), -np.zeros(size, np.float32)]:
        agree(lambda y: lax.while_loop(lambda s: s[1] < 5, step, (y, 0)), y)
        agree(lambda y: fold(jnp.stack([y[i] * 2 for i in range(size)])), y)
