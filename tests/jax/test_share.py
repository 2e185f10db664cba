# SPDX-License-Identifier: Apache-2.0
"""Two processes on one served device: each has its half, and neither notices the other's end."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TESSERA_BUILD", TOP / "build/opt"))
WINDOW_S = 6.0
READY_S = 120

WORKER = """
import hashlib, sys, time
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(w, x):
    for _ in range(4):
        x = jnp.tanh(x @ w)
    return x

key = jax.random.key(7)
w = jax.random.normal(key, (384, 384)) / 20
x = jax.random.normal(key, (384, 384))
step(w, x).block_until_ready()
print("ready", flush=True)
sys.stdin.readline()
ahead = []
while True:
    ahead.append(step(w, x))
    if len(ahead) > 2:
        y = np.asarray(ahead.pop(0))
        print(f"{time.monotonic_ns()} {hashlib.sha256(y.tobytes()).hexdigest()[:16]}", flush=True)
"""


class Worker:
    """A process that trains for ever and tells of each step."""

    def __init__(self, device, folder, name):
        self.log = folder / name
        env = dict(os.environ, TESSERA_DEVICES=device, TESSERA_TELEMETRY_DIR=str(folder / "pages"),
                   JAX_PLATFORMS="tessera")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([sys.executable, "-c", WORKER], env=env, stdout=log,
                                            stdin=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait_ready(self):
        deadline = time.monotonic() + READY_S
        while b"ready\n" not in self.log.read_bytes():
            assert self.process.poll() is None and time.monotonic() < deadline, \
                self.log.read_text()
            time.sleep(0.05)

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def steps(self):
        """(monotonic s, digest) of each step that was told whole."""
        lines = self.log.read_text().split("ready\n", 1)[-1].split("\n")[:-1]
        return [(int(t) / 1e9, digest) for t, digest in (line.split() for line in lines)]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def served(tmp_path):
    (tmp_path / "pages").mkdir()
    server = subprocess.Popen([BUILD / "tessera-sim", "--clients", "2", "--hbm", "1G",
                               "--socket-dir", tmp_path], stdout=subprocess.PIPE)
    assert server.stdout.readline().startswith(b"serving")
    yield tmp_path
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 0


def count(worker, since, until):
    return sum(since <= t < until for t, _ in worker.steps())


def smi(folder):
    env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(folder / "pages"))
    return json.loads(subprocess.run([BUILD / "xla-smi", "--json"], env=env, check=True,
                                     capture_output=True).stdout)


def await_steps(worker, n, within_s=60):
    """Waits for n more steps."""
    want, deadline = len(worker.steps()) + n, time.monotonic() + within_s
    while len(worker.steps()) < want:
        assert worker.process.poll() is None and time.monotonic() < deadline, worker.log.read_text()
        time.sleep(0.05)


def test_two_processes_share_a_device_fairly(served):
    device = f"vfio-user:{served}/0.sock"
    workers = [Worker(device, served, f"worker{i}") for i in range(2)]
    try:
        for w in workers:
            w.wait_ready()
        for w in workers:
            w.go()
        for w in workers:
            await_steps(w, 3)
        # Other work of the host may hold one of the two up for a while, but not always.
        for window in range(20):
            since = time.monotonic()
            time.sleep(WINDOW_S)
            until = time.monotonic()
            done = [count(w, since, until) for w in workers]
            print(f"steps in {until - since:.1f} s: {done}")
            half = sum(done) / 2
            # Two steps are the window's ends.
            if half > 10 and all(abs(n - half) <= 0.1 * half + 2 for n in done):
                break
        else:
            raise AssertionError(f"not equal in {window + 1} windows, in the last one: {done}")
        shown = smi(served)
        assert {p["pid"] for p in shown["processes"]} == {w.process.pid for w in workers}
        assert all(p["memory_used_bytes"] for p in shown["processes"])
        # Each is killed in turn; the other goes on, and another takes its place.
        for i in range(2):
            workers[i].kill()
            await_steps(workers[1 - i], 5)
            assert {p["pid"] for p in smi(served)["processes"]} == {workers[1 - i].process.pid}
            workers.append(workers[i])
            workers[i] = Worker(device, served, f"next{i}")
            workers[i].wait_ready()
            workers[i].go()
            await_steps(workers[i], 3)
        digests = {digest for w in workers for _, digest in w.steps()}
        assert len(digests) == 1, digests
    finally:
        for w in workers:
            w.kill()
