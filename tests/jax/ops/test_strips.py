# SPDX-License-Identifier: Apache-2.0
"""Large arrays that only pass from one instruction to the next, like an attention's scores, are
never there as a whole. Against the CPU backend, and by the memory that programs need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)
MIB = 1 << 20


def uniform(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


def agree(f, *args, tol=1e-5):
    """Whether both say the same; the bytes of temporaries that f needs here."""
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f).lower(*args).compile()
    for a, b in zip(jax.tree.leaves(here(*map(jax.device_put, args))), jax.tree.leaves(true),
                    strict=True):
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(1, np.abs(b).max()))
    return here.memory_analysis().temp_size_in_bytes


def attention(q, k, v, mask=None):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k)
    if mask is not None:
        s = jnp.where(mask, s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


def sides(*shape, dtype=np.float32):
    return [uniform(*shape, dtype=dtype) for _ in range(3)]


def test_scores_of_many_heads():
    assert agree(attention, *sides(4, 4, 512, 16)) < 6 * MIB


def test_scores_of_one_head_are_cut_by_rows():
    assert agree(attention, *sides(1, 1, 2048, 16)) < 6 * MIB


def test_scores_are_cut_along_several_dims():
    assert agree(attention, *sides(2, 2, 2048, 8)) < 6 * MIB


def test_scores_just_below_the_limit_are_whole():
    assert agree(attention, *sides(4, 1, 1023, 8)) >= 4 * 1023 * 1023 * 4


def test_scores_in_bfloat16():
    assert agree(attention, *sides(8, 4, 512, 16, dtype=jnp.bfloat16), tol=0.03) < 6 * MIB


@pytest.mark.parametrize("kind", ["causal", "of each batch", "of each head", "of positions"])
def test_masks(kind):
    q, k, v = sides(4, 4, 512, 8)
    mask = {"causal": np.tril(np.ones((512, 512), bool)),
            "of each batch": RNG.uniform(size=(4, 1, 1, 512)) < 0.7,
            "of each head": RNG.uniform(size=(4, 4, 512, 512)) < 0.7}.get(kind)

    def f(q, k, v):
        at = mask
        if at is None:
            at = jax.lax.broadcasted_iota(jnp.int32, (4, 4, 512, 512), 2) >= jnp.arange(512)
        return attention(q, k, v, at)

    assert agree(f, q, k, v) < 10 * MIB


def test_a_mask_that_counts_along_the_first_dim():
    q, k, v = sides(4, 4, 512, 8)

    def f(q, k, v):
        at = jax.lax.broadcasted_iota(jnp.int32, (4, 4, 512, 512), 0)
        return attention(q, k, v, at * 100 <= jnp.arange(512))

    assert agree(f, q, k, v) < 10 * MIB


def test_heads_and_batches_as_one_dim():
    def f(q, k, v, mask):
        s = jnp.einsum("zqd,zkd->zqk", q, k).reshape(4, 4, 512, 512)
        p = jax.nn.softmax(jnp.where(mask, s, -1e9)).reshape(16, 512, 512)
        return jnp.einsum("zqk,zkd->zqd", p, v)

    mask = RNG.uniform(size=(4, 1, 1, 512)) < 0.7
    assert agree(f, *sides(16, 512, 8), mask) < 6 * MIB


def test_heads_behind_positions():
    def f(q, k, v):
        return jax.nn.dot_product_attention(q, k, v)

    assert agree(f, *sides(4, 512, 4, 16)) < 6 * MIB


def test_results_that_others_look_at_beside():
    def f(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k)
        p = jax.nn.softmax(s)
        o = jnp.einsum("bhqk,bhkd->bhqd", p, v)
        return o + q, s.max(-1), jnp.tanh(o).sum((0, 2))

    assert agree(f, *sides(4, 4, 512, 8)) < 10 * MIB


def test_scores_that_are_a_result_are_whole():
    def f(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k)
        return s, attention(q, k, v)

    agree(f, *sides(4, 4, 512, 8))


def test_the_gradient_of_an_attention_that_is_done_again():
    def f(q, k, v):
        return (jax.checkpoint(attention)(q, k, v) ** 2).sum()

    assert agree(jax.grad(f, (0, 1, 2)), *sides(4, 4, 512, 8)) < 24 * MIB


def test_pairs_of_points():
    def f(x, y, m):
        d = y[None] - x[:, None]
        r = (d * d).sum(-1) + 0.1
        return ((m / (r * jnp.sqrt(r)))[..., None] * d).sum(1)

    x, y, m = uniform(2048, 3), uniform(2048, 3), uniform(2048)
    assert agree(f, x, y, m, tol=1e-4) < 8 * MIB
    assert agree(lambda x, m: f(x, x, m), x, m, tol=1e-4) < 8 * MIB


def test_layers_whose_weights_are_large_are_whole():
    def f(x, w, u):
        return jax.nn.gelu(x @ w) @ u

    x, w, u = uniform(2048, 512), uniform(512, 2048) / 16, uniform(2048, 512) / 16
    assert agree(f, x, w, u, tol=1e-4) >= 16 * MIB


def test_in_the_body_of_a_scan():
    def f(q, k, v):
        def body(x, i):
            return x + attention(x, k * i, v), x.sum()
        return jax.lax.scan(body, q, jnp.arange(3.0))

    assert agree(f, *sides(4, 4, 512, 8)) < 10 * MIB


def test_a_dim_that_is_a_prime():
    assert agree(attention, *sides(1, 1, 2053, 8)) >= 16 * MIB
    assert agree(attention, *sides(17, 1, 521, 8)) < 6 * MIB
