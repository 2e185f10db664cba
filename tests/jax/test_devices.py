# SPDX-License-Identifier: Apache-2.0
"""JAX on 8 linked devices, with Shardy and with GSPMD: each case of devices_cases.py beside JAX's
CPU backend with as many; and what is refused."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from devices_cases import CASES

HERE = pathlib.Path(__file__).resolve().parent
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
