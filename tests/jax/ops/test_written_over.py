# SPDX-License-Identifier: Apache-2.0
"""What is looked up and then worked on element for element is put where the result goes and written
over: without memory of its own, and with the right numbers where that can't be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

CPU = jax.devices("cpu")[0]
ROWS = np.random.default_rng(0).integers(-40, 40, (300, 256)).astype(np.float32)
INDEX = np.random.default_rng(1).integers(-320, 320, (256,)).astype(np.int32)


def agree(f, *args, **how):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f, **how)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def temporaries(f, *args, **how):
    return jax.jit(f, **how).lower(*args).compile().memory_analysis().temp_size_in_bytes


IN_PLACE = {
    "filled outside": lambda x, i: jnp.take(x, i, 0),
    "scaled": lambda x, i: x[i] * 2.5,
    "squared": lambda x, i: x[i] * x[i] + 1,
    "with more": lambda x, i: x[i] * 22 + x[:256] + jnp.arange(256.0),
    "in another shape": lambda x, i: (x[i] * 2).reshape(16, 16, 256),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_it_is_made_where_the_result_goes(name):
    f = IN_PLACE[name]
    agree(f, ROWS, INDEX)
    assert temporaries(f, ROWS, INDEX) < 256 * 256 * 4 / 2


ELSEWHERE = {
    "read backwards": lambda x, i: x[i] + x[i][::-1],
    "read turned": lambda x, i: x[i] - x[i].T,
    "rows of it": lambda x, i: x[i] * 2 + x[i][:1],
    "its sums": lambda x, i: x[i] - x[i].sum(1, keepdims=True),
    "returned, too": lambda x, i: (x[i] * 2, x[i]),
    "looked at again": lambda x, i: (x[i] * 2, x[i].sum(0), jnp.sort(x[i], 0)),
    "of another width": lambda x, i: (x[i] * 2).astype(jnp.bfloat16).astype(jnp.float32),
    "two of them": lambda x, i: x[i] * 2 - jnp.take(x, i[::-1], 0, mode="clip"),
    "joined": lambda x, i: jnp.concatenate([x[:100], x[150:306]]) * 2 + i,
    "padded": lambda x, i: jnp.pad(x[:200], ((3, 53), (0, 0)), constant_values=2) * 3 - i,
    "in a loop": lambda x, i: jax.lax.fori_loop(0, 3, lambda k, y: y[i] * 2 + k, x[:256]),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_read_otherwise_is_not_written_over(name):
    agree(ELSEWHERE[name], ROWS, INDEX)


@pytest.mark.parametrize("used", [False, True])
def test_a_given_away_argument_that_the_result_takes_the_place_of(used):
    def f(old, x, i):
        return x[i] * 2 + (old if used else 0)

    for _ in range(2):
        old = jax.device_put(ROWS[:256] + 1)
        agree(lambda old, x, i: x[i] * 2 + (old if used else 0), ROWS[:256] + 1, ROWS, INDEX)
        true = f(ROWS[:256] + 1, ROWS, np.clip(np.where(INDEX < 0, INDEX + 300, INDEX), 0, 299))
        here = jax.jit(f, donate_argnums=0, keep_unused=True)(old, ROWS, INDEX)
        np.testing.assert_array_equal(np.asarray(here), true)


def test_a_given_away_table_is_read_before_it_is_written():
    rows = ROWS[:256]
    where = np.where(INDEX % 512 < 256, INDEX % 512, 0).astype(np.int32)
    f = jax.jit(lambda x, i: x[i] * 2 + 1, donate_argnums=0)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(jax.device_put(rows), where)),
                                      rows[where] * 2 + 1)


def bits(x, dtype=np.int32):
    return jax.lax.bitcast_convert_type(x, dtype)


OTHER_TYPES = {
    "next number": lambda x: jnp.nextafter(x, 1.0),
    "its bits": lambda x: bits(x * 2),
    "of its bits": lambda x: bits(bits(x) & ~0xffff, np.float32),
    "in another shape": lambda x: bits(bits(x).reshape(150, 512) ^ 3, np.float32),
    "unsigned": lambda x: bits((bits(x) + 1).astype(np.uint32).reshape(-1), np.float32),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_bits_read_as_another_type_are_made_where_the_result_goes(name):
    f = OTHER_TYPES[name]
    agree(f, ROWS + 0.5)
    assert temporaries(f, ROWS) < ROWS.nbytes / 2


READ_TWICE = {
    "both": lambda x: (bits(x * 2), x * 2),
    "twice": lambda x: (bits(x * 2),) * 2,
    "looked at again": lambda x: (bits(x * 2), (x * 2).sum(0), jnp.sort(x * 2, 0)),
    "halves": lambda x: bits(x * 2, np.int16),
    "joined of halves": lambda x: bits(bits(x * 2, np.int16) + np.int16(1), np.int32),
    "turned": lambda x: bits(x * 2).T,
    "sums of it": lambda x: bits(jnp.cumsum(x, 0)) + bits(x * 2),
}


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", READ_TWICE | OTHER_TYPES)
def test_bits_that_others_read_are_right(name, given):
    f = (READ_TWICE | OTHER_TYPES)[name]
    true = jax.jit(f)(jax.device_put(ROWS + 0.5, CPU))
    x = jax.device_put(ROWS + 0.5)
    here = jax.jit(f, donate_argnums=(0,) if given else ())(x)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
