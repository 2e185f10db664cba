# SPDX-License-Identifier: Apache-2.0
"""A process for each rank, with chips of one server: by torchrun and by hand (processes.py), and
how ranks of xmp.spawn end. What these compute is in test_replicas.py."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
import torch

from conftest import served
from worker import Failed, Worker

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "processes.py")
SECONDS = 500


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def environ(**more):
    return {**os.environ, "PJRT_DEVICE": "TESSERA", "TESSERA_CACHE": "off",
            "XLA_COORDINATOR_PORT": str(free_port()), **more}


def said(text):
    """The lines of all ranks, in their order."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda facts: facts.get("rank", facts.get("process")))


def torchrun(n, what, devices):
    p = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n),
                        "--master-port", str(free_port()), SCRIPT, what],
                       env=environ(TESSERA_DEVICES=devices), capture_output=True, text=True,
                       timeout=SECONDS, check=False)
    return p.returncode, said(p.stdout), p.stderr


@pytest.fixture(scope="module")
def chips():
    with served(4) as devices:
        yield devices


def some(devices, n):
    return ",".join(devices.split(",")[:n])


def test_ranks_of_torchrun_have_a_chip_each(chips):
    code, facts, wrote = torchrun(2, "ranks", some(chips, 2))
    assert code == 0 and len(facts) == 2, wrote[-3000:]
    for rank, f in enumerate(facts):
        assert (f["rank"], f["n"], f["ordinal"], f["processes"], f["own"]) == (rank, 2, rank, 2, 1)
        assert f["sum"] == [10, 12, 14, 16]
        assert f["parts"] == [[0, 1, 2, 3], [10, 11, 12, 13]]
        # Mean gradients of 0 and 1 for the weight, 1 for the bias; rank 0's weights of 1.
        assert torch.tensor(f["weight"]).allclose(torch.full((2, 3), 1 - 0.5 * 0.5))
        assert torch.tensor(f["bias"]).allclose(torch.full((2,), 0.5))


def test_a_mesh_in_spmd_mode_spans_processes(chips):
    code, facts, wrote = torchrun(2, "spmd", chips)
    assert code == 0 and len(facts) == 2, wrote[-3000:]
    x = torch.arange(24.0).reshape(8, 3)
    for process, f in enumerate(facts):
        assert (f["process"], f["own"], f["n"]) == (process, 2, 4)
        assert f["y"] == (x @ x.T).sum(1).tolist()
        assert f["x"] == x.sum(0).tolist()


def test_one_that_is_killed_fails_the_others_by_name(chips):
    n, port = 3, str(free_port())
    env = environ(TESSERA_DEVICES=some(chips, n), WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n),
                  MASTER_ADDR="localhost", MASTER_PORT=port, TORCHELASTIC_RUN_ID="by hand")
    every = [subprocess.Popen([sys.executable, SCRIPT, "killed"], text=True,
                              env={**env, "RANK": str(r), "LOCAL_RANK": str(r)},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) for r in range(n)]
    try:
        assert every[2].wait(SECONDS) == -signal.SIGKILL, every[2].stderr.read()[-3000:]
        for rank in (1, 0):
            out, wrote = every[rank].communicate(timeout=SECONDS)
            assert every[rank].returncode == 0, wrote[-3000:]
            failed, alone = said(out)
            # It hears of the dead one, or of one that did before.
            assert re.search(f"process [{1 - rank}2]", failed["error"] or ""), failed
            assert alone["alone"] == 10
    finally:
        for p in every:
            p.kill()


@pytest.mark.parametrize("name, late, says", [
    ("raises", 1, "process 1 .pid [0-9]+. takes no part in .*ValueError: of rank 1"),
    ("returns_early", 2, "process 2 .pid [0-9]+. takes no part in .*its function has returned"),
    ("differs", None, "all processes have to launch the same programs in the same order|"
                      "as different programs")])
def test_a_rank_that_does_not_come_is_named(chips, name, late, says):
    w = Worker("TESSERA", TESSERA_DEVICES=chips, TESSERA_PROCESSES="4")
    try:
        words = w.ask("replicas", "ended_apart", name)
    finally:
        w.stop()
    assert all(words[r] for r in range(4) if r != late), words
    assert any(re.search(says, w) for w in words), words


def test_processes_that_can_not_share_devices_are_refused(chips):
    for devices, says in ((some(chips, 3), "2 processes were to share 3 devices"),
                          ("sim:devices=2", "can't share models of one process")):
        w = Worker("TESSERA", TESSERA_DEVICES=devices, TESSERA_PROCESSES="2")
        with pytest.raises(Failed, match=says):
            w.ask("replicas", "spawned", ["places"])
        w.stop()


ALONE_HERE = """
from torch_xla._internal import pjrt
pjrt.initialize_singleprocess()
"""


def test_hosts_with_a_process_each_are_refused():
    env = os.environ | {"PJRT_DEVICE": "TESSERA", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1",
                        "RANK": "1", "LOCAL_RANK": "0"}
    r = subprocess.run([sys.executable, "-c", ALONE_HERE], env=env, capture_output=True,
                       text=True, timeout=300, check=False)
    assert r.returncode == 1
    assert "2 processes (WORLD_SIZE), one on each host" in r.stderr, r.stderr
