# SPDX-License-Identifier: Apache-2.0
"""How long a device takes to tell an error and to work again, for each that can be injected.

    python3 tests/bench/recovery.py --build build/opt [--write tests/bench/RESULTS.md]
                                    [--results NAME=FILE]...

The conformance program injects them (tests/conformance/recover.c), on the model in the process,
on one behind a vfio-user socket and on what TESSERA_DEVICES names, two devices each. FILE is
what `conformance --recovery ROUNDS` printed on a way that is not here.
"""

import argparse
import collections
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import results
from results import show

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import run as conformance   # noqa: E402

ROUNDS = 21
LIMIT_S = 600


def measure(program, devices, rounds):
    with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
        env = dict(os.environ, TESSERA_DEVICES=devices, TESSERA_TELEMETRY_DIR=pages)
        done = subprocess.run([program, "--recovery", str(rounds)], env=env, check=False,
                              stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode not in (0, 1):   # 1: its lines say what failed
        sys.exit(f"{devices}: exit status {done.returncode} after\n{done.stdout}")
    return done.stdout


def read(name, text):
    """{error: (what was reset, [seconds until told], [until good], why not)}; what failed ends
    it."""
    rows = collections.OrderedDict()
    for line in text.splitlines():
        error, reset, *rest = line.split("\t")
        if reset == "FAIL":
            sys.exit(f"{name}: {error}: {rest[0]}")
        told, good = rows.setdefault(error, (reset, [], [], " ".join(rest)))[1:3]
        if reset != "n.a.":
            told.append(int(rest[0]) / 1e9)
            good.append(int(rest[1]) / 1e9)
    if not rows:
        sys.exit(f"{name}: no results")
    return rows


def row(error, way, found):
    reset, told, good, why = found
    if not told:
        return f"| {error} | {way} | n.a.: {why} | | | | | |"
    return (f"| {error} | {way} | {reset} | {show(statistics.median(told))} | "
            f"{show(max(told))} | {show(statistics.median(good))} | {show(max(good))} | "
            f"{len(told)} of {len(told)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--write", metavar="FILE", help="write the section of RESULTS.md")
    o = parser.parse_args()
    load = os.getloadavg()[0]
    program = o.build / "conformance/conformance"
    server = conformance.Server(o.build / "tessera-sim")
    try:
        ways = conformance.find_ways(server, ["sim", "vfio-user", "named"])
        columns = {w.name: read(w.name, measure(program, w.devices, o.rounds)) for w in ways}
    finally:
        server.stop()
    for text in o.results:
        name, _, path = text.partition("=")
        columns[name] = read(name, pathlib.Path(path).read_text(encoding="utf-8"))
    lines = [
        f"{datetime.date.today()}; {results.cpu_name()}; load average before {load:.1f}.",
        "`make bench-recovery` prints and writes this. Each error is injected through queue 0 "
        "into one of two devices while",
        "queues that have nothing to do with it work: the other queue of that device, where only "
        "one has to be reset, and both",
        "queues of the other device. *Told* is from the injection to the error as its submitter "
        "gets it, *works* from the injection",
        f"to the first good result, computed and copied, after what had to be reset was; median "
        f"and longest of {o.rounds} (of one where a",
        "request has no answer: 10 s are its limit). *The innocent* counts the rounds after "
        "which the bytes of all those queues were",
        "the ones of a run without the error; any other byte fails the run. A hang is told by "
        "the watchdog that the launch set, here",
        "50 ms. A corrected error is told by the count in log page RAS. A lost interrupt fails "
        "nothing: *told* is when a sleeper hears",
        "that its work is done, by the next interrupt or by the look that is due every second. "
        "With a link down the two devices that met over it",
        "fail, and of both the other queues are the innocent.", "",
        "| error | way | what is reset | told | longest | works | longest | the innocent: same "
        "bytes |", "|---|---|---|--:|--:|--:|--:|--:|"]
    for error in next(iter(columns.values())):
        lines += [row(error, name, column[error]) for name, column in columns.items()
                  if error in column]
    print("\n".join(lines))
    if o.write:
        results.put(o.write, results.RECOVERY, lines)


if __name__ == "__main__":
    main()
