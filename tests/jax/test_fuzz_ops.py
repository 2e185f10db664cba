# SPDX-License-Identifier: Apache-2.0
"""The programs that fuzz_ops found once, three ways: device, evaluator, CPU backend."""

import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).parents[2]
TOOL = TREE / "build/opt/fuzz_ops/fuzz_ops"
PROGRAMS = sorted((TREE / "tests/data/fuzz_ops").glob("*.ir"))


def test_found_programs_are_the_same_three_ways():
    call = [TOOL, "--jax", "100", "--python", sys.executable, "--replay", *PROGRAMS]
    run = subprocess.run(call, cwd=TREE, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_runs_some_programs_or_says_that_it_ran_none(tmp_path):
    def run(*options):
        return subprocess.run([TOOL, "--seed", "3", "--jobs", "2", "--out", tmp_path, *options],
                              capture_output=True, text=True, timeout=300, check=False)
    ended = tmp_path / "ended"
    ended.touch()
    none = run("--seconds", "60", "--until", ended)
    assert none.returncode == 2 and "no program was run: it was told to end" in none.stdout
    none = run("--seconds", "0")
    assert none.returncode == 2 and "no program was run: there was no time" in none.stdout
    some = run("--seconds", "60", "--until", ended, "--least", "20")
    assert some.returncode == 0
    assert re.search(r"^seed 0x3: 2[01] programs in ", some.stdout, re.M), some.stdout


def test_says_what_is_wrong_with_an_option():
    for options, said in [(["--least", "many", "--until", "x"], '"many" is no number'),
                          (["--seconds", "-5"], '"-5" is no number'),
                          (["--programs", "0"], '"0" is no number from 1'),
                          (["--least", "3"], "--least goes with --until")]:
        run = subprocess.run([TOOL, "--seconds", "5", *options], capture_output=True, text=True,
                             timeout=300, check=False)
        assert run.returncode == 2 and said in run.stdout, (options, run.stdout)


def test_ends_when_a_job_dies_between_programs(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ncat >/dev/null\nkill -SEGV $PPID\n")
    python.chmod(0o755)
    run = subprocess.run([TOOL, "--seconds", "0", "--jax", "1", "--python", python],
                         capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2
    assert "a job got signal 11" in run.stdout and "while it ran no program" in run.stdout
