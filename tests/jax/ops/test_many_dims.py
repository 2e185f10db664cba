# SPDX-License-Identifier: Apache-2.0
"""Arrays of about as many dims as an instruction runs along, and of more: as JAX's CPU backend.
Arithmetic is exact."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest


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
