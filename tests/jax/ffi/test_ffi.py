# SPDX-License-Identifier: Apache-2.0
"""Functions of the host by XLA's typed FFI: as JAX's CPU backend calls them."""

import ctypes
import os
import pathlib
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PLAIN = ("scale describe attributes sum_and_signs first_plus_one count fail asks stream "
         "later wants").split()
STAGES = "instantiate", "prepare", "initialize", "execute"


def capsule(fn):
    return jax.ffi.pycapsule(ctypes.cast(fn, ctypes.c_void_p).value)


@pytest.fixture(scope="session")
def lib(tmp_path_factory):
    """Compiled as a user compiles it, by the headers that JAX brings."""
    so = tmp_path_factory.mktemp("ffi") / "functions.so"
    source = pathlib.Path(__file__).parent / "functions.cc"
    subprocess.run(["c++", "-std=c++17", "-O1", "-fPIC", "-shared", "-I", jax.ffi.include_dir(),
                    source, "-o", so], check=True, timeout=600)
    lib = ctypes.CDLL(str(so))
    for name in ("count_so_far", "made_alive", "ready_alive", "prepared_so_far"):
        getattr(lib, name).restype = ctypes.c_int64
    for name in ("made_id", "made_info", "ready_id", "ready_info"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name in PLAIN:
        for platform in ("tessera", "cpu"):
            jax.ffi.register_ffi_target(f"test.{name}", capsule(getattr(lib, name)),
                                        platform=platform)
    for kind in ("made", "ready"):
        jax.ffi.register_ffi_type(f"test.{kind}", {
            "type_id": jax.ffi.pycapsule(getattr(lib, f"{kind}_id")()),
            "type_info": jax.ffi.pycapsule(getattr(lib, f"{kind}_info")())}, platform="tessera")
    jax.ffi.register_ffi_target("test.stateful", {
        s: capsule(getattr(lib, f"stateful_{s}")) for s in STAGES}, platform="tessera")
    jax.ffi.register_ffi_target("test.unprepared", {
        "prepare": capsule(lib.unprepared), "execute": capsule(lib.first_plus_one)},
                                platform="tessera")
    return lib


@pytest.fixture(params=["tessera", "cpu"])
def on(request, lib):
    """A test that runs on both must see the same on both."""
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


def like(x, dtype="float32"):
    return jax.ShapeDtypeStruct(np.shape(x), dtype)


def scale(x, by, **kwargs):
    return jax.ffi.ffi_call("test.scale", like(x), vmap_method="broadcast_all", **kwargs)(
        x, by=np.float32(by))


def text(array):
    return bytes(np.asarray(array)).rstrip(b"\0").decode()


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 4), (257, 33)])
def test_arrays_go_to_and_fro(on, shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    np.testing.assert_array_equal(jax.jit(lambda x: scale(x + 1, 3) - 1)(x),
                                  (x + 1) * np.float32(3) - 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "float16", "bfloat16", "float32", "complex64",
                                   "float8_e4m3fn", "float8_e5m2"])
def test_any_array_is_seen_as_it_is(lib, dtype):
    x = np.asarray(jnp.asarray(np.arange(6).reshape(2, 3) % 2, dtype))

    def see(x, y):
        return jax.ffi.ffi_call("test.describe", jax.ShapeDtypeStruct((600,), "uint8"))(x, y)
    seen = [text(jax.jit(see)(*(jax.device_put(v, jax.devices(p)[0]) for v in (x, x[0]))))
            for p in ("tessera", "cpu")]
    assert seen[0] == seen[1] and ":2,3," in seen[0] and ":3," in seen[0]


def test_layouts_are_those_asked_for(on):
    x = np.arange(24, dtype="uint8").reshape(2, 3, 4)

    def see(x, order):
        return jax.ffi.ffi_call("test.describe", jax.ShapeDtypeStruct((200,), "uint8"),
                                input_layouts=[order])(x)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        seen = text(jax.jit(see, static_argnums=1)(x, order))
        want = " ".join(str(v) for v in x.transpose(order).ravel())
        assert seen == f"6:2,3,4, {want};"


def test_results_lie_as_asked_for(on):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    got = jax.jit(lambda x: jax.ffi.ffi_call(
        "test.scale", like(x), input_layouts=[(0, 1)], output_layouts=(1, 0))(
            x, by=np.float32(1)))(x)
    np.testing.assert_array_equal(got, x.reshape(3, 2).T)


def test_attributes_of_every_kind(on):
    with jax.enable_x64(True):
        got = jax.jit(lambda: jax.ffi.ffi_call("test.attributes",
                                               jax.ShapeDtypeStruct((300,), "uint8"))(
            b=True, i32=np.int32(-3), i64=np.int64(1 << 40), u8=np.uint8(200),
            f32=np.float32(1.5), f64=np.float64(-0.25), text="täxt",
            ints=np.arange(4, dtype="int64"), floats=np.full((2, 2), 0.5, "float32"),
            bytes=np.zeros(0, "uint8"), more={"name": "inside", "inner": np.int32(7)}))()
    assert text(got) == ("1 -3 1099511627776 200 1.500000 -0.250000 täxt 0,1,2,3, "
                         "0.500000,0.500000,0.500000,0.500000,  7 inside")


def test_a_missing_or_wrong_attribute_is_the_functions_to_refuse(on):
    x = np.ones(3, "float32")
    for attributes in ({}, {"by": np.int32(1)}, {"by": np.float32(1), "other": "x"}):
        with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)INVALID_ARGUMENT.*(attr|scalar)"):
            jax.jit(lambda x: jax.ffi.ffi_call("test.scale", like(x))(x, **attributes))(
                x).block_until_ready()


def test_several_results(on):
    x = np.array([[1, -2, 0], [3, 4, -5]], "float32")
    total, signs = jax.jit(lambda x: jax.ffi.ffi_call("test.sum_and_signs", (
        jax.ShapeDtypeStruct((), "float32"), like(x, "int32")))(x))(x)
    assert total == 1
    np.testing.assert_array_equal(signs, np.sign(x))


def test_a_result_in_its_operand(on):
    f = jax.jit(lambda x: jax.ffi.ffi_call("test.first_plus_one", like(x),
                                           input_output_aliases={0: 0})(x))
    x = jnp.arange(5, dtype="float32")
    np.testing.assert_array_equal(f(x), [1, 1, 2, 3, 4])
    np.testing.assert_array_equal(x, np.arange(5))
    with pytest.raises(jax.errors.JaxRuntimeError, match="not one memory"):
        jax.jit(lambda x: jax.ffi.ffi_call("test.first_plus_one", like(x))(x))(
            x).block_until_ready()


def test_effects_are_kept_and_others_not(on, lib):
    def calls(has_side_effect):
        before = lib.count_so_far()

        def f(x):
            jax.ffi.ffi_call("test.count", (), has_side_effect=has_side_effect)()
            return x + 1
        jax.block_until_ready(jax.jit(f)(np.float32(1)))
        return lib.count_so_far() - before
    assert calls(True) == 1
    assert calls(False) == 0


def test_loops_and_branches(on, lib):
    before = lib.count_so_far()

    @jax.jit
    def f(x):
        def body(i, x):
            jax.ffi.ffi_call("test.count", (), has_side_effect=True)()
            return jax.lax.cond(i % 2 == 0, lambda x: scale(x, 0.5), lambda x: x + 1, x)
        x = jax.lax.fori_loop(0, 100, body, x)
        _, ys = jax.lax.scan(lambda c, y: (scale(c, 0.5), c + y), x, jnp.zeros((4, 2)))
        return ys
    want = np.full(2, -1.0)
    for i in range(100):
        want = want * 0.5 if i % 2 == 0 else want + 1
    got = f(np.full(2, -1, "float32"))
    np.testing.assert_allclose(got, [want * 0.5 ** i for i in range(4)], rtol=1e-6)
    assert lib.count_so_far() == before + 100


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all"])
def test_vmap(on, method):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    f = jax.vmap(lambda x: jax.ffi.ffi_call("test.scale", like(x), vmap_method=method)(
        x, by=np.float32(2)))
    np.testing.assert_array_equal(jax.jit(f)(x), 2 * x)


def test_grad_through_a_rule_of_its_own(on):
    @jax.custom_jvp
    def twice(x):
        return scale(x, 2)
    twice.defjvp(lambda primals, tangents: (twice(*primals), scale(tangents[0], 2)))
    got = jax.jit(jax.jacfwd(lambda x: twice(x) ** 2))(np.array([3, 4], "float32"))
    np.testing.assert_array_equal(got, np.diag([24, 32]))


CODES = {3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 8: "RESOURCE_EXHAUSTED", 13: "INTERNAL",
         15: "DATA_LOSS", 16: "UNAUTHENTICATED"}


@pytest.mark.parametrize("code", CODES)
def test_errors_come_with_code_and_text_and_the_next_program_runs(on, code):
    f = jax.jit(lambda x: jax.ffi.ffi_call("test.fail", like(x))(
        x, code=np.int32(code), text="what the function says") * 2)
    for _ in range(3):
        with pytest.raises(jax.errors.JaxRuntimeError) as e:
            f(np.float32([-1, 2])).block_until_ready()
        assert CODES[code] in str(e.value) and "what the function says" in str(e.value)
        np.testing.assert_array_equal(f(np.float32([1, 2])), [2, 4])


def test_long_texts_come_whole(on):
    long = "begin " + "0123456789 " * 300 + "end"
    f = jax.jit(lambda x: jax.ffi.ffi_call("test.fail", like(x))(x, code=np.int32(3), text=long))
    with pytest.raises(jax.errors.JaxRuntimeError, match=long):
        f(np.float32([-1])).block_until_ready()


def test_an_error_in_a_loop_ends_it(on, lib):
    @jax.jit
    def f(x):
        def body(i, x):
            jax.ffi.ffi_call("test.count", (), has_side_effect=True)()
            return jax.ffi.ffi_call("test.fail", like(x))(x, code=np.int32(9),
                                                          text="no more") - 1
        return jax.lax.fori_loop(0, 10, body, x)
    before = lib.count_so_far()
    with pytest.raises(jax.errors.JaxRuntimeError, match="no more"):
        f(np.float32([2])).block_until_ready()
    if on == "tessera":     # the CPU's thunks need not stand in the program's order
        assert lib.count_so_far() == before + 4
    np.testing.assert_array_equal(f(np.float32([20])), [10])


def test_a_function_that_takes_its_time(on):
    f = jax.jit(lambda x: jax.ffi.ffi_call("test.later", like(x))(x) + 1)
    np.testing.assert_array_equal(f(np.float32([1, 2])), [2, 3])
    with pytest.raises(jax.errors.JaxRuntimeError, match="DATA_LOSS.*lost on a thread"):
        f(np.float32([-1])).block_until_ready()
    np.testing.assert_array_equal(f(np.float32([5])), [6])


def test_what_a_function_may_ask(lib):
    with jax.enable_x64(True):
        f = jax.jit(lambda: jax.ffi.ffi_call("test.asks", jax.ShapeDtypeStruct((4,), "int64"),
                                             has_side_effect=True)())
        first, second = np.asarray(f()), np.asarray(f())
    assert first[0] == 45 and first[1] == 1 and first[3] == 0
    assert second[2] > first[2]


def test_the_stream_is_refused_by_name(lib):
    with pytest.raises(jax.errors.JaxRuntimeError, match="no stream of the device"):
        jax.jit(lambda x: jax.ffi.ffi_call("test.stream", like(x))(x))(
            np.ones(2, "float32")).block_until_ready()


def test_user_data_that_nobody_gave_is_named(lib):
    """What was given is tests/unit/pjrt/pjrt_ffi_test.c's: JAX gives none."""
    with pytest.raises(jax.errors.JaxRuntimeError, match="no user data of type test.made"):
        jax.jit(lambda x: jax.ffi.ffi_call("test.wants", like(x))(x))(
            np.ones(2, "float32")).block_until_ready()


def test_stages_and_state(lib, eventually):
    """One state for each place in a program, another for each run, none left behind."""
    f = jax.jit(lambda x: [jax.ffi.ffi_call("test.stateful", like(x))(x, by=np.float32(by))
                           for by in (2, 3)])
    x = np.float32([10, 0, 0])
    prepared = lib.prepared_so_far()
    a, b = (np.asarray(v) for v in f(x))
    assert lib.made_alive() == 2 and lib.prepared_so_far() == prepared + 2
    assert [a[0], a[1], b[0], b[1]] == [20, 1, 30, 1]
    c, d = (np.asarray(v) for v in f(x))
    assert [c[0], c[1], d[0], d[1]] == [20, 2, 30, 2]
    assert {a[2], b[2]}.isdisjoint({c[2], d[2]})
    assert lib.made_alive() == 2
    del f
    jax.clear_caches()
    eventually(lambda: lib.made_alive() == 0 and lib.ready_alive() == 0)


def test_what_fails_before_its_function_writes_to_nobody_elses_memory(lib):
    """Its part before the call waits in the queue, behind a longer program, when it fails."""
    x = jnp.full(1 << 16, 20, "float32")

    @jax.jit
    def fails(x):
        y = x * 2 + 1
        return y, jax.ffi.ffi_call("test.unprepared", like(x))(y)
    fails = fails.lower(x).compile()
    long = jax.jit(lambda m: jax.lax.fori_loop(0, 2000, lambda i, m: jnp.sin(m @ m * 0.001), m))
    m = jnp.ones((256, 256))
    long(m).block_until_ready()
    running = long(m)
    with pytest.raises(jax.errors.JaxRuntimeError, match="can not be prepared"):
        fails(x)[1].block_until_ready()
    others = [jax.device_put(np.full(x.shape, 7, "float32")) for _ in range(8)]
    running.block_until_ready()
    (x + 1).block_until_ready()
    for other in others:
        np.testing.assert_array_equal(other, np.full(x.shape, 7))


def test_a_place_that_can_not_be_made_fails_the_compile(lib, eventually):
    with pytest.raises(jax.errors.JaxRuntimeError, match="OUT_OF_RANGE.*by is negative"):
        jax.jit(lambda x: jax.ffi.ffi_call("test.stateful", like(x))(x, by=np.float32(-1))).lower(
            np.ones(3, "float32")).compile()
    eventually(lambda: lib.made_alive() == 0)


def test_who_is_not_registered_is_named(on):
    with pytest.raises(jax.errors.JaxRuntimeError, match="test.nobody"):
        jax.jit(lambda x: jax.ffi.ffi_call("test.nobody", like(x))(x))(np.ones(2, "float32"))


def test_what_is_no_attribute_is_named(lib):
    with pytest.raises(jax.errors.JaxRuntimeError, match='"test.scale".*attribute "by".*list'):
        jax.jit(lambda x: jax.ffi.ffi_call("test.scale", like(x))(x, by=(1, 2)))(
            np.ones(2, "float32"))


class Frame(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class Metadata(ctypes.Structure):      # the version stands behind three sizes
    _fields_ = [("before", ctypes.c_size_t * 3), ("major", ctypes.c_int), ("minor", ctypes.c_int)]


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Frame))
def from_the_future(frame):
    said = ctypes.c_void_p.from_address(frame.contents.extension + 24).value
    metadata = Metadata.from_address(said)
    metadata.major, metadata.minor = 7, 1
    return None


def test_registering_says_what_is_wrong(lib):
    one = capsule(lib.scale)
    jax.ffi.register_ffi_target("test.scale", one, platform="tessera")     # the same again
    with pytest.raises(ValueError, match='another function.*"test.scale"'):
        jax.ffi.register_ffi_target("test.scale", capsule(lib.count), platform="tessera")
    with pytest.raises(ValueError, match="api_version"):
        jax.ffi.register_ffi_target("test.old", one, platform="tessera", api_version=0)
    with pytest.raises(ValueError, match="launch"):
        jax.ffi.register_ffi_target("test.stages", {"execute": one, "launch": one},
                                    platform="tessera")
    with pytest.raises(ValueError, match="execute"):
        jax.ffi.register_ffi_target("test.stages", {"initialize": one}, platform="tessera")
    with pytest.raises(ValueError, match="compiled for version 7.1 of"):
        jax.ffi.register_ffi_target("test.future", capsule(from_the_future), platform="tessera")


def test_eight_threads(on):
    f = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, lambda i, x: scale(x, 1) + 1, x))
    failed = []

    def run(k):
        for _ in range(5):
            if f(20, np.float32([k])) != k + 20:
                failed.append(k)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_a_serialized_program_calls_again(lib):
    from jax.experimental import serialize_executable
    x = np.arange(3, dtype="float32")
    f = jax.jit(lambda x: scale(x, 4) + 1)
    loaded = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(f.lower(x).compile()))
    np.testing.assert_array_equal(loaded(x), 4 * x + 1)


ON_DEVICES = """
import ctypes, sys, jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
lib = ctypes.CDLL(sys.argv[1])
for name in ("scale", "fail", "asks"):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.cast(
        getattr(lib, name), ctypes.c_void_p).value), platform="tessera")
mesh = jax.make_mesh((4,), ("d",))
cut = NamedSharding(mesh, P("d"))
like = lambda x: jax.ShapeDtypeStruct(x.shape, "float32")
scale = lambda x: jax.ffi.ffi_call("scale", like(x))(x, by=np.float32(3))
whole = np.arange(16, dtype="float32").reshape(8, 2)
x = jax.device_put(whole, cut)
shard = lambda f, out=P("d"): jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=out,
                                                    check_vma=False))
f = shard(lambda x: scale(x) + jax.lax.psum(scale(x), "d"))
y = whole * 3
np.testing.assert_array_equal(f(x), y + np.tile(y.reshape(4, 2, 2).sum(0), (4, 1)))
loop = shard(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jax.lax.ppermute(
    scale(x), "d", [(k, (k + 1) % 4) for k in range(4)]), x))
np.testing.assert_array_equal(loop(x), np.roll(27 * whole, 6, 0))
# outside of a shard_map: of the whole arrays
np.testing.assert_array_equal(jax.jit(lambda x: scale(x).sum(0))(x), y.sum(0))
with jax.enable_x64(True):
    who = shard(lambda x: jax.ffi.ffi_call("asks", jax.ShapeDtypeStruct((4,), "int64"))())
    asked = np.asarray(who(x)).reshape(4, 4)
assert asked[:, 3].tolist() == [0, 1, 2, 3], asked
assert len(set(asked[:, 2])) == 1, asked
fail = shard(lambda x: jax.lax.psum(jax.ffi.ffi_call("fail", like(x))(
    x, code=np.int32(3), text="one member says no"), "d"), P())
bad = jax.device_put(whole - 3, cut)
for _ in range(2):
    try:
        fail(bad).block_until_ready()
    except jax.errors.JaxRuntimeError as e:
        assert "one member says no" in str(e), e
    else:
        raise SystemExit("no error")
    np.testing.assert_array_equal(fail(x), whole.reshape(4, 2, 2).sum(0))
print("right")
"""


def test_several_devices(lib):
    r = subprocess.run([sys.executable, "-c", ON_DEVICES, lib._name], timeout=600, text=True,
                       env=os.environ | {"TESSERA_SIM": "devices=4,lanes=1,hbm=256M"},
                       capture_output=True)
    assert r.stdout == "right\n", r.stderr[-3000:]
