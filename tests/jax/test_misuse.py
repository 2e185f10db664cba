# SPDX-License-Identifier: Apache-2.0
"""What users do by mistake: the answer is an error that says so, never a crash or a guess."""

import gc
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

FORK = """
import gc, os, signal, sys, jax, jax.numpy as jnp
f = jax.jit(lambda x: x @ x + 1)
x = jnp.ones((64, 64))
y = jax.block_until_ready(f(x))
sys.stdout.flush()
pid = os.fork()
if not pid:
    signal.alarm(20)
    try:
        f(x)
    except Exception as e:
        print(e)
    try:
        print(jax.device_get(x))
    except Exception as e:
        print(e)
    del f, x, y
    gc.collect()
    jax.clear_caches()
    sys.stdout.flush()
    os._exit(7)
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("sum", float(f(x).sum()))
"""


def test_a_child_of_fork_is_told_and_drops_what_it_has():
    r = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True,
                       text=True, env={**os.environ, "JAX_PLATFORMS": "tessera"})
    assert r.stdout.count("devices do not survive fork") == 2, r.stdout + r.stderr
    assert "status 7" in r.stdout, r.stdout + r.stderr
    assert f"sum {64 * 64 * 65.0}" in r.stdout
