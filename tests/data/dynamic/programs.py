# SPDX-License-Identifier: Apache-2.0
"""The programs that make.py writes: text of StableHLO, and in numpy what they mean."""

import numpy as np

from make import SUM, Program, bounded

V = bounded("f32", "5")
M = bounded("f32", "3", "5")
ZERO = "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"


def reduce(x, init, dims, t, out, op="add", elem="f32", to="%r0"):
    return (f'{to} = "stablehlo.reduce"({x}, {init}) ({SUM.format(elem, op)}) '
            f"{{dimensions = array<i64: {dims}>}} : ({t}, tensor<{elem}>) -> {out}")


def op(name, args, attrs, types, out, to="%r0"):
    return f'{to} = "stablehlo.{name}"({args}) {{{attrs}}} : ({types}) -> {out}'


def windows(x, size, stride, low, high):
    x = np.pad(x, (low, high))
    n = max(0, (len(x) - size) // stride + 1)
    return np.array([x[i * stride:i * stride + size].sum() for i in range(n)], np.float32)


def pad(x, low, high, inner, value):
    n = max(0, low + high + len(x) + max(len(x) - 1, 0) * inner)
    out = np.full(n, value, x.dtype)
    for i, v in enumerate(x):
        if 0 <= low + i * (inner + 1) < n:
            out[low + i * (inner + 1)] = v
    return out


def normal(x, scale, offset, mean=None, var=None, e=0.5, feature=1):
    """Batch normalisation, in training (no mean): what StableHLO says of it."""
    dims = tuple(d for d in range(x.ndim) if d != feature)
    at = [None if d != feature else slice(None) for d in range(x.ndim)]
    x = x.astype(np.float64)
    train = mean is None
    if train:
        with np.errstate(all="ignore"):
            n = np.float64(x.size // max(x.shape[feature], 1))
            mean = x.sum(dims) / n
            var = ((x - mean[tuple(at)]) ** 2).sum(dims) / n
    y = (x - mean[tuple(at)]) / np.sqrt(var + e)[tuple(at)]
    y = y * scale[tuple(at)] + offset[tuple(at)]
    return (y, mean, var) if train else y


def normal_grad(x, scale, mean, root, g, e=0.5, **_):
    dims, at = (0, 2), (None, slice(None), None)
    x, g, var = x.astype(np.float64), g.astype(np.float64), root.astype(np.float64) ** 2
    with np.errstate(all="ignore"):
        n = np.float64(x.shape[0] * x.shape[2])
        inverse = 1 / np.sqrt(var + e)
        y = (x - mean[at]) * inverse[at]
        means = [(v.sum(dims) / n)[at] for v in (g, g * y)]
    return ((scale * inverse)[at] * (g - means[0] - y * means[1]), (g * y).sum(dims), g.sum(dims))


def spread(x, source, init, size, stride, low, high):
    """What select_and_scatter does with GE and a sum, in rows."""
    out = np.full(x.shape, init, np.float32)
    count = max(0, (x.shape[1] + low + high - size) // stride + 1)
    for row, _ in enumerate(x):
        for w in range(min(count, source.shape[1])):
            at = [i for i in range(w * stride - low, w * stride - low + size)
                  if 0 <= i < x.shape[1]]
            if at:
                out[row, max(at, key=lambda i, row=row: (x[row, i], -i))] += source[row, w]
    return out


def conv1(x, w, features=1, batches=1):
    """[b, 0, f] by [0, i, o], padded by one, in groups of features or of the batch."""
    out = []
    x = np.pad(x, ((0, 0), (1, 1), (0, 0))).astype(np.float64)
    n, group = len(x) // batches, w.shape[2] // (features * batches)
    for k in range(features * batches):
        part = x[k * n:(k + 1) * n] if batches > 1 else x
        if features > 1:
            part = part[:, :, k * w.shape[1]:(k + 1) * w.shape[1]]
        out.append(np.stack([np.einsum("btf,tfo->bo", part[:, i:i + len(w)],
                                       w[:, :, k * group:(k + 1) * group])
                             for i in range(x.shape[1] - len(w) + 1)], 1))
    return np.concatenate(out, 2)


X3 = bounded("f32", "4", 3, "5")
X2 = bounded("f32", "4", "3", 2)
NORM = "epsilon = 0.5 : f32, feature_index = 1 : i64"
F = "tensor<3xf32>"
VF = bounded("f32", "3")
ROWS = bounded("f32", "2", "7")
PICK = ("({\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%ge = stablehlo.compare GE, %l, %r : "
        "(tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %ge : tensor<i1>\n}, " +
        SUM.format("f32", "add") + ")")
CONV = ("dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = "
        "array<i64: 1>, padding = dense<1> : tensor<1x2xi64>, feature_group_count = {} : i64, "
        "batch_group_count = {} : i64")

PROGRAMS = [
    Program("elementwise", [("f32", ("5",)), ("f32", ("5",))],
            f"%a = stablehlo.add %x0, %x1 : {V}\n%r0 = stablehlo.multiply %a, %a : {V}",
            [("f32", "5")], lambda x, y, **_: (x + y) ** 2),
    Program("set_outside", [("f32", ("5",))],
            f"%r0 = stablehlo.negate %x0 : {V}\n%r1 = stablehlo.get_dimension_size %x0, dim = 0 "
            f": ({V}) -> tensor<i32>\n%f = stablehlo.convert %x0 : ({V}) -> "
            f"{bounded('i32', '5')}\n" +
            "%zi = stablehlo.constant dense<0> : tensor<i32>\n" +
            reduce("%f", "%zi", "0", bounded("i32", "5"), "tensor<i32>", elem="i32", to="%r2"),
            [("f32", "5"), ("i32",), ("i32",)],
            lambda x, n5: (-x, n5, x.sum()), cases=[(-3,), (-1,), (0,), (5,), (6,), (2**31 - 1,),
                                                    (-2**31,)]),
    Program("select", [("i1", ("5:n",)), ("f32", ("5:n",)), ("f32", ("5:n",))],
            f"%c = stablehlo.select %x0, %x1, %x2 : {bounded('i1', '5')}, {V}\n"
            f"%p = stablehlo.compare GT, %c, %x1 : ({V}, {V}) -> {bounded('i1', '5')}\n"
            f"%r0 = stablehlo.convert %p : ({bounded('i1', '5')}) -> {bounded('i32', '5')}",
            [("i32", "5")], lambda p, x, y, **_: np.where(p, x, y) > x),
    Program("two_dims", [("f32", ("3", "5"))],
            ZERO + reduce("%x0", "%zero", "1", M, bounded("f32", "3")) + "\n" +
            reduce("%x0", "%zero", "0", M, V, to="%r1") + "\n" +
            reduce("%x0", "%zero", "0, 1", M, "tensor<f32>", to="%r2"),
            [("f32", "3"), ("f32", "5"), ("f32",)],
            lambda x, **_: (x.sum(1), x.sum(0), x.sum())),
    Program("reduce_max_init", [("f32", ("5",))],
            "%two = stablehlo.constant dense<2.0> : tensor<f32>\n" +
            reduce("%x0", "%two", "0", V, "tensor<f32>", "maximum"),
            [("f32",)], lambda x, **_: max([2, *x])),
    Program("reduce_sum_init", [("f32", ("5",))],
            "%two = stablehlo.constant dense<2.0> : tensor<f32>\n" +
            reduce("%x0", "%two", "0", V, "tensor<f32>"),
            [("f32",)], lambda x, **_: 2 + x.sum()),
    Program("reduce_product", [("f32", (4, "5"))],
            "%two = stablehlo.constant dense<2.0> : tensor<f32>\n" +
            reduce("%x0", "%two", "1", bounded("f32", 4, "5"), "tensor<4xf32>", "multiply"),
            [("f32", 4)], lambda x, **_: 2 * x.prod(1)),
    Program("broadcast", [("f32", ("3", "5"))],
            op("transpose", "%x0", "permutation = array<i64: 1, 0>", M,
               bounded("f32", "5", "3")),
            [("f32", "5", "3")], lambda x, **_: x.T),
    Program("reverse", [("f32", ("3", "5"))],
            op("reverse", "%x0", "dimensions = array<i64: 1, 0>", M, M),
            [("f32", "3", "5")], lambda x, **_: x[::-1, ::-1]),
    Program("slice_other", [("f32", (4, "5"))],
            op("slice", "%x0", "start_indices = array<i64: 1, 0>, limit_indices = array<i64: 4, 5>"
               ", strides = array<i64: 2, 1>", bounded("f32", 4, "5"), bounded("f32", 2, "5")),
            [("f32", 2, "5")], lambda x, **_: x[1:4:2]),
    Program("slice_static", [("f32", ("5",))],
            op("slice", "%x0", "start_indices = array<i64: 0>, limit_indices = array<i64: 3>, "
               "strides = array<i64: 1>", V, "tensor<3xf32>"),
            [("f32", 3)], lambda x, **_: np.pad(x[:3], (0, 3 - len(x[:3])))),
    Program("slice_part", [("f32", (2, "7"))],
            op("slice", "%x0", "start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 6>"
               ", strides = array<i64: 1, 2>", bounded("f32", 2, "7"), bounded("f32", 2, "3")),
            [("f32", 2, "3")], lambda x, **_: x[:, 1:6:2],
            cases=[(n,) for n in range(8)]),
    Program("pad", [("f32", ("5",))],
            "%v = stablehlo.constant dense<7.0> : tensor<f32>\n" +
            op("pad", "%x0, %v", "edge_padding_low = array<i64: 2>, edge_padding_high = "
               "array<i64: 1>, interior_padding = array<i64: 1>", f"{V}, tensor<f32>",
               bounded("f32", "12")),
            [("f32", "12")], lambda x, **_: pad(x, 2, 1, 1, 7)),
    Program("pad_less", [("f32", ("5",))],
            "%v = stablehlo.constant dense<7.0> : tensor<f32>\n" +
            op("pad", "%x0, %v", "edge_padding_low = array<i64: -1>, edge_padding_high = "
               "array<i64: -1>, interior_padding = array<i64: 0>", f"{V}, tensor<f32>",
               bounded("f32", "3")),
            [("f32", "3")], lambda x, **_: pad(x, -1, -1, 0, 7)),
    Program("concatenate", [("f32", ("5",)), ("f32", (2,)), ("f32", ("3",))],
            op("concatenate", "%x0, %x1, %x2", "dimension = 0 : i64",
               f"{V}, tensor<2xf32>, {bounded('f32', '3')}", bounded("f32", "10")),
            [("f32", "10")], lambda x, y, z, **_: np.concatenate([x, y, z])),
    Program("concatenate_other", [("f32", ("5:n", 2)), ("f32", ("5:n", 3))],
            op("concatenate", "%x0, %x1", "dimension = 1 : i64",
               f"{bounded('f32', '5', 2)}, {bounded('f32', '5', 3)}", bounded("f32", "5", 5)),
            [("f32", "5", 5)], lambda x, y, **_: np.concatenate([x, y], 1)),
    Program("dot", [("f32", ("3", "5:k")), ("f32", ("5:k", "4"))],
            op("dot_general", "%x0, %x1", "dot_dimension_numbers = #stablehlo.dot<"
               "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>",
               f"{M}, {bounded('f32', '5', '4')}", bounded("f32", "3", "4")),
            [("f32", "3", "4")], lambda x, y, **_: x @ y),
    Program("dot_one_side", [("f32", ("3:b", 2, "5")), ("f32", ("3:b", 5, 4))],
            op("dot_general", "%x0, %x1", "dot_dimension_numbers = #stablehlo.dot<"
               "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
               "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>",
               f"{bounded('f32', '3', 2, '5')}, {bounded('f32', '3', 5, 4)}",
               bounded("f32", "3", 2, 4)),
            [("f32", "3", 2, 4)],
            lambda x, y, n5, **_: np.einsum("bik,bkj->bij", x, y[:, :n5])),
    Program("convolution", [("f32", ("2", "7", 3)), ("f32", (3, 3, 4))],
            op("convolution", "%x0, %x1", "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]"
               "->[b, 0, f]>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : "
               "tensor<1x2xi64>, feature_group_count = 1 : i64, batch_group_count = 1 : i64",
               f"{bounded('f32', '2', '7', 3)}, tensor<3x3x4xf32>", bounded("f32", "2", "4", 4)),
            [("f32", "2", "4", 4)], lambda x, w, **_: np.stack([np.stack([
                np.einsum("tf,tfo->o", np.pad(e, ((1, 1), (0, 0)))[i * 2:i * 2 + 3], w)
                for i in range(max(0, (len(e) + 2 - 3) // 2 + 1))]).reshape(-1, 4)
                if len(e) >= 1 else np.zeros((0, 4)) for e in x]) if len(x) else
            np.zeros((0, max(0, (x.shape[1] + 2 - 3) // 2 + 1), 4))),
    Program("reduce_window", [("f32", ("7",))],
            ZERO + f'%r0 = "stablehlo.reduce_window"(%x0, %zero) ({SUM.format("f32", "add")}) '
            "{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = "
            f"dense<[[1, 1]]> : tensor<1x2xi64>}} : ({bounded('f32', '7')}, tensor<f32>) -> "
            f"{bounded('f32', '4')}",
            [("f32", "4")], lambda x, **_: windows(x, 3, 2, 1, 1)),
    Program("sort", [("f32", ("3:m", "5:n")), ("i32", ("3:m", "5:n"))],
            '%s:2 = "stablehlo.sort"(%x0, %x1) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>, '
            "%c: tensor<i32>, %d: tensor<i32>):\n%lt = stablehlo.compare GT, %a, %b : "
            "(tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %lt : tensor<i1>\n}) "
            f"{{dimension = 1 : i64, is_stable = true}} : ({M}, {bounded('i32', '3', '5')}) -> "
            f"({M}, {bounded('i32', '3', '5')})\n%r0 = stablehlo.negate %s#0 : {M}\n"
            f"%r1 = stablehlo.negate %s#1 : {bounded('i32', '3', '5')}",
            [("f32", "3", "5"), ("i32", "3", "5")],
            lambda x, y, **_: (-np.take_along_axis(x, np.argsort(-x, 1, kind="stable"), 1),
                               -np.take_along_axis(y, np.argsort(-x, 1, kind="stable"), 1))),
    Program("gather", [("f32", (6, 2)), ("i32", ("5", 1))],
            op("gather", "%x0, %x1", "dimension_numbers = #stablehlo.gather<offset_dims = [1], "
               "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
               "slice_sizes = array<i64: 1, 2>, indices_are_sorted = false",
               f"tensor<6x2xf32>, {bounded('i32', '5', 1)}", bounded("f32", "5", 2)),
            [("f32", "5", 2)], lambda x, i, **_: x[np.clip(i[:, 0], 0, 5)]),
    Program("gather_whole", [("f32", ("5:n", "3:m")), ("i32", (4, 1))],
            op("gather", "%x0, %x1", "dimension_numbers = #stablehlo.gather<offset_dims = [1], "
               "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
               "slice_sizes = array<i64: 1, 3>, indices_are_sorted = false",
               f"{bounded('f32', '5', '3')}, tensor<4x1xi32>", bounded("f32", 4, "3")),
            [("f32", 4, "3")], lambda x, i, **_: x[np.clip(i[:, 0], 0, len(x) - 1)] if len(x) else
            np.zeros((4, x.shape[1]))),
    Program("scatter", [("f32", (6,)), ("i32", ("5:n", 1)), ("f32", ("5:n",))],
            f'%r0 = "stablehlo.scatter"(%x0, %x1, %x2) ({SUM.format("f32", "add")}) '
            "{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = "
            "false, unique_indices = false} : (tensor<6xf32>, "
            f"{bounded('i32', '5', 1)}, {V}) -> tensor<6xf32>",
            [("f32", 6)], lambda x, i, u, **_: x + np.array(
                [u[(i[:, 0] == k)].sum() for k in range(6)], np.float32)),
    Program("dynamic_slice", [("f32", ("5",)), ("i32", ())],
            op("dynamic_slice", "%x0, %x1", "slice_sizes = array<i64: 2>", f"{V}, tensor<i32>",
               "tensor<2xf32>"),
            [("f32", 2)], lambda x, i, **_: np.pad(x, (0, 2))[
                min(max(i, 0), max(len(x) - 2, 0)):][:2]),
    Program("dynamic_update", [("f32", ("5",)), ("f32", (2,)), ("i32", ())],
            op("dynamic_update_slice", "%x0, %x1, %x2", "", f"{V}, tensor<2xf32>, tensor<i32>", V),
            [("f32", "5")], lambda x, u, i, **_: np.concatenate(
                [x[:min(max(i, 0), len(x) - 2)], u, x[min(max(i, 0), len(x) - 2) + 2:]])
            if len(x) >= 2 else u[:len(x)],
            cases=[(n,) for n in (0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5)]),
    Program("update_short", [("f32", ("7:n",)), ("f32", ("3:m",)), ("i32", ())],
            op("dynamic_update_slice", "%x0, %x1, %x2", "", f"{bounded('f32', '7')}, "
               f"{bounded('f32', '3')}, tensor<i32>", bounded("f32", "7")),
            [("f32", "7")], lambda x, u, i, n, m: np.concatenate(
                [x[:min(max(i, 0), n - m)], u, x[min(max(i, 0), n - m) + m:]]),
            cases=[(n, m) for n in (1, 3, 6, 7, 7, 7) for m in range(4) if m <= n]),
    Program("collapse", [("f32", ("3", "5"))],
            op("reshape", "%x0", "", M, bounded("f32", "15")),
            [("f32", "15")], lambda x, **_: x.reshape(-1)),
    Program("collapse_inner", [("f32", (2, 3, "5", 2))],
            op("reshape", "%x0", "", bounded("f32", 2, 3, "5", 2), bounded("f32", 2, "30")),
            [("f32", 2, "30")], lambda x, **_: x.reshape(2, -1)),
    Program("expand", [("f32", ("6",))],
            op("reshape", "%x0", "", bounded("f32", "6"), bounded("f32", 1, "3", 2)),
            [("f32", 1, "3", 2)], lambda x, **_: x.reshape(1, -1, 2),
            cases=[(0,), (2,), (4,), (6,)]),
    Program("expand_outer", [("f32", ("6",))],
            op("reshape", "%x0", "", bounded("f32", "6"), bounded("f32", 2, "3")),
            [("f32", 2, "3")], lambda x, **_: x.reshape(2, -1),
            cases=[(0,), (2,), (4,), (6,)]),
    Program("while_loop", [("f32", ("5",))],
            "%i = stablehlo.constant dense<0> : tensor<i32>\n"
            f"%w:2 = stablehlo.while(%a = %x0, %k = %i) : {V}, tensor<i32>\ncond {{\n"
            "%t = stablehlo.constant dense<3> : tensor<i32>\n"
            "%lt = stablehlo.compare LT, %k, %t : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "stablehlo.return %lt : tensor<i1>\n} do {\n"
            "%one = stablehlo.constant dense<1> : tensor<i32>\n"
            "%k2 = stablehlo.add %k, %one : tensor<i32>\n"
            f"%n = stablehlo.get_dimension_size %a, dim = 0 : ({V}) -> tensor<i32>\n"
            "%n2 = stablehlo.subtract %n, %one : tensor<i32>\n"
            f"%b = stablehlo.add %a, %a : {V}\n"
            f"%c = stablehlo.set_dimension_size %b, %n2, dim = 0 : ({V}, tensor<i32>) -> {V}\n"
            f"stablehlo.return %c, %k2 : {V}, tensor<i32>\n}}\n"
            f"%r0 = stablehlo.negate %w#0 : {V}",
            [("f32", "5")], lambda x, **_: -8 * x[:max(len(x) - 3, 0)]),
    Program("branches", [("f32", ("5",)), ("i1", ())],
            f"%w = \"stablehlo.if\"(%x1) ({{\n%a = stablehlo.add %x0, %x0 : {V}\n"
            f"stablehlo.return %a : {V}\n}}, {{\n%one = stablehlo.constant dense<1> : tensor<i32>\n"
            f"%c = stablehlo.set_dimension_size %x0, %one, dim = 0 : ({V}, tensor<i32>) -> {V}\n"
            f"stablehlo.return %c : {V}\n}}) : (tensor<i1>) -> {V}\n"
            f"%r0 = stablehlo.negate %w : {V}",
            [("f32", "5")], lambda x, p, **_: -2 * x if p else -np.pad(x, (0, 1), "constant",
                                                                     constant_values=np.inf)[:1]
            if len(x) < 1 else -x[:1], cases=[(1,), (2,), (4,), (5,)]),
    Program("compose", [("f32", ("3", "5:n"))],
            ZERO + reduce("%x0", "%zero", "0", M, V, to="%s") + "\n" +
            op("concatenate", "%s, %s", "dimension = 0 : i64", f"{V}, {V}", bounded("f32", "10"),
               to="%c") + "\n" +
            reduce("%c", "%zero", "0", bounded("f32", "10"), "tensor<f32>", to="%r0"),
            [("f32",)], lambda x, **_: 2 * x.sum()),
    Program("wide", [("f32", ("300", 40))],
            ZERO + reduce("%x0", "%zero", "0", bounded("f32", "300", 40), "tensor<40xf32>"),
            [("f32", 40)], lambda x, **_: x.sum(0)),
]
PROGRAMS += [
    Program("norm_training", [("f32", ("4", 3, "5:n")), ("f32", (3,)), ("f32", (3,))],
            op("batch_norm_training", "%x0, %x1, %x2", NORM, f"{X3}, {F}, {F}", f"({X3}, {F}, {F})",
               to="%s:3") + f"\n%r0 = stablehlo.negate %s#0 : {X3}\n%r1 = stablehlo.negate %s#1 : "
            f"{F}\n%r2 = stablehlo.negate %s#2 : {F}",
            [("f32", "4", 3, "5"), ("f32", 3), ("f32", 3)],
            lambda x, s, o, **_: tuple(-v for v in normal(x, s, o))),
    Program("norm_training_features", [("f32", ("4", "3:f", 2)), ("f32", ("3:f",)),
                                       ("f32", ("3:f",))],
            op("batch_norm_training", "%x0, %x1, %x2", NORM, f"{X2}, {VF}, {VF}",
               f"({X2}, {VF}, {VF})", to="%s:3") + f"\n%r0 = stablehlo.negate %s#0 : {X2}\n"
            f"%r1 = stablehlo.negate %s#1 : {VF}\n%r2 = stablehlo.negate %s#2 : {VF}",
            [("f32", "4", "3", 2), ("f32", "3"), ("f32", "3")],
            lambda x, s, o, **_: tuple(-v for v in normal(x, s, o))),
    Program("norm_inference", [("f32", ("4", "3:f", 2))] + [("f32", ("3:f",))] * 4,
            f"%v = stablehlo.multiply %x4, %x4 : {VF}\n" +
            op("batch_norm_inference", "%x0, %x1, %x2, %x3, %v", NORM,
               f"{X2}, {VF}, {VF}, {VF}, {VF}", X2),
            [("f32", "4", "3", 2)], lambda x, s, o, m, v, **_: normal(x, s, o, m, v * v)),
    Program("norm_grad", [("f32", ("4", 3, "5:n"))] + [("f32", (3,))] * 3 +
            [("f32", ("4", 3, "5:n"))],
            f"%v = stablehlo.multiply %x3, %x3 : {F}\n" +
            op("batch_norm_grad", "%x0, %x1, %x2, %v, %x4", NORM, f"{X3}, {F}, {F}, {F}, {X3}",
               f"({X3}, {F}, {F})", to="%s:3") + f"\n%r0 = stablehlo.negate %s#0 : {X3}\n"
            f"%r1 = stablehlo.negate %s#1 : {F}\n%r2 = stablehlo.negate %s#2 : {F}",
            [("f32", "4", 3, "5"), ("f32", 3), ("f32", 3)],
            lambda *a, **_: tuple(-v for v in normal_grad(*a))),
    Program("select_and_scatter", [("f32", ("2", "7")), ("f32", ("2", "4:w"))],
            "%init = stablehlo.constant dense<0.5> : tensor<f32>\n"
            f'%r0 = "stablehlo.select_and_scatter"(%x0, %x1, %init) {PICK} {{window_dimensions = '
            "array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], "
            f"[1, 1]]> : tensor<2x2xi64>}} : ({ROWS}, {bounded('f32', '2', '4')}, tensor<f32>) -> "
            f"{ROWS}",
            [("f32", "2", "7")], lambda x, s, **_: spread(x, s, 0.5, 3, 2, 1, 1),
            cases=[(r, n, w) for r in (1, 2) for n in range(8) for w in range(5)]),
    Program("select_batch", [("f32", ("3", 6)), ("f32", ("3", 2))],
            ZERO + f'%r0 = "stablehlo.select_and_scatter"(%x0, %x1, %zero) {PICK} '
            "{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 3>, "
            f"padding = dense<0> : tensor<2x2xi64>}} : ({bounded('f32', '3', 6)}, "
            f"{bounded('f32', '3', 2)}, tensor<f32>) -> {bounded('f32', '3', 6)}",
            [("f32", "3", 6)], lambda x, s, **_: spread(x, s, 0, 3, 3, 0, 0)),
    Program("conv_feature_groups", [("f32", ("3", 5, 2)), ("f32", (3, 1, 4))],
            op("convolution", "%x0, %x1", CONV.format(2, 1), f"{bounded('f32', '3', 5, 2)}, "
               "tensor<3x1x4xf32>", bounded("f32", "3", 5, 4)),
            [("f32", "3", 5, 4)], lambda x, w, **_: conv1(x, w, features=2)),
    Program("conv_batch_groups", [("f32", (4, 5, "3:f")), ("f32", (3, "3:f", 2))],
            op("convolution", "%x0, %x1", CONV.format(1, 2), f"{bounded('f32', 4, 5, '3')}, "
               f"{bounded('f32', 3, '3', 2)}", "tensor<2x5x2xf32>"),
            [("f32", 2, 5, 2)], lambda x, w, **_: conv1(x, w, batches=2)),
    Program("alone", [("f32", ("5",))],
            f'%r0 = "stablehlo.all_reduce"(%x0) ({SUM.format("f32", "add")}) {{replica_groups = '
            f"dense<0> : tensor<1x1xi64>}} : ({V}) -> {V}",
            [("f32", "5")], lambda x, **_: x),
]
I3 = "tensor<3xi32>"
PROGRAMS += [
    Program("dynamic_reshape", [("f32", ("3", "5:n"))],
            f"%n0 = stablehlo.get_dimension_size %x0, dim = 0 : ({M}) -> tensor<i32>\n"
            f"%n1 = stablehlo.get_dimension_size %x0, dim = 1 : ({M}) -> tensor<i32>\n"
            "%a = stablehlo.reshape %n1 : (tensor<i32>) -> tensor<1xi32>\n"
            "%b = stablehlo.reshape %n0 : (tensor<i32>) -> tensor<1xi32>\n"
            "%s = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
            "tensor<2xi32>\n"
            f"%r0 = stablehlo.dynamic_reshape %x0, %s : ({M}, tensor<2xi32>) -> "
            f"{bounded('f32', '5', '3')}",
            [("f32", "5", "3")], lambda x, n3, n, **_: x.reshape(n, n3)),
    Program("shaped_reshape", [("f32", (6,))],
            "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n"
            "%r0 = stablehlo.dynamic_reshape %x0, %s : (tensor<6xf32>, tensor<2xi64>) -> "
            "tensor<2x3xf32>", [("f32", 2, 3)], lambda x: x.reshape(2, 3), cases=[()]),
    Program("shaped_broadcast", [("f32", ("5",)), ("i32", (2,))],
            f"%r0 = stablehlo.dynamic_broadcast_in_dim %x0, %x1, dims = [1] : ({V}, "
            f"tensor<2xi32>) -> {bounded('f32', '4', '5')}",
            [("f32", "4", "5")], lambda x, s, **_: np.broadcast_to(
                x[:max(s[1], 0)], (min(max(s[0], 0), 4), len(x[:max(s[1], 0)])))),
    Program("shaped_broadcast_static", [("f32", (3,))],
            "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n"
            "%r0 = stablehlo.dynamic_broadcast_in_dim %x0, %s, dims = [1] : (tensor<3xf32>, "
            "tensor<2xi64>) -> tensor<2x3xf32>",
            [("f32", 2, 3)], lambda x: np.stack([x, x]), cases=[()]),
    Program("shaped_iota", [("i32", (2,))],
            "%r0 = stablehlo.dynamic_iota %x0, dim = 1 : (tensor<2xi32>) -> "
            f"{bounded('i32', '3', '4')}",
            [("i32", "3", "4")], lambda s: np.tile(np.arange(min(max(s[1], 0), 4)),
                                                   (min(max(s[0], 0), 3), 1)), cases=[()] * 6),
    Program("shaped_pad", [("f32", ("5",))],
            "%v = stablehlo.constant dense<7.0> : tensor<f32>\n"
            "%a = stablehlo.constant dense<1> : tensor<1xi64>\n"
            "%z = stablehlo.constant dense<0> : tensor<1xi64>\n"
            f"%r0 = stablehlo.dynamic_pad %x0, %v, %a, %a, %z : ({V}, tensor<f32>, tensor<1xi64>, "
            f"tensor<1xi64>, tensor<1xi64>) -> {bounded('f32', '7')}",
            [("f32", "7")], lambda x, **_: pad(x, 1, 1, 0, 7)),
    Program("shaped_slice", [("f32", ("5", 4)), ("i32", (2,)), ("i32", (2,))],
            "%s = stablehlo.constant dense<[2, 1]> : tensor<2xi32>\n"
            f"%r0 = stablehlo.real_dynamic_slice %x0, %x1, %x2, %s : ({bounded('f32', '5', 4)}, "
            f"tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {bounded('f32', '5', '4')}",
            [("f32", "5", "4")], lambda x, a, b, **_: x[max(a[0], 0):max(b[0], 0):2,
                                                        max(a[1], 0):max(b[1], 0)],
            cases=[(n,) for n in (0, 1, 2, 3, 4, 5, 5, 5)]),
    Program("shaped_gather", [("f32", (4, 3)), ("i32", ("5", 1))],
            "%s = stablehlo.constant dense<[1, 3]> : tensor<2xi32>\n" +
            op("dynamic_gather", "%x0, %x1, %s", "dimension_numbers = #stablehlo.gather<"
               "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
               "index_vector_dim = 1>, indices_are_sorted = false",
               f"tensor<4x3xf32>, {bounded('i32', '5', 1)}, tensor<2xi32>",
               bounded("f32", "5", 3)),
            [("f32", "5", 3)], lambda x, i, **_: x[np.clip(i[:, 0], 0, 3)]),
]
# XLA of jaxlib 0.10.2: what it says or does otherwise, and of which sizes it is the same.
PAST = "what is past the size is anything there, zeros here"
REFUSED_BY_XLA = {
    "reduce_sum_init": ("it adds the initial value once more for each element past the size",
                        lambda n5: n5 == 5),
    "reduce_product": ("the same", lambda n5: n5 == 5),
    "slice_static": (PAST, lambda n5: n5 >= 3),
    "pad_less": ("it ends the process where a size would be below 0", lambda n5: n5 >= 2),
    "select_and_scatter": ("it counts windows without the padding", None),
    "alone": ("all_reduce is not implemented", None),
    "conv_batch_groups": ("it takes what is past the size", lambda f: f == 3),
    "convolution": ("dynamic spatial dims are not supported", None),
    "reduce_window": ("it counts windows without the padding", None),
    "gather_whole": ("it takes what is past the size", lambda n, m: n == 5),
    "dynamic_slice": (PAST, lambda n5: n5 >= 2),
    "dynamic_update": ("it holds starts to the bound, not the size", lambda n5: n5 == 5),
    "update_short": ("updates of such a size are not supported", None),
    "expand": ("it takes the bound for the size", lambda n6: n6 == 6),
    "expand_outer": ("it takes the bound for the size", lambda n6: n6 == 6),
    "while_loop": ("it ends the process where a size is below 0", lambda n5: n5 >= 3),
    **{name: ("such ops are not translated to HLO", None) for name in (
        "shaped_reshape", "shaped_broadcast", "shaped_broadcast_static", "shaped_iota",
        "shaped_pad", "shaped_slice", "shaped_gather")},
}
