# SPDX-License-Identifier: Apache-2.0
"""Every program of the corpus on the device against JAX's CPU backend.

units.txt has a line for each program whose result is one: with which shapes, how far it may be
off, and where that bound comes from. The others are FREE, and run too. A program that stops
running fails, and so does one that is in no list.

    test_corpus.py --measure [PREFIX ...]     writes units.txt anew, or lines of it
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import conftest  # noqa: E402,F401  chooses the platforms before JAX does

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import compare  # noqa: E402
import corpus  # noqa: E402

UNITS = pathlib.Path(__file__).with_name("units.txt")

# Programs that have no result to compare, with the reason.
FREE = {"red/reduce_gen": "its body is not associative, and the order is free",
        "rng/rng_uniform": "its numbers are open",
        "cb/io_callback": "the host's function gives f32, the oracle is f64 (test_callbacks.py)",
        "cb/pure_callback": "as cb/io_callback",
        "linalg/eig": "the order of eigenvalues is open (test_linalg.py)",
        "linalg/eigvals": "as linalg/eig", "linalg/schur": "as linalg/eig"}
NOT_ON_CPU = {"cb/ffi": "my_target", "cb/custom_call_layout": "t2", "mm/scaled": "ndim"}
# Eigenvectors and singular vectors are free in sign or phase: magnitudes are compared.
FREE_SIGN = {"linalg/eigh", "linalg/eigh_c64", "linalg/svd"}

# Bounds of one operation of the device, as tests/unit/sim/sim_uop_test.c holds the model to
# them; half a unit more for the CPU's, where f64 is not the nearer oracle.
STATED = {
    2.5: ["elt/exp", "elt/expm1", "elt/log", "elt/log1p", "elt/sin", "elt/cos", "elt/tan",
          "elt/tanh", "elt/cbrt", "elt/arctan2", "nn/sigmoid", "spec/expit"],
    4.5: ["elt/power", "elt/float_power", "spec/erf"],
    # Two of the mild matrix's values are 0.029 apart (0.024 of eigh's), and the largest is 24.4
    # (24.0): a change of it by one unit turns their vectors by 845 (992). What the vectors are
    # good for is in test_linalg.py.
    2048: ["linalg/svd", "linalg/eigh"],
}
STATED = {name: bound for bound, names in STATED.items() for name in names}
ROUNDED = 0.5       # units: rounded once, and right


def read_units():
    """{program: (size, bound)}"""
    table = {}
    for line in UNITS.read_text().splitlines():
        if line and not line.startswith("#"):
            name, size, bound, _ = line.split(None, 3)
            table[name] = size, float(bound)
    return table


def shapes_of(name, size):
    shapes = corpus.C[name][1]
    return compare.enlarge(name, shapes) if size == "large" else shapes


def size_of(name):
    """"large" if the program takes enlarged shapes, and its results are not quadratic in
    them; else "small", as corpus.py has them."""
    f, shapes = corpus.C[name]
    large = compare.enlarge(name, shapes)
    if str(large) == str(shapes):
        return "small"
    try:
        results = jax.tree.leaves(jax.eval_shape(f, *large))
        return "large" if sum(r.size for r in results) < 1 << 20 else "small"
    except Exception:
        return "small"


def run_on(where, f, args):
    args = jax.device_put(args, where)
    with jax.default_device(where):
        return jax.device_get(jax.block_until_ready(f(*args)))


def distances(name, size, device, cpu):
    """[(kind of inputs, units, where)] of a program."""
    f = corpus.C[name][0]
    g, found = jax.jit(f), []
    for kind in compare.kinds(name):
        args = compare.make_inputs(name, shapes_of(name, size), kind)
        wants = [run_on(cpu, g, args)]
        got = run_on(device, g, args)
        if not name.startswith("rng/"):     # random floats of f64 are others
            try:
                with jax.enable_x64(True):
                    wants.append(run_on(cpu, jax.jit(f), compare.in_f64(args)))
            except (TypeError, ValueError):
                pass        # the program's types are fixed
        if name in FREE_SIGN:
            got, *wants = [jax.tree.map(abs, x) for x in (got, *wants)]
        found.append((kind, *compare.units(name, got, wants)))
    return found


KNOWN = read_units()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_program_agrees_with_cpu(name, device, cpu):
    size, bound = KNOWN[name]
    bad = [f"{kind} inputs: {units:.3g} units instead of {bound}, {where}"
           for kind, units, where in distances(name, size, device, cpu) if not units <= bound]
    assert not bad, "; ".join(bad)


@pytest.mark.parametrize("name", sorted(FREE))
def test_program_without_one_result_runs(name, device, cpu):
    f, shapes = corpus.C[name]
    args = compare.make_inputs(name, shapes)
    got, want = (jax.tree.leaves(run_on(d, jax.jit(f), args)) for d in (device, cpu))
    assert [(x.shape, x.dtype) for x in got] == [(x.shape, x.dtype) for x in want]
    assert all(np.isfinite(x).all() for x in got)


@pytest.mark.parametrize("name", sorted(NOT_ON_CPU))
def test_program_that_runs_nowhere_is_refused_alike(name, device, cpu):
    """By JAX, or by each backend with the name of what it does not have."""
    f, shapes = corpus.C[name]
    for d in (device, cpu):
        with pytest.raises(Exception, match=NOT_ON_CPU[name]):
            run_on(d, jax.jit(f), compare.make_inputs(name, shapes))


def test_rng_uniform_fills_its_range(device):
    n = 1 << 16
    with jax.default_device(device):
        got = np.sort(np.asarray(jax.jit(lambda: jax.lax.rng_uniform(2., 5., (n,)))()))
    assert got[0] >= 2 and got[-1] < 5
    # Kolmogorov and Smirnov's distance from the uniform distribution, at one in a million.
    even = 2 + 3 * (np.arange(n) + 0.5) / n
    assert np.abs(got - even).max() / 3 < 2.7 / np.sqrt(n)


def test_every_program_is_in_one_list():
    lists = [set(KNOWN), set(NOT_ON_CPU), set(FREE)]
    assert set.union(*lists) == set(corpus.C)
    assert sum(map(len, lists)) == len(corpus.C)


def bound_of(name, worst):
    """The bound for a program that was measured, and where it comes from."""
    if worst <= ROUNDED:
        return ROUNDED, "rounded once"
    if name in STATED and worst <= STATED[name]:
        return STATED[name], f"stated for the operation (measured {worst:.2g})"
    # As much again for the model's other paths, whose fused steps round otherwise.
    bound = next(b for b in [1, 1.5, 2, 3, 4, 6] + [2 ** k for k in range(3, 60)]
                 if b >= 1.5 * worst)
    return bound, f"measured {worst:.2g}"


HEAD = """\
# How far each program of corpus.py may be from the nearer of its oracles (compare.py), in
# units in the last place: of the element in elementwise programs, of the result's largest
# elsewhere. Written by test_corpus.py --measure; a bound that grows is to be explained.
# program  shapes  bound  where the bound comes from
"""


def measure(prefixes):
    device, cpu = jax.devices("tessera")[0], jax.devices("cpu")[0]
    lines = {line.split()[0]: line for line in UNITS.read_text().splitlines()
             if line and line[0] != "#"}
    for name in sorted(set(corpus.C) - set(NOT_ON_CPU) - set(FREE)):
        if not name.startswith(tuple(prefixes)):
            continue
        size = size_of(name)
        kind, worst, where = max(distances(name, size, device, cpu), key=lambda d: d[1])
        if worst == float("inf"):
            print(f"{name}: {kind} inputs cannot be compared: {where}", flush=True)
            continue
        bound, source = bound_of(name, worst)
        lines[name] = f"{name:28} {size} {bound:g} {source}"
        print(lines[name], kind, where if worst > 4 else "", flush=True)
        UNITS.write_text(HEAD + "".join(lines[n] + "\n" for n in sorted(lines)))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--measure"]:
        sys.exit(__doc__)
    measure(sys.argv[2:] or [""])
