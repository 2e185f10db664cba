# SPDX-License-Identifier: Apache-2.0
"""Runs a part of JAX's own tests on the device and judges what fails.

    run.py FOLDER [--python VENV/bin/python] [--jobs 2] [--only nn_test,lax_test]
    run.py FOLDER --devices 8

FOLDER holds tests/*_test.py, pyproject.toml and conftest.py. Each file runs in a
process of its own; when that dies, the test it died in is named and the rest of
the file goes on in a fresh one. expected.txt beside this file lists the failures
that are known, under their reasons: how many, of which tests, with which words.
What else fails is run again on JAX's CPU backend, and counts only if it passes
there. A failure that is not listed fails the run, and so do listed ones that pass:
their line asks to be corrected.

With --devices the model has so many chips, and the CPU backend so many devices; of the
files those are run that want several, or those of --only. What fails then is listed in
expected_devices.txt, for 8.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ONE, SEVERAL = HERE / "expected.txt", HERE / "expected_devices.txt"
# What a file says that has tests for several devices.
WANTS_SEVERAL = re.compile(r"request_cpu_devices|device_count\(\)|devices\(\)\[(?!0)|"
                           r"local_devices\(|len\(jax\.devices\(\)\)")
RESTARTS = 40           # deaths of one file, after which the rest of it is given up


class Known:
    """A line of expected.txt: 'COUNT PATTERN WORDS', below a line '# why': so many tests
    that match the pattern fail, with these words; or 'LEAST-MOST PATTERN WORDS', where chance
    decides."""

    def __init__(self, line, why):
        count, self.pattern, self.words = line.split(None, 2)
        least, _, most = count.partition("-")
        self.least, self.most = int(least), int(most or least)
        self.count, self.line, self.why, self.found = count, line, why, 0

    def matches(self, test, text):
        return fnmatch.fnmatchcase(test, self.pattern) and self.words in " ".join(text.split())


def expected_failures(path):
    known, why = [], None
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("# "):
            why = line[2:]
        elif line.strip():
            try:
                known.append(Known(line, why))
            except ValueError:
                sys.exit(f"{path}:{n}: not 'COUNT PATTERN WORDS'")
            if why is None:
                sys.exit(f"{path}:{n}: a line without a reason above it")
    return known


def entry(known, test, result):
    """The line that expects this failure, None."""
    if result[0] not in ("failed", "died"):
        return None
    return next((k for k in known if k.matches(test, result[1])), None)


class Runner:
    def __init__(self, args, scratch, known):
        self.args, self.scratch, self.known = args, pathlib.Path(scratch), known

    def environment(self, platforms, record, **lists):
        env = dict(os.environ, JAX_PLATFORMS=platforms, RECORD=str(record),
                   JAX_NUM_GENERATED_CASES="1", JAX_SKIP_SLOW_TESTS="1",
                   PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(HERE),
                   HYPOTHESIS_STORAGE_DIRECTORY=str(self.scratch / "hypothesis"),
                   **lists)
        env.setdefault("TESSERA_CACHE", "off")
        if self.args.devices:
            env["TESSERA_SIM"] = f"devices={self.args.devices}"
            # JAX's own option: XLA's --xla_force_host_platform_device_count by another
            # name, which files that ask for devices themselves don't object to.
            env["JAX_NUM_CPU_DEVICES"] = str(self.args.devices)
        return env

    def once(self, file, platforms, record, log, **lists):
        """One process over a file; returns its status, None when it went silent."""
        command = [self.args.python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "-p", "recorder", f"--timeout={self.args.timeout}", "--tb=short",
                   f"tests/{file}.py"]
        with open(log, "a") as out:
            p = subprocess.Popen(command, cwd=self.args.folder, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True,
                                 env=self.environment(platforms, record, **lists))
            size, quiet = -1, time.monotonic()
            while True:
                try:
                    return p.wait(1)
                except subprocess.TimeoutExpired:
                    pass
                now = record.stat().st_size if record.exists() else 0
                if now != size:
                    size, quiet = now, time.monotonic()
                elif time.monotonic() - quiet > 3 * self.args.timeout:
                    os.killpg(p.pid, signal.SIGKILL)
                    p.wait()
                    return None

    def file(self, file, platforms="tessera,cpu", only=None):
        """{test: (outcome, text)} of a file, whatever becomes of its processes."""
        tag = f"{file}.{platforms.split(',')[0]}"
        record, log = self.scratch / f"{tag}.jsonl", self.scratch / f"{tag}.log"
        record.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
        lists = {}
        if only is not None:
            chosen = self.scratch / f"{tag}.only"
            chosen.write_text("\n".join(only))
            lists["RECORD_ONLY"] = str(chosen)
        results = {}
        for _ in range(RESTARTS):
            status = self.once(file, platforms, record, log, **lists)
            running, finished = self.read(record, results)
            if finished:
                break
            if running is None:     # died before a test, or between two
                results[f"tests/{file}.py"] = ("died", died(status))
                break
            results[running] = ("died", died(status))
            skip = self.scratch / f"{tag}.skip"
            skip.write_text("\n".join(results))
            lists["RECORD_SKIP"] = str(skip)
        else:
            results[f"tests/{file}.py"] = ("died", f"{RESTARTS} times: the rest was not run")
        return results

    @staticmethod
    def read(record, results):
        running, finished = None, False
        for line in record.read_text().splitlines() if record.exists() else ():
            told = json.loads(line)
            if "start" in told:
                running = told["start"]
            elif "end" in told:
                results[told["end"]] = (told["outcome"], told["text"])
                running = None
            elif "collect" in told:
                results[told["collect"]] = ("failed", told["text"])
            elif "collect_skipped" in told:
                results[told["collect_skipped"]] = ("skipped", told["text"])
            elif "finished" in told:
                finished = True
        if running in results:
            running = None
        return running, finished

    def judge(self, file):
        """A file's results, with the failures that the CPU backend shares renamed."""
        start = time.monotonic()
        results = self.file(file)
        bad = [t for t, r in results.items()
               if r[0] in ("failed", "died") and not entry(self.known, t, r)]
        shared = 0
        if bad:
            cpu = self.file(file, "cpu", bad)
            for t in bad:
                # A file that does not load at all says nothing about its tests.
                if "::" in t and cpu.get(t, ("absent", ""))[0] != "passed":
                    results[t] = ("cpu " + cpu.get(t, ("absent", ""))[0], results[t][1])
                    shared += 1
        count = collections.Counter(o for o, _ in results.values())
        print(f"{file}: {count['passed']} passed, {count['failed']} failed, "
              f"{count['died']} died, {shared} not passing on the CPU either, "
              f"{count['skipped']} skipped ({time.monotonic() - start:.0f} s)", flush=True)
        (self.scratch / f"{file}.json").write_text(json.dumps(results, indent=1))
        return results


def died(status):
    if status is None:
        return "no test ended for three times the limit of one; killed"
    if status < 0:
        return f"the process died by {signal.Signals(-status).name}"
    return f"the process exited with {status}"


def verdict(results, expected, known, files):
    """Prints what is new and what is listed for nothing; returns whether to fail."""
    bad = {t: r for t, r in results.items() if r[0] in ("failed", "died")}
    new, stale, reasons = 0, 0, collections.Counter()
    for t in sorted(bad):
        k = entry(known, t, bad[t])
        if k:
            k.found += 1
            reasons[k.why] += 1
        else:
            new += 1
            print(f"NEW {bad[t][0]}: {t}\n    {' '.join(bad[t][1].split())[:300]}")
    for k in known:
        ran = any(fnmatch.fnmatchcase(f"tests/{f}.py", k.pattern.split("::")[0])
                  for f in files)
        if ran and not k.least <= k.found <= k.most:
            stale += 1
            print(f"CORRECT {expected.name}: {k.found} now fail, not {k.count}: {k.line}")
    for why, n in reasons.most_common():
        print(f"expected {n:4d}: {why}")
    count = collections.Counter(o for o, _ in results.values())
    print(f"JAX's own tests: {count['passed']} passed, {len(bad)} failed "
          f"({count['died']} of them by a death), of which {new} new; "
          f"{count['skipped']} skipped, "
          f"{sum(n for o, n in count.items() if o.startswith('cpu'))} "
          f"that the CPU backend does not pass; {stale} lines to correct")
    return bool(new or stale)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", help="JAX_TESTS of `make check-jax-own`")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=int, default=120, help="of one test, in seconds")
    p.add_argument("--only", default="", help="files without .py, separated by commas")
    p.add_argument("--devices", type=int, help="run the files that want several on so many")
    p.add_argument("--keep", type=pathlib.Path, help="where records and logs stay")
    args = p.parse_args()
    args.python = os.path.abspath(args.python)
    if not args.folder:
        sys.exit("JAX_TESTS is not set: it names a folder with JAX's own tests (tests/*_test.py, "
                 "conftest.py and pyproject.toml of the JAX project), not part of this tree")
    args.folder = pathlib.Path(args.folder)
    found = sorted((args.folder / "tests").glob("*_test.py"))
    files = [f.stem for f in found]
    if not files:
        sys.exit(f"no tests/*_test.py in {args.folder}: JAX_TESTS is to name a folder with "
                 "JAX's own tests, which are not part of this tree")
    if args.only:
        unknown = set(args.only.split(",")) - set(files)
        if unknown:
            sys.exit(f"no such files in {args.folder}/tests: {', '.join(sorted(unknown))}")
        files = args.only.split(",")
    elif args.devices:
        files = [f.stem for f in found if WANTS_SEVERAL.search(f.read_text())]
    expected = SEVERAL if args.devices else ONE
    known = expected_failures(expected)
    with tempfile.TemporaryDirectory() as scratch:
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
        runner = Runner(args, args.keep or scratch, known)
        results = {}
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for r in pool.map(runner.judge, files):
                results.update(r)
    sys.exit(verdict(results, expected, known, set(files)))


if __name__ == "__main__":
    main()
