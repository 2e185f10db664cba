# SPDX-License-Identifier: Apache-2.0
"""How run.py judges columns that were run elsewhere: columns_test.py PROGRAM

Makes columns of the list that PROGRAM prints, good and broken ones; run.py must take the
first and say of each of the others what is wrong with it.
"""

import pathlib
import subprocess
import sys
import tempfile

RUN = pathlib.Path(__file__).resolve().parent / "run.py"


def judge(program, columns):
    """run.py's exit status and words for {NAME: text}, beside no column of its own."""
    with tempfile.TemporaryDirectory(prefix="tessera-columns-") as folder:
        words = []
        for name, text in columns.items():
            path = pathlib.Path(folder) / name
            path.write_text(text)
            words += ["--results", f"{name}={path}"]
        done = subprocess.run([sys.executable, str(RUN), program, "--ways", "none", *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    program = sys.argv[1]
    listing = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    names = [line.split("\t")[:2] for line in listing.stdout.splitlines()]
    lines = [f"{area}\t{name}\tok\t{'-' if i else '0123'}\t1\t\n"
             for i, (area, name) in enumerate(names)]
    good = "".join(lines) + "exit 0\nsome words\n"
    first = names[0][1]
    cases = {
        "two that agree": (good, 0, "all agree"),
        "a check that failed": (good.replace("\tok\t", "\tFAIL\t", 1).replace(
            "exit 0", "exit 1"), 1, f"b: FAIL {first}"),
        "other bytes": (good.replace("0123", "4567"), 1, f"the bytes differ: {first}"),
        "an early end": ("".join(lines[:3]) + "exit 1\nno device any more\n", 1,
                         "ended early: no device any more"),
        "a signal": ("".join(lines[:3]) + "exit 139\n", 1, "exit status 139"),
        "no end": ("".join(lines[:3]), 1, "exit status none"),
        "a check left out": ("".join(lines[1:]) + "exit 0\n", 1, f"not run: {first}"),
        "not applicable": (good.replace("\tok\t0123\t1\t", "\tn.a.\t-\t1\tno such thing", 1), 0,
                           f"b: n.a. {first}: no such thing"),
        "a strange line": ("what is this?\n" + good, 1, "not a result: what is this?"),
        "nothing": ("", 1, "exit status none"),
    }
    failed = 0
    for what, (text, status, words) in cases.items():
        got, said = judge(program, {"a": good, "b": text})
        if got != status or words not in said:
            failed += 1
            print(f"columns_test: {what}: status {got}, wanted {status} and \"{words}\" in:\n"
                  f"{said[-1500:]}")
    print(f"columns_test: {len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
