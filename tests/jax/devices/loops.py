# SPDX-License-Identifier: Apache-2.0
"""Collectives inside loops, by several threads at once, over meshes of 2 to 8 devices that overlap:
run as a program, prints a line of JSON: its name, and what is wrong ("" if nothing).
test_devices.py runs it.

All numbers are whole and small, so sums are the same in any order, and numpy says what they are.
"""

import collections
import faulthandler
import json
import random
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

NAME = "loops_of_threads_over_devices_they_share"
SECONDS, LIMIT = 4, 240     # of launches; until all must have ended, under load
THREADS, AHEAD = 6, 4       # launches of a thread that may be under way
TURNS = 7
MESHES = [(0, 1), (5, 0, 7), (3, 1, 0, 2), (7, 6, 5, 2, 1, 0), (3, 7, 0, 4, 1, 5, 2, 6)]
SIZES = [4, 3000]


def summed(n):
    """psum in a loop whose number of turns is known."""
    def f(x):
        return lax.fori_loop(0, TURNS, lambda i, c: lax.psum(c, "d") % 1009 + x * (i + 1), x)

    def want(x):
        c = x
        for i in range(TURNS):
            c = c.sum(0) % 1009 + x * (i + 1)
        return c
    return f, want


def turned(n):
    """ppermute in a scan that gives something in each turn."""
    def f(x):
        def step(c, _):
            c = lax.ppermute(c, "d", [(i, (i + 1) % n) for i in range(n)]) + x
            return c % 4093, c[0]
        c, ys = lax.scan(step, x, None, length=TURNS)
        return c + ys.sum()

    def want(x):
        c, total = x, 0
        for _ in range(TURNS):
            c = np.roll(c, 1, 0) + x
            total += c[:, :1]
            c = c % 4093
        return c + total
    return f, want


def until(n):
    """psum and ppermute in a loop of which the data say when it ends, on all members alike."""
    def f(x):
        def step(s):
            c, total, k = s
            total += lax.psum(c[0], "d")
            return lax.ppermute(c, "d", [(i, (i + 1) % n) for i in range(n)]) + 1, total, k + 1
        c, total, k = lax.while_loop(lambda s: s[1] < 2000, step, (x, jnp.int32(0), jnp.int32(0)))
        return c + total + k

    def want(x):
        c, total, k = x, 0, 0
        while total < 2000:
            total += c[:, 0].sum()
            c = np.roll(c, 1, 0) + 1
            k += 1
        return c + total + k
    return f, want


def scattered(n):
    """all_gather and psum_scatter in a loop whose number of turns is an argument."""
    def f(x):
        def step(_, c):
            rows = lax.all_gather(c, "d")
            part = lax.psum_scatter(jnp.concatenate([c + k for k in range(n)]), "d", tiled=True)
            return (rows.sum(0) + part + x) % 509
        return lax.fori_loop(0, TURNS + x[0] * 0, step, x)

    def want(x):
        c = x
        for _ in range(TURNS):
            c = (2 * c.sum(0) + n * np.arange(n)[:, None] + x) % 509
        return c
    return f, want


KINDS = (summed, turned, until, scattered)


def programs():
    """Each kind on each mesh, compiled."""
    devices = jax.devices("tessera")
    for at in MESHES:
        mesh = Mesh(np.array([devices[i] for i in at]), "d")
        for kind in KINDS:
            f, want = kind(len(at))
            run = jax.jit(jax.shard_map(lambda x, f=f: f(x[0])[None], mesh=mesh, in_specs=P("d"),
                                        out_specs=P("d"), check_vma=False))
            for size in SIZES:
                x = jax.ShapeDtypeStruct((len(at), size), np.int32,
                                         sharding=NamedSharding(mesh, P("d")))
                yield f"{kind.__name__} of {size} on {at}", run.lower(x).compile(), want, x


def use(every, seed, end, wrong, counts):
    """Launches any of them, a few ahead of those whose results it has looked at."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    under_way = collections.deque()

    def look():
        name, got, want = under_way.popleft()
        if not np.array_equal(np.asarray(got), want):
            wrong.append(f"{name}: {np.asarray(got)[:, :4]} instead of {want[:, :4]}")
        counts[name] += 1
    try:
        while time.monotonic() < end and not wrong:
            name, run, want, like = choose.choice(every)
            x = numbers.integers(1, 50, like.shape, np.int32)
            under_way.append((name, run(jax.device_put(x, like.sharding)), want(x)))
            while len(under_way) > choose.randrange(AHEAD):
                look()
        while under_way:
            look()
    except Exception as e:    # noqa: BLE001: the test's message
        wrong.append(repr(e))


def main():
    faulthandler.dump_traceback_later(LIMIT, exit=True)     # a deadlock
    every, wrong, counts = list(programs()), [], collections.Counter()
    for name, run, want, like in every:
        x = np.full(like.shape, 3, np.int32)
        if not np.array_equal(np.asarray(run(jax.device_put(x, like.sharding))), want(x)):
            wrong.append(f"{name}, alone")
    end = time.monotonic() + SECONDS
    threads = [threading.Thread(target=use, args=(every, seed, end, wrong, counts))
               for seed in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if not wrong and sum(counts.values()) < 2 * THREADS * AHEAD:
        wrong.append(f"only {sum(counts.values())} launches")
    print(f"{sum(counts.values())} launches of {len(counts)} programs", file=sys.stderr)
    print(json.dumps([NAME, "\n".join(wrong[:5])]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
