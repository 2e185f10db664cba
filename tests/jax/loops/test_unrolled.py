# SPDX-License-Identifier: Apache-2.0
"""Loops of little elementwise work, of which several turns are one instruction: whatever the number
of turns, and wherever they read and write rows, results are those of XLA's CPU backend. Steps are
chosen so that those are the same bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
TURNS = list(range(20)) + [23, 24, 25, 31, 32, 33, 64, 100, 1000]


def integers(*shape, dtype=np.int32):
    return RNG.integers(0, 100, shape).astype(dtype)


def same(f, *args):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("n", TURNS)
def test_a_number_after_so_many_turns(n):
    same(lambda x: lax.fori_loop(0, n, lambda i, x: x * 3 + i, x), np.int32(7))
    same(lambda x: lax.fori_loop(0, n, lambda i, x: x * np.float32(0.5) + 1, x), np.float32(3))
    same(lambda x: lax.fori_loop(5, 5 + n, lambda i, x: x ^ (x << 3) ^ i, x), np.int32(9))


@pytest.mark.parametrize("n", [1, 3, 8, 17, 40])
@pytest.mark.parametrize("shape", [(1,), (37,), (5, 33), (3, 1, 70), (4097,)])
def test_arrays_after_so_many_turns(n, shape):
    def step(i, s):
        a, b, c = s
        return b, a + jnp.where(b > i, 1, b), c * 3 + a

    same(lambda *s: lax.fori_loop(0, n, step, s), *integers(3, *shape))


@pytest.mark.parametrize("n", [2, 7, 9, 30])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint32", "float16",
                                   "bfloat16", "complex64"])
def test_elements_of_every_kind(n, dtype):
    x = (integers(50) > 50) if dtype == "bool" else jnp.asarray(integers(50) % 7).astype(dtype)

    def step(i, s):
        a, b = s
        return (a ^ b, a & ~b) if dtype == "bool" else (b, (a - b) * jnp.asarray(0.5, b.dtype) if
                                                        jnp.issubdtype(b.dtype, jnp.inexact)
                                                        else a * 3 - b)

    same(lambda a, b: lax.fori_loop(0, n, step, (a, b)), np.asarray(x), np.asarray(x)[::-1])


def add(c, x):
    return c * 3 + x, c - x


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", TURNS)
def test_scans_of_numbers(n, reverse):
    same(lambda c, x: lax.scan(add, c, x, reverse=reverse), np.int32(1), integers(n))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 21])
@pytest.mark.parametrize("row", [(1,), (16, 5), (1023,), (1024,), (1025,)])
def test_scans_of_rows(n, row, reverse):
    """Rows of 4 KiB and fewer are taken and put several at once."""
    same(lambda c, x, y: lax.scan(lambda c, xy: (c * 5 + xy[0] - xy[1], (c, c & xy[1])), c, (x, y),
                                  reverse=reverse),
         integers(*row), integers(n, *row), integers(n, *row))


@pytest.mark.parametrize("n", [1, 5, 8, 13, 35])
def test_rows_of_other_dims_and_places(n):
    """Rows along another dim than the first, that begin late, that go down, in an array that has
    more of them, and one that is read at two places."""
    def body(i, s):
        c, out = s
        row = lax.dynamic_slice(table, (0, i + 2), (6, 1))
        last = lax.dynamic_slice(table, (0, n + 3 - i), (6, 1))
        c = c * 3 + row - last
        return c, lax.dynamic_update_slice(out, c + 1, (0, n - i))

    table = jnp.asarray(integers(6, n + 8))
    same(lambda c, out: lax.fori_loop(0, n, body, (c, out)), integers(6, 1), integers(6, n + 5))


@pytest.mark.parametrize("n", [6, 21])
def test_rows_that_are_clamped_stay_where_they_are(n):
    """Where a turn's row would lie past the end, several at once would be others."""
    def body(i, s):
        c, out = s
        c = c * 3 + lax.dynamic_slice(table, (i + 5,), (1,))
        return c, lax.dynamic_update_slice(out, c, (i + 4,))

    table = jnp.asarray(integers(n + 2))
    same(lambda c, out: lax.fori_loop(0, n, body, (c, out)), integers(1), integers(n + 1))


@pytest.mark.parametrize("n", [6, 21])
def test_an_array_that_is_read_while_it_is_written(n):
    def body(i, a):
        x = lax.dynamic_slice(a, (i,), (1,))
        return lax.dynamic_update_slice(a, x * 3 + 1, (i + 1,))

    same(lambda a: lax.fori_loop(0, n, body, a), integers(n + 1))
    same(lambda a: lax.fori_loop(0, n, lambda i, a: a.at[i + 1].set(a[i] * 3 + 1), a),
         integers(n + 1))


@pytest.mark.parametrize("n", [5, 19])
def test_rows_that_do_not_depend_on_the_turn(n):
    """What a turn puts may be an argument, a constant, or what all turns make alike."""
    same(lambda c, x, y: lax.scan(lambda c, x: (c + x, (y, jnp.int32(4), y * 2 + 1)), c, x),
         np.int32(1), integers(n), np.int32(6))


@pytest.mark.parametrize("outer", [1, 3, 20])
@pytest.mark.parametrize("inner", [1, 3, 20])
def test_loops_within_loops(outer, inner):
    def step(i, x):
        return lax.fori_loop(0, inner, lambda j, x: x * 3 + i - j, x) ^ i

    same(lambda x: lax.fori_loop(0, outer, step, x), integers(9))
    same(lambda x: lax.scan(lambda c, x: (step(3, c + x), c), np.int32(0), x), integers(outer))


@pytest.mark.parametrize("use", [
    lambda ys: ys.sum(), lambda ys: (ys, ys * 2), lambda ys: (ys, ys), lambda ys: ys[::-1],
    lambda ys: ys.reshape(-1, 1).T, lambda ys: (ys, ys[3:]), lambda ys: jnp.sort(ys, 0),
    lambda ys: lax.scan(add, jnp.zeros_like(ys[0]), ys),
    lambda ys: lax.fori_loop(0, 3, lambda i, a: a.at[i].set(a[i + 1] * 3), ys)])
@pytest.mark.parametrize("n", [8, 21])
def test_what_turns_put_together_goes_on(n, use):
    """The turns that do not divide by eight put their rows before the loop, which goes on there."""
    same(lambda c, x: use(lax.scan(add, c, x)[1]), np.int32(1), integers(n))
    same(lambda c, x: use(lax.scan(add, c, x, reverse=True)[1]), integers(5), integers(n, 5))


def test_scans_within_scans_and_branches():
    def inner(c, x):
        return lax.scan(add, c, x)

    same(lambda c, x: lax.scan(inner, c, x), np.int32(1), integers(19, 21))
    same(lambda c, x: lax.cond(c > 0, lambda: inner(c, x), lambda: (c, x)), np.int32(1),
         integers(21))


def test_values_that_a_loop_carries_twice():
    def body(s):
        i, j, k, a, b = s
        return i + 1, j + 1, k - 1, a * 3 + j, b + a

    def cond(s):
        return s[0] < 21

    # the second starts as the first; others as well, but go another way
    same(lambda a: lax.while_loop(cond, body, (0, 0, 0, a, a)), integers(5))
    same(lambda a: lax.while_loop(cond, body, (0, 1, 0, a, a)), integers(5))
    # begins alike and goes further, or the other way
    same(lambda a: lax.fori_loop(0, 21, lambda i, s: (s[0] + 1, s[1] + 2, s[2] - 2), (a, a, a)),
         integers(5))
    same(lambda a, b: lax.fori_loop(0, 10, lambda i, s: (s[1] + 1, s[0] + 1, s[2] + 1), (a, b, a)),
         integers(5), integers(5))


@pytest.mark.parametrize("n", [0, 1, 20])
def test_turns_that_are_known_only_when_the_program_runs(n):
    same(lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 3 + i, x), np.int32(n), np.int32(7))
    same(lambda x: lax.while_loop(lambda s: (s[0] < 50) & (s[1] < 1000),
                                  lambda s: (s[0] + 1, s[1] * 3 + n), (0, x)), np.int32(7))


def test_steps_of_counters_that_are_not_one():
    same(lambda x: lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 3, s[1] * 3 + s[0]),
                                  (0, x)), np.int32(7))
    same(lambda x: lax.while_loop(lambda s: s[0] > -50, lambda s: (s[0] - 1, s[1] * 3 + s[0]),
                                  (0, x)), np.int32(7))


def test_gradients_of_scans():
    def loss(c, x):
        c, y = lax.scan(lambda c, x: (c * np.float32(0.5) + x, c * x), c, x)
        return c + y.sum()

    same(jax.grad(loss, (0, 1)), np.float32(1), integers(16).astype(np.float32))


def test_loops_under_vmap():
    same(jax.vmap(lambda c, x: lax.scan(add, c, x)), integers(7), integers(7, 21))
    same(jax.vmap(lambda x: lax.fori_loop(0, 13, lambda i, x: x * 3 + i, x)), integers(7))


@pytest.mark.parametrize("n", [13, 20])
def test_what_is_left_unwritten_is_not_moved(n):
    """What begins empty stays where it is as more rows are put there, whatever joins or pads the
    whole: the checking model sees whether anything is read that nobody wrote."""
    def whole(x):
        return lax.scan(lambda c, _: (c * 3 + 1, c), x, None, length=n)[1]

    for shape in ((), (5,), (3, 5)):
        x = integers(*shape)
        same(lambda x: jnp.stack([whole(x)] * 2), x)
        same(lambda x: jnp.pad(whole(x), 1), x)
        same(lambda x: jnp.concatenate([whole(x), whole(x + 1)]), x)
        same(lambda x: jnp.broadcast_to(whole(x), (3, n, *shape)), x)
        same(jax.vmap(whole), np.stack([x] * 3))


@pytest.mark.parametrize("n", [8, 20, 21])
def test_arrays_stay_in_their_place(n):
    """No turn, and none that goes before the loop, takes memory besides the result."""
    x = jax.ShapeDtypeStruct((1 << 16,), np.float32)
    f = jax.jit(lambda x: lax.fori_loop(0, n, lambda i, x: x * 3 + 1, x))
    assert f.lower(x).compile().memory_analysis().temp_size_in_bytes <= 256
    g = jax.jit(lambda x: lax.scan(add, np.float32(1), x))
    assert g.lower(x).compile().memory_analysis().temp_size_in_bytes <= 1024


@pytest.mark.parametrize("n", [3, 21])
def test_what_asks_whether_to_go_on_is_seen_each_time(n):
    seen = []

    def go_on(s):
        jax.debug.callback(lambda i: seen.append(int(i)), s[0])
        return s[0] < n

    f = jax.jit(lambda x: lax.while_loop(go_on, lambda s: (s[0] + 1, s[1] * 3), (0, x))[1])
    assert f(np.int32(1)) == np.int64(3**n).astype(np.int32)
    jax.effects_barrier()
    assert sorted(seen) == list(range(n + 1))
