# SPDX-License-Identifier: Apache-2.0
"""jax.profiler: what the device's planes tell of a training step, by JAX's own readers."""

import functools
import glob
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.profiler import ProfileData

SLACK_NS = 200_000      # between the host's two clocks, and of looks at them
# Other work of the host may hold a session up between two looks, but not each that begins within
# so many seconds, nor each of so many.
SECONDS = 60
SESSIONS = 20
SMI = pathlib.Path(__file__).resolve().parents[2] / \
    os.environ.get("TESSERA_BUILD", "build/opt") / "xla-smi"
ROW = "XLA Modules", "XLA Ops", "DMA queue"


class Event:
    def __init__(self, event):
        self.name, self.begin = event.name, event.start_ns
        self.end = event.start_ns + event.duration_ns
        self.stats = dict(event.stats)


class Profile:
    """Of one session: lines[device][name of the line] are events; host, those of the host."""

    def __init__(self, folder):
        [file] = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        self.folder = os.path.dirname(file)
        self.lines, self.host = {}, []
        for plane in ProfileData.from_file(file).planes:
            if plane.name.startswith("/device:CUSTOM:TESSERA:"):
                self.lines[plane.name] = {line.name: [Event(e) for e in line.events]
                                          for line in plane.lines}
            elif plane.name == "/host:CPU":
                self.host += [Event(e) for line in plane.lines for e in line.events]

    def of(self, line, device=0):
        return self.lines[f"/device:CUSTOM:TESSERA:{device}"][line]


@pytest.fixture
def profile(tmp_path):
    count = iter(range(1000))

    def take(work):
        folder = tmp_path / str(next(count))
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            work()
        return Profile(folder)
    return take


def loss(w, x):
    hidden = jnp.tanh(x @ w["first"])   # a line of the model
    return jnp.sum((hidden @ w["second"]) ** 2)


LOSS_LINE = loss.__code__.co_firstlineno + 1


@jax.jit
def step(w, x):
    return jax.tree.map(lambda p, g: p - 0.001 * g, w, jax.grad(loss)(w, x))


@pytest.fixture(scope="module")
def state():
    rng = np.random.default_rng(0)
    w = {"first": jnp.asarray(rng.standard_normal((256, 512)), jnp.float32),
         "second": jnp.asarray(rng.standard_normal((512, 64)), jnp.float32)}
    x = jnp.asarray(rng.standard_normal((256, 256)), jnp.float32)
    jax.block_until_ready(step(w, x))
    return w, x


def train(state, name="train"):
    with jax.profiler.StepTraceAnnotation(name, step_num=1):
        jax.block_until_ready(step(*state))


def covered(module, ops):
    """How much of a program's time is that of its ops."""
    return sum(e.end - e.begin for e in ops) / (module.end - module.begin)


def test_step(profile, state):
    end = time.monotonic() + SECONDS
    while True:
        p = profile(lambda: train(state))
        [outer] = [e for e in p.host if e.name == "train"]
        [module] = p.of("XLA Modules")
        ops = p.of("XLA Ops")
        assert module.name == "jit_step" and len(ops) >= 4
        for e in ops:
            assert module.begin <= e.begin <= e.end <= module.end
            assert e.stats["run_id"] == module.stats["run_id"]
        for a, b in zip(ops, ops[1:]):
            assert a.end <= b.begin + 1
        # Together they are the step's time on the device.
        share = covered(module, ops)
        assert share <= 1
        late = max(outer.begin - module.begin, module.end - outer.end)
        if (share >= 0.95 and late <= SLACK_NS) or time.monotonic() > end:
            break
    assert share >= 0.95 and late <= SLACK_NS


def test_names_and_sources(profile, state):
    ops = profile(lambda: train(state)).of("XLA Ops")
    assert {e.stats["hlo_module"] for e in ops} == {"jit_step"}
    assert all(e.name == e.stats["hlo_op"] for e in ops)
    products = [e for e in ops if "dot_general" in e.name]
    # Two products forward, three backward; two operations for each multiply-add.
    sizes = [2 * 256 * 512 * 64] * 3 + [2 * 256 * 256 * 512] * 2
    assert len(products) == len(sizes)
    for e, least in zip(sorted(products, key=lambda e: e.stats["flops"]), sizes):
        assert least <= e.stats["flops"] <= 1.2 * least
    where = os.path.realpath(__file__)[-50:]
    assert all(e.stats["source"].rsplit(":", 1)[0].endswith(where) for e in ops)
    assert any(e.stats["source"].endswith(f":{LOSS_LINE}") for e in products)
    assert any("tanh" in e.stats["tf_op"] for e in ops)
    assert any(e.stats.get("bytes_accessed", 0) >= 256 * 512 * 4 for e in ops)


def test_exported_traces(profile, state):
    """What TensorBoard's viewer and Perfetto open."""
    p = profile(lambda: train(state))
    names = {e.name for e in p.of("XLA Ops")}
    for pattern in ("*.trace.json.gz", "perfetto_trace.json.gz"):
        [file] = [f for f in glob.glob(f"{p.folder}/{pattern}")
                  if pattern[0] != "*" or not f.endswith("perfetto_trace.json.gz")]
        events = json.loads(gzip.open(file).read())["traceEvents"]
        [pid] = {e["pid"] for e in events if e.get("name") == "process_name" and
                 e["args"]["name"] == "/device:CUSTOM:TESSERA:0"}
        shown = [e for e in events if e.get("pid") == pid and e.get("ph") == "X"]
        assert names <= {e["name"] for e in shown}
        [module] = [e for e in shown if e["name"] == "jit_step"]
        [true] = p.of("XLA Modules")
        assert module["dur"] == pytest.approx((true.end - true.begin) / 1000, abs=0.002)
        assert any(e.get("args", {}).get("hlo_module") == "jit_step" for e in shown)


def test_nothing_without_a_session(profile, state):
    train(state)
    p = profile(lambda: None)
    assert not any(p.of(line) for line in ROW)


def test_two_sessions(profile, state):
    first = profile(lambda: train(state))
    train(state)
    second = profile(lambda: [train(state) for _ in range(3)])
    runs = [{e.stats["run_id"] for e in p.of("XLA Modules")} for p in (first, second)]
    assert len(runs[0]) == 1 and len(runs[1]) == 3 and not runs[0] & runs[1]
    assert {e.stats["run_id"] for e in second.of("XLA Ops")} == runs[1]


def test_programs_that_are_new_or_gone(profile):
    def work():
        for n in range(5):
            f = jax.jit(lambda x, n=n: jnp.sort(x + n))
            jax.block_until_ready(f(jnp.arange(1000.0)))
            del f
            jax.clear_caches()
    p = profile(work)
    ours = [e for e in p.of("XLA Ops") if "sort" in e.name]
    assert len(ours) == 5
    assert all("?" not in e.name for e in p.of("XLA Ops") + p.of("XLA Modules"))


def test_loops_tell_of_each_operation(profile):
    @jax.jit
    def f(x):
        return jax.lax.fori_loop(0, 20, lambda _, v: jnp.tanh(v @ v), x)

    x = jnp.eye(64)
    jax.block_until_ready(f(x))
    p = profile(lambda: jax.block_until_ready(f(x)))
    assert sum(e.stats["flops"] for e in p.of("XLA Ops") if "dot_general" in e.name) >= \
        20 * 2 * 64 ** 3


def test_sources_in_any_alphabet(profile):
    """A name that the compiler cuts within a character is no reason to lose the profile."""
    for n in range(3):
        space = {}
        name = "/" + "x" * n + "文" * 40 + ".py"
        exec(compile("def f(x):\n    return x * 3 + 1", name, "exec"), space)
        f = jax.jit(space["f"])
        jax.block_until_ready(f(jnp.arange(8.0)))
        ops = profile(lambda: jax.block_until_ready(f(jnp.arange(8.0)))).of("XLA Ops")
        assert any(e.stats.get("source", "").endswith("文.py:2") for e in ops)


DEVICES = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",))
put = lambda v, *axes: jax.device_put(v, NamedSharding(mesh, P(*axes)))
x, w = put(jnp.ones((2048, 1024)), "x"), put(jnp.ones((1024, 512)))
f = jax.jit(lambda x, w: jnp.sum(x @ w))
jax.block_until_ready(f(x, w))
for folder in sys.argv[1:]:
    with jax.profiler.trace(folder):
        jax.block_until_ready(f(x, w))
"""


def test_devices_have_their_planes(tmp_path):
    folders = [tmp_path / str(n) for n in range(SESSIONS)]
    env = dict(os.environ, TESSERA_SIM="devices=4,hbm=64M", JAX_PLATFORMS="tessera,cpu")
    r = subprocess.run([sys.executable, "-c", DEVICES, *folders], env=env, timeout=300,
                       capture_output=True, text=True)
    assert not r.returncode, r.stderr
    least = []
    for folder in folders:
        p, shares = Profile(folder), []
        assert sorted(p.lines) == [f"/device:CUSTOM:TESSERA:{i}" for i in range(4)]
        for i in range(4):
            [module] = p.of("XLA Modules", i)
            ops = p.of("XLA Ops", i)
            assert module.name.startswith("jit_")
            assert any("dot_general" in e.name for e in ops)
            assert all(module.begin <= e.begin and e.end <= module.end for e in ops)
            shares.append(covered(module, ops))
        least.append(min(shares))
    # Whoever waits for the others says so.
    assert max(least) >= 0.9, least


def words_of(name, args):
    return name, args["hlo_op"], args["hlo_module"], args.get("tf_op"), args.get("source")


def test_from_outside(profile, state, tmp_path):
    """xla-smi trace has what a session has, of a process that does nothing for it."""
    session = profile(lambda: train(state))
    file = tmp_path / "trace.json"
    with subprocess.Popen([SMI, "trace", str(os.getpid()), "-s", "1", "-o", file],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tool:
        while tool.poll() is None:
            jax.block_until_ready(step(*state))
        assert (tool.returncode, tool.stderr.read()) == (0, "")
    events = [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == "X"]
    ops = [e for e in events if e["cat"] == "op"]
    assert {words_of(e["name"], e["args"]) for e in ops} == \
        {words_of(e.name, e.stats) for e in session.of("XLA Ops")}
    modules = {e["args"]["run_id"]: e for e in events if e["cat"] == "program"}
    assert {e["name"] for e in modules.values()} == {"jit_step"}
    for run, module in modules.items():
        mine = [e for e in ops if e["args"]["run_id"] == run]
        assert len(mine) == len(session.of("XLA Ops"))
        assert all(module["ts"] - 0.002 <= e["ts"] and
                   e["ts"] + e["dur"] <= module["ts"] + module["dur"] + 0.002 for e in mine)
        assert sum(e["args"].get("flops", 0) for e in mine) == \
            sum(e.stats.get("flops", 0) for e in session.of("XLA Ops"))


def test_a_session_leaves_a_trace_from_outside_alone(profile, state, tmp_path):
    file = tmp_path / "trace.json"
    begin = functools.partial(
        subprocess.Popen, [SMI, "trace", str(os.getpid()), "-s", "60", "-o", file],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    tool = begin()
    try:
        # Until it has begun, a session has the device; the tool may have come while it did.
        while profile(lambda: train(state)).lines:
            if tool.poll() is not None:
                said = tool.stderr.read()
                assert tool.returncode == 4 and "traced already" in said, said
                tool = begin()
        for _ in range(3):
            train(state)
        tool.send_signal(signal.SIGINT)
        assert (tool.wait(60), tool.stderr.read()) == (0, "")
    finally:
        tool.kill()
        tool.wait()
    events = json.loads(file.read_text())["traceEvents"]
    assert sum(e.get("cat") == "program" and e["name"] == "jit_step" for e in events) >= 3


def test_a_session_costs_little(profile, state):
    """In turns, and until each had a quiet moment, since others share the machine."""
    def best():
        times = []
        for _ in range(5):
            began = time.perf_counter()
            jax.block_until_ready(step(*state))
            times.append(time.perf_counter() - began)
        return min(times)
    without, during, after = [], [], []
    for turn in range(80):
        without.append(best())
        profile(lambda: during.append(best()))
        after.append(best())
        if turn > 3 and min(after) < 1.2 * min(without) and min(during) < 1.5 * min(without):
            break
    without, during, after = min(without), min(during), min(after)
    print(f"step: {without * 1e6:.0f} us, {during * 1e6:.0f} us in a session, "
          f"{after * 1e6:.0f} us after it")
    assert after < 1.2 * without and during < 1.5 * without
