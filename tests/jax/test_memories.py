# SPDX-License-Identifier: Apache-2.0
"""Host memory in programs, and arrays that go to others: DLPack, the cache on disk, export."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import SingleDeviceSharding


def at(kind):
    return SingleDeviceSharding(jax.devices("tessera")[0], memory_kind=kind)


KINDS = ["device", "pinned_host", "unpinned_host"]


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_arguments_and_results_lie_where_they_are_asked_for(source, to):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    y = jax.device_put(x, at(source))
    f = jax.jit(lambda x: jax.device_put(jax.device_put(x, at("device")) * 2 + 1, at(to)),
                in_shardings=at(source), out_shardings=at(to))
    z = f(y)
    assert (y.sharding.memory_kind, z.sharding.memory_kind) == (source, to)
    np.testing.assert_array_equal(z, x * 2 + 1)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_moves_between_kinds_in_loops(donate):
    def turn(i, x):
        return jax.device_put(jnp.sin(jax.device_put(x, at("device"))), at("pinned_host"))
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 5, turn, jax.device_put(x, at("pinned_host"))),
                out_shardings=at("pinned_host"), donate_argnums=donate)
    x = want = np.linspace(0, 2, 64, dtype="float32")
    y = jax.device_put(x, at("device"))
    z = f(y)
    for _ in range(5):
        want = np.sin(want)
    np.testing.assert_allclose(z, want, rtol=1e-5)
    assert z.sharding.memory_kind == "pinned_host"


def test_offloaded_residuals():
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["kept"],
        offload_src="device", offload_dst="pinned_host")

    def loss(w, x):
        def layer(x, w):
            return checkpoint_name(jnp.tanh(x @ w), "kept"), None
        return jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum()
    w = np.random.default_rng(0).standard_normal((3, 8, 8)).astype("float32")
    x = np.ones((4, 8), "float32")
    got = jax.jit(jax.grad(loss))(w, x)
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_allclose(got, jax.jit(jax.grad(loss))(w, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "complex64"])
def test_numpy_takes_arrays(dtype):
    x = jnp.asarray(np.arange(12).reshape(3, 4) % 3, dtype)
    y = np.from_dlpack(x.T)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, np.asarray(x).T)
    with pytest.raises(BufferError, match="copy=False"):
        np.from_dlpack(x, copy=False)


def test_arrays_of_others_are_taken():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    y = jax.device_put(jnp.from_dlpack(x), jax.devices("tessera")[0])
    np.testing.assert_array_equal(jnp.sin(y), jnp.sin(x))
    assert jnp.from_dlpack(jnp.arange(4)).platform() == "cpu"


CACHED = """
import sys, jax, jax.numpy as jnp
from jax._src import monitoring
events = []
monitoring.register_event_listener(lambda name, **kw: events.append(name))
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
f = jax.jit(lambda x: jnp.sin(x) * 3 + x.sum())
print(f(jnp.arange(4.0)).tolist())
print(events.count("/jax/compilation_cache/cache_hits"),
      events.count("/jax/compilation_cache/cache_misses"))
"""


def test_the_cache_of_jax_keeps_programs(tmp_path):
    def run():
        out = subprocess.run([sys.executable, "-c", CACHED, str(tmp_path)], check=True,
                             env=os.environ | {"TESSERA_CACHE": "off"}, capture_output=True,
                             text=True, timeout=120).stdout.splitlines()
        return out[0], [int(n) for n in out[1].split()]
    first, (hits, misses) = run()
    assert hits == 0 and misses > 0
    assert len(list(tmp_path.glob("*-cache"))) == misses
    again, (hits, none) = run()
    assert again == first and hits == misses and none == 0


def test_programs_are_exported_and_called():
    pytest.importorskip("flatbuffers")
    x = jnp.arange(5.0)
    blob = jax.export.export(jax.jit(lambda x: jnp.cumsum(x) * 2))(x).serialize()
    np.testing.assert_array_equal(jax.export.deserialize(blob).call(x), np.cumsum(x) * 2)


def test_each_memory_is_counted_by_itself(eventually):
    """In a program's sizes; a device's statistics are of its own memory."""
    device = jax.devices("tessera")[0]

    def put():
        said, arrays = [device.memory_stats()["bytes_in_use"]], []
        for n, kind in (1 << 20, "pinned_host"), (1 << 18, "unpinned_host"), (1 << 10, "device"):
            arrays.append(jax.device_put(np.ones(n, "float32"), at(kind)).block_until_ready())
            said.append(device.memory_stats()["bytes_in_use"])
        return arrays, np.diff(said).tolist()
    # What earlier tests ran may be let go of between two readings.
    eventually(lambda: put()[1] == [0, 0, 4 << 10])
    x, y, z = put()[0]
    f = jax.jit(lambda x, y, z: (x + 1, z * 2), out_shardings=(at("device"), at("pinned_host")),
                in_shardings=tuple(at(k) for k in ("pinned_host", "unpinned_host", "device")))
    n = f.lower(x, y, z).compile().memory_analysis()
    assert n.host_argument_size_in_bytes == 4 << 20     # y is not used
    assert n.host_output_size_in_bytes == 4 << 10 and n.output_size_in_bytes == 4 << 20
    assert n.argument_size_in_bytes == 4 << 10 and n.host_temp_size_in_bytes == 0
    assert n.host_alias_size_in_bytes == n.alias_size_in_bytes == 0
    g = jax.jit(lambda x: x + 1, in_shardings=at("pinned_host"), out_shardings=at("pinned_host"),
                donate_argnums=0)
    n = g.lower(x).compile().memory_analysis()
    assert n.host_alias_size_in_bytes == n.host_output_size_in_bytes == 4 << 20
    assert n.argument_size_in_bytes == n.output_size_in_bytes == n.alias_size_in_bytes == 0
    assert n.peak_memory_in_bytes == n.temp_size_in_bytes
