# SPDX-License-Identifier: Apache-2.0
"""What users do by mistake: the answer is an error that says so, never a crash or a guess."""

import os
import subprocess
import sys

import jax
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


def test_an_unknown_compiler_option_is_refused_by_name(device):
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_no_such_thing": True})
    with pytest.raises(Exception, match="No such compile option: 'xla_no_such_thing'.*xla_dump"):
        f(jax.device_put(1.0, device))
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": "perhaps"})
    with pytest.raises(Exception, match="'perhaps' is not a valid bool value"):
        f(jax.device_put(1.0, device))
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": True,
                                                   "xla_dump_max_hlo_modules": 200})
    assert f(jax.device_put(1.0, device)) == 2


@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
def test_an_array_donated_and_used_is_refused(donated, device):
    f = jax.jit(lambda a, b: (a + b, a - b), donate_argnums=donated)
    a = jax.device_put(np.arange(5, dtype=np.float32), device)
    with pytest.raises(Exception, match="Attempt to donate"):
        f(a, a)
    np.testing.assert_array_equal(np.asarray(a), np.arange(5))
    both = f(a, a + 0)
    np.testing.assert_array_equal(np.asarray(both[0]), 2 * np.arange(5))


MANY = {
    "iota": lambda x: jax.lax.broadcasted_iota(np.int32, x.shape, 4),
    "sort": lambda x: jax.numpy.sort(x, axis=4),
    "reduce": lambda x: x.sum(axis=range(0, 10, 2)),
    "reduce_window": lambda x: jax.lax.reduce_window(
        x.reshape((4,) * 5), -np.inf, jax.lax.max, (2,) * 5, (1,) * 5, "VALID"),
    "dot_general": lambda x: jax.lax.dot_general(x, x, (((9,), (0,)), ((), ()))),
    "copies along": lambda x: x.transpose(range(9, -1, -1)),
    "multiply": lambda x: x * x.transpose(range(9, -1, -1)),
    "window": lambda x: x[np.arange(2)[:, None], :, np.arange(2)],
}


@pytest.mark.parametrize("what", MANY)
def test_more_dims_than_an_instruction_has_are_refused_with_advice(what, device):
    x = jax.device_put(np.zeros((2,) * 10, np.float32), device)
    with pytest.raises(Exception, match=what + r".* \d+ dims, .*at most 8: .*by a reshape"):
        jax.jit(MANY[what])(x)


def test_more_indices_than_an_instruction_has_are_refused_with_advice(device):
    x = jax.device_put(np.zeros((2,) * 10, np.float32), device)
    with pytest.raises(Exception, match="9 components.*at most 8: .*by a reshape"):
        jax.jit(lambda a: a[(np.arange(2),) * 9])(x)


def test_what_is_to_run_on_the_host_is_refused_with_advice(device):
    from jax.experimental.compute_on import compute_on

    def f(x, where):
        with compute_on(where):
            return jax.numpy.sin(x)
    x = jax.device_put(np.ones(2, np.float32), device)
    with pytest.raises(Exception, match="device_host.*leave out compute_on.*pure_callback"):
        jax.jit(f, static_argnums=1)(x, "device_host")
    np.testing.assert_allclose(jax.jit(f, static_argnums=1)(x, "device"), np.sin(1), rtol=1e-6)
