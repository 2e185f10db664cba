# SPDX-License-Identifier: Apache-2.0
"""Scatters of several arrays at once, of elements of different widths: StableHLO's text, as JAX has
no words for them, against NumPy, row after row (XLA's CPU backend refuses floats of two widths)."""
import itertools

import jax
import numpy as np
import pytest
from jaxlib import _jax

NAMES = {"int8": "i8", "float16": "f16", "int32": "i32", "float32": "f32", "int64": "i64",
         "float64": "f64", "complex128": "complex<f64>"}

# The bodies' results, of x and y (what is there) and p and q (updates).
BODIES = {
    "apart": """%c = stablehlo.add %x, %p : tensor<{0}>
        "stablehlo.return"(%c, %q) : (tensor<{0}>, tensor<{1}>) -> ()""",
    "coupled": """%r = stablehlo.real %x : (tensor<{0}>) -> tensor<{2}>
        %s = stablehlo.real %p : (tensor<{0}>) -> tensor<{2}>
        %l = stablehlo.compare LT, %r, %s : (tensor<{2}>, tensor<{2}>) -> tensor<i1>
        %c = stablehlo.select %l, %p, %x : tensor<i1>, tensor<{0}>
        %d = stablehlo.select %l, %q, %y : tensor<i1>, tensor<{1}>
        "stablehlo.return"(%c, %d) : (tensor<{0}>, tensor<{1}>) -> ()"""}

TEXT = """func.func public @main(%a: tensor<{5}x{0}>{6}, %b: tensor<{5}x{1}>, %i: tensor<3x{4}xi32>,
    %u: tensor<3x2x{0}>, %v: tensor<3x2x{1}>) -> (tensor<{5}x{0}>, tensor<{5}x{1}>) {{
  %r:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) ({{
    ^bb0(%x: tensor<{0}>, %y: tensor<{1}>, %p: tensor<{0}>, %q: tensor<{1}>):
        {3}
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [{7}], index_vector_dim = 1>,
      indices_are_sorted = false, unique_indices = true}} : (tensor<{5}x{0}>, tensor<{5}x{1}>,
        tensor<3x{4}xi32>, tensor<3x2x{0}>, tensor<3x2x{1}>) -> (tensor<{5}x{0}>, tensor<{5}x{1}>)
  return %r#0, %r#1 : tensor<{5}x{0}>, tensor<{5}x{1}>
}}"""


def run(device, text, args):
    loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
    got = loaded.execute_sharded([jax.device_put(a, device) for a in args])
    return [np.asarray(x[0]) for x in got.disassemble_into_single_device_arrays()]


def wanted(body, a, b, index, u, v):
    a, b = a.copy(), b.copy()
    for row, at in enumerate(index):
        for column in range(2):
            to = at[-1], column + (at[0] if len(at) == 2 else 0)
            x, p = a[to], u[row, column]
            if body == "apart":
                a[to], b[to] = x + p, v[row, column]
            elif x.real < p.real:
                a[to], b[to] = p, v[row, column]
    return a, b


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("first,second", list(itertools.permutations(NAMES, 2)))
def test_of_two_widths(device, first, second, body):
    rng = np.random.default_rng(1)
    a, b, u, v = (rng.integers(-9, 9, shape).astype(dtype) for shape in [(8, 5), (3, 2)]
                  for dtype in (first, second))
    real = NAMES[first].replace("complex<f64>", "f64")
    kind = BODIES[body].format(NAMES[first], NAMES[second], real)
    if np.dtype(first).kind not in "fc":
        kind = kind.replace("stablehlo.real %x", "stablehlo.convert %x")
        kind = kind.replace("stablehlo.real %p", "stablehlo.convert %p")
    one = np.array([[6], [2], [4]], np.int32)
    two = np.array([[1, 6], [3, 2], [0, 7]], np.int32)     # columns and rows
    with jax.enable_x64(True):
        for index, alias in itertools.product((one, two), ("", " {tf.aliasing_output = 0 : i32}")):
            to = "0" if index is one else "1, 0"
            text = TEXT.format(NAMES[first], NAMES[second], real, kind, index.shape[1], "8x5",
                               alias, to)
            got = run(device, text, (a, b, index, u, v))
            for x, y in zip(got, wanted(body, a, b, index, u, v), strict=True):
                np.testing.assert_array_equal(x, y)
