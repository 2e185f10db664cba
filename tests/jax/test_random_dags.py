# SPDX-License-Identifier: Apache-2.0
"""Random programs (random_dags.py): pinned seeds, and fresh ones whose first is printed; on one
device, and spread over several.

TESSERA_DAGS=N runs N fresh ones (N/2 spread, by each partitioner), TESSERA_DAG_SEED=S starts
them at S. They run in a process that may die: the seed that it dies in is named, and the rest
goes on.
"""

import json
import os
import pathlib
import random
import select
import subprocess
import sys
import time

import pytest

WORKER = pathlib.Path(__file__).with_name("random_dags.py")
FRESH = int(os.environ.get("TESSERA_DAGS", "40"))
SECONDS = 120       # for one program, compiled three times

# Seeds that found something each, and what it was.
PINNED = {
    10: "a window and a gradient: the CPU knew no derivative of the program as drawn then",
    302160: "XLA's CPU backend writes in place what it still reads",
}
# One program for each kind of step, however the fresh ones fall.
ALWAYS = list(range(1, 21))


def lines_of(process):
    """The worker's lines; ends when it does, or with None when it is silent too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        if not ready:
            yield None
            return
        got = os.read(process.stdout.fileno(), 65536)
        if not got:
            return
        *whole, rest = (rest + got).split(b"\n")
        yield from whole


def run_seeds(seeds, options, env):
    """{seed: what is wrong, or None}."""
    results, todo = {}, list(seeds)
    while todo:
        running = None
        p = subprocess.Popen([sys.executable, WORKER, *options, *map(str, todo)],
                             env=dict(os.environ, **env), stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        for line in lines_of(p):
            if line is None:
                p.kill()
                break
            told = json.loads(line)
            if "start" in told:
                running = told["start"]
            else:
                results[told["end"]], running = told["wrong"], None
                if told["cpu_wrong"]:
                    print(f"seed {told['end']}: XLA's CPU backend is wrong, op by op it agrees")
        status = p.wait()
        if running is not None:
            results[running] = f"it did not end in {SECONDS} s" if line is None else \
                f"the process ended with status {status}"
        elif status and not any(s in results for s in todo):
            raise RuntimeError(f"{WORKER.name} ended with status {status} before a program")
        todo = [s for s in todo if s not in results]
    return results


def check(seeds, *options, **env):
    start = time.monotonic()
    wrong = {s: w for s, w in run_seeds(seeds, options, env).items() if w}
    print(f"\n{len(seeds)} random programs from {seeds[0]}: {len(wrong)} wrong "
          f"({time.monotonic() - start:.0f} s)")
    see = " ".join([*(f"{k}={v}" for k, v in env.items()), f"python {WORKER}", *options])
    assert not wrong, "\n".join(
        f"seed {s}: {w}\n  see it: {see} --show {s}" for s, w in wrong.items())


def first_fresh():
    return int(os.environ.get("TESSERA_DAG_SEED", random.SystemRandom().randrange(1 << 40)))


def test_pinned_programs_agree_with_cpu():
    check(sorted({*ALWAYS, *PINNED}))


def test_fresh_programs_agree_with_cpu():
    first = first_fresh()
    check(range(first, first + FRESH))


@pytest.mark.parametrize("partitioner", ["shardy", "gspmd"])
def test_programs_spread_over_devices_agree_with_cpu(partitioner):
    env = {"TESSERA_SIM": "devices=8,hbm=512M" + (
               ",check" if "check" in os.environ.get("TESSERA_SIM", "") else ""),
           "JAX_USE_SHARDY_PARTITIONER": str(int(partitioner == "shardy"))}
    first = first_fresh()
    check([*ALWAYS, *range(first, first + FRESH // 2)], "--spread", **env)
