# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md: one section for each thing that is measured, each replaced by itself."""

import os
import pathlib
import platform

TITLE = """# Benchmark results

Each section is written by the command that it names, which leaves the others alone. Times pass
or fail nothing.
"""
SECTIONS = ("Against XLA's CPU backend and memcpy", "Against PyTorch's CPU",
            "How times grow with sizes", "Collectives of several devices",
            "Ways to a device, on the host", "Ways to a device, in a guest",
            "Beside published figures", "Being looked at", "Recovery", "Projects that build on JAX")
(JAX, TORCH, GROWTH, SPMD, HOST, GUEST, PUBLISHED, WATCHED, RECOVERY,
 ECOSYSTEM) = SECTIONS
# Both sides' times depend on the matrix unit that the CPU has or lacks, and so does who is ahead:
# these have a section for either kind of machine.
BY_MACHINE = (JAX, TORCH, GROWTH, SPMD)
AMX = ", with AMX"


def read(path):
    """{section: its lines' text}"""
    path = pathlib.Path(path)
    parts = path.read_text().split("\n## ")[1:] if path.exists() else []
    return {p.partition("\n")[0]: p.partition("\n")[2].strip("\n") for p in parts}


def put(path, section, lines):
    """Writes one section and keeps the others, in the order above."""
    amx = AMX if section in BY_MACHINE and "amx_tile" in cpu_name() else ""
    sections = read(path) | {section + amx: "\n".join(lines).strip("\n")}
    names = [name + kind for name in SECTIONS for kind in ("", AMX)]
    text = TITLE + "".join(f"\n## {name}\n\n{sections[name]}\n" for name in names
                           if name in sections)
    pathlib.Path(path).write_text(text)


def cpu_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    for line in text.splitlines():
        if line.startswith("model name"):
            flags = [f for f in ("amx_tile", "avx512_bf16", "avx512_vnni", "avx512f", "avx2")
                     if f in text]
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} CPUs, {' '.join(flags)}"
    return platform.processor()


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
