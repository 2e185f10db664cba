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


# One array becomes what another one was, or is given, or the same everywhere.
CROSSED = {
    "old": ("%y, %x", lambda x, y, p, q: (y, x)),
    "new": ("%q, %p", lambda x, y, p, q: (q, p)),
    "both": ("%q, %x", lambda x, y, p, q: (q, x)),
    "constant": ("%c, %p", lambda x, y, p, q: (7, p)),
    "behind": ("%q, %c", lambda x, y, p, q: (q, 7))}


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


@pytest.mark.parametrize("body", CROSSED)
def test_arrays_that_become_each_other(device, body):
    rng = np.random.default_rng(2)
    names, what = CROSSED[body]
    a, b, u, v = (rng.integers(-9, 9, shape).astype(np.float32) for shape in [(8, 5), (3, 2)]
                  for _ in range(2))
    kind = f"""%c = stablehlo.constant dense<7.0> : tensor<f32>
        "stablehlo.return"({names}) : (tensor<f32>, tensor<f32>) -> ()"""
    index = np.array([[6], [2], [6]], np.int32)
    text = TEXT.format("f32", "f32", "f32", kind, 1, "8x5", "", "0")
    got = run(device, text.replace("unique_indices = true", "unique_indices = false"),
              (a, b, index, u, v))
    for row, at in enumerate(index[:, 0]):
        for k in range(2):
            a[at, k], b[at, k] = what(a[at, k], b[at, k], u[row, k], v[row, k])
    np.testing.assert_array_equal(got[0], a)
    np.testing.assert_array_equal(got[1], b)


# How wide rows are: a scalar, some, on both sides of what is done at a time.
@pytest.mark.parametrize("width", [1, 2, 7, 33, 1023, 1024, 1025, 4097])
@pytest.mark.parametrize("op,dtype", [
    *itertools.product(["add", "multiply", "subtract"],
                       ["float32", "bfloat16", "int8", "complex64"]),
    *itertools.product(["max", "min"], ["float32", "bfloat16", "int8"])])
def test_one_update_for_a_whole_window(device, op, dtype, width):
    rng = np.random.default_rng(width)
    x = rng.integers(-5, 5, (6, 2, width)).astype(dtype)
    index = np.array([4, 0, 4, 9, 4, 1], np.int32)      # one is outside, one comes three times
    each = rng.integers(-2, 3, 6).astype(dtype)

    def put(x, i, v):
        return getattr(x.at[i], op)(v[:, None, None], mode="drop")

    def put_one(x, i, v):
        return getattr(x.at[i], op)(jax.numpy.asarray(-2, dtype), mode="drop")

    numpy_op = {"max": np.maximum, "min": np.minimum}.get(op) or getattr(np, op)
    for f, values in (put, each), (put_one, np.full(6, -2).astype(dtype)):
        got = jax.jit(f)(*(jax.device_put(a, device) for a in (x, index, each)))
        want = x.copy()
        for at, value in zip(index, values, strict=True):
            if at < 6:
                want[at] = numpy_op(want[at], value)
        np.testing.assert_array_equal(np.asarray(got), want)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 3.0e38, 1e-39]


def extreme(old, new, most):
    """NaN wins, and +0 is more than -0."""
    if np.isnan(old) or np.isnan(new):
        return old if np.isnan(old) else new
    if old == new:
        return old if np.signbit(old) != most else new
    return max(old, new) if most else min(old, new)


# Single elements, and rows of less than a line of the cache and of more; places come many times.
@pytest.mark.parametrize("width", [1, 3, 8, 13, 40])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["add", "multiply", "max", "min"])
def test_updates_one_after_the_other(device, op, dtype, width):
    rng = np.random.default_rng(width)
    x = rng.standard_normal((9, width)).astype(dtype)
    u = rng.standard_normal((300, width)).astype(dtype)
    if op in ("max", "min"):
        x = np.array(SPECIAL, dtype)[:, None] + np.zeros((9, width), dtype)
        x[1] = -0.0 if op == "max" else 0.0
        u[:90] = rng.choice(np.array(SPECIAL[:4] + SPECIAL[5:], dtype), (90, width))
        u[290:] = np.nan
    index = rng.integers(-2, 11, 300).astype(np.int32)
    index[290:] = 3
    if op in ("max", "min"):    # of zeros alone
        u[index == 1] = rng.choice(np.array([0.0, -0.0], dtype), u[index == 1].shape)
    want = x.copy()
    numpy_op = {"add": np.add, "multiply": np.multiply}.get(op)
    for at, row in zip(index, u, strict=True):
        if 0 <= at < 9:
            want[at] = numpy_op(want[at], row) if numpy_op else [
                extreme(a, b, op == "max") for a, b in zip(want[at], row, strict=True)]

    def put(x, i, u):
        x, u = (x[:, 0], u[:, 0]) if width == 1 else (x, u)
        return getattr(x.at[i], op)(u, mode="drop", wrap_negative_indices=False)

    got = np.asarray(jax.jit(put)(*(jax.device_put(a, device) for a in (x, index, u))))
    got, want = (a.reshape(9, width).astype(np.float32) for a in (got, want))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


# Rows so long that the lanes share each one: cut in parts evenly, or not, and not in one piece.
@pytest.mark.parametrize("width", [4096, 5005, 10007, 65536])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("index", [[2], [-1, 3, 9, 3]])
def test_few_long_rows(device, index, dtype, width):
    rng = np.random.default_rng(width)
    x = rng.integers(-9, 9, (5, width)).astype(dtype)
    u = rng.integers(-9, 9, (len(index), width)).astype(dtype)
    i = np.array(index, np.int32)

    def f(x, i, u):
        how = dict(mode="drop", wrap_negative_indices=False)
        return (x.at[i].set(u, **how), x.at[i].add(u, **how), x.at[i].max(u, **how),
                x.T.at[:, i].set(u.T, **how), x.at[i].set(u[:, :1], **how),
                jax.numpy.take(x, i, 0, mode="clip"), jax.numpy.take(x.T, i, 1, mode="clip"))

    want = [x.copy(), x.copy(), x.copy(), x.copy(), x.copy()]
    for at, row in zip(index, u, strict=True):
        if 0 <= at < 5:
            want[0][at] = want[3][at] = row
            want[1][at] += row
            want[2][at] = np.maximum(want[2][at], row)
            want[4][at] = row[0]
    want[3] = want[3].T
    want += [x[np.clip(i, 0, 4)], x[np.clip(i, 0, 4)].T]
    got = jax.jit(f)(*(jax.device_put(a, device) for a in (x, i, u)))
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(np.asarray(a), b, err_msg=str(k))


@pytest.mark.parametrize("what, places", [("the table's gradient", 3), ("what is made", 1)])
def test_scatters_add_where_the_result_is(what, places, device, cpu):
    """A table that is looked up several times has one gradient; neither it nor what is made for
    updates alone is somewhere else before."""
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, (3000, 8)).astype("float32")
    at = rng.integers(-3000, 3000, (places, 500)).astype("int32")

    def looked_up(x, at):
        return sum((x[i] * (k + 1) ** 2).sum() for k, i in enumerate(at))

    def made(x, at):
        return (x * 2).at[at[0]].add(x[:500])

    f = jax.jit(jax.grad(looked_up) if places > 1 else made)
    got, want = (np.asarray(f(*jax.device_put((x, at), d))) for d in (device, cpu))
    np.testing.assert_array_equal(got, want)
    on_it = f.lower(*jax.device_put((x, at), device)).compile()
    assert on_it.memory_analysis().temp_size_in_bytes < x.nbytes / 2
