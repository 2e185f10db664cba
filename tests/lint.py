# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules on the tracked sources: sizes, floors, headers' first lines.

    python3 tests/lint.py

Prints one line a finding and exits 1 if there is any.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]

MAX_LINES = {".c": 1000, ".h": 600, ".py": 1000}
MAX_COLUMNS = 100
MAX_FUNCTION = 100

# Each room, and the headers of other rooms that its files may include; a name that ends
# in a slash is any header of that room. hal/base and hal/hw are open to all but each other
# as said here. A room is the longest of these names that a path starts with.
DOORS = {
    "kernel-uapi/": (),
    "kernel-uapi/driver/": ("hal/base/elem.h", "hal/hw/"),
    "hal/base/": (),
    "hal/hw/": ("hal/base/",),
    "hal/sim/": ("hal/sim/core/core.h",),
    "hal/sim/device/": ("hal/sim/sim.h", "hal/sim/sim_internal.h"),
    "hal/sim/core/": ("hal/sim/sim_internal.h", "hal/sim/kernels/uop.h",
                      "hal/sim/kernels/rng.h", "hal/sim/kernels/transpose.h"),
    "hal/sim/kernels/": ("hal/sim/core/core.h", "hal/sim/core/product.h"),
    "hal/bus/": ("hal/bus.h", "hal/sim/sim.h"),
    "hal/transport/": ("hal/transport.h", "hal/bus.h", "kernel-uapi/include/tessera_drm.h"),
    "hal/": ("hal/sim/sim.h", "hal/bus/vfio.h", "hal/transport/ioctl.h"),
    "runtime/compiler/": ("runtime/compiler/ir/ir.h",),
    "runtime/compiler/ir/": ("runtime/compiler/tc.h",),
    "runtime/compiler/front/": ("runtime/compiler/ir/ir.h",),
    "runtime/compiler/opt/": ("runtime/compiler/ir/ir.h",),
    "runtime/compiler/lower/": ("runtime/compiler/ir/ir.h", "runtime/compiler/opt/build.h",
                                "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/back/": ("runtime/compiler/ir/ir.h", "runtime/compiler/tc.h",
                               "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/eval/": ("runtime/compiler/ir/ir.h", "runtime/compiler/tc.h"),
    "runtime/pjrt/": ("runtime/rt.h", "runtime/compiler/tc.h"),
    "runtime/": ("hal/hal.h", "runtime/compiler/tc.h"),
    "tools/": ("",),
    "tests/": ("",),
}
SHARED = ("hal/base/", "hal/hw/")
# Interpreter loops and tables whose length says nothing.
LONG_FUNCTIONS_ALLOWED = re.compile(r"\b(run_scalar|run_program)\b")

findings = []


def find(path, line, text):
    findings.append(f"{path}:{line}: {text}")


def tracked():
    names = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True,
                           text=True, check=True).stdout.split("\n")
    return [n for n in names if n and (TOP / n).exists()]


def check_width_and_first_line(name, lines):
    if "SPDX-License-Identifier" not in "".join(lines[:3]):
        find(name, 1, "no SPDX line")
    for i, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > MAX_COLUMNS and \
                not name.endswith((".def", "corpus.py", "pjrt_abi.h")):
            find(name, i, f"{len(line.expandtabs(8))} columns, at most {MAX_COLUMNS}")
        if line != line.rstrip():
            find(name, i, "trailing white space")


def check_sizes(name, lines):
    limit = None if name.endswith("pjrt_abi.h") else \
        MAX_LINES.get(pathlib.Path(name).suffix)
    if limit and len(lines) > limit:
        find(name, len(lines), f"{len(lines)} lines, at most {limit}")


def check_functions(name, lines):
    start = None
    for i, line in enumerate(lines, 1):
        if line == "{":
            start = i
        elif line == "}" and start:
            head = " ".join(lines[max(0, start - 4):start])
            if i - start > MAX_FUNCTION and not LONG_FUNCTIONS_ALLOWED.search(head):
                find(name, start, f"a function of {i - start} lines, at most {MAX_FUNCTION}")
            start = None


def check_comments(name, lines):
    in_block = False
    for i, line in enumerate(lines, 1):
        bare = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        if not in_block and re.search(r"(^|[^:])//", bare.split("/*")[0]):
            find(name, i, "// comment; use /* */")
        for token in re.findall(r"/\*|\*/", bare):
            in_block = token == "/*"
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            find(name, i, "unfinished work in a comment")


def floor_of(name):
    return max((f for f in DOORS if name.startswith(f)), key=len, default=None)


def check_includes(name, lines):
    room = floor_of(name)
    if room is None:
        return
    for i, line in enumerate(lines, 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not m or m[1].endswith(".pb-c.h"):
            continue
        target = m[1]
        own = "/" not in target or floor_of(target) == room
        below = room not in ("hal/base/", "hal/hw/", "kernel-uapi/") and \
            target.startswith(SHARED)
        door = any(target == d or d.endswith("/") and target.startswith(d) or not d
                   for d in DOORS[room])
        if not (own or below or door):
            find(name, i, f'"{target}" is not a door of {room}')


MAX_FILES = 30
# Where paths in documents start.
ROOTS = [TOP / r for r in ("", "hal", "runtime/compiler", "tests", "kernel-uapi")]


def check_rooms(names):
    """No folder holds more sources than a reader takes in."""
    count = {}
    for name in names:
        if name.endswith((".c", ".h", ".def", ".py", ".sh")):
            folder = name.rpartition("/")[0]
            count[folder] = count.get(folder, 0) + 1
    for folder, n in sorted(count.items()):
        if n > MAX_FILES:
            find(folder, 0, f"{n} sources in one folder, at most {MAX_FILES}")


def check_paths(name, text):
    """What a document names in backquotes with a folder is there."""
    base = (TOP / name).parent
    for m in re.finditer(r"`((?:[\w.-]+/)+[\w.-]+\.(?:c|h|def|py|sh|md))`", text):
        if not any((p / m[1]).exists() for p in (base, base.parent, *ROOTS)):
            find(name, text.count("\n", 0, m.start()) + 1, f"`{m[1]}` is not there")


def main():
    names = tracked()
    check_rooms(names)
    for name in names:
        if name.endswith(".md"):
            check_paths(name, (TOP / name).read_text())
        if not name.endswith((".c", ".h", ".def", ".py", ".sh", ".mk")):
            continue
        lines = (TOP / name).read_text().split("\n")
        check_width_and_first_line(name, lines)
        check_sizes(name, lines)
        if name.endswith((".c", ".h")):
            check_functions(name, lines)
            check_comments(name, lines)
        if name.endswith((".c", ".h", ".def")):
            check_includes(name, lines)
    print("\n".join(findings) if findings else "lint: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
