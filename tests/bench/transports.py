# SPDX-License-Identifier: Apache-2.0
"""Measures the ways to a device with transport_bench and writes their tables.

    transports.py --build build/opt [--write RESULTS.md] [--ms 300]
    transports.py --build build/opt [--write RESULTS.md] --guests

The first runs the program on the model in the process and behind a vfio-user socket. The
second runs nothing: it makes a table of what the guests left (tests/guest/tier_bench.py).
Times decide nothing; a figure whose values or bytes were wrong fails.
"""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "guest"))

import guest  # noqa: E402
import results  # noqa: E402
from results import show  # noqa: E402

FLOOR = "system call"
GUEST_WAYS = (("type1", "VFIO, type 1"), ("iommufd", "VFIO, iommufd"),
              ("accel", "kernel driver"))
MOVES = ("memcpy", "host to device", "device to host", "DMA")

# Of facts about other projects: who and what, figure, conditions and source, the row of ours
# that is of the same kind ("" where we have none).
PUBLISHED = (
    ("tt-umd: posted 4 B write to a mapped window", "92 ns; 454 ns if the window moves",
     "Xeon 4309Y, Gen4 x16, nanobench; tlb/README.md", "submit by ring, engine at work"),
    ("tt-umd: read by MMIO", "960 ns for 4 B; 4.65 MB/s in bulk", "the same machine", ""),
    ("Metal: host's cost of a dispatch", "0.61 us", "slope of N inert dispatches; ferrox 149",
     "submit by ring, engine awake"),
    ("tt-metal: host's cost of an enqueue", "19 us a device", "tt-metal 52756",
     "submit by ring, engine asleep"),
    ("AMD, AQL user queue", "7 us; 3.5 us in batches; ~1 us by a resident kernel and polling",
     "interrupts off; community.amd.com 131511", "round trip polled, program"),
    ("NPU3, kernel's queue: chained no-op", "14.2 us mean (13 to 16)",
     "xrt-smi, 20 x 1000 runs, depth 1; VTD PR 44", "round trip by interrupt, program"),
    ("tt-umd: IOMMU map of 4 KiB", "25 us", "total / 100; tt-umd iommu README",
     "map host memory 4 KiB"),
    ("tt-umd: IOMMU unmap of 4 KiB", "27 us", "the same", "unmap host memory 4 KiB"),
    ("tt-umd: streaming map", "1.2 to 1.28 GiB/s; 1 GiB in 0.80 s", "the same",
     "map host memory 64 MiB"),
    ("tt-umd: streaming unmap", "0.55 to 0.57 GiB/s; 1 GiB in 1.8 s", "the same",
     "unmap host memory 64 MiB"),
    ("tt-umd: DMA of 4 B", "3.6 us write, 3.3 us read", "tt-umd pcie_dma README",
     "DMA to pinned host memory 4 KiB"),
    ("tt-umd: DMA, most", "7.88 GB/s, 25 % of the bus", "host to device, 2 MiB, Gen4 x16",
     "host to device 1 MiB"),
    ("nvbandwidth: host to device", "26.0 GB/s, 82 % of the bus", "Gen4 x16; its README",
     "host to device 64 MiB"),
    ("tpu-info: host to device", "18.3 ms p50 for 8 MB and more", "a sample of its output",
     "host to device 64 MiB"),
    ("SPDK: reads of 4 KiB from user space", "10.94 M/s on 8 cores, 5.09x the kernel's a core",
     "NVMe; SPDK reports", ""),
    ("qaic: interrupt mitigation", "64 interrupts in 5 minutes for 100 k/s", "kernel qaic.rst", ""),
    ("tt-umd: opening a cluster", "16 ms (n300); 104 to 120 ms (p150, CI)",
     "open_cluster README, baselines/*.yaml", "open the device"),
    ("refresh of telemetry", "tt-smi 100 ms; intel-npu-smi >= 200 ms; tpu-info 0.1 to 1 s",
     "their manuals: how often, not how long", "read the device's counters"),
)

HOST_TEXT = """{date}; {cpu}; load average before {load}.
`make bench-transports` prints and writes this, the guests' section and the published figures;
`make bench` all but the guests'. `tests/bench/transport_bench.c` says what each row does; it
checks every value and byte that it times.

The device is the model: in this process, or in another behind a vfio-user socket. Its engine
shares the CPUs with the program. Submission is the host's cost of one descriptor in the ring
and its doorbell, in bursts of 32 in a ring of 1024: behind a program that runs, beside an engine
that takes what comes, and one alone that wakes a sleeping engine. A round trip by interrupt ends
in a callback on a thread that slept; the submitter does not poll. Map and unmap are of memory
that was touched; the model in the process reaches it where it is and maps by a record alone.
The first column of each way is the median, p99 needs 100 samples. *Takes* is the in-process median
over its floor's.
"""

GUEST_TEXT = """{date}; {cpu}.
`make bench-transports` writes this. The guests run without KVM: QEMU translates each of their
instructions, and the device is the model outside, behind vfio-user. So absolute times mean
little, and cells are multiples, median and least, of what the same guest needs in the same run
for a system call, or for memcpy of as many bytes:

{floors}

A doorbell here is no store to a card: QEMU stops the guest and sends a message to the device's
server. It is in each submission by ring. SUBMIT returns before its doorbell, which a kernel
thread rings, so it looks cheaper; the round trips hold both.
"""

PUBLISHED_TEXT = """The figures of others, as they give them, with their conditions. They are of
other machines and real cards, ours ({date}) of the model on the machine named above: what is
comparable is the order of magnitude of the host's part (submission, opening), not the device's.
Maps through a real IOMMU driver and the kernel's own queue are in the guests' section.
"""


class Way:
    """What transport_bench printed of one way."""

    def __init__(self, text):
        self.rows = {}
        for line in text.splitlines()[1:]:
            name, median, least, p99, n, size, peer = line.split("\t")
            self.rows[name] = (float(median), float(least), float(p99), int(n), int(size),
                               peer)

    def median(self, name):
        return self.rows[name][0]

    def peer(self, name):
        return self.rows[name][5] or FLOOR


def measure(program, name, devices, ms):
    with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
        env = dict(os.environ, TESSERA_DEVICES=devices, TESSERA_TELEMETRY_DIR=pages)
        done = subprocess.run([program, str(ms)], env=env, stdout=subprocess.PIPE, text=True,
                              check=False)
    if done.returncode:
        sys.exit(f"{name}: transport_bench ended with {done.returncode}")
    return Way(done.stdout)


def measure_host(build, ms):
    program = str(build / "bench/transport_bench")
    sim = measure(program, "sim", "sim:hbm=256M", ms)
    with tempfile.TemporaryDirectory(prefix="tessera-") as work:
        server = guest.Server(guest.Machine(None, build, False), pathlib.Path(work), 1)
        try:
            served = measure(program, "vfio-user", f"vfio-user:{server.sockets}/0.sock", ms)
        finally:
            server.stop()
    return sim, served


def names_of(ways):
    """All rows, in the program's order."""
    names = []
    for way in ways:
        at = 0
        for name in way.rows:
            if name in names:
                at = names.index(name) + 1
            else:
                names.insert(at, name)
                at += 1
    return names


def cell(way, name):
    if name not in way.rows:
        return "-"
    median, _, _, _, size, _ = way.rows[name]
    text = show(median * 1e-9)
    if size >= 1 << 20 and name.startswith(MOVES):
        text += f" ({size / median:.1f} GB/s)"
    return text


def cells(way, name):
    """Median, least and 99th percentile."""
    row = way.rows.get(name)
    if not row:
        return "- | - | -"
    return f"{cell(way, name)} | {show(row[1] * 1e-9)} | " + \
        (show(row[2] * 1e-9) if row[2] else "-")


def times(x):
    if abs(x) < 0.1:
        return f"{x:.1g}x" if abs(x) >= 0.0001 else "0x"
    return f"{x:.{0 if abs(x) >= 100 else 1 if abs(x) >= 10 else 2}f}x"


def host_table(sim, served):
    lines = ["| what | in process | least | p99 | vfio-user | least | p99 | held against | "
             "takes |", "|---|--:|--:|--:|--:|--:|--:|---|--:|"]
    for name in names_of([sim, served]):
        peer = "" if name == FLOOR else sim.peer(name)
        ratio = times(sim.median(name) / sim.median(peer)) if peer else ""
        lines.append(f"| {name} | {cells(sim, name)} | {cells(served, name)} | {peer} | "
                     f"{ratio} |")
    return lines


def floor_of(way, name):
    """Of a guest's figure: what two threads take of each other depends on the host."""
    return way.peer(name) if way.peer(name).startswith("memcpy") else FLOOR


def guest_cell(way, name):
    if way is None or name not in way.rows:
        return "- | -"
    floor = way.median(floor_of(way, name))
    return " | ".join(times(x / floor) for x in way.rows[name][:2])


def guest_table(ways):
    lines = ["| what | " + " | least | ".join(title for _, title in GUEST_WAYS) +
             " | least | in multiples of |",
             "|---|" + "--:|--:|" * len(GUEST_WAYS) + "---|"]
    some = [w for w in ways if w]
    for name in names_of(some):
        if name == FLOOR:
            continue
        floor = next(floor_of(w, name) for w in some if name in w.rows)
        lines.append(f"| {name} | " + " | ".join(guest_cell(w, name) for w in ways) +
                     f" | {floor} |")
    return lines


def published_table(sim, served):
    lines = ["| who and what | figure | conditions, source | ours of that kind | in process | "
             "vfio-user |", "|---|---|---|---|--:|--:|"]
    for what, figure, source, name in PUBLISHED:
        lines.append(f"| {what} | {figure} | {source} | {name or '-'} | {cell(sim, name)} | "
                     f"{cell(served, name)} |")
    return lines


def facts():
    return {"date": datetime.date.today(), "cpu": results.cpu_name()}


def do_host(options):
    load = f"{os.getloadavg()[0]:.1f}"
    if os.getloadavg()[0] > 1:
        print(f"bench: the machine is busy (load average {load}): expect noise")
    sim, served = measure_host(options.build, options.ms)
    table = host_table(sim, served)
    print("\n".join(table))
    if options.write:
        results.put(options.write, results.HOST,
                    [HOST_TEXT.format(load=load, **facts()), *table])
        results.put(options.write, results.PUBLISHED,
                    [PUBLISHED_TEXT.format(**facts()), *published_table(sim, served)])


def do_guests(options):
    ways = []
    for name, _ in GUEST_WAYS:
        path = options.build / f"bench/guest-{name}.tsv"
        ways.append(Way(path.read_text()) if path.exists() else None)
    if not any(ways):
        print("bench: no guest has left figures; their section stays as it is")
        return
    table = guest_table(ways)
    print("\n".join(table))
    floors = "\n".join(f"- {title}: a system call {cell(w, FLOOR)}, memcpy of 1 MiB "
                       f"{cell(w, 'memcpy 1 MiB')}"
                       for w, (_, title) in zip(ways, GUEST_WAYS) if w)
    if options.write:
        results.put(options.write, results.GUEST,
                    [GUEST_TEXT.format(floors=floors, **facts()), *table])


def main():
    parser = argparse.ArgumentParser(description="Figures of the ways to a device.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--write", metavar="FILE", help="replace the sections in this file")
    parser.add_argument("--ms", type=int, default=300, help="for one figure")
    parser.add_argument("--guests", action="store_true", help="what the guests measured")
    options = parser.parse_args()
    options.build = options.build.absolute()
    (do_guests if options.guests else do_host)(options)


if __name__ == "__main__":
    main()
