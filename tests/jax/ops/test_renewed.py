# SPDX-License-Identifier: Apache-2.0
"""Ops that StableHLO has given up and older writers still send (einsum, unary_einsum,
torch_index_select, broadcast): its text, as JAX has no words for them, against numpy."""

import re

import jax
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax

NAMES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "int32": "i32", "int8": "i8",
         "complex64": "complex<f32>", "bool": "i1", "uint8": "ui8", "int64": "i64"}


def tensor(a):
    return f"tensor<{''.join(f'{n}x' for n in a.shape)}{NAMES[str(a.dtype)]}>"


@pytest.fixture(scope="module")
def on_device(device):
    def run(op, attributes, args, like):
        types = [tensor(a) for a in args]
        names = [f"%a{i}" for i in range(len(args))]
        text = (f"module @m {{ func.func public @main("
                f"{', '.join(f'{n}: {t}' for n, t in zip(names, types))}) -> {tensor(like)} {{\n"
                f"%r = \"stablehlo.{op}\"({', '.join(names)}) {{{attributes}}} : "
                f"({', '.join(types)}) -> {tensor(like)}\nreturn %r : {tensor(like)}\n}} }}")
        loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
        with jax.enable_x64(True):
            results = loaded.execute_sharded([jax.device_put(a, device) for a in args])
        return np.asarray(results.disassemble_into_single_device_arrays()[0][0])
    return run


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape) * 4
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x > 0 if dtype == bool else x).astype(dtype)


def size_of(label, k):
    """Of the k-th round: a dim's size by its letter, 64 and its neighbours among them."""
    return [(2, 3, 4, 5, 6, 7), (63, 64, 65, 1, 3, 2), (1, 1, 1, 1, 1, 1),
            (5, 0, 3, 2, 0, 4)][k]["ijkbdA".index(label)]


BINARY = """ij,jk->ik ij,kj->ik ij,jk->ki bij,bjk->bik bij,bjk->kbi ij,ij-> ij,ij->ij i,j->ij
ij,k->kji ijk,jbd->ikbd ij,jk->k ij,kb-> ii,ij->ij iij,j->i bij,bij->b Aij,jA->i iii,i->i ,ij->ji
i,->i""".split()
DOTS = """...ij,jk->...ik ...ij,...jk->...ik ij,...jk->...ik ...,...->... ...i,i...->... i...,i->...
...ij,...jk->ik""".split()


def shapes_of(config, k, dots=((), ())):
    for part, front in zip(config.split("->")[0].split(","), dots):
        shape = []
        for piece in re.findall(r"\.\.\.|[a-zA-Z]", part):
            shape += front if piece == "..." else [size_of(piece, k)]
        yield tuple(shape)


def close(got, want, dtype):
    assert got.shape == want.shape
    if np.dtype(dtype).kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        loose = 2e-2 if dtype == ml_dtypes.bfloat16 else 1e-4 if got.dtype.itemsize == 4 else 1e-5
        np.testing.assert_allclose(np.array(got, complex), want, rtol=loose,
                                   atol=loose * np.abs(want).max(initial=1))


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("config", BINARY)
def test_einsum(config, k, on_device):
    rng = np.random.default_rng(k)
    args = [numbers(rng, s, np.float32) for s in shapes_of(config, k)]
    want = np.einsum(config, *[a.astype(np.float64) for a in args])
    got = on_device("einsum", f'einsum_config = "{config}"', args, want.astype(np.float32))
    close(got, want, np.float32)


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16, np.int32, np.int8, np.complex64,
                                   np.uint8])
@pytest.mark.parametrize("config", ["ij,jk->ki", "bij,bjk->bik", "iij,j->i", "ij,kb->"])
def test_einsum_of_every_kind_of_number(config, dtype, on_device):
    rng = np.random.default_rng(7)
    args = [numbers(rng, s, dtype) for s in shapes_of(config, 0)]
    wide = np.complex128 if dtype == np.complex64 else np.float64 if np.dtype(
        dtype).kind not in "iu" else dtype
    want = np.einsum(config, *[a.astype(wide) for a in args])
    got = on_device("einsum", f'einsum_config = "{config}"', args, want.astype(dtype))
    close(got, want, dtype)


@pytest.mark.parametrize("dots", [((), ()), ((2, 3), (2, 3)), ((2, 3), (1, 3)), ((1, 3), (2, 1)),
                                  ((3,), (2, 3)), ((2, 3), ())])
@pytest.mark.parametrize("config", DOTS)
def test_einsum_with_dims_that_have_no_letter(config, dots, on_device):
    if "...ij,...jk->ik" == config:
        dots = ((), ())
    if not config.split(",")[0].count("..."):
        dots = ((), dots[1])
    if not config.split("->")[0].split(",")[1].count("..."):
        dots = (dots[0], ())
    rng = np.random.default_rng(8)
    args = [numbers(rng, s, np.float32) for s in shapes_of(config, 0, dots)]
    want = np.einsum(config, *[a.astype(np.float64) for a in args])
    got = on_device("einsum", f'einsum_config = "{config}"', args, want.astype(np.float32))
    close(got, want, np.float32)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("config", "ij->i ij->j ij-> ij->ji ii->i ii-> iji->j iiji->ij bij->jb "
                                   "i->i ->".split())
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unary_einsum(config, k, dtype, on_device):
    rng = np.random.default_rng(k)
    x, = [numbers(rng, s, dtype) for s in shapes_of(config, k)]
    want = np.einsum(config, x.astype(np.float64 if dtype == np.float32 else dtype))
    got = on_device("unary_einsum", f'einsum_config = "{config}"', [x],
                    np.asarray(want).astype(dtype))
    close(got, np.asarray(want), dtype)


def test_a_diagonal_keeps_every_number(on_device):
    """What is beside it does not count, were it not a number."""
    x = np.full((5, 5), np.nan, np.float32)
    x[range(5), range(5)] = [np.nan, 0.0, np.inf, -np.inf, 1e-30]
    got = on_device("unary_einsum", 'einsum_config = "ii->i"', [x], x[0])
    np.testing.assert_array_equal(got, np.diagonal(x))


def torch_index_select(x, index, dim, batch):
    """By its definition, an element at a time."""
    if batch:
        return np.stack([torch_index_select(a, i, dim - 1, batch - 1)
                         for a, i in zip(x, index)])
    return np.take(x, np.clip(index, 0, max(x.shape[dim] - 1, 0)), axis=dim)


@pytest.mark.parametrize("shape,index,dim,batch", [
    ((5, 1, 5), (2,), 0, 0), ((5, 4, 3), (2, 7), 1, 0), ((5, 4, 3), (), 2, 0), ((7,), (64,), 0, 0),
    ((3, 5, 4), (3, 2), 1, 1), ((3, 5, 4), (3, 2, 6), 2, 1), ((2, 3, 65, 4), (2, 3, 63), 2, 2),
    ((2, 3, 4), (2, 3), 2, 2), ((3, 5, 4), (3, 2), -1, -1), ((5, 0), (3,), 0, 0),
    ((5, 4), (0,), 1, 0), ((64, 130), (129,), 0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_torch_index_select(shape, index, dim, batch, dtype, on_device):
    rng = np.random.default_rng(11)
    x = numbers(rng, shape, dtype)
    last = shape[dim] + 2       # some past the end, some before the beginning
    i = rng.integers(-2, last, index).astype(np.int32)
    want = torch_index_select(x, i, dim % len(shape), batch + len(index) * (batch < 0))
    got = on_device("torch_index_select", f"dim = {dim} : i64, batch_dims = {batch} : i64", [x, i],
                    want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sizes,shape", [((2,), (3,)), ((), (3, 4)), ((2, 5), ()), ((64, 1), (65,)),
                                         ((0, 3), (2,)), ((3,), (1, 0))])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64])
def test_broadcast(sizes, shape, dtype, on_device):
    x = numbers(np.random.default_rng(12), shape, dtype)
    want = np.broadcast_to(x, sizes + shape)
    text = f"array<i64: {', '.join(map(str, sizes))}>" if sizes else "array<i64>"
    got = on_device("broadcast", f"broadcast_sizes = {text}", [x], want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("config,shapes,says", [
    ("ij,jk", ((2, 3), (3, 4)), "-> and those of the result"),
    ("ij->ik", ((2, 3), (3, 4)), "for the dims of 2 operands"),
    ("ij,jk->iz", ((2, 3), (3, 4)), "a dim that no operand has"),
    ("ij,jk->ii", ((2, 3), (3, 2)), "a letter twice"),
    ("ij,jk->ik", ((2, 3), (4, 4)), "dims of 3 and 4 have one letter"),
    ("ii,jk->ik", ((2, 4), (4, 4)), "dims of 2 and 4 have one letter"),
    ("i,jk->ik", ((2, 4), (4, 4)), "1 dims for operand 0 of 2"),
    ("ijk,jk->ik", ((2, 4), (4, 4)), "3 dims for operand 0 of 2"),
    ("i2,jk->ik", ((2, 4), (4, 4)), "where a letter or ... belongs"),
    ("...i...,jk->ik", ((2, 4), (4, 4)), "where a letter or ... belongs"),
    ("", ((2, 4), (4, 4)), "its einsum_config is"),
    ("ij,jk->ikj", ((2, 4), (4, 5)), "another type"),
])
def test_an_einsum_that_contradicts_itself_says_how(config, shapes, says, on_device):
    args = [np.ones(s, np.float32) for s in shapes]
    with pytest.raises(Exception, match=f"INVALID_ARGUMENT.*einsum.*{re.escape(says)}"):
        on_device("einsum", f'einsum_config = "{config}"', args, np.ones((2, 4), np.float32))
