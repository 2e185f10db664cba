# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose operands have their dims in every usual order, and their gradients: what the
matrix unit takes together lies apart, side by side, or is brought there first. Small whole numbers,
so every sum is exact and equals the CPU backend's."""

import jax
import numpy as np
import pytest
from jaxlib import _jax

lax = jax.lax
CPU = jax.devices("cpu")[0]

ORDERS = {"torch": ("NCHW", "OIHW", "NCHW"), "jax": ("NHWC", "HWIO", "NHWC"),
          "batch last": ("CHWN", "IHWO", "CHWN"), "mixed": ("HNWC", "WIOH", "CNWH")}
# (points a side, features in, features out, kernel), and what else is given
SHAPES = {
    "one point": ((1, 1, 1, 1), {}),
    "one feature": ((9, 1, 5, 3), {}),
    "two features": ((9, 2, 5, 3), {}),
    "by points": ((8, 17, 3, 1), {}),
    "strided": ((13, 16, 9, 3), {"window_strides": (2, 3)}),
    "dilated": ((13, 6, 4, 3), {"rhs_dilation": (2, 1), "lhs_dilation": (1, 3)}),
    "feature groups": ((7, 12, 8, 3), {"feature_group_count": 4}),
    "batch groups": ((7, 5, 6, 3), {"batch_group_count": 2}),
    "many features": ((4, 600, 40, 2), {}),
    "many points": ((70, 3, 4, 5), {}),
    "one of many": ((11, 64, 1, 8), {}),
    "four of many": ((9, 36, 4, 3), {}),
    "four of too few": ((9, 35, 4, 3), {}),
    "two of many, dilated": ((13, 20, 2, 3), {"rhs_dilation": (2, 1)}),
}


def whole(*shape):
    n = int(np.prod(shape))
    return (np.arange(n, dtype=np.int64) * 7919 % 13 - 6).astype(np.float32).reshape(shape)


def ordered(a, order, names):
    """a, whose dims are called `names`, with its dims in another order."""
    return np.ascontiguousarray(a.transpose([names.index(c) for c in order]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_dims_gives_the_same_sums(order, shape, device):
    (side, c, o, k), more = SHAPES[shape]
    batch = 4
    x = ordered(whole(batch, c, side, side), ORDERS[order][0], "NCHW")
    w = ordered(whole(o, c // more.get("feature_group_count", 1), k, k), ORDERS[order][1], "OIHW")
    more = {"window_strides": (1, 1), **more}

    def f(x, w):
        return lax.conv_general_dilated(x, w, padding=[(1, 1), (k // 2, 0)],
                                        dimension_numbers=ORDERS[order], **more)

    def with_gradients(x, w):
        y, pull = jax.vjp(f, x, w)
        return y, *pull(y % 3)

    wanted = jax.jit(with_gradients)(*jax.device_put((x, w), CPU))
    got = jax.jit(with_gradients)(*jax.device_put((x, w), device))
    for g, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(want))


@pytest.mark.parametrize("order", ORDERS)
def test_an_operand_may_be_turned_and_reversed(order, device):
    x = whole(16, 10, 11, 5)
    w = whole(3, 3, 5, 7)

    def f(x, w):
        x = x.transpose(["NHWC".index(c) for c in ORDERS[order][0]])[:, ::-1]
        w = w.transpose(["HWIO".index(c) for c in ORDERS[order][1]])[..., ::-1]
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=ORDERS[order])

    wanted = jax.jit(f)(*jax.device_put((x, w), CPU))
    got = jax.jit(f)(*jax.device_put((x, w), device))
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


# The gradient of such a convolution has more zeros between its inputs than its kernel is wide, as
# wide as it is, or less; a kernel with as many groups as features has one product for each tap.
@pytest.mark.parametrize("layout", ["torch", "jax"])
@pytest.mark.parametrize("stride", [(3, 2), (4, 4), (9, 16), (11, 12)])
@pytest.mark.parametrize("kernel", [(1, 1), (2, 1), (4, 4), (9, 16), (18, 5), (11, 33)])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_gradient_of_patches(layout, stride, kernel, groups, device):
    x = ordered(whole(2, 6, 37, 50), ORDERS[layout][0], "NCHW")
    w = ordered(whole(12, 6 // groups, *kernel), ORDERS[layout][1], "OIHW")

    def pulled(x, w):
        y, pull = jax.vjp(lambda x: lax.conv_general_dilated(
            x, w, stride, [(2, 0), (-1, 3)], dimension_numbers=ORDERS[layout],
            feature_group_count=groups), x)
        return pull(y % 3)[0]

    got, want = (np.asarray(jax.jit(pulled)(*jax.device_put((x, w), d))) for d in (device, CPU))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("width", [16, 20])
def test_gradient_of_patches_takes_the_products_that_count(width, device):
    x, w = whole(1, 3, 160, 160), whole(32, 3, width, width)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (16, 16), "SAME", dimension_numbers=ORDERS["torch"])

    x, w = jax.device_put((x, w), device)
    forward, back = (jax.jit(g).lower(x, w).compile().cost_analysis()["flops"] for g in
                     (f, lambda x, w: jax.vjp(lambda x: f(x, w), x)[1](f(x, w))[0]))
    assert back < 8 * forward


# One feature in: windows along one dim are rows of a product, where that pays, and those of a few
# taps, or along several dims, are added up tap by tap (runtime/compiler/lower/conv.c, depthwise.c).
@pytest.mark.parametrize("order", [("NCH", "OIH", "NCH"), ("HNC", "OHI", "HCN")])
@pytest.mark.parametrize("taps", [2, 19, 20, 300])
@pytest.mark.parametrize("features", [1, 4, 5])
@pytest.mark.parametrize("more", [{}, {"rhs_dilation": (2,)}, {"window_strides": (2,)}], ids=str)
def test_one_feature_gives_a_few(order, taps, features, more, device):
    x = ordered(whole(3, 1, 700), order[0], "NCH")
    w = ordered(whole(features, 1, taps), order[1], "OIH")
    more = {"window_strides": (1,), **more}

    def f(x, w):
        return lax.conv_general_dilated(x, w, padding=[(taps - 1, -3)], dimension_numbers=order,
                                        **more)

    def with_gradients(x, w):
        y, pull = jax.vjp(f, x, w)
        return y, jax.numpy.exp2(-abs(y)), *pull(y % 3)

    wanted = jax.jit(with_gradients)(*jax.device_put((x, w), CPU))
    got = jax.jit(with_gradients)(*jax.device_put((x, w), device))
    for g, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(want))


WIDE = {"int8": "int32", "bfloat16": "float32"}


@pytest.mark.parametrize("kernel", [(1, 40), (40, 1), (3, 3), (32, 32), (41, 25)])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "complex64"])
def test_one_feature_of_a_picture_gives_one(kernel, dtype, device):
    x, w = whole(2, 61, 83, 1).astype(dtype), whole(*kernel, 1, 1).astype(dtype)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=ORDERS["jax"],
                                        preferred_element_type=WIDE.get(dtype))

    got, want = (np.asarray(jax.jit(f)(*jax.device_put((x, w), d))) for d in (device, CPU))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ["torch", "jax", "mixed"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int8"])
def test_few_features_of_many_are_rounded_once(order, dtype, device):
    x = ordered(whole(2, 40, 9, 13), ORDERS[order][0], "NCHW").astype(dtype)
    w = ordered(whole(3, 40, 3, 3), ORDERS[order][1], "OIHW").astype(dtype)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(2, -1), (0, 3)],
                                        dimension_numbers=ORDERS[order],
                                        preferred_element_type=WIDE.get(dtype))

    got, want = (np.asarray(jax.jit(f)(*jax.device_put((x, w), d))) for d in (device, CPU))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("taps", [5, 64])
def test_what_is_not_a_number_stays_in_its_windows(taps, device):
    x = whole(1, 1, 500)
    x[0, 0, 200], x[0, 0, 300], x[0, 0, 499] = np.inf, np.nan, -np.inf
    w = 1 + abs(whole(1, 1, taps))

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1,), "SAME")

    got, want = (np.asarray(jax.jit(f)(*jax.device_put((x, w), d))) for d in (device, CPU))
    np.testing.assert_array_equal(got, want)
    assert np.isfinite(got).sum() > 500 - 4 * taps


@pytest.mark.parametrize("order", ["torch", "jax"])
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_padding_meets_taps_that_are_not_finite(order, number, device):
    x, w = whole(1, 64, 9, 9), whole(2, 64, 3, 3)
    w[1, 5, 0, 2] = number
    x, w = ordered(x, ORDERS[order][0], "NCHW"), ordered(w, ORDERS[order][1], "OIHW")

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (-1, 2)],
                                        dimension_numbers=ORDERS[order])

    got, want = (np.asarray(jax.jit(f)(*jax.device_put((x, w), d))) for d in (device, CPU))
    assert np.isnan(want).any()
    np.testing.assert_array_equal(got, want)


# As much is cut off the input as there is, or more, and padded at the other end.
@pytest.mark.parametrize("features", [(64, 2), (1, 1), (1, 3)])
@pytest.mark.parametrize("pad", [(-3, 9), (-5, 9), (12, -4)])
def test_padding_alone_is_met_by_every_tap(features, pad, device):
    x, w = whole(2, features[0], 3, 3), whole(features[1], features[0], 3, 1)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [pad, (0, 1)])

    got, want = (np.asarray(jax.jit(f)(*jax.device_put((x, w), d))) for d in (device, CPU))
    np.testing.assert_array_equal(got, want)


# 400 taps of which each array is as large as the picture would be 400 of them.
def test_taps_are_added_up_in_little_memory(device):
    x, w = jax.device_put((whole(1, 1, 512, 512), whole(1, 1, 20, 20)), device)
    made = jax.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")).lower(x, w)
    assert made.compile().memory_analysis().temp_size_in_bytes < 6 * x.nbytes


@pytest.mark.parametrize(("side", "pad", "most"), [(1000, 0, 128 << 20), (1200, 0, 1 << 20),
                                                  (900, 60, 256 << 20), (900, 200, 1 << 20)])
def test_products_of_all_taps_are_made_where_they_fit(side, pad, most, device):
    x = jax.ShapeDtypeStruct((1, side, side, 64), np.float32)
    w = jax.ShapeDtypeStruct((3, 3, 64, 3), np.float32)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(pad, pad)] * 2,
                                        dimension_numbers=ORDERS["jax"])

    with jax.default_device(device):
        made = jax.jit(f).lower(x, w).compile()
    assert made.memory_analysis().temp_size_in_bytes < most


# An instruction slides along 6 dims.
@pytest.mark.parametrize("n", [6, 7, 8])
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("kind", [np.float32, np.int8])
def test_many_spatial_dims(device, cpu, n, groups, kind):
    rng = np.random.default_rng(n)
    features, batches = groups
    taps = [1 if d == 3 else 2 for d in range(n)]
    lhs, rhs, out = (tuple(int(i) for i in rng.permutation(n + 2)) for _ in range(3))
    x = rng.integers(-3, 4, [2 * batches, 2 * features] + [3] * n).astype(kind)
    w = rng.integers(-3, 4, [2 * features * batches, 2] + taps).astype(kind)
    x, w = x.transpose(np.argsort(lhs)), w.transpose(np.argsort(rhs))
    dims = lax.ConvDimensionNumbers(lhs, rhs, out)
    for strides, pad, holes, steps in (
            ([1] * n, [(0, 0)] * n, [1] * n, [1] * n),
            ([2 - d % 2 for d in range(n)], [(d % 2, (d + 1) % 3 - 1) for d in range(n)],
             [2 if d in (0, n - 1) else 1 for d in range(n)],
             [2 if d == 0 else 1 for d in range(n)])):
        got, want = (jax.device_get(jax.jit(lambda x, w: lax.conv_general_dilated(
            x, w, strides, pad, holes, steps, dims, features, batches,
            preferred_element_type=np.int32 if kind == np.int8 else None))(
                *jax.device_put((x, w), d))) for d in (device, cpu))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_nothing_along_many_spatial_dims(device):
    x, w = np.ones([1, 2] + [3] * 7, np.float32), np.ones([2, 2] + [2] * 7, np.float32)
    for x, w, shape in (x[:, :0], w[:, :0], (1, 2) + (2,) * 7), (x[:0], w, (0, 2) + (2,) * 7):
        got = jax.jit(lambda x, w: lax.conv_general_dilated(x, w, [1] * 7, "VALID"))(
            *jax.device_put((x, w), device))
        assert got.shape == shape and not np.any(got)


def test_backwards_along_many_spatial_dims(device):
    x, w = (np.random.default_rng(7).integers(-3, 4, [2, 2] + [n] * 7).astype(np.float32)
            for n in (3, 2))
    args = jax.device_put((x, w), device)
    forwards = jax.jit(lambda x, w: lax.conv_general_dilated(x, w, [1] * 7, "VALID"))
    text = forwards.lower(*args).as_text()
    assert text.count("window = {") == 1 and "reverse = " in text
    turned = text.replace("reverse = [" + ", ".join(["false"] * 7), "reverse = [" +
                          ", ".join(["true", "false"] * 3 + ["true"]))
    assert turned != text
    loaded = device.client.compile_and_load(turned.encode(), [device], _jax.CompileOptions())
    got = loaded.execute_sharded(args).disassemble_into_single_device_arrays()[0][0]
    want = forwards(x, w[:, :, ::-1, :, ::-1, :, ::-1, :, ::-1])
    np.testing.assert_array_equal(got, want)
