# SPDX-License-Identifier: Apache-2.0
"""Padded arrays that are added up, as gradients of what was taken apart by indices are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
NUMBERS = np.array([-0., 0., 1., np.nan, -np.inf], np.float32)
WHOLE = np.arange(-2, 3, dtype=np.int32)


def pad(x, low, high, by=0, dim=0):
    edges = [(low, high, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
    return lax.pad(x, jnp.asarray(by, x.dtype), edges)


def expect_the_same_bits(f, *args):
    here = jax.device_get(jax.jit(f)(*args))
    with jax.default_device(CPU):
        there = jax.device_get(jax.jit(f)(*args))
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a)[a == 0], np.signbit(b)[b == 0])


# Sums with zeros either way, what else has an operand that changes nothing or something, pieces at
# both ends and with gaps, cut pieces, and pads that take away.
SUMS = {
    "one after the other": lambda x: pad(x, 0, 5) + pad(x, 5, 0),
    "the other way round": lambda x: pad(x, 5, 0) + pad(x, 0, 5),
    "negative zeros": lambda x: pad(x, 0, 5, -0.) + pad(x, 5, 0, -0.),
    "with gaps": lambda x: pad(x, 1, 8) + pad(x, 8, 1),
    "what gaps are padded with": lambda x: pad(x, 1, 9, 3) - pad(x, 8, 2, 5),
    "three": lambda x: (pad(x, 12, 0) + pad(x, 5, 7)) + pad(x, 0, 12),
    "three from the middle": lambda x: pad(x, 5, 7) + (pad(x, 0, 12) + pad(x, 12, 0)),
    "a product": lambda x: pad(x, 0, 6, 1) * pad(x, 6, 0, 2),
    "the larger": lambda x: jnp.maximum(pad(x, 0, 6, -1), pad(x, 6, 0, 3)),
    "the same places": lambda x: pad(x, 2, 3) + pad(x * 2, 2, 3),
    "places in common": lambda x: pad(x, 0, 3) + pad(x, 3, 0),
    "twice the same": lambda x: (lambda y: y + y)(pad(x, 0, 5)),
    "seen by others": lambda x: (lambda y: (y + pad(x, 5, 0), y * 2))(pad(x, 0, 5)),
    "compared": lambda x: pad(x, 0, 5) < pad(x, 5, 0),
    "shorter at its beginning": lambda x: pad(x, -1, 6) + pad(x, 5, 0),
    "elements between": lambda x: lax.pad(x, jnp.zeros((), x.dtype), [(0, 1, 1)]) + pad(x, 5, 0),
    "along two dims": lambda x: pad(pad(x[None], 0, 1), 0, 5, 0, 1) + pad(
        pad(x[None], 1, 0), 5, 0, 0, 1),
    "along another dim": lambda x: pad(x[None], 0, 2, 0, 1) + pad(pad(x[None], 1, 0, 0, 1), 1, 0,
                                                                  0, 1),
    "beside a concatenation": lambda x: jnp.concatenate([x, x * 3, x]) + pad(x, 5, 5),
    "across a concatenation": lambda x: jnp.concatenate([x, x * 3, x]) + pad(x, 4, 6),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("x", [NUMBERS, WHOLE], ids=["f32", "s32"])
def test_sums_of_padded_arrays_have_the_same_bits(name, x):
    expect_the_same_bits(SUMS[name], x)


# Results of comparisons of truths are truths, too, but which one it is must not be lost.
@pytest.mark.parametrize("compare", [lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge])
def test_truths_that_are_padded_are_compared_as_asked(compare):
    x = np.array([True, False, True, True])
    expect_the_same_bits(lambda x, y: (compare(pad(x, 0, 4, True), pad(y, 4, 0)),
                                       compare(pad(x, 1, 2, by=y[0]), pad(~y, 1, 2))), x, ~x)


# 64 pieces are the most that are put together.
@pytest.mark.parametrize("n", [2, 3, 5, 31, 32, 33, 63, 64, 65, 70])
def test_the_gradient_of_rows_taken_one_by_one(n):
    x = np.random.default_rng(n).integers(-9, 9, (n, 7)).astype(np.float32)
    expect_the_same_bits(jax.grad(lambda x: sum((x[k] * x[k] * k).sum() for k in range(n))), x)


def test_the_gradient_of_queries_keys_and_values():
    x = np.random.default_rng(1).integers(-3, 3, (3, 4, 16, 8)).astype(np.float32)

    def f(x):
        q, k, v = x[0], x[1], x[2]
        return ((q @ k.transpose(0, 2, 1)) @ v).sum()

    expect_the_same_bits(jax.grad(f), x)


def temporaries(f, *args):
    return jax.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "uint8", "complex64"))
@pytest.mark.parametrize("n", (1, 63, 64, 128, 200))
def test_blocks_along_a_diagonal(n, dtype):
    """Each block is padded to the whole's width, where the whole lies: the large ones take no
    memory of their own."""
    def f(a, b, c):
        return jax.scipy.linalg.block_diag(a, b, c)

    args = [jnp.asarray(np.random.default_rng(k).integers(1, 99, (n, n + k))).astype(dtype)
            for k in range(3)]
    expect_the_same_bits(lambda *a: f(*a).real.astype("float32"), *args)
    if n == 200:
        assert temporaries(f, *args) == 0
