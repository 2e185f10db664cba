# SPDX-License-Identifier: Apache-2.0
"""Products whose sums are born where they go: turned around, added to what is there. Against the
CPU backend, and by the memory that they need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def uniform(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


def agree(f, *args, tol=1e-5, **how):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f, **how)(*(jax.device_put(a) for a in args))
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        a, b = (np.asarray(x).astype(np.complex128) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(1, np.abs(b).max()))


def temporaries(f, *args, **how):
    return jax.jit(f, **how).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int8, np.complex64])
@pytest.mark.parametrize("rows, cols", [(63, 64), (64, 63), (64, 64), (65, 129), (300, 200)])
def test_turned_products(dtype, rows, cols):
    a, b = (uniform(*s) * 4 for s in ((rows, 40), (40, cols)))
    a, b = a.astype(dtype), b.astype(dtype)
    agree(lambda a, b: (a @ b).T, a, b, tol=0.02 if dtype == jnp.bfloat16 else 1e-5)


def test_turned_products_of_batches_and_of_several_dims():
    a, b = uniform(5, 8, 9, 24), uniform(5, 24, 10, 7)

    def f(a, b):
        x = lax.dot_general(a, b, (((3,), (1,)), ((0,), (0,))))
        return x.transpose(0, 3, 4, 1, 2), x.transpose(0, 4, 3, 1, 2) + 1

    agree(f, a, b)
    agree(lambda a, b: f(a, b)[0], a, b)
    agree(lambda a, b: f(a, b)[1], a, b)


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_what_is_added_is_added_in_place(dtype):
    a, b, c = (uniform(256, 256, dtype=dtype) for _ in range(3))

    def f(c, a, b):
        return (a @ b).T + c

    agree(f, c, a, b, tol=0.02 if dtype == jnp.bfloat16 else 1e-5)
    agree(f, c, a, b, tol=0.02 if dtype == jnp.bfloat16 else 1e-5, donate_argnums=0)
    assert temporaries(f, c, a, b, donate_argnums=0) == 0


def test_gradients_of_weights_add_up_in_a_loop_without_room_for_one():
    xs, w = uniform(7, 80, 96), uniform(96, 128)

    def grad(w, xs):
        return jax.grad(lambda w: lax.scan(
            lambda s, x: (s + jnp.tanh(x @ w).sum(), None), 0.0, xs)[0])(w)

    agree(grad, w, xs)

    def sums(xs, ys):
        return lax.fori_loop(0, 7, lambda i, s: s + (ys[i].T @ xs[i]).T,
                             jnp.zeros((96, 128), np.float32))

    ys = uniform(7, 80, 128)
    agree(sums, xs, ys)
    assert temporaries(sums, xs, ys) < w.nbytes


def test_an_operand_is_not_written_over_while_others_read_it():
    """What ends at the product is one of its sides, too."""
    a, b = uniform(128, 128), uniform(128, 128) * np.float32(0.1)
    agree(lambda a, b: a @ b + a, a, b, donate_argnums=0)
    agree(lambda a, b: (b @ a).T + a, a, b, donate_argnums=0)

    def power(a, b):
        return lax.fori_loop(0, 5, lambda i, x: x @ b * 0.5 + x, a)

    agree(power, a, b)
    agree(power, a, b, donate_argnums=0)

    def square(a):
        return lax.fori_loop(0, 4, lambda i, x: (x @ x) * 0.1 + x, a)

    agree(square, a, donate_argnums=0)


def test_a_slice_of_what_is_written_may_be_a_side():
    """Where it begins is known at run time."""
    x, w = uniform(4, 128, 128), uniform(128, 128) * np.float32(0.1)

    def f(x, w, i):
        def step(k, x):
            y = lax.dynamic_index_in_dim(x, (i + k) % 4, 0, False) @ w
            return x.at[(i + k + 1) % 4].set(y + x[(i + k + 1) % 4])
        return lax.fori_loop(0, 6, step, x)

    for i in range(4):
        agree(f, x, w, np.int32(i))


def test_convolutions_add_in_place():
    x, k, c = uniform(2, 12, 12, 16), uniform(3, 3, 16, 16), uniform(2, 12, 12, 16)

    def f(c, x, k):
        return c + lax.conv_general_dilated(x, k, (1, 1), "SAME",
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def chain(x, k):
        return lax.fori_loop(0, 3, lambda i, x: f(x, x, k) * 0.1, x)

    agree(f, c, x, k, donate_argnums=0)
    agree(chain, x, k, donate_argnums=0)
