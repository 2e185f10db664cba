# SPDX-License-Identifier: Apache-2.0
"""The device beside a peer: a table whose rows are timed by turns, each with its target.

What is timed is compared first, so that both sides of a row compute the same.
"""

import os
import pathlib
import re
import subprocess
import sys

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ["TESSERA_CACHE"] = "off"
for variable in list(os.environ):       # the peers' libraries know the machine themselves
    if variable.startswith(("OPENBLAS_", "MKL_", "OMP_")):
        del os.environ[variable]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime/python/examples"))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import results  # noqa: E402
import rounds  # noqa: E402
import why  # noqa: E402
from results import show  # noqa: E402

ROUNDS = 7
SECONDS = 0.15       # of one side in one round
APART = 0.03         # at most, of what is compared; bf16 has 8 bits
FARTHER = 1.25       # as far from more precise results as the peer, at most, if sides are apart
FAR = 2              # times the shortest hop of a run: the CPUs share no cache

DEVICE, CPU = jax.devices("tessera")[0], jax.devices("cpu")[0]
AMX = "amx_tile" in results.cpu_name()


def uniform(*shape, dtype=np.float32):
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


def distance(got, want):
    """How far two lists of arrays are apart, relative to all there is in them: of magnitudes,
    since signs of eigenvectors are free, and of all arrays together, since in bf16 the least
    of a deep model's gradients are rounding."""
    apart = total = 0
    for a, b in zip(got, want, strict=True):
        a, b = (np.abs(np.asarray(x).astype(
            np.complex128 if np.iscomplexobj(x) else np.float64)) for x in (a, b))
        if a.shape != b.shape:
            return np.inf
        apart += ((a - b) ** 2).sum()
        total += (b ** 2).sum()
    return (apart / total if total else apart) ** 0.5


def on_device(f, *args):
    """(run, its result, bytes of temporaries) of a jitted function on the device."""
    return compiled(DEVICE, f, *args)


def compiled(where, f, *args):
    here = jax.device_put(args, where)
    with jax.default_device(where):
        g = jax.jit(f).lower(*here).compile()
    return (lambda: jax.block_until_ready(g(*here)), g(*here),
            g.memory_analysis().temp_size_in_bytes)


def size(n):
    for unit, scale in (("MiB", 2**20), ("KiB", 2**10)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n} B" if n else "0"


class Table:
    """Rows of one run. temps: bytes of temporaries, ours and the peer's."""

    def __init__(self, peer):
        self.peer, self.rows = peer, []
        self.hop_program = None     # tests/bench/hop_bench.c, built
        self.wrong = []     # rows that are not timed, since their sides do not agree
        self.looks = {}     # of rows below their target: seconds of a run, and a why.Look

    def agrees(self, name, got, want, exact=None):
        """Whether two sides' results are of one computation; else the row is left out. exact
        gives the same in higher precision: in a deep model each side's own rounding may come to
        more than is allowed between them, and then ours must be about as small as the peer's."""
        got, want = jax.tree.leaves(got), jax.tree.leaves(want)
        apart = distance(got, want)
        if apart <= APART:
            return True
        why = f"{name}: the sides' results are {apart:.2g} apart, at most {APART} is allowed"
        if exact:
            precise = jax.tree.leaves(exact())
            ours, theirs = distance(got, precise), distance(want, precise)
            if ours <= FARTHER * theirs:
                return True
            why += f", and of precise ones {ours:.2g} and {theirs:.2g}"
        self.wrong.append(f"{why}: they do not compute the same, and are not timed")
        print(self.wrong[-1], flush=True)
        return False

    def end(self):
        """Says what falls short; the program's status tells of rows that were left out."""
        print("\n".join(self.short() + self.wrong))
        sys.exit(1 if self.wrong else 0)

    def hop(self):
        """ns that a cache line takes between CPUs now; 0 if nobody can tell."""
        if not self.hop_program:
            return 0
        done = subprocess.run([self.hop_program], check=True, capture_output=True, text=True)
        return float(done.stdout or 0)

    def shortest_hop(self):
        return min((r[8] for r in self.rows if r[8]), default=0)

    def is_far(self, row):
        """Whether the CPUs shared no cache when the row began or ended: a virtual
        machine's move about. What sides do on several CPUs at once is slower then, by up to
        twice, and most for the side that shares smaller parts."""
        return row[8] > FAR * self.shortest_hop()

    def add(self, name, target, mine, theirs, peer=None, temps=None, hop=0):
        peer, ratio = peer or self.peer, theirs / mine
        wanted = re.match(r">= ([\d.]+)x", target)
        short = bool(wanted) and round(ratio, 2) < float(wanted[1])
        self.rows.append((name, mine, theirs, peer, ratio, target, short, temps, hop))
        print(f"{name:<36} {show(mine):>10} {show(theirs):>10} {peer:<8} {ratio:6.2f}x  "
              f"{target:<9}{'below' if short else '':<6}"
              + (f"temporaries {size(temps[0])} against {size(temps[1])}"
                 if temps and any(temps) else "")
              + (f" CPUs {hop:.0f} ns apart" if self.is_far(self.rows[-1]) else ""), flush=True)

    def measure(self, name, target, ours, peer, peer_name=None, temps=None):
        """Medians of both sides; the ratio is how much faster we are."""
        before = self.hop()
        times = rounds.medians((ours, peer), ROUNDS, SECONDS)
        self.add(name, target, *times, peer_name, temps, max(before, self.hop()))
        look = why.Look(ours) if self.rows[-1][6] else None
        if look and look.ops:
            self.looks[name] = times[0], look

    def both(self, name, target, f, *args, exact=None):
        """One jitted function on the device and on JAX's CPU backend, synchronous. exact: what
        it is compared with as well, a function and its arguments, on the CPU."""
        ours, got, mine = on_device(f, *args)
        peer, want, theirs = compiled(CPU, f, *args)
        if self.agrees(name, got, want, exact and (lambda: compiled(CPU, *exact)[1])):
            del got, want
            self.measure(name, target, ours, peer, temps=(mine, theirs))

    def short(self):
        """What falls short of its target, as lines."""
        slow = [f"{r[0]} ({r[4]:.2f}x)" for r in self.rows if r[6]]
        large = [f"{r[0]} ({size(r[7][0])})" for r in self.rows if r[7] and r[7][0] > r[7][1]]
        far = [r[0] for r in self.rows if self.is_far(r)]
        lines = [f"{len(slow)} of {len(self.rows)} rows are below their target"
                 + (": " + ", ".join(slow) if slow else "") + "."]
        if any(r[7] for r in self.rows):
            lines.append(f"{len(large)} have larger temporaries than the peer"
                         + (": " + ", ".join(large) if large else "") + ".")
        if far:
            lines.append(f"{len(far)} were timed while a cache line took over {FAR} times the "
                         f"{self.shortest_hop():.0f} ns between CPUs that it takes at best (~), "
                         f"and tell little of lanes: {', '.join(far)}.")
        return lines

    def lines(self):
        """The table as Markdown."""
        sized = any(row[7] for row in self.rows)
        out = ["| what | tessera | peer | against | ratio | target |"
               + (" temporaries | peer's |" if sized else ""),
               "|---|--:|--:|---|--:|---|" + ("--:|--:|" if sized else "")]
        for row in self.rows:
            n, a, b, p, r, t, short, temps, _ = row
            ratio = f"**{r:.2f}x**" if short else f"{r:.2f}x"
            sizes = [size(x) for x in temps] if temps else ["", ""]
            if temps and temps[0] > temps[1]:
                sizes[0] = f"**{sizes[0]}**"
            n += " ~" if self.is_far(row) else ""
            out.append(f"| {n} | {show(a)} | {show(b)} | {p} | {ratio} | {t} |"
                       + (f" {sizes[0]} | {sizes[1]} |" if sized else ""))
        return out
