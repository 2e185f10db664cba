# SPDX-License-Identifier: Apache-2.0
"""How the device's times grow with sizes, and what a second lane brings.

    python growth.py [--write RESULTS.md] [--only TEXT] [--most 24]

Each family of families.py runs with 2^10 to 2^MOST elements, by fours. The exponent is the slope
of the logarithms' line over sizes that take at least ten times what launching takes, and
stands beside that of JAX's CPU backend. No size is tried after one that took long.
Lanes are a device's for life: a process with one and a process with two take turns.
"""

import argparse
import datetime
import json
import math
import os
import subprocess
import sys

LEAST, MOST, BY = 10, 24, 2
LONG = 0.5          # seconds of a turn after which no larger size is tried
LANES = {"f32 product 1024": ("product", 1024, "float32"),
         "bf16 product 1024": ("product", 1024, "bfloat16"),
         "tanh 4 Mi": ("tanh", 1 << 22, "float32"), "add 4 Mi": ("add", 1 << 22, "float32"),
         "softmax 2048x2048": ("softmax", 2048, "float32")}


def fit(points, launch):
    """The exponent of [(n, seconds)], and how many of them it is from."""
    points = [(math.log(n), math.log(t)) for n, t in points if t >= 10 * launch]
    if len(points) < 3:
        return None, len(points)
    x, y = (sum(v) / len(points) for v in zip(*points))
    return (sum((a - x) * (b - y) for a, b in points)
            / sum((a - x) ** 2 for a, _ in points)), len(points)


def grow(most, only):
    """{family: {platform: [(n, seconds)]}} and seconds of a launch by platform."""
    import sides
    import jax

    import families
    import rounds

    def seconds(where, f, args, turns=3, of=0.05):
        run, _, _ = sides.compiled(where, f, *args)
        return rounds.medians((run,), turns, of)[0]

    platforms = {"tessera": sides.DEVICE, "XLA:CPU": sides.CPU}
    launch = {p: seconds(d, lambda x: x + 1, families.numbers(1)[None], 7)
              for p, d in platforms.items()}
    found = {}
    for name, (f, arguments, _) in families.FAMILIES.items():
        if only not in name:
            continue
        found[name] = {p: [] for p in platforms}
        for k in range(LEAST, most + 1, BY):
            for platform, where in platforms.items():
                points = found[name][platform]
                if not points or points[-1][1] < LONG:
                    points.append((1 << k, seconds(where, f, arguments(1 << k))))
        print(name, *(f"{p}: {e[0]:.2f}" if e[0] is not None else f"{p}: too short" for p, e in
                      ((p, fit(v, launch[p])) for p, v in found[name].items())), flush=True)
        jax.clear_caches()
    return found, launch


# ---- lanes: each worker answers a line with the seconds of what the line names ------------

def worker():
    import sides
    import jax
    import jax.numpy as jnp

    import rounds

    runs = {}
    for name, (kind, n, dtype) in LANES.items():
        if kind in ("product", "softmax"):
            x = sides.uniform(n, n).astype(jnp.dtype(dtype))
        else:
            x = sides.uniform(n)
        f = {"product": lambda x: x @ x, "tanh": jnp.tanh, "add": lambda x: x + x,
             "softmax": jax.nn.softmax}[kind]
        runs[name], _, _ = sides.on_device(f, x)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(rounds.medians((runs[line.strip()],), 3, 0.1)[0]), flush=True)


def lanes():
    """{row: seconds with one lane and with two}, medians of five turns each."""
    def start(n):
        base = os.environ.get("TESSERA_SIM", "")
        env = dict(os.environ, TESSERA_SIM=",".join(filter(None, [base, f"lanes={n}"])))
        p = subprocess.Popen([sys.executable, __file__, "--worker"], env=env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if p.stdout.readline() != "ready\n":
            sys.exit(f"the process with {n} lanes did not start; its message stands above")
        return p

    def ask(p, name):
        p.stdin.write(name + "\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())

    workers = [start(1), start(2)]
    found = {}
    for name in LANES:
        times = [[ask(p, name) for p in workers] for _ in range(5)]
        found[name] = [sorted(t)[2] for t in zip(*times)]
        print(f"{name}: {found[name][0] / found[name][1]:.2f} times as fast on two lanes",
              flush=True)
    for p in workers:
        p.stdin.close()
        p.wait()
    return found


def lines(found, launch, by_lanes):
    import families
    import results
    from results import show

    sizes = sorted({n for by in found.values() for points in by.values() for n, _ in points})
    out = [f"{datetime.date.today()}; {results.cpu_name()}; load average "
           f"{os.getloadavg()[0]:.1f}.",
           "`make bench-growth` prints and writes this: the device's times by numbers of "
           "elements, and the exponent of their growth over",
           "sizes that take at least ten launches "
           f"({show(launch['tessera'])}; XLA:CPU's {show(launch['XLA:CPU'])}). Data that leave "
           "a cache count as growth: XLA:CPU's exponent, on the",
           "same machine, stands beside it. Bold: above target. No time: the size before took "
           "too long.", "",
           "| family | " + " | ".join(f"2^{n.bit_length() - 1}" for n in sizes)
           + " | exponent | target | XLA:CPU's |", "|---|" + "--:|" * (len(sizes) + 3)]
    for name, by in found.items():
        times, target = dict(by["tessera"]), families.FAMILIES[name][2]
        texts = [show(times[n]) if n in times else "" for n in sizes]
        mine, theirs = (fit(by[p], launch[p])[0] for p in ("tessera", "XLA:CPU"))
        text = "-" if mine is None else f"{mine:.2f}"
        if mine is not None and round(mine, 2) > target:
            text = f"**{text}**"
        out.append(f"| {name} | " + " | ".join(texts) + f" | {text} | <= {target} | "
                   + ("-" if theirs is None else f"{theirs:.2f}") + " |")
    out += ["", "| on one lane and on two | one | two | ratio | target |",
            "|---|--:|--:|--:|---|"]
    for name, (one, two) in by_lanes.items():
        text = f"{one / two:.2f}x"
        out.append(f"| {name} | {show(one)} | {show(two)} | "
                   + (text if round(one / two, 2) >= 1.8 else f"**{text}**") + " | >= 1.8x |")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="write the section of RESULTS.md")
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--most", type=int, default=MOST, help="the greatest power of two")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker()
        return
    by_lanes = lanes()
    text = lines(*grow(options.most, options.only), by_lanes)
    print("\n".join(text))
    if options.write:
        import results
        results.put(options.write, results.GROWTH, text)


if __name__ == "__main__":
    main()
