# SPDX-License-Identifier: Apache-2.0
"""Where the time of a row goes: what JAX's profiler tells of the device's own record of a run."""

import glob
import tempfile

import jax
import numpy as np
from jax.profiler import ProfileData

import rounds
from results import show

RUNS = 5
MOST = 3            # operations that are shown of a row
PLANE = "/device:CUSTOM:TESSERA:0"


class Look:
    """busy: seconds that the device takes for a run of all its programs; ops: (name, seconds, bytes
    read and written, operations, instructions) of each, the longest first."""

    def __init__(self, run):
        with tempfile.TemporaryDirectory() as folder:
            run()
            with jax.profiler.trace(folder):
                for _ in range(RUNS):
                    run()
            [file] = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
            lines = {line.name: [(e.name, e.duration_ns / 1e9 / RUNS, dict(e.stats))
                                 for e in line.events]
                     for plane in ProfileData.from_file(file).planes if plane.name == PLANE
                     for line in plane.lines}
        self.busy = sum(seconds for _, seconds, _ in lines.get("XLA Modules", []))
        ops = {}
        for name, seconds, stats in lines.get("XLA Ops", []):
            ops.setdefault(name, np.zeros(4))
            ops[name] += (seconds, *(stats.get(kind, 0) / RUNS for kind in
                                     ("bytes_accessed", "flops", "instructions")))
        self.ops = sorted(((name, *sums) for name, sums in ops.items()), key=lambda op: -op[1])

    def line(self, name, seconds):
        """A row of the table: one operation in each of three cells, with its share of all."""
        whole = sum(op[1] for op in self.ops)
        cells = [f"{name}", show(seconds), show(self.busy)]
        for op, took, moved, done, n in self.ops[:MOST]:
            text = op.replace("|", "/")
            cells.append(f"{took / whole:.0%} {text if len(text) < 40 else text[:37] + '...'}"
                         + (f" ({n:.0f} of them)" if n > 1.5 else "")
                         + f": {moved / took / 1e9:.3g} GB/s, {done / took / 1e9:.3g} Gop/s")
        return "| " + " | ".join(cells + [""] * (3 + MOST - len(cells))) + " |"


def limits(peaks):
    """What the machine can do at most, as a sentence."""
    rates = []
    for label, n in (("64 MiB", 64 << 20), ("256 KiB", 256 << 10)):
        source, to = np.ones(n, np.uint8), np.zeros(n, np.uint8)
        [took] = rounds.medians([lambda s=source, t=to: np.copyto(t, s)], 5, 0.05)
        rates.append(f"{2 * n / took / 1e9:.3g} GB/s of {label}")
    text = "One CPU's memcpy reads and writes " + " and ".join(rates)
    if peaks:
        text += "; on registers alone all CPUs do " + ", ".join(
            f"{rate / 1e9:.4g} Gop/s of {kind}" for kind, rate in peaks.items())
    return text + "."


def lines(looks, peaks):
    """The table as Markdown of {row: (seconds of a run as it was timed, Look)}."""
    if not looks:
        return []
    return ["", "Where the time of rows below their target goes, by the device's own record of "
            f"{RUNS} more runs (with which loops of small instructions take longer): what a run "
            "took above, what of it the device was busy while it was recorded, and its longest "
            f"operations. {limits(peaks)}", "",
            "| what | a run | device | " + "longest operation | " + "next | " * (MOST - 1),
            "|---|--:|--:|" + "---|" * MOST,
            *(look.line(name, seconds) for name, (seconds, look) in looks.items())]
