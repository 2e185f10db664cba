# SPDX-License-Identifier: Apache-2.0
"""Quotients and remainders of whole numbers by numbers that a program names, against the CPU
backend: rounded down, as Python does, and to 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def numbers(dtype):
    info = np.iinfo(dtype)
    some = np.arange(-130, 131) if info.min else np.arange(261)
    ends = np.concatenate([np.arange(info.min, info.min + 20, dtype=dtype),
                           np.arange(info.max - 20, info.max, dtype=dtype), [info.max]])
    return np.concatenate([some.astype(dtype), ends.astype(dtype)])


def agree(f, x):
    want = jax.jit(f)(jax.device_put(x, CPU))
    got = jax.jit(f)(jax.device_put(x))
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=str(k))


def all_ways(x, by):
    y = jnp.asarray(by, x.dtype)
    return (x // y, x % y, lax.div(x, y), lax.rem(x, y), *jnp.divmod(x, y), x % y == 0,
            jnp.where(x % 2 == 0, x // 2, x * 3 + 1))


@pytest.mark.parametrize("by", [1, 2, 3, 4, 7, 64, "largest", -1, -2, -3, -64, "least", 0])
@pytest.mark.parametrize("dtype", TYPES)
def test_by_a_number_of_the_program(dtype, by):
    info = np.iinfo(dtype)
    by = {"largest": info.max // 2 + 1, "least": info.min}.get(by, by)
    if by < info.min:
        pytest.skip("no such number")
    agree(lambda x: all_ways(x, by), numbers(dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_scalars_in_loops(dtype):
    def f(x):
        def turn(i, s):
            i = i.astype(dtype)
            return s + (i - 7) // 2 + (i - 7) % 8 + (i - 7) % 5

        return lax.fori_loop(0, 20, turn, x[0]), lax.fori_loop(0, 20, turn, x)

    agree(f, numbers(dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_what_is_like_them_and_is_not(dtype):
    def f(x):
        two, q, r = (jnp.asarray(k, dtype) for k in (2, 4, 8))
        quotient, rest = lax.div(x, q), lax.rem(x, q)
        zero = jnp.zeros_like(x)
        return (lax.select((rest < 0) & (rest != 0), rest + r, rest),
                lax.select((rest < 0) & (lax.rem(x, two) != 0), rest + q, rest),
                lax.select((rest <= 0) & (rest != 0), rest + q, rest),
                lax.select((jnp.sign(x) != 1) & (lax.rem(x, r) != 0), quotient - 1, quotient),
                lax.select((jnp.sign(x) != 1) & (rest != 0), quotient - 2, quotient),
                lax.select((jnp.sign(x) != 0) & (rest != 0), quotient - 1, quotient),
                lax.select((jnp.sign(x + 1) != 1) & (rest != 0), quotient - 1, quotient),
                lax.select((jnp.sign(x) != 1) & (rest != 0), quotient - 1, zero))

    agree(f, numbers(dtype))


def test_known_truths():
    def f(x):
        p, yes, no = x > 3, jnp.asarray(True), jnp.asarray(False)
        return (p == yes, p == no, p != yes, p != no, p & (yes == no), jnp.sign(jnp.int8(-3)) + x,
                jnp.where(jnp.asarray(3, "uint8") < jnp.asarray(200, "uint8"), x, 0),
                jnp.where(jnp.asarray(-3) < jnp.asarray(2), x, 0))

    agree(f, numbers("int8"))
