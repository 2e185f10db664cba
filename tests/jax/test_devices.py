# SPDX-License-Identifier: Apache-2.0
"""JAX on 8 linked devices, with Shardy and with GSPMD: each case of devices_cases.py beside JAX's
CPU backend with as many; what is refused; the example for several chips."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from devices_cases import CASES

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TESSERA_BUILD", HERE.parents[1] / "build/opt"))
EXAMPLE = HERE.parents[1] / "runtime/python/examples/spmd_transformer.py"
# GSPMD has no word for them.
ONLY_SHARDY = {"explicit_axes"}
PARTITIONERS = ("shardy", "gspmd")


def run(code, **env):
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu", **{
        "TESSERA_SIM": "devices=8,hbm=512M" + (",check" if "check" in os.environ.get(
            "TESSERA_SIM", "") else ""), **env})
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, timeout=600,
                          env=env, cwd=HERE)


@pytest.fixture(scope="module")
def results():
    """By partitioner: what is wrong with each case."""
    all_of = {}

    def get(partitioner):
        if partitioner not in all_of:
            r = run([str(HERE / "devices_cases.py")],
                    JAX_USE_SHARDY_PARTITIONER=str(int(partitioner == "shardy")))
            lines = [json.loads(x) for x in r.stdout.splitlines() if x.startswith("[")]
            all_of[partitioner] = dict(lines), f"exit {r.returncode}: {r.stderr[-2000:]}"
        return all_of[partitioner]
    return get


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("name", CASES)
def test_results_and_their_places_are_those_of_the_cpu(results, name, partitioner):
    if partitioner == "gspmd" and name in ONLY_SHARDY:
        pytest.skip("explicit axes are Shardy's alone")
    wrong, end = results(partitioner)
    assert name in wrong, end
    assert not wrong[name], wrong[name]


def test_callbacks_in_what_meets_are_refused_by_name():
    r = run(["-c", """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
m = jax.sharding.Mesh(np.array(jax.devices("tessera")), "x")
a = jax.device_put(np.arange(16.), NamedSharding(m, P("x")))
def f(a):
    jax.debug.print("sum {}", a.sum())
    return a
try:
    jax.jit(f)(a)
except jax.errors.JaxRuntimeError as e:
    print(e)
"""])
    assert "UNIMPLEMENTED" in r.stdout and "calls functions of the host" in r.stdout, \
        r.stdout + r.stderr[-2000:]


# ---- runtime/python/examples/spmd_transformer.py ----

@pytest.fixture
def idle_process():
    """Another process with linked chips of the same bus ids, which does nothing with them."""
    env = dict(os.environ, JAX_PLATFORMS="tessera", TESSERA_SIM="devices=8,hbm=64M")
    with subprocess.Popen([sys.executable, "-c", "import jax; jax.devices(); print(1, flush=True); "
                           "input()"], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"1\n"
        yield
        other.communicate(b"\n")


def test_a_transformer_trains_on_eight_chips_as_on_one(idle_process):
    r = run([str(EXAMPLE), "--steps", "4", "--smi", str(BUILD / "xla-smi")])
    assert r.returncode == 0, r.stdout + r.stderr[-2000:]
    chips = re.findall(r"^ *(eight|one) +(sim:\d) +[01],[0-3] +(.*)", r.stdout, re.M)
    assert [c[1] for c in chips] == [f"sim:{i}" for i in range(8)] + ["sim:0"], r.stdout
    *eight, one = ([float(x) for x in c[2].split() if "," not in x] for c in chips)
    for state, peak, used, sent, received in eight:
        assert state < one[0] / 3.5 and peak < one[1] / 3.5 and used < one[2] / 3.5, r.stdout
        assert sent > 0 and received > 0, r.stdout
    assert one[3:] == [0, 0], r.stdout


def test_the_example_fails_where_losses_or_links_are_not_as_they_should_be():
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    def ran(losses, sent=1, platform="tessera"):
        return dict(losses=losses, platform=platform, before=[dict(bus_id="sim:0", sent=0)],
                    after=[dict(bus_id="sim:0", sent=sent)])

    one, nan = ran([2.0, 1.0], sent=0), float("nan")
    assert example.judge(ran([2.001, 1.0]), one) == []
    for eight, wrong in ((ran([2.0, 1.002]), "differ"), (ran([2.0, nan]), "differ"),
                         (ran([2.0, 2.0]), "fall"), (ran([2.0, 1.0], platform="cpu"), "cpu"),
                         (ran([2.0, 1.0], sent=0), "sim:0 sent nothing")):
        assert any(wrong in f for f in example.judge(eight, one)), wrong
