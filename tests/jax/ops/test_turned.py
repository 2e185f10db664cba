# SPDX-License-Identifier: Apache-2.0
"""Elementwise work on transposed arrays that is transposed back, and what is spread out and folded
along short rows, against the CPU backend."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def agree(f, *args):
    want = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    got = jax.jit(f)(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6, 1e-6), got, want)


@pytest.mark.parametrize("there", list(itertools.permutations(range(3))))
def test_every_order_there_and_back(there):
    back = tuple(np.argsort(there))
    x, y = (RNG.normal(size=(3, 5, 7)).astype(np.float32) for _ in range(2))
    z = y.transpose(there)

    def f(x, y, z):
        a, b = x.transpose(there), y.transpose(there)
        rows = jnp.arange(a.shape[1], dtype=np.float32)[:, None]
        more = (jnp.tanh(a) - z) * rows + jax.lax.broadcasted_iota(np.float32, a.shape, 2)
        return (a + b).transpose(back), more.transpose(back), jnp.where(b > z, a, 1).transpose(back)

    agree(f, x, y, z)


def test_another_order_back():
    x = RNG.normal(size=(3, 5, 7)).astype(np.float32)
    agree(lambda x: (jnp.sin(x.transpose(2, 0, 1)) + 1).transpose(2, 0, 1), x)


def test_in_loops_and_with_other_users():
    x, y = (RNG.normal(size=(6, 6)).astype(np.float32) for _ in range(2))

    def f(x, y):
        z = jax.lax.fori_loop(0, 3, lambda i, z: (jnp.sin(z.T) + y.T * i).T, x)
        t = jnp.cos(z.T)
        return z, (t * t).T, t.sum(0)

    agree(f, x, y)


# Matrices whose elements lie side by side, one of each: both operands, the result, one of them; few
# and many, of which the small ones are read where they lie.
@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("form", [
    "ikc,jkc->ijc", "kic,kjc->cij", "cik,cjk->ijc", "ikc,cjk->ijc", "ikc,kj->jic",
    "bick,bjck->bijc", "ickd,jckd->ijc", "ikcd,jkcd->dijc", "icdk,jdk->idjc", "ikc,jkd->ijcd",
    "kcid,kcjd->cjid"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_products_of_matrices_that_lie_apart(dtype, form, n):
    size = {"b": 2, "c": n, "d": 3, "i": 31, "j": 18, "k": 17}
    a, b = ((RNG.normal(size=[size[d] for d in dims]) * 3).astype(dtype)
            for dims in form.split("->")[0].split(","))
    elem = np.int32 if dtype == np.int8 else dtype

    def f(x, y):
        y = y[::-1] if n == 3 else y
        z = jnp.einsum(form, x, y, preferred_element_type=elem)
        return z, z * 2 - 1

    b_there = b[::-1] if n == 3 else b
    want = np.einsum(form, a.astype(elem), b_there.astype(elem))
    for got, wanted in zip(jax.jit(f)(a, b), (want, want * 2 - 1), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("form, parts", [
    ("ikc,jkc->ijc", 3), ("ikc,jkc->cij", 2), ("cik,cjk->ijc", 1), ("cik,cjk->cij", 0),
    ("kic,cjk->cij", 1), ("cki,kj->cij", 0), ("ick,jck->icj", 0)])
def test_matrices_that_lie_apart_are_brought_side_by_side(form, parts):
    n = 32
    x = jnp.ones((n, n, n), np.float32)
    y = jnp.ones((n,) * len(form.split("->")[0].split(",")[1]), np.float32)
    done = jax.jit(lambda x, y: jnp.einsum(form, x, y)).lower(x, y).compile()
    # The operands' memory is the result's, too.
    assert done.memory_analysis().temp_size_in_bytes == min(parts, 2) * x.nbytes


# Against NumPy: XLA's CPU backend loses NaN here, and takes bytes for ones with a sign.
@pytest.mark.parametrize("few", [2, 30, 256, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
def test_all_of_many_with_all_of_a_few(dtype, few):
    x, y = ((RNG.normal(size=n) * 20).astype(np.int32).astype(dtype) for n in (1500, few))
    x[:3], y[0] = 0, 0
    if dtype == np.float32:
        x[3], x[4], x[5], y[1] = np.nan, np.inf, -0.0, -0.0

    def f(np, x, y):
        a = x[:, None]
        number = np.arange(few, dtype=np.int32)
        both = x.reshape(-1, 3)[:, :, None] * y
        return ((a == y).any(1), (a >= y).all(1), (a < y).sum(1), (a - y).max(1), (a * y).min(1),
                np.where(a == y, number, few).min(1), np.isin(x, y), both.max(2),
                (a * y).sum(1, dtype=dtype), (a == y).any(0), np.argmax(a == y, 1))

    with np.errstate(all="ignore"):
        want = f(np, x, y)
    for k, (a, b) in enumerate(zip(jax.jit(lambda x, y: f(jnp, x, y))(x, y), want, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=str(k))
