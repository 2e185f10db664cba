# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer in plain JAX on eight chips, beside the same on one.

    python spmd_transformer.py                  both side by side, with a verdict
    python spmd_transformer.py --worker MESH    one of them: eight, one

The model reads the source text of a Python module and predicts its next byte. Eight
chips are a mesh of 2 x 4: batches are shared out over its axis `data`, heads and the
widths of products over `model`. One chip is a mesh of 1 x 1 for the same code, so all
that differs is where things lie.

Each gets a process of its own. The verdict: all losses within 1e-3 of each other, and
they fell. The tables: memory of each chip and bytes over its links, as xla-smi tells
them (--smi), and times. Without hardware TESSERA_SIM says which chips the model has.
"""

import argparse
import json
import os
import subprocess
import sys
import time

MESHES = {"eight": (2, 4), "one": (1, 1)}
STEPS = 30
TOLERANCE = 1e-3
MODEL = "devices=8,hbm=512M"    # TESSERA_SIM where it says nothing
SETTLE_S = 20.0                 # how long xla-smi may take to see what was done

BYTES, WIDTH, HEADS, LAYERS = 128, 256, 4, 2
BATCH, TOKENS = 16, 64
RATE = 1e-3


# ---- the model: parameters, and which axis of the mesh each dim is shared out over ----

def init(jax, jnp):
    """Parameters as a tree of arrays."""
    k = iter(jax.random.split(jax.random.key(0), 2 + 4 * LAYERS))
    glorot = jax.nn.initializers.glorot_normal()
    blocks = [{"qkv": glorot(next(k), (WIDTH, 3 * WIDTH)).reshape(WIDTH, 3, HEADS, -1),
               "proj": glorot(next(k), (WIDTH, WIDTH)).reshape(HEADS, -1, WIDTH),
               "up": glorot(next(k), (WIDTH, 4 * WIDTH)),
               "down": glorot(next(k), (4 * WIDTH, WIDTH)),
               "norm1": jnp.ones(WIDTH), "norm2": jnp.ones(WIDTH)}
              for _ in range(LAYERS)]
    place = jnp.arange(TOKENS)[:, None] / 100.0 ** (jnp.arange(WIDTH)[None] / WIDTH)
    return {"embed": 0.3 * jax.random.normal(next(k), (BYTES, WIDTH)),
            "place": 0.3 * jnp.sin(place), "blocks": blocks,
            "out": 0.1 * glorot(next(k), (WIDTH, BYTES))}


def specs(P):
    """The same tree of where they lie."""
    block = {"qkv": P(None, None, "model"), "proj": P("model"), "up": P(None, "model"),
             "down": P("model"), "norm1": P(), "norm2": P()}
    return {"embed": P(None, "model"), "place": P(None, "model"), "blocks": [block] * LAYERS,
            "out": P(None, "model")}


def make_loss(jax, jnp):
    def norm(x, scale):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    def attention(p, x):
        q, k, v = jnp.einsum("btw,wihd->ibhtd", x, p["qkv"])
        score = jnp.einsum("bhqd,bhkd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
        past = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
        mixed = jax.nn.softmax(jnp.where(past, score, -1e9)) @ v
        return jnp.einsum("bhtd,hdw->btw", mixed, p["proj"])

    def loss(p, text):
        """Of text [BATCH, TOKENS + 1]: how unlikely each next byte was, in nats."""
        x = p["embed"][text[:, :-1]] + p["place"]
        for block in p["blocks"]:
            x = x + attention(block, norm(x, block["norm1"]))
            x = x + jax.nn.gelu(norm(x, block["norm2"]) @ block["up"]) @ block["down"]
        likely = jax.nn.log_softmax(norm(x, 1.0) @ p["out"])
        return -jnp.take_along_axis(likely, text[:, 1:, None], -1).mean()

    return loss


def make_step(jax, jnp):
    """One step of Adam: (parameters, both moments, number), text -> the same, loss."""
    loss_of = make_loss(jax, jnp)

    def step(state, text):
        p, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(p, text)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        rate = RATE * jnp.sqrt(1 - 0.99 ** t) / (1 - 0.9 ** t)
        p = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-6), p, m, v)
        return (p, m, v, t), loss

    return step


def batches(np, steps):
    """Text of Python's own argparse, the same for everyone."""
    with open(argparse.__file__, "rb") as f:
        text = np.frombuffer(f.read(), np.uint8).astype(np.int32) % BYTES
    starts = np.random.default_rng(0).integers(0, len(text) - TOKENS - 1, (steps, BATCH))
    return [np.stack([text[i:i + TOKENS + 1] for i in row]) for row in starts]


# ---- what xla-smi tells -----------------------------------------------------

def look(smi, coords, touch):
    """What xla-smi tells of our chips at `coords`, in their order, with the bytes over their
    links. All of it was read after this call: chips are asked while they work, and `touch`
    gives them work."""
    since = time.monotonic()
    while True:
        touch()
        now = time.monotonic()
        told = json.loads(subprocess.run([smi, "topo", "--json"], check=True,
                                         capture_output=True).stdout)
        # Models of other processes have the same bus ids.
        of_us = {table: [row for row in told[table] if row["pid"] == os.getpid()]
                 for table in ("devices", "links")}
        chips = {d["coords"]: d for d in of_us["devices"]}
        links = {c: [x for x in of_us["links"] if x["bus_id"] == chips[c]["bus_id"]]
                 for c in coords if c in chips}
        if len(links) == len(coords) and all(now - x["age_ns"] * 1e-9 > since
                                             for of in links.values() for x in of):
            break
        if now - since > SETTLE_S:
            raise TimeoutError(f"xla-smi tells of the chips {sorted(links)} of {coords}, and some "
                               f"links were not read for {SETTLE_S} s")
    return [dict(bus_id=chips[c]["bus_id"], coords=c, used=chips[c]["memory_used_bytes"],
                 sent=sum(x["tx_bytes"] for x in links[c]),
                 received=sum(x["rx_bytes"] for x in links[c])) for c in coords]


# ---- one of both ------------------------------------------------------------

def place(jax, jnp, np, shape):
    """(mesh, state, where its parts lie, function that places text) on a mesh of `shape`."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    n, devices = shape[0] * shape[1], jax.devices()
    if len(devices) < n:
        sys.exit(f"a mesh of {shape[0]} x {shape[1]} needs {n} devices, and there are "
                 f"{len(devices)}: TESSERA_DEVICES=sim TESSERA_SIM=devices={n} has so many")
    mesh = Mesh(np.array(devices[:n]).reshape(shape), ("data", "model"))
    where = jax.tree.map(lambda s: NamedSharding(mesh, s), specs(P),
                         is_leaf=lambda s: isinstance(s, P))
    where = (where, where, where, NamedSharding(mesh, P()))
    with jax.default_device(devices[0]):
        p = jax.tree.map(np.asarray, init(jax, jnp))
    zeros = jax.tree.map(np.zeros_like, p)
    state = jax.device_put((p, zeros, zeros, np.float32(0)), where)
    rows = NamedSharding(mesh, P("data"))
    return mesh, state, where, lambda text: jax.device_put(text, rows)


def work(name, steps, smi):
    """Trains and prints one JSON object a line: the parent reads them."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def say(**fields):
        print(json.dumps(fields), flush=True)

    mesh, state, where, put = place(jax, jnp, np, MESHES[name])
    devices = list(mesh.devices.flat)
    some, add = put(np.zeros((BATCH, 1), np.int32)), jax.jit(lambda x: x + 1)

    def see():
        return look(smi, [",".join(map(str, d.coords)) for d in devices],
                    lambda: add(some).block_until_ready()) if smi else []

    texts = [put(t) for t in batches(np, steps)]
    say(platform=devices[0].platform, chips=[str(d) for d in devices])
    began = time.perf_counter()
    step = jax.jit(make_step(jax, jnp), donate_argnums=0, out_shardings=(where, None))
    step = step.lower(state, texts[0]).compile()
    say(compile_s=time.perf_counter() - began)
    before = see()
    spent = []
    for i, text in enumerate(texts):
        began = time.perf_counter()
        state, loss = step(state, text)
        loss = float(loss)
        spent.append(time.perf_counter() - began)
        say(done=i + 1, loss=loss)
    say(step_ms=1e3 * sorted(spent)[len(spent) // 2], before=before, after=see(),
        peak=[d.memory_stats()["peak_bytes_in_use"] for d in devices],
        state=[sum(a.addressable_shards[i].data.nbytes for a in jax.tree.leaves(state))
               for i in range(len(devices))])


# ---- side by side -----------------------------------------------------------

def bar(label, done, steps, loss):
    width = 30
    full = width * done // steps
    sys.stderr.write(f"\r{label:<20} [{'#' * full}{'.' * (width - full)}] {done:3d}/{steps}"
                     f"  loss {loss:.4f}")
    sys.stderr.flush()


def run_worker(name, steps, smi):
    """The worker's results as one dict."""
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu")
    env.setdefault("TESSERA_SIM", MODEL)
    command = [sys.executable, __file__, "--worker", name, "--steps", str(steps)]
    got = {"losses": []}
    with subprocess.Popen(command + (["--smi", smi] if smi else []), env=env,
                          stdout=subprocess.PIPE, text=True) as worker:
        for line in worker.stdout:
            got.update(json.loads(line))
            if "loss" in got:
                got["losses"].append(got.pop("loss"))
                bar(f"{name}, on {got['platform']}", got["done"], steps, got["losses"][-1])
    sys.stderr.write("\n")
    if worker.returncode or "state" not in got:
        sys.exit(f"{name}: the worker failed (exit {worker.returncode})")
    return got


# The table of chips. State is what one step hands to the next; used and what follows is
# xla-smi's, bytes over links with those that only pass a chip.
CHIPS = ("mesh", "chip", "data,model", "state MiB", "peak MiB", "used MiB", "torus",
         "sent MiB/step", "received")


def show(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(c.rjust(w) for c, w in zip(r, widths)).rstrip())
    print()


def mib(n):
    return f"{n / 2 ** 20:.2f}"


def chip_rows(name, got, steps):
    """Rows of the table of chips; "-" where nobody told."""
    rows = []
    for i, chip in enumerate(got["chips"]):
        row = [name, chip, f"{i // MESHES[name][1]},{i % MESHES[name][1]}",
               mib(got["state"][i]), mib(got["peak"][i])]
        if got["after"]:
            old, new = got["before"][i], got["after"][i]
            row[1] = new["bus_id"]
            row += [mib(new["used"]), new["coords"],
                    *(mib((new[way] - old[way]) / steps) for way in ("sent", "received"))]
        rows.append(row + ["-"] * (len(CHIPS) - len(row)))
    return rows


def judge(eight, one):
    """What is wrong, as a list of sentences."""
    failures = []
    for name, got in (("eight", eight), ("one", one)):
        if got["platform"] != "tessera":
            failures.append(f"{name} ran on {got['platform']}, not on tessera")
        if not got["losses"][-1] < got["losses"][0]:
            failures.append(f"{name}: the loss did not fall")
    far = [abs(a - b) / abs(b) for a, b in zip(eight["losses"], one["losses"], strict=True)]
    worst = max(far, key=lambda x: (x != x, x))     # NaN is the worst
    print(f"losses of all {len(one['losses'])} steps agree within {worst:.1e}\n")
    if not worst <= TOLERANCE:
        failures.append(f"losses differ by {worst:.1e}, more than {TOLERANCE}")
    silent = [new["bus_id"] for old, new in zip(eight["before"], eight["after"])
              if new["sent"] <= old["sent"]]
    if silent:
        failures.append(f"{', '.join(silent)} sent nothing over links")
    return failures


def compare(steps, smi):
    both = {name: run_worker(name, steps, smi) for name in MESHES}
    failures = judge(**both)
    show([CHIPS, *(row for name, got in both.items() for row in chip_rows(name, got, steps))])
    show([("mesh", "chips", "ms/step", "compile s", "state MiB", "peak MiB", "first loss", "last"),
          *((name, str(len(got["chips"])), f"{got['step_ms']:.1f}", f"{got['compile_s']:.2f}",
             mib(sum(got["state"])), mib(sum(got["peak"])), f"{got['losses'][0]:.5f}",
             f"{got['losses'][-1]:.5f}") for name, got in both.items())])
    for f in failures:
        print("FAILED:", f)
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", choices=MESHES, help="train on one of the meshes here")
    parser.add_argument("--steps", type=int, default=STEPS, help="how many, at least 2")
    parser.add_argument("--smi", help="path of xla-smi, which tells of memory and links")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps: at least 2")
    if options.smi and not os.access(options.smi, os.X_OK):
        parser.error(f"--smi: {options.smi} is no program; `make` builds build/opt/xla-smi")
    if options.worker:
        work(options.worker, options.steps, options.smi)
    else:
        sys.exit(compare(options.steps, options.smi))
