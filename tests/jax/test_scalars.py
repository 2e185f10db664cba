# SPDX-License-Identifier: Apache-2.0
"""Loops over scalars, and integers one at a time, which the scalar unit does; against numpy, whose
corners are given here where they differ from XLA's."""

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


def edges(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    found = {low, low + 1, 0, 1, 2, 7, high // 2, high - 1, high} | ({-1, -3} if low else set())
    return [np.array(x, dtype) for x in sorted(found)]


def wrap(x, dtype):
    bits = np.iinfo(dtype).bits
    x = int(x) & ((1 << bits) - 1)
    return np.array(x - (1 << bits) if np.iinfo(dtype).min and x >> (bits - 1) else x, dtype)


def divide(x, y):
    return -1 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


PAIRS = {
    "add": (lax.add, operator.add), "sub": (lax.sub, operator.sub),
    "mul": (lax.mul, operator.mul), "and": (lax.bitwise_and, operator.and_),
    "or": (lax.bitwise_or, operator.or_), "xor": (lax.bitwise_xor, operator.xor),
    "min": (lax.min, min), "max": (lax.max, max), "div": (lax.div, divide),
    "rem": (lax.rem, lambda x, y: x if y == 0 else x - divide(x, y) * y),
    # What is above the low bits must not be seen.
    "compare a sum": (lambda x, y: (x + y < y).astype(x.dtype), None),
    "choose a product": (lambda x, y: lax.select(x * y > x, x - y, -y), None),
    "halve a difference": (lambda x, y: lax.div(x - y, jnp.array(2, x.dtype)), None),
    "not": (lambda x, y: ~x, lambda x, y: ~x),
    "with a number": (lambda x, y: (x * 3 + 5) ^ 77, lambda x, y: (x * 3 + 5) ^ 77),
}


def plainly(name, x, y, dtype):
    f = functools.partial(wrap, dtype=dtype)
    x, y = int(x), int(y)
    if name == "compare a sum":
        return f(int(f(x + y)) < y)
    if name == "choose a product":
        return f(x - y) if int(f(x * y)) > x else f(-y)
    if name == "halve a difference":
        return f(divide(int(f(x - y)), 2))
    return f(PAIRS[name][1](x, y))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_integers_one_at_a_time(name, dtype):
    f = jax.jit(PAIRS[name][0])
    for x in edges(dtype):
        for y in edges(dtype):
            got = np.asarray(f(x, y))
            assert got.dtype == dtype
            assert got == plainly(name, x, y, dtype), f"{name} of {x} and {y}"


COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
               "gt": operator.gt, "ge": operator.ge}


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_comparisons_one_at_a_time(dtype):
    for name, plain in COMPARISONS.items():
        f, g = jax.jit(getattr(lax, name)), jax.jit(lambda x, name=name: getattr(lax, name)(
            x, jnp.array(7, dtype)))
        for x in edges(dtype):
            assert bool(g(x)) == plain(int(x), 7)
            for y in edges(dtype):
                assert bool(f(x, y)) == plain(int(x), int(y)), f"{x} {name} {y}"


@pytest.mark.parametrize("to", [*TYPES, np.bool_], ids=lambda t: t.__name__)
@pytest.mark.parametrize("dtype", [*TYPES, np.bool_], ids=lambda t: t.__name__)
def test_conversions_of_sums(dtype, to):
    f = jax.jit(lambda x: lax.convert_element_type(x if dtype == np.bool_ else x + x, to))
    for x in [np.array(False), np.array(True)] if dtype == np.bool_ else edges(dtype):
        sum_ = int(x) if dtype == np.bool_ else int(wrap(2 * int(x), dtype))
        assert np.asarray(f(x)) == (sum_ != 0 if to == np.bool_ else wrap(sum_, to))


def test_predicates_one_at_a_time():
    f = jax.jit(lambda a, b: (a & b, a | ~b, a ^ b, lax.select(a, ~a, b)))
    for a in (False, True):
        for b in (False, True):
            want = (a & b, a | (not b), a ^ b, (not a) if a else b)
            assert tuple(map(bool, f(a, b))) == want


def test_loops_over_scalars(device, cpu):
    def collatz(n):
        return lax.while_loop(lambda c: c[0] != 1, lambda c: (
            lax.select(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, jnp.int32(0)))

    def newton(x):
        return lax.fori_loop(0, 30, lambda i, y: 0.5 * (y + x / y), x)

    def counts(n):
        return lax.fori_loop(0, n, lambda i, c: (c[0] + i, c[1] ^ i, jnp.maximum(c[2], i % 17)),
                             (jnp.int64(0), jnp.int64(0), jnp.int64(0)))

    def nested(n):
        return lax.fori_loop(0, n, lambda i, c: lax.fori_loop(0, i, lambda j, c: c + j, c), 0)

    for f, args in ((collatz, [np.int32(27), np.int32(1), np.int32(97)]),
                    (newton, [np.float32(2), np.float64(3)]),
                    (counts, [np.int64(0), np.int64(1000)]), (nested, [np.int32(0), np.int32(30)])):
        for x in args:
            got, want = (jax.tree.leaves(jax.jit(f)(jax.device_put(x, d))) for d in (device, cpu))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)


ODD = np.array([0.0, -0.0, 1.5, -2.25, 3e38, -3e38, 2e-38, np.inf, -np.inf, np.nan], np.float32)
FLOATS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "min": lax.min,
    "max": lax.max, "pow": lambda x, y: lax.pow(lax.abs(x), y), "rem": lax.rem,
    "multiply and add": lambda x, y: x * y + x, "from a sum": lambda x, y: y - (x + y),
    "greatest difference": lambda x, y: lax.max(x - y, x), "compare": lax.lt,
}


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_alone_is_as_it_is_among_others(name):
    f = jax.jit(FLOATS[name])
    x, y = (a.ravel() for a in np.meshgrid(ODD, ODD))
    many = np.asarray(f(x, y))
    for i in range(len(x)):
        one = np.asarray(f(x[i], y[i]))
        assert one.tobytes() == many[i].tobytes(), f"{name} of {x[i]} and {y[i]}"


def test_conditions_of_loops_may_come_by_several_paths():
    def unfinished(c):
        i, x = c
        return lax.cond(i % 3 == 0, lambda: x < 50, lambda: lax.cond(i > 4, lambda: x < 40,
                                                                     lambda: x * i < 90))

    def f(x):
        return lax.while_loop(unfinished, lambda c: (c[0] + 1, c[1] + c[0] * 2), (0, x))

    def plainly(x):
        i = 0
        while x < 50 if i % 3 == 0 else x < 40 if i > 4 else x * i < 90:
            i, x = i + 1, x + i * 2
        return i, x

    for x in range(-60, 60):
        assert tuple(int(v) for v in jax.jit(f)(x)) == plainly(x)
