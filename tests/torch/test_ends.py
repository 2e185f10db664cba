# SPDX-License-Identifier: Apache-2.0
"""However a program ends, its exit code is right; nothing hangs, aborts or stays behind."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))

# Way, exit code, what standard output or error holds. `often` ways run --exits times.
OFTEN = [("in_flight", 0, ""), ("raises", 1, "ValueError: with work in flight"),
         ("leaves", 3, ""), ("exits", 4, ""), ("fork", 0, "child done 0"),
         ("spawn", 0, "child done 1")]
ONCE = [("thread", 0, ""), ("forked_after", 0, ""), ("spawn_fails", 1, "child's own words"),
        ("spawn_killed", 1, "SIGKILL"), ("xmp_one", 0, "child done 0"),
        ("xmp_spawn", 0, "child done 0"), ("xmp_fork", 0, "child done 0"),
        ("xmp_fails", 1, "child's own words")]


def end(way, code, text, **environ):
    # A busy machine may take minutes to import torch in each process of a way.
    env = {**os.environ, "PJRT_DEVICE": "TESSERA", **environ}
    r = subprocess.run([sys.executable, "-W", "ignore", os.path.join(HERE, "ends.py"), way],
                       env=env, capture_output=True, text=True, timeout=900)
    said = r.stdout + r.stderr
    assert r.returncode == code, said
    assert text in said
    return said


@pytest.mark.parametrize("way, code, text", ONCE)
def test_a_program_ends(way, code, text):
    said = end(way, code, text)
    for line in said.splitlines():
        if line.startswith("pids"):
            for pid in line.split()[1:]:
                assert not os.path.exists(f"/proc/{pid}"), f"{pid} stayed behind"


@pytest.mark.parametrize("way, code, text", OFTEN)
def test_a_program_ends_the_same_each_time(way, code, text, request):
    for _ in range(request.config.getoption("--exits")):
        end(way, code, text)


def test_several_devices_have_a_thread_each():
    said = end("xmp_many", 0, "child done 0", TESSERA_DEVICES="sim:devices=2")
    assert "child done 1" in said
