# SPDX-License-Identifier: Apache-2.0
"""Arrays of about as many dims as an instruction runs along, and of more: as JAX's CPU backend.
Arithmetic is exact."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def agree(device, cpu, f, *args):
    got, want = (jax.device_get(jax.jit(f)(*jax.device_put(args, d))) for d in (device, cpu))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def whole(*shape):
    return (np.arange(np.prod(shape)) % 11 - 5).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("dims", [
    "abcdefgk,abcdefgk->abcdefg", "abcdefk,abcdefkn->abcdefn", "abcdefgk,abcdefgkn->abcdefgn",
    "abcdefgk,k->abcdefg", "abcdefghk,k->abcdefgh", "k,abcdefghk->abcdefgh",
    "kabcdefgh,k->abcdefgh", "abcdk,efghk->abcdefgh"])
def test_products_and_what_follows_them(device, cpu, dims):
    a, b = ([2 if d != "k" else 3 for d in side] for side in dims.split("->")[0].split(","))
    for one in ("", "a", "h"):
        shapes = [[1 if d in one and d else n for d, n in zip(side, shape)]
                  for side, shape in zip(dims.split("->")[0].split(","), (a, b))]
        agree(device, cpu, lambda x, y: jnp.maximum(jnp.einsum(dims, x, y) + 1, 0),
              *(whole(*s) for s in shapes))


X = whole(*(2, 3, 1, 2, 2, 1, 3, 2, 2, 2))


@pytest.mark.parametrize("f", [
    lambda x: jnp.maximum(x * 2 + 1, x[::-1]),
    lambda x: jnp.where(x > 0, x, 3).astype(np.int8),
    lambda x: jnp.clip(x, -1, jnp.float32(2)) * lax.broadcasted_iota(np.float32, x.shape, 6),
    lambda x: x * x.sum(3, keepdims=True),
    lambda x: x.sum((1, 4, 7)), lambda x: x.max((0, 2, 4, 6, 8)), lambda x: x.sum(),
    lambda x: x.min((1, 3, 5, 7, 9)), lambda x: (x.argmax(6), x.argmin(0)),
    lambda x: (x > 1).any((0, 9)), lambda x: lax.broadcasted_iota(np.int32, x.shape, 1),
    lambda x: (x[..., :0] + 1, x[..., :0].sum((0, 9))),
    lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2 - i, x),
    lambda x: lax.complex(x, x + 1) == lax.complex(x, x[::-1] + 1)])
def test_elementwise_work_and_reductions(device, cpu, f):
    agree(device, cpu, f, X)
    agree(device, cpu, f, X[:, :, None, :, None])


def window(x, size, stride, pad=None):
    full = [(0, 0)] * x.ndim if pad is None else pad
    return lax.reduce_window(x, -np.float32(np.inf), lax.max, size, stride, full)


@pytest.mark.parametrize("f", [
    lambda x: lax.sort(x, dimension=6), lambda x: lax.sort(x, dimension=0),
    lambda x: lax.sort(x, dimension=9), lambda x: lax.sort(x, dimension=2),
    lambda x: lax.sort((x, x[::-1]), dimension=1, num_keys=2),
    lambda x: lax.sort([x + k for k in range(6)], dimension=6, num_keys=1)[1:],
    lambda x: lax.sort(x[..., :0], dimension=6), lambda x: x.argsort(6)])
def test_sorts(device, cpu, f):
    agree(device, cpu, f, X)


@pytest.mark.parametrize("f", [
    lambda x: window(x, [2 if d == 3 else 1 for d in range(10)], [1] * 10),
    lambda x: window(x, [2 if d in (1, 6) else 1 for d in range(10)], [1] * 10),
    lambda x: window(x, [2 if d == 1 else 1 for d in range(10)], [2 if d in (0, 6) else 1
                                                                  for d in range(10)]),
    lambda x: window(x, [2 if d == 9 else 1 for d in range(10)], [1] * 10,
                     [(1, 0) if d in (5, 9) else (0, 0) for d in range(10)]),
    lambda x: lax.cumsum(x, 6), lambda x: lax.cummax(x, 0, reverse=True)])
def test_windows(device, cpu, f):
    agree(device, cpu, f, X)


@pytest.mark.parametrize("d", [0, 4, 9])
def test_wide_windows(device, cpu, d):
    x = whole(*(30 if k == d else 2 for k in range(10)))
    for at in (d, d and d - 1):
        size = [21 if k == d else 2 if k == at else 1 for k in range(10)]
        agree(device, cpu, lambda x, size=size: window(x, size, [1] * 10), x)


@pytest.mark.parametrize("a, b, dims", [
    ((2, 1, 3, 1, 1, 2, 1, 1, 5), (1, 2, 1, 1, 5, 1, 1, 3, 1, 4), (((8,), (4,)), ((), ()))),
    ((1, 2, 1, 3, 1, 1, 1, 1, 5), (1, 5, 2, 1, 1, 1, 4), (((0, 8), (0, 1)), ((1,), (2,)))),
    ((1, 1, 1, 1, 1, 1, 1, 1, 1), (1,), (((4,), (0,)), ((), ()))),
    ((2, 1, 1, 1, 1), (3, 1, 1, 1, 1), (((), ()), ((), ()))),
    ((1, 2, 0, 1, 1, 1, 1, 1, 1), (0, 3), (((2,), (0,)), ((), ())))])
def test_products_of_which_some_dims_have_one_element(device, cpu, a, b, dims):
    agree(device, cpu, lambda x, y: lax.dot_general(x, y, dims), whole(*a), whole(*b))
