# SPDX-License-Identifier: Apache-2.0
"""The programs that fuzz_ops found once, three ways: device, evaluator, CPU backend."""

import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted((TREE / "tests/data/fuzz_ops").glob("*.ir"))


def test_found_programs_are_the_same_three_ways():
    tool = TREE / "build/opt/fuzz_ops/fuzz_ops"
    call = [tool, "--jax", "100", "--python", sys.executable, "--replay", *PROGRAMS]
    run = subprocess.run(call, cwd=TREE, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
