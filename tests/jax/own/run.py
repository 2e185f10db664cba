# SPDX-License-Identifier: Apache-2.0
"""Runs a part of JAX's own tests on the device and judges what fails.

    run.py FOLDER [--python VENV/bin/python] [--jobs 2] [--only nn_test,lax_test]

FOLDER holds tests/*_test.py, pyproject.toml and conftest.py. Each file runs in a
process of its own; when that dies, the test it died in is named and the rest of
the file goes on in a fresh one. What fails is run again on JAX's CPU backend, and
counts only if it passes there. expected.txt beside this file lists the failures
that are known, under their reasons: a failure that is not listed fails the run,
and so does a listed one that passes, which asks to be removed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.txt"
RESTARTS = 40           # deaths of one file, after which the rest of it is given up


def expected_failures(path):
    """{test: reason}: lines of '# reason' head the tests below them."""
    known, reason = {}, None
    for n, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            if reason is None:
                sys.exit(f"{path}:{n}: a test without a reason above it")
            if line in known:
                sys.exit(f"{path}:{n}: {line} is listed twice")
            known[line] = reason
    return known


class Runner:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, pathlib.Path(scratch)

    def environment(self, platforms, record, **lists):
        env = dict(os.environ, JAX_PLATFORMS=platforms, RECORD=str(record),
                   JAX_NUM_GENERATED_CASES="1", JAX_SKIP_SLOW_TESTS="1",
                   PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(HERE),
                   HYPOTHESIS_STORAGE_DIRECTORY=str(self.scratch / "hypothesis"),
                   **lists)
        env.setdefault("TESSERA_CACHE", "off")
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
        bad = [t for t, (o, _) in results.items() if o in ("failed", "died")]
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


def verdict(results, known, files):
    """Prints what is new and what is listed for nothing; returns whether to fail."""
    bad = {t: r for t, r in results.items() if r[0] in ("failed", "died")}
    new = sorted(set(bad) - set(known))
    ran = {t for t in known if pathlib.Path(t.split("::")[0]).stem in files}
    stale = sorted(t for t in ran if t not in bad)
    for t in new:
        print(f"NEW {bad[t][0]}: {t}\n    {' '.join(bad[t][1].split())[:300]}")
    for t in stale:
        print(f"REMOVE from {EXPECTED.name}, it is "
              f"{results.get(t, ('no longer a test', ''))[0]}: {t}")
    for reason, n in collections.Counter(known[t] for t in ran if t in bad).most_common():
        print(f"expected {n:4d}: {reason}")
    count = collections.Counter(o for o, _ in results.values())
    print(f"JAX's own tests: {count['passed']} passed, {len(bad)} failed "
          f"({count['died']} of them by a death), of which {len(new)} new; "
          f"{count['skipped']} skipped, "
          f"{sum(n for o, n in count.items() if o.startswith('cpu'))} "
          f"that the CPU backend does not pass; {len(stale)} listed for nothing")
    return bool(new or stale)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=int, default=120, help="of one test, in seconds")
    p.add_argument("--only", default="", help="files without .py, separated by commas")
    p.add_argument("--keep", type=pathlib.Path, help="where records and logs stay")
    args = p.parse_args()
    args.python = os.path.abspath(args.python)
    files = sorted(f.stem for f in (args.folder / "tests").glob("*_test.py"))
    if not files:
        sys.exit(f"no tests/*_test.py in {args.folder}: JAX_TESTS names the folder of JAX's "
                 "own tests, which are not part of this tree")
    if args.only:
        unknown = set(args.only.split(",")) - set(files)
        if unknown:
            sys.exit(f"no such files in {args.folder}/tests: {', '.join(sorted(unknown))}")
        files = args.only.split(",")
    known = expected_failures(EXPECTED)
    with tempfile.TemporaryDirectory() as scratch:
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
        runner = Runner(args, args.keep or scratch)
        results = {}
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for r in pool.map(runner.judge, files):
                results.update(r)
    sys.exit(verdict(results, known, set(files)))


if __name__ == "__main__":
    main()
