# SPDX-License-Identifier: Apache-2.0
"""What looking costs: xla-smi's start, a snapshot of eight devices, being watched.

    python3 tests/bench/watched.py --build build/opt [--write tests/bench/RESULTS.md]
"""

import argparse
import contextlib
import datetime
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

import results
from results import show

STARTS = 40
ROUNDS = 15


def timed(command, env):
    """Seconds by the clock, and of CPU time, of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, sum(getattr(after, k) - getattr(before, k) for k in ("ru_utime", "ru_stime"))


def starts(command, env):
    wall, cpu = zip(*(timed(command, env) for _ in range(STARTS)))
    return min(wall), statistics.median(wall), statistics.median(cpu)


@contextlib.contextmanager
def user(build, env, devices):
    """A process that has so many models open."""
    with subprocess.Popen([build / "bench/watched_bench", str(devices)], env=env, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == "ready\n"
        try:
            yield p
        finally:
            p.stdin.close()


def a_round(p):
    """Nanoseconds of CPU time that a launch takes."""
    p.stdin.write("\n")
    p.stdin.flush()
    return float(p.stdout.readline().split("\t")[0])


def watched(p, build, env):
    """Of an empty program, alone and watched ten times a second; rounds in turn."""
    told = {False: [], True: []}
    for i in range(2 * ROUNDS):
        with contextlib.ExitStack() as stack:
            if i % 2:
                to = stack.enter_context(tempfile.TemporaryFile())
                w = stack.enter_context(subprocess.Popen(
                    [build / "xla-smi", "watch", "-i", "0.1", "--json"], env=env, stdout=to))
                stack.callback(w.kill)
                while not os.fstat(to.fileno()).st_size:    # until it looks
                    assert w.poll() is None
                    time.sleep(0.001)
            told[bool(i % 2)].append(a_round(p))
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--write", metavar="FILE", help="write the section of RESULTS.md")
    o = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=folder)
        rows = [("`xla-smi list`, nothing there", "30 ms",
                 starts([o.build / "xla-smi", "list"], env))]
        with user(o.build, env, 8) as p:
            a_round(p)
            rows.append(("`xla-smi list --json`, eight devices", "10 ms",
                         starts([o.build / "xla-smi", "list", "--json"], env)))
        with user(o.build, env, 1) as p:
            a_round(p)
            told = watched(p, o.build, env)
    lines = [f"{datetime.date.today()}; {results.cpu_name()}; load average before {load:.1f}.",
             "`make bench-watched` prints and writes this. Of starts, "
             f"{STARTS} each: the shortest and the median by the clock,",
             "and the median of CPU time, which does not count the wait for a CPU that others "
             "have. Being watched is the CPU", "time of the thread that launches empty programs "
             f"on one model and waits for each, the median of {ROUNDS} rounds of", "200000 "
             "alone, and as many in turn beside `xla-smi watch -i 0.1`.", "",
             "| what | target | shortest | median | CPU time |", "|---|--:|--:|--:|--:|"]
    for name, target, (least, median, cpu) in rows:
        lines.append(f"| {name} | {target} | {show(least)} | {show(median)} | {show(cpu)} |")
    alone, seen = (statistics.median(told[k]) for k in (False, True))
    lines += ["", "| an empty program | target | alone | watched | more |",
              "|---|--:|--:|--:|--:|",
              f"| CPU time of a launch | 1 % | {show(alone * 1e-9)} | {show(seen * 1e-9)} | "
              f"{100 * (seen / alone - 1):+.1f} % |",
              f"| the least of a round | | {show(min(told[False]) * 1e-9)} | "
              f"{show(min(told[True]) * 1e-9)} | "
              f"{100 * (min(told[True]) / min(told[False]) - 1):+.1f} % |"]
    print("\n".join(lines))
    if o.write:
        results.put(o.write, results.WATCHED, lines)


if __name__ == "__main__":
    main()
