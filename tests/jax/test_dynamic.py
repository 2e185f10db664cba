# SPDX-License-Identifier: Apache-2.0
"""Dims of bounded size, which JAX itself never sends, by its client: programs of
tests/data/dynamic with the results there, and results that go into the next program."""

import pathlib
import sys

import jax
import numpy as np
import pytest
from jax._src.lib import xla_client

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "dynamic"
sys.path.insert(0, str(DATA))

from programs import PROGRAMS, V, bounded  # noqa: E402


def load(device, text):
    return device.client.compile_and_load(text, xla_client.DeviceList((device,)),
                                          xla_client.CompileOptions())


def run(loaded, device, *args):
    args = [a if isinstance(a, jax.Array) else jax.device_put(a, device) for a in args]
    out = loaded.execute_sharded(args).disassemble_into_single_device_arrays()
    return [a[0] for a in out]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_results_count_as_far_as_their_sizes(device, program):
    loaded = load(device, program.text())
    rng = np.random.default_rng(7)
    for sizes in list(program.runs())[-5:]:
        full, cut = program.inputs(sizes, rng)
        held = {n: min(max(v, 0), program.bounds[n]) for n, v in sizes.items()}
        want = program.reference(*cut, **held)
        want = want if isinstance(want, tuple) else (want,)
        got = run(loaded, device, *full, *(np.int32(v) for v in sizes.values()))
        for g, w, (_, *dims) in zip(got, want, program.results):
            g, w = np.asarray(g), np.asarray(w)
            if any(isinstance(d, str) for d in dims):
                # as long as its bounds, with zeros past what counts
                w = np.pad(w, [(0, n - m) for n, m in zip(g.shape, w.shape)])
            np.testing.assert_allclose(g, w, 1e-5, 1e-5)


SET = f"""module @set {{ func.func @main(%x: tensor<5xf32>, %n: tensor<i32>) -> {V} {{
  %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5xf32>, tensor<i32>) -> {V}
  return %r : {V} }} }}"""
SUM_OF = f"""module @sum {{ func.func @main(%x: {V}) -> (tensor<f32>, tensor<i32>, {V}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] :
    ({V}, tensor<f32>) -> tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : ({V}) -> tensor<i32>
  %y = stablehlo.add %x, %x : {V}
  return %s, %n, %y : tensor<f32>, tensor<i32>, {V} }} }}"""


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_a_result_is_an_argument(device, n):
    x = np.arange(1, 6, dtype=np.float32)
    part = run(load(device, SET), device, x, np.int32(n))[0]
    loaded = load(device, SUM_OF)
    s, size, y = run(loaded, device, part)
    assert (float(s), int(size)) == (x[:n].sum(), n)
    s, size, y = run(loaded, device, y)
    assert (float(s), int(size)) == (2 * x[:n].sum(), n)
    np.testing.assert_array_equal(np.asarray(y)[:n], 4 * x[:n])
    copy = jax.device_put(part, jax.devices("tessera")[0], may_alias=False)
    assert int(run(loaded, device, copy)[1]) == n


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_a_short_array_is_an_argument(device, n):
    x = np.arange(1, n + 1, dtype=np.float32)
    s, size, y = run(load(device, SUM_OF), device, x)
    assert (float(s), int(size)) == (x.sum(), n)
    np.testing.assert_array_equal(np.asarray(y)[:n], 2 * x)


def test_a_long_array_is_refused(device):
    with pytest.raises(Exception, match="dim 0 of argument 0 is 6: .* takes at most 5"):
        run(load(device, SUM_OF), device, np.ones(6, np.float32))


def test_a_dynamic_array_is_none_for_a_static_parameter(device):
    part = run(load(device, SET), device, np.ones(5, np.float32), np.int32(2))[0]
    with pytest.raises(Exception, match="argument 0 has a dim 0 of at most 5, whose size"):
        run(load(device, SET), device, part, np.int32(2))


def test_other_bounds_are_refused(device):
    other = bounded("f32", "6")
    part = run(load(device, SET.replace(V, other).replace("5xf32", "6xf32")), device,
               np.ones(6, np.float32), np.int32(2))[0]
    with pytest.raises(Exception, match="dim 0 of argument 0 is 6"):
        run(load(device, SUM_OF), device, part)


def test_sizes_survive_serialization(device):
    loaded = load(device, SUM_OF)
    data = loaded.serialize() if hasattr(loaded, "serialize") else \
        device.client.serialize_executable(loaded)
    again = device.client.deserialize_executable(
        data, xla_client.DeviceList((device,)), xla_client.CompileOptions())
    assert int(run(again, device, np.ones(3, np.float32))[1]) == 3


def test_a_module_that_has_no_bound_is_refused_by_name(device):
    with pytest.raises(Exception, match="argument 0 has a dim without a bound"):
        load(device, SUM_OF.replace(V, "tensor<?xf32>"))
