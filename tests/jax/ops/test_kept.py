# SPDX-License-Identifier: Apache-2.0
"""Arrays that need not be there: what a program keeps in memory between its instructions, by the
temporaries that it asks for, and its results against the CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def uniform(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


def agree(f, *args, tol=2e-5):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(1, np.abs(b).max(initial=0)))


def temporaries(f, *args):
    return jax.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int32])
@pytest.mark.parametrize("falling", [True, False])
def test_keys_of_a_selection_are_no_array(dtype, falling):
    x = (uniform(2, 70001) * 1000).astype(dtype)

    def f(x):
        return lax.top_k(x, 9) if falling else lax.sort(x)[:, :9]

    agree(f, x, tol=0)
    if dtype == np.float32 and falling:
        x = x[:, :1 << 16]
        assert temporaries(lambda x: lax.top_k(x, 9), x) < x.nbytes / 2


def of_kind(kind, shape, dtype):
    x = RNG.standard_normal(shape) * 50
    if kind == "few":
        x = np.round(x / 40)
    elif kind == "equal":
        x[:] = 3
    elif kind == "late":
        x[..., :-1], x[..., -1] = 0, 1
    elif kind == "least":
        x[:] = -np.inf if dtype == np.float32 else np.iinfo(dtype).min
    elif kind == "nan":
        x[RNG.uniform(size=shape) < 3 / shape[-1]] = np.nan if dtype == np.float32 else 7
    return x.astype(dtype)


@pytest.mark.parametrize("kind", ["any", "few", "equal", "late", "least", "nan"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(1 << 14,), (3, 8192), (2, 3, 12000), (8209,), (2, 1 << 17)])
def test_places_along_a_line_are_counted_in_its_parts(shape, dtype, kind):
    x = of_kind(kind, shape, dtype)
    agree(lambda x: (jnp.argmax(x, -1), jnp.argmin(x, -1)), x, tol=0)
    agree(lambda x: jnp.argmax(x.T, 0), x, tol=0)
    if dtype == np.int32 and shape[-1] == 1 << 17:
        assert temporaries(lambda x: jnp.argmax(x, -1), x) < x.nbytes / 50
