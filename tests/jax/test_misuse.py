# SPDX-License-Identifier: Apache-2.0
"""What users do by mistake: the answer is an error that says so, never a crash or a guess."""

import os
import re
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.experimental import checkify
from jaxlib import _jax

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


ENDS = """
import os, signal, sys, time, jax, jax.numpy as jnp
f = jax.jit(lambda x: x @ x + 1)
x = jnp.ones((64, 64))
if sys.argv[1] == "in_flight":
    x = jax.lax.fori_loop(0, 2000, lambda i, y: y @ y / 64, jnp.ones((512, 512)))
    jax.debug.callback(lambda a: None, x[0, 0])
elif sys.argv[1] == "called":
    def late(a):
        time.sleep(5)
        return a
    x = jax.jit(lambda y: jax.pure_callback(late, y, y))(jnp.ones(()))
else:
    jax.block_until_ready(f(x))
pid = os.fork()
if not pid:
    signal.alarm(20)
    if sys.argv[1] == "raise":
        raise ValueError
    if sys.argv[1] == "drop":
        del f, x
    sys.exit(7)
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("sum", float(f(jnp.ones((64, 64))).sum()))
"""


@pytest.mark.parametrize("how", ["exit", "drop", "raise", "in_flight", "called"])
def test_a_child_of_fork_ends_as_programs_do(how):
    r = subprocess.run([sys.executable, "-W", "ignore", "-c", ENDS, how], capture_output=True,
                       text=True, env={**os.environ, "JAX_PLATFORMS": "tessera,cpu"})
    assert f"status {1 if how == 'raise' else 7}" in r.stdout, r.stdout + r.stderr
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


EACH = tuple(slice(None) if d % 2 else np.arange(2) for d in range(17))


def test_more_indices_than_an_instruction_has_are_refused_with_advice(device):
    x = jax.device_put(np.zeros((2, 1) * 8 + (2,), np.float32), device)
    with pytest.raises(Exception, match="9 components.*at most 8: .*by a reshape"):
        jax.jit(lambda a: a[EACH])(x)


def test_what_is_to_run_on_the_host_is_refused_with_advice(device):
    from jax.experimental.compute_on import compute_on

    def f(x, where):
        with compute_on(where):
            return jax.numpy.sin(x)
    x = jax.device_put(np.ones(2, np.float32), device)
    with pytest.raises(Exception, match="device_host.*leave out compute_on.*pure_callback"):
        jax.jit(f, static_argnums=1)(x, "device_host")
    np.testing.assert_allclose(jax.jit(f, static_argnums=1)(x, "device"), np.sin(1), rtol=1e-6)


@pytest.mark.parametrize("name", ["infeed", "outfeed"])
def test_queues_of_the_host_are_refused_by_name(name, device):
    """JAX has given them up; StableHLO still has them."""
    ops = {"infeed": """%r, %t = "stablehlo.infeed"(%k) {infeed_config = "", layout = [[0]]} :
                        (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)""",
           "outfeed": """%t = "stablehlo.outfeed"(%r, %k) {outfeed_config = ""} :
                         (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token"""}
    argument = "%r: tensor<3xf32>" if name == "outfeed" else ""
    text = f"""module @m {{ func.func public @main({argument}) -> tensor<3xf32> {{
      %k = stablehlo.create_token : !stablehlo.token
      {ops[name]}
      return %r : tensor<3xf32> }} }}"""
    with pytest.raises(Exception, match=f"UNIMPLEMENTED.*\\b{name}"):
        device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())


def donated_before(x, ran_before):
    """What has run with arrays alike goes another way through JAX."""
    double = jax.jit(lambda a: a * 2)
    for _ in range(2 * ran_before):
        double(x)
    jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    return double(x)


def deleted(x):
    x.delete()
    return x


def compiled(x):
    return jax.jit(lambda a: a * 2).lower(x).compile()


def raises(x):
    raise KeyError("no such thing")


def called(f, x):
    return jax.jit(lambda a: jax.pure_callback(f, jax.ShapeDtypeStruct(a.shape, a.dtype), a))(x)


def with_nans(x):
    with jax.debug_nans(True):
        return jax.jit(lambda a: a / 0 - a / 0)(x)


def checked(x):
    def f(a):
        checkify.check(a[0] > 5, "{} is too small", a[0])
        return a
    err, _ = jax.jit(checkify.checkify(f))(x)
    err.throw()


# What is done with an array of eight floats, and what each backend's answer has in it.
MISTAKES = {
    "read what was deleted": (lambda x: np.asarray(deleted(x)), "deleted"),
    "wait for what was deleted": (lambda x: deleted(x).block_until_ready(), "deleted"),
    "compute with what was deleted": (lambda x: deleted(x) + 1, "deleted"),
    "copy what was deleted": (lambda x: deleted(x).copy(), "deleted"),
    "take the address of what was deleted":
        (lambda x: deleted(x).unsafe_buffer_pointer(), "deleted"),
    "compute with what was donated": (lambda x: donated_before(x, False), "deleted"),
    "compute again with what was donated": (lambda x: donated_before(x, True), "donated|deleted"),
    "donate twice": (lambda x: jax.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x),
                     "(?i)donate"),
    "add what does not fit": (lambda x: x + np.zeros(7, np.float32), r"\(8,\).*\(7,\)"),
    "compiled for another shape": (lambda x: compiled(x)(x[:4]), r"float32\[8\].*float32\[4\]"),
    "compiled for another type": (lambda x: compiled(x)(x.astype(np.int32)),
                                  r"float32\[8\].*int32\[8\]"),
    "more memory than there is":
        (lambda x: jax.numpy.zeros((1 << 44,), np.float32, device=x.sharding),
         "RESOURCE_EXHAUSTED.*70368744177664"),
    "a memory that is none":
        (lambda x: jax.device_put(x, x.sharding.with_memory_kind("attic")), "attic"),
    "call what nobody registered":
        (lambda x: jax.ffi.ffi_call("nobody_registered_it", jax.ShapeDtypeStruct(
            x.shape, x.dtype))(x), "nobody_registered_it"),
    "a callback that raises": (lambda x: called(raises, x).block_until_ready(), "no such thing"),
    "a callback of another shape": (lambda x: called(lambda a: a[:4], x).block_until_ready(),
                                    r"\(8,\).*\(4,\)|\(4,\).*\(8,\)"),
    "an option that is none": (lambda x: jax.jit(
        lambda a: a, compiler_options={"xla_no_such_thing": 1})(x + 1), "xla_no_such_thing"),
    "a result that is no number": (with_nans, "nan"),
    "a check that fails": (checked, "is too small"),
}


def answer_to(mistake, device):
    x = jax.device_put(np.arange(1, 9, dtype=np.float32), device)
    with jax.default_device(device), pytest.raises(Exception) as e:
        jax.block_until_ready(mistake(x))
    return e.value


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_answered_as_on_other_backends(what, device, cpu):
    mistake, text = MISTAKES[what]
    ours, theirs = (answer_to(mistake, d) for d in (device, cpu))
    assert type(ours) is type(theirs)
    for e in (ours, theirs):
        assert re.search(text, str(e), re.DOTALL), e
    # The device goes on, callbacks too: JAX keeps the end of the last one until there is another.
    y = called(lambda a: a + 1, jax.device_put(np.arange(4, dtype=np.float32), device))
    np.testing.assert_array_equal(y, np.arange(1, 5))
    jax.effects_barrier()
