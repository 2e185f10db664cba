# SPDX-License-Identifier: Apache-2.0
"""Arrays whose elements take turns: stacked along the last dim, or padded between their elements
and put together, as associative scans do. The bits are those of the CPU's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
TYPES = ["bool", "int8", "bfloat16", "int32", "float32", "complex64"]


def numbers(shape, dtype, seed):
    """Signed zeros, infinities and NaN among them, where the type has these."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape)
    if dtype == "bool":
        return x > 0
    if np.dtype(dtype).kind in "iu":
        return x.astype(dtype)
    x = np.where(x == 0, -0.0, np.where(x == 3, np.inf, np.where(x == -3, np.nan, x / 7)))
    return np.asarray(jnp.asarray(x).astype(dtype))


def agree(f, *args):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == jnp.bfloat16:
            a, b = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_array_equal(a, b)
        for part in {"f": (lambda x: x,), "c": (np.real, np.imag)}.get(a.dtype.kind, ()):
            is_number = ~np.isnan(part(b))
            np.testing.assert_array_equal(np.signbit(part(a))[is_number],
                                          np.signbit(part(b))[is_number])


def pads(n, axis, rank, low):
    return [((low, int((n % 2 == 0) != low), 1) if d == axis else (0, 0, 0)) for d in range(rank)]


def put_together(op, shape, axis, first, by=(0, 0), swap=False):
    """The halves that fill `shape`, and what op makes of them; `by`: what they are padded with."""
    n = shape[axis]
    even = tuple((n + 1) // 2 if d == axis else s for d, s in enumerate(shape))
    odd = tuple(n // 2 if d == axis else s for d, s in enumerate(shape))

    def f(x, y):
        x, y = first(x), first(y)
        one = lax.pad(x, jnp.array(by[0], x.dtype), pads(n, axis, len(shape), 0))
        two = lax.pad(y, jnp.array(by[1], y.dtype), pads(n, axis, len(shape), 1))
        assert one.shape == two.shape == shape
        return op(two, one) if swap else op(one, two)

    return f, even, odd


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [2, 3, 64, 4097])
@pytest.mark.parametrize("axis", [0, 1])
def test_padded_halves_that_are_put_together(dtype, n, axis):
    shape = (n, 5) if axis == 0 else (5, n)
    op = lax.bitwise_or if dtype == "bool" else lax.add
    f, even, odd = put_together(op, shape, axis, lambda x: x)
    agree(f, numbers(even, dtype, 1), numbers(odd, dtype, 2))


@pytest.mark.parametrize("op", [lax.add, lax.max, lax.min, lax.mul, lax.sub],
                         ids=lambda op: op.__name__)
@pytest.mark.parametrize("by", [(0, 0), (1, 2), (-0.0, 3)])
@pytest.mark.parametrize("swap", [False, True])
def test_what_they_are_padded_with_counts(op, by, swap):
    f, even, odd = put_together(op, (7, 1000), 1, lambda x: x * 2, by, swap)
    agree(f, numbers(even, "float32", 3), numbers(odd, "float32", 4))


def test_places_that_both_or_none_fill_stay_as_they_are():
    x, y = numbers((6, 50), "float32", 5), numbers((6, 50), "float32", 6)
    zero = jnp.float32(1.5)

    def same(x, y):     # both at even places
        return (lax.pad(x, zero, [(0, 0, 0), (0, 1, 1)]) +
                lax.pad(y, zero, [(0, 0, 0), (0, 1, 1)]))

    def third(x, y):    # every third place is nobody's
        return (lax.pad(x, zero, [(0, 0, 0), (0, 2, 2)]) +
                lax.pad(y, zero, [(0, 0, 0), (1, 1, 2)]))

    def more(x, y):     # and one more behind
        return (lax.pad(x, zero, [(0, 0, 0), (0, 2, 1)]) +
                lax.pad(y, zero, [(0, 0, 0), (1, 1, 1)]))

    def both(x, y):     # along two dims
        return (lax.pad(x, zero, [(0, 1, 1), (0, 1, 1)]) +
                lax.pad(y, zero, [(1, 0, 1), (1, 0, 1)]))

    def cut(x, y):      # rows of another array, as many as there were
        return (lax.pad(x, zero, [(0, -5, 1), (0, 1, 1)]) +
                lax.pad(y, zero, [(0, -5, 1), (1, 0, 1)]))

    for f in (same, third, more, both, cut):
        agree(f, x, y)


def test_padded_halves_that_somebody_else_looks_at():
    f, even, odd = put_together(lambda a, b: (a + b, a * 2, b), (3, 400), 1, lambda x: x + 1)
    agree(f, numbers(even, "float32", 7), numbers(odd, "float32", 8))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 100, 1000])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scans_of_a_recurrence(n, axis):
    shape = [3, 4, 5]
    shape[axis] = n

    def f(a, b):
        return lax.associative_scan(lambda s, t: (s[0] * t[0], s[1] * t[0] + t[1]), (a, b),
                                    axis=axis)

    # whole numbers, so that it does not matter how products are rounded
    rng = np.random.default_rng(n)
    agree(f, rng.integers(-1, 2, shape).astype(np.float32),
          rng.integers(-8, 9, shape).astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("parts", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(1,), (17,), (3, 1023), (130, 33), (2, 8200)])
def test_stacks_along_the_last_dim(dtype, parts, shape):
    def work(xs):
        return [x ^ (k % 2 == 1) if dtype == "bool" else x + jnp.array(k + 1, x.dtype)
                for k, x in enumerate(xs)]

    xs = [numbers(shape, dtype, k) for k in range(parts)]
    agree(lambda *xs: jnp.stack(work(xs), -1), *xs)
    agree(lambda *xs: jnp.stack(work(xs)[::-1], -1).reshape(-1), *xs)
    agree(lambda *xs: jnp.stack([work(xs)[k] for k in np.roll(range(parts), 2)], -1), *xs)


def test_a_stack_of_which_a_part_is_one_number():
    x = numbers((9, 700), "float32", 9)
    agree(lambda x: jnp.stack([x * 2, jnp.full_like(x, 3)], -1), x)
    agree(lambda x: jnp.stack([x * 2, jnp.broadcast_to(x[:, :1] + 1, x.shape)], -1), x)
    for part in (np.float32(5), x[:, :1], x[:1]):
        agree(lambda x, y: jnp.stack([jnp.broadcast_to(y, x.shape) * 3, x * 2], -1), x, part)
        agree(lambda x, y: jnp.stack([x * 2, jnp.broadcast_to(y, x.shape) * 3], -1), x, part)


def test_rotated_pairs():
    x = np.random.default_rng(0).integers(-9, 9, (4, 33, 64)).astype(np.float32)
    s, c = (np.random.default_rng(k).integers(-3, 4, (33, 32)).astype(np.float32) for k in (1, 2))

    def f(x, s, c):
        one, two = x[..., ::2], x[..., 1::2]
        return jnp.stack([one * c - two * s, one * s + two * c], -1).reshape(x.shape)

    agree(f, x, s, c)
