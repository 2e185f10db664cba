# SPDX-License-Identifier: Apache-2.0
"""Uniform quantized types: programs of StableHLO's text, as JAX has no words for them, against
StableHLO's own interpreter where it is right, and against its specification written in numpy.

The interpreter (jaxlib 0.10.2) takes unsigned integers for signed ones and truncates in products,
so these are numpy's. jaxlib ends the process on a main whose arguments or results are quantized:
programs here quantize and dequantize within; `unit/rt/rt_quantized_test.c` has the others.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import mhlo, stablehlo

FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": jnp.bfloat16}


class Quant:
    """A type, and the specification's quantize() and dequantize()."""

    def __init__(self, text):
        self.text = text
        sign, bits, low, high, self.expressed, dim, pairs = re.fullmatch(
            r"!quant.uniform<([iu])(\d+)(?:<(-?\d+):(-?\d+)>)?:(\w+)(?::(\d+))?, "
            r"\{?([^}]*?)\}?>", text).groups()
        least = -(1 << int(bits) - 1) if sign == "i" else 0
        self.low = least if low is None else int(low)
        self.high = least + (1 << int(bits)) - 1 if high is None else int(high)
        self.dim = None if dim is None else int(dim)
        self.float = FLOATS[self.expressed]
        pairs = [p.split(":") for p in pairs.split(",")]
        self.scale = np.array([float(p[0]) for p in pairs]).astype(self.float)
        self.zero = np.array([int(p[1]) if len(p) > 1 else 0 for p in pairs])

    def spread(self, values, rank):
        return values[0] if self.dim is None else values.reshape(
            [-1 if d == self.dim else 1 for d in range(rank)])

    def quantize(self, x):
        with np.errstate(over="ignore"):
            x = x.astype(self.float) / self.spread(self.scale, x.ndim)
            x = x + self.spread(self.zero, x.ndim).astype(self.float)
        x = np.clip(x, self.float(self.low), self.float(self.high))
        x = np.where(np.isnan(x), 0, np.rint(x.astype(np.float64)))
        return np.clip(x, self.low, self.high).astype(np.int64)

    def dequantize(self, i):
        return ((i - self.spread(self.zero, i.ndim)).astype(self.float)
                * self.spread(self.scale, i.ndim)).astype(self.float)

    def near(self, x):
        """The numbers that x becomes."""
        return self.dequantize(self.quantize(x))


def tensor(shape, element):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{getattr(element, 'text', element)}>"


class Program:
    """Lines of main; names are those of its values, whose types it keeps."""

    def __init__(self):
        self.lines, self.args, self.types, self.returns = [], [], {}, []

    def op(self, text, operands, shape, element):
        name = f"%{len(self.lines)}"
        types = [self.types[o] for o in operands]
        self.types[name] = tensor(shape, element)
        self.lines.append(f"{name} = \"stablehlo.{text.split(' ', 1)[0]}\"({', '.join(operands)}) "
                          f"{(text + ' ').split(' ', 1)[1]}: ({', '.join(types)}) -> "
                          f"{self.types[name]}")
        return name

    def argument(self, shape, quant=None, element="f32"):
        """An f32 argument, in the quantized type's numbers."""
        name = f"%a{len(self.args)}"
        self.args.append(name)
        self.types[name] = tensor(shape, element)
        if quant and quant.expressed != element:
            name = self.op("convert", [name], shape, quant.expressed)
        return self.op("uniform_quantize", [name], shape, quant) if quant else name

    def result(self, name, shape, quant=None):
        if quant:
            name = self.op("uniform_dequantize", [name], shape, quant.expressed)
        if self.types[name] != tensor(shape, "f32"):
            name = self.op("convert", [name], shape, "f32")
        self.returns.append(name)
        return self

    @property
    def text(self):
        types = ", ".join(self.types[r] for r in self.returns)
        return (f"module @q {{ func.func public @main("
                f"{', '.join(f'{a}: {self.types[a]}' for a in self.args)}) -> ({types}) {{\n"
                + "\n".join(self.lines) +
                f"\nreturn {', '.join(self.returns)} : {types}\n}} }}")


@pytest.fixture(scope="module")
def on_device(device):
    def run(program, *args):
        text = getattr(program, "text", program)
        loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
        results = loaded.execute_sharded([jax.device_put(a, device) for a in args])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]
    return run


@pytest.fixture(scope="module")
def interpreted():
    context = mlir.make_ir_context()
    mhlo.register_mhlo_dialect(context)

    def run(program, *args):
        text = getattr(program, "text", program)
        # JAX's own contexts do not know quantized types until they are read from an artifact
        artifact = _jax.mlir.serialize_portable_artifact(text, "1.17.0", True)
        module = stablehlo.deserialize_portable_artifact(context, artifact)
        with context:
            args = [ir.DenseElementsAttr.get(np.ascontiguousarray(a), shape=a.shape)
                    for a in args]
            return [np.array(r) for r in stablehlo.eval_module(module, args)]
    return run


def per_axis(rng, storage, expressed, dim, n, scales=(.01, .2), zeros=0):
    scale = rng.uniform(*scales, n).astype(np.float32)
    zero = rng.integers(-zeros, zeros + 1, n)
    return Quant(f"!quant.uniform<{storage}:{expressed}:{dim}, {{" + ", ".join(
        f"{float(s)!r}:{z}" for s, z in zip(scale, zero)) + "}>")


def few_steps(got, want, quant, share=0.0):
    """Equal, but for a share of numbers that lay between two integers and took the other."""
    steps = np.rint((got.astype(np.float64) - want.astype(np.float64)) /
                    float(quant.scale.max()))
    assert np.abs(steps).max(initial=0) <= 1
    assert np.count_nonzero(steps) <= max(share * steps.size, 1 if share else 0)
    np.testing.assert_allclose(got[steps == 0], want[steps == 0], rtol=1e-6)


# ---- to and from floats ----

TYPES = ["i8:f32, 0.5:3", "i8<-100:99>:f32, 0.3:-7", "u8:f32, 0.7:130", "u8<1:254>:f32, 0.1:1",
         "i4:f32, 11.5:3", "u4:f32, 5.25:0", "i16:f32, 0.01:-300", "u16:f32, 0.01:40000",
         "i32:f32, 0.001:30000", "i32<-16777217:16777217>:f32, 1.0e-06:5", "i2:f32, 3.0:1",
         "i8:bf16, 0.3:-7", "u8:bf16, 0.5:200", "i4:bf16, 4.0:1", "i16:bf16, 0.01:1001",
         "i8:f16, 0.3:-7", "u8:f16, 0.125:130", "i16<-32766:32766>:f16, 0.01:77",
         "i8:f64, 0.1:-3", "i32:f64, 1.0e-05:-70000"]


def numbers(rng, quant, shape):
    """Some within the type's range and some out of it, ties, and what has no number."""
    span = float(quant.high - quant.low) * float(quant.scale.max())
    x = (rng.standard_normal(shape) * min(span, 1e4)).astype(np.float32)
    odd = np.array([0, -0.0, np.inf, -np.inf, 1e30, -1e30, np.nan], np.float32)
    halves = (np.arange(40) / 2 - 10).astype(np.float32) * np.float32(quant.scale.max())
    odd = np.concatenate([odd, halves])[:x.size]
    x.reshape(-1)[:odd.size] = odd
    return x


@pytest.mark.parametrize("text", TYPES)
def test_numbers_become_integers_and_come_back(text, on_device):
    q = Quant(f"!quant.uniform<{text}>")
    x = numbers(np.random.default_rng(1), q, (67, 131))
    p = Program()
    if q.expressed == "f64":
        wide = p.op("convert", [p.argument(x.shape)], x.shape, "f64")
        v = p.op("uniform_quantize", [wide], x.shape, q)
    else:
        v = p.argument(x.shape, q)
    got, = on_device(p.result(v, x.shape, q), x)
    np.testing.assert_array_equal(got, q.near(x).astype(np.float32))


@pytest.mark.parametrize("dim,shape", [(0, (5,)), (1, (64, 64)), (0, (65, 3)), (2, (2, 3, 129)),
                                       (1, (4, 1, 6))])
@pytest.mark.parametrize("kind", ["i8:f32", "u8:f32", "i16:f32", "i4:bf16", "i32:f32"])
def test_scales_along_a_dim(kind, dim, shape, on_device):
    rng = np.random.default_rng(2)
    storage, expressed = kind.split(":")
    q = per_axis(rng, storage, expressed, dim, shape[dim], zeros=0 if storage[0] == "u" else 7)
    x = numbers(rng, q, shape)
    p = Program()
    got, = on_device(p.result(p.argument(shape, q), shape, q), x)
    np.testing.assert_array_equal(got, q.near(x).astype(np.float32))


@pytest.mark.parametrize("to", ["i8:f32, 0.7:-20", "u8:f32, 0.5:128", "i16:f32, 0.013:5",
                                "i4:f32, 9.0:1"])
def test_one_quantized_type_becomes_another(to, on_device):
    a, b = Quant("!quant.uniform<i8:f32, 0.5:3>"), Quant(f"!quant.uniform<{to}>")
    x = numbers(np.random.default_rng(3), a, (300,))
    p = Program()
    v = p.op("uniform_quantize", [p.argument(x.shape, a)], x.shape, b)
    got, = on_device(p.result(v, x.shape, b), x)
    np.testing.assert_array_equal(got, b.near(a.near(x)))


# ---- element by element ----

UNARY = """abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic
negate round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh""".split()
BINARY = "add subtract multiply divide power remainder atan2 maximum minimum".split()


@pytest.mark.parametrize("text", ["i8:f32, 0.5:3", "i8<-100:99>:f32, 0.3:-7", "i4:f32, 11.5:3",
                                  "i16:f32, 0.01:3"])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_ops_compute_with_the_numbers(name, text, on_device, interpreted):
    q = Quant(f"!quant.uniform<{text}>")
    rng = np.random.default_rng(4)
    args = [(rng.standard_normal(700) * 40).astype(np.float32)
            for _ in range(2 if name in BINARY else 1)]
    p = Program()
    v = p.op(name, [p.argument((700,), q) for _ in args], (700,), q)
    p.result(v, (700,), q)
    few_steps(on_device(p, *args)[0], interpreted(p, *args)[0], q, 0.003)


EXACT = {"abs": np.abs, "negate": np.negative, "floor": np.floor, "add": np.add,
         "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
         "minimum": np.minimum}

# By the specification, in doubles.
MATH = dict(EXACT, cbrt=np.cbrt, ceil=np.ceil, cosine=np.cos, exponential=np.exp,
            exponential_minus_one=np.expm1, log=np.log, log_plus_one=np.log1p,
            logistic=lambda x: 1 / (1 + np.exp(-x)), rsqrt=lambda x: 1 / np.sqrt(x), sign=np.sign,
            round_nearest_afz=lambda x: np.trunc(x + np.copysign(.5, x)), sine=np.sin,
            round_nearest_even=np.rint, sqrt=np.sqrt, tan=np.tan, tanh=np.tanh, divide=np.divide,
            power=np.power, remainder=np.fmod, atan2=np.arctan2)
STORAGE = ["i4", "u4", "i8", "u8", "i16", "u16"]


def of_storage(storage, rng=None, dim=None, n=None):
    """From about -8 to 8, with a scale for each of n indices of a dim if there is one."""
    scale = 16 / (1 << int(storage[1:]))
    zero = 1 if storage[0] == "i" else (1 << int(storage[1:]) - 1) - 3
    if dim is None:
        return Quant(f"!quant.uniform<{storage}:f32, {scale}:{zero}>")
    pairs = ", ".join(f"{scale * float(f)}:{zero + int(z)}" for f, z in zip(
        rng.choice([1, .5, 1.5, .75], n), rng.integers(-2, 3, n)))
    return Quant(f"!quant.uniform<{storage}:f32:{dim}, {{{pairs}}}>")


# An addition alone may have a scale for each index of a dim.
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("name,along", [(n, None) for n in UNARY + BINARY] + [("add", 0),
                                                                             ("add", 1)])
def test_ops_compute_in_every_storage(name, along, storage, on_device):
    rng = np.random.default_rng(20)
    shape = (9, 65)
    q = of_storage(storage) if along is None else of_storage(storage, rng, along, shape[along])
    args = [rng.uniform(-9, 9, shape).astype(np.float32) for _ in range(1 + (name in BINARY))]
    p = Program()
    p.result(p.op(name, [p.argument(shape, q) for _ in args], shape, q), shape, q)
    with np.errstate(all="ignore"):
        want = q.near(MATH[name](*[q.near(a).astype(np.float64) for a in args]))
    few_steps(on_device(p, *args)[0], want, q, 0.01)


def test_operands_and_result_of_types_of_their_own(on_device):
    a, b, c = (Quant(f"!quant.uniform<{t}>") for t in
               ("i8:f32, 0.5:3", "u8:f32, 0.3:100", "i16:f32, 0.01:-5"))
    rng = np.random.default_rng(5)
    x, y = ((rng.standard_normal(500) * 30).astype(np.float32) for _ in range(2))
    p = Program()
    v = p.op("multiply", [p.argument((500,), a), p.argument((500,), b)], (500,), c)
    # the verifier of jaxlib wants one storage type; the text says so itself
    with pytest.raises(Exception, match="compatible|same"):
        on_device(p.result(v, (500,), c), x, y)
    b, c = Quant("!quant.uniform<i8:f32, 0.3:-9>"), Quant("!quant.uniform<i8:f32, 12.5:1>")
    p = Program()
    v = p.op("multiply", [p.argument((500,), a), p.argument((500,), b)], (500,), c)
    got, = on_device(p.result(v, (500,), c), x, y)
    np.testing.assert_array_equal(got, c.near(a.near(x) * b.near(y)))


def test_comparisons_choices_and_bounds(on_device):
    q = Quant("!quant.uniform<u8:f32, 0.5:120>")
    rng = np.random.default_rng(6)
    x, y = ((rng.standard_normal(300) * 30).astype(np.float32) for _ in range(2))
    p = Program()
    a, b = p.argument((300,), q), p.argument((300,), q)
    less = p.op("compare {comparison_direction = #stablehlo<comparison_direction LT>}", [a, b],
                (300,), "i1")
    p.result(p.op("select", [less, a, b], (300,), q), (300,), q)
    p.result(p.op("clamp", [a, b, a], (300,), q), (300,), q)
    p.result(p.op("convert", [p.op("is_finite", [a], (300,), "i1")], (300,), "f32"), (300,))
    x_, y_ = q.near(x), q.near(y)
    for got, want in zip(on_device(p, x, y), (np.minimum(x_, y_), x_, np.ones(300))):
        np.testing.assert_array_equal(got, want)


# ---- products ----

def dot(p, x, y, a, b, c, expressed, dims="[1]", more=""):
    algorithm = (f"dot_general {{dot_dimension_numbers = #stablehlo.dot<{more}"
                 f"lhs_contracting_dimensions = {dims}, rhs_contracting_dimensions = {dims[:-2]}"
                 f"{int(dims[-2]) - 1}]>}}")
    left = p.argument(x.shape, a)
    if not a and expressed != "f32":
        left = p.op("convert", [left], x.shape, expressed)
    shape = x.shape[:-1] + y.shape[-1:]
    v = p.op(algorithm, [left, p.argument(y.shape, b)], shape, c or expressed)
    return p.result(v, shape, c)


PRODUCTS = {
    "i8": ("i8:f32, 0.3:-7", "i8:f32, 0.1", "i8:f32, {}:5"),
    "i8 without zero points": ("i8:f32, 0.3", "i8:f32, 0.1", "i8:f32, {}"),
    "to i32": ("i8:f32, 0.3:-7", "i8:f32, 0.1", "i32:f32, 0.03"),
    "u8": ("u8:f32, 0.3:120", "u8:f32, 0.02", "u8:f32, {}:7"),
    "i4": ("i4:f32, 2.0:1", "i4:f32, 1.0", "i4:f32, {}:1"),
    "i16": ("i16:f32, 0.02:100", "i16:f32, 0.01", "i16:f32, 0.25"),
    "i32": ("i32:f32, 0.02:100", "i32:f32, 0.01", "i32:f32, 0.25"),
    "f64": ("i8:f64, 0.3:-7", "i8:f64, 0.1", "i8:f64, {}:5"),
    "bf16": ("i8:bf16, 0.3:-7", "i8:bf16, 0.1", "i8:bf16, {}:5"),
    "f16": ("i8:f16, 0.3:-7", "i8:f16, 0.1", "i8:f16, {}:5"),
}


@pytest.mark.parametrize("m,k,n", [(1, 3, 2), (64, 64, 64), (65, 129, 67), (3, 1030, 31)])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_products(kind, m, k, n, on_device):
    a, b, c = (Quant(f"!quant.uniform<{t.format(1.5 * k ** .5)}>") for t in PRODUCTS[kind])
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((m, k)) * 10).astype(np.float32)
    y = (rng.standard_normal((k, n)) * 3).astype(np.float32)
    p = dot(Program(), x, y, a, b, c, a.expressed)
    if a.expressed == "f64":
        p = Program()
        wide = [p.op("uniform_quantize", [p.op("convert", [p.argument(v.shape)], v.shape, "f64")],
                     v.shape, q) for v, q in ((x, a), (y, b))]
        v = p.op("dot_general {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions "
                 "= [1], rhs_contracting_dimensions = [0]>}", wide, (m, n), c)
        p.result(v, (m, n), c)
    want = a.near(x).astype(np.float64) @ b.near(y).astype(np.float64)
    few_steps(on_device(p, x, y)[0], c.near(want), c,
              0.02 if c.expressed in ("bf16", "f16") else 0.002)


@pytest.mark.parametrize("m,k,n", [(5, 3, 2), (64, 64, 64), (65, 129, 67)])
def test_products_with_a_scale_for_each_column(m, k, n, on_device):
    rng = np.random.default_rng(8)
    x = (rng.standard_normal((m, k)) * 10).astype(np.float32)
    y = (rng.standard_normal((k, n)) * 3).astype(np.float32)
    a, b = Quant("!quant.uniform<i8:f32, 0.3:-7>"), per_axis(rng, "i8", "f32", 1, n)
    for c in (Quant(f"!quant.uniform<i8:f32, {k ** .5}:5>"),
              per_axis(rng, "i32", "f32", 1, n, (.03, .04))):
        got, = on_device(dot(Program(), x, y, a, b, c, "f32"), x, y)
        few_steps(got, c.near(a.near(x).astype(np.float64) @ b.near(y)), c, 0.01)


@pytest.mark.parametrize("expressed", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("along", [None, 1])
def test_floats_times_integers(along, expressed, on_device):
    rng = np.random.default_rng(9)
    x = rng.standard_normal((33, 70)).astype(np.float32)
    y = rng.standard_normal((70, 65)).astype(np.float32)
    b = Quant(f"!quant.uniform<i8:{expressed}, 0.03125>") if along is None else per_axis(
        rng, "i8", expressed, 1, 65)
    got, = on_device(dot(Program(), x, y, None, b, None, expressed), x, y)
    want = x.astype(FLOATS[expressed]).astype(np.float64) @ b.near(y).astype(np.float64)
    np.testing.assert_allclose(got, want.astype(FLOATS[expressed]).astype(np.float32), atol=1e-4,
                               rtol={"f32": 1e-5, "bf16": 8e-3, "f16": 1e-3}[expressed])


@pytest.mark.parametrize("along", [0, 2])
def test_batches_of_products_with_a_scale_for_each_matrix_or_column(along, on_device):
    rng = np.random.default_rng(10)
    x = (rng.standard_normal((3, 5, 40)) * 10).astype(np.float32)
    y = (rng.standard_normal((3, 40, 6)) * 3).astype(np.float32)
    a = Quant("!quant.uniform<i8:f32, 0.3:-7>")
    b = per_axis(rng, "i8", "f32", along, y.shape[along])
    c = Quant("!quant.uniform<i16:f32, 0.1:5>")
    p = dot(Program(), x, y, a, b, c, "f32", "[2]",
            "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], ")
    # one storage type for operands and another for the result is what the specification allows
    few_steps(on_device(p, x, y)[0], c.near(a.near(x).astype(np.float64) @ b.near(y)), c, 0.01)


def conv(p, x, y, a, b, c, shape, strides=1, pad=1, groups=1):
    text = (f"convolution {{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->"
            f"[b, 0, 1, f]>, window_strides = array<i64: {strides}, {strides}>, "
            f"padding = dense<{pad}> : tensor<2x2xi64>, feature_group_count = {groups} : i64, "
            f"batch_group_count = 1 : i64}}")
    left = p.argument(x.shape, a)
    return p.result(p.op(text, [left, p.argument(y.shape, b)], shape, c or "f32"), shape, c)


def summed_windows(x, y, groups):
    x = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = x.shape[1] - 2, x.shape[2] - 2
    per, out = x.shape[3] // groups, y.shape[3] // groups
    result = np.zeros((x.shape[0], rows, columns, y.shape[3]))
    for g in range(groups):
        for i in range(3):
            for j in range(3):
                part = x[:, i:i + rows, j:j + columns, g * per:(g + 1) * per]
                result[..., g * out:(g + 1) * out] += part @ y[i, j, :, g * out:(g + 1) * out]
    return result


@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("kind", ["i8", "i8 per channel", "u8", "hybrid", "hybrid per channel"])
def test_convolutions(kind, groups, on_device):
    rng = np.random.default_rng(11)
    x = (rng.standard_normal((2, 9, 8, 16)) * 10).astype(np.float32)
    y = (rng.standard_normal((3, 3, 16 // groups, 24)) * 2).astype(np.float32)
    a = Quant("!quant.uniform<u8:f32, 0.3:120>" if kind == "u8" else
              "!quant.uniform<i8:f32, 0.3:-7>")
    b = per_axis(rng, "i8", "f32", 3, 24) if "channel" in kind else Quant(
        f"!quant.uniform<{kind if kind == 'u8' else 'i8'}:f32, 0.05>")
    c = Quant(f"!quant.uniform<{kind if kind == 'u8' else 'i8'}:f32, 3.07:7>")
    if "hybrid" in kind:
        a = c = None
    want = summed_windows(a.near(x) if a else x, b.near(y), groups)
    p = conv(Program(), x, y, a, b, c, want.shape, groups=groups)
    got, = on_device(p, x, y)
    if c:
        few_steps(got, c.near(want), c, 0.002)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)


# ---- ops that move elements ----

S = ("slice {start_indices = array<i64: 1, 2>, limit_indices = array<i64: 5, 9>, "
     "strides = array<i64: 2, 1>}")
MOVES = {
    "transpose": ("transpose {permutation = array<i64: 1, 0>}", (12, 6), lambda x: x.T),
    "reshape": ("reshape", (4, 18), lambda x: x.reshape(4, 18)),
    "broadcast": ("broadcast_in_dim {broadcast_dimensions = array<i64: 0, 2>}", (6, 5, 12),
                  lambda x: np.broadcast_to(x[:, None], (6, 5, 12))),
    "reverse": ("reverse {dimensions = array<i64: 1>}", (6, 12), lambda x: x[:, ::-1]),
    "slice": (S, (2, 7), lambda x: x[1:5:2, 2:9]),
}


@pytest.mark.parametrize("storage", ["i8", "u8", "i4", "i16"])
@pytest.mark.parametrize("name", MOVES)
def test_ops_move_the_integers(name, storage, on_device):
    q = Quant(f"!quant.uniform<{storage}:f32, 0.75:{7 if storage != 'u8' else 130}>")
    x = (np.random.default_rng(12).standard_normal((6, 12)) * 60).astype(np.float32)
    text, shape, want = MOVES[name]
    p = Program()
    p.result(p.op(text, [p.argument(x.shape, q)], shape, q), shape, q)
    np.testing.assert_array_equal(on_device(p, x)[0], want(q.near(x)))


def test_ops_of_several_arrays_move_the_integers(on_device):
    q = Quant("!quant.uniform<i8:f32, 0.75:7>")
    rng = np.random.default_rng(13)
    x, y = ((rng.standard_normal((6, 12)) * 60).astype(np.float32) for _ in range(2))
    z, index, rows = np.float32(11), np.int32(2), np.array([3, 0, 5], np.int32)
    p = Program()
    a, b, c = (p.argument(v.shape, q) for v in (x, y, z))
    i, r = p.argument((), element="i32"), p.argument((3,), element="i32")
    p.result(p.op("concatenate {dimension = 1 : i64}", [a, b], (6, 24), q), (6, 24), q)
    p.result(p.op("pad {edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, "
                  "2>, interior_padding = array<i64: 0, 1>}", [a, c], (7, 25), q), (7, 25), q)
    part = p.op("dynamic_slice {slice_sizes = array<i64: 3, 4>}", [a, i, i], (3, 4), q)
    p.result(part, (3, 4), q)
    p.result(p.op("dynamic_update_slice", [b, part, i, i], (6, 12), q), (6, 12), q)
    p.result(p.op("gather {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
                  "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                  "slice_sizes = array<i64: 1, 12>}", [a, r], (3, 12), q), (3, 12), q)
    x_, y_, z_ = q.near(x), q.near(y), q.near(z)
    padded = np.full((7, 25), z_, np.float32)
    padded[1:, :23:2] = x_
    updated = y_.copy()
    updated[2:5, 2:6] = x_[2:5, 2:6]
    for got, want in zip(on_device(p, x, y, z, index, rows),
                         (np.concatenate([x_, y_], 1), padded, x_[2:5, 2:6], updated, x_[rows])):
        np.testing.assert_array_equal(got, want)


SHAPED = {
    "dynamic_reshape": ("", [[4, 18]], (4, 18), lambda x: x.reshape(4, 18)),
    "dynamic_broadcast_in_dim": (" {broadcast_dimensions = array<i64: 0, 2>}", [[6, 5, 12]],
                                 (6, 5, 12), lambda x: np.broadcast_to(x[:, None], (6, 5, 12))),
    "real_dynamic_slice": ("", [[1, 2], [5, 9], [2, 1]], (2, 7), lambda x: x[1:5:2, 2:9]),
    "dynamic_gather": (" {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
                       "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}",
                       [[3, 0, 5], [1, 12]], (3, 12), lambda x: x[[3, 0, 5]]),
}


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("name", SHAPED)
def test_ops_that_are_given_shapes_move_the_integers(name, storage, on_device):
    q = of_storage(storage)
    x = np.random.default_rng(21).uniform(-9, 9, (6, 12)).astype(np.float32)
    attributes, lists, shape, want = SHAPED[name]
    p = Program()
    operands = [p.argument(x.shape, q)] + [
        p.op(f"constant {{value = dense<{n}> : tensor<{len(n)}xi64>}}", [], (len(n),), "i64")
        for n in lists]
    p.result(p.op(name + attributes, operands, shape, q), shape, q)
    np.testing.assert_array_equal(on_device(p, x)[0], want(q.near(x)))


def test_a_convolution_whose_padding_is_given(on_device):
    a, b, c = (Quant(f"!quant.uniform<i8:f32, {t}>") for t in ("0.3:-7", "0.05", "3.07:7"))
    rng = np.random.default_rng(23)
    x = (rng.standard_normal((2, 9, 8, 16)) * 10).astype(np.float32)
    y = (rng.standard_normal((3, 3, 16, 24)) * 2).astype(np.float32)
    want = summed_windows(a.near(x), b.near(y), 1)
    p = Program()
    pads = p.op("constant {value = dense<1> : tensor<2x2xi64>}", [], (2, 2), "i64")
    v = p.op("dynamic_conv {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->"
             "[b, 0, 1, f]>, window_strides = array<i64: 1, 1>, feature_group_count = 1 : i64, "
             "batch_group_count = 1 : i64}", [p.argument(x.shape, a), p.argument(y.shape, b), pads],
             want.shape, c)
    few_steps(on_device(p.result(v, want.shape, c), x, y)[0], c.near(want), c, 0.002)


def test_a_padding_that_is_given_and_numbers_that_count(on_device):
    q = of_storage("u8")
    x, y = np.random.default_rng(22).uniform(-9, 9, (6, 12)).astype(np.float32), np.float32(3)
    p = Program()
    lists = [p.op(f"constant {{value = dense<{n}> : tensor<2xi64>}}", [], (2,), "i64")
             for n in ([1, 0], [0, 2], [0, 1], [7, 25])]
    v = p.op("dynamic_pad", [p.argument((6, 12), q), p.argument((), q)] + lists[:3], (7, 25), q)
    p.result(v, (7, 25), q)
    p.result(p.op("dynamic_iota {iota_dimension = 1 : i64}", lists[3:], (7, 25), q), (7, 25), q)
    padded = np.full((7, 25), q.near(y), np.float32)
    padded[1:, :23:2] = q.near(x)
    got = on_device(p, x, y)
    np.testing.assert_array_equal(got[0], padded)
    np.testing.assert_array_equal(got[1], q.near(np.broadcast_to(np.arange(25.), (7, 25))))


def test_scales_along_a_dim_move_with_it(on_device):
    rng = np.random.default_rng(14)
    x = (rng.standard_normal((6, 12)) * 3).astype(np.float32)
    q = per_axis(rng, "i8", "f32", 1, 12, zeros=5)
    moved = [("transpose {permutation = array<i64: 1, 0>}", 0, (12, 6), lambda v: v.T),
             ("reshape", 2, (3, 2, 12), lambda v: v.reshape(3, 2, 12)),
             ("broadcast_in_dim {broadcast_dimensions = array<i64: 0, 2>}", 2, (6, 5, 12),
              lambda v: np.broadcast_to(v[:, None], (6, 5, 12)))]
    p = Program()
    a = p.argument(x.shape, q)
    for text, dim, shape, _ in moved:
        to = Quant(q.text.replace(":f32:1", f":f32:{dim}"))
        p.result(p.op(text, [a], shape, to), shape, to)
    for text, dim, shape, _ in moved[1:]:
        to = Quant(q.text.replace(":f32:1", f":f32:{dim}"))
        sizes = p.op(f"constant {{value = dense<{list(shape)}> : tensor<3xi64>}}", [], (3,), "i64")
        p.result(p.op("dynamic_" + text, [a, sizes], shape, to), shape, to)
    moved += moved[1:]
    for got, (_, _, _, want) in zip(on_device(p, x), moved):
        np.testing.assert_array_equal(got, want(q.near(x)))


def test_constants(on_device):
    signed = Quant("!quant.uniform<i8:f32, 0.5:3>")
    unsigned = Quant("!quant.uniform<u8:f32, 0.5:130>")
    p = Program()
    for q, dense in ((signed, "[-128, 3, 127]"), (unsigned, "[0, 130, -1]"), (unsigned, "-56")):
        p.result(p.op(f"constant {{value = dense<{dense}> : tensor<3xi8>}}", [], (3,), q), (3,), q)
    got = on_device(p)
    np.testing.assert_array_equal(got[0], [-65.5, 0, 62])
    np.testing.assert_array_equal(got[1], [-65, 0, 62.5])
    np.testing.assert_array_equal(got[2], [35] * 3)


# ---- bodies ----

BODIES = """
module @bodies {{
  func.func public @main(%a: tensor<6x40xf32>, %n: tensor<i32>)
      -> (tensor<6xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>) {{
    %q = stablehlo.uniform_quantize %a : (tensor<6x40xf32>) -> tensor<6x40x{q}>
    %lowest = stablehlo.constant() <{{value = dense<{low}> : tensor<i8>}}> : () -> tensor<{q}>
    %most = "stablehlo.reduce"(%q, %lowest) <{{dimensions = array<i64: 1>}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %m = stablehlo.maximum %x, %y : tensor<{q}>
        stablehlo.return %m : tensor<{q}>
    }}) : (tensor<6x40x{q}>, tensor<{q}>) -> tensor<6x{q}>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %turned:2 = "stablehlo.while"(%zero, %q) ({{
      ^bb0(%i: tensor<i32>, %x: tensor<6x40x{q}>):
        %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
    }}, {{
      ^bb0(%i: tensor<i32>, %x: tensor<6x40x{q}>):
        %j = stablehlo.add %i, %one : tensor<i32>
        %y = stablehlo.multiply %x, %x : tensor<6x40x{q}>
        stablehlo.return %j, %y : tensor<i32>, tensor<6x40x{q}>
    }}) : (tensor<i32>, tensor<6x40x{q}>) -> (tensor<i32>, tensor<6x40x{q}>)
    %p = stablehlo.compare LT, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %chosen = "stablehlo.if"(%p) ({{
        stablehlo.return %q : tensor<6x40x{q}>
    }}, {{
        %y = stablehlo.negate %q : tensor<6x40x{q}>
        stablehlo.return %y : tensor<6x40x{q}>
    }}) : (tensor<i1>) -> tensor<6x40x{q}>
    %sorted = "stablehlo.sort"(%q) <{{dimension = 1 : i64, is_stable = true}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %less = stablehlo.compare LT, %x, %y : (tensor<{q}>, tensor<{q}>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
    }}) : (tensor<6x40x{q}>) -> tensor<6x40x{q}>
    %called = func.call @half(%q) : (tensor<6x40x{q}>) -> tensor<6x40x{q}>
    %0 = stablehlo.uniform_dequantize %most : (tensor<6x{q}>) -> tensor<6xf32>
    %1 = stablehlo.uniform_dequantize %turned#1 : (tensor<6x40x{q}>) -> tensor<6x40xf32>
    %2 = stablehlo.uniform_dequantize %chosen : (tensor<6x40x{q}>) -> tensor<6x40xf32>
    %3 = stablehlo.uniform_dequantize %sorted : (tensor<6x40x{q}>) -> tensor<6x40xf32>
    %4 = stablehlo.uniform_dequantize %called : (tensor<6x40x{q}>) -> tensor<6x40xf32>
    return %0, %1, %2, %3, %4
      : tensor<6xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>, tensor<6x40xf32>
  }}
  func.func private @half(%x: tensor<6x40x{q}>) -> tensor<6x40x{q}> {{
    %y = stablehlo.subtract %x, %x : tensor<6x40x{q}>
    return %y : tensor<6x40x{q}>
  }}
}}
"""


@pytest.mark.parametrize("turns", [0, 3])
@pytest.mark.parametrize("text,low", [("i8:f32, 0.5:3", -128), ("u8<1:254>:f32, 0.25:100", 1)])
def test_bodies_see_quantized_values(text, low, turns, on_device):
    q = Quant(f"!quant.uniform<{text}>")
    x = (np.random.default_rng(15).standard_normal((6, 40)) * 4).astype(np.float32)
    x_ = squared = q.near(x)
    for _ in range(turns):
        squared = q.near(squared * squared)
    got = on_device(BODIES.format(q=q.text, low=low), x, np.int32(turns))
    for g, want in zip(got, (x_.max(1), squared, q.near(-x_) if turns else x_,
                             np.sort(x_, 1), np.zeros_like(x_))):
        np.testing.assert_array_equal(g, want)


WINDOWS = """
module @windows {{
  func.func public @main(%a: tensor<6x41xf32>, %rows: tensor<3x1xi32>, %u: tensor<3x41xf32>,
                         %s: tensor<6x14xf32>, %branch: tensor<i32>)
      -> (tensor<6x20xf32>, tensor<6x41xf32>, tensor<6x41xf32>, tensor<6x41xf32>,
          tensor<6x41xf32>) {{
    %q = stablehlo.uniform_quantize %a : (tensor<6x41xf32>) -> tensor<6x41x{q}>
    %qu = stablehlo.uniform_quantize %u : (tensor<3x41xf32>) -> tensor<3x41x{q}>
    %qs = stablehlo.uniform_quantize %s : (tensor<6x14xf32>) -> tensor<6x14x{q}>
    %lowest = stablehlo.constant() <{{value = dense<{low}> : tensor<i8>}}> : () -> tensor<{q}>
    %nothing = stablehlo.constant() <{{value = dense<{zero}> : tensor<i8>}}> : () -> tensor<{q}>
    %pool = "stablehlo.reduce_window"(%q, %lowest) <{{window_dimensions = array<i64: 1, 3>,
        window_strides = array<i64: 1, 2>}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %m = stablehlo.maximum %x, %y : tensor<{q}>
        stablehlo.return %m : tensor<{q}>
    }}) : (tensor<6x41x{q}>, tensor<{q}>) -> tensor<6x20x{q}>
    %put = "stablehlo.scatter"(%q, %rows, %qu) <{{scatter_dimension_numbers =
        #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %m = stablehlo.minimum %x, %y : tensor<{q}>
        stablehlo.return %m : tensor<{q}>
    }}) : (tensor<6x41x{q}>, tensor<3x1xi32>, tensor<3x41x{q}>) -> tensor<6x41x{q}>
    %back = "stablehlo.select_and_scatter"(%q, %qs, %nothing) <{{
        window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 3>,
        padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %ge = stablehlo.compare GE, %x, %y : (tensor<{q}>, tensor<{q}>) -> tensor<i1>
        stablehlo.return %ge : tensor<i1>
    }}, {{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %m = stablehlo.maximum %x, %y : tensor<{q}>
        stablehlo.return %m : tensor<{q}>
    }}) : (tensor<6x41x{q}>, tensor<6x14x{q}>, tensor<{q}>) -> tensor<6x41x{q}>
    %mapped = "stablehlo.map"(%q, %put) <{{dimensions = array<i64: 0, 1>}}> ({{
      ^bb0(%x: tensor<{q}>, %y: tensor<{q}>):
        %m = stablehlo.subtract %x, %y : tensor<{q}>
        stablehlo.return %m : tensor<{q}>
    }}) : (tensor<6x41x{q}>, tensor<6x41x{q}>) -> tensor<6x41x{q}>
    %chosen = "stablehlo.case"(%branch) ({{
        stablehlo.return %q : tensor<6x41x{q}>
    }}, {{
        stablehlo.return %put : tensor<6x41x{q}>
    }}, {{
        %y = stablehlo.negate %q : tensor<6x41x{q}>
        stablehlo.return %y : tensor<6x41x{q}>
    }}) : (tensor<i32>) -> tensor<6x41x{q}>
    %0 = stablehlo.uniform_dequantize %pool : (tensor<6x20x{q}>) -> tensor<6x20xf32>
    %1 = stablehlo.uniform_dequantize %put : (tensor<6x41x{q}>) -> tensor<6x41xf32>
    %2 = stablehlo.uniform_dequantize %back : (tensor<6x41x{q}>) -> tensor<6x41xf32>
    %3 = stablehlo.uniform_dequantize %mapped : (tensor<6x41x{q}>) -> tensor<6x41xf32>
    %4 = stablehlo.uniform_dequantize %chosen : (tensor<6x41x{q}>) -> tensor<6x41xf32>
    return %0, %1, %2, %3, %4 : tensor<6x20xf32>, tensor<6x41xf32>, tensor<6x41xf32>,
      tensor<6x41xf32>, tensor<6x41xf32>
  }}
}}
"""


def largest_of_threes(x, source, quant):
    """source where each three of a row have their first largest, and zeros."""
    result = np.zeros_like(x)
    for row, taken, to in zip(x, source, result):
        for i, value in enumerate(taken):
            place = 3 * i + int(np.argmax(row[3 * i:3 * i + 3]))
            to[place] = max(to[place], value)
    return quant.near(result)


@pytest.mark.parametrize("branch", [0, 1, 2, 7])
@pytest.mark.parametrize("text,low", [("i8:f32, 0.5:3", -128), ("u8<1:254>:f32, 0.25:100", 1)])
def test_windows_scatters_and_branches_of_quantized_values(text, low, branch, on_device):
    q = Quant(f"!quant.uniform<{text}>")
    rng = np.random.default_rng(16)
    x, u, s = ((rng.standard_normal(shape) * 12).astype(np.float32)
               for shape in ((6, 41), (3, 41), (6, 14)))
    rows = np.array([[4], [0], [4]], np.int32)
    program = WINDOWS.format(q=q.text, low=low, zero=q.zero[0])
    got = on_device(program, x, rows, u, s, np.int32(branch))
    x_, u_, s_ = q.near(x), q.near(u), q.near(s)
    pool = np.stack([x_[:, i:i + 39:2] for i in range(3)]).max(0)
    put = x_.copy()
    np.minimum.at(put, rows[:, 0], u_)
    want = (pool, put, largest_of_threes(x_, s_, q), q.near(x_ - put),
            (x_, put, q.near(-x_))[min(branch, 2)])
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)


def test_normalisation_computes_with_the_numbers(on_device):
    """It dequantizes, computes in floats, and quantizes its result once."""
    q = Quant("!quant.uniform<i16:f32, 0.001:7>")
    rng = np.random.default_rng(17)
    x = rng.standard_normal((70, 5)).astype(np.float32)
    rows = [rng.uniform(.5, 2, 5).astype(np.float32) for _ in range(4)]
    p = Program()
    operands = [p.argument(x.shape, q)] + [p.argument((5,), q) for _ in rows]
    p.result(p.op("batch_norm_inference {epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}",
                  operands, x.shape, q), x.shape, q)
    near, scale, offset, mean, variance = (q.near(v).astype(np.float64) for v in (x, *rows))
    want = (near - mean) / np.sqrt(variance + 1e-3) * scale + offset
    few_steps(on_device(p, x, *rows)[0], q.near(want), q, 0.05)


COLLECTIVES = {
    "all_gather": ("all_gather_dim = 0 : i64, ", ""),
    "all_to_all": ("split_dimension = 0 : i64, concat_dimension = 0 : i64, "
                   "split_count = 1 : i64, ", ""),
    "collective_broadcast": ("", ""),
    "all_reduce": ("", "add"), "reduce_scatter": ("scatter_dimension = 0 : i64, ", "maximum"),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_hand_integers_on(name, on_device):
    q = Quant("!quant.uniform<i8:f32, 0.5:3>")
    x = (np.random.default_rng(18).standard_normal((6, 41)) * 30).astype(np.float32)
    attributes, body = COLLECTIVES[name]
    region = f""" ({{
      ^bb0(%x: tensor<{q.text}>, %y: tensor<{q.text}>):
        %m = stablehlo.{body} %x, %y : tensor<{q.text}>
        stablehlo.return %m : tensor<{q.text}>
    }})""" if body else ""
    p = Program()
    p.result(p.op(f"{name} <{{{attributes}replica_groups = dense<0> : tensor<1x1xi64>}}>{region}",
                  [p.argument(x.shape, q)], x.shape, q), x.shape, q)
    np.testing.assert_array_equal(on_device(p, x)[0], q.near(x))


# ---- whole programs ----

def random_program(rng):
    """Ops on arrays of one shape, each in one of a few types: the program, its arguments, and its
    results by numpy, in f32 as the device computes."""
    n = int(rng.choice([3, 31, 64, 65, 130]))
    types = [Quant(f"!quant.uniform<i8<-127:127>:f32, {s}:{z}>")
             for s, z in ((.5, 3), (.3, -7), (.0625, 0), (2.5, 20))]
    args = [(rng.standard_normal((n, n)) * 20).astype(np.float32) for _ in range(2)]
    p = Program()
    q = types[rng.integers(len(types))]
    live = [(p.argument((n, n), q), q, q.near(a)) for a in args]
    for _ in range(int(rng.integers(4, 14))):
        a, q, x = live[rng.integers(len(live))]
        b, y = [(v, w) for v, t, w in live if t is q][-1]
        to = types[rng.integers(len(types))]
        kind = rng.integers(6)
        if kind == 0:
            live.append((p.op("uniform_quantize", [a], (n, n), to), to, to.near(x)))
        elif kind == 1:
            text = "transpose {permutation = array<i64: 1, 0>}"
            live.append((p.op(text, [a], (n, n), q), q, x.T))
        else:
            name = str(rng.choice(list(EXACT)))
            in_ = ([a], [x]) if name in UNARY else ([a, b], [x, y])
            live.append((p.op(name, in_[0], (n, n), to), to, to.near(EXACT[name](*in_[1]))))
    for v, q, _ in live[-3:]:
        p.result(v, (n, n), q)
    return p, args, [x for _, _, x in live[-3:]]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, on_device):
    p, args, want = random_program(np.random.default_rng(1000 + seed))
    for got, x in zip(on_device(p, *args), want):
        np.testing.assert_array_equal(got, x, p.text)


# ---- what is refused ----

def test_ops_without_a_meaning_for_quantized_values_are_refused_by_name(device):
    q = "!quant.uniform<i8:f32, 0.5:3>"
    text = f"""module @m {{ func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
      %q = stablehlo.uniform_quantize %a : (tensor<3xf32>) -> tensor<3x{q}>
      %c = stablehlo.custom_call @somebody.else(%q) : (tensor<3x{q}>) -> tensor<3x{q}>
      %0 = stablehlo.uniform_dequantize %c : (tensor<3x{q}>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }} }}"""
    with pytest.raises(Exception, match=r"UNIMPLEMENTED.*custom_call.*!quant.uniform<i8<-128:127>:"
                                        r"f32, 0.5:3>"):
        device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())


@pytest.mark.parametrize("dtype", [jnp.int1, jnp.uint1])
def test_integers_of_one_bit_are_refused_by_name(dtype, device):
    """StableHLO has none: JAX lowers int1 to its truth values, and uint1 not at all."""
    with pytest.raises(Exception, match="UNIMPLEMENTED.*S1 and U1.*StableHLO has no such"):
        jax.device_put(np.ones(3, dtype), device)
