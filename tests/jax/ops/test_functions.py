# SPDX-License-Identifier: Apache-2.0
"""CHLO's functions as XLA hands them over, as custom calls of their names, over the whole range of
the type, ends included: against the CPU backend, which writes them out itself, and against numpy
where numbers are real (of f64 the CPU backend's log1p has errors of 80 units)."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax

FUNCTIONS = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
             "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh, "tan": np.tan}
REAL = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
COMPLEX = {"complex<f32>": np.complex64, "complex<f64>": np.complex128}
CPU = jax.devices("cpu")[0]


def run_on(device, name, types, outs, args, attributes=""):
    text = (f"module @m {{ func.func public @main(%x: {types}) -> ({', '.join(outs)}) {{\n"
            f"%r:{len(outs)} = stablehlo.custom_call @mhlo.{name}(%x) {{mhlo.attributes = "
            f"{{{attributes}}}, mhlo.version = 1 : i64}} : ({types}) -> ({', '.join(outs)})\n"
            f"return {', '.join(f'%r#{i}' for i in range(len(outs)))} : {', '.join(outs)} }} }}")
    with jax.enable_x64(True):
        loaded = device.client.compile_and_load(text.encode(), _jax.DeviceList((device,)),
                                                _jax.CompileOptions())
        results = loaded.execute_sharded([jax.device_put(args, device)])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def reals(dtype, n):
    """Ends, neighbours of 1, and numbers of all sizes and signs."""
    info = ml_dtypes.finfo(dtype)
    rng = np.random.default_rng(0)
    low, high = np.log2(float(info.smallest_normal)) + 1, np.log2(float(info.max)) - 0.1
    ends = [0.0, 1.0, 1 - float(info.epsneg), 1 + float(info.eps), 0.5, 1.5, 2.0, np.inf, np.nan,
            float(info.max), float(info.smallest_normal), float(info.max) ** 0.5]
    some = np.concatenate([ends, 2 ** rng.uniform(low, high, n), rng.uniform(0, 4, n),
                           1 - 2 ** rng.uniform(-20, 0, n)])
    return np.concatenate([some, -some]).astype(dtype)


def parts(a):
    return np.stack([a.real, a.imag]) if np.iscomplexobj(a) else a


def compare(got, true, units):
    """Each part, or real number: the same ends, and as near as a result of its size can be."""
    info = ml_dtypes.finfo(got.dtype)
    got, true = (parts(a).astype(np.float64) for a in (got, true))
    assert np.array_equal(np.isnan(got), np.isnan(true))
    near = ~np.isnan(true)
    got, true = got[near], true[near]
    inf = np.isinf(true) | np.isinf(got)
    assert np.array_equal(got[inf], true[inf])
    got, true = got[~inf], true[~inf]
    room = units * float(info.eps) * np.abs(true) + 4 * float(info.smallest_normal)
    wrong = np.abs(got - true) > room
    assert not wrong.any(), (got[wrong][:5], true[wrong][:5])


@pytest.mark.parametrize("of", REAL)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_real(device, name, of):
    x = reals(REAL[of], 300)
    if name == "tan":	# its period is not to be told apart from the argument's error beyond
        x = x[(np.abs(x.astype(np.float64)) < 1e4) | ~np.isfinite(x.astype(np.float64))]
    t = f"tensor<{len(x)}x{of}>"
    got, = run_on(device, name, t, [t], x)
    true, = run_on(CPU, name, t, [t], x)
    assert got.dtype == x.dtype
    compare(got, true, 128 if of == "f64" else 16 if of == "f32" else 3)
    with np.errstate(all="ignore"):
        compare(got, FUNCTIONS[name](x.astype(np.float64)).astype(x.dtype),
                16 if x.itemsize > 2 else 1)
    zero = (x == 0) & (true == 0)
    assert np.array_equal(np.signbit(got[zero].astype(np.float64)),
                          np.signbit(true[zero].astype(np.float64)))


@pytest.mark.parametrize("of", COMPLEX)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex(device, name, of):
    part = np.float32 if of == "complex<f32>" else np.float64
    x, y = reals(part, 60), reals(part, 60)
    if name in ("sinh", "cosh", "tan"):
        x, y = (a[(np.abs(a) < 80) & (np.abs(a) > 1e-3) | (a == 0)] for a in (x, y))
    z = np.empty((len(x), len(y)), COMPLEX[of])
    z.real, z.imag = x[:, None], y[None, :]
    t = f"tensor<{z.size}x{of}>"
    got, = run_on(device, name, t, [t], z.ravel())
    true, = run_on(CPU, name, t, [t], z.ravel())
    compare(got, true, 64)


@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("of, dtype", [("f32", np.float32), ("i32", np.int32), ("ui8", np.uint8),
                                       ("bf16", ml_dtypes.bfloat16)])
def test_top_k(device, of, dtype, largest):
    x = (np.arange(40) * 7 % 13).reshape(2, 20).astype(dtype)
    k = 6
    more = f"k = {k} : i64" + ("" if largest is None else f", largest = {str(largest).lower()}")
    v, at = run_on(device, "topk", f"tensor<2x20x{of}>",
                   [f"tensor<2x{k}x{of}>", f"tensor<2x{k}xi32>"], x, more)
    key = x.astype(np.float64) * (1 if largest is False else -1)
    order = np.argsort(key, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(at, order)
    np.testing.assert_array_equal(v, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("name, of, out, more, says", [
    ("topk", "4xf32", ["5xf32", "5xi32"], "k = 5 : i64", "mhlo.topk"),
    ("topk", "4xf32", ["2xf32", "2xi32"], "k = 3 : i64", "topk"),
    ("asin", "4xi32", ["4xi32"], "", "mhlo.asin"),
    ("lgamma", "4xf32", ["4xf32"], "", "mhlo.lgamma"),
])
def test_others_are_refused(device, name, of, out, more, says):
    with pytest.raises(jax.errors.JaxRuntimeError, match=says):
        run_on(device, name, f"tensor<{of}>", [f"tensor<{o}>" for o in out],
               np.zeros(4, np.int32 if "i32" in of else np.float32), more)


def test_complex_functions_do_not_depend_on_how_many_numbers_there_are():
    """Few, as loops over scalars have them, and whole blocks of 64 go different ways."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=200) * 10.0 ** rng.integers(-3, 2, 200)
         + 1j * rng.normal(size=200)).astype(np.complex64)
    x[::17] = np.array([0, np.inf, np.nan * 1j, -1j])[np.arange(12) % 4]
    functions = [jax.lax.tanh, jax.lax.sign, jax.lax.rsqrt, jax.lax.expm1, jax.numpy.tan,
                 lambda x: x / x[0], lambda x: x / (x + 1), lambda x: jax.lax.pow(x, x)]
    for f in map(jax.jit, functions):
        true = np.asarray(f(x))
        for n in (1, 2, 7, 8, 9, 15, 63, 64, 65, 72, 128, 137):
            np.testing.assert_array_equal(np.asarray(f(x[:n])).view(np.uint32),
                                          true[:n].view(np.uint32))
