# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules: on the tracked sources sizes, floors, comments, what documents
name and count, the lists of mutants; on a built tree who calls whom (tests/lint_calls.py).

    python3 tests/lint.py [--build build/opt]

Prints one line a finding and exits 1 if there is any.
"""

import argparse
import fnmatch
import pathlib
import posixpath
import re
import subprocess
import sys

import lint_calls

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests/mutants"))
import run as mutants   # noqa: E402

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
    "hal/sim/": ("hal/sim/core/program.h", "hal/sim/threads/pool.h", "hal/sim/threads/turn.h",
                 "hal/sim/kernels/cpu.h"),
    "hal/sim/device/": ("hal/sim/sim.h", "hal/sim/sim_internal.h", "hal/sim/core/program.h",
                        "hal/sim/threads/pool.h", "hal/sim/threads/turn.h"),
    "hal/sim/core/": ("hal/sim/fft/fft.h", "hal/sim/fft/fft_size.h",
                      "hal/sim/lookup/lookup.h", "hal/sim/lookup/update.h",
                      "hal/sim/kernels/cpu.h", "hal/sim/kernels/panel.h",
                      "hal/sim/kernels/rng.h", "hal/sim/kernels/transpose.h",
                      "hal/sim/kernels/uop.h",
                      "hal/sim/threads/pool.h",
                      "hal/sim/threads/turn.h"),
    "hal/sim/threads/": (),
    "hal/sim/fft/": ("hal/sim/kernels/cpu.h", "hal/sim/kernels/path.h"),
    "hal/sim/lookup/": ("hal/sim/kernels/cpu.h", "hal/sim/kernels/path.h",
                        "hal/sim/kernels/uop_extreme.h"),
    "hal/sim/kernels/": (),
    "hal/bus/": ("hal/bus.h", "hal/sim/sim.h"),
    "hal/transport/": ("hal/transport.h", "hal/bus.h", "kernel-uapi/include/tessera_drm.h"),
    "hal/": ("hal/sim/sim.h", "hal/bus/vfio.h", "hal/transport/ioctl.h"),
    "runtime/compiler/": ("runtime/compiler/ir/ir.h",),
    "runtime/compiler/ir/": (),
    "runtime/compiler/front/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                                "runtime/compiler/opt/build.h"),
    "runtime/compiler/opt/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h"),
    "runtime/compiler/simplify/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                                   "runtime/compiler/opt/build.h",
                                   "runtime/compiler/opt/expand.h",
                                   "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/loop/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                               "runtime/compiler/opt/build.h", "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/dynamic/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                                  "runtime/compiler/opt/build.h",
                                  "runtime/compiler/opt/expand.h"),
    "runtime/compiler/lower/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                                "runtime/compiler/opt/build.h", "runtime/compiler/opt/expand.h",
                                "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/back/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                               "runtime/compiler/tc.h", "runtime/compiler/opt/fuse.h"),
    "runtime/compiler/spmd/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h",
                               "runtime/compiler/tc.h", "runtime/compiler/opt/build.h",
                               "runtime/compiler/opt/expand.h",
                               "runtime/compiler/loop/loop.h"),
    "runtime/compiler/eval/": ("runtime/compiler/ir/ir.h", "runtime/compiler/passes.h"),
    "runtime/world/": ("hal/hal.h", "runtime/rt.h"),
    "runtime/trace/": ("hal/hal.h", "runtime/rt_internal.h"),
    "runtime/pjrt/": ("runtime/rt.h", "runtime/compiler/tc.h"),
    "runtime/": ("hal/hal.h", "hal/telemetry.h", "runtime/world/world.h", "runtime/world/order.h",
                 "runtime/compiler/tc.h"),
    "tools/": ("",),
    "tests/": ("",),
}
SHARED = ("hal/base/", "hal/hw/")
# Interpreter loops and tables whose length says nothing.
LONG_FUNCTIONS_ALLOWED = re.compile(r"\b(run_scalar|run_program)\b")

findings = []


def find(path, line, text):
    findings.append((path, line, text))


def tracked():
    return sorted(mutants.tracked())


def check_width_and_first_line(name, lines):
    if "SPDX-License-Identifier" not in "".join(lines[:3]):
        find(name, 1, "no SPDX line")
    for i, line in enumerate(lines, 1):
        if len(line.expandtabs(8)) > MAX_COLUMNS and \
                not name.endswith((".def", "corpus.py", "pjrt_abi.h", "ffi_abi.h")):
            find(name, i, f"{len(line.expandtabs(8))} columns, at most {MAX_COLUMNS}")
        if line != line.rstrip():
            find(name, i, "trailing white space")


def check_sizes(name, lines):
    limit = None if name.endswith(("pjrt_abi.h", "ffi_abi.h")) else \
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
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
        ours = m and not m[2].endswith(".pb-c.h") and "/" in m[2] and \
            (m[1] == '"' or (TOP / m[2]).exists())
        if ours and not may_include(room, m[2]):
            find(name, i, f'"{m[2]}" is not a door of {room}')


def may_include(room, target):
    own = floor_of(target) == room
    below = room not in ("hal/base/", "hal/hw/", "kernel-uapi/") and target.startswith(SHARED)
    door = any(target == d or d.endswith("/") and target.startswith(d) or not d
               for d in DOORS[room])
    return own or below or door


MAX_FILES = 30
# Lines of comment a line of code in the headers that carry a contract. A line counts as
# what it has words of: `int fd; /* -1: none */` as both, `/*` and an empty line as neither.
MIN_COMMENTS = 0.7
CONTRACTS = ("runtime/rt.h", "runtime/rt_internal.h", "runtime/pjrt/pjrt_wrap.h",
             "runtime/compiler/tc.h", "runtime/compiler/ir/ir.h",
             "hal/hal_internal.h", "hal/sim/sim_internal.h")
KNOWN_BARE = set()


def comment_lines(text):
    """(lines of comment, lines of code)."""
    comment = code = 0
    for line in re.sub(r"/\*.*?\*/", lambda m: "".join(
            "\n" if c == "\n" else "\1" if c.isalnum() else " " for c in m[0]),
            text, flags=re.S).split("\n"):
        comment += "\1" in line
        code += bool(line.replace("\1", " ").strip())
    return comment, code


def check_contracts(names):
    for name in CONTRACTS:
        if name not in names:
            find(name, 0, "is not there: correct CONTRACTS in tests/lint.py")
            continue
        comment, code = comment_lines((TOP / name).read_text())
        enough = comment >= MIN_COMMENTS * code
        if not enough and name not in KNOWN_BARE:
            find(name, 1, f"{comment} lines of comment for {code} of code, at least "
                 f"{MIN_COMMENTS} each")
        if enough and name in KNOWN_BARE:
            find(name, 1, "has its comments: take it out of KNOWN_BARE in tests/lint.py")


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


# Where paths that a text names start, besides its own folder and the one above.
ROOTS = ("", "hal", "runtime/compiler", "tests", "kernel-uapi")
SUFFIXES = "c|h|def|py|sh|md|txt|proto|map|service|rules|8|1"
# What texts name as an example.
ELSEWHERE = {"f.py", "main.c", "prog.c", "yours.py"}


def is_there(name, path, names):
    """Whether `path`, which may hold *, can be what the file `name` means."""
    if "/" not in path and fnmatch.filter(names, f"*/{path}"):
        return True
    folder = posixpath.dirname(name)
    return path in ELSEWHERE or any(
        fnmatch.filter(names, posixpath.normpath(posixpath.join(start, path)))
        for start in (folder, posixpath.dirname(folder), *ROOTS))


def check_paths(name, text, names):
    """What a document names in backquotes or links to is there, and what comments name."""
    if name.endswith(".md"):
        for m in re.finditer(rf"`([\w./*-]+\.(?:{SUFFIXES}))(?=[` ])", text):
            if not is_there(name, m[1], names):
                find(name, text.count("\n", 0, m.start()) + 1, f"`{m[1]}` is not there")
        for m in re.finditer(r"\]\(([\w./-]+)\)", text):
            if posixpath.normpath(posixpath.join(posixpath.dirname(name), m[1])) not in names:
                find(name, text.count("\n", 0, m.start()) + 1, f"the link {m[1]} leads nowhere")
        return
    for c in re.finditer(r"/\*.*?\*/", text, re.S):
        for m in re.finditer(r"(?<![\w<\"/.*-])((?:[\w*-]+/)*[\w*-]+\.(?:c|h|def|py|md))\b"
                             r"(?![.\w(])", c[0]):
            if not is_there(name, m[1], names):
                find(name, text.count("\n", 0, c.start() + m.start()) + 1,
                     f"the comment names {m[1]}, which is not there")


def variables_read(names, floors):
    """{variable of the environment: (file, line) that reads it}: C, Python, shell, services."""
    read = {}
    for name in names:
        is_shell = name.endswith((".sh", ".service"))
        if name.startswith(floors) and (is_shell or name.endswith((".c", ".h", ".py"))) and \
                name != "tests/lint_test.py":   # it plants one
            text = (TOP / name).read_text()
            pattern = r"\$\{?(TESSERA_\w+)" if is_shell else \
                r'(?:getenv\(|environ\.get\()"(TESSERA_\w+)"'
            for m in re.finditer(pattern, text):
                read.setdefault(m[1], (name, text.count("\n", 0, m.start()) + 1))
    return read


def variables_told(document):
    """Those that the rows of its table begin with."""
    text = (TOP / document).read_text()
    return set(re.findall(r"`(TESSERA_\w+)`",
                          "\n".join(re.findall(r"^\| `TESSERA_.*$", text, re.M))))


def check_variables(names):
    """README.md names each variable of the environment that the product reads, and no other;
    tests/README.md each of the others that tests read."""
    of_product = variables_told("README.md")
    by_product = variables_read(names, ("hal/", "runtime/", "tools/"))
    by_tests = {v: where for v, where in variables_read(names, ("tests/",)).items()
                if v not in of_product}
    for document, read, told in (("README.md", by_product, of_product),
                                 ("tests/README.md", by_tests, variables_told("tests/README.md"))):
        for variable in sorted(read.keys() - told):
            find(*read[variable], f"{document} does not say what {variable} is")
        for variable in sorted(told - read.keys()):
            find(document, 0, f"nothing reads {variable}")


# What documents count: (document, the number in it, files, what each of them has of it).
COUNTS = (
    ("tests/README.md", r"(\d+) checks from limits", "tests/conformance/checks.def", r"^CHECK\("),
    ("PORTING.md", r"(\d+) checks, with the model's bytes", "tests/conformance/checks.def",
     r"^CHECK\((?:(?:memory|dma|queue|reset|fault),|\w+, \w*(?:memory|dma|queue|reset|fault))"),
    ("tests/README.md", r"(\d+) StableHLO programs", "tests/data/vectors/*.mlirbc", None),
    ("PORTING.md", r"(\d+) programs with their expected", "tests/data/vectors/*.mlirbc", None),
    ("tests/README.md", r"(\d+) HLO modules that torch_xla", "tests/data/torch/*.hlo", None),
    ("tests/README.md", r"(\d+) of them as MLIR too", "tests/data/torch/*.mlirbc", None),
    ("tests/data/torch/README.md", r"(\d+) of them as MLIR", "tests/data/torch/*.mlirbc", None),
    ("tests/data/torch/README.md", r"has (\d+) programs of four",
     "tests/data/torch/replicated/*.hlo", None),
)


def check_counts(names):
    """Numbers of documents are those of the tree."""
    for document, pattern, files, row in COUNTS:
        text = (TOP / document).read_text()
        m = re.search(pattern, text)
        there = [name for name in fnmatch.filter(names, files)
                 if name.count("/") == files.count("/")]
        n = len(there) if row is None else \
            sum(len(re.findall(row, (TOP / name).read_text(), re.M)) for name in there)
        if not m:
            find(document, 0, f"no /{pattern}/: correct COUNTS in tests/lint.py")
        elif int(m[1]) != n:
            find(document, text.count("\n", 0, m.start()) + 1,
                 f"counts {m[1]} where {files} has {n}")


def check_mutants():
    """The text that a mutant replaces is in the tree, once."""
    for path in sorted(mutants.LISTS.glob("*.txt")):
        try:
            wrong = [m.check() if (TOP / m.file).is_file() else f"{path.name}: {m}: no such file"
                     for m in mutants.read_list(path)]
        except ValueError as e:
            wrong = [str(e).split("\n")[0]]
        for text in filter(None, wrong):
            find(f"tests/mutants/{path.name}", 0, text)


def check_calls(names, build):
    sources = [n for n in names if n.endswith(".c")]
    texts = {n: (TOP / n).read_text() for n in sources}
    compiled = [n for n in sources if n.startswith(("hal/", "runtime/", "tools/"))]
    read = [n for n in sources if n.startswith(("kernel-uapi/driver/", "tests/")) and
            not n.startswith("tests/unit/")]
    calls = lint_calls.Calls()
    calls.add_objects(build, compiled)
    for name in calls.missing:
        find(name, 0, f"has no object in {build}: `make lint` builds it")
    headers = {n: (TOP / n).read_text() for n in names if n.endswith(".h")}
    findings.extend(lint_calls.check_doors(calls, floor_of, headers, may_include))
    findings.extend(lint_calls.check_scope(calls, headers, {
        n: (TOP / n).read_text() for n in names
        if n.startswith("tests/") and n.endswith((".c", ".h"))}))
    findings.extend(lint_calls.check_walk(calls, (TOP / "README.md").read_text(), texts, headers))
    for folder in {posixpath.dirname(n) for n in read}:
        calls.add_sources({n: texts[n] for n in read if posixpath.dirname(n) == folder})
    findings.extend(lint_calls.check_circles(calls, compiled + read, floor_of))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", help="a folder of objects: checks calls, too")
    args = parser.parse_args()
    names = tracked()
    check_rooms(names)
    check_contracts(names)
    check_mutants()
    check_variables(names)
    check_counts(names)
    if args.build:
        check_calls(names, args.build)
    for name in names:
        if name.endswith(".md"):
            check_paths(name, (TOP / name).read_text(), names)
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
            check_paths(name, "\n".join(lines), names)
    for path, line, text in findings:
        print(f"{path}:{line}: {text}")
    if not findings:
        print("lint: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
