# SPDX-License-Identifier: Apache-2.0
"""Trains two small classifiers on scikit-learn's handwritten digits in plain JAX.

    python digits.py                    both platforms side by side, with a verdict
    python digits.py --worker MODEL     one model on the platform of JAX_PLATFORMS

The side-by-side run starts one worker a platform, so that each gets a process of
its own, shows a progress bar, takes a picture of xla-smi while the device works,
and compares: test accuracy of both >= 0.95, and the losses of the first 50 steps
within 1e-3 of each other.
"""

import argparse
import json
import os
import subprocess
import sys
import time

STEPS = 600          # training steps of each model
SCAN = 25            # steps in one lax.scan, that is in one launch
BATCH = 128
COMPARED = 50        # steps whose losses must agree
TOLERANCE = 1e-3
ACCURACY = 0.95


# ---- the models -------------------------------------------------------------

def conv_net(jax, jnp, lax):
    """3x3 convolutions 1 -> 16 -> 32 (the second with stride 2), then linear."""

    def init(key):
        k = jax.random.split(key, 3)
        he = jax.nn.initializers.he_normal()
        return {"conv1": he(k[0], (3, 3, 1, 16)), "bias1": jnp.zeros(16),
                "conv2": he(k[1], (3, 3, 16, 32)), "bias2": jnp.zeros(32),
                "out": he(k[2], (512, 10)), "bias": jnp.zeros(10)}

    def conv(x, w, stride):
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def apply(p, x):
        h = jax.nn.relu(conv(x[..., None], p["conv1"], 1) + p["bias1"])
        h = jax.nn.relu(conv(h, p["conv2"], 2) + p["bias2"])
        return h.reshape(x.shape[0], -1) @ p["out"] + p["bias"]

    return init, apply


def transformer(jax, jnp, lax):
    """Each row of the image is a token; two pre-norm blocks, mean over tokens."""
    width, heads, layers, tokens = 32, 4, 2, 8

    def init(key):
        k = iter(jax.random.split(key, 3 + 4 * layers))
        glorot = jax.nn.initializers.glorot_normal()
        blocks = [{"qkv": glorot(next(k), (width, 3 * width)),
                   "proj": glorot(next(k), (width, width)),
                   "up": glorot(next(k), (width, 4 * width)),
                   "down": glorot(next(k), (4 * width, width)),
                   "norm1": jnp.ones(width), "norm2": jnp.ones(width)}
                  for _ in range(layers)]
        return {"embed": glorot(next(k), (8, width)),
                "place": 0.02 * jax.random.normal(next(k), (tokens, width)),
                "blocks": blocks,
                "out": glorot(next(k), (width, 10)), "bias": jnp.zeros(10)}

    def norm(x, scale):
        x = x - x.mean(-1, keepdims=True)
        return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale

    def attention(p, x):
        b = x.shape[0]
        qkv = (x @ p["qkv"]).reshape(b, tokens, 3, heads, width // heads)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        score = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(score), v)
        return mixed.reshape(b, tokens, width) @ p["proj"]

    def apply(p, x):
        h = x @ p["embed"] + p["place"]
        for block in p["blocks"]:
            h = h + attention(block, norm(h, block["norm1"]))
            h = h + jax.nn.gelu(norm(h, block["norm2"]) @ block["up"]) @ block["down"]
        return h.mean(1) @ p["out"] + p["bias"]

    return init, apply


MODELS = {"conv_net": conv_net, "transformer": transformer}
RATE = {"conv_net": 4e-3, "transformer": 6e-3}


# ---- one model on one platform ----------------------------------------------

def make_training(name):
    """(initial state, data, train) of a model; train runs SCAN steps in one call."""
    import jax
    import jax.numpy as jnp
    import numpy
    from jax import lax
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = numpy.random.default_rng(0).permutation(len(digits.target))
    images = (digits.images[order] / 16).astype("float32")
    labels = digits.target[order].astype("int32")
    split = 1437
    train_x, train_y = jnp.asarray(images[:split]), jnp.asarray(labels[:split])
    test_x, test_y = jnp.asarray(images[split:]), jnp.asarray(labels[split:])
    init, apply = MODELS[name](jax, jnp, lax)

    def loss_of(p, x, y):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(apply(p, x)), y[:, None], 1)
        return -chosen.mean()

    def adam(g, m, v, p, t):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        step = RATE[name] * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return m, v, p - step * m / (jnp.sqrt(v) + 1e-8)

    def step(state, _):
        p, m, v, t, key = state
        key, pick = jax.random.split(key)
        chosen = jax.random.randint(pick, (BATCH,), 0, split)
        loss, g = jax.value_and_grad(loss_of)(p, train_x[chosen], train_y[chosen])
        t = t + 1
        updated = jax.tree.map(lambda *a: adam(*a, t), g, m, v, p)
        m, v, p = jax.tree.transpose(jax.tree.structure(p),
                                     jax.tree.structure((0, 0, 0)), updated)
        return (p, m, v, t, key), loss

    def start():
        p = init(jax.random.key(0))
        zeros = jax.tree.map(jnp.zeros_like, p)
        return p, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0), jax.random.key(1)

    train = jax.jit(lambda s: lax.scan(step, s, length=SCAN), donate_argnums=0)
    accuracy = jax.jit(lambda p: (apply(p, test_x).argmax(-1) == test_y).mean())
    return jax.jit(start), train, accuracy


def work(name):
    """Trains and prints one JSON object a line: the parent reads them."""
    import jax

    def say(**fields):
        print(json.dumps(fields), flush=True)

    start, train, accuracy = make_training(name)
    say(platform=jax.devices()[0].platform, device=str(jax.devices()[0]))
    state = start()
    began = time.perf_counter()
    compiled = train.lower(state).compile()
    compile_s = time.perf_counter() - began
    spent = []
    for done in range(SCAN, STEPS + 1, SCAN):
        began = time.perf_counter()
        state, losses = compiled(state)
        losses = [float(x) for x in losses]
        spent.append((time.perf_counter() - began) / SCAN)
        say(done=done, losses=losses)
    say(accuracy=float(accuracy(state[0])), compile_s=compile_s,
        step_ms=1e3 * sorted(spent)[len(spent) // 2])


# ---- side by side -----------------------------------------------------------

def bar(label, done, loss):
    width = 30
    full = width * done // STEPS
    text = f"\r{label:<24} [{'#' * full}{'.' * (width - full)}] {done:4d}/{STEPS}"
    sys.stderr.write(text + (f"  loss {loss:.4f}" if loss is not None else ""))
    sys.stderr.flush()


def run_worker(name, platforms, smi):
    """The worker's results as one dict; `smi` is run once half-way if given."""
    env = dict(os.environ, JAX_PLATFORMS=platforms)
    got = {"losses": []}
    with subprocess.Popen([sys.executable, __file__, "--worker", name], env=env,
                          stdout=subprocess.PIPE, text=True) as worker:
        for line in worker.stdout:
            fields = json.loads(line)
            got["losses"] += fields.pop("losses", [])
            got.update(fields)
            if "done" in fields:
                bar(f"{name} on {got['platform']}", fields["done"], got["losses"][-1])
                if smi and fields["done"] >= STEPS // 2 and "smi" not in got:
                    got["smi"] = subprocess.run([smi], capture_output=True,
                                                text=True).stdout
    sys.stderr.write("\n")
    if worker.returncode or "accuracy" not in got:
        sys.exit(f"{name} on {platforms}: the worker failed (exit {worker.returncode})")
    return got


def compare(smi):
    failures, pictures = [], []
    rows = [("model", "platform", "accuracy", "loss@1", f"loss@{COMPARED}",
             "ms/step", "compile s")]
    for name in MODELS:
        ours = run_worker(name, "tessera,cpu", smi)
        cpu = run_worker(name, "cpu", None)
        pictures.append(ours.get("smi", ""))
        for r in (ours, cpu):
            rows.append((name, r["platform"], f"{r['accuracy']:.4f}",
                         f"{r['losses'][0]:.5f}", f"{r['losses'][COMPARED - 1]:.5f}",
                         f"{r['step_ms']:.3f}", f"{r['compile_s']:.2f}"))
            if r["accuracy"] < ACCURACY:
                failures.append(f"{name} on {r['platform']}: accuracy "
                                f"{r['accuracy']:.4f} is below {ACCURACY}")
        if ours["platform"] != "tessera":
            failures.append(f"{name} ran on {ours['platform']}, not on tessera")
        far = [abs(a - b) / abs(b) for a, b in
               zip(ours["losses"][:COMPARED], cpu["losses"][:COMPARED], strict=True)]
        worst = max(far, key=lambda x: (x != x, x))     # NaN is the worst
        print(f"{name}: losses of the first {COMPARED} steps agree within {worst:.1e}")
        if not worst <= TOLERANCE:
            failures.append(f"{name}: losses differ by {worst:.1e}, "
                            f"more than {TOLERANCE}")
    if smi:
        print("\nxla-smi while the device trained:\n" + pictures[-1])
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())
    for f in failures:
        print("FAILED:", f)
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", choices=MODELS, help="train one model here")
    parser.add_argument("--smi", help="path of xla-smi, run once while training")
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
    else:
        sys.exit(compare(options.smi))
