# SPDX-License-Identifier: Apache-2.0
"""jaxtyping: shapes and dtypes in annotations, looked at while programs are traced."""

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, jaxtyped


def check(value, hint):
    assert isinstance(value, hint), (value, hint)
    return value


@jaxtyped(typechecker=None)
def attend(q: Float[Array, "n d"], k: Float[Array, "m d"], v: Float[Array, "m e"]):
    check(q, Float[Array, "n d"])
    check(k, Float[Array, "m d"])
    check(v, Float[Array, "m e"])
    w = check(jax.nn.softmax(q @ k.T / q.shape[1] ** 0.5), Float[Array, "n m"])
    return check(w @ v, Float[Array, "n e"])


def test_jaxtyping_checks_attention(both):
    def program():
        q, k, v = (jax.random.normal(jax.random.key(i), s) for i, s in
                   enumerate(((5, 8), (7, 8), (7, 3))))
        return jax.jit(attend)(q, k, v), jax.jit(jax.grad(lambda q: attend(q, k, v).sum()))(q)
    both(program)
    with pytest.raises(AssertionError):
        jax.jit(attend)(jnp.zeros((5, 8)), jnp.zeros((7, 9)), jnp.zeros((7, 3)))


def test_jaxtyping_checks_a_tree(both):
    def program():
        params = {"w": jnp.ones((4, 3)), "b": [jnp.zeros(3), jnp.arange(3.0)]}
        check(params, PyTree[Float[Array, "..."]])
        assert not isinstance(params, PyTree[Int[Array, "..."]])
        return jax.jit(lambda p: jax.tree.map(lambda x: check(jnp.cumsum(x * 2, -1),
                                                              Float[Array, "*n"]), p))(params)
    both(program)


def test_jaxtyping_checks_a_sampler(both):
    @jaxtyped(typechecker=None)
    def walk(key: Key[Array, ""], n: int):
        check(key, Key[Array, ""])

        def turn(x, key):
            step = check(jax.random.normal(key, (2,)), Float[Array, "2"])
            is_far = check(jnp.abs(x) > 1.5, Bool[Array, "2"])
            x = jnp.where(is_far, 0, x + 0.5 * step)
            return check(x, Float[Array, "2"]), x
        return jax.lax.scan(turn, jnp.zeros(2), jax.random.split(key, n))[1]
    out = both(lambda: jax.jit(walk, static_argnums=1)(jax.random.key(9), 50), atol=1e-4)
    check(out, Float[Array, "50 2"])
