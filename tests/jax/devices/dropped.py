# SPDX-License-Identifier: Apache-2.0
"""Results that are dropped behind work of one device that takes long. Prints for each way to send
["name", what is wrong] with what queued work reads there, with what members send to where it
reads, or with the memory that it takes; "" if nothing is."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

LATE = 3            # the device that is behind
N = 1 << 18         # elements of a device's part
TURNS = [1500 << i for i in range(10)]  # ever more, until a device is behind for long enough

MESH = Mesh(np.array(jax.devices("tessera")[:8]), "x")
ROWS = NamedSharding(MESH, P("x"))
RING = [(i, (i + 1) % 8) for i in range(8)]


def on_members(f):
    return jax.jit(jax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False))


FIRST = on_members(lambda a: a + lax.ppermute(a, "x", RING))
WAYS = {
    "sum": (lambda a: lax.psum(a, "x"), lambda a: np.tile(a.reshape(8, -1).sum(0), 8)),
    "permute": (lambda a: lax.ppermute(a, "x", RING), lambda a: np.roll(a, N)),
    "all_to_all": (lambda a: lax.all_to_all(a, "x", 0, 0, tiled=True),
                   lambda a: a.reshape(8, 8, -1).swapaxes(0, 1).ravel()),
    "alone": (lambda a: a * 2, lambda a: a * 2),
}


@jax.jit
def read_late(a, turns):
    """What a holds, some time from now."""
    slow = lax.fori_loop(0, turns, lambda i, s: jnp.sin(s) + 1, a[:4096])
    return jnp.where(slow[0] > 1e9, 0, a), slow[0]


def part(a, device):
    return a.addressable_shards[device].data


def wrong_memory(f, x):
    """30 results that are dropped take that of a few on a device that is behind."""
    device = MESH.devices.flat[LATE]
    for turns in TURNS:
        busy = read_late(part(x, LATE), turns)[1]
        before = device.memory_stats()["bytes_in_use"]
        for _ in range(30):
            r = f(x)
        n = (device.memory_stats()["bytes_in_use"] - before) / (4 * N)
        is_late = not busy.is_ready()
        jax.block_until_ready(r)
        if is_late:
            return "" if 0 <= n <= 3 else f"30 results take the memory of {n}"
    return "the device was never behind for 30 launches"


def wrong_content(f, want, x):
    y = FIRST(x)
    host = np.asarray(y)
    jax.block_until_ready([read_late(part(y, LATE), 1), f(x)])
    was_late = 0
    for turns in TURNS:
        y = FIRST(x)
        read, slow = read_late(part(y, LATE), turns)
        del y
        r = f(x)
        was_late += not slow.is_ready()
        if not np.array_equal(read, host[LATE * N:(LATE + 1) * N]):
            return "what queued work reads was written over"
        if not np.array_equal(r, want):
            return "what members send is not what they have"
        if was_late == 4:
            return ""
    return "the device was never behind for a launch"


def main():
    x = jax.device_put(np.arange(8 * N, dtype=np.float32) % 1024, ROWS)
    for name, (f, want_of) in WAYS.items():
        g = on_members(f)
        wrong = wrong_content(g, want_of(np.asarray(x)), x) or wrong_memory(g, x)
        print(json.dumps([name, wrong]), flush=True)


if __name__ == "__main__":
    main()
