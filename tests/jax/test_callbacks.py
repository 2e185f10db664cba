# SPDX-License-Identifier: Apache-2.0
"""Functions of the host, called by programs of the device: as JAX's CPU backend calls them."""

import functools
import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback
from jax.experimental.buffer_callback import ExecutionStage, buffer_callback


@pytest.fixture(params=["tessera", "cpu"])
def on(request):
    """A test that runs on both must see the same on both."""
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


def shape_of(x):
    return jax.ShapeDtypeStruct(np.shape(x), jnp.result_type(x))


@pytest.mark.parametrize("dtype", ["bool", "int4", "uint8", "int32", "float16", "bfloat16",
                                   "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 4), (257, 33)])
def test_any_array_goes_to_and_fro(on, dtype, shape):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 2, shape), dtype)
    seen = []

    def host(a):
        seen.append(np.array(a))
        return a
    y = jax.jit(lambda x: jax.pure_callback(host, shape_of(x), x.T.T))(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    if 0 not in shape:      # without results the CPU calls nothing
        assert seen[0].dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(seen[0]), np.asarray(x))


def test_many_operands_and_results(on):
    def host(*xs):
        return [x + i for i, x in enumerate(xs)], {"sum": np.float32(sum(x.sum() for x in xs))}
    xs = [jnp.full((i + 1,), i, "float32") for i in range(12)]
    shapes = [shape_of(x) for x in xs], {"sum": jax.ShapeDtypeStruct((), "float32")}
    got, total = jax.jit(lambda *xs: jax.pure_callback(host, shapes, *[x * 2 for x in xs]))(*xs)
    for i, (g, x) in enumerate(zip(got, xs)):
        np.testing.assert_array_equal(g, x * 2 + i)
    assert total["sum"] == sum(float((x * 2).sum()) for x in xs)


def test_views_and_constants_are_sent_dense(on):
    seen = []

    @jax.jit
    def f(x):
        io_callback(lambda *a: seen.extend(np.array(v) for v in a), None, x.T, x[::-1, 1::2],
                    jnp.broadcast_to(x[0], (3, 6)), jnp.arange(4), jnp.ones((2, 2)), x)
        return x + 1
    x = np.arange(24, dtype="float32").reshape(4, 6)
    np.testing.assert_array_equal(f(x), x + 1)
    jax.effects_barrier()
    want = [x.T, x[::-1, 1::2], np.broadcast_to(x[0], (3, 6)), np.arange(4), np.ones((2, 2)), x]
    assert len(seen) == len(want)
    for s, w in zip(seen, want):
        np.testing.assert_array_equal(s, w)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_loop_of_a_thousand_turns_prints_in_order(on, ordered, capsys):
    @jax.jit
    def f(n):
        def body(i, s):
            jax.debug.print("turn {i} {s}", i=i, s=s, ordered=ordered)
            return s + 2
        return jax.lax.fori_loop(0, n, body, 1)
    assert f(1000) == 2001
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == [f"turn {i} {1 + 2 * i}" for i in range(1000)]


def test_launches_print_in_order(on, capsys):
    f = jax.jit(lambda x: jax.debug.print("{}", x))
    for i in range(50):
        f(i)
    jax.effects_barrier()
    assert capsys.readouterr().out.split() == [str(i) for i in range(50)]


def test_while_cond_and_scan(on):
    seen = []

    @jax.jit
    def f(x):
        def cond(s):
            return io_callback(lambda v: np.bool_(v < 5), jax.ShapeDtypeStruct((), "bool"), s[0])

        def body(s):
            i, a = s
            a = jax.lax.cond(i % 2 == 0,
                             lambda a: jax.pure_callback(np.sin, shape_of(x), a),
                             lambda a: a + io_callback(lambda v: seen.append(int(v)) or
                                                       np.float32(v), jax.ShapeDtypeStruct(
                                                           (), "float32"), i), a)
            return i + 1, a
        _, a = jax.lax.while_loop(cond, body, (0, x))
        return jax.lax.scan(lambda c, y: (jax.pure_callback(
            lambda c, y: c + y, shape_of(x), c, y), c.sum()), a, jnp.stack([x, x, x]))
    x = np.arange(4, dtype="float32")
    want = x
    for i in range(5):
        want = np.sin(want) if i % 2 == 0 else want + np.float32(i)
    got, sums = jax.block_until_ready(f(x))
    assert seen == [1, 3]
    np.testing.assert_allclose(got, want + 3 * x, rtol=1e-6)
    np.testing.assert_allclose(sums, [(want + i * x).sum() for i in range(3)], rtol=1e-5)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap(on, method):
    calls = []

    def host(x, y):
        calls.append(np.shape(x))
        return np.asarray(x) * np.asarray(y)
    x, y = np.arange(6, dtype="float32"), np.float32(3)

    @jax.jit
    def f(x):
        return jax.vmap(lambda a: jax.pure_callback(host, jax.ShapeDtypeStruct((), "float32"), a, y,
                                                    vmap_method=method))(x)
    np.testing.assert_array_equal(f(x), x * 3)
    assert calls == ([()] * 6 if method == "sequential" else [(6,)])


def test_grad_through_a_rule_of_its_own(on):
    @jax.custom_vjp
    def sine(x):
        return jax.pure_callback(np.sin, shape_of(x), x)
    sine.defvjp(lambda x: (sine(x), x),
                lambda x, g: (g * jax.pure_callback(np.cos, shape_of(x), x),))
    x = np.linspace(0, 1, 7, dtype="float32")
    got = jax.jit(jax.grad(lambda x: (sine(x) ** 2).sum()))(x)
    np.testing.assert_allclose(got, np.sin(2 * x), rtol=1e-5)
    # jax.debug.callback is called in both directions of a remat.
    seen = []

    @jax.checkpoint
    def g(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return jnp.sin(x) * x
    jax.jit(jax.grad(g))(2.0)
    jax.effects_barrier()
    assert seen == [2.0, 2.0]


def test_ordered_calls_of_several_programs(on):
    log = []
    f = jax.jit(lambda x: io_callback(lambda v: log.append(("f", int(v))), None, x, ordered=True))
    g = jax.jit(lambda x: io_callback(lambda v: log.append(("g", int(v))), None, x, ordered=True))
    for i in range(20):
        f(i)
        g(i)
    jax.effects_barrier()
    assert log == [(n, i) for i in range(20) for n in "fg"]


def test_donation_and_results_in_place(on):
    @functools.partial(jax.jit, donate_argnums=0)
    def f(x):
        y = jax.pure_callback(lambda a: a * 2, shape_of(x), x)
        return x.at[3].set(y[1])
    x = jnp.arange(8.0)
    for _ in range(10):
        x = f(x)
    np.testing.assert_array_equal(x, [0, 1, 2, 2, 4, 5, 6, 7])


def test_a_function_may_use_jax():
    """On the device too, with functions again; the CPU backend would wait for ever."""
    device = jax.devices("tessera")[0]
    inner = jax.jit(lambda x: jax.pure_callback(lambda a: a + 1, shape_of(x), x) * 2)

    def host(x):
        with jax.default_device(device):
            return np.asarray(inner(jnp.asarray(np.asarray(x)))) + np.asarray(jnp.sin(jnp.zeros(3)))
    y = jax.jit(lambda x: jax.pure_callback(host, shape_of(x), x))(jnp.ones(3))
    np.testing.assert_array_equal(y, [4, 4, 4])


def test_exceptions_reach_the_caller(on):
    def host(x):
        if x > 3:
            raise ValueError(f"{x} is more than three")
        return x
    f = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), "int32"), x) + 1)
    assert f(3) == 4
    for i in range(20):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError),
                           match="4 is more than three"):
            f(4).block_until_ready()
        assert f(i % 4) == i % 4 + 1


def test_a_function_fails_at_a_random_moment(eventually):
    """200 times: in any turn of a loop, while other threads' loops run. Each failure is its
    caller's alone, the others' results are right, and it stays at the memory of the device and
    the threads of the host that a few of them take."""
    device = jax.devices("tessera")[0]
    rng = np.random.default_rng(0)
    turns, rounds, users = 40, 50, 4

    def host(fails_in, i, x):
        if i == fails_in:
            raise ValueError(f"turn {fails_in} fails")
        return x + 1

    @jax.jit
    def f(fails_in, x):
        return jax.lax.fori_loop(0, turns, lambda i, x: jax.pure_callback(
            host, shape_of(x), fails_in, i, x) * 1, x)
    wrong = []

    def user(moments):
        for k, moment in enumerate(moments):
            x = jax.device_put(np.full(1 << 10, k, "int32"), device)
            try:
                jax.block_until_ready(f(jnp.int32(moment), x))
                wrong.append(f"turn {moment} did not fail")
            except jax.errors.JaxRuntimeError as e:
                if f"turn {moment} fails" not in str(e):
                    wrong.append(str(e))
            if not (np.asarray(f(jnp.int32(-1), x)) == k + turns).all():
                wrong.append(f"{k}: another result")

    def in_use():
        return device.memory_stats()["bytes_in_use"], len(os.listdir("/proc/self/task"))

    def use(rounds):
        threads = [threading.Thread(target=user, args=(moments,), daemon=True)
                   for moments in rng.integers(0, turns, (users, rounds))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(600)
            assert not t.is_alive(), "it hangs"
        assert not wrong, wrong[:5]
    use(5)
    before = []     # until it is quiet
    eventually(lambda: before.append(in_use()) or len(before) > 20 and len(set(before[-20:])) == 1)
    use(rounds)
    eventually(lambda: all(now <= then + of_users for now, then, of_users in
                           zip(in_use(), before[-1], (0, users))))


def test_long_texts_come_whole(on):
    text = "begin " + "0123456789 " * 300 + "end"

    def host(x):
        raise ValueError(text)
    f = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), "float32"), x))
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=text):
        f(1.0).block_until_ready()


def test_what_is_wrong_with_a_result_is_said(on):
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.zeros(3, "float32"),
                                            jax.ShapeDtypeStruct((2,), "float32"), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output shape"):
        f(1.0).block_until_ready()


def test_checkify(on):
    def f(x):
        checkify.check(x > 0, "x is {x}", x=x)
        return jnp.log(x)
    err, y = jax.jit(checkify.checkify(f))(-2.0)
    with pytest.raises(checkify.JaxRuntimeError, match="x is -2"):
        err.throw()
    with pytest.raises(ValueError, match="not functionalized"):
        jax.jit(f)(1.0)


def test_eight_threads(on):
    """10,000 calls."""
    def host(i, x):
        return x + i
    f = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, lambda i, x: jax.pure_callback(
        host, shape_of(x), i, x), x))
    failed = []

    def run(k):
        for _ in range(25):
            if f(50, jnp.int32(k)) != k + 1225:
                failed.append(k)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_what_the_compiler_removes(on):
    """Nothing that calls: results that nobody wants, loops and branches without any."""
    seen = []

    def note(x):
        io_callback(lambda v: seen.append(int(v)), None, x)

    @jax.jit
    def f(n):
        io_callback(lambda v: seen.append(int(v)) or np.int32(v), jax.ShapeDtypeStruct(
            (), "int32"), n)
        jax.lax.fori_loop(0, n, lambda i, s: (note(i + 10), s)[1], 0)
        jax.lax.cond(n > 1, lambda: note(20), lambda: note(21))
        return n
    f(2)
    jax.effects_barrier()
    assert sorted(seen) == [2, 10, 11, 20]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_buffer_callbacks_fill_their_results(on, method):
    seen = []

    def host(ctx, out, x, *, add):
        seen.append((x.shape, x.dtype, x.ndim, x.writeable, out["sum"].writeable, ctx.stage))
        np.asarray(out["sum"])[...] = np.asarray(x) + np.from_dlpack(add)
        np.asarray(out["first"])[...] = np.asarray(x)[..., :1]
    x = np.arange(6, dtype="float32").reshape(2, 3)
    f = buffer_callback(host, {"sum": jax.ShapeDtypeStruct((3,), "float32"),
                               "first": jax.ShapeDtypeStruct((1,), "float32")},
                        vmap_method=method)
    got = jax.jit(jax.vmap(lambda x: f(x, add=jnp.ones_like(x))))(x)
    np.testing.assert_array_equal(got["sum"], x + 1)
    np.testing.assert_array_equal(got["first"], x[:, :1])
    shape = (3,) if method == "sequential" else (2, 3)
    assert seen == [(shape, np.dtype("float32"), len(shape), False, True,
                     ExecutionStage.EXECUTE)] * (2 if method == "sequential" else 1)


def test_a_buffer_callback_in_place(on):
    def host(ctx, out, x):
        np.asarray(out)[0] += 10        # the rest is x's
    f = jax.jit(buffer_callback(host, jax.ShapeDtypeStruct((3,), "float32"),
                                input_output_aliases={0: 0}))
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(f(x), [10, 1, 2])
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_a_buffer_callback_returns_nothing(on):
    f = jax.jit(buffer_callback(lambda ctx, out, x: 3, jax.ShapeDtypeStruct((3,), "float32")))
    with pytest.raises(jax.errors.JaxRuntimeError, match="must not return any values"):
        f(jnp.arange(3.0)).block_until_ready()


def test_a_buffer_callback_has_no_stream_of_the_device():
    with jax.default_device(jax.devices("tessera")[0]):
        f = jax.jit(buffer_callback(lambda ctx, out, x: ctx.stream,
                                    jax.ShapeDtypeStruct((3,), "float32")))
        with pytest.raises(jax.errors.JaxRuntimeError, match="no stream of the device"):
            f(jnp.arange(3.0)).block_until_ready()


IN_THE_MIDDLE = """
import os, sys, threading, time, jax, jax.numpy as jnp, numpy as np
how = sys.argv[1]
inside, go_on = threading.Event(), threading.Event()
def host(x):
    inside.set()
    if how == "never":
        threading.Event().wait()
    if how != "return":
        go_on.wait(5)
    return x
y = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), "float32"), x))(1.0)
inside.wait()
if how == "raise":
    go_on.set()
    raise SystemExit(3)
if how in ("never", "exit"):
    print("inside", flush=True)
    os._exit(4)
if how == "thread":
    threading.Timer(0.2, go_on.set).start()
"""


@pytest.mark.parametrize("how, code", [("return", 0), ("raise", 3), ("exit", 4), ("never", 4),
                                       ("thread", 0)])
def test_a_process_ends_in_the_middle(how, code):
    r = subprocess.run([sys.executable, "-c", IN_THE_MIDDLE, how], timeout=120,
                       env=os.environ | {"TESSERA_SIM": "lanes=1"}, capture_output=True, text=True)
    assert r.returncode == code, r.stderr
    assert "Fatal" not in r.stderr and "terminate" not in r.stderr
