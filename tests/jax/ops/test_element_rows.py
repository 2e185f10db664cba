# SPDX-License-Identifier: Apache-2.0
"""Gathers and scatters of single elements of which an index counts along a dim, and such as look
like it, against XLA's CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
N, A, B, C = 23, 7, 5, 6


@pytest.fixture(autouse=True)
def begin_anew():
    """Each case has the same numbers, whichever ran before it."""
    global RNG
    RNG = np.random.default_rng(0)


def agree(f, *args, tol=0.0):
    here = jax.jit(f)(*args)
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    for h, t in zip(jax.tree.leaves(here), jax.tree.leaves(true)):
        np.testing.assert_allclose(np.asarray(h, np.float64), np.asarray(t, np.float64), rtol=tol)


def table(*shape, dtype="float32"):
    return jnp.asarray(RNG.integers(-9, 9, shape), dtype)


def rows(n, most, low=0):
    return jnp.asarray(RNG.integers(low, most, n), jnp.int32)


# indices into a table of A x B x C, of N rows where there are any
FORMS = {
    "rows": lambda i: (i[:, None], jnp.arange(B)),
    "rows turned": lambda i: (i, jnp.arange(B)[:, None]),
    "columns": lambda i: (jnp.arange(A)[:, None], i % B),
    "columns turned": lambda i: (jnp.arange(A), (i % B)[:, None]),
    "last": lambda i: (i[:, None], i[:, None] % B, jnp.arange(C)),
    "middle": lambda i: (i[:, None], jnp.arange(B), i[:, None] % C),
    "middle turned": lambda i: (i, jnp.arange(B)[:, None], i % C),
    "two": lambda i: (i[:, None, None], jnp.arange(B)[:, None], jnp.arange(C)),
    "two turned": lambda i: (i[:, None, None], jnp.arange(B), jnp.arange(C)[:, None]),
    "all": lambda i: (jnp.arange(A)[:, None], jnp.arange(B)),
    "behind a window": lambda i: (i[:, None], slice(None), jnp.arange(C)),
    "before a window": lambda i: (i[:, None], jnp.arange(B), slice(None)),
    "few": lambda i: (i[:, None], jnp.arange(B - 2)),
    "from 1": lambda i: (i[:, None], jnp.arange(1, B)),
    "backwards": lambda i: (i[:, None], jnp.arange(B)[::-1]),
    "every other": lambda i: (i[:, None], jnp.arange(0, B, 2)),
    "past the end": lambda i: (i[:, None], jnp.arange(B + 2)),
    "diagonal": lambda i: (jnp.arange(5)[:, None], jnp.arange(5)[:, None] + 0 * jnp.arange(3)),
    "rows that vary": lambda i: ((i[:, None] + jnp.arange(B)) % A, jnp.arange(B)),
    "bytes": lambda i: (i[:, None].astype(jnp.int8), jnp.arange(B, dtype=jnp.int8)),
    "unsigned": lambda i: (i[:, None].astype(jnp.uint32), jnp.arange(B, dtype=jnp.uint32)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("low,most", [(0, A), (-2 * A, 2 * A)])
def test_forms(form, low, most):
    x, i = table(A, B, C), rows(N, most, low)
    at = FORMS[form]
    agree(lambda x, i: x[at(i)], x, i)
    agree(lambda x, i: [x.at[at(i)].get(mode=m, fill_value=77) for m in ("fill", "clip")], x, i)
    v = table(*jax.eval_shape(lambda x, i: x[at(i)], x, i).shape)
    dtype = ["float32", "bfloat16", "int32"][list(FORMS).index(form) % 3]
    agree(lambda x, i, v: [x.at[at(i)].add(v), x.at[at(i)].max(v), x.at[at(i)].min(v),
                           x.at[at(i)].mul(v % 2), x.at[at(i)].add(v, mode="clip"),
                           x.at[at(i)].add(2)],
          x.astype(dtype), i, v.astype(dtype))
    agree(lambda x, i, v: x.at[at(i)].set(v[:1] if v.ndim > 1 else v[0]), x, i, v)


def test_flags_hold_for_what_is_left():
    x, v = table(40, B), table(12, B)
    i = jnp.sort(jnp.asarray(RNG.permutation(40)[:12], jnp.int32))
    for at in (lambda i: (i[:, None], jnp.arange(B)), lambda i: (i, jnp.arange(B)[:, None])):
        agree(lambda x, i, v, at=at: x.at[at(i)].set(v if at(i)[0].ndim == 2 else v.T,
                                                     unique_indices=True), x, i, v)
    agree(lambda x, i, v: x.at[i[:, None], jnp.arange(B)].add(
        v, unique_indices=True, indices_are_sorted=True), x, i, v)
    # in order by columns first; the rows that are left are in none
    y, j, w = table(B, 40), jnp.asarray(RNG.permutation(40)[:12], jnp.int32), table(B, 12)
    agree(lambda y, j, w: y.at[jnp.arange(B)[:, None], jnp.sort(j)].add(
        w, unique_indices=True, indices_are_sorted=True), y, j, w)
    agree(lambda y, j: y.at[jnp.arange(B)[:, None], jnp.sort(j)].get(
        unique_indices=True, indices_are_sorted=True), y, j)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_many_updates(dtype):
    x, v = table(500, 33, dtype=dtype), table(4000, 33, dtype=dtype)
    i = rows(4000, 520, -20)
    nans = jnp.where(v == 3, jnp.nan, jnp.where(v == 0, -0.0, v)) if dtype == "float32" else v

    def f(x, i, v):
        at = x.at[i[:, None], jnp.arange(33)]
        flat = x[:, 0].at[i]
        return [at.add(v), at.max(v), at.min(v), flat.max(v[:, 0]), flat.min(v[:, 1]),
                flat.mul(v[:, 2] % 2)]
    agree(f, x, i, v)
    here = jax.jit(lambda x, i, v: [g.view(np.uint32) for g in f(x, i, v)[1:5]])(x, i, nans)
    true = jax.jit(lambda x, i, v: f(x, i, v)[1:5])(*jax.device_put((x, i, nans), CPU))
    for h, t in zip(here, true):
        t = np.asarray(t)
        h = np.asarray(h).view(t.dtype)
        np.testing.assert_array_equal(h, t)
        if dtype == "float32":
            np.testing.assert_array_equal(np.signbit(h[h == 0]), np.signbit(t[h == 0]))


def test_in_batches_and_gradients():
    x, i = table(3, 40, B), rows((3, 12), 40)
    v = table(3, 12, B)

    def f(x, i, v):
        return jnp.sum(x[i[:, None], jnp.arange(B)] * v) + \
            jnp.sum(x.at[i[:, None], jnp.arange(B)].max(v) ** 2)
    agree(jax.vmap(f), x, i, v)
    # a maximum that several give is shared among them: 5 / 3, three times
    agree(jax.vmap(jax.grad(f, (0, 2))), x, i, v, tol=1e-6)
    agree(lambda x, i: jnp.take_along_axis(x, jnp.broadcast_to(i[..., None], (3, 12, B)), 1), x, i)
    agree(lambda x, i, v: lax.fori_loop(
        0, 5, lambda k, x: x.at[(i[0] + k)[:, None] % 40, jnp.arange(B)].add(v[0] + k), x[0]),
        x, i, v)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_floats_on_the_way_skip_numbers(dtype):
    """Of bf16 there is no 257. Unsigned indices are looked at as they are."""
    x, i = table(9, 1000), jnp.asarray(RNG.integers(0, 9, 20), jnp.uint32)
    agree(lambda x, i: x[i[:, None], lax.iota(dtype, 1000).astype(jnp.uint32)], x, i)
    agree(lambda x, i: x.at[i[:, None], lax.iota(dtype, 1000).astype(jnp.uint32)].add(1), x, i)
