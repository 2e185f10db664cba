# SPDX-License-Identifier: Apache-2.0
"""Times the device against JAX's CPU backend and memcpy, side by side in one run.

    python bench.py [--write RESULTS.md] [--only TEXT]

Each row alternates the two in short rounds and takes each side's median, so that a
noisy machine disturbs both alike. Nothing here passes or fails but the results, which
must be of one computation. Beside the times stand the bytes of temporaries that the
compiled programs ask for.
"""

import argparse
import datetime
import functools
import subprocess
import time

import sides
from sides import AMX, CPU, DEVICE, uniform

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import programs
import results
import rounds
import why

TABLE = sides.Table("XLA:CPU")
both = TABLE.both
BF16 = jnp.bfloat16
# Where there is a matrix unit, bf16 goes to it and XLA:CPU's does not.
FAST = ">= 5.0x" if AMX else ">= 1.3x"
FLOORS = PEAKS = None


# ---- the rows ----------------------------------------------------------------

def matmuls():
    peaks = machine_peaks()
    # of the peak; nothing is asked of bytes on a matrix unit
    share = {"f32": ">= 0.95x", "bf16": ">= 0.5x"} if AMX else \
        {"f32": ">= 0.95x", "bf16": ">= 0.85x", "int8": ">= 0.85x"}
    for label, dtype, out, target in (("f32", np.float32, None, ">= 1.05x"),
                                      ("bf16", BF16, None, ">= 10x" if AMX else ">= 1.0x"),
                                      ("int8", np.int8, np.int32, ">= 1.2x")):
        for n in (256, 1024, 2048, 4096):
            a, b = uniform(n, n, dtype=dtype), uniform(n, n, dtype=dtype)
            both(f"matmul {label} {n}", target,
                 lambda a, b, out=out: lax.dot(a, b, preferred_element_type=out), a, b)
            if label in peaks and label in share and n == 2048 \
                    and TABLE.rows[-1][0] == f"matmul {label} {n}":
                TABLE.add(f"matmul {label} {n}", share[label], TABLE.rows[-1][1],
                          2 * n**3 / peaks[label], "the peak")
    for label, dtype in (("f32", np.float32), ("bf16", BF16)):
        for rows in (1, 4, 16):
            both(f"decode {label} {rows} x 4096 by 4096x4096", ">= 1.0x", lambda x, w: x @ w,
                 uniform(rows, 4096, dtype=dtype), uniform(4096, 4096, dtype=dtype))


@functools.cache
def machine_peaks():
    """{type: operations a second of all CPUs} by tests/bench/peak_bench.c."""
    if not PEAKS:
        return {}
    text = subprocess.run([PEAKS], check=True, capture_output=True, text=True).stdout
    return {name: float(flops) for name, flops in (line.split("\t") for line in
                                                   text.splitlines())}


def elementwise():
    big = uniform(16 << 20)

    def chain(x):
        for _ in range(4):
            x = jnp.tanh(x) * 1.5 + 0.1
        return x

    both("tanh chain 16 Mi f32", ">= 1.0x", chain, big)
    both("axpy 16 Mi f32", ">= 1.0x", lambda a, x, y: a * x + y, np.float32(2), big,
         big[::-1].copy())
    both("sum 16 Mi f32", ">= 1.0x", jnp.sum, big)
    square = uniform(4096, 4096)
    both("softmax 4096x4096", ">= 1.0x", jax.nn.softmax, square)
    both("layer norm 4096x4096", ">= 1.0x",
         lambda x, g, b: (x - x.mean(-1, keepdims=True))
         * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * g + b,
         square, uniform(4096), uniform(4096))


def elementwise_small():
    """In the caches."""
    x, y = uniform(1 << 20), np.float32(1) + uniform(1 << 20)[::-1] / 2
    for name, f in programs.SMALL.items():
        both(f"{name} 1 Mi f32", ">= 1.0x", f, *((x, y) if name in programs.OF_TWO else (x,)))


def models():
    for label, dtype, target in (("f32", np.float32, ">= 1.3x"), ("bf16", BF16, FAST)):
        for name, f in (("forward", programs.gpt_forward), ("gradient", programs.gpt_gradient),
                        ("train step", programs.gpt_step)):
            program, args = f(dtype)
            both(f"GPT {name} {label}", target, program, *args)
    for label, dtype in (("f32", np.float32), ("bf16", BF16)):
        for name, f in (("forward", programs.resnet_forward), ("train step",
                                                               programs.resnet_step)):
            program, args = f(dtype)
            both(f"ResNet-50 {name} {label}, 4 images", ">= 1.5x", program, *args,
                 exact=flat(f(np.float32)))
    for label, dtype in (("f32", np.float32), ("bf16", BF16)):
        both(f"attention {label} 8x12x512x64", ">= 1.0x", programs.attention,
             *[uniform(8, 12, 512, 64, dtype=dtype) * dtype(k) for k in (1, 2, 3)])
    both("cross entropy of 2048x8192, gradient", ">= 1.0x", *flat(programs.cross_entropy()))
    loss, args = programs.lstm()
    both("LSTM 64 x 256, 128 steps", ">= 1.5x", loss, *args)
    both("LSTM's gradient", ">= 1.5x", jax.grad(loss), *args)
    both("n-body, 2048", ">= 1.0x", *flat(programs.n_body()))
    both("normal numbers, 4 Mi", ">= 1.0x",
         lambda seed: jax.random.normal(jax.random.key(seed), (1 << 22,)), np.uint32(3))


def flat(program):
    f, args = program
    return f, *args


def scans():
    for n in (1024, 4096):
        both(f"cumsum {n}x{n}", ">= 1.0x", lambda x: lax.cumsum(x, 1), uniform(n, n))
    both("cumsum 4096x4096, first dim", ">= 1.0x", lax.cumsum, uniform(4096, 4096))
    both("cummax 4096x4096", ">= 1.0x", lambda x: lax.cummax(x, 1), uniform(4096, 4096))
    both("cumlogsumexp 1024x1024", ">= 1.0x", lambda x: lax.cumlogsumexp(x, 1),
         uniform(1024, 1024))
    both("associative_scan 1024x1024", ">= 1.0x", programs.recurrence, uniform(1024, 1024),
         uniform(1024, 1024)[::-1].copy())


def transforms():
    both("FFT 16 x 65,536", ">= 0.7x", jnp.fft.fft,
         (uniform(16, 65536) + 1j * uniform(16, 65536)[:, ::-1]).astype(np.complex64))
    both("rfft2 4 x 1024 x 1024", ">= 0.7x", jnp.fft.rfft2, uniform(4, 1024, 1024))


def moves():
    rows = 131072
    table, updates = uniform(65536, 64), uniform(rows, 64)
    at = np.random.default_rng(4).integers(0, len(table), rows).astype(np.int32)
    both("scatter-add of 131,072 rows", ">= 1.0x", lambda t, i, u: t.at[i].add(u), table, at,
         updates)
    both("gather of 131,072 rows", ">= 1.0x", lambda t, i: t[i], table, at)
    single, to = uniform(1 << 20), np.random.default_rng(5).integers(0, 1 << 20, 1 << 20)
    to = to.astype(np.int32)
    both("gather of 1 Mi elements", ">= 1.0x", lambda t, i: t[i], single, to)
    both("segment_sum of 1 Mi, 1000 segments", ">= 1.0x",
         lambda x, i: jax.ops.segment_sum(x, i, 1000), single, to % 1000)
    both("searchsorted 65,536 in 4096", ">= 1.0x", jnp.searchsorted, np.sort(single[:4096]),
         single[:65536])
    both("dropout of 1 Mi", ">= 1.0x", lambda x: jnp.where(
        jax.random.bernoulli(jax.random.key(1), 0.9, x.shape), x, 0), single)
    both("transpose 4096x4096", ">= 1.0x", jnp.transpose, uniform(4096, 4096))


def convolve(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", feature_group_count=groups,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def gradient(**how):
    return jax.grad(lambda x, w: (convolve(x, w, **how) ** 2).sum(), (0, 1))


def convolution():
    x, w = uniform(64, 56, 56, 64), uniform(3, 3, 64, 64)
    both("conv 64x56x56x64 3x3", ">= 1.0x", convolve, x, w)
    both("conv bf16 64x56x56x64 3x3", ">= 1.0x", convolve, x.astype(BF16), w.astype(BF16))
    x = uniform(16, 56, 56, 64)
    both("conv int8 16x56x56x64 3x3", ">= 1.2x", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
        preferred_element_type=np.int32), (x * 100).astype(np.int8), (w * 100).astype(np.int8))
    both("gradient, stride 2, 16x56x56x64", ">= 1.0x", gradient(stride=2), x, w)
    w = uniform(3, 3, 1, 64)
    both("depthwise conv 16x56x56x64 3x3", ">= 1.0x", lambda x, w: convolve(x, w, groups=64), x, w)
    both("gradient of it", ">= 1.0x", gradient(groups=64), x, w)


def convolution_channels_first():
    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME")

    both("conv NCHW 8x16x32x32, 32 of 3x3", ">= 1.0x", f, uniform(8, 16, 32, 32),
         uniform(32, 16, 3, 3))
    both("conv NCHW 4x64x28x28, 64 of 3x3", ">= 1.0x", f, uniform(4, 64, 28, 28),
         uniform(64, 64, 3, 3))


def convolution_of_few_features():
    x = uniform(1 << 17)
    for taps in (16, 256):
        both(f"convolve 131,072 by {taps}", ">= 1.0x", jnp.convolve, x, uniform(taps))
    both("correlate 512x512 by 15x15", ">= 1.0x", jax.scipy.signal.correlate2d,
         uniform(512, 512), uniform(15, 15))
    for features in (1, 3):
        both(f"conv 4x128x128x64, {features} of 3x3", ">= 1.0x", convolve,
             uniform(4, 128, 128, 64), uniform(3, 3, 64, features))


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
        both(f"argmax {label}", ">= 1.0x", lambda x: jnp.argmax(x, -1), x)
        both(f"top_k {label}, 8", ">= 0.7x", lambda x: lax.top_k(x, 8), x)
        both(f"top_k {label}, 50", ">= 0.7x", lambda x: lax.top_k(x, 50), x)
    both("top_k 4x262144, 64", ">= 0.7x", lambda x: lax.top_k(x, 64), uniform(4, 262144))
    both("sort 1024x1024 i32", ">= 1.0x", jnp.sort,
         (uniform(1024, 1024) * 2**30).astype(np.int32))


def training():
    for name, target in (("conv_net", ">= 1.2x"), ("transformer", ">= 1.3x")):
        both(f"train step {name}", target, *flat(programs.digits_step(name)))


def compiling():
    f, args = programs.digits_step("transformer")
    times = {DEVICE: [], CPU: []}
    for round_ in range(5):
        for where in times:
            here = jax.device_put(args, where)
            lowered = jax.jit(lambda *a, r=round_: f(*a)).lower(*here)
            began = time.perf_counter()
            lowered.compile()
            times[where].append(time.perf_counter() - began)
    TABLE.add("compile transformer step", ">= 20x", *(sorted(t)[2] for t in times.values()))


def instructions():
    """What one instruction of a small program takes: 64 more of them, each of which needs the
    one before."""
    for kind in ("maximum", "product"):
        runs = [[sides.compiled(where, *flat(programs.chain(steps, kind)))[0]
                 for steps in (16, 80)] for where in (DEVICE, CPU)]
        a, b, c, d = rounds.medians(runs[0] + runs[1], sides.ROUNDS, sides.SECONDS)
        TABLE.add(f"an instruction: {kind} of 16", ">= 1.0x", (b - a) / 64, (d - c) / 64)


def dispatch():
    both("no-op jit, synchronous", ">= 1.0x", lambda x: x + 1, np.float32(1))
    runs = []
    for where in (DEVICE, CPU):
        f, x = jax.jit(lambda x: x * 2 + 1), jax.device_put(uniform(64), where)

        def run(f=f, x=x):
            for _ in range(100):
                x = f(x)
            jax.block_until_ready(x)

        runs.append(run)
    TABLE.measure("100 dispatches of x * 2 + 1", ">= 1.0x", *runs)


def transfers():
    """A call through JAX is not measured by a memcpy of 4 KiB: that row has no target."""
    for label, n in (("4 KiB", 4 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)):
        source = np.ones(n, np.uint8)
        copy = np.zeros(n, np.uint8)
        target = ">= 0.9x" if n >= 1 << 20 else "-"
        TABLE.measure(f"host to device {label}", target,
                      lambda s=source: jax.block_until_ready(jax.device_put(s, DEVICE)),
                      lambda s=source, t=copy: np.copyto(t, s), "memcpy")
        TABLE.measure(f"device_put {label}", ">= 1.0x",
                      lambda s=source: jax.block_until_ready(jax.device_put(s, DEVICE)),
                      lambda s=source: jax.block_until_ready(jax.device_put(s, CPU)))
        times = ([], [])
        for _ in range(9):      # each array can be fetched once: it keeps its copy
            x = jax.block_until_ready(jax.device_put(source, DEVICE))
            times[0].append(rounds.per_call(lambda x=x: np.asarray(x), 1))
            fresh = np.empty(n, np.uint8)
            times[1].append(rounds.per_call(lambda t=fresh: np.copyto(t, source), 1))
        TABLE.add(f"device to host {label}", target, *(sorted(t)[4] for t in times), "memcpy")


def floors():
    """What the floors below JAX take: tests/bench/floors_bench.c."""
    if not FLOORS:
        print("floors: skipped, no --floors PROGRAM (make bench gives it)")
        return
    text = subprocess.run([FLOORS], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        name, mine, theirs = line.split("\t")
        TABLE.add(name, "-" if "4 KiB" in name else ">= 0.9x", float(mine) * 1e-9,
                  float(theirs) * 1e-9, "memcpy")


def write(path):
    lines = [f"{datetime.date.today()}; {results.cpu_name()}; jax {jax.__version__}.",
             "`make bench` prints and writes this. A ratio above 1 means that the device is "
             "faster than its peer; bold: below target.", "The peak is what the CPUs' vector "
             "instructions, or their matrix unit, do on registers. Temporaries are what the "
             "compiled program asks for",
             "beside arguments and results (`memory_analysis()`); bold: more than the peer's.", ""]
    results.put(path, results.JAX, lines + TABLE.short() + [""] + TABLE.lines()
                + why.lines(TABLE.looks, machine_peaks()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--floors", metavar="PROGRAM", help="the built floors_bench")
    parser.add_argument("--peaks", metavar="PROGRAM", help="the built peak_bench")
    parser.add_argument("--hop", metavar="PROGRAM", help="the built hop_bench")
    options = parser.parse_args()
    FLOORS, PEAKS, TABLE.hop_program = options.floors, options.peaks, options.hop
    for group in (matmuls, elementwise, elementwise_small, models, convolution,
                  convolution_channels_first, convolution_of_few_features, pools, scans,
                  transforms, linear_algebra, scalar_loops, instructions, selection, moves,
                  training, compiling, dispatch, transfers, floors):
        if options.only in group.__name__:
            group()
    if options.write:
        write(options.write)
    TABLE.end()
