# SPDX-License-Identifier: Apache-2.0
"""Several processes, joined by jax.distributed, on chips of one server: main.py is one of
them. What they compute is what one process computes that has all the chips."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("TESSERA_BUILD", HERE.parents[2] / "build/opt"))
SERVER = BUILD / "tessera-sim"
SECONDS = 300
HEARD_S = 1.0       # from an operator's command to the failure in every process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    s = subprocess.Popen([SERVER, "--devices", "8", "--hbm", "256M", "--lanes", "1",
                          "--socket-dir", folder], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    assert s.stdout.readline().startswith("serving")
    yield folder
    s.send_signal(signal.SIGTERM)
    assert s.wait(60) == 0


def start(server, what, n, chips, first=0, who=()):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return [subprocess.Popen([sys.executable, HERE / "main.py", *map(str, (
        rank, n, chips, first, port)), server, what, *map(str, who)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(n)]


def finish(processes, killed=()):
    """What each said, one list of facts a process."""
    out = []
    for rank, p in reversed(list(enumerate(processes))):    # the coordinator is the last
        said, wrote = p.communicate(timeout=SECONDS)
        if rank in killed:
            assert p.returncode == -signal.SIGKILL
        else:
            assert p.returncode == 0, wrote[-3000:]
        out.append([json.loads(line) for line in said.splitlines() if line.startswith("{")])
    return out[::-1]


@pytest.mark.parametrize("n, chips", [(2, 4), (4, 1), (2, 2)])
def test_training_has_the_bits_of_one_process(server, n, chips):
    [[alone]] = finish(start(server, "train", 1, n * chips))
    for [facts] in finish(start(server, "train", n, chips)):
        assert facts == alone
    assert alone["last"] < alone["first"]


@pytest.mark.parametrize("n, chips", [(2, 4), (2, 1)])
def test_processes_see_all_devices_and_meet(server, n, chips):
    every = range(n * chips)
    rows = [[100 * (d // chips) + 3 * (d % chips) + k for k in range(3)] for d in every]
    for rank, [devices, facts] in enumerate(finish(start(server, "tools", n, chips))):
        assert devices["ids"] == list(every)
        assert devices["process"] == [d // chips for d in every]
        assert devices["local"] == [d % chips if d // chips == rank else None for d in every]
        assert devices["own"] == list(every)[rank * chips:][:chips]
        assert (devices["index"], devices["count"]) == (rank, n)
        assert facts["total"] == sum(map(sum, rows))
        assert facts["psum"] == [[sum(column) for column in zip(*rows)]]
        assert facts["turned"] == rows[-1:] + rows[:-1]
        assert facts["gathered"] == rows
        assert facts["told"] == [0, 1, 2]
        assert facts["put"] == [0, 1, 2, 3]


def test_two_jobs_share_a_server(server):
    one, two = start(server, "train", 2, 2), start(server, "train", 2, 2, first=4)
    assert finish(one)[0] == finish(two)[1]


def test_another_order_is_an_error_in_both(server):
    said = finish(start(server, "other_order", 2, 2))
    # Who finds it says so; others may hear of a device first.
    assert all(failed["error"] and alone["alone"] == 10 for failed, alone in said)
    assert any("in the same order" in failed["error"] or "process" in failed["error"]
               for failed, _ in said), said


def test_one_that_is_killed_fails_the_other_soon(server):
    survivor, _ = finish(start(server, "alone_after_kill", 2, 2), killed=[1])
    assert "process 1" in survivor[0]["error"]
    assert survivor[0]["seconds"] < 10      # compiles and starts nothing, under load
    assert survivor[1]["alone"] == 10


def test_those_that_are_left_go_on_with_a_mesh_of_theirs(server):
    *left, _ = finish(start(server, "left_after_kill", 3, 1), killed=[2])
    n = 12 * 2
    for failed, facts in left:
        assert "process" in failed["error"]
        assert facts["sums"] == [k * n * (n - 1) / 2 for k in (1, 2, 3)], left


@pytest.fixture(scope="module")
def calm(server):
    """Training of two processes on two chips each, when nothing happens."""
    [one], [other] = finish(start(server, "train", 2, 2))
    assert one == other
    return one


@pytest.mark.parametrize("chip", [1, 2])
@pytest.mark.parametrize("what, why", [
    (["inject", "fatal"], "the device is in its fatal state"), (["reset"], "reset")])
def test_a_chip_that_is_struck_fails_the_training_of_both(server, calm, what, why, chip):
    """By an operator who has the machine: without --force nothing happens to them."""
    socket_of = f"vfio-user:{server}/{chip}.sock"
    order = [BUILD / "xla-smi", what[0], socket_of, *what[1:]]
    job = start(server, "struck", 2, 2, who=[chip])
    try:
        for p in job:
            assert json.loads(p.stdout.readline()) == {"trains": True}
        refused = subprocess.run(order, capture_output=True, text=True, check=False)
        assert refused.returncode == 4 and "--force" in refused.stderr, refused
        began = time.monotonic()
        done = subprocess.run([*order, "--force"], capture_output=True, text=True, check=True)
        assert f"used by process {job[chip // 2].pid} " in done.stdout
        facts, codes = ends(job)
    finally:
        for p in job:
            p.kill()
    assert codes == [0, 0]
    devices = 3
    for rank, [failed, left, refused, again, *new] in enumerate(facts):
        assert f"{chip}.sock" in failed["error"] and why in failed["error"], facts
        assert failed["at"] - began < HEARD_S
        total = 12 * devices * (12 * devices - 1) // 2
        assert left["sums"] == again["sums"] == [total, 2 * total, 3 * total], left
        # Who asks for the chip all the same is refused, and nothing else is.
        assert f"{chip}.sock" in refused["error"] and again["refused"] == 0, facts
        assert len(new) == (rank != chip // 2), facts
        for n in new:
            assert f"{chip}.sock of process {chip // 2} had died" in n["error"], facts
            assert n["seconds"] < 10    # 0.1, but for load, where the limit is 300
    assert finish(start(server, "train", 2, 2)) == [[calm]] * 2


def test_one_that_ends_by_a_struck_chip_fails_the_other_soon(server):
    job = start(server, "struck", 2, 2, who=[1, 1])
    for p in job:
        assert json.loads(p.stdout.readline()) == {"trains": True}
    subprocess.run([BUILD / "xla-smi", "inject", f"vfio-user:{server}/1.sock", "fatal",
                    "--force"], stdout=subprocess.DEVNULL, check=True)
    facts, codes = ends(job)
    [failed, last], [other] = facts
    assert "1.sock" in failed["error"] and "1.sock" in other["error"], facts
    assert "process 1 (pid" in last["error"] and "Left: struck" in last["error"], facts
    assert last["seconds"] < 10     # 0.1, but for load, where the limit is 300
    assert codes == [0, 1]


def ends(processes):
    """What each said, one list of facts a process, and their codes. JAX's shutdown may take some
    time in process 0, where XLA's service waits for its calls."""
    try:
        said = [p.communicate(timeout=SECONDS) for p in processes]
    finally:
        for p in processes:
            p.kill()
    return [[json.loads(line) for line in out.splitlines() if line.startswith("{")]
            for out, _ in said], [p.returncode for p in processes]


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("how", ["raise", "exit", "finally", "raise_new"])
def test_one_that_ends_fails_who_waits_for_it(server, how, who):
    facts, codes = ends(start(server, how, 2, 4, who=[who]))
    failed, alone = facts[1 - who]
    assert f"process {who} (pid" in failed["error"]
    assert "all processes have to launch the same programs" in failed["error"] \
        if how == "exit" else "after Left: as of: see what it wrote" in failed["error"]
    assert failed["seconds"] < 10       # 0.3, but for load
    assert alone["alone"] == 10
    assert codes[who] == (how != "exit") and codes[1 - who] == 0


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("how", ["unmade", "made"])
def test_one_that_ends_before_it_launched_fails_the_others(server, how, who):
    facts, codes = ends(start(server, how, 2, 4, who=[who]))
    [failed] = facts[1 - who]
    assert f"process {who} " in failed["error"]
    assert ("after Left: early" if how == "made" else "after RuntimeError") in failed["error"]
    assert failed["seconds"] < 60       # 0.5, but for load, where the limit is 300
    assert codes[who] == 1 and codes[1 - who] == 0


@pytest.mark.parametrize("who", [0, 1])
def test_a_child_of_fork_ends_none_of_the_job(server, who):
    facts, codes = ends(start(server, "forks", 2, 2, who=[who]))
    assert facts[1 - who] == [{"right": True}]
    assert facts[who] == [{"child": 7}, {"right": True}]
    assert codes == [0, 0]


@pytest.mark.parametrize("who", [0, 1])
def test_one_that_is_ahead_may_end(server, who):
    facts, codes = ends(start(server, "runs_ahead", 2, 2, who=[who]))
    assert facts[1 - who] == [{"right": True}]
    assert codes == [0, 0]


def test_programs_go_on_behind_the_end_of_the_job(server):
    assert ends(start(server, "goes_on", 2, 2)) == ([[{"right": True}]] * 2, [0, 0])
