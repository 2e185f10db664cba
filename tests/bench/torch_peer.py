# SPDX-License-Identifier: Apache-2.0
"""Times the device, through JAX, against PyTorch's eager mode on the CPU (oneDNN, MKL) in one run.

    python torch_peer.py [--write RESULTS.md] [--only TEXT]

The two take turns: PyTorch's threads are idle while the device's lanes work. Before a row is
timed the two results are compared. Nothing here passes or fails but that.
"""

import argparse
import datetime

import sides
from sides import uniform

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from jax import lax

import programs
import results
import why

TABLE = sides.Table("PyTorch")
TYPES = {"f32": np.float32, "bf16": jnp.bfloat16}


def to_torch(x):
    """A copy; numpy's bfloat16 goes through f32, which holds it."""
    x = np.asarray(x)
    if x.dtype == jnp.bfloat16:
        return torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(x.copy())


def to_numpy(t):
    return t.float().numpy() if t.dtype == torch.bfloat16 else t.numpy()


def against(name, target, ours, theirs, *args):
    """ours of the arrays on the device, theirs of the same as tensors of the CPU. The arguments of
    a convolution are NHWC for us and NCHW, in the same order of bytes, for PyTorch: theirs turns
    them before it is timed if it is a class."""
    run, got, _ = sides.on_device(ours, *args)
    tensors = [to_torch(x) for x in args]
    if isinstance(theirs, type):
        peer = theirs(*tensors)
    else:
        def peer():
            return theirs(*tensors)
    with torch.inference_mode():
        want = peer()
        want = [to_numpy(t) for t in (want if isinstance(want, tuple) else (want,))]
        if TABLE.agrees(name, got, want):
            del got, want
            TABLE.measure(name, target, run, peer)


# ---- the rows ----------------------------------------------------------------

def products():
    for n in (1024, 2048, 4096):
        for label, dtype in TYPES.items():
            against(f"matmul {label} {n}", ">= 2.0x" if label == "bf16" else ">= 1.0x",
                    lambda a, b: a @ b, torch.matmul, uniform(n, n, dtype=dtype),
                    uniform(n, n, dtype=dtype))
        against(f"matmul int8 {n}", ">= 1.0x",
                lambda a, b: lax.dot(a, b, preferred_element_type=np.int32), torch._int_mm,
                uniform(n, n, dtype=np.int8), uniform(n, n, dtype=np.int8))


def functions():
    x = uniform(1 << 20)
    for name, ours, theirs in (("tanh", jnp.tanh, torch.tanh), ("exp", jnp.exp, torch.exp),
                               ("log", lambda x: jnp.log(x + 1.5), lambda x: torch.log(x + 1.5)),
                               ("sigmoid", jax.nn.sigmoid, torch.sigmoid),
                               ("gelu", jax.nn.gelu, lambda x: F.gelu(x, approximate="tanh")),
                               ("add", lambda x: x + x, lambda x: x + x),
                               ("sum", jnp.sum, torch.sum)):
        against(f"{name} 1 Mi f32", ">= 1.0x", ours, theirs, x)


def rows_of_many():
    square = uniform(4096, 4096)
    against("softmax 4096x4096", ">= 1.0x", jax.nn.softmax, lambda x: torch.softmax(x, -1), square)
    against("layer norm 4096x4096", ">= 1.0x",
            lambda x, g, b: (x - x.mean(-1, keepdims=True))
            * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b,
            lambda x, g, b: F.layer_norm(x, (4096,), g, b), square, uniform(4096), uniform(4096))


def attention():
    for label, dtype in TYPES.items():
        against(f"attention {label} 8x12x512x64", ">= 1.0x", programs.attention,
                F.scaled_dot_product_attention,
                *[uniform(8, 12, 512, 64, dtype=dtype) * dtype(k) for k in (1, 2, 3)])


class Convolution:
    """PyTorch's own way with NHWC: NCHW of which the channels come last in memory."""

    def __init__(self, x, w):
        self.x = x.permute(0, 3, 1, 2)
        self.w = w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def __call__(self):
        return F.conv2d(self.x, self.w, padding=1).permute(0, 2, 3, 1)


def convolutions():
    for label, dtype in TYPES.items():
        against(f"conv {label} 64x56x56x64 3x3", ">= 1.0x",
                lambda x, w: lax.conv_general_dilated(
                    x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
                Convolution, uniform(64, 56, 56, 64, dtype=dtype),
                uniform(3, 3, 64, 64, dtype=dtype))


def moves():
    square = uniform(4096, 4096)
    against("cumsum 4096x4096", ">= 1.0x", lambda x: lax.cumsum(x, 1),
            lambda x: torch.cumsum(x, 1), square)
    against("transpose 4096x4096", ">= 1.0x", jnp.transpose, lambda x: x.t().contiguous(), square)
    against("top_k 1 Mi, 64", ">= 1.0x", lambda x: lax.top_k(x, 64)[0],
            lambda x: torch.topk(x, 64)[0], uniform(1 << 20))
    against("sort 1024x1024 f32", ">= 1.0x", jnp.sort, lambda x: torch.sort(x)[0],
            uniform(1024, 1024))
    against("sort 1 Mi f32", ">= 1.0x", jnp.sort, lambda x: torch.sort(x)[0], uniform(1 << 20))


def write(path):
    lines = [f"{datetime.date.today()}; {results.cpu_name()}; jax {jax.__version__}, torch "
             f"{torch.__version__.partition('+')[0]} with {torch.get_num_threads()} threads.",
             "`make bench-torch` prints and writes this: the device, through JAX, by turns with "
             "PyTorch's eager mode on the CPU.",
             "A ratio above 1 means that the device is faster; bold: below target. Results were "
             "compared before.", ""]
    results.put(path, results.TORCH, lines + TABLE.short() + [""] + TABLE.lines()
                + why.lines(TABLE.looks, {}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    options = parser.parse_args()
    for group in (products, functions, rows_of_many, attention, convolutions, moves):
        if options.only in group.__name__:
            group()
    if options.write:
        write(options.write)
    TABLE.end()
