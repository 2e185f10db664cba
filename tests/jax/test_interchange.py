# SPDX-License-Identifier: Apache-2.0
"""Arrays and programs that go elsewhere and come back: numpy, DLPack, pickles, exported and
serialized programs, programs for devices that are not there."""

import importlib.util
import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import serialize_executable

# Of what is serialized in JAX's own form. The environment of `make check-jax` has it.
needs_flatbuffers = pytest.mark.skipif(not importlib.util.find_spec("flatbuffers"),
                                       reason="jax.export serializes by flatbuffers")
X = np.arange(12, dtype="float32").reshape(3, 4)


def test_numpy_gets_a_copy_of_its_own(device):
    x = jax.device_put(X, device)
    a = np.asarray(x)
    assert a.flags.owndata or a.base is not None
    assert np.asarray(x) is a or np.shares_memory(np.asarray(x), a)     # copied once
    with pytest.raises(ValueError):
        a[0, 0] = 5
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(a, X)     # whatever becomes of x
    np.testing.assert_array_equal(y, X + 1)
    y.delete()
    np.testing.assert_array_equal(np.array(a), X)


def test_arrays_lie_where_they_say(device):
    x, y = jax.device_put(X, device), jax.device_put(X + 1, device)
    assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer() != 0
    where = x.unsafe_buffer_pointer()
    z = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert z.unsafe_buffer_pointer() == where
    with pytest.raises(RuntimeError, match="deleted"):
        x.unsafe_buffer_pointer()


def test_whoever_takes_an_array_has_one_to_write_to(device):
    """Each its own, and none the one that JAX keeps for numpy: XLA takes memory as it lies only
    where that is aligned, hence the sizes."""
    for k in range(4, 19):
        x = jax.device_put(np.ones(1 << k, "uint8"), device)
        held = [np.asarray(x), np.from_dlpack(x), np.from_dlpack(x)]
        assert len({a.ctypes.data for a in held}) == 3, k


def test_a_deleted_array_is_no_crash_to_who_takes_it(device, cpu):
    for d in (device, cpu):
        x = jax.device_put(X, d) + 1
        x.delete()
        for taken in (np.from_dlpack, lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__()):
            with pytest.raises(RuntimeError if d is device else Exception) as e:
                taken(x)
            assert d is cpu or "deleted" in str(e.value)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32",
                                   "complex64"])
def test_numpy_by_dlpack(device, dtype):
    x = jax.device_put(X.astype(dtype), device)
    there = np.from_dlpack(x)
    assert there.dtype == dtype
    np.testing.assert_array_equal(there, X.astype(dtype))
    back = jax.device_put(jnp.from_dlpack(np.array(there)), device)
    np.testing.assert_array_equal(back, there)
    x.delete()
    np.testing.assert_array_equal(there, X.astype(dtype))
    with pytest.raises(BufferError, match="copy"):
        jax.device_put(X, device).__dlpack__(copy=False)


def test_arrays_are_pickled(device):
    for x in (jax.device_put(X, device), jax.device_put(X, device).astype("bfloat16"),
              jax.random.key_data(jax.random.key(7))):
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == x.dtype and isinstance(y, jax.Array)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def model(w, x):
    h = jnp.tanh(x @ w)
    return jax.lax.scan(lambda c, r: (c + r.sum(), c * r), jnp.float32(0), h), jnp.sort(h, 1)


@needs_flatbuffers
def test_an_exported_program_runs_here_and_on_the_cpu(device, cpu):
    w = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    out = export.export(jax.jit(model), platforms=["tessera", "cpu"])(w, X)
    again = export.deserialize(out.serialize(vjp_order=1))
    assert again.platforms == ("tessera", "cpu")
    got = {}
    for d in (device, cpu):
        here = jax.jit(again.call)(*jax.device_put((w, X), d))
        assert {x.device for x in jax.tree.leaves(here)} == {d}
        got[d.platform] = here
        slope = jax.grad(lambda w: again.call(w, jax.device_put(X, d))[1].sum())(
            jax.device_put(w, d))
        np.testing.assert_allclose(slope, jax.grad(lambda w: model(w, X)[1].sum())(w), rtol=1e-4,
                                   atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
                 got["tessera"], got["cpu"])


@needs_flatbuffers
def test_a_program_exported_for_any_size(device):
    n, = export.symbolic_shape("n")
    out = export.export(jax.jit(lambda x: x * 2 + x.sum(0)))(
        jax.ShapeDtypeStruct((n, 4), "float32"))
    again = export.deserialize(out.serialize())
    for x in (X, X[:1], np.tile(X, (7, 1))):
        np.testing.assert_allclose(jax.jit(again.call)(jax.device_put(x, device)),
                                   x * 2 + x.sum(0))


OTHER_PROCESS = """
import pickle, sys, jax, numpy as np
from jax.experimental import serialize_executable
kind, path = sys.argv[1:]
with open(path, "rb") as f:
    x, *parts = pickle.load(f)
if kind == "serialized":
    f = serialize_executable.deserialize_and_load(*parts)
else:
    f = jax.export.deserialize(parts[0]).call
np.save(path + ".npy", np.asarray(f(x)))
"""


@pytest.mark.parametrize("kind", ["serialized", pytest.param("exported", marks=needs_flatbuffers)])
def test_another_process_runs_it(device, tmp_path, kind):
    f = jax.jit(lambda x: jnp.cumsum(jnp.sin(x) @ x.T, 1))
    x = jax.device_put(X, device)
    if kind == "serialized":
        parts = serialize_executable.serialize(f.lower(x).compile())
    else:
        parts = [export.export(f)(X).serialize()]
    path = tmp_path / "program"
    path.write_bytes(pickle.dumps((x, *parts)))
    subprocess.run([sys.executable, "-c", OTHER_PROCESS, kind, path], check=True, timeout=300,
                   env=os.environ | {"TESSERA_SIM": "lanes=1"})
    np.testing.assert_array_equal(np.load(str(path) + ".npy"), f(x))


NO_DEVICE = """
import pickle, sys, jax, jax.numpy as jnp
from jax.experimental import serialize_executable, topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
there = topologies.get_topology_desc(platform="tessera", topology_name=sys.argv[1])
mesh = Mesh(np.array(there.devices).reshape(-1), ("d",))
x = jax.ShapeDtypeStruct((8, 3), "float32", sharding=NamedSharding(mesh, P("d")))
c = jax.jit(lambda x: x * x.sum(0)).lower(x).compile()
assert c.memory_analysis().argument_size_in_bytes == 96 // len(there.devices)
print(len(there.devices), [s.spec for s in jax.tree.leaves(c.input_shardings)])
"""


@pytest.mark.parametrize("name, n", [("tessera", 1), ("tessera:devices=4", 4)])
def test_compiling_for_devices_that_are_not_there(name, n):
    """With a model of one device."""
    r = subprocess.run([sys.executable, "-c", NO_DEVICE, name], capture_output=True, text=True,
                       timeout=300, env=os.environ | {"TESSERA_SIM": "devices=1,lanes=1"})
    assert r.returncode == 0, r.stderr[-2000:]
    assert r.stdout.startswith(f"{n} ["), r.stdout
