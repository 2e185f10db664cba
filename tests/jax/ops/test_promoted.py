# SPDX-License-Identifier: Apache-2.0
"""Ops whose body computes in a wider type than what they are given, which StableHLO allows and XLA
doesn't take: against numpy, which converts first, as the specification does."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax

TYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8,
         "i32": np.int32, "ui8": np.uint8, "ui16": np.uint16, "complex<f32>": np.complex64,
         "complex<f64>": np.complex128}
PAIRS = [("bf16", "f32"), ("f32", "f64"), ("i8", "i32"), ("ui8", "ui16"),
         ("complex<f32>", "complex<f64>")]


@pytest.fixture(scope="module")
def run(device):
    def on_device(body, *args):
        text = f"module @m {{ func.func public @main{body} }}"
        loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
        with jax.enable_x64(True):
            results = loaded.execute_sharded([jax.device_put(a, device) for a in args])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]
    return on_device


def numbers(shape, dtype):
    """Of which sums in their own type are others than in a wider one."""
    x = np.arange(np.prod(shape)).reshape(shape) * 7 % 131
    return (x if np.dtype(dtype).kind == "u" else x - 60).astype(dtype)


def add(t):
    return (f"({{ ^bb0(%p: tensor<{t}>, %q: tensor<{t}>): %s = stablehlo.add %p, %q : tensor<{t}> "
            f'"stablehlo.return"(%s) : (tensor<{t}>) -> () }})')


@pytest.mark.parametrize("narrow_initial", [False, True])
@pytest.mark.parametrize("a, r", PAIRS)
def test_reductions(run, a, r, narrow_initial):
    i = a if narrow_initial else r
    x = numbers((4, 300), TYPES[a])
    out, = run(f'(%x: tensor<4x300x{a}>, %i: tensor<{i}>) -> tensor<4x{r}> {{ '
               f'%0 = "stablehlo.reduce"(%x, %i) {add(r)} {{dimensions = array<i64: 1>}} : '
               f'(tensor<4x300x{a}>, tensor<{i}>) -> tensor<4x{r}> return %0 : tensor<4x{r}> }}',
               x, np.ones((), TYPES[i]))
    assert out.dtype == TYPES[r]
    np.testing.assert_array_equal(out, x.astype(TYPES[r]).sum(1, dtype=TYPES[r]) + TYPES[r](1))


@pytest.mark.parametrize("a, r", PAIRS)
def test_windows(run, a, r):
    x = numbers((4, 30), TYPES[a])
    out, = run(f'(%x: tensor<4x30x{a}>, %i: tensor<{r}>) -> tensor<4x28x{r}> {{ '
               f'%0 = "stablehlo.reduce_window"(%x, %i) {add(r)} '
               f'{{window_dimensions = array<i64: 1, 3>}} : (tensor<4x30x{a}>, tensor<{r}>) -> '
               f'tensor<4x28x{r}> return %0 : tensor<4x28x{r}> }}', x, np.zeros((), TYPES[r]))
    wide = x.astype(TYPES[r])
    np.testing.assert_array_equal(out, wide[:, :28] + wide[:, 1:29] + wide[:, 2:])


@pytest.mark.parametrize("a, r", PAIRS)
def test_scatters(run, a, r):
    x, u = numbers((4,), TYPES[a]), numbers((6,), TYPES[a])
    at = np.array([[0], [3], [3], [3], [1], [3]], np.int32)
    out, = run(f'(%x: tensor<4x{a}>, %k: tensor<6x1xi32>, %u: tensor<6x{a}>) -> tensor<4x{r}> {{ '
               f'%0 = "stablehlo.scatter"(%x, %k, %u) {add(r)} {{scatter_dimension_numbers = '
               '#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = '
               f'[0], index_vector_dim = 1>}} : (tensor<4x{a}>, tensor<6x1xi32>, tensor<6x{a}>) '
               f'-> tensor<4x{r}> return %0 : tensor<4x{r}> }}', x, at, u)
    true = x.astype(TYPES[r])
    np.add.at(true, at[:, 0], u.astype(TYPES[r]))
    np.testing.assert_array_equal(out, true)


@pytest.mark.parametrize("a, r", PAIRS)
def test_all_reduces(run, a, r):
    x = numbers((5,), TYPES[a])
    out, = run(f'(%x: tensor<5x{a}>) -> tensor<5x{r}> {{ %0 = "stablehlo.all_reduce"(%x) {add(r)} '
               f'{{replica_groups = dense<0> : tensor<1x1xi64>}} : (tensor<5x{a}>) -> '
               f'tensor<5x{r}> return %0 : tensor<5x{r}> }}', x)
    np.testing.assert_array_equal(out, x.astype(TYPES[r]))


def test_one_of_two_arrays(run):
    x, y = numbers((9,), np.int8), numbers((9,), np.int32)
    s, t = run('(%x: tensor<9xi8>, %y: tensor<9xi32>, %i: tensor<i32>) -> (tensor<i32>, '
               'tensor<i32>) { %0:2 = "stablehlo.reduce"(%x, %y, %i, %i) ({ ^bb0(%p: tensor<i32>, '
               '%q: tensor<i32>, %u: tensor<i32>, %v: tensor<i32>): %s = stablehlo.add %p, %u : '
               'tensor<i32> %t = stablehlo.maximum %q, %v : tensor<i32> "stablehlo.return"(%s, %t) '
               ': (tensor<i32>, tensor<i32>) -> () }) {dimensions = array<i64: 0>} : (tensor<9xi8>,'
               ' tensor<9xi32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) '
               'return %0#0, %0#1 : tensor<i32>, tensor<i32> }', x, y, np.int32(5))
    assert int(s) == x.astype(np.int32).sum() + 5
    assert int(t) == max(y.max(), 5)
