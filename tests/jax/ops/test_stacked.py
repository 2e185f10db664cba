# SPDX-License-Identifier: Apache-2.0
"""Arrays that loops put together row by row: none is filled before if all of it is put, and each
is if not. Memory is made dirty first, so that what nobody wrote is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def uniform(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def agree(f, *args, tol=1e-5):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    g = jax.jit(f).lower(*args).compile()
    for _ in range(2):
        dirt = jax.block_until_ready([jnp.full((1 << 20,), np.nan) for _ in range(8)])
        del dirt
        here = g(*args)
        for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


@pytest.mark.parametrize("n", [1, 2, 7, 128])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_turns_of_a_scan_give(n, reverse):
    xs = uniform(n, 33)

    def f(xs):
        return lax.scan(lambda c, x: (c + x, (c * x, x > 0, c.sum())), jnp.zeros(33), xs,
                        reverse=reverse)

    agree(f, xs)


def test_and_of_its_gradient():
    xs, w = uniform(20, 8, 16), uniform(16, 16) * np.float32(0.2)

    def loss(w, xs):
        def cell(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h * h
        h, ys = lax.scan(cell, jnp.zeros((8, 16)), xs)
        return h.sum() + ys.sum()

    agree(jax.grad(loss, (0, 1)), w, xs)
    agree(jax.grad(lambda w, xs: jax.checkpoint(loss)(w, xs)), w, xs)


def test_scans_in_scans():
    def outer(c, x):
        c, ys = lax.scan(lambda c, y: (c + y, c * y), c, x)
        return c, ys

    agree(lambda xs: lax.scan(outer, 0.0, xs), uniform(5, 6))
    agree(jax.vmap(lambda xs: lax.scan(outer, 0.0, xs)), uniform(3, 5, 6))


def put(first, last, at, x=None, rows=6):
    """A loop whose turns put rows into an array of ones, or of x."""
    def f(y):
        start = jnp.ones((rows, 5)) if x is None else x
        return lax.fori_loop(first, last, lambda i, a: a.at[at(i)].set(y * i), start)
    return f


def test_rows_that_no_turn_puts():
    y = uniform(5)
    for f in (put(0, 6, lambda i: i), put(0, 5, lambda i: i), put(1, 6, lambda i: i),
              put(0, 6, lambda i: 5 - i), put(0, 6, lambda i: i // 2), put(0, 6, lambda i: 0),
              put(0, 6, lambda i: i + 1), put(0, 6, lambda i: i - 1), put(0, 3, lambda i: 2 * i),
              put(0, 0, lambda i: i), put(0, 7, lambda i: i), put(2, 8, lambda i: i - 2),
              put(0, 6, lambda i: i, x=uniform(6, 5))):
        agree(f, y)


def test_rows_that_are_looked_at_before_they_are_put():
    def f(y):
        def turn(i, a):
            return lax.dynamic_update_index_in_dim(a, y + a[5 - i], i, 0)
        return lax.fori_loop(0, 6, turn, jnp.ones((6, 5)))

    def g(y):
        def turn(i, s):
            a, seen = s
            a = lax.dynamic_update_index_in_dim(a, y * i, i, 0)
            return a, seen + a.sum()
        return lax.fori_loop(0, 6, turn, (jnp.ones((6, 5)), 0.0))

    agree(f, uniform(5))
    agree(g, uniform(5))


def test_turns_that_are_not_counted():
    def f(y, most):
        def turn(s):
            i, a = s
            return i + 1, lax.dynamic_update_index_in_dim(a, y * i, i, 0)
        return lax.while_loop(lambda s: (s[0] < 6) & (s[0] < most), turn,
                              (0, jnp.ones((6, 5))))

    for most in (0, 3, 6, 9):
        agree(f, uniform(5), np.int32(most))


def test_a_condition_that_shows_the_array():
    seen = []

    def f(y):
        def go_on(s):
            jax.debug.callback(lambda a: seen.append(float(a.sum())), s[1])
            return s[0] < 3

        def turn(s):
            return s[0] + 1, lax.dynamic_update_index_in_dim(s[1], y, s[0], 0)
        return lax.while_loop(go_on, turn, (0, jnp.ones((3, 4))))[1]

    y = jnp.full(4, 2.0)
    np.testing.assert_array_equal(np.asarray(jax.jit(f)(y)), 2)
    jax.effects_barrier()
    assert sorted(seen) == [12, 16, 20, 24]


def test_no_zeros_are_written_before():
    xs = uniform(64, 2048)      # rows so long that a turn is one (loop/unroll.c)

    def f(xs):
        return lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(2048), xs)

    g = jax.jit(f).lower(xs).compile()
    assert g.memory_analysis().temp_size_in_bytes < xs.nbytes
    # A turn is counted some times; the whole of what turns give was, too, when it was filled.
    assert g.cost_analysis()["bytes accessed"] < xs.nbytes
