# SPDX-License-Identifier: Apache-2.0
"""Times the device against JAX's CPU backend and memcpy, side by side in one run.

    python bench.py [--write RESULTS.md] [--only TEXT]

Each row alternates the two in short rounds and takes each side's median, so that a
noisy machine disturbs both alike. Nothing here passes or fails.
"""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ["TESSERA_CACHE"] = "off"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "runtime/python/examples"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import digits  # noqa: E402
import results  # noqa: E402
import rounds  # noqa: E402
from results import show  # noqa: E402

ROUNDS = 7
SECONDS = 0.15       # of one side in one round

DEVICE, CPU = jax.devices("tessera")[0], jax.devices("cpu")[0]
rows = []
FLOORS = None


def measure(name, target, ours, peer, peer_name="XLA:CPU"):
    """Medians of both sides; the ratio is how much faster we are."""
    mine, theirs = rounds.medians((ours, peer), ROUNDS, SECONDS)
    add_row(name, target, mine, theirs, peer_name)


def add_row(name, target, mine, theirs, peer_name):
    rows.append((name, mine, theirs, peer_name, theirs / mine, target))
    print(f"{name:<34} {show(mine):>10} {show(theirs):>10} {peer_name:<8} "
          f"{theirs / mine:6.2f}x  target {target}", flush=True)


def both(name, target, f, *args):
    """One jitted function on both backends, synchronous."""
    runs = []
    for where in (DEVICE, CPU):
        here = jax.device_put(args, where)
        with jax.default_device(where):
            g = jax.jit(f).lower(*here).compile()
        runs.append(lambda g=g, here=here: jax.block_until_ready(g(*here)))
    measure(name, target, *runs)


def uniform(*shape, dtype=np.float32):
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-100, 100, shape).astype(dtype)
    return np.asarray(jnp.asarray(rng.uniform(-1, 1, shape), dtype))


# ---- the rows ----------------------------------------------------------------

def matmuls():
    for label, dtype, out, target in (("f32", np.float32, None, ">= 0.8x"),
                                      ("bf16", jnp.bfloat16, None, ">= 4x"),
                                      ("int8", np.int8, np.int32, ">= 1.0x later")):
        for n in (256, 1024, 2048):
            a, b = uniform(n, n, dtype=dtype), uniform(n, n, dtype=dtype)
            both(f"matmul {label} {n}", target,
                 lambda a, b, out=out: lax.dot(a, b, preferred_element_type=out), a, b)


def elementwise():
    big = uniform(16 << 20)

    def chain(x):
        for _ in range(4):
            x = jnp.tanh(x) * 1.5 + 0.1
        return x

    both("tanh chain 16 Mi f32", ">= 0.6x", chain, big)
    both("axpy 16 Mi f32", ">= 0.6x", lambda a, x, y: a * x + y, np.float32(2), big,
         big[::-1].copy())
    both("sum 16 Mi f32", ">= 0.6x", jnp.sum, big)
    square = uniform(4096, 4096)
    both("softmax 4096x4096", ">= 0.6x", jax.nn.softmax, square)
    both("layer norm 4096x4096", ">= 0.6x",
         lambda x, g, b: (x - x.mean(-1, keepdims=True))
         * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * g + b,
         square, uniform(4096), uniform(4096))


def convolve(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", feature_group_count=groups,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def gradient(**how):
    return jax.grad(lambda x, w: (convolve(x, w, **how) ** 2).sum(), (0, 1))


def convolution():
    x, w = uniform(64, 56, 56, 64), uniform(3, 3, 64, 64)
    both("conv 64x56x56x64 3x3", ">= 0.5x", convolve, x, w)
    x = uniform(16, 56, 56, 64)
    both("gradient, stride 2, 16x56x56x64", ">= 0.5x", gradient(stride=2), x, w)
    w = uniform(3, 3, 1, 64)
    both("depthwise conv 16x56x56x64 3x3", ">= 0.5x", lambda x, w: convolve(x, w, groups=64), x, w)
    both("gradient of it", ">= 0.5x", gradient(groups=64), x, w)


def convolution_channels_first():
    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME")

    both("conv NCHW 8x16x32x32, 32 of 3x3", ">= 1.0x", f, uniform(8, 16, 32, 32),
         uniform(32, 16, 3, 3))
    both("conv NCHW 4x64x28x28, 64 of 3x3", ">= 1.0x", f, uniform(4, 64, 28, 28),
         uniform(64, 64, 3, 3))


def pools():
    """Windows of 3x3 for the largest and 2x2 for sums, both with a stride of 2."""
    for label, x, three, two in (("NHWC", uniform(16, 112, 112, 64), (1, 3, 3, 1), (1, 2, 2, 1)),
                                 ("NCHW", uniform(8, 64, 56, 56), (1, 1, 3, 3), (1, 1, 2, 2))):
        def largest(x, three=three, two=two):
            return lax.reduce_window(x, -np.inf, lax.max, three, two, "SAME")

        def total(x, two=two):
            return lax.reduce_window(x, 0.0, lax.add, two, two, "VALID")

        for name, f in (("max", largest), ("sum", total)):
            both(f"{name} pool {label}", ">= 1.0x", f, x)
            both(f"gradient of {name} pool {label}", ">= 1.0x",
                 jax.grad(lambda x, f=f: (f(x) ** 2).sum()), x)


def linear_algebra():
    square = uniform(512, 512)
    positive = [a @ a.T + len(a) * np.eye(len(a), dtype=np.float32)
                for a in (uniform(256, 256), uniform(1024, 1024))]
    half = square[:256, :256]
    for name, f, *args in (
            ("cholesky 256", jnp.linalg.cholesky, positive[0]),
            ("cholesky 1024", jnp.linalg.cholesky, positive[1]),
            ("solve 512", jnp.linalg.solve, square, uniform(512, 1)),
            ("solve 2048 of 8x8", jnp.linalg.solve, uniform(2048, 8, 8), uniform(2048, 8, 1)),
            ("inv 512", jnp.linalg.inv, square), ("qr 512", jnp.linalg.qr, square),
            ("qr 2048x64", jnp.linalg.qr, uniform(2048, 64)),
            ("eigh 64", jnp.linalg.eigh, half[:64, :64]), ("eigh 256", jnp.linalg.eigh, half),
            ("svd 64", jnp.linalg.svd, half[:64, :64]), ("svd 256", jnp.linalg.svd, half)):
        both(name, ">= 0.5x", f, *args)


def scalar_loops():
    both("10,000 turns of x * 0.999 + 0.5", ">= 0.1x", lambda x: lax.fori_loop(
        0, 10000, lambda i, x: x * 0.999 + 0.5, x), np.float32(1))
    both("10,000 turns of integers", ">= 0.1x", lambda x: lax.while_loop(
        lambda c: c[0] < 10000,
        lambda c: (c[0] + 1, (c[1] * 1103515245 + 12345) & 0x7fffffff), (0, x)), np.int32(1))
    both("1000 turns of tanh(x @ w), 16 wide", ">= 0.1x", lambda x, w: lax.fori_loop(
        0, 1000, lambda i, x: jnp.tanh(x @ w), x), uniform(1, 16), uniform(16, 16))


def selection():
    for label, x in (("1 Mi", uniform(1 << 20)), ("1024x1024", uniform(1024, 1024)),
                     ("128x32000", uniform(128, 32000))):
        both(f"argmax {label}", ">= 0.7x", lambda x: jnp.argmax(x, -1), x)
        both(f"top_k {label}, 8", ">= 0.7x", lambda x: lax.top_k(x, 8), x)
        both(f"top_k {label}, 50", ">= 0.7x", lambda x: lax.top_k(x, 50), x)
    both("sort 1024x1024 i32", ">= 1.0x", jnp.sort,
         (uniform(1024, 1024) * 2**30).astype(np.int32))


def train_step(name):
    """(function, its arguments) of one training step, without lax.scan."""
    init, apply = digits.MODELS[name](jax, jnp, lax)

    def loss_of(p, x, y):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(apply(p, x)), y[:, None], 1)
        return -chosen.mean()

    def step(p, m, v, x, y):
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return p, m, v, loss

    with jax.default_device(CPU):
        p = jax.tree.map(np.asarray, jax.jit(init)(jax.random.key(0)))
    zeros = jax.tree.map(np.zeros_like, p)
    x = uniform(digits.BATCH, 8, 8)
    y = np.arange(digits.BATCH, dtype=np.int32) % 10
    return step, (p, zeros, zeros, x, y)


def training():
    for name in digits.MODELS:
        f, args = train_step(name)
        both(f"train step {name}", ">= 0.5x", f, *args)


def compiling():
    f, args = train_step("transformer")
    times = {DEVICE: [], CPU: []}
    for round_ in range(5):
        for where in times:
            here = jax.device_put(args, where)
            lowered = jax.jit(lambda *a, r=round_: f(*a)).lower(*here)
            began = time.perf_counter()
            lowered.compile()
            times[where].append(time.perf_counter() - began)
    mine, theirs = (sorted(t)[2] for t in times.values())
    add_row("compile transformer step", ">= 2x later", mine, theirs, "XLA:CPU")


def dispatch():
    both("no-op jit, synchronous", ">= 0.67x", lambda x: x + 1, np.float32(1))
    runs = []
    for where in (DEVICE, CPU):
        f, x = jax.jit(lambda x: x * 2 + 1), jax.device_put(uniform(64), where)

        def run(f=f, x=x):
            for _ in range(100):
                x = f(x)
            jax.block_until_ready(x)

        runs.append(run)
    measure("100 dispatches of x * 2 + 1", ">= 1.0x", *runs)


def transfers():
    for label, n in (("4 KiB", 4 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)):
        source = np.ones(n, np.uint8)
        target = np.zeros(n, np.uint8)
        measure(f"host to device {label}", ">= 0.7x",
                lambda s=source: jax.block_until_ready(jax.device_put(s, DEVICE)),
                lambda s=source, t=target: np.copyto(t, s), "memcpy")
        measure(f"device_put {label}", ">= 0.7x",
                lambda s=source: jax.block_until_ready(jax.device_put(s, DEVICE)),
                lambda s=source: jax.block_until_ready(jax.device_put(s, CPU)))
        times = ([], [])
        for _ in range(9):      # each array can be fetched once: it keeps its copy
            x = jax.block_until_ready(jax.device_put(source, DEVICE))
            times[0].append(rounds.per_call(lambda x=x: np.asarray(x), 1))
            fresh = np.empty(n, np.uint8)
            times[1].append(rounds.per_call(lambda t=fresh: np.copyto(t, source), 1))
        mine, theirs = (sorted(t)[4] for t in times)
        add_row(f"device to host {label}", ">= 0.7x", mine, theirs, "memcpy")


def floors():
    """What the floors below JAX take: tests/bench/floors_bench.c."""
    if not FLOORS:
        print("floors: skipped, no --floors PROGRAM (make bench gives it)")
        return
    text = subprocess.run([FLOORS], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        name, mine, theirs = line.split("\t")
        add_row(name, ">= 0.7x", float(mine) * 1e-9, float(theirs) * 1e-9, "memcpy")


def write(path):
    lines = [f"{datetime.date.today()}; {results.cpu_name()}; jax {jax.__version__}.",
             "`make bench` prints and writes this. A ratio above 1 means that the device is "
             "faster than its peer.", "",
             "| what | tessera | peer | against | ratio | target |",
             "|---|--:|--:|---|--:|---|"]
    lines += [f"| {n} | {show(a)} | {show(b)} | {p} | {r:.2f}x | {t} |"
              for n, a, b, p, r, t in rows]
    results.put(path, results.JAX, lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--floors", metavar="PROGRAM", help="the built floors_bench")
    options = parser.parse_args()
    FLOORS = options.floors
    for group in (matmuls, elementwise, convolution, convolution_channels_first, pools,
                  linear_algebra, scalar_loops, selection, training, compiling, dispatch,
                  transfers, floors):
        if options.only in group.__name__:
            group()
    if options.write:
        write(options.write)
