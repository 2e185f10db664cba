# SPDX-License-Identifier: Apache-2.0
"""Sorts of more arrays together than the device sorts, by one key and by many: as JAX's CPU
backend, equal elements in their order."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def agree(device, cpu, f, *args):
    got, want = (jax.device_get(jax.jit(f)(*jax.device_put(args, d))) for d in (device, cpu))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def few_numbers(seed, dtype, *shape):
    """Of each key so few that the next one counts."""
    x = np.random.default_rng(seed).integers(0, 3, shape)
    return (x - 1.0 if dtype == "float32" else x).astype(dtype)


TYPES = ["float32", "int8", "uint16", "int32", "bool", "float32", "uint32"]


@pytest.mark.parametrize("shape,dim", [((200,), 0), ((4, 60), 1), ((5, 40, 3), 1), ((30, 2, 2), 0),
                                       ((1,), 0), ((3, 0), 1)])
@pytest.mark.parametrize("n,keys", [(5, 1), (5, 3), (6, 4), (7, 7), (9, 2), (12, 8)])
def test_many_arrays(device, cpu, n, keys, shape, dim):
    arrays = [few_numbers(i, TYPES[i % len(TYPES)], *shape) for i in range(n)]
    arrays[0] = arrays[0] * np.array(-0.0, np.float32)
    if shape == (200,):
        arrays[0][::7] = np.nan
    agree(device, cpu, lambda *x: lax.sort(x, dimension=dim, num_keys=keys), *arrays)


def test_lexsort_and_unique_rows(device, cpu):
    x = few_numbers(0, "float32", 9, 300)
    agree(device, cpu, lambda x: jnp.lexsort(tuple(x)), x)
    agree(device, cpu, lambda x: jnp.unique(x, axis=0, size=250, return_inverse=True,
                                            return_counts=True), x.T)


def test_in_a_loop(device, cpu):
    arrays = [few_numbers(i, "int32", 50) for i in range(6)]
    agree(device, cpu, lambda *x: lax.fori_loop(
        0, 3, lambda i, x: (*lax.sort(x, num_keys=5)[1:], x[0]), x), *arrays)


def test_a_comparator_of_many_arrays_is_refused_by_name(device):
    """It compares sums, which no pass takes."""
    args = ", ".join(f"%a{i}: tensor<9xf32>" for i in range(5))
    inner = ", ".join(f"%x{i}: tensor<f32>, %y{i}: tensor<f32>" for i in range(5))
    sums = "".join(f"%{s}s{i} = stablehlo.add %{s}{f's{i - 1}' if i > 1 else '0'}, %{s}{i} : "
                   "tensor<f32>\n" for s in "xy" for i in range(1, 5))
    names = ", ".join(f"%a{i}" for i in range(5))
    types = ", ".join(["tensor<9xf32>"] * 5)
    text = f"""func.func public @main({args}) -> tensor<9xf32> {{
      %r:5 = "stablehlo.sort"({names}) ({{
        ^bb0({inner}):
          {sums}%l = stablehlo.compare LT, %xs4, %ys4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
          "stablehlo.return"(%l) : (tensor<i1>) -> ()
      }}) {{dimension = 0, is_stable = true}} : ({types}) -> ({types})
      return %r#0 : tensor<9xf32>
    }}"""
    from jaxlib import _jax
    with pytest.raises(jax.errors.JaxRuntimeError, match="more than 4 arrays together"):
        device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())


@pytest.mark.parametrize("shape,dim", [((30000, 1), 1), ((1, 10000, 3), 0), ((1,), 0)])
def test_what_has_nothing_beside_it_is_sorted(device, cpu, shape, dim):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    x.reshape(-1)[:1] = np.nan

    def f(x):
        return jnp.sort(x, dim), jnp.argsort(x, dim), lax.sort((x, -x), dimension=dim, num_keys=2)

    agree(device, cpu, f, x)
    run = jax.jit(f).lower(jax.device_put(x, device)).compile()
    assert run.cost_analysis()["optimal_seconds"] < 1e-3


@pytest.mark.parametrize("dim", [-1, -2])
@pytest.mark.parametrize("n", [4, 5, 9])
def test_a_dim_that_is_counted_from_the_end(device, n, dim):
    """As StableHLO's sort has it, where nothing else is said."""
    args = ", ".join(f"%a{i}: tensor<6x7xf32>" for i in range(n))
    inner = ", ".join(f"%x{i}: tensor<f32>, %y{i}: tensor<f32>" for i in range(n))
    names = ", ".join(f"%a{i}" for i in range(n))
    types = ", ".join(["tensor<6x7xf32>"] * n)
    text = f"""func.func public @main({args}) -> ({types}) {{
      %r:{n} = "stablehlo.sort"({names}) ({{
        ^bb0({inner}):
          %l = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
          "stablehlo.return"(%l) : (tensor<i1>) -> ()
      }}) {{dimension = {dim}, is_stable = true}} : ({types}) -> ({types})
      return {", ".join(f"%r#{i}" for i in range(n))} : {types}
    }}"""
    from jaxlib import _jax
    arrays = [few_numbers(i, "float32", 6, 7) for i in range(n)]
    order = np.argsort(arrays[0], dim, kind="stable")
    loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
    results = loaded.execute_sharded([jax.device_put(a, device) for a in arrays])
    for a, r in zip(arrays, results.disassemble_into_single_device_arrays(), strict=True):
        np.testing.assert_array_equal(np.asarray(r[0]), np.take_along_axis(a, order, dim))
