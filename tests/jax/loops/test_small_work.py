# SPDX-License-Identifier: Apache-2.0
"""Loops whose turns multiply, reduce, look up and put little: several turns are written one after
the other, with what is known of each turn's number, and results stay those of XLA's CPU backend.
Whole numbers show each bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
TURNS = [0, 1, 2, 3, 6, 7, 8, 9, 15, 17, 24, 50]


def integers(*shape, dtype=np.int32):
    return RNG.integers(-9, 9, shape).astype(dtype)


def same(f, *args, rtol=0.0):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", TURNS)
def test_products(n, reverse):
    def step(c, x):
        a, v = c
        return (x @ a & 255, a @ v & 255), (a[0, 1], v @ v, v @ x)

    same(lambda *s: lax.scan(step, s[:2], s[2], reverse=reverse), integers(4, 4), integers(4),
         integers(n, 4, 4))


@pytest.mark.parametrize("n", TURNS)
@pytest.mark.parametrize("rows,k", [(1, 3), (3, 1), (4, 4), (5, 7), (8, 8), (16, 32)])
def test_products_of_fractions(n, rows, k):
    """By vectors from both sides, whose sums the one behind adds to."""
    w = (RNG.normal(size=(rows, k)) / k).astype(np.float32)
    u = (RNG.normal(size=(k, rows)) / rows).astype(np.float32)

    def step(c, x):
        c = jnp.tanh(w @ (c @ w) + x)
        return c, c @ u.T

    same(lambda c, x: lax.scan(step, c, x), np.ones(rows, np.float32),
         RNG.normal(size=(n, rows)).astype(np.float32), rtol=2e-5)


@pytest.mark.parametrize("n", TURNS)
def test_reductions(n):
    def step(c, x):
        t = c[:, None] + x
        best = jnp.argmax(t, 0).astype(jnp.int32)
        return (t.max(0) - t.min(1)) & 63, (best, t.sum(), jnp.sort(t, 1)[:, 0])

    same(lambda c, x: lax.scan(step, c, x), integers(6), integers(n, 6, 6))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", TURNS)
def test_places_that_are_looked_up(n, reverse):
    table = jnp.asarray(integers(7, 3))

    def step(c, i):
        row = table[i] + table[c % 7, 1]
        return c + row[2] & 15, row

    same(lambda c, i: lax.scan(step, c, i, reverse=reverse), np.int32(3), integers(n))


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("first", [-3, 0, 2])
@pytest.mark.parametrize("n", [1, 3, 6, 8, 13])
def test_places_that_turns_put_at(n, first, mode):
    """Some before the first and past the last: they are dropped, or clipped, turn by turn. With a
    promise there are none."""
    size = n + 3 if mode == "promise_in_bounds" else n
    first = abs(first) if mode == "promise_in_bounds" else first

    def spread(i, a):
        return a.at[:, i + first].add(a[:, 0] * i, mode=mode)

    same(lambda a: lax.fori_loop(0, n, spread, a), integers(3, size))
    same(lambda a: lax.fori_loop(0, n, lambda i, a: a.at[i + first].set(
        jnp.cumsum(a)[-1] & 7, mode=mode), a), integers(size))
    same(lambda a: lax.fori_loop(0, n, lambda i, a: a.at[i + first].set(
        a.sum(0) & 7, mode=mode), a), integers(size, 2))


@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_turns_whose_numbers_are_known(n, dtype):
    """What a turn makes of its number is known where turns are written one after the other: it
    overflows as it did."""
    def step(i, s):
        a, k = s
        k = k * jnp.asarray(77, dtype) + i.astype(dtype)
        return a * 3 + k + (i * 123456789 - 5).astype(dtype) + a.sum(dtype=dtype), k

    same(lambda a: lax.fori_loop(0, n, step, (a, jnp.asarray(200 % 127, dtype))),
         integers(5).astype(dtype))


@pytest.mark.parametrize("n", [3, 8, 21])
def test_slices_of_what_turns_carry(n):
    """At the turn's number and at what is carried, which may lie past either end."""
    def step(i, s):
        a, c = s
        x = lax.dynamic_slice(a, (i, c), (2, 2))
        return lax.dynamic_update_slice(a, x @ x & 63, (c, i)), (c * 5 + x.sum()) % 11 - 2

    same(lambda *s: lax.fori_loop(0, n, step, s), integers(6, 6), np.int32(1))


@pytest.mark.parametrize("outer", [1, 3, 20])
@pytest.mark.parametrize("inner", [1, 4, 11])
def test_loops_within_loops(outer, inner):
    def step(i, x):
        return lax.fori_loop(0, inner, lambda j, x: (x @ x & 7) + x[i % 3, j % 3], x) + i

    same(lambda x: lax.fori_loop(0, outer, step, x), integers(3, 3))


@pytest.mark.parametrize("n", [2, 9])
@pytest.mark.parametrize("size", [31, 32, 33, 70])
def test_what_is_too_large_stays_a_turn(n, size):
    same(lambda x, y: lax.scan(lambda c, y: (c @ c + y & 3, c.sum(0)), x, y), integers(size, size),
         integers(n, size))


def test_many_values_are_carried():
    def step(i, s):
        return tuple(s[(k + 1) % len(s)] @ s[0] + i & 15 for k in range(len(s)))

    for many in [1, 7, 8, 9, 23, 24, 25]:
        same(lambda *s: lax.fori_loop(0, 5, step, s), *integers(many, 2, 2))


@pytest.mark.parametrize("first", [-3, 0, 4, 9])
@pytest.mark.parametrize("n", [1, 5, 8, 13])
def test_slices_past_either_end_are_moved_back(n, first):
    def step(i, s):
        a, out = s
        x = lax.dynamic_slice(a, (i + first, 0), (3, 2))
        return a + x.sum(0) & 63, out + x.T @ x

    same(lambda *s: lax.fori_loop(0, n, step, s), integers(8, 2), integers(2, 2))


@pytest.mark.parametrize("at", [-1, 0, 1, 5])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_updates_at_known_places(size, at):
    """Also of nothing, and of what lies there already."""
    x = integers(3)
    same(lambda x, y: lax.dynamic_update_slice(x, y, (jnp.int8(at),)), x, integers(size))
    same(lambda x: lax.dynamic_update_slice(x, x[:size], (jnp.int8(at),)), x)
    same(lambda x: lax.dynamic_update_slice(jnp.arange(3), x, (jnp.int8(at),)), integers(size))
    same(lambda x: lax.dynamic_update_slice(x @ x, x[:size, 1:], (at, at)), integers(3, 3))
