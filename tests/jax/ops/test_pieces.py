# SPDX-License-Identifier: Apache-2.0
"""Elementwise work on arrays put together of pieces: repeated elements, halves that change places,
arrays that take turns. The bits are those of the CPU's, of NaN and signed zeros too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_interleaved import TYPES, agree, numbers

MORE = [*TYPES, "int16"]


def minus(x):
    return ~x if x.dtype == jnp.bool_ else -x


@pytest.mark.parametrize("dtype", MORE)
@pytest.mark.parametrize("shape,axis,times", [
    ((40, 33), 1, 2), ((40, 33), 1, 3), ((7, 5, 16), 1, 4), ((300,), 0, 31), ((300,), 0, 32),
    ((5, 128), 0, 7)])
def test_repeated_elements(dtype, shape, axis, times):
    x = numbers(shape, dtype, 1)
    y = numbers(tuple(n * (times if d == axis else 1) for d, n in enumerate(shape)), dtype, 2)
    agree(lambda x: minus(jnp.repeat(x, times, axis)), x)
    agree(lambda x, y: jnp.where(y == y, minus(jnp.repeat(x, times, axis)), y), x, y)
    agree(lambda x: jnp.repeat(x, times, axis), x)


@pytest.mark.parametrize("dtype", MORE)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_halves_that_change_places(dtype, first, second):
    def turned(x, axis):
        a, b = jnp.split(x, 2, axis)
        return jnp.concatenate([minus(b) if first else b, minus(a) if second else a], axis)

    for shape, axis in [((6, 30, 64), 2), ((6, 30, 64), 1), ((6, 30, 64), 0), ((1026,), 0),
                        ((8194,), 0)]:
        x, y = numbers(shape, dtype, 3), numbers(shape, dtype, 4)
        agree(lambda x, y: jnp.where(x == x, turned(x, axis), y), x, y)
        agree(lambda x, y: jnp.where(y == y, y, minus(turned(x, axis))), x, y)


@pytest.mark.parametrize("dtype", MORE)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_arrays_that_take_turns(dtype, n):
    for shape in [(33, 40), (1300,), (2, 3, 100)]:
        a = [numbers(shape, dtype, k) for k in range(n)]
        agree(lambda *a: jnp.stack(a, -1), *a)
        agree(lambda *a: jnp.stack([minus(v) if k % 2 else v for k, v in enumerate(a)], -1), *a)
        agree(lambda x: jnp.stack([x] * (n - 1) + [minus(x)], -1), a[0])
        agree(lambda *a: (jnp.stack([a[0], *a[1:]], -1), minus(a[0])), *a)


@pytest.mark.parametrize("dtype", MORE)
def test_short_rows_in_another_order(dtype):
    for shape in [(50, 40, 3), (13, 17, 4), (300, 5), (64, 2), (40, 3, 3)]:
        x = numbers(shape, dtype, 5)
        agree(lambda x: (x[..., ::-1], x[..., ::2], jnp.swapaxes(x, -1, -2)), x)
        agree(lambda x: minus(x[..., ::-1]), x)
        agree(lambda x: jnp.where(x == x, x[..., :1], x), x)
        here = np.asarray(jax.jit(lambda x: x[::-1, ..., ::-1])(x))
        assert here.tobytes() == x[::-1, ..., ::-1].tobytes()
