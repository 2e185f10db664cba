# SPDX-License-Identifier: Apache-2.0
"""Elementwise work of more values than one instruction holds, of types that take several for each
op, and of values that are read along several sets of axes: as JAX's CPU backend."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def agree(device, cpu, f, *args, rtol=0.0):
    with jax.enable_x64(True):
        got, want = (jax.jit(f)(*jax.device_put(args, d)) for d in (device, cpu))
        assert got.dtype == want.dtype
        kind = complex if got.dtype.kind == "c" else float
        np.testing.assert_allclose(np.asarray(got).astype(kind), np.asarray(want).astype(kind),
                                   rtol=rtol, atol=rtol)


def many_conditions(x):
    return jnp.select([x < np.float32(i * .1) for i in range(60)],
                      [np.float32(i * 1.7) for i in range(60)], np.float32(-1))


def affine(x):
    for i in range(60):
        x = x * np.float32(1 + i * .01) + np.float32(i * .1)
    return x


def waves(x):
    y = x
    for i in range(110):
        x = jnp.sin(x) if i % 2 else x * y
    return x


def complex_steps(x):
    for i in range(60):
        x = x * complex(1 + i * .01, i * .02) + complex(i, 1 - i)
    return x


def bits(x):
    for _ in range(110):
        x = lax.shift_right_logical(x, x) ^ lax.population_count(x)
    return x


def fewer_bits(x):
    for _ in range(100):
        x = lax.reduce_precision(x * x, 5, 7)
    return x


def horner(x):
    y = jnp.bfloat16(0)
    for i in range(40):
        y = y * x + jnp.bfloat16(i * .25)
    return y


@pytest.mark.parametrize("f,dtype,rtol", [
    (many_conditions, "float32", 0), (affine, "float32", 1e-4), (waves, "bfloat16", .1),
    (waves, "float16", 1e-2), (complex_steps, "complex128", 1e-12), (bits, "int4", 0),
    (bits, "uint2", 0), (fewer_bits, "float16", 0), (horner, "bfloat16", .02)])
def test_many_values(device, cpu, f, dtype, rtol):
    agree(device, cpu, f, np.linspace(0, 1.3, 100).astype(jnp.dtype(dtype)), rtol=rtol)


@pytest.mark.parametrize("n", [8, 12, 13, 24, 25, 40])
@pytest.mark.parametrize("with_product", [False, True])
def test_values_along_two_axes(device, cpu, n, with_product):
    def f(m, *vectors):
        s = m @ m.T if with_product else m
        for v in vectors:
            s = s + v[:, None] * v[None, :]
        return s

    vectors = [(np.arange(50) % 7 + i).astype(np.float32) for i in range(n)]
    agree(device, cpu, f, np.eye(50, dtype=np.float32), *vectors)
