# SPDX-License-Identifier: Apache-2.0
"""Loops over scalars, and integers one at a time, which the scalar unit does; against numpy, whose
corners are given here where they differ from XLA's."""

import functools
import operator

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax._src.lib import xla_client

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


def edges(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    found = {low, low + 1, 0, 1, 2, 7, high // 2, high - 1, high} | ({-1, -3} if low else set())
    return [np.array(x, dtype) for x in sorted(found)]


def wrap(x, dtype):
    bits = np.iinfo(dtype).bits
    x = int(x) & ((1 << bits) - 1)
    return np.array(x - (1 << bits) if np.iinfo(dtype).min and x >> (bits - 1) else x, dtype)


def divide(x, y):
    return -1 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


PAIRS = {
    "add": (lax.add, operator.add), "sub": (lax.sub, operator.sub),
    "mul": (lax.mul, operator.mul), "and": (lax.bitwise_and, operator.and_),
    "or": (lax.bitwise_or, operator.or_), "xor": (lax.bitwise_xor, operator.xor),
    "min": (lax.min, min), "max": (lax.max, max), "div": (lax.div, divide),
    "rem": (lax.rem, lambda x, y: x if y == 0 else x - divide(x, y) * y),
    # What is above the low bits must not be seen.
    "compare a sum": (lambda x, y: (x + y < y).astype(x.dtype), None),
    "choose a product": (lambda x, y: lax.select(x * y > x, x - y, -y), None),
    "halve a difference": (lambda x, y: lax.div(x - y, jnp.array(2, x.dtype)), None),
    "not": (lambda x, y: ~x, lambda x, y: ~x),
    "with a number": (lambda x, y: (x * 3 + 5) ^ 77, lambda x, y: (x * 3 + 5) ^ 77),
}


def plainly(name, x, y, dtype):
    f = functools.partial(wrap, dtype=dtype)
    x, y = int(x), int(y)
    if name == "compare a sum":
        return f(int(f(x + y)) < y)
    if name == "choose a product":
        return f(x - y) if int(f(x * y)) > x else f(-y)
    if name == "halve a difference":
        return f(divide(int(f(x - y)), 2))
    return f(PAIRS[name][1](x, y))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_integers_one_at_a_time(name, dtype):
    f = jax.jit(PAIRS[name][0])
    for x in edges(dtype):
        for y in edges(dtype):
            got = np.asarray(f(x, y))
            assert got.dtype == dtype
            assert got == plainly(name, x, y, dtype), f"{name} of {x} and {y}"


COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
               "gt": operator.gt, "ge": operator.ge}


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_comparisons_one_at_a_time(dtype):
    for name, plain in COMPARISONS.items():
        f, g = jax.jit(getattr(lax, name)), jax.jit(lambda x, name=name: getattr(lax, name)(
            x, jnp.array(7, dtype)))
        for x in edges(dtype):
            assert bool(g(x)) == plain(int(x), 7)
            for y in edges(dtype):
                assert bool(f(x, y)) == plain(int(x), int(y)), f"{x} {name} {y}"


@pytest.mark.parametrize("to", [*TYPES, np.bool_], ids=lambda t: t.__name__)
@pytest.mark.parametrize("dtype", [*TYPES, np.bool_], ids=lambda t: t.__name__)
def test_conversions_of_sums(dtype, to):
    f = jax.jit(lambda x: lax.convert_element_type(x if dtype == np.bool_ else x + x, to))
    for x in [np.array(False), np.array(True)] if dtype == np.bool_ else edges(dtype):
        sum_ = int(x) if dtype == np.bool_ else int(wrap(2 * int(x), dtype))
        assert np.asarray(f(x)) == (sum_ != 0 if to == np.bool_ else wrap(sum_, to))


def test_predicates_one_at_a_time():
    f = jax.jit(lambda a, b: (a & b, a | ~b, a ^ b, lax.select(a, ~a, b)))
    for a in (False, True):
        for b in (False, True):
            want = (a & b, a | (not b), a ^ b, (not a) if a else b)
            assert tuple(map(bool, f(a, b))) == want


def test_loops_over_scalars(device, cpu):
    def collatz(n):
        return lax.while_loop(lambda c: c[0] != 1, lambda c: (
            lax.select(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, jnp.int32(0)))

    def newton(x):
        return lax.fori_loop(0, 30, lambda i, y: 0.5 * (y + x / y), x)

    def counts(n):
        return lax.fori_loop(0, n, lambda i, c: (c[0] + i, c[1] ^ i, jnp.maximum(c[2], i % 17)),
                             (jnp.int64(0), jnp.int64(0), jnp.int64(0)))

    def nested(n):
        return lax.fori_loop(0, n, lambda i, c: lax.fori_loop(0, i, lambda j, c: c + j, c), 0)

    for f, args in ((collatz, [np.int32(27), np.int32(1), np.int32(97)]),
                    (newton, [np.float32(2), np.float64(3)]),
                    (counts, [np.int64(0), np.int64(1000)]), (nested, [np.int32(0), np.int32(30)])):
        for x in args:
            got, want = (jax.tree.leaves(jax.jit(f)(jax.device_put(x, d))) for d in (device, cpu))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)


ODD = np.array([0.0, -0.0, 1.5, -2.25, 3e38, -3e38, 2e-38, np.inf, -np.inf, np.nan], np.float32)
FLOATS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "min": lax.min,
    "max": lax.max, "pow": lambda x, y: lax.pow(lax.abs(x), y), "rem": lax.rem,
    "multiply and add": lambda x, y: x * y + x, "from a sum": lambda x, y: y - (x + y),
    "greatest difference": lambda x, y: lax.max(x - y, x), "compare": lax.lt,
}


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_alone_is_as_it_is_among_others(name):
    f = jax.jit(FLOATS[name])
    x, y = (a.ravel() for a in np.meshgrid(ODD, ODD))
    many = np.asarray(f(x, y))
    for i in range(len(x)):
        one = np.asarray(f(x[i], y[i]))
        assert one.tobytes() == many[i].tobytes(), f"{name} of {x[i]} and {y[i]}"


def test_conditions_of_loops_may_come_by_several_paths():
    def unfinished(c):
        i, x = c
        return lax.cond(i % 3 == 0, lambda: x < 50, lambda: lax.cond(i > 4, lambda: x < 40,
                                                                     lambda: x * i < 90))

    def f(x):
        return lax.while_loop(unfinished, lambda c: (c[0] + 1, c[1] + c[0] * 2), (0, x))

    def plainly(x):
        i = 0
        while x < 50 if i % 3 == 0 else x < 40 if i > 4 else x * i < 90:
            i, x = i + 1, x + i * 2
        return i, x

    for x in range(-60, 60):
        assert tuple(int(v) for v in jax.jit(f)(x)) == plainly(x)


# ---- integers of two and four bits ----
# In every op that StableHLO has them in. The oracle is XLA's CPU backend on the same program with
# integers of 32 bits, whose results are cut to size: what it does with few bits itself is not right
# everywhere, and ends the process in places. Where cutting is not the meaning, numpy says it.

NARROW = {"i4": ml_dtypes.int4, "ui4": ml_dtypes.uint4, "i2": ml_dtypes.int2,
          "ui2": ml_dtypes.uint2}
NUMPY = {"i1": np.bool_, "i32": np.int32, "ui32": np.uint32, "f32": np.float32,
         "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f64": np.float64, "i8": np.int8,
         "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16, "i64": np.int64, "ui64": np.uint64,
         "complex<f32>": np.complex64, "f8E5M2": ml_dtypes.float8_e5m2,
         "f8E4M3FN": ml_dtypes.float8_e4m3fn, **NARROW}


def tensor(elem, *dims):
    return f"tensor<{''.join(f'{d}x' for d in dims)}{elem}>"


def body(elem, op):
    return (f"({{\n^bb0(%l: tensor<{elem}>, %m: tensor<{elem}>):\n%b = stablehlo.{op} %l, %m : "
            f"tensor<{elem}>\nstablehlo.return %b : tensor<{elem}>\n}})")


def order(elem, op):
    return (f"({{\n^bb0(%l: tensor<{elem}>, %m: tensor<{elem}>):\n%b = stablehlo.compare {op}, %l, "
            f"%m : (tensor<{elem}>, tensor<{elem}>) -> tensor<i1>\nstablehlo.return %b : "
            "tensor<i1>\n})")


def generic(name, args, attrs, types, out, region=""):
    return f'%r = "stablehlo.{name}"({args}) {region} {{{attrs}}} : ({types}) -> {out}'


GROUP = "replica_groups = dense<0> : tensor<1x1xi64>"
GATHER = ("dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = "
          "[0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false")
SCATTER = ("scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
           "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = "
           "false, unique_indices = false")
COUNT = ("%i = stablehlo.constant dense<0> : tensor<i32>\n%w:2 = stablehlo.while(%a = %a0, %k = "
         "%i) : {0}, tensor<i32>\ncond {{\n%t = stablehlo.constant dense<3> : tensor<i32>\n%lt = "
         "stablehlo.compare LT, %k, %t : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
         "stablehlo.return %lt : tensor<i1>\n}} do {{\n%one = stablehlo.constant dense<1> : "
         "tensor<i32>\n%k2 = stablehlo.add %k, %one : tensor<i32>\n%b = stablehlo.add %a, %a : "
         "{0}\nstablehlo.return %b, %k2 : {0}, tensor<i32>\n}}\n%r = stablehlo.negate %w#0 : {0}")
COUNTER = ("%w = stablehlo.while(%k = %a0) : {0}\ncond {{\n%t = stablehlo.constant dense<1> : {0}"
           "\n%lt = stablehlo.compare LT, %k, %t : ({0}, {0}) -> tensor<i1>\nstablehlo.return %lt"
           " : tensor<i1>\n}} do {{\n%one = stablehlo.constant dense<1> : {0}\n%k2 = "
           "stablehlo.add %k, %one : {0}\nstablehlo.return %k2 : {0}\n}}\n%r = stablehlo.add %w, "
           "%w : {0}")
BOUNDED = ("%q = stablehlo.set_dimension_size %a0, %a1, dim = 0 : ({1}, tensor<i32>) -> "
           "tensor<?x{0}, #stablehlo.bounds<4>>\n%z = stablehlo.constant dense<0> : tensor<{0}>\n")


def programs(e):
    """{name: (arguments, text, type of the result)}, of elements e."""
    v, m, s, w = tensor(e, 16), tensor(e, 4, 4), tensor(e), [(e, 16)]
    of = {name: (w, f"%r = stablehlo.{name} %a0 : {v}", v) for name in
          ("abs", "negate", "not", "sign", "optimization_barrier")}
    of |= {name: (2 * w, f"%r = stablehlo.{name} %a0, %a1 : {v}", v) for name in (
        "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or",
        "xor", "power", "shift_left")}
    for d in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        kind = "UNSIGNED" if e[0] == "u" else "SIGNED"
        of[f"compare {d}"] = (2 * w, f"%r = stablehlo.compare {d}, %a0, %a1, {kind} : ({v}, {v}) "
                              "-> tensor<16xi1>", "tensor<16xi1>")
    for op in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
        of[f"reduce {op}"] = ([(e, 4, 4), (e,)], generic(
            "reduce", "%a0, %a1", "dimensions = array<i64: 0>", f"{m}, {s}", tensor(e, 4),
            body(e, op)), tensor(e, 4))
        of[f"reduce_window {op}"] = ([(e, 16), (e,)], generic(
            "reduce_window", "%a0, %a1", "window_dimensions = array<i64: 3>, window_strides = "
            "array<i64: 2>, padding = dense<1> : tensor<1x2xi64>", f"{v}, {s}", tensor(e, 8),
            body(e, op)), tensor(e, 8))
    wide = "i32" if e[0] == "i" else "ui32"
    for suffix, to in ("", e), (" to 32", wide):
        of["dot_general" + suffix] = (
            [(e, 4, 4)] * 2, f"%r = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] "
            f": ({m}, {m}) -> {tensor(to, 4, 4)}", tensor(to, 4, 4))
        of["convolution" + suffix] = (
            [(e, 1, 6, 2), (e, 3, 2, 2)], "%r = stablehlo.convolution(%a0, %a1) dim_numbers = "
            "[b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]]} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            f"({tensor(e, 1, 6, 2)}, {tensor(e, 3, 2, 2)}) -> {tensor(to, 1, 6, 2)}",
            tensor(to, 1, 6, 2))
    return of | moves(e) | flow(e)


def moves(e):
    v, m, s = tensor(e, 16), tensor(e, 4, 4), tensor(e)
    return {
        "select": ([("i1", 16), (e, 16), (e, 16)],
                   f"%r = stablehlo.select %a0, %a1, %a2 : tensor<16xi1>, {v}", v),
        "clamp": ([(e, 16)] * 3, f"%r = stablehlo.clamp %a0, %a1, %a2 : {v}", v),
        "iota": ([], f"%r = stablehlo.iota dim = 1 : {tensor(e, 3, 2)}", tensor(e, 3, 2)),
        "broadcast_in_dim": ([(e, 4)], "%r = stablehlo.broadcast_in_dim %a0, dims = [1] : "
                             f"({tensor(e, 4)}) -> {m}", m),
        "reshape": ([(e, 16)], f"%r = stablehlo.reshape %a0 : ({v}) -> {m}", m),
        "transpose": ([(e, 4, 4)], f"%r = stablehlo.transpose %a0, dims = [1, 0] : ({m}) -> {m}",
                      m),
        "slice": ([(e, 16)], f"%r = stablehlo.slice %a0 [2:11:3] : ({v}) -> {tensor(e, 3)}",
                  tensor(e, 3)),
        "pad": ([(e, 4), (e,)], "%r = stablehlo.pad %a0, %a1, low = [1], high = [2], interior = "
                f"[1] : ({tensor(e, 4)}, {s}) -> {tensor(e, 10)}", tensor(e, 10)),
        "concatenate": ([(e, 4), (e, 3)], "%r = stablehlo.concatenate %a0, %a1, dim = 0 : "
                        f"({tensor(e, 4)}, {tensor(e, 3)}) -> {tensor(e, 7)}", tensor(e, 7)),
        "reverse": ([(e, 16)], f"%r = stablehlo.reverse %a0, dims = [0] : {v}", v),
        "dynamic_slice": ([(e, 16), ("i32",)], "%r = stablehlo.dynamic_slice %a0, %a1, sizes = "
                          f"[3] : ({v}, tensor<i32>) -> {tensor(e, 3)}", tensor(e, 3)),
        "dynamic_slice at": ([("f32", 16), (e,)], "%r = stablehlo.dynamic_slice %a0, %a1, sizes "
                             f"= [3] : (tensor<16xf32>, {s}) -> tensor<3xf32>", "tensor<3xf32>"),
        "dynamic_update_slice": (
            [(e, 16), (e, 3), ("i32",)], "%r = stablehlo.dynamic_update_slice %a0, %a1, %a2 : "
            f"({v}, {tensor(e, 3)}, tensor<i32>) -> {v}", v),
        "dynamic_update_slice at": (
            [("f32", 16), ("f32", 3), (e,)], "%r = stablehlo.dynamic_update_slice %a0, %a1, %a2 "
            f": (tensor<16xf32>, tensor<3xf32>, {s}) -> tensor<16xf32>", "tensor<16xf32>"),
        "gather": ([(e, 16), ("i32", 5, 1)], generic(
            "gather", "%a0, %a1", GATHER, f"{v}, tensor<5x1xi32>", tensor(e, 5)), tensor(e, 5)),
        "gather at": ([("f32", 16), (e, 5, 1)], generic(
            "gather", "%a0, %a1", GATHER, f"tensor<16xf32>, {tensor(e, 5, 1)}", "tensor<5xf32>"),
            "tensor<5xf32>"),
        "scatter": ([(e, 16), ("i32", 5, 1), (e, 5)], generic(
            "scatter", "%a0, %a1, %a2", SCATTER, f"{v}, tensor<5x1xi32>, {tensor(e, 5)}", v,
            body(e, "add")), v),
        "scatter at": ([("f32", 16), (e, 5, 1), ("f32", 5)], generic(
            "scatter", "%a0, %a1, %a2", SCATTER, f"tensor<16xf32>, {tensor(e, 5, 1)}, "
            "tensor<5xf32>", "tensor<16xf32>", body("f32", "add")), "tensor<16xf32>"),
        "sort": ([(e, 16)], generic("sort", "%a0", "dimension = 0 : i64, is_stable = true", v, v,
                                    order(e, "LT")), v),
        "top_k": ([(e, 16)], f"%r, %i = chlo.top_k(%a0, k = 3) : {v} -> ({tensor(e, 3)}, "
                  "tensor<3xi32>)", tensor(e, 3)),
        "select_and_scatter": ([(e, 16), (e, 8), (e,)], generic(
            "select_and_scatter", "%a0, %a1, %a2", "window_dimensions = array<i64: 2>, "
            "window_strides = array<i64: 2>, padding = dense<0> : tensor<1x2xi64>",
            f"{v}, {tensor(e, 8)}, {s}", v, order(e, "GE")[:-1] + ", " + body(e, "add")[1:]), v),
    }


def flow(e):
    v, s = tensor(e, 16), tensor(e)
    branches = (f"({{\nstablehlo.return %a1 : {v}\n}}, {{\n%n = stablehlo.negate %a1 : {v}\n"
                f"stablehlo.return %n : {v}\n}})")
    return {
        "map": ([(e, 16)] * 2, generic("map", "%a0, %a1", "dimensions = array<i64: 0>",
                                       f"{v}, {v}", v, body(e, "add")), v),
        "while": ([(e, 16)], COUNT.format(v), v), "while by it": ([(e,)], COUNTER.format(s), s),
        "if": ([("i1",), (e, 16)], f'%r = "stablehlo.if"(%a0) {branches} : (tensor<i1>) -> {v}',
               v),
        "case": ([("i32",), (e, 16)], f'%r = "stablehlo.case"(%a0) {branches} : (tensor<i32>) '
                 f"-> {v}", v),
        "tuple": ([(e, 16)] * 2, f"%t = stablehlo.tuple %a0, %a1 : tuple<{v}, {v}>\n%r = "
                  f"stablehlo.get_tuple_element %t[1] : (tuple<{v}, {v}>) -> {v}", v),
        "set_dimension_size": ([(e, 4), ("i32",)], BOUNDED.format(e, tensor(e, 4)) + generic(
            "reduce", "%q, %z", "dimensions = array<i64: 0>",
            f"tensor<?x{e}, #stablehlo.bounds<4>>, {s}", s, body(e, "add")), s),
        "all_reduce": ([(e, 16)], generic("all_reduce", "%a0", GROUP, v, v, body(e, "add")), v),
        "reduce_scatter": ([(e, 16)], generic("reduce_scatter", "%a0", "scatter_dimension = 0 : "
                                              f"i64, {GROUP}", v, v, body(e, "add")), v),
        "all_gather": ([(e, 16)], generic("all_gather", "%a0", f"all_gather_dim = 0 : i64, {GROUP}",
                                          v, v), v),
        "all_to_all": ([(e, 16)], generic(
            "all_to_all", "%a0", "split_dimension = 0 : i64, concat_dimension = 0 : i64, "
            f"split_count = 1 : i64, {GROUP}", v, v), v),
        "collective_permute": ([(e, 16)], generic(
            "collective_permute", "%a0", "source_target_pairs = dense<0> : tensor<1x2xi64>", v, v),
            v),
    }


def bits_of(e):
    return int(e.lstrip("ui"))


def cut(x, e):
    """Whole numbers as those of e."""
    n = bits_of(e)
    x = np.asarray(x).astype(np.int64) & (1 << n) - 1
    return x - (1 << n) * (x >> n - 1) if e[0] == "i" else x


def drawn(rng, elem, *dims):
    if elem in NARROW:
        return cut(rng.integers(0, 16, dims), elem)
    return rng.integers(0, 2 if elem == "i1" else 12, dims)


def loaded(device, arguments, text, out):
    """A function of the arguments' values."""
    params = ", ".join(f"%a{i}: {tensor(*a)}" for i, a in enumerate(arguments))
    text = f"module @m {{ func.func @main({params}) -> {out} {{\n{text}\nreturn %r : {out} }} }}"
    program = device.client.compile_and_load(text, xla_client.DeviceList((device,)),
                                             xla_client.CompileOptions())

    def call(values):
        with jax.enable_x64(True):
            args = [jax.device_put(np.asarray(v).astype(NUMPY[a[0]]), device)
                    for a, v in zip(arguments, values)]
        outs = program.execute_sharded(args).disassemble_into_single_device_arrays()
        return np.asarray(outs[0][0])
    return call


def run(device, arguments, values, text, out):
    return loaded(device, arguments, text, out)(values)


@pytest.mark.parametrize("name", programs("i4"))
def test_every_op_computes_with_few_bits(name, device, cpu):
    for e in NARROW:
        if e[0] == "u" and name in ("abs", "sign"):
            continue        # StableHLO has none
        rng = np.random.default_rng(len(name))
        arguments, text, out = programs(e)[name]
        same, wide_text, wide_out = programs("i32" if e[0] == "i" else "ui32")[name]
        here = loaded(device, arguments, text, out)
        oracle = loaded(cpu, same, wide_text, wide_out)
        for _ in range(5):
            values = [drawn(rng, *a) for a in arguments]
            want, got = oracle(values), here(values)
            if out.endswith(f"{e}>"):
                want = cut(want, e)
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64),
                                          f"{name} of {e}: {values}")


def logical(x, n, bits):
    n = n & (1 << bits) - 1
    return np.where(n < bits, (x & (1 << bits) - 1) >> np.minimum(n, bits - 1), 0)


IN_NUMPY = {
    "popcnt": (1, lambda x, n: np.bitwise_count((x & (1 << n) - 1).astype(np.uint8))),
    "count_leading_zeros": (1, lambda x, n: n - np.ceil(np.log2((x & (1 << n) - 1) + 1))),
    "shift_right_arithmetic": (2, lambda x, y, n: cut(x, f"i{n}") >> np.minimum(
        y & (1 << n) - 1, n - 1)),
    "shift_right_logical": (2, lambda x, y, n: logical(x, y, n)),
}


@pytest.mark.parametrize("name", IN_NUMPY)
@pytest.mark.parametrize("e", NARROW)
def test_ops_that_look_at_all_bits_look_at_few(name, e, device):
    n_args, f = IN_NUMPY[name]
    all_of = cut(np.arange(1 << bits_of(e)), e)
    values = [v.ravel() for v in np.meshgrid(*[all_of] * n_args)]
    arguments = [(e, values[0].size)] * n_args
    args = ", ".join(f"%a{i}" for i in range(n_args))
    got = run(device, arguments, values, f"%r = stablehlo.{name} {args} : {tensor(*arguments[0])}",
              tensor(*arguments[0]))
    np.testing.assert_array_equal(got.astype(np.int64), cut(f(*values, bits_of(e)), e))


@pytest.mark.parametrize("other", NUMPY)
@pytest.mark.parametrize("e", NARROW)
def test_conversions_from_and_to_few_bits(e, other, device):
    values = cut(np.arange(1 << bits_of(e)), e)
    to = run(device, [(e, values.size)], [values], "%r = stablehlo.convert %a0 : "
             f"({tensor(e, values.size)}) -> {tensor(other, values.size)}",
             tensor(other, values.size))
    np.testing.assert_array_equal(to.astype(np.complex64), (
        cut(values, other) if other in NARROW else values.astype(NUMPY[other])).astype(
            np.complex64))
    there = values % 2 if other == "i1" else np.arange(4) if "2" in other else values
    there = (cut(there, other) if other in NARROW else there).astype(NUMPY[other])
    back = run(device, [(other, there.size)], [there], "%r = stablehlo.convert %a0 : "
               f"({tensor(other, there.size)}) -> {tensor(e, there.size)}",
               tensor(e, there.size))
    if np.issubdtype(NUMPY[other], np.integer) or other in NARROW or other == "i1":
        np.testing.assert_array_equal(back.astype(np.int64), cut(there.astype(np.int64), e))
    else:
        low, high = cut([1 << bits_of(e) - 1], e)[0], cut([(1 << bits_of(e) - 1) - 1], e)[0]
        low, high = (low, high) if e[0] == "i" else (0, (1 << bits_of(e)) - 1)
        np.testing.assert_array_equal(back.astype(np.int64), np.clip(
            there.astype(np.complex64).real, low, high).astype(np.int64))
