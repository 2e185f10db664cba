# SPDX-License-Identifier: Apache-2.0
"""Times several sides by turns, so that a noisy machine disturbs all alike."""

import time


def per_call(run, n):
    began = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - began) / n


def medians(runs, rounds, seconds):
    """Seconds a call of each: short rounds of about `seconds`, alternating; the median's. Where
    one call takes longer than that there are fewer rounds, three at least."""
    counts, slowest = [], 0
    for run in runs:
        run()
        once = max(per_call(run, 1), 1e-7)
        counts.append(max(1, int(seconds / once)))
        slowest = max(slowest, once)
    rounds = min(rounds, max(3, int(2 * rounds * seconds / slowest) | 1))
    times = [[] for _ in runs]
    for _ in range(rounds):
        for side, run in enumerate(runs):
            if counts[side] > 1:    # what the other left running ends, and caches are ours
                run()
            times[side].append(per_call(run, counts[side]))
    return [sorted(t)[rounds // 2] for t in times]
