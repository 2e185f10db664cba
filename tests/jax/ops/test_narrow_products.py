# SPDX-License-Identifier: Apache-2.0
"""Products of which a side has one row, that have nothing to sum, that are many and small or
long and narrow, in every order of dims, against XLA's CPU backend."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
TYPES = ["float32", "bfloat16", "float16", "int8", "uint8", "int16", "int32"]


def numbers(shape, dtype):
    """Small whole ones, so that sums of floats are exact in any order."""
    return jnp.asarray(RNG.integers(0 if dtype == "uint8" else -4, 5, shape), dtype)


def agree(f, *args, tol=0.0):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    assert here.dtype == true.dtype and here.shape == true.shape
    np.testing.assert_allclose(np.asarray(here, np.float64), np.asarray(true, np.float64), rtol=tol,
                               atol=tol)


SIZES = {"b": 3, "c": 2, "k": 7, "l": 5, "m": 4, "n": 6}
FORMS = ["k,k->", "kl,kl->", "kl,lk->", "mk,k->m", "km,k->m", "k,mk->m", "k,km->m", "mkl,kl->m",
         "kml,lk->m", "bk,bk->b", "kb,kb->b", "kb,bk->b", "bmk,bk->bm", "bkm,bk->bm", "mbk,bk->bm",
         "mbk,kb->bm", "bk,bmk->bm", "bk,bkm->bm", "bck,bck->bc", "bck,cbk->cb", "bkcm,ckb->bcm",
         "bkcm,ckb->cmb", "m,n->mn", "m,n->nm", "bm,bn->bmn", "bm,nb->bnm", "bm,b->bm", "b,b->b",
         "mn,->mn", "bcm,cbn->bcmn", "mb,b->mb", "bmk,bkn->bmn", "bkm,bnk->bmn", "bmk,kn->bmn"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_forms(form, dtype):
    sides = [numbers([SIZES[d] for d in side], dtype) for side in form.split("->")[0].split(",")]
    agree(lambda x, y: jnp.einsum(form, x, y), *sides)
    # with dims of one element beside them
    agree(lambda x, y: jnp.einsum("..." + form.replace(",", ",...").replace("->", "->..."), x[None],
                                  y[None]), *sides)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("wide", [False, True])
def test_types(dtype, wide):
    out = None if not wide else jnp.float32 if dtype in ("bfloat16", "float16") else \
        jnp.int32 if dtype.endswith(("8", "16")) else None
    for form in ["k,k->", "mk,k->m", "bmk,bk->bm", "bkm,bk->bm", "m,n->mn", "bmk,bkn->bmn"]:
        sides = [numbers([SIZES[d] for d in side], dtype)
                 for side in form.split("->")[0].split(",")]
        agree(lambda x, y, f=form: jnp.einsum(f, x, y, preferred_element_type=out), *sides)


def test_integers_overflow_as_they_do():
    x = jnp.full(1000, 1 << 20, jnp.int32)
    agree(jnp.dot, x, x)
    y = jnp.full(1000, 127, jnp.int8)
    agree(lambda y: lax.dot(y, y, preferred_element_type=jnp.int32), y)
    agree(jnp.dot, y, y)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1023, 4097, 1 << 17])
def test_two_vectors(n):
    x, y = (jnp.asarray(RNG.uniform(-1, 1, n), jnp.float32) for _ in range(2))
    agree(jnp.dot, x, y, tol=1e-5 * max(n, 1) ** 0.5)
    agree(jax.grad(lambda x, y: jnp.dot(x, y) ** 2), x, y, tol=1e-5 * max(n, 1) ** 0.5)


@pytest.mark.parametrize("m,k", [(1, 1), (3, 4097), (4097, 3), (257, 511), (1024, 1024)])
def test_a_matrix_by_a_vector_with_what_follows(m, k):
    a, v, b = numbers((m, k), "float32"), numbers(k, "float32"), numbers(m, "float32")
    agree(lambda a, v, b: jax.nn.relu(a @ v + b), a, v, b)
    agree(lambda a, v, b: jax.nn.relu(v @ a.T + b) * 2, a, v, b)
    agree(lambda a, v, b: jax.grad(lambda a: jnp.sum((a @ v + b) ** 2))(a), a, v, b)


def test_a_sum_in_16_bits_is_rounded_once():
    x = jnp.asarray(RNG.uniform(-1, 1, (8, 300)), jnp.bfloat16)
    y = jnp.asarray(RNG.uniform(-1, 1, 300), jnp.bfloat16)
    exact = np.asarray(x, np.float64) @ np.asarray(y, np.float64)
    here = np.asarray(jax.jit(jnp.dot)(x, y), np.float64)
    assert np.all(np.abs(here - exact) <= np.abs(exact) * 2.0 ** -8 + 1e-5)


def test_sums_of_one_are_no_negative_zeros():
    x = jnp.asarray([[-0.0], [0.0], [1e-30], [-1e-30]], jnp.float32)
    here = np.asarray(jax.jit(jnp.matmul)(x, x.T))
    assert not np.any(np.signbit(here) & (here == 0)) and not np.any(np.isnan(here))


def test_infinities_and_nans_stay_where_they_are():
    a = np.ones((6, 5), np.float32)
    a[1, 2], a[2, 0], a[3] = np.inf, np.nan, [np.inf, -np.inf, 1, 1, 1]
    agree(lambda a, v: a @ v, jnp.asarray(a), jnp.ones(5))
    agree(lambda a, v: jnp.outer(a, v), jnp.asarray(a[:, 0]), jnp.asarray([0.0, 1.0, np.inf]))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("rows,cols,k", [(3, 3, 3), (4, 4, 4), (2, 7, 5), (16, 16, 16), (16, 17, 4),
                                         (1, 16, 16), (13, 11, 12)])
def test_many_small_matrices(rows, cols, k, dtype):
    for turned in itertools.product([False, True], repeat=2):
        x = numbers((36, k, rows) if turned[0] else (36, rows, k), dtype)
        y = numbers((36, cols, k) if turned[1] else (36, k, cols), dtype)

        def f(x, y, turned=turned):
            return (x.mT if turned[0] else x) @ (y.mT if turned[1] else y)
        agree(f, x, y)
        agree(lambda x, y, f=f: f(x, y).mT, x, y)
        agree(lambda x, y, f=f: jnp.maximum(f(x, y) + 1, 0), x, y)
        agree(lambda x, y, f=f: f(x[::2], y[1::2]), x, y)


@pytest.mark.parametrize("n,k,cols", [(64, 3, 3), (1000, 4, 4), (500, 64, 16), (500, 65, 16),
                                      (500, 3, 17), (200, 2, 2)])
def test_many_rows_by_few_columns(n, k, cols):
    x, w, b = numbers((n, k), "float32"), numbers((k, cols), "float32"), numbers(cols, "float32")
    agree(lambda x, w, b: x @ w, x, w, b)
    agree(lambda x, w, b: x.reshape(k, n).T @ w, x, w, b)
    agree(lambda x, w, b: (x @ w).T, x, w, b)
    agree(lambda x, w, b: jax.nn.relu(x @ w.reshape(cols, k).T + b), x, w, b)
    agree(lambda x, w, b: x[::2] @ w, x, w, b)


LONG = [("km,kn->mn", {}), ("mk,nk->mn", {}), ("km,nk->nm", {}), ("bkm,bkn->bmn", {"b": 2}),
        ("kbm,kbn->mbn", {"b": 2}), ("lkm,lkn->mn", {"l": 3}), ("klm,lkn->nm", {"l": 3}),
        ("k,kn->n", {}), ("km,k->m", {}), ("kmc,kn->mcn", {"c": 2}), ("kmc,kn->cmn", {"c": 2})]


@pytest.mark.parametrize("form,more", LONG)
@pytest.mark.parametrize("k", [2048, 8191, 24000])
@pytest.mark.parametrize("m,n", [(1, 9), (5, 5), (11, 4), (65, 33)])
def test_sums_of_many(form, more, k, m, n):
    sizes = {"k": k, "m": m, "n": n, **more}
    for dtype in ("float32", "int8") if m != 65 else ("float32",):
        sides = [numbers([sizes[d] for d in side], dtype)
                 for side in form.split("->")[0].split(",")]
        out = jnp.int32 if dtype == "int8" else None
        true = np.einsum(form, *(np.asarray(s, np.int64) for s in sides))
        here = jax.jit(lambda *s, out=out: jnp.einsum(form, *s, preferred_element_type=out))(*sides)
        np.testing.assert_array_equal(np.asarray(here, np.int64), true)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_sums_of_many_along_dims_that_were_moved(order):
    x, y = numbers((4, 5, 8192), "float32"), numbers((8192, 11), "float32")
    k = order.index(2)
    true = np.tensordot(np.transpose(np.asarray(x), order), np.asarray(y), ((k,), (0,)))
    here = jax.jit(lambda x, y: lax.dot_general(lax.transpose(x, order), y,
                                                (((k,), (0,)), ((), ()))))(x, y)
    np.testing.assert_array_equal(np.asarray(here), true)


@pytest.mark.parametrize("dtype,tol", [("float32", 2e-6), ("bfloat16", 4e-3), ("float16", 1e-3),
                                       ("float64", 1e-15), ("complex64", 2e-6)])
@pytest.mark.parametrize("shape", [(30000, 7), (30011, 40), (2050, 3)])
def test_sums_of_many_are_as_exact(dtype, tol, shape):
    with jax.enable_x64(True):
        x = jnp.asarray(RNG.standard_normal(shape), dtype)
        # with work before and behind it, and a gradient that sums as much
        f = jax.jit(lambda x: (x * 0.5).T @ x / x.shape[0] + jnp.eye(x.shape[1], dtype=x.dtype))
        here = np.asarray(f(x), np.complex128)
        wide = np.asarray(x, np.complex128)
        true = (wide * 0.5).T @ wide / shape[0] + np.eye(shape[1])
        np.testing.assert_allclose(here, true, rtol=tol, atol=tol)
        g = jax.jit(jax.grad(lambda w, x: jnp.sum((x @ w).real ** 2), holomorphic=False))
        if dtype != "complex64":
            w = jnp.asarray(RNG.standard_normal((shape[1], 3)) * 0.1, dtype)
            here = np.asarray(g(w, x), np.float64)
            true = 2 * wide.real.T @ (wide.real @ np.asarray(w, np.float64))
            np.testing.assert_allclose(here, true, rtol=4 * tol, atol=4 * tol * shape[0])
