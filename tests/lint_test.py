# SPDX-License-Identifier: Apache-2.0
"""Sees lint fail: in a copy of the tree, faults of every kind are found, and nothing else.

    python3 tests/lint_test.py --build build/opt

The copy is clean before, so what lint says then is of the faults; each has to be named,
and each line that lint prints has to be of one.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import lint
import lint_calls

# In two pieces, so that `make reuse` does not take it for this file's own.
LICENCE = "SPDX-License-" "Identifier: Apache-2.0"
# Objects come from sources of the kind `int name(void) { return other(); }`.
CALL = f"/* {LICENCE} */\n" "int {0}(void);\nint {1}(void);\n" \
       "int {0}(void)\n{{\n\treturn {1}();\n}}\n"


class Copy:
    def __init__(self, top, build):
        self.top = top
        self.build = build
        self.wanted = []    # (what, pattern)
        for name in lint.tracked():
            self.write(name, (lint.TOP / name).read_bytes())
        for room in ("hal", "runtime", "tools"):
            for o in (build / room).rglob("*.o"):
                to = top / "build" / o.relative_to(build)
                to.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(o.absolute(), to)

    def write(self, name, data):
        to = self.top / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data.encode() if isinstance(data, str) else data)

    def change(self, name, old, new):
        """The first match of the pattern `old`; it is a mistake if there is none."""
        text = (self.top / name).read_text()
        changed, n = re.subn(old, lambda _: new, text, count=1, flags=re.M | re.S)
        if n != 1 or changed == text:
            sys.exit(f"lint_test: {name} has no {old!r}: correct tests/lint_test.py")
        self.write(name, changed)

    def append(self, name, text):
        self.write(name, (self.top / name).read_text() + text)

    def compile(self, name, text, with_object=True):
        self.write(name, text)
        if with_object:
            to = self.top / "build" / (name[:-2] + ".o")
            subprocess.run(["cc", "-c", self.top / name, "-o", to], check=True)

    def want(self, what, pattern):
        self.wanted.append((what, pattern))

    def run(self, program, *args):
        done = subprocess.run([sys.executable, str(self.top / "tests" / program), *args],
                              cwd=self.top, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def plant_sources(c):
    c.change("hal/queue.c", "^#include", '#include "hal/sim/sim_internal.h"\n#include')
    c.want("a header of the model in the HAL",
           r'hal/queue\.c:\d+: "hal/sim/sim_internal\.h" is not a door of hal/')
    c.change("hal/memory.c", "^#include", "#include <hal/sim/sim_internal.h>\n#include")
    c.want("the same between angles",
           r'hal/memory\.c:\d+: "hal/sim/sim_internal\.h" is not a door of hal/')
    c.change("runtime/compiler/lower/fft.c", "^#include",
             '#include "runtime/compiler/back/emit.h"\n#include')
    c.want("a header of emission in lowering",
           r'lower/fft\.c:\d+: "runtime/compiler/back/emit\.h" is not a door')
    lines = "\n".join(f"\tn += {i};" for i in range(lint.MAX_FUNCTION))
    c.compile("hal/base/long.c", f"/* {LICENCE} */\n"
              f"int hal_long(int n);\nint hal_long(int n)\n{{\n{lines}\n\treturn n;\n}}\n")
    c.want("a long function", r"hal/base/long\.c:4: a function of \d+ lines")
    c.append("hal/heap.h", "// a comment\n/* " + "TO" + "DO: more */\n/* wide" +
             " wide" * 20 + " */\n/* white */ \n")
    c.want("a comment of C++", r"hal/heap\.h:\d+: // comment")
    c.want("unfinished work", r"hal/heap\.h:\d+: unfinished work")
    c.want("a wide line", r"hal/heap\.h:\d+: \d+ columns")
    c.want("white space at a line's end", r"hal/heap\.h:\d+: trailing white space")
    c.change("hal/copy.c", r"^/\* SPDX.*?\*/\n", "")
    c.want("a file without a licence", r"hal/copy\.c:1: no SPDX line")
    c.append("hal/bus.h", "\n" * lint.MAX_LINES[".h"])
    c.want("a long file", r"hal/bus\.h:\d+: \d+ lines, at most")
    for i in range(lint.MAX_FILES + 1):
        c.write(f"udev/f{i}.py", f"# {LICENCE}\n")
    c.want("a crowded folder", r"udev:0: 31 sources in one folder")
    bare = re.sub(r"/\*.*?\*/", "", (c.top / "runtime/compiler/tc.h").read_text(), flags=re.S)
    c.write("runtime/compiler/tc.h", f"/* {LICENCE} */" + "\n".join(
        line.rstrip() for line in bare.split("\n")))
    c.want("a contract without comments", r"tc\.h:1: 1 lines of comment for \d+ of code")


def plant_calls(c):
    c.compile("hal/hw/a.c", CALL.format("hw_a", "hw_b"))
    c.compile("hal/hw/b.c", CALL.format("hw_b", "hw_a"))
    c.want("two files that call each other",
           r"hal/hw:0: 2 call each other in a ring: hal/hw/a\.c \(hw_b\) -> hal/hw/b\.c")
    c.compile("runtime/compiler/ir/up.c", CALL.format("tc_up", "tc_compile"))
    c.want("two rooms that call each other",
           r"runtime/compiler/:0: \d+ call each other in a ring: runtime/compiler/ \(\w+\) -> "
           r"runtime/compiler/ir/ \(tc_compile\)")
    c.want("a call of a higher room",
           r"ir/up\.c:0: needs tc_compile of runtime/compiler/compile\.c, which no door")
    c.compile("runtime/compiler/eval/past.c", CALL.format("tc_past", "sim_create"))
    c.want("a call past a door",
           r"eval/past\.c:0: needs sim_create of hal/sim/sim\.c, which no door")
    c.compile("hal/base/alone.c", CALL.format("hal_alone", "err_name") +
              "int err_alone(void);\nint err_alone(void)\n{\n\treturn hal_alone();\n}\n")
    c.append("hal/heap.h", "int hal_alone(void);\nint err_alone(void);\n")
    c.want("a function that nobody else calls", r"hal/base/alone\.c:0: err_alone is declared in")
    c.compile("hal/base/new.c", CALL.format("hal_new", "hal_other"), with_object=False)
    c.want("a source that was not built", r"hal/base/new\.c:0: has no object")
    c.append("tests/lint_calls.py", '\nKNOWN.add("hal/transport")\n')
    c.want("a ring that is gone", r"hal/transport:0: the ring is gone")
    c.append("kernel-uapi/driver/tessera_limits.c", "\nint tessera_up(struct tessera_device *tdev)"
             "\n{\n\treturn tessera_settle(tdev);\n}\n")
    c.append("kernel-uapi/driver/tessera_state.c", "\nint tessera_down(struct tessera_device *t)"
             "\n{\n\treturn tessera_up(t);\n}\n")
    c.want("a ring of the driver, which is not built here",
           r"kernel-uapi/driver:0: 2 call each other in a ring: .*tessera_limits\.c")
    c.append("tests/fuzz_ops/program.c", "\nint fuzz_up(void)\n{\n\treturn fuzz_down();\n}\n")
    c.append("tests/fuzz_ops/fact.c", "\nint fuzz_down(void)\n{\n\treturn fuzz_up();\n}\n")
    c.want("a ring among tests", r"tests/fuzz_ops:0: \d+ call each other in a ring")


def walk_of(*files, **more):
    """What check_walk says of a README that names `files`. a calls b and all x, d calls a, and
    c fills the table through which b calls on."""
    calls = lint_calls.Calls()
    calls.edges["a.c"]["b.c"].add("b_do")
    calls.edges["d.c"]["a.c"].add("a_do")
    texts = {f"{n}.c": "" for n in "abcd"} | {f"x{i}.c": "" for i in range(20)}
    texts["b.c"] = "void b_do(struct t *t)\n{\n\tt->ops->go(t);\n}\n"
    texts["c.c"] = "static const struct ops c_ops = {\n\t.go = c_go,\n};\n"
    for i in range(20):
        calls.edges["a.c"][f"x{i}.c"].add("x_do")
    headers = {"t.h": "struct ops {\n\tvoid (*go)(struct t *t); /* (*stop)( */\n};\n"}
    readme = f"## {lint_calls.WALK}\n" + "".join(f"`{f}`\n" for f in files) + "\n## Next\n`z.c`\n"
    return [text for _, _, text in lint_calls.check_walk(calls, readme, texts | more, headers)]


def check_walks():
    """The walk's check by itself, on a tree of a few files."""
    many = [f"x{i}.c" for i in range(lint_calls.MAX_WALK - 1)]
    stop = {"b.c": "void b_do(struct t *t)\n{\n\tt->ops->stop(t);\n}\n"}
    cases = [
        ("a good walk", walk_of("a.c", "b.c", "c.c"), None),
        ("the longest walk", walk_of("a.c", *many), None),
        ("one file more", walk_of("a.c", *many, "b.c"), "passes 13 files, at most 12"),
        ("a pattern is one step", walk_of("a.c", "x*.c"), None),
        ("a step that nobody calls", walk_of("a.c", "b.c", "d.c"), "calls d.c"),
        ("a file that is not there", walk_of("a.c", "gone.c"), "calls gone.c"),
        ("a call upwards", walk_of("b.c", "a.c"), "a.c calls b.c, which stands before it (b_do)"),
        ("a slot that is not called", walk_of("a.c", "b.c", "c.c", **stop), "calls c.c"),
        ("no walk", walk_of(), "no section"),
    ]
    return [f"{what}: {said}" for what, said, part in cases
            if (part is None and said) or (part and not any(part in text for text in said))]


def plant_walk(c):
    """A file that the walk does not pass."""
    text = (c.top / "README.md").read_text()
    last = lint_calls.read_walk(text, lint.tracked())[-1][1]
    c.write("README.md", text.replace(f"`{last}`", f"`{last}`, `tools/xla-smi/main.c`", 1))
    if len(lint_calls.read_walk(text, lint.tracked())) == lint_calls.MAX_WALK:
        c.want("a walk that is too long", r"README\.md:\d+: a launch passes 13 files")
    c.want("a step that nobody calls",
           r"README\.md:\d+: none of the files before it calls tools/xla-smi/main\.c")


def plant_documents(c):
    c.append("README.md", "\n`hal/nowhere.c`, `nowhere.py` and [nothing](hal/NOTHING.md)\n")
    c.append("tests/conformance/checks.def", "CHECK(memory, another, 0, 0)\n")
    c.want("a number that is old", r"tests/README\.md:\d+: counts \d+ where tests/conformance/")
    c.want("one of a part", r"PORTING\.md:\d+: counts \d+ where tests/conformance/checks\.def")
    c.want("a file that a README names", r"README\.md:\d+: `hal/nowhere\.c` is not there")
    c.want("the same without its folder", r"README\.md:\d+: `nowhere\.py` is not there")
    c.want("a link", r"README\.md:\d+: the link hal/NOTHING\.md leads nowhere")
    c.change("README.md", "^(?=\\| `TESSERA_LOG`)", "| `TESSERA_NOTHING` | nothing |\n")
    c.want("a variable that nothing reads", r"README\.md:0: nothing reads TESSERA_NOTHING")
    c.append("hal/base/log.c", 'void f(void); void f(void) { getenv("TESSERA_SECRET"); }\n')
    c.want("a variable that nobody tells of", r"log\.c:\d+: README\.md does not say what TESSERA_S")
    c.append("tests/run.sh", "echo ${TESSERA_HIDDEN-}\n")
    c.want("one of the tests'", r"run\.sh:\d+: tests/README\.md does not say what TESSERA_HID")
    c.append("hal/heap.c", "/* As heap_nowhere.c does. */\n")
    c.want("a file that a comment names", r"hal/heap\.c:\d+: the comment names heap_nowhere\.c")
    c.append("tests/mutants/runtime.txt", "%%\nfile: hal/heap.c\nsuites: hal_map_test\n"
             "why: old\n---\nwhat is not in it\n+++\nnew\n%%\nfile: hal/nowhere.c\n"
             "suites: hal_map_test\nwhy: file\n---\nold\n+++\nnew\n%%\n")
    c.want("a mutant of a text that is gone", r"runtime\.txt:0: .*old text is there 0 times")
    c.want("a mutant of a file that is gone", r"runtime\.txt:0: .*no such file")
    for suite in ("heaps_test", "jax:test_heaps.py -k all"):
        c.append("tests/mutants/peers.txt", f"%%\nfile: hal/heap.c\nsuites: {suite}\n"
                 "why: suite\n---\nSPDX-License-Identifier\n+++\nSPDX-License\n%%\n")
    c.want("a mutant for a suite that is gone", r"peers\.txt:0: .*no suite is named heaps_test")
    c.want("a mutant for a test of JAX that is gone", r"peers\.txt:0: .*no tests/jax/test_heaps")
    c.append("tests/mutants/sim.txt", "%%\nfile: hal/heap.c\n%%\n")
    c.want("a mutant that lacks its text", r"sim\.txt:0: .*a block needs file, suites, why")
    c.append("tests/mutants/linalg.txt", "%%\nfile: hal/heap.c\nsuites: hal_map_test\n"
             "why: one\n---\nold\n+++\nnew\nfile: hal/heap.c\nsuites: hal_map_test\n"
             "why: two\n---\nold\n+++\nnew\n%%\n")
    c.want("two mutants in one", r"linalg\.txt:0: .*a line %% is missing within")


def plant_tables(c):
    """What docs.py says of one table that is stale."""
    status, said = c.run("docs.py", "--check")
    if status:
        sys.exit(f"lint_test: the tables of the tree are stale:\n{said}")
    c.change("hal/hw/DEVICE.md", r"(?<=<!-- generated: regs -->\n)\|", "| of before |")
    status, said = c.run("docs.py", "--check")
    return [] if status and "DEVICE.md" in said else [f"a stale table: exit {status}, {said!r}"]


def judge(c, status, said):
    missed = [] if status == 1 else [f"lint exits {status}"]
    lines = said.splitlines()
    for what, pattern in c.wanted:
        if not any(re.search(pattern, line) for line in lines):
            missed.append(f"not found: {what}, /{pattern}/")
    for line in lines:
        if not any(re.search(pattern, line) for _, pattern in c.wanted):
            missed.append(f"of no fault that was planted: {line}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tessera-lint-") as folder:
        c = Copy(pathlib.Path(folder), args.build)
        status, said = c.run("lint.py", "--build", "build")
        if status:
            sys.exit(f"lint_test: the copy of the tree is not clean:\n{said}")
        missed = check_walks() + plant_tables(c)
        for plant in (plant_sources, plant_calls, plant_walk, plant_documents):
            plant(c)
        missed += judge(c, *c.run("lint.py", "--build", "build"))
        if missed:
            sys.exit("lint_test: " + "\nlint_test: ".join(missed))
        print(f"lint_test: {len(c.wanted) + 1} faults found")


if __name__ == "__main__":
    main()
