# SPDX-License-Identifier: Apache-2.0
"""The corpus on random meshes: each program's arguments are laid on a mesh of 2 to 8 of the devices
by random shardings, which the rest of the program follows from, and its results must be those of
one device. Run as a program; prints a line of JSON for each that is wrong, and how many ran.

    random_meshes.py [--seed N] [--rounds N] [--part I/N] [PREFIX ...]

A round runs each program once; of N parts, it runs every N-th program. What is printed runs again
by its seed and name.
"""

import argparse
import json
import pathlib
import random
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import conftest  # noqa: E402,F401  chooses the platforms before JAX does

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import compare  # noqa: E402
import corpus  # noqa: E402
import test_corpus  # noqa: E402

SHAPES = [(2,), (3,), (4,), (8,), (2, 2), (2, 3), (4, 2), (2, 2, 2)]
# Sums among the programs whose unit is that of the element.
SUMS = "idx/", "cast/mm_"


def random_mesh(rng, devices):
    shape = rng.choice(SHAPES)
    n = int(np.prod(shape))
    picked = rng.sample(devices, n) if rng.random() < 0.3 else devices[:n]
    return Mesh(np.array(picked).reshape(shape), ("x", "y", "z")[:len(shape)])


def random_spec(rng, mesh, shape):
    """Each axis in a dim that it divides, as device_put wants it, or in none."""
    dims, left = [[] for _ in shape], list(shape)
    for axis in rng.sample(mesh.axis_names, len(mesh.axis_names)):
        fit = [d for d, n in enumerate(left) if n and n % mesh.shape[axis] == 0]
        if fit and rng.random() < 0.8:
            d = rng.choice(fit)
            dims[d].append(axis)
            left[d] //= mesh.shape[axis]
    return PartitionSpec(*(tuple(d) or None for d in dims))


def try_program(name, seed, devices):
    """What is wrong, "" if nothing."""
    rng = random.Random(f"{seed} {name}")
    f, shapes = corpus.C[name]
    size, bound = test_corpus.KNOWN[name]
    if size == "large" and rng.random() < 0.7:
        shapes = compare.enlarge(name, shapes, {16: 48, 8: 24})
    is_sum = not name.startswith(compare.ELEMENTWISE) or name.startswith(SUMS)
    # The bounds for large numbers hold for one order of a sum.
    kind = compare.MILD if is_sum else rng.choice(compare.kinds(name))
    args = compare.make_inputs(name, shapes, kind)
    mesh = random_mesh(rng, devices)
    specs = jax.tree.map(lambda x: random_spec(rng, mesh, x.shape), args)
    said = f"mesh {dict(mesh.shape)} of {[d.id for d in mesh.devices.flat]}, {specs}"
    try:
        want = jax.device_get(jax.jit(f)(*jax.device_put(args, devices[0])))
        laid = jax.tree.map(lambda x, s: jax.device_put(x, NamedSharding(mesh, s)), args, specs)
        got = jax.device_get(jax.jit(f)(*laid))
    except Exception:
        return f"{said}: {traceback.format_exc(limit=-1)}"
    if name in test_corpus.FREE_SIGN:
        got, want = (jax.tree.map(abs, x) for x in (got, want))
    # Both may be that far from what is right, and their sums are in different orders.
    bound = 2 * bound + 4 * is_sum
    far, where = compare.units(name, got, [want])
    return "" if far <= bound else f"{said}: {far:.3g} units instead of {bound}, {where}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--part", default="0/1")
    p.add_argument("prefix", nargs="*", default=[""])
    o = p.parse_args()
    part, parts = map(int, o.part.split("/"))
    devices = jax.devices("tessera")
    names = [n for n in sorted(test_corpus.KNOWN) if n.startswith(tuple(o.prefix))][part::parts]
    n = n_wrong = 0
    for seed in range(o.seed, o.seed + o.rounds):
        for name in names:
            wrong = try_program(name, seed, devices)
            n += 1
            if wrong:
                n_wrong += 1
                print(json.dumps([name, seed, wrong]), flush=True)
        jax.clear_caches()
    print(json.dumps(n))
    return n_wrong > 0


if __name__ == "__main__":
    sys.exit(main())
