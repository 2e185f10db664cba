# SPDX-License-Identifier: Apache-2.0
"""What a JAX user relies on besides numbers: donation, errors, memory, asynchrony."""

import gc
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DTYPES = ["bool", "int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16",
          "uint32", "float16", "bfloat16", "float32", "complex64", "float8_e5m2",
          "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz",
          "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives_the_way_there_and_back(dtype, device):
    x = np.arange(2).repeat(12).reshape(4, 6).astype(jnp.dtype(dtype))
    y = np.asarray(jax.device_put(x, device))
    assert y.dtype == x.dtype
    assert y.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint2", "uint4"])
def test_products_of_a_few_bits_have_their_signs(dtype, device):
    """What the host gives has zeros above the bits of a negative number."""
    least, most = (-2, 2) if dtype == "int2" else (-8, 8) if dtype == "int4" else (0, 4)
    x = np.random.default_rng(0).integers(least, most, (1, 2, 6, 6)).astype("int32")
    a = jax.device_put(x.astype(jnp.dtype(dtype)), device)
    f = jax.jit(lambda a: jax.lax.dot(a[0, 0], a[0, 1], preferred_element_type=jnp.int32))
    np.testing.assert_array_equal(f(a), x[0, 0] @ x[0, 1])
    g = jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "VALID",
                                          preferred_element_type=jnp.int32))
    want = np.array([[[[(x[0, :, i:i + 3, j:j + 3] * x[0, :, :3, :3]).sum() for j in range(4)]
                       for i in range(4)]]])
    np.testing.assert_array_equal(g(a, a[:, :, :3, :3]), want)


@pytest.mark.parametrize("view", [
    lambda a: a[::-1], lambda a: a.T, lambda a: a[:, ::3], lambda a: a[2:2],
    lambda a: np.broadcast_to(a[0], (5, 12)), lambda a: a[3, 4]])
def test_strided_host_arrays_arrive_as_numpy_sees_them(view, device):
    a = view(np.arange(120, dtype=np.float32).reshape(10, 12))
    np.testing.assert_array_equal(np.asarray(jax.device_put(a, device)), a)


def test_devices_describe_themselves(device):
    assert device.platform == "tessera"
    assert device.id == 0 and device.process_index == 0 and not hasattr(device, "slice_index")
    assert list(device.coords) == [0, 0, 0] and device.core_on_chip == 0
    kinds = {m.kind for m in device.addressable_memories()}
    assert {"device", "pinned_host", "unpinned_host"} <= kinds
    assert device.default_memory().kind == "device"


def test_memory_stats_follow_a_buffer(device, eventually):
    def added():
        """By an array of 4 MiB, and what is left of that when it is gone."""
        before = device.memory_stats()
        x = jax.device_put(np.zeros(1 << 20, np.float32), device)
        jax.block_until_ready(x)
        during = device.memory_stats()
        assert during["peak_bytes_in_use"] >= during["bytes_in_use"]
        assert during["bytes_limit"] > during["bytes_in_use"]
        assert during["largest_free_block_bytes"] > 0 and during["num_allocs"] > 0
        del x
        gc.collect()
        after = device.memory_stats()
        return [s["bytes_in_use"] - before["bytes_in_use"] for s in (during, after)]
    # What earlier tests ran may be let go of between two readings.
    eventually(lambda: added() == [4 << 20, 0])


SLOW = jax.jit(lambda x: jax.lax.fori_loop(0, 4000, lambda i, x: jnp.sin(x) + 1, x))


def test_results_that_are_dropped_take_memory_once(device, eventually):
    """Work that runs later may write where earlier work has yet to write for nobody."""
    x = jax.device_put(np.zeros(1 << 18, np.float32), device)
    f = jax.jit(lambda x: x + 1)
    small = jax.device_put(np.ones(4096, np.float32), device)
    f(x), SLOW(small).block_until_ready()

    def taken():
        """By 50 launches while another program runs; all of it, if that ends too early."""
        before = device.memory_stats()["bytes_in_use"]
        busy = SLOW(small)
        for _ in range(50):
            r = f(x)
        during = device.memory_stats()["bytes_in_use"]
        is_early = busy.is_ready()
        r.block_until_ready()
        return 50 if is_early else (during - before) / x.nbytes
    eventually(lambda: 1 <= taken() <= 3)


@pytest.mark.parametrize("kind", ["device", "pinned_host"])
def test_content_lasts_while_memory_is_used_again(kind, device):
    """Results that are kept, dropped, read and donated behind work that takes long."""
    place = jax.sharding.SingleDeviceSharding(device, memory_kind=kind)
    x = jax.device_put(np.arange(1 << 16, dtype=np.float32), place)
    f = jax.jit(lambda x: x + 1, in_shardings=place, out_shardings=place)
    g = jax.jit(lambda x: x + 1, in_shardings=place, out_shardings=place, donate_argnums=0)
    two = jax.jit(lambda x: (x + 1, x + 2), in_shardings=place, out_shardings=place)
    small = jax.device_put(np.ones(4096, np.float32), device)
    was_busy = 0
    for turn in range(20):
        busy, kept, y, n = SLOW(small), [], x, 0
        for i in range(60):
            if i % 5 == 3:
                y, z = two(y)
                kept.append((z, n + 2))
                n += 1
            else:
                y = (g if i % 7 == 5 and y is not kept[-1][0] else f)(y)
                n += 1
                if i % 4 == 0:
                    kept.append((y, n))
                    y = f(y)
                    n += 1
            if i % 11 == 0:
                y.copy_to_host_async()
            if i % 13 == 0:
                late = jax.device_put(np.full(1 << 16, i, np.float32), place)
                kept.append((late, None))
        was_busy += not busy.is_ready()
        for z, n in kept:
            want = np.asarray(x) + n if n is not None else np.asarray(z)[:1].repeat(1 << 16)
            np.testing.assert_array_equal(z, want)
        if was_busy == 3:
            break
    assert was_busy


def test_donation_reuses_the_argument(device):
    x = jax.device_put(np.ones((256, 256), np.float32), device)
    y = jax.jit(lambda a: a * 2 + 1, donate_argnums=0)(x)
    jax.block_until_ready(y)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), 3)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_donated_memory_is_read_before_it_is_written(device):
    x = jax.device_put(np.arange(1000, dtype=np.float32), device)
    y = jax.jit(lambda a: a[::-1] + a, donate_argnums=0)(x)
    np.testing.assert_array_equal(np.asarray(y), 999)


def test_deleted_array_says_so(device):
    x = jax.device_put(np.ones(4), device)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_dispatch_does_not_wait_for_the_work(device):
    x = jax.device_put(np.ones((1024, 1024), np.float32), device)
    f = jax.jit(lambda a: jax.lax.fori_loop(0, 200, lambda i, b: jnp.tanh(b @ a) * 1e-3, a))
    y = f.lower(x).compile()(x)
    assert not y.is_ready()
    jax.block_until_ready(y)
    assert y.is_ready()


def test_too_large_an_allocation_names_request_and_owners(device):
    keep = jax.device_put(np.zeros(1 << 20, np.float32), device)
    with pytest.raises(jax.errors.JaxRuntimeError) as e:
        jax.block_until_ready(jax.jit(lambda: jnp.zeros((1 << 38,), jnp.float32))())
    text = str(e.value)
    assert text.startswith("RESOURCE_EXHAUSTED")
    for word in (str(1 << 40), "free", "largest"):
        assert word in text
    np.testing.assert_array_equal(np.asarray(keep[:3]), 0)


def test_unsupported_custom_call_is_refused_by_name(device):
    call = jax.ffi.ffi_call("my_unknown_target", jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND.*my_unknown_target"):
        jax.jit(lambda x: call(x))(np.ones(4, np.float32))


def test_compiled_program_survives_serialization(device):
    from jax.experimental import serialize_executable
    x = jax.device_put(np.arange(6, dtype=np.float32), device)
    compiled = jax.jit(lambda a: jnp.sin(a) + a).lower(x).compile()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=[device])
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(again(x)))


def test_cost_and_memory_analysis_answer(device):
    x = jax.device_put(np.ones((64, 64), np.float32), device)
    compiled = jax.jit(lambda a: a @ a).lower(x).compile()
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    assert cost["flops"] == pytest.approx(2 * 64 ** 3, rel=0.1)
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 64 * 64 * 4
    assert memory.output_size_in_bytes == 64 * 64 * 4


def test_moves_between_memory_kinds(device):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    there = jax.device_put(jax.device_put(x, device), host)
    assert there.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(there), x)
    back = jax.device_put(there, jax.sharding.SingleDeviceSharding(device))
    np.testing.assert_array_equal(np.asarray(back), x)


def run_python(code, **env):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=120, env=dict(os.environ, JAX_PLATFORMS="tessera,cpu", **env))


def test_several_devices_in_one_process_compute_apart():
    r = run_python("""
import jax, numpy as np
d = jax.devices("tessera")
assert [x.id for x in d] == [0, 1, 2, 3], d
assert len({tuple(x.coords) for x in d}) == 4
f = jax.jit(lambda a: a * 2)
for i, x in enumerate(d):
    y = f(jax.device_put(np.full(5, i, np.float32), x))
    assert y.devices() == {x} and float(y[0]) == 2 * i
moved = jax.device_put(jax.device_put(np.arange(5), d[0]), d[3])
assert moved.devices() == {d[3]} and int(moved[4]) == 4
print("fine")
""", TESSERA_SIM="devices=4,hbm=256M")
    assert r.stdout.strip() == "fine", r.stderr[-2000:]


def test_program_past_its_deadline_is_stopped_and_named():
    r = run_python("""
import jax, jax.numpy as jnp
def spin(x):
    return jax.lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0, jnp.sin(c[1])), (x, x))
try:
    jax.block_until_ready(jax.jit(spin)(jnp.float32(1)))
except jax.errors.JaxRuntimeError as e:
    print(e)
print("after", int(jax.jit(lambda a: a + 1)(jnp.int32(1))))
""", TESSERA_LIMIT_MS="500")
    assert r.stdout.startswith("DEADLINE_EXCEEDED"), r.stdout + r.stderr[-2000:]
    assert "spin" in r.stdout
    assert r.stdout.rstrip().endswith("after 2"), r.stdout


def test_result_of_a_program_that_failed_is_no_argument_of_the_next():
    r = run_python("""
import jax, jax.numpy as jnp
def spin(x):
    return jax.lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0, jnp.sin(c[1])),
                              (x[0, 0], x))[1]
y = jax.jit(spin)(jnp.ones((300, 300)))
for use in (lambda a: a, jax.block_until_ready, jax.jit(lambda a: a * 2), lambda a: a):
    try:
        print("got", float(use(y)[0, 0]))
    except jax.errors.JaxRuntimeError as e:
        print("raised", str(e)[:17])
""", TESSERA_LIMIT_MS="300")
    lines = r.stdout.split("\n")[:4]
    # The first may be dropped behind the one that fails.
    assert lines[0].startswith("raised ") and lines[1:] == ["raised DEADLINE_EXCEEDED"] * 3, \
        r.stdout + r.stderr[-2000:]


def test_cache_serves_a_second_process_and_survives_damage(tmp_path):
    code = """
import jax, numpy as np
print(float(jax.jit(lambda a: (a * 3).sum())(np.arange(5, dtype=np.float32))))
"""
    env = {"TESSERA_CACHE": "on", "TESSERA_CACHE_DIR": str(tmp_path)}
    assert run_python(code, **env).stdout.strip() == "30.0"
    entries = [p for p in pathlib.Path(tmp_path).rglob("*") if p.is_file()]
    assert entries
    assert run_python(code, **env).stdout.strip() == "30.0"
    for p in entries:
        p.write_bytes(p.read_bytes()[:-40] + b"\xff" * 40)
    assert run_python(code, **env).stdout.strip() == "30.0"


def test_xla_smi_sees_this_process(device):
    build = os.environ.get("TESSERA_BUILD", "build/opt")
    smi = pathlib.Path(__file__).resolve().parents[2] / build / "xla-smi"
    if not smi.exists():
        pytest.skip(f"{smi} is not built")
    import json
    import time
    x = jax.block_until_ready(jax.device_put(np.zeros(1 << 20, np.float32), device))
    for _ in range(20):     # the page follows within its period
        told = json.loads(subprocess.run([smi, "--json"], capture_output=True, text=True,
                                         check=True).stdout)
        mine = [p for p in told["processes"] if p["pid"] == os.getpid()]
        if mine and mine[0]["memory_used_bytes"] >= x.nbytes:
            break
        time.sleep(0.1)
    assert mine and mine[0]["memory_used_bytes"] >= x.nbytes
    assert any(d["is_model"] for d in told["devices"])


@pytest.mark.parametrize("name", ["residual", "gated", "recurrent", "qr", "svd", "expm"])
def test_what_a_product_reads_is_used_after_it_too(name, device):
    def recurrent(a):
        def step(h, x):
            h = jnp.sin(h)
            return jnp.tanh(h @ a + h + x), h
        return jax.lax.scan(step, a, jnp.stack([a, a]))
    f = {"residual": lambda a: (lambda y: y @ y + y)(jnp.tanh(a)),
         "gated": lambda a: (lambda h: h * (h @ a))(jnp.tanh(a)),
         "recurrent": recurrent,
         "qr": lambda a: jnp.linalg.qr(a[:1, :1]),
         "svd": lambda a: jnp.linalg.svd(a[:, :1], full_matrices=False)[1],
         "expm": jax.grad(lambda a: jax.scipy.linalg.expm(a * 0.01).sum())}[name]
    a = np.random.default_rng(0).standard_normal((48, 48)).astype(np.float32)
    with jax.default_device(jax.devices("cpu")[0]):
        want = jax.jit(f)(a)
    got = jax.jit(f)(jax.device_put(a, device))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y),
                                                         rtol=1e-4, atol=1e-4), got, want)


@pytest.mark.parametrize("f", [lambda x: None, lambda x: (), lambda x: {}, lambda x: [[], {}]])
def test_programs_without_results_run(f, device):
    x = jax.device_put(np.ones(4, np.float32), device)
    assert jax.jit(f)(x) == f(x)
    assert jax.jit(f, keep_unused=True)(x) == f(x)
    compiled = jax.jit(f).lower(x).compile()
    assert compiled(x) == f(x)
    assert compiled.memory_analysis().output_size_in_bytes == 0


def test_messages_name_what_the_user_wrote(device):
    def body(a, b):
        return jax.lax.while_loop(lambda v: v < a, lambda v: v + 1, b)
    with pytest.raises(jax.errors.JaxRuntimeError) as e:
        jax.jit(lambda x: jax.lax.reduce(x, np.float32(0), body, (0,)))(
            jax.device_put(np.ones(4, np.float32), device))
    text = str(e.value)
    assert "while" in text and "test_behaviour.py" in text and "tc." not in text, text


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_scatter_into_nothing_changes_nothing(shape, n, device):
    x = jnp.zeros(shape)
    y = jax.jit(lambda x, i, v: x.at[i].add(v))(x, jnp.zeros(n, int), jnp.ones((n, *shape[1:])))
    assert y.shape == shape


def test_nobody_is_warned_of_the_platform():
    r = subprocess.run([sys.executable, "-c", "import jax; print(jax.devices()[0].platform)"],
                       capture_output=True, text=True, timeout=300,
                       env=os.environ | {"JAX_PLATFORMS": "tessera", "TESSERA_SIM": "lanes=1"})
    assert r.stdout.strip() == "tessera" and "experimental" not in r.stderr, r.stderr


def test_hints_to_other_compilers_are_left_out(device):
    from jax.experimental.shard_alike import shard_alike

    def f(x):
        y = x + 1
        jax.lax.dce_sink(y, prevent_mlir_dce=True)
        return shard_alike(x, y * 2)

    a, b = jax.jit(f)(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(a, [0, 1, 2, 3])
    np.testing.assert_array_equal(b, [2, 4, 6, 8])


def test_candidates_of_an_approximate_top_k_are_not_brought_down_when_not_asked(device):
    x = np.random.default_rng(1).permutation(24).reshape(3, 8).astype(np.float32)
    values, places = jax.jit(lambda x: jax.lax.approx_max_k(x, 4, aggregate_to_topk=False))(x)
    assert values.shape[1] >= 4
    np.testing.assert_array_equal(np.sort(values)[:, -4:], np.sort(x)[:, -4:])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 1), values)


def test_exported_factorisations_run(device):
    x = np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32)
    f = jax.jit(lambda x: jnp.linalg.svd(x, compute_uv=False))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    np.testing.assert_array_equal(jax.export.export(f)(shape).call(x), f(x))


@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((0, 0), (1, 1)), ((-1, 2), (3, -2))])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 20])
def test_windows_leave_padding_out(n, padding, dilation, device, cpu):
    x = np.arange(1, 36, dtype=np.float32).reshape(5, 7) % 5

    def f(*xs):
        return jax.lax.reduce_window(
            xs, (np.float32(3),) * n, lambda a, b: tuple(u * v for u, v in zip(a, b)),
            (1, 2), (1, 2), padding, base_dilation=dilation, window_dilation=(1, 2))

    args = [x + i for i in range(n)]
    got, want = (jax.jit(f)(*jax.device_put(args, d)) for d in (device, cpu))
    np.testing.assert_array_equal(got, want)


def test_a_large_window_over_many_arrays_that_need_each_other_is_refused(device):
    def f(*xs):
        return jax.lax.reduce_window(
            xs, (np.float32(3),) * 9, lambda a, b: tuple(u + v for u, v in zip(a, b[1:] + b[:1])),
            (17, 17), (1, 1), "VALID")

    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*over 9 arrays"):
        jax.jit(f)(*[np.ones((20, 20), np.float32)] * 9)
