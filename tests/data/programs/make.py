# SPDX-License-Identifier: Apache-2.0
"""Writes the jax_*.mlirbc beside it: small programs that together use what the compiler
reads: loops, branches, calls, donation, reductions, products, sorts, random bits.

    JAX_PLATFORMS=cpu python3 tests/data/programs/make.py
"""

import pathlib

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).parent
F32 = jnp.float32
X, W, B = jnp.ones((4, 8), F32), jnp.ones((8, 4), F32), jnp.ones((4,), F32)
V = jnp.arange(6, dtype=F32)


def write(name, f, *args, **options):
    module = jax.jit(f, **options).lower(*args).compiler_ir("stablehlo")
    code = _jax.mlir.serialize_portable_artifact(
        mlir.module_to_bytecode(module), stablehlo.get_current_version(), True)
    (HERE / f"jax_{name}.mlirbc").write_bytes(code)


def train(p, x):
    g = jax.grad(lambda q: jnp.sum(jnp.tanh(x @ q[0] + q[1]) ** 2))(p)
    return p[0] - .1 * g[0], p[1] - .1 * g[1]


def narrow(a):
    a = (a.astype(jnp.bfloat16) + 1).astype(jnp.float8_e5m2)
    return a.astype(jnp.int4).astype(jnp.uint8) >> 1


def nested(a):
    inner = lambda z: lax.fori_loop(0, 2, lambda j, q: q + j, z)
    return lax.fori_loop(
        0, 2, lambda i, c: lax.cond(i > 0, inner, lambda z: z * 2, c), a)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")


def main():
    jax.config.update("jax_traceback_in_locations_limit", 0)
    write("while", lambda x: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2 + c[0]), (0, x)), V)
    write("cond", lambda p, x: lax.cond(p > 0, lambda a: a * 2, jnp.sin, x), 1, V)
    write("switch", lambda i, x: lax.switch(
        i, [lambda a: a + 1, lambda a: a[::-1], lambda a: a * a], x), 1, V)
    write("scan", lambda x: lax.scan(lambda c, a: (c + a, c * a), F32(0), x), V)
    write("softmax", lambda x, w, b: jax.nn.softmax(x @ w + b), X, W, B)
    write("train", train, (W, B), X, donate_argnums=0)
    write("conv", lambda x, k: jax.nn.relu(lax.conv_general_dilated(
        x, k, (2, 1), "SAME", feature_group_count=2)),
        jnp.ones((1, 2, 6, 5)), jnp.ones((4, 1, 3, 3)))
    write("pool", lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "SAME"), jnp.ones((2, 5, 4)))
    write("sort_pair", lambda a, b: lax.sort((a, b), num_keys=1), V, jnp.arange(6))
    write("gather", lambda t, i: t[i] * 2, X, jnp.array([1, 3, 0]))
    write("scatter", lambda t, i, u: t.at[i].add(u), X, jnp.array([1, 3]),
          jnp.ones((2, 8)))
    write("random", lambda k: jax.random.normal(k, (3,)), jax.random.PRNGKey(0))
    write("rbg", lambda k: lax.rng_bit_generator(k, (5,), dtype=jnp.uint32),
          jnp.zeros((4,), jnp.uint32))
    write("complex", lambda a: jnp.abs(jnp.exp(1j * a)) + jnp.real(
        lax.complex(a, a) * 2), V)
    write("gelu", lambda a: jax.nn.gelu(a, approximate=False), V)
    write("topk", lambda a: lax.top_k(a, 3), V)
    write("cholesky", jnp.linalg.cholesky, jnp.eye(3))
    write("update", lambda a, i, u: lax.dynamic_update_slice(a, u, (i, 0)), X, 2,
          jnp.ones((1, 8)), donate_argnums=0)
    write("slice", lambda a, i: lax.dynamic_slice(a, (i, i), (2, 3)) + 1, X, 2)
    write("layernorm", lambda a: (a - a.mean(-1, keepdims=True)) / jnp.sqrt(
        a.var(-1, keepdims=True) + 1e-5), X)
    write("pad_concat", lambda a: jnp.concatenate(
        [lax.pad(a, F32(1), ((-1, 2, 1), (0, 0, 0))), a]), X)
    write("narrow", narrow, V)
    write("bools", lambda a: jnp.where(
        (a > 1) & ~(a < 4), jnp.isfinite(a), a.astype(bool)).any(), V)
    write("matrix_loop", lambda a: lax.fori_loop(
        0, 3, lambda i, m: lax.dynamic_update_index_in_dim(m @ m, m[0], i, 0), a),
        jnp.ones((4, 4)))
    write("nested", nested, V)
    write("cumsum", jnp.cumsum, V)
    write("argmax", lambda a: jnp.argmax(a, axis=1), X)
    write("views", lambda a: jnp.flip(a.T, 0)[1:7:2].reshape(3, 2, 2), X)
    write("fft", jnp.fft.rfft, V)
    write("select_scatter", jax.grad(lambda x: pool(x).sum()), V)
    write("einsum", lambda a, b: jnp.einsum(
        "bij,bkj->bik", a, b, preferred_element_type=F32),
        jnp.ones((2, 3, 4), jnp.bfloat16), jnp.ones((2, 5, 4), jnp.bfloat16))
    write("iota", lambda: lax.broadcasted_iota(jnp.int16, (3, 4), 1) * 2)
    write("calls", lambda a: jax.nn.relu(a) + jax.nn.silu(a), V)
    write("bits", lambda a: lax.bitcast_convert_type(a, jnp.uint8), V)
    write("contract", lambda a, b: jnp.einsum("abc,cad->bd", a, b),
          jnp.ones((2, 3, 4)), jnp.ones((4, 2, 5)))
    write("turn", lambda a: jnp.concatenate([a.T, a.T]), jnp.ones((70, 67)))
    write("columns", lambda a: (jnp.sum(a, 0), jnp.max(a * 2, 0)), jnp.ones((300, 40)))
    write("reduce_pair", lambda a: lax.reduce(
        (a, a), (F32(0), F32(1)), lambda p, q: (p[0] + q[0], p[1] * q[1]), (0,)), X)


if __name__ == "__main__":
    main()
