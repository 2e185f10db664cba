# SPDX-License-Identifier: Apache-2.0
"""JAX on 8 linked devices, with Shardy and with GSPMD: each case of devices/cases.py beside JAX's
CPU backend with as many; what is refused; the example for several chips."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from devices.cases import CASES
from devices.counted import PROGRAMS as COUNTED
from devices.loops import NAME as LOOPS
from devices.shown import PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TESSERA_BUILD", HERE.parents[1] / "build/opt"))
EXAMPLE = HERE.parents[1] / "runtime/python/examples/spmd_transformer.py"
# GSPMD has no word for them.
ONLY_SHARDY = {"explicit_axes", "sums_that_are_left_in_parts"}
PARTITIONERS = ("shardy", "gspmd")


def run(code, sim="devices=8,hbm=512M", timeout=600, **env):
    if "check" in os.environ.get("TESSERA_SIM", ""):
        sim += ",check"
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu", TESSERA_SIM=sim) | env
    return subprocess.run([sys.executable, *code], capture_output=True, text=True,
                          timeout=timeout, env=env, cwd=HERE)


@pytest.fixture(scope="module")
def results():
    """By partitioner: what is wrong with each case."""
    all_of = {}

    def get(partitioner):
        if partitioner not in all_of:
            r = run([str(HERE / "devices/cases.py")],
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


def wrong_in(file):
    r = run([str(HERE / file)])
    return dict(json.loads(x) for x in r.stdout.splitlines() if x.startswith("[")), r.stderr[-2000:]


@pytest.fixture(scope="module")
def wrong_when_shown():
    return wrong_in("devices/shown.py")


@pytest.fixture(scope="module")
def wrong_when_counted():
    return wrong_in("devices/counted.py")


@pytest.fixture(scope="module")
def wrong_when_dropped():
    return wrong_in("devices/dropped.py")


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_program_shows_is_what_its_members_run(wrong_when_shown, name):
    wrong, said = wrong_when_shown
    assert name in wrong, said
    assert not wrong[name], wrong[name]


@pytest.mark.parametrize("name", COUNTED)
def test_members_meet_no_more_often_and_get_no_more_bytes_than_with_xla(wrong_when_counted, name):
    wrong, said = wrong_when_counted
    assert name in wrong, said
    assert not wrong[name], wrong[name]


def test_collectives_in_loops_of_several_threads_are_right():
    wrong, said = wrong_in("devices/loops.py")
    assert wrong == {LOOPS: ""}, f"{wrong}\n{said}"


@pytest.mark.parametrize("way", ["sum", "permute", "all_to_all", "alone"])
def test_results_take_memory_of_dropped_ones_though_a_device_is_behind(wrong_when_dropped, way):
    """Members that are ahead send to it, and what it has queued still reads there."""
    wrong, said = wrong_when_dropped
    assert way in wrong, said
    assert not wrong[way], wrong[way]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_programs_of_the_corpus_give_on_a_random_mesh_what_one_device_gives(partitioner):
    is_shardy = partitioner == "shardy"
    r = run([str(HERE / "devices/random_meshes.py"), "--part", "0/6" if is_shardy else "1/6"],
            JAX_USE_SHARDY_PARTITIONER=str(int(is_shardy)))
    lines = [json.loads(x) for x in r.stdout.splitlines()]
    assert not lines[:-1]
    assert r.returncode == 0 and lines[-1] > 80, r.stderr[-2000:]


CALLBACKS = """
import jax, numpy as np, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
m = jax.sharding.Mesh(np.array(jax.devices("tessera")[:4]), "x")
s = NamedSharding(m, P("x"))
x = np.arange(8, dtype="float32")
a = jax.device_put(x, s)

# Of the whole array, once.
def whole(a):
    jax.debug.print("whole {}", a.sum())
    y, z = jax.pure_callback(lambda v: (v + 1, v.sum()), (a, jnp.float32(0)), a)
    return y * 2 + z
y = jax.jit(whole, out_shardings=s)(a)
np.testing.assert_array_equal(y, (x + 1) * 2 + x.sum())
assert y.sharding == s

# Of each part; and of one of them, which the others wait for.
def part(a):
    y = jax.pure_callback(lambda v: v + v.size, a, a)
    t = jax.lax.psum(y, "x")
    def tell(t):
        jax.debug.print("member 2 {}", t)
        return t * 2
    t = jax.lax.cond(jax.lax.axis_index("x") == 2, tell, lambda t: t * 2, t)
    return y + jax.lax.psum(t, "x")
f = jax.jit(jax.shard_map(part, mesh=m, in_specs=P("x"), out_specs=P("x"), check_vma=False))
p = x.reshape(4, 2) + 2
for _ in range(3):
    np.testing.assert_array_equal(f(a), (p + p.sum(0) * 8).reshape(8))

def bad(a):
    def fail(v):
        raise ValueError("boo")
    call = lambda a: jax.pure_callback(fail, a, a)
    return jax.lax.psum(jax.lax.cond(jax.lax.axis_index("x") == 1, call, lambda a: a, a), "x")
g = jax.jit(jax.shard_map(bad, mesh=m, in_specs=P("x"), out_specs=P(), check_vma=False))
try:
    jax.block_until_ready(g(a))
except jax.errors.JaxRuntimeError as e:
    print("boo" in str(e))
np.testing.assert_array_equal(f(a), (p + p.sum(0) * 8).reshape(8))
jax.effects_barrier()
print("end")
"""


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_callbacks_in_what_meets(partitioner):
    r = run(["-c", CALLBACKS], JAX_USE_SHARDY_PARTITIONER=str(int(partitioner == "shardy")))
    assert sorted(r.stdout.splitlines()) == ["True", "end"] + 4 * ["member 2 [20. 24.]"] + \
        ["whole 28.0"], r.stdout + r.stderr[-3000:]


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


PBROADCAST = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("d",))
x = np.arange(24, dtype="float32").reshape(8, 3)
f = jax.shard_map(lambda x: jax.lax.pbroadcast(x * 2, "d", 2), mesh=mesh, in_specs=P("d"),
                  out_specs=P("d"), check_vma=False)
cut = jax.device_put(x, NamedSharding(mesh, P("d")))
np.testing.assert_array_equal(jax.jit(f)(cut), np.tile(2 * x[4:6], (4, 1)))
"""


def test_what_one_member_has_goes_to_all():
    """JAX's CPU backend has no pbroadcast to compare with."""
    r = run(["-c", PBROADCAST], "devices=4,lanes=1,hbm=256M", 300)
    assert r.returncode == 0, r.stderr[-2000:]


LAST_OF_EQUALS = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("d",))
x = np.array([0] + 7 * [-1], "float32")

def later(a, b):
    is_b = b[0] >= a[0]
    return jnp.where(is_b, b[0], a[0]), jnp.where(is_b, b[1], a[1])

f = jax.jit(lambda x: lax.reduce((x, jnp.arange(1, 9)), (np.float32(0), np.int32(0)), later, (0,)))
assert f(jax.device_put(x, NamedSharding(mesh, P("d"))))[1] == 1
"""


def test_what_a_reduction_begins_with_is_none_of_what_members_find():
    """Where the later of equals is taken, it is equal to the first member's and not later."""
    r = run(["-c", LAST_OF_EQUALS], "devices=4,lanes=1,hbm=256M", 300)
    assert r.returncode == 0, r.stderr[-2000:]


FULL_RING = """
import threading, time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("d",))
cut = NamedSharding(mesh, P("d"))
n, launched = 1500, [0]

def host(x):
    seen = -1       # member 1 answers when no launch comes through any more
    while x[0] >= 4 and launched[0] != seen:
        seen = launched[0]
        time.sleep(0.5)
    return x

def member(x):
    return jax.lax.psum(jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x), "d")

meet = jax.jit(jax.shard_map(member, mesh=mesh, in_specs=P("d"), out_specs=P()))
x = y = jax.device_put(jnp.arange(8.0), cut)
step = jax.jit(lambda x: x + 1)
step(meet(x) * 0 + 1).block_until_ready()
met = []
thread = threading.Thread(target=lambda: met.append(np.asarray(meet(x))))
thread.start()
for launched[0] in range(n):
    y = step(y)
thread.join()
np.testing.assert_array_equal(met[0], [4, 6, 8, 10])
np.testing.assert_array_equal(y, np.arange(8.0) + n)
"""


def test_who_waits_for_a_full_ring_keeps_nobody_from_emptying_it():
    """A member waits for another, whose function of the host runs meanwhile, and launches behind
    the first fill its ring."""
    r = run(["-c", FULL_RING], "devices=2,hbm=256M", 120)
    assert r.returncode == 0, r.stderr[-2000:]


FAILS_APART = """
import threading
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("x", "y"))
cut = P(("x", "y"))
failed = threading.Event()

def host(a):
    if a[0] == 2:
        failed.wait()
    if a[0] == 3:
        threading.Timer(0.5, failed.set).start()    # later than the others wait
        raise ValueError("boo")
    return np.asarray(a) + 1

def member(a):      # 0, which calls nothing, waits for 2, and 1 for 3
    b = jax.lax.cond(a[0] == 0, lambda a: a + 1, lambda a: jax.pure_callback(host, a, a), a)
    return jax.lax.psum(b, "x")

f = jax.jit(jax.shard_map(member, mesh=mesh, in_specs=cut, out_specs=cut, check_vma=False))
try:
    f(jax.device_put(np.arange(4.0, dtype="float32"), NamedSharding(mesh, cut))).block_until_ready()
except jax.errors.JaxRuntimeError as e:
    print("boo" in str(e))
y = f(jax.device_put(np.arange(4.0, 8, dtype="float32"), NamedSharding(mesh, cut)))
print(np.asarray(y))
"""


def test_who_waits_for_a_member_that_was_not_served_any_more_fails():
    """It does not meet the one whose function failed."""
    r = run(["-c", FAILS_APART], "devices=4,hbm=256M", 120)
    assert r.stdout.splitlines() == ["True", "[12. 14. 12. 14.]"], r.stdout + r.stderr[-2000:]


# A program of members that meet, each of which calls host with a part of [0, 1].
MEETS = """
import sys, threading, time
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
devices = jax.devices("tessera")
add = jax.jit(lambda x: x + 1)

def meet(host, devices):
    mesh = jax.make_mesh((2,), "d", devices=devices)

    def member(a):
        return jax.lax.psum(jax.pure_callback(host, a, a), "d")
    f = jax.jit(jax.shard_map(member, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False))
    return f(jax.device_put(np.arange(2.0, dtype="float32"), NamedSharding(mesh, P("d"))))
"""

LAUNCHES_WITHIN = MEETS + """
where = devices[int(sys.argv[1])]

def host(a):
    return np.asarray(add(jax.device_put(np.asarray(a), where))) if a[0] else np.asarray(a) + 1

try:
    print(np.asarray(meet(host, devices[:2])))
except jax.errors.JaxRuntimeError as e:
    print("FAILED_PRECONDITION: jit__lambda is launched by a function of the host" in str(e))
"""


@pytest.mark.parametrize("where, result", [("0", "True"), ("1", "[3.]"), ("2", "[3.]")])
def test_a_member_s_function_launches_where_nobody_waits_for_it(where, result):
    """Member 1's: on its own device and on one beside, but not behind the other member."""
    r = run(["-c", LAUNCHES_WITHIN, where], "devices=3,hbm=256M", 120)
    assert r.stdout.splitlines() == [result], r.stdout + r.stderr[-2000:]


STOPPED_BEFORE = MEETS + """
stopped, met, go = threading.Event(), threading.Event(), threading.Event()
n, launched = 1500, [0]

def alone(x):
    stopped.set()
    go.wait()
    return np.asarray(x)

def host(x):
    if x[0]:
        met.set()
        seen = -1
        while launched[0] != seen:
            seen = launched[0]
            time.sleep(0.5)
        go.set()
        time.sleep(0.5)     # the other program is to go on meanwhile
        jax.device_put(np.ones(3), devices[0])
    return np.asarray(x)

y = jax.device_put(np.float32(0), devices[0])
a = jax.jit(lambda x: jax.pure_callback(alone, x, x))(add(y))
stopped.wait()
b = meet(host, devices)
met.wait()
for launched[0] in range(n):
    y = add(y)
print(a, b, y)
"""


def test_what_goes_on_behind_a_full_ring_does_not_lock_its_device():
    """Member 0 waits in front of the full ring for 1, whose function needs memory of device 0."""
    r = run(["-c", STOPPED_BEFORE], "devices=2,hbm=256M", 120)
    assert r.stdout == "1.0 [1.] 1500.0\n", r.stdout + r.stderr[-2000:]


DEFERRED = MEETS + """
go, met, queued = threading.Event(), threading.Event(), threading.Event()

def alone(x):
    go.wait()
    return np.asarray(x)

def host(x):
    if not x[0]:
        return np.asarray(x)
    met.set()
    queued.wait()
    go.set()
    time.sleep(1)       # what waited for it fills the ring
    return np.asarray(product(square))[0, :1]

product = jax.jit(lambda x: x @ x)
square = jax.device_put(np.ones((1500, 1500), "float32"), devices[1])
y = jax.device_put(np.float32(1), devices[2])
y = jax.device_put(jax.jit(lambda x: jax.pure_callback(alone, x, x))(y), devices[0])
a = meet(host, devices[:2])
met.wait()
z = [add(y) for i in range(1500)]
queued.set()
print(a, sum(z[1:], z[0]))
"""


def test_deferred_launches_keep_no_copy_waiting_for_a_full_ring():
    """The copy is what member 1's function waits for, and member 0 for that, at the ring's head."""
    r = run(["-c", DEFERRED], "devices=3,hbm=256M", 120)
    assert r.stdout == "[1500.] 3000.0\n", r.stdout + r.stderr[-2000:]


LAUNCHES_BELOW = MEETS + """
where = devices[int(sys.argv[2])]

def inner(a):
    return np.asarray(add(jax.device_put(np.asarray(a), where))) if a.any() else np.asarray(a)

alone = jax.jit(lambda x: jax.pure_callback(inner, x, x))
one = jax.device_put(np.ones(1, "float32"), devices[2])
below = {"meets": lambda: meet(inner, devices[2:4]), "alone": lambda: alone(one)}[sys.argv[1]]

def outer(a):
    return np.asarray(below()) if a[0] else np.asarray(a)

try:
    print(np.asarray(meet(outer, devices[:2])))
except jax.errors.JaxRuntimeError as e:
    print("FAILED_PRECONDITION: jit__lambda is launched by a function of the host" in str(e))
"""


@pytest.mark.parametrize("below", ["meets", "alone"])
@pytest.mark.parametrize("where, result", [("0", "True"), ("1", "[2.]"), ("4", "[2.]")])
def test_a_function_of_a_function_s_program_does_not_launch_behind_who_waits_for_it(
        below, where, result):
    """Member 1's function of the outer program waits for it."""
    r = run(["-c", LAUNCHES_BELOW, below, where], "devices=5,hbm=256M", 120)
    assert r.stdout.splitlines() == [result], r.stdout + r.stderr[-2000:]


LAUNCHES_CROSSWISE = MEETS + """
one, other, queued = threading.Event(), threading.Event(), threading.Event()

def add_on(a, device):
    return add(jax.device_put(np.asarray(a), device))

def wait(mine, others, a, device):
    if a[0]:
        mine.set()
        others.wait()
        return np.asarray(add_on(a, device))
    return np.asarray(a)

def first(a):       # on device 2, whose member has stopped: ends at once
    if a[0]:
        other.wait()
        a = np.asarray(add_on(a, devices[2]))
        one.set()
        queued.wait()
    return np.asarray(a)

def second(a):      # member 0
    if not a[0]:
        other.set()
        one.wait()
        b = add_on(a, devices[0])
        queued.set()
        a = b
    return np.asarray(a)

if sys.argv[1] == "wait":
    results = (meet(lambda a: wait(one, other, a, devices[2]), devices[:2]),
               meet(lambda a: wait(other, one, a, devices[0]), devices[2:]))
else:
    results = meet(first, devices[:2]), meet(second, devices[2:])
refused = 0
for r in results:
    try:
        print(np.asarray(r))
    except jax.errors.JaxRuntimeError as e:
        refused += "FAILED_PRECONDITION: jit__lambda is launched by a function" in str(e)
print(refused)
"""


@pytest.mark.parametrize("how, lines", [("wait", ["1"]), ("end", ["[2.]", "[2.]", "0"])])
def test_functions_of_two_programs_do_not_launch_behind_each_other_s_members(how, lines):
    """The one that comes last would wait for itself, but not where the first one's has ended. What
    was launched behind the one that fails fails with it."""
    r = run(["-c", LAUNCHES_CROSSWISE, how], "devices=4,hbm=256M", 120)
    assert r.stdout.splitlines() == lines, r.stdout + r.stderr[-2000:]


ROWS_IN_A_LOOP = """
import sys, jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

def on(platform):
    mesh = jax.sharding.Mesh(np.array(jax.devices(platform)[:4]), "x")
    x = np.arange(64 * 512, dtype="f4").reshape(64, 512)
    x = jax.device_put(x, NamedSharding(mesh, P("x")))
    def take(x):
        return lax.fori_loop(0, 10, lambda i, c: c / 2 + lax.dynamic_index_in_dim(
            x, i * 6, 0, False), jnp.zeros(512))
    def put(x):
        return lax.fori_loop(0, 62, lambda i, x: lax.dynamic_update_slice(
            x, jnp.full((3, 512), i, "f4"), (i, 0)), x)
    f = jax.jit({"take": take, "put": put}[sys.argv[1]]).lower(x).compile()
    return np.asarray(f(x)), f.memory_analysis().temp_size_in_bytes

there, (here, temp) = on("cpu")[0], on("tessera")
np.testing.assert_allclose(here, there, rtol=1e-5)
print(temp)
"""


@pytest.mark.parametrize("how", ["take", "put"])
def test_a_loop_over_rows_that_lie_on_members_does_not_copy_a_member_s_part(how):
    """Each time: of 32 KiB, for a row or three of 2 KiB."""
    r = run(["-c", ROWS_IN_A_LOOP, how], "devices=4,hbm=256M", 120,
            XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert r.returncode == 0, r.stderr[-2000:]
    assert int(r.stdout) < 32 << 10
