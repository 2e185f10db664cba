# SPDX-License-Identifier: Apache-2.0
"""`if` and `case` in bodies of scalars, which have no jumps: against JAX's CPU backend, for each op
that has such a body. There the same is written without a choice: it ends the process where one
choice is within another."""

import jax
import numpy as np
import pytest
from jax import lax
from jaxlib import _jax

LARGER = """%p = stablehlo.compare GT, %a, %b : (tensor<T>, tensor<T>) -> tensor<i1>
%r = "stablehlo.if"(%p) ({ "stablehlo.return"(%a) : (tensor<T>) -> () },
{ "stablehlo.return"(%b) : (tensor<T>) -> () }) : (tensor<i1>) -> tensor<T>"""
# The same once more by the sign, and twice so.
NESTED = """%p = stablehlo.compare GT, %a, %b : (tensor<T>, tensor<T>) -> tensor<i1>
%z = stablehlo.subtract %a, %a : tensor<T>
%r = "stablehlo.if"(%p) ({
  %q = stablehlo.compare LT, %a, %z : (tensor<T>, tensor<T>) -> tensor<i1>
  %n:2 = "stablehlo.if"(%q) ({ %m = stablehlo.negate %a : tensor<T>
    "stablehlo.return"(%m, %a) : (tensor<T>, tensor<T>) -> () },
  { "stablehlo.return"(%a, %b) : (tensor<T>, tensor<T>) -> () })
    : (tensor<i1>) -> (tensor<T>, tensor<T>)
  %i = stablehlo.convert %q : (tensor<i1>) -> tensor<i32>
  %c = "stablehlo.case"(%i) ({ "stablehlo.return"(%n#0) : (tensor<T>) -> () },
  { "stablehlo.return"(%n#1) : (tensor<T>) -> () }) : (tensor<i32>) -> tensor<T>
  "stablehlo.return"(%c) : (tensor<T>) -> () },
{ "stablehlo.return"(%b) : (tensor<T>) -> () }) : (tensor<i1>) -> tensor<T>"""
BRANCHES = ["add", "maximum", "minimum", "multiply", "add"]
IDENTITY = {"add": 0, "maximum": -99, "minimum": 99, "multiply": 1}


def chosen(n, index=""):
    """One of n branches, by a text that makes %i."""
    branches = ", ".join(f"{{ %y{k} = stablehlo.{op} %a, %b : tensor<T> "
                         f'"stablehlo.return"(%y{k}) : (tensor<T>) -> () }}'
                         for k, op in enumerate(BRANCHES[:n]))
    return f'{index} %r = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> tensor<T>'


def number(i):
    return f"%i = stablehlo.constant dense<{i}> : tensor<i32>"


# Each with what it is without a choice.
BODIES = {"if": (LARGER, "maximum"), "nested": (NESTED, "maximum")} | {
    f"{n} branches, {i}": (chosen(n, number(i)), BRANCHES[i if 0 <= i < n else n - 1])
    for n in (1, 2, 5) for i in (-1, 1, 3, 9)}
SELECTED = "SELECT, BODY"
SELECT = ('{ ^bb0(%a: tensor<T>, %b: tensor<T>): %p = stablehlo.compare GE, %a, %b : (tensor<T>, '
          "tensor<T>) -> tensor<i1> CHOICE }")
CHOICES = ['%f = stablehlo.constant dense<false> : tensor<i1> '
           '%t = stablehlo.constant dense<true> : tensor<i1> %r = "stablehlo.if"(%p) '
           '({ "stablehlo.return"(%t) : (tensor<i1>) -> () }, { "stablehlo.return"(%f) : '
           '(tensor<i1>) -> () }) : (tensor<i1>) -> tensor<i1> '
           '"stablehlo.return"(%r) : (tensor<i1>) -> ()',
           '"stablehlo.return"(%p) : (tensor<i1>) -> ()']
# An op, its attributes, and the types of its operands and result.
OPS = {
    "reduce": ("reduce", "BODY", "dimensions = array<i64: 1>", ["4x50xT", "T"], "4xT"),
    "reduce to one": ("reduce", "BODY", "dimensions = array<i64: 0, 1>", ["2x3xT", "T"], "T"),
    "few windows": ("reduce_window", "BODY", "window_dimensions = array<i64: 1, 3>, window_strides "
                    "= array<i64: 1, 2>", ["4x31xT", "T"], "4x15xT"),
    "windows": ("reduce_window", "BODY", "window_dimensions = array<i64: 3, 20>, padding = "
                "dense<[[1, 1], [3, 5]]> : tensor<2x2xi64>", ["4x50xT", "T"], "4x39xT"),
    "map": ("map", "BODY", "dimensions = array<i64: 0, 1>", ["4x50xT", "4x50xT"], "4x50xT"),
    "scatter": ("scatter", "BODY", "scatter_dimension_numbers = #stablehlo.scatter<"
                "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                "index_vector_dim = 1>", ["9xT", "6x1xi32", "6xT"], "9xT"),
    "select_and_scatter": ("select_and_scatter", SELECTED, "window_dimensions = array<i64: 2, 3>, "
                           "window_strides = array<i64: 1, 2>", ["4x31xT", "3x15xT", "T"],
                           "4x31xT"),
    "all_reduce": ("all_reduce", "BODY", "replica_groups = dense<0> : tensor<1x1xi64>",
                   ["4x5xT"], "4x5xT"),
    "reduce_scatter": ("reduce_scatter", "BODY", "scatter_dimension = 0 : i64, replica_groups = "
                       "dense<0> : tensor<1x1xi64>", ["4x5xT"], "4x5xT"),
}


def run(d, body, *args):
    text = f"module @m {{ func.func public @main{body} }}"
    loaded = d.client.compile_and_load(text.encode(), [d], _jax.CompileOptions())
    results = loaded.execute_sharded([jax.device_put(a, d) for a in args])
    return [np.asarray(x[0]) for x in results.disassemble_into_single_device_arrays()]


def numbers(shape, dtype, seed=0):
    """Small and whole, so that sums are exact in any order; products, too, of f32: powers of 2."""
    r = np.random.default_rng(seed)
    if dtype == np.int32:
        return r.integers(-9, 9, shape, np.int32)
    return (r.choice([-1, 1], shape) * 2.0 ** r.integers(-1, 2, shape)).astype(dtype)


@pytest.mark.parametrize("t", ["i32", "f32"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", OPS)
def test_every_op_with_a_body_of_scalars(device, cpu, name, body, t):
    op, region, attrs, types, out = OPS[name]
    dtype = {"i32": np.int32, "f32": np.float32}[t]
    choice, plain = BODIES[body]
    args, results = [], []
    for k, x in enumerate(types):
        shape = [int(d) for d in x.split("x")[:-1]]
        # Each place at most once, so the order does not matter.
        args.append(np.arange(6, dtype=np.int32).reshape(6, 1) if x.endswith("xi32") else
                    numbers(shape, dtype, k) if shape else dtype(IDENTITY[plain]))
    names = ", ".join(f"%x{k}" for k in range(len(types)))
    params = ", ".join(f"%x{k}: tensor<{x}>" for k, x in enumerate(types))
    plain = f"%r = stablehlo.{plain} %a, %b : tensor<T>"
    for d, ops, end in zip((device, cpu), (choice, plain), CHOICES, strict=True):
        regions = region.replace("SELECT", SELECT.replace("CHOICE", end)).replace(
            "BODY", "{ ^bb0(%a: tensor<T>, %b: tensor<T>): " + ops +
            ' "stablehlo.return"(%r) : (tensor<T>) -> () }')
        text = (f'({params}) -> tensor<{out}> {{ %o = "stablehlo.{op}"({names}) ({regions}) '
                f'{{{attrs}}} : ({", ".join(f"tensor<{x}>" for x in types)}) -> tensor<{out}> '
                f'return %o : tensor<{out}> }}')
        results.append(run(d, text.replace("<T>", f"<{t}>").replace("xT>", f"x{t}>"), *args))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_map_by_indices_in_and_out_of_range(device, cpu, n):
    text = ("(%x: tensor<40xT>, %y: tensor<40xT>, %k: tensor<40xi32>) -> tensor<40xT> { "
            '%o = "stablehlo.map"(%x, %y, %k) ({ ^bb0(%a: tensor<T>, %b: tensor<T>, '
            '%i: tensor<i32>): ' + chosen(n) + ' "stablehlo.return"(%r) : (tensor<T>) -> () }) '
            "{dimensions = array<i64: 0>} : (tensor<40xT>, tensor<40xT>, tensor<40xi32>) -> "
            "tensor<40xT> return %o : tensor<40xT> }").replace("T>", "f32>")
    x, y = (np.random.default_rng(n).normal(size=(2, 40)) * 9).astype(np.float32)
    x[:8], y[4:12] = [np.nan, np.inf, -np.inf, -0.0] * 2, [0.0, -0.0, np.inf, np.nan] * 2
    k = np.concatenate([np.arange(-3, 12), [2 ** 31 - 1, -2 ** 31], np.arange(-1, 22) % 6]
                       ).astype(np.int32)
    got, = run(device, text, x, y, k)
    with jax.default_device(cpu):
        ways = [lax.add(x, y), lax.max(x, y), lax.min(x, y), lax.mul(x, y), lax.add(x, y)]
    want = np.choose(np.where((k >= 0) & (k < n), k, n - 1), [np.asarray(w) for w in ways])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def select(p, x, y):
    return jax.tree.map(lambda a, b: lax.select(p, a, b), x(), y())


def agree(f, x, device, cpu):
    got, want = (jax.jit(lambda x, way=way: f(x, way))(jax.device_put(x, d))
                 for d, way in ((device, lax.cond), (cpu, select)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_largest_number_and_its_place(device, cpu):
    """Several operands and results, the equal ones by a choice within."""
    def f(x, cond):
        def later(x, y):
            (a, i), (b, j) = x, y
            return cond(a > b, lambda: (a, i), lambda: cond(
                a == b, lambda: (a, lax.min(i, j)), lambda: (b, j)))

        k = lax.broadcasted_iota(np.int32, x.shape, 1)
        init = (np.float32(-np.inf), np.int32(99))
        return (*lax.reduce((x, k), init, later, (1,)),
                *lax.reduce((x[0], k[0]), init, later, (0,)))

    agree(f, numbers((6, 70), np.float32), device, cpu)


def test_divisions_by_zero_where_they_are_not_wanted(device, cpu):
    """Both sides are computed: neither does harm."""
    def f(x, cond):
        def quotient(a, b):
            return cond(b == 0, lambda: a, lambda: cond(
                a == 0, lambda: b, lambda: lax.max(lax.div(a, b) * b + lax.rem(a, b), b)))

        return (lax.reduce(x, np.int32(0), quotient, (1,)),)

    agree(f, numbers((4, 9), np.int32), device, cpu)


def test_a_comparator_of_choices(device):
    """By the first key, equal ones by the second one, the other way round."""
    compare = "stablehlo.compare {}, %{}, %{} : (tensor<i32>, tensor<i32>) -> tensor<i1>"
    end = '"stablehlo.return"(%{}) : (tensor<i1>) -> ()'
    text = ("(%x: tensor<TY>, %y: tensor<TY>) -> (tensor<TY>, tensor<TY>) { "
            '%o:2 = "stablehlo.sort"(%x, %y) ({ ^bb0(%a: tensor<i32>, %b: tensor<i32>, '
            f'%c: tensor<i32>, %d: tensor<i32>): %e = {compare.format("EQ", "a", "b")} '
            f'%r = "stablehlo.if"(%e) ({{ %s = {compare.format("GT", "c", "d")} '
            f'{end.format("s")} }}, {{ %t = {compare.format("LT", "a", "b")} {end.format("t")} }})'
            f' : (tensor<i1>) -> tensor<i1> {end.format("r")} }}) {{dimension = 1 : i64, '
            "is_stable = true} : (tensor<TY>, tensor<TY>) -> (tensor<TY>, tensor<TY>) "
            "return %o#0, %o#1 : tensor<TY>, tensor<TY> }").replace("TY>", "3x40xi32>")
    x, y = numbers((3, 40), np.int32), numbers((3, 40), np.int32, 1)
    order = np.lexsort((-y, x), axis=1)
    for a, b in zip(run(device, text, x, y), (x, y), strict=True):
        np.testing.assert_array_equal(a, np.take_along_axis(b, order, 1))


def test_a_loop_in_a_branch_is_refused_by_the_choice_that_has_it():
    def f(x):
        def halve(a, b):
            return lax.cond(a > b, lambda: lax.while_loop(
                lambda v: v > b, lambda v: v - 1, a), lambda: b)
        return lax.reduce(x, np.int32(0), halve, (0,))

    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED: case: it does not run"):
        jax.jit(f)(np.arange(9, dtype=np.int32))
