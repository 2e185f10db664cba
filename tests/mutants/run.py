#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts one small bug after the other into a copy of the tree and asks the suites.

    python3 tests/mutants/run.py [--jobs 2] [--only REGEX] [--least 95] [LIST...]

A list (tests/mutants/*.txt) holds blocks that end with a line `%%`:

    file: hal/heap.c
    suites: hal_map_test, rt_*, conformance, jax:test_behaviour.py -k donation
    why: the last byte of a block is given out twice
    survives: only where the bug can't be seen; says why, and counts as a survivor
    ---
    the exact text as it stands, once in the file
    +++
    the text with the bug; nothing, if the text goes

A suite is a program of tests/unit (with * for any), `conformance`, `udev`, `smi`, `smi_served`
(what an operator does to served chips), `bringup` (tessera-bringup on a model of four chips;
`bringup:links+queues` for these steps alone), or `jax:` and arguments of pytest in tests/jax. Each
suite has to pass before any bug is in. A bug is killed if a suite fails, dies or does not end; one
that does not compile is a mistake of the list. Prints the survivors and the score; exits 1 if it is
below --least per cent, and 2 if the list or the tree is at fault.
"""

import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
LISTS = TOP / "tests/mutants"
# Other suites than programs of tests/unit.
OTHER_SUITES = ("conformance", "udev", "smi", "smi_served", "bringup")
VERSION = re.search('TC_VERSION "(.*)"', (TOP / "runtime/compiler/tc.h").read_text())[1]
SERVED = ("build/opt/xla-smi", f"build/opt/libtessera.so.{VERSION}", "build/opt/tessera-sim")


class Mutant:
    def __init__(self, origin, block):
        head, _, rest = block.partition("\n---\n")
        old, sep, new = rest.partition("\n+++")
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", head, re.M))
        if not sep or not {"file", "suites", "why"} <= fields.keys():
            raise ValueError(f"{origin}: a block needs file, suites, why, --- and +++:\n{block}")
        if re.search(r"^(suites: .*|---|\+\+\+)$", new.strip("\n"), re.M):
            raise ValueError(f"{origin}: a line %% is missing within:\n{block}")
        self.origin = origin
        self.file = fields["file"]
        self.suites = [s.strip() for s in fields["suites"].split(",") if s.strip()]
        self.why = fields["why"]
        self.survives = fields.get("survives")
        self.old, self.new = old.strip("\n"), new.strip("\n")

    def __str__(self):
        return f"{self.file}: {self.why}"

    def check(self):
        text = (TOP / self.file).read_text()
        if text.count(self.old) != 1:
            return f"{self.origin}: {self}: the old text is there {text.count(self.old)} times"
        if self.old == self.new:
            return f"{self.origin}: {self}: nothing changes"
        for suite in self.suites:
            if suite.startswith("jax:"):
                first = suite[4:].split()[0]
                if first.endswith(".py") and not (TOP / "tests/jax" / first).is_file():
                    return f"{self.origin}: {self}: there is no tests/jax/{first}"
            elif suite not in OTHER_SUITES and not suite.startswith("bringup:") and \
                    not any((TOP / "tests/unit").rglob(suite + ".c")):
                return f"{self.origin}: {self}: no suite is named {suite}"
        return None


def read_list(path):
    blocks = [b.strip("\n") for b in re.split(r"^%%$", path.read_text(), flags=re.M)]
    return [Mutant(path.name, b) for b in blocks if b.strip()]


def tracked():
    git = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=False)
    if git.returncode == 0:
        return [n for n in git.stdout.decode().split("\0") if n and (TOP / n).is_file()]
    return [str(p.relative_to(TOP)) for p in TOP.rglob("*")
            if p.is_file() and p.relative_to(TOP).parts[0] not in ("build", ".git")]


class Copy:
    """A tree of its own with a build of its own."""

    def __init__(self, folder, python):
        self.top = folder
        self.python = python
        for name in tracked():
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.exists() or to.read_bytes() != (TOP / name).read_bytes():
                shutil.copy(TOP / name, to)
        for stale in [p for p in folder.rglob("*.c") if "build" not in
                      p.relative_to(folder).parts and not (TOP / p.relative_to(folder)).exists()]:
            stale.unlink()

    def run(self, command, seconds, **env):
        """Exit code and output; None as the code if it did not end."""
        with subprocess.Popen(command, cwd=self.top, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              start_new_session=True, env={**os.environ, **env}) as p:
            try:
                out, _ = p.communicate(timeout=seconds)
                return p.returncode, out.decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                out, _ = p.communicate()
                return None, out.decode(errors="replace")

    def programs(self, suite):
        have = [p.stem for p in (self.top / "tests/unit").rglob("*_test.c")]
        return [n for n in have if fnmatch.fnmatch(n, suite)]

    def needs(self, suite):
        """What make has to build for it."""
        if suite.startswith("jax:"):
            return ["build/opt/pjrt_plugin_tessera.so"]
        if suite == "conformance":
            return ["build/opt/conformance/conformance", "build/opt/tessera-sim"]
        if suite == "smi":
            return ["build/opt/xla-smi"]
        if suite == "smi_served":
            return list(SERVED)
        if suite.startswith("bringup:") or suite == "bringup":
            return ["build/opt/tessera-bringup"]
        if suite == "udev":
            return []
        names = self.programs(suite)
        if not names:
            raise ValueError(f"no suite is named {suite}")
        return ["all"] + [f"build/opt/tests/{n}" for n in names]

    def build(self, suites):
        goals = dict.fromkeys(g for s in suites for g in self.needs(s))
        return self.run(["make", "-s", "MODE=opt", "BUILD=build", *goals], 1200)

    def ask(self, suite, seconds):
        env = {"TESSERA_BUILD": "build/opt", "TESSERA_CACHE": "off"}
        if suite.startswith("jax:"):
            env["TESSERA_PLUGIN"] = str(self.top / "build/opt/pjrt_plugin_tessera.so")
            first, *rest = suite[4:].split(" ", 1)
            words = [f"tests/jax/{first}"] if first.endswith(".py") else ["tests/jax"]
            k = (rest[0] if words[0] != "tests/jax" and rest else
                 suite[4:] if words[0] == "tests/jax" else "").removeprefix("-k ").strip()
            return self.run([self.python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                             *words, *(["-k", k] if k else [])], seconds, **env)
        if suite == "conformance":
            return self.run([sys.executable, "tests/conformance/run.py",
                             "build/opt/conformance/conformance", "--server",
                             "build/opt/tessera-sim", "--quick", "--brief"], seconds, **env)
        if suite == "smi":
            return self.run(["sh", "-c", "for t in smi smi_doctor; do \"$0\" tests/${t}_test.py "
                             "build/opt/xla-smi || exit 1; done", sys.executable], seconds, **env)
        if suite == "smi_served":
            return self.run([sys.executable, "tests/smi_served_test.py", *SERVED], seconds, **env)
        if suite == "udev":
            return self.run(["sh", "tests/udev.sh"], seconds, **env)
        if suite.startswith("bringup:") or suite == "bringup":
            steps = suite.partition(":")[2].replace("+", ",")
            return self.run(["build/opt/tessera-bringup",
                             *(["--only", steps] if steps else ["--level", "2"])], seconds,
                            TESSERA_DEVICES="sim:devices=4,hbm=64M", **env)
        return self.run(["sh", "tests/run.sh"] +
                        [f"build/opt/tests/{n}" for n in self.programs(suite)], seconds, **env)


def try_one(copies, times, m):
    """'killed by ...', 'SURVIVED' or a mistake."""
    copy = copies.get()
    path = copy.top / m.file
    text = path.read_text()
    try:
        path.write_text(text.replace(m.old, m.new))
        code, out = copy.build(m.suites)
        if code != 0:
            return m, "mistake", f"does not compile:\n{out[-2000:]}"
        for suite in m.suites:
            code, out = copy.ask(suite, times[suite] * 8 + 60)
            if code is None:
                return m, "killed", f"{suite} (did not end)"
            if code != 0:
                return m, "killed", suite
        return m, "survived", ", ".join(m.suites)
    finally:
        path.write_text(text)
        copies.put(copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="a pattern for file, text or origin")
    parser.add_argument("--least", type=float, default=95)
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build/mutants")
    parser.add_argument("--python", default=sys.executable, help="one that has jax and pytest")
    parser.add_argument("lists", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    try:
        mutants = [m for path in args.lists or sorted(LISTS.glob("*.txt")) for m in read_list(path)
                   if re.search(args.only, f"{m.origin} {m}")]
    except ValueError as e:
        print(e)
        return 2
    wrong = [w for w in (m.check() for m in mutants) if w]
    if wrong or not mutants:
        print("\n".join(wrong) or "no mutant is chosen")
        return 2

    start = time.monotonic()
    copies = queue.Queue()
    made = [Copy(args.folder.resolve() / str(i), args.python) for i in range(args.jobs)]
    suites = sorted({s for m in mutants for s in m.suites})
    times = {}
    try:
        for copy in made:
            code, out = copy.build(suites)
            if code != 0:
                print(f"the tree does not build:\n{out[-3000:]}")
                return 2
            copies.put(copy)
    except ValueError as e:
        print(e)
        return 2
    for suite in suites:
        before = time.monotonic()
        code, out = made[0].ask(suite, 1200)
        times[suite] = time.monotonic() - before
        if code != 0:
            print(f"{suite} fails without any bug:\n{out[-3000:]}")
            return 2
    print(f"mutants: {len(mutants)}, suites pass without them "
          f"({time.monotonic() - start:.0f} s)", flush=True)

    results = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        todo = [pool.submit(try_one, copies, times, m) for m in mutants]
        for done in concurrent.futures.as_completed(todo):
            m, verdict, detail = done.result()
            results.append((m, verdict, detail))
            if verdict == "killed":
                print(f"killed    {m}  [{detail}]", flush=True)
            else:
                print(f"{verdict.upper():9} {m}  [{detail}]", flush=True)
    mistakes = [r for r in results if r[1] == "mistake"]
    alive = [r for r in results if r[1] == "survived"]
    killed = len(results) - len(alive) - len(mistakes)
    score = 100 * killed / max(1, killed + len(alive))
    for m, _, detail in alive:
        print(f"survivor: {m}: {m.survives or 'no suite of ' + detail + ' noticed'}")
    print(f"mutants: {killed} of {killed + len(alive)} killed ({score:.1f} %), "
          f"{len(mistakes)} mistakes of the list, {time.monotonic() - start:.0f} s")
    return 2 if mistakes else int(score < args.least)


if __name__ == "__main__":
    sys.exit(main())
