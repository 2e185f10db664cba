# SPDX-License-Identifier: Apache-2.0
"""Programs that people run, as the benches time them: (function, its arguments) of each.

Weights are random: what they compute is compared between the sides, not learned.
"""

import digits
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sides import CPU, uniform


def cast(tree, dtype):
    """Of numpy's arrays or JAX's; integers stay."""
    return jax.tree.map(lambda x: x.astype(dtype) if x.dtype == np.float32 else x, tree)


def log_softmax_loss(logits, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -chosen.mean()


def adam(loss_of, dtype=np.float32):
    """A step of training; the weights are f32, the model computes in dtype."""
    def step(p, m, v, x, y):
        loss, g = jax.value_and_grad(
            lambda p: loss_of(cast(p, dtype), x, y).astype(np.float32))(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return p, m, v, loss
    return step


def with_moments(p):
    zeros = jax.tree.map(np.zeros_like, p)
    return p, zeros, zeros


def digits_step(name):
    """A step of the classifiers of examples/digits.py."""
    init, apply = digits.MODELS[name](jax, jnp, lax)
    with jax.default_device(CPU):
        p = jax.tree.map(np.asarray, jax.jit(init)(jax.random.key(0)))
    x = uniform(digits.BATCH, 8, 8)
    y = np.arange(digits.BATCH, dtype=np.int32) % 10
    return adam(lambda p, x, y: log_softmax_loss(apply(p, x), y)), (*with_moments(p), x, y)


# ---- GPT: 6 layers of 768, whose weights are stacked and scanned over --------

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 6, 768, 12, 256, 8192


def gpt_weights():
    rng = np.random.default_rng(1)

    def normal(*shape, scale=0.02):
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    return {"embed": normal(WORDS, WIDTH), "place": normal(TOKENS, WIDTH),
            "norm": np.ones(WIDTH, np.float32),
            "blocks": {"qkv": normal(LAYERS, WIDTH, 3 * WIDTH),
                       "proj": normal(LAYERS, WIDTH, WIDTH),
                       "up": normal(LAYERS, WIDTH, 4 * WIDTH),
                       "down": normal(LAYERS, 4 * WIDTH, WIDTH),
                       "norm1": np.ones((LAYERS, WIDTH), np.float32),
                       "norm2": np.ones((LAYERS, WIDTH), np.float32)}}


def norm(x, scale):
    wide = x.astype(np.float32)
    wide = wide - wide.mean(-1, keepdims=True)
    return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * scale


def attention(q, k, v, mask=None):
    """Of [batch, heads, tokens, width]."""
    score = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    if mask is not None:
        score = jnp.where(mask, score, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(score), v)


def gpt(p, words):
    """Logits of [batch, tokens] words."""
    mask = np.tril(np.ones((TOKENS, TOKENS), bool))

    def block(h, b):
        qkv = (norm(h, b["norm1"]) @ b["qkv"]).reshape(*h.shape[:2], 3, HEADS, WIDTH // HEADS)
        q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        mixed = attention(q, k, v, mask).transpose(0, 2, 1, 3).reshape(h.shape)
        h = h + mixed @ b["proj"]
        return h + jax.nn.gelu(norm(h, b["norm2"]) @ b["up"]) @ b["down"], None

    h, _ = lax.scan(block, p["embed"][words] + p["place"], p["blocks"])
    return norm(h, p["norm"]) @ p["embed"].T


def gpt_loss(p, words, after):
    return log_softmax_loss(gpt(p, words).astype(np.float32), after)


def gpt_words():
    return np.random.default_rng(2).integers(0, WORDS, (1, TOKENS)).astype(np.int32)


def gpt_forward(dtype):
    return gpt, (cast(gpt_weights(), dtype), gpt_words())


def gpt_gradient(dtype):
    words = gpt_words()
    return jax.grad(gpt_loss), (cast(gpt_weights(), dtype), words, np.roll(words, -1))


def gpt_step(dtype):
    words = gpt_words()
    return adam(gpt_loss, dtype), (*with_moments(gpt_weights()), words, np.roll(words, -1))


# ---- ResNet-50, images of 224x224 in NHWC ------------------------------------

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))    # width, bottlenecks


def resnet_weights():
    rng = np.random.default_rng(3)

    def unit(k, before, after):
        w = rng.standard_normal((k, k, before, after)) * (2 / (k * k * before)) ** 0.5
        return {"w": w.astype(np.float32), "scale": np.ones(after, np.float32),
                "bias": np.zeros(after, np.float32)}

    units, before = [unit(7, 3, 64)], 64
    for width, n in STAGES:
        for i in range(n):
            if i == 0:
                units.append(unit(1, before, 4 * width))
            units += [unit(1, before, width), unit(3, width, width), unit(1, width, 4 * width)]
            units[-1]["scale"] *= np.float32(0.3)    # branches that add up and stay small
            before = 4 * width
    return {"units": units, "out": (rng.standard_normal((before, 1000)) / 45).astype(np.float32)}


def resnet(p, x, training=False):
    units = iter(p["units"])

    def unit(x, stride=1):
        u = next(units)
        x = lax.conv_general_dilated(x, u["w"], (stride, stride), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        if training:
            wide = x.astype(np.float32)
            wide = wide - wide.mean((0, 1, 2))
            x = (wide * lax.rsqrt((wide * wide).mean((0, 1, 2)) + 1e-5)).astype(x.dtype)
        return x * u["scale"] + u["bias"]

    x = jax.nn.relu(unit(x, 2))
    x = lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for stage, (_, n) in enumerate(STAGES):
        for i in range(n):
            stride = 2 if i == 0 and stage else 1
            short = unit(x, stride) if i == 0 else x
            y = jax.nn.relu(unit(x))
            y = jax.nn.relu(unit(y, stride))
            x = jax.nn.relu(unit(y) + short)
    return x.mean((1, 2)) @ p["out"]


def resnet_forward(dtype, images=4):
    return resnet, cast((resnet_weights(), uniform(images, 224, 224, 3)), dtype)


def resnet_step(dtype, images=4):
    def loss_of(p, x, y):
        return log_softmax_loss(resnet(p, x.astype(dtype), True).astype(np.float32), y)
    return adam(loss_of, dtype), (*with_moments(resnet_weights()), uniform(images, 224, 224, 3),
                                  np.arange(images, dtype=np.int32))


# ---- others -------------------------------------------------------------------

def lstm(batch=64, steps=128, width=256):
    """The mean square of the last state of a scan over steps."""
    def loss(p, x):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ p["in"] + h @ p["again"] + p["bias"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
        zeros = jnp.zeros((batch, width), np.float32)
        (h, _), _ = lax.scan(cell, (zeros, zeros), x)
        return (h * h).mean()
    p = {"in": uniform(width, 4 * width) / 8, "again": uniform(width, 4 * width)[::-1] / 8,
         "bias": np.zeros(4 * width, np.float32)}
    return loss, (p, uniform(steps, batch, width))


def n_body(bodies=2048):
    """A step of all under the others' pull."""
    def step(x, v):
        apart = x[None] - x[:, None]
        near = (apart * apart).sum(-1) + 1e-3
        v = v + 1e-3 * (apart * (near ** -1.5)[..., None]).sum(1)
        return x + 1e-3 * v, v
    return step, (uniform(bodies, 3), np.zeros((bodies, 3), np.float32))


def cross_entropy(rows=2048, words=8192):
    """The loss and its gradient."""
    return (jax.value_and_grad(log_softmax_loss),
            (uniform(rows, words) * 4, np.arange(rows, dtype=np.int32)))


def recurrence(a, b):
    """h[i] = a[i] h[i - 1] + b[i] along the last dim, by associative_scan."""
    return lax.associative_scan(lambda s, t: (s[0] * t[0], s[1] * t[0] + t[1]), (a, b), axis=-1)[1]


SMALL = {      # of 1 Mi elements; those of two operands take the second in [0.5, 1.5]
    "tanh": jnp.tanh, "div": lambda x, y: x / y, "logistic": jax.nn.sigmoid, "sum": jnp.sum,
    "gelu": jax.nn.gelu, "add": lambda x, y: x + y, "log": lambda x: jnp.log(x + 1.5),
    "exp": jnp.exp, "pow": lambda x, y: (x + 1.5) ** y, "sin": jnp.sin, "atan2": jnp.arctan2,
}
OF_TWO = ("div", "add", "pow", "atan2")


def chain(steps, kind):
    """`steps` instructions each of which needs all of the one before, on 16 numbers."""
    w = uniform(16, 16)

    def step(x):
        if kind == "maximum":
            return x - x.max()
        if kind == "product":
            return x @ w
        return jnp.sin(x) + jnp.roll(x, 1)

    def f(x):
        for _ in range(steps):
            x = lax.optimization_barrier(step(x))
        return x
    return f, (uniform(1, 16) / 4,)
