# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation of narrow floats, as torch_xla sends layer, group and batch norms: its
StableHLO text, as JAX has no words for it, against numpy in float64 on the same rounded numbers."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jaxlib import _jax

BF16 = ml_dtypes.bfloat16
NAMES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
ULP = {"bfloat16": 2.0 ** -7, "float16": 2.0 ** -10, "float32": 2.0 ** -18}
EPSILON = 1e-5


def tensor(a):
    return f"tensor<{''.join(f'{n}x' for n in a.shape)}{NAMES[str(a.dtype)]}>"


@pytest.fixture(scope="module")
def on_device(device):
    def run(op, args, likes):
        names = [f"%a{i}" for i in range(len(args))]
        types = ", ".join(map(tensor, args))
        results = ", ".join(map(tensor, likes))
        given = ", ".join(f"%r#{i}" for i in range(len(likes))) if len(likes) > 1 else "%r"
        taken = ", ".join(f"{n}: {tensor(a)}" for n, a in zip(names, args))
        text = (f"module @m {{ func.func public @main({taken}) -> ({results}) {{\n"
                f"%r{f':{len(likes)}' if len(likes) > 1 else ''} = \"stablehlo.{op}\"("
                f"{', '.join(names)}) {{epsilon = {EPSILON:e} : f32, feature_index = 1 : i64}} : "
                f"({types}) -> ({results})\nreturn {given} : {results}\n}} }}")
        loaded = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
        out = loaded.execute_sharded([jax.device_put(a, device) for a in args])
        return [np.asarray(r[0]).astype(np.float64)
                for r in out.disassemble_into_single_device_arrays()]
    return run


def close(got, want, dtype):
    for a, b in zip(got, want, strict=True):
        assert np.isfinite(a).all()
        assert np.abs(a - b).max() <= 1.5 * ULP[str(np.dtype(dtype))] * np.abs(b).max()


def numbers(shape, dtype, mean):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + mean).astype(dtype)
    scale, offset = (rng.uniform(0.5, 1.5, shape[1]).astype(dtype) for _ in range(2))
    return x, scale, offset


def along(v):
    return v.astype(np.float64)[None, :, None]


def moments(x):
    x = x.astype(np.float64)
    return x.mean((0, 2)), x.var((0, 2))


CASES = pytest.mark.parametrize("dtype, shape, mean", [
    (BF16, (8, 3, 33), 0), (BF16, (8, 3, 33), 30), (BF16, (1, 64, 256), 10),
    (np.float16, (8, 3, 33), 30), (np.float32, (8, 3, 33), 30),
    # more elements than float16 has numbers, and a sum that it has not
    (np.float16, (4, 2, 25600), 5), (BF16, (4, 2, 25600), 5)])


@CASES
def test_training(on_device, dtype, shape, mean):
    x, scale, offset = numbers(shape, dtype, mean)
    m, v = moments(x)
    y = (x.astype(np.float64) - m[:, None]) / np.sqrt(v + EPSILON)[:, None]
    got = on_device("batch_norm_training", [x, scale, offset], [x, scale, scale])
    close(got, [y * along(scale) + along(offset), m, v], dtype)


@CASES
def test_inference(on_device, dtype, shape, mean):
    x, scale, offset = numbers(shape, dtype, mean)
    m, v = (a.astype(dtype) for a in moments(x))
    y = (x.astype(np.float64) - along(m)) / np.sqrt(along(v) + EPSILON)
    got = on_device("batch_norm_inference", [x, scale, offset, m, v], [x])
    close(got, [y * along(scale) + along(offset)], dtype)


@CASES
def test_gradient(on_device, dtype, shape, mean):
    x, scale, _ = numbers(shape, dtype, mean)
    g = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    m, v = (a.astype(dtype) for a in moments(x))
    wide, inverse = g.astype(np.float64), 1 / np.sqrt(along(v) + EPSILON)
    y = (x.astype(np.float64) - along(m)) * inverse
    dx = wide - wide.mean((0, 2), keepdims=True) - y * (wide * y).mean((0, 2), keepdims=True)
    want = [dx * inverse * along(scale), (wide * y).sum((0, 2)), wide.sum((0, 2))]
    got = on_device("batch_norm_grad", [x, scale, m, v, g], [x, scale, scale])
    close(got, want, dtype)
