# SPDX-License-Identifier: Apache-2.0
"""Bits of one number as another's between elementwise work, and random bits, whose elements are
numbered in 64 bits: against XLA's CPU backend."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
SIZES = [["float8_e4m3fn", "float8_e5m2", "int8", "uint8"],
         ["float16", "bfloat16", "int16", "uint16"], ["float32", "int32", "uint32"],
         ["float64", "int64", "uint64"]]
PAIRS = [p for same in SIZES for p in itertools.permutations(same, 2)]
WORK = {"negate": lambda x: -x, "choose": lambda x: jnp.where(x == x, x, -x),
        "abs": lambda x: jnp.abs(x) if x.dtype.kind != "u" else x + x.dtype.type(1),
        "add": lambda x: jnp.where(x == x, x + x, x)}


def patterns(dtype):
    """All bit patterns of up to 16 bits, and of wider numbers many, NaNs among them."""
    size = jnp.dtype(dtype).itemsize
    if size <= 2:
        return np.arange(1 << 8 * size, dtype=f"uint{8 * size}").view(jnp.dtype(dtype))
    bits = np.random.default_rng(0).integers(0, 256, 8 * 4096, np.uint8).view(f"uint{8 * size}")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1.0], f"float{8 * size}")
    return np.concatenate([bits, special.view(bits.dtype), [1, 1 << 8 * size - 1]]
                          ).astype(bits.dtype).view(jnp.dtype(dtype))


def same_bits(f, *args):
    here, true = (np.asarray(jax.jit(f)(*jax.device_put(args, d)))
                  for d in (jax.devices()[0], CPU))
    assert here.dtype == true.dtype
    kind = f"uint{8 * here.dtype.itemsize}"
    np.testing.assert_array_equal(here.view(kind), true.view(kind))


def same_everywhere(f, *args):
    here = jax.jit(f)(*args)
    with jax.default_device(CPU):
        true = jax.jit(f)(*args)
    for h, t in zip(here, true):
        np.testing.assert_array_equal(np.asarray(h), np.asarray(t))


@pytest.mark.parametrize("of,to", PAIRS)
def test_between_other_work(of, to):
    with jax.enable_x64(True):
        x = patterns(of)
        is_number = np.asarray(jnp.asarray(x) == jnp.asarray(x))
        for before, after in zip(WORK, list(WORK)[1:] + ["negate"]):
            def f(x, a=WORK[before], b=WORK[after]):
                y = lax.bitcast_convert_type(a(x), to)
                # what comes of a NaN is a NaN, of which only that is said
                y = jnp.where(y == y, y, jnp.zeros_like(y))
                z = b(y)
                return jnp.where(z == z, z, jnp.zeros_like(z))
            same_bits(f, x[is_number])


@pytest.mark.parametrize("of,to", PAIRS)
def test_bits_of_nans_stay(of, to):
    with jax.enable_x64(True):
        x = patterns(of)
        chosen = np.arange(len(x)) % 3 > 0
        # a choice moves bits as they are (but for the CPU backend's of 8 bits)
        here = np.asarray(jax.jit(lambda x, p: lax.bitcast_convert_type(
            lax.bitcast_convert_type(jnp.where(p, x, x[::-1]), to), of))(x, chosen))
        bits = x.view(f"uint{8 * x.dtype.itemsize}")
        np.testing.assert_array_equal(here.view(bits.dtype), np.where(chosen, bits, bits[::-1]))


def test_each_element_s_bits_may_be_looked_at_twice():
    x = np.linspace(-3, 3, 5000, dtype=np.float32)

    def f(x):
        y = x * 3
        bits = lax.bitcast_convert_type(y, jnp.uint32)
        return y, bits, lax.bitcast_convert_type(bits ^ np.uint32(1 << 31), jnp.float32) + 1, \
            jnp.sum(bits >> 23), lax.bitcast_convert_type(bits[::-1] + 1, jnp.int32)
    same_everywhere(f, x)


def test_rows_through_bits():
    x = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float32)

    def f(x):
        scale = jnp.max(jnp.abs(x), 1, keepdims=True)
        power = lax.bitcast_convert_type(lax.bitcast_convert_type(scale, jnp.int32) & 0x7f800000,
                                         jnp.float32)
        return x / power
    same_bits(f, x)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("axis", [0, 1])
def test_bits_of_what_comes_later_beside_other_work(order, axis):
    x = np.random.default_rng(0).standard_normal((24, 16)).astype(np.float32)
    at = np.arange(24)[::-1] % 5

    def f(x, at):
        parts = (lax.bitcast_convert_type(x + x, jnp.int32) * 3,
                 lax.bitcast_convert_type(x[at], jnp.int32),
                 lax.bitcast_convert_type(lax.sort(x, dimension=1), jnp.int32))
        return jnp.concatenate([parts[k] for k in order], axis=axis)
    same_bits(f, x, at)


def test_several_numbers_bits_are_not_joined_in_a_reduction():
    def f(x):
        def add(a, b):
            return a + b + lax.bitcast_convert_type(lax.full((4,), 1, jnp.uint8), jnp.uint32)
        return lax.reduce(x, np.uint32(0), add, (0,))
    with pytest.raises(jax.errors.JaxRuntimeError, match="does not run in the body of reduce"):
        jax.jit(f)(np.arange(6, dtype=np.uint32).reshape(2, 3))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1000,), (5, 6, 7), (3, 1, 129), (2, 3, 4, 5, 6),
                                   (257, 1025), (1 << 20,)])
@pytest.mark.parametrize("x64", [False, True])
def test_random_bits(shape, x64):
    with jax.enable_x64(x64):
        key = np.array([7, 1 << 31], np.uint32)
        for dtype in ("uint8", "uint16", "uint32") + (("uint64",) if x64 else ()):
            same_bits(lambda k, t=dtype: jax.random.bits(k, shape, t), key)
        same_bits(lambda k: jax.random.uniform(k, shape), key)
        same_bits(lambda k: jax.random.bernoulli(k, 0.3, shape), key)
        same_bits(lambda k: jax.random.split(k, 9), key)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_upper_bits_of_counts(dtype):
    with jax.enable_x64(True):
        bits = jnp.dtype(dtype).itemsize * 8
        for shape in [(1,), (8,), (9,), (256,), (257,), (40000,), (16, 17)]:
            def f():
                n = sum(lax.broadcasted_iota(dtype, shape, d) * (3 if d else 1)
                        for d in range(len(shape)))
                wrapped = n * (1 << bits - 9)
                return [lax.shift_right_logical(v, jnp.asarray(by, dtype))
                        for v in (n, n - 1, n + n, wrapped) for by in (0, 1, 3, 4, 8, 9, 15)] + \
                    [v.astype(t) for v in (n, n - 5, wrapped)
                     for t in ("int8", "uint8", "int16", "uint32", "bool", "float32")]
            same_everywhere(f)


@pytest.mark.parametrize("of,to", [("float32", "uint8"), ("uint8", "float32"), ("int16", "int8"),
                                   ("float32", "float16"), ("uint32", "uint16")])
def test_of_numbers_of_other_sizes_between_other_work(of, to):
    x = np.random.default_rng(0).integers(1, 100, (30, 4)).astype(of)
    here = np.asarray(jax.jit(lambda x: lax.bitcast_convert_type(x + x, to) * 1 == 0)(x))
    shape = here.shape
    want = (x + x).view(to).reshape(shape) == 0
    np.testing.assert_array_equal(here, want)
