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
