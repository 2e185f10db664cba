# SPDX-License-Identifier: Apache-2.0
"""One process of a job of test_processes.py: main.py RANK OF CHIPS FIRST PORT DIR WHAT.

It has CHIPS chips of the server in DIR, those from FIRST + RANK * CHIPS on, and prints one line of
JSON for each thing it did. WHAT: train, tools, other_order, alone_after_kill, left_after_kill,
runs_ahead, goes_on, forks; unmade, made; raise, exit, finally, or one of these and _new: how
process WHO ends, which comes last then; struck: WHO is the chip that something happens to, and
behind it stands the process that then ends by the error, if one does.
"""

import hashlib
import itertools
import json
import os
import signal
import sys
import traceback

RANK, N, CHIPS, FIRST, PORT = map(int, sys.argv[1:6])
DIR, WHAT = sys.argv[6:8]
_mine = FIRST + RANK * CHIPS
os.environ["TESSERA_DEVICES"] = ",".join(f"vfio-user:{DIR}/{_mine + i}.sock"
                                         for i in range(CHIPS))
if WHAT == "unmade" and RANK == int(sys.argv[8]):
    os.environ["TESSERA_DEVICES"] = f"vfio-user:{DIR}/none.sock"
os.environ["JAX_PLATFORMS"] = "tessera,cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402


def say(**facts):
    print(json.dumps(facts), flush=True)


def spread(mesh, x, spec):
    s = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(x.shape, s, lambda where: x[where])


def digest(*arrays):
    return hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in arrays)).hexdigest()


def whole(x):
    return multihost_utils.process_allgather(x, tiled=True) if N > 1 else np.asarray(x)


def mesh_of_all(*shape):
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def training(weights):
    """The losses of steps of two layers over all devices, as arrays, without end."""
    mesh = mesh_of_all(2, N * CHIPS // 2)
    rng = np.random.default_rng(0)

    def array(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def loss(w, x, y):
        return jnp.mean((jax.nn.relu(x @ w[0]) @ w[1] - y) ** 2)

    def step(w, x, y):
        value, g = jax.value_and_grad(loss)(w, x, y)
        return [a - 0.1 * b for a, b in zip(w, g)], value

    step = jax.jit(step, donate_argnums=0)
    w = [spread(mesh, 0.1 * array(64, 128), P(None, "model")),
         spread(mesh, 0.1 * array(128, 32), P("model", None))]
    while True:
        w, value = step(w, spread(mesh, array(32, 64), P("data")),
                        spread(mesh, array(32, 32), P("data")))
        weights[:] = w
        yield value


def train():
    """Thirty steps: the bits of the weights and losses at the end."""
    w = []
    losses = [float(v) for v in list(itertools.islice(training(w), 30))]
    say(first=losses[0], last=losses[-1], bits=digest(losses, *map(whole, w)))


def struck():
    """Trains until it fails, when chip WHO was struck; then with what is left."""
    import time
    y = spread(mesh_of_all(N * CHIPS, 1), np.ones(12 * N * CHIPS, np.float32), P("data"))
    of_all = jax.jit(lambda v: (v * v).sum())
    float(of_all(y))
    steps = training([])
    for _ in range(3):
        float(next(steps))
    say(trains=True)
    try:
        while True:
            float(next(steps))
    except (jax.errors.JaxRuntimeError, ValueError) as e:
        say(at=time.monotonic(), error=str(e))
        if sys.argv[9:] == [str(RANK)]:
            raise Left("struck") from e
    left = [d for d in jax.devices() if d.id != int(sys.argv[8])]
    if sys.argv[9:]:
        time.sleep(0.5)
        began = time.monotonic()
        say(error=_error_of(lambda: sum_over(left)), seconds=time.monotonic() - began)
    else:
        sum_over(left)
        say(error=_error_of(lambda: float(of_all(y))))
        sum_over(left)
        refuse_new(y, int(sys.argv[8]) // CHIPS)


def refuse_new(y, owner):
    """A program that the owner of the chip that died cannot even make, and never launches."""
    import time
    told = os.path.join(DIR, f"told-{PORT}")
    began = time.monotonic()
    if RANK != owner:
        say(error=_error_of(lambda: float(jax.jit(lambda v: (v + v).sum())(y))),
            seconds=time.monotonic() - began)
        with open(told, "w", encoding="utf-8"):
            pass
    while not os.path.exists(told):
        time.sleep(0.01)


def tools():
    """What JAX documents for several processes."""
    devices = jax.devices()
    say(ids=[d.id for d in devices], process=[d.process_index for d in devices],
        local=[d.local_hardware_id for d in devices], index=jax.process_index(),
        count=jax.process_count(), own=[d.id for d in jax.local_devices()])
    mesh = mesh_of_all(N * CHIPS, 1)
    rows = NamedSharding(mesh, P("data"))
    mine = np.arange(3 * CHIPS, dtype=np.float32).reshape(CHIPS, 3) + 100 * RANK
    x = jax.make_array_from_process_local_data(rows, mine)
    total = jax.jit(jnp.sum)(x)
    psum = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a, "data"), mesh=mesh,
                                 in_specs=P("data"), out_specs=P()))(x)
    turned = jax.jit(jax.shard_map(
        lambda a: jax.lax.ppermute(a, "data", [(i, (i + 1) % (N * CHIPS))
                                               for i in range(N * CHIPS)]),
        mesh=mesh, in_specs=P("data"), out_specs=P("data")))(x)
    say(total=float(total), psum=np.asarray(psum.addressable_data(0)).tolist(),
        turned=whole(turned).tolist(), gathered=whole(x).tolist(),
        told=multihost_utils.broadcast_one_to_all(np.arange(3) + 7 * RANK).tolist(),
        put=np.asarray(jax.device_put(np.arange(4.0), NamedSharding(mesh, P()))
                       .addressable_data(0)).tolist())
    multihost_utils.sync_global_devices("done")


def _sums(mesh):
    x = spread(mesh, np.ones((8 * N * CHIPS, 4), np.float32), P("data"))
    return x, jax.jit(lambda a: a.sum()), jax.jit(lambda a: a.max())


def _error_of(*fns):
    try:
        for fn in fns:
            fn()
    except (jax.errors.JaxRuntimeError, ValueError) as e:     # a launch that is refused is either
        return str(e)
    return None


def leave():
    """Without the coordinator's farewell, which waits for all; it ends last, since its end
    aborts the others."""
    if RANK == 0:
        sys.stdin.read()
    os._exit(0)


def other_order():
    x, add, most = _sums(mesh_of_all(N * CHIPS, 1))
    float(add(x)), float(most(x))
    first, second = (add, most) if RANK else (most, add)
    say(error=_error_of(lambda: [jax.block_until_ready(first(x)),
                                 jax.block_until_ready(second(x))]))
    say(alone=float(jnp.arange(5.0).sum()))
    leave()


def alone_after_kill():
    import time
    x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
    float(add(x))
    if RANK == N - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    say(error=_error_of(lambda: jax.block_until_ready(add(x)),
                        lambda: jax.block_until_ready(add(x))),
        seconds=time.monotonic() - began)
    say(alone=float(jnp.arange(5.0).sum()))
    leave()


def left_after_kill():
    """A mesh of the devices of those that are left, launched as often as it is refused."""
    x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
    float(add(x))
    if RANK == N - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    say(error=_error_of(lambda: jax.block_until_ready(add(x)),
                        lambda: jax.block_until_ready(add(x))))
    sum_over(jax.devices()[:(N - 1) * CHIPS])
    leave()


def sum_over(left):
    """Three sums over these devices, launched as often as one is refused."""
    mesh = jax.sharding.Mesh(np.array(left), ("data",), axis_types=(AxisType.Auto,))
    y = spread(mesh, np.arange(12.0 * len(left), dtype=np.float32), P("data"))
    total, sums, refused = jax.jit(jnp.sum), [], []
    while len(sums) < 3:
        try:
            sums.append(float(total(y * (len(sums) + 1))))
        except (jax.errors.JaxRuntimeError, ValueError) as e:
            refused.append(str(e))
            if len(refused) > 5:
                raise
    say(sums=sums, refused=len(refused))


def runs_ahead():
    """Process WHO is at its end when the others begin with what it launched."""
    import time
    x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
    whole = float(add(x))
    if RANK != int(sys.argv[8]):
        time.sleep(1)
    values = [add(x) for _ in range(20)]
    if RANK != int(sys.argv[8]):
        say(right=[float(v) for v in values] == [whole] * 20)


def goes_on():
    """With what it has loaded, behind JAX's own end of the job."""
    x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
    whole = float(add(x))
    jax.distributed.shutdown()
    say(right=[float(add(x)) for _ in range(20)] == [whole] * 20)


def forks():
    """Process WHO, whose child ends as programs do while the others go on."""
    x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
    whole = float(add(x))
    if RANK == int(sys.argv[8]):
        pid = os.fork()
        if not pid:
            signal.alarm(60)
            sys.exit(7)
        say(child=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    say(right=[float(add(x)) for _ in range(20)] == [whole] * 20)


def ends_first():
    """Process WHO, by an error when it makes its client, or behind that, with nothing launched."""
    import time
    began = time.monotonic()
    if RANK == int(sys.argv[8]):
        jax.devices()
        raise Left("early")
    try:
        x, add, _ = _sums(mesh_of_all(N * CHIPS, 1))
        jax.block_until_ready(add(x))
    except RuntimeError as e:
        say(error=str(e), seconds=time.monotonic() - began)


class Left(Exception):
    pass


def one_ends():
    """As a user's program ends; the other waits for it in a program, or a new one."""
    import time
    x, add, most = _sums(mesh_of_all(N * CHIPS, 1))
    float(add(x))
    how, _, new = WHAT.partition("_")
    if RANK == int(sys.argv[8]):
        say(ready=True)
        if how == "exit":
            sys.exit(0)
        try:
            raise Left("as of\ntwo lines")
        finally:
            if how == "finally":
                jax.distributed.shutdown()
    time.sleep(0.5)
    began = time.monotonic()
    say(error=_error_of(lambda: jax.block_until_ready((most if new else add)(x))),
        seconds=time.monotonic() - began)
    say(alone=float(jnp.arange(5.0).sum()))


if N > 1:
    jax.distributed.initialize(f"127.0.0.1:{PORT}", N, RANK)
if len(sys.argv) > 8 or WHAT == "goes_on":      # these end by themselves
    {"runs_ahead": runs_ahead, "goes_on": goes_on, "forks": forks, "unmade": ends_first,
     "made": ends_first, "struck": struck}.get(WHAT, one_ends)()
    sys.exit(0)
try:
    {"train": train, "tools": tools, "other_order": other_order,
     "alone_after_kill": alone_after_kill, "left_after_kill": left_after_kill}[WHAT]()
except BaseException:   # an ordinary end would wait for all others
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)
