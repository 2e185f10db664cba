# SPDX-License-Identifier: Apache-2.0
"""Times collectives and a step of training on several devices against JAX's CPU backend with as
many, and memcpy.

    python spmd.py [--write RESULTS.md] [--only TEXT] [--rounds N]

A row's size is that of each device's operand or result, whichever is larger. memcpy copies, in
pieces of that size or of all there is, as many bytes as the least that all devices
together must receive. What is timed is checked once: both backends give the same bits.
"""

import argparse
import datetime
import os
import pathlib
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ.setdefault("TESSERA_SIM", "devices=8,hbm=1G")
os.environ["TESSERA_CACHE"] = "off"
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                           " --xla_force_host_platform_device_count=8")

sys.path.append(str(pathlib.Path(__file__).parents[2] / "runtime/python/examples"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import results  # noqa: E402
import rounds  # noqa: E402
import spmd_transformer as model  # noqa: E402
from results import show  # noqa: E402

SECONDS = 0.1       # of one side in one round
DEVICES = (2, 4, 8)
SIZES = (("1 KiB", 1 << 10), ("32 KiB", 32 << 10), ("1 MiB", 1 << 20), ("8 MiB", 8 << 20),
         ("64 MiB", 64 << 20))


# ---- collectives: of one device's part; by how much smaller the operand is than the row's
# size; where results lie; bytes that all devices receive, of n devices with s bytes ----

def all_reduce(n):
    return lambda a: lax.psum(a, "x"), 1, P(), lambda s: 2 * (n - 1) * s


def all_gather(n):
    return lambda a: lax.all_gather(a, "x", tiled=True), n, P(), lambda s: (n - 1) * s


def all_to_all(n):
    return (lambda a: lax.all_to_all(a, "x", 0, 0, tiled=True), 1, P("x"),
            lambda s: (n - 1) * s)


def collective_permute(n):
    ring = [(i, (i + 1) % n) for i in range(n)]
    return lambda a: lax.ppermute(a, "x", ring), 1, P("x"), lambda s: n * s


COLLECTIVES = (all_reduce, all_gather, all_to_all, collective_permute)


# ---- rows -------------------------------------------------------------------

def on(platform, n, f, data, out):
    """A function of no arguments that runs f once, compiled, and gives its result."""
    devices = jax.devices(platform)
    if len(devices) < n:
        raise SystemExit(f"{n} devices of {platform} are needed, and there are {len(devices)}")
    mesh = Mesh(np.array(devices[:n]), "x")
    here = jax.device_put(data, NamedSharding(mesh, P("x")))
    g = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=False))
    g = g.lower(here).compile()
    return lambda: jax.block_until_ready(g(here))


def copying(size, total):
    """A function that copies `total` bytes, in pieces of `size` at most."""
    piece = min(size, total)
    source, target = np.ones(piece, np.uint8), np.zeros(piece, np.uint8)

    def run():
        for _ in range(total // piece):
            np.copyto(target, source)
        np.copyto(target[:total % piece], source[:total % piece])
    return run


def row(collective, n, label, size, n_rounds):
    f, smaller, out, received = collective(n)
    # Whole numbers, whose sums are the same in any order.
    data = np.random.default_rng(0).integers(-99, 99, n * (size // 4 // smaller))
    data = data.astype(np.float32)
    ours, theirs = (on(p, n, f, data, out) for p in ("tessera", "cpu"))
    np.testing.assert_array_equal(np.asarray(ours()), np.asarray(theirs()))
    times = rounds.medians((ours, theirs, copying(size, received(size))), n_rounds, SECONDS)
    mine, cpu, memcpy = times
    print(f"{collective.__name__:<19} {n} {label:>7} {show(mine):>10} {show(cpu):>10} "
          f"{cpu / mine:7.2f}x {show(memcpy):>10} {memcpy / mine:6.2f}x", flush=True)
    return (f"| {collective.__name__} | {n} | {label} | {show(mine)} | {show(cpu)} | "
            f"{cpu / mine:.2f}x | {show(memcpy)} | {memcpy / mine:.2f}x |")


# ---- a step of training -----------------------------------------------------

MESHES = {1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (2, 4)}
ROWS = 2            # of a batch, for each device


def step_on(platform, n):
    """(a function that takes a step and gives the loss, seconds that compiling it took)"""
    devices = np.array(jax.devices(platform)[:n])
    mesh = Mesh(devices.reshape(MESHES[n]), ("data", "model"))
    where = jax.tree.map(lambda s: NamedSharding(mesh, s), model.specs(P),
                         is_leaf=lambda s: isinstance(s, P))
    where = (where, where, where, NamedSharding(mesh, P()))
    with jax.default_device(devices[0]):
        p = jax.tree.map(np.asarray, model.init(jax, jnp))
    zeros = jax.tree.map(np.zeros_like, p)
    state = jax.device_put((p, zeros, zeros, np.float32(0)), where)
    model.BATCH = ROWS * n
    text = jax.device_put(model.batches(np, 1)[0], NamedSharding(mesh, P("data")))
    step = jax.jit(model.make_step(jax, jnp), donate_argnums=0, out_shardings=(where, None))
    step = step.lower(state, text)
    began = time.perf_counter()
    step = step.compile()
    spent = time.perf_counter() - began

    def run():
        nonlocal state
        state, loss = step(state, text)
        return jax.block_until_ready(loss)
    return run, spent


def step_row(n, n_rounds):
    (ours, our_compile), (theirs, their_compile) = (step_on(p, n) for p in ("tessera", "cpu"))
    np.testing.assert_allclose(ours(), theirs(), rtol=1e-3)
    mine, cpu = rounds.medians((ours, theirs), n_rounds, SECONDS)
    compiled = their_compile / our_compile
    print(f"step of a transformer {n} {show(mine):>10} {show(cpu):>10} {cpu / mine:7.2f}x, "
          f"compiled {show(our_compile):>10} {show(their_compile):>10} {compiled:6.2f}x",
          flush=True)
    return (f"| {n} | {'x'.join(map(str, MESHES[n]))} | {ROWS * n} | {show(mine)} | {show(cpu)} | "
            f"{cpu / mine:.2f}x | {show(our_compile)} | {show(their_compile)} | "
            f"{compiled:.2f}x |")


def write(path, rows, steps):
    results.put(path, results.SPMD, [
        f"{datetime.date.today()}; {results.cpu_name()}; jax {jax.__version__}; "
        f"TESSERA_SIM={os.environ['TESSERA_SIM']}.",
        "`make bench-spmd` prints and writes this. The devices are the model's, in one process, "
        "and share the CPUs, as",
        "those of XLA's CPU backend do. Sizes are of each device's operand or result, whichever "
        "is larger; memcpy is of",
        "as many bytes as all devices together must receive. A ratio above 1 means that the "
        "device is faster.", "",
        "| collective | devices | size | tessera | XLA:CPU | ratio | memcpy | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|", *rows, "",
        f"A step of training a transformer of two layers, {model.WIDTH} wide, whose batch grows "
        "with the devices: how it scales.",
        "Compiling is XLA's or ours alone, without tracing.", "",
        "| devices | mesh | batch | tessera | XLA:CPU | ratio | compiled | by XLA:CPU | ratio |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|", *steps])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--only", default="", help="rows whose name (\"all_reduce 8 1 MiB\") "
                        "contains this")
    parser.add_argument("--rounds", type=int, default=5,
                        help="how many, of which the median counts")
    options = parser.parse_args()
    told = [row(c, n, label, size, options.rounds) for c in COLLECTIVES for n in DEVICES
            for label, size in SIZES if options.only in f"{c.__name__} {n} {label}"]
    steps = [step_row(n, options.rounds) for n in MESHES
             if options.only in f"step of a transformer {n}"]
    if options.write:
        write(options.write, told, steps)
