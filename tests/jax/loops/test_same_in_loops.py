# SPDX-License-Identifier: Apache-2.0
"""Loops of which each turn works something out alike: it is worked out once, and the results are
those of XLA's CPU backend whatever the number of turns, on one device and on several."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
N = 48


def uniform(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def agree(f, *args, tol=2e-5):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tol,
                                   atol=tol)


def turns(step):
    """A loop whose number of turns is known, one where it is not, and a scan."""
    return [lambda n, *a: lax.fori_loop(0, 3, lambda i, c: step(i, c, *a[:-1]), a[-1]),
            lambda n, *a: lax.fori_loop(0, n, lambda i, c: step(i, c, *a[:-1]), a[-1]),
            lambda n, *a: lax.scan(lambda c, i: (step(i, c, *a[:-1]), c.sum()), a[-1],
                                   jnp.arange(4))]


A, B = uniform(N, N), uniform(N, N)
SYMMETRIC = A @ A.T + N * np.eye(N, dtype=np.float32)

STEPS = {
    "product of two weights": (lambda i, c, a, b: jnp.tanh(c @ (a @ b) / 8), (A, B)),
    "inverse": (lambda i, c, a: c - jnp.linalg.inv(a) @ c / 2, (SYMMETRIC,)),
    "solved": (lambda i, c, a: jax.scipy.linalg.solve(a, c, assume_a="pos") + 1, (SYMMETRIC,)),
    "eigenvalues": (lambda i, c, a: c + jnp.linalg.eigvalsh(a) / N, (SYMMETRIC,)),
    "normed weight": (lambda i, c, a: jnp.tanh(
        c @ (a / jnp.linalg.norm(a, axis=0, keepdims=True))), (A,)),
    "weight in bf16": (lambda i, c, a: jnp.tanh(lax.dot(
        c.astype(jnp.bfloat16), a.astype(jnp.bfloat16),
        preferred_element_type=jnp.float32)), (A,)),
    "weight of 8 bits": (lambda i, c, a, s: jnp.tanh(c @ (a.astype(jnp.float32) * s)),
                         ((A * 127).astype(np.int8), (np.abs(B[0]) / 127).astype(np.float32))),
    "mask": (lambda i, c, a: jnp.where(jnp.tril(jnp.ones((N, N), bool)), c, a), (A,)),
    "angles": (lambda i, c, a: c * jnp.sin(jnp.arange(N)[:, None] * a[0]) + jnp.cos(
        jnp.arange(N)[:, None] / (1 + jnp.arange(N))), (A,)),
    "sorted": (lambda i, c, a: c + jnp.sort(a, 1) - jnp.cumsum(a, 0), (A,)),
    "rows taken": (lambda i, c, a: c + a[jnp.argsort(a[0])] * (i + 1), (A,)),
    "noise": (lambda i, c, a: c + jax.random.normal(jax.random.key(7), a.shape), (A,)),
    "a branch": (lambda i, c, a: c + lax.cond(a[0, 0] > 0, lambda a: a @ a, lambda a: a.T, a),
                 (A,)),
    "nothing but that": (lambda i, c, a: a @ a, (A,)),
    "partly": (lambda i, c, a: c * i + (a + 1) + jnp.sum(a + 1) + (a + 1) @ (c / 50), (A,)),
    "integers": (lambda i, c, a: c + (a // 3 % 5 + a @ a).astype(jnp.float32),
                 ((A * 50).astype(np.int32),)),
    "complex": (lambda i, c, a: c + jnp.real(jnp.fft.ifft2(jnp.fft.fft2(a) ** 2)) / N, (A,)),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("kind", range(3))
def test_steps(name, kind):
    step, args = STEPS[name]
    f = turns(step)[kind]
    for n in [0, 1, 4] if kind == 1 else [0]:
        agree(f, np.int32(n), *args, uniform(N, N), tol=1e-3)


@pytest.mark.parametrize("name", ["product of two weights", "solved", "weight in bf16", "angles"])
def test_gradients(name):
    step, args = STEPS[name]

    def loss(*a):
        return jnp.sum(turns(step)[2](0, *a)[0])

    agree(jax.grad(loss, tuple(range(len(args)))), *args, uniform(N, N),
          tol=0.1 if "bf16" in name else 5e-3)


def test_loops_in_loops():
    def f(a, b, x):
        def outer(i, x):
            def inner(j, y):
                return jnp.tanh(y @ (a @ b) / 8 + x @ x / 50 + j)
            return lax.fori_loop(0, i, inner, x) + jnp.linalg.inv(a @ a.T + N * jnp.eye(N))
        return lax.fori_loop(0, 3, outer, x)

    agree(f, A, B, uniform(N, N), tol=1e-3)


def test_a_condition():
    def f(a, x):
        return lax.while_loop(lambda s: (s[0] < jnp.sum(jnp.abs(a)) / 100) & (s[1][0, 0] < 9),
                              lambda s: (s[0] + 1, s[1] + jnp.max(a @ a)), (jnp.float32(0), x))

    agree(f, A, uniform(N, N))


def test_a_batch_of_loops_that_end_at_different_turns():
    def f(n, a, x):
        return lax.while_loop(lambda s: s[0] < n,
                              lambda s: (s[0] + 1, jnp.tanh(s[1] @ (a @ a) / 4)), (0, x))

    agree(jax.vmap(f, (0, None, 0)), np.array([0, 3, 1, 5]), A, uniform(4, N, N), tol=1e-4)


def test_an_inner_loop_without_an_end_is_not_begun():
    """Its bound is read by a loop that makes no turn."""
    def endless(x):
        return lax.while_loop(lambda s: s[0, 0] < 1e9, lambda s: s * 1.0, x)

    def f(n, x, y):
        return lax.fori_loop(0, n, lambda i, c: c + endless(x), y)

    agree(f, np.int32(0), uniform(4, 4), uniform(4, 4))
