# SPDX-License-Identifier: Apache-2.0
"""Random programs: DAGs of jnp operations with products, on the device and on the CPU.

    random_dags.py SEED [SEED ...]        run these; one JSON line before and after each
    random_dags.py --spread SEED [...]    the same on a random mesh of 2 to 8 devices, with
                                          arguments and values in between shared out at random
    random_dags.py --show SEED            print the program of a seed

A program is made from its seed alone. It is of one of two kinds. Of int32, where all
arithmetic is exact (it wraps) and every bit counts; or of f32, of continuous operations
that keep values near 1, where the device may be ALLOWED times as far from the program
in f64 as the CPU's f32 is, and SLACK units in the last place of the result's largest
element. test_random_dags.py runs this file as a process, so that a crash has a name.
"""

import json
import os
import random
import sys
import traceback

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ.setdefault("TESSERA_CACHE", "off")
# The CPU's programs run once each: they need not be fast.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 "
                      "--xla_llvm_disable_expensive_passes=true")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

ALLOWED, SLACK = 16, 64
# Sizes on both sides of the lanes, vectors, rows and tiles of the model.
SIZES = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 67]
LONG = [100, 129, 255, 513, 1025]
# For programs that are spread: JAX shares out arguments only where the parts are even.
EVEN = [2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 72]
MESHES = [(2,), (3,), (4,), (6,), (8,), (2, 2), (2, 3), (4, 2), (2, 4), (2, 2, 2)]


def near_one(x):
    """Keeps magnitudes in reach, by a scale that is smooth and never zero."""
    return x / (1 + 0.1 * jnp.sqrt(jnp.mean(x * x) + 1e-3)) if is_float(x) else x


def is_float(x):
    return jnp.issubdtype(x.dtype, jnp.floating)


# Steps of a program: name -> function(values x, y of the same 2-D shape (b, d), draw).
# draw(a, b): an integer of the program's own, the same at each trace. `w` is (d, d).

UNARY_F = {
    "tanh": jnp.tanh, "sin": jnp.sin, "cos": jnp.cos, "gauss": lambda x: jnp.exp(-x * x),
    "sigmoid": jax.nn.sigmoid, "abs": jnp.abs, "sqrt": lambda x: jnp.sqrt(jnp.abs(x) + 0.5),
    "log1p": lambda x: jnp.log1p(jnp.abs(x)), "square": lambda x: x * x * 0.25,
    "neg": lambda x: -x, "relu": jax.nn.relu, "gelu": jax.nn.gelu, "erf": jax.scipy.special.erf,
    "expm1": lambda x: jnp.expm1(jnp.minimum(x, 1)), "rsqrt": lambda x: lax.rsqrt(x * x + 0.5),
    "softplus": jax.nn.softplus, "swish": lambda x: x * jax.nn.sigmoid(x),
    "atan": jnp.arctan, "cbrt": lambda x: jnp.cbrt(jnp.abs(x) + 0.5),
}
UNARY_I = {
    "neg": lambda x: -x, "abs": jnp.abs, "not": lambda x: ~x, "square": lambda x: x * x,
    "sign": jnp.sign, "shift": lambda x: x >> 3, "left": lambda x: x << 2,
    "clip": lambda x: jnp.clip(x, -5, 9), "popcount": lax.population_count,
    "narrow": lambda x: x.astype(jnp.int8).astype(jnp.int32),
    "bool": lambda x: (x > 2).astype(jnp.int32), "clz": lax.clz,
}
BINARY_F = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "max": jnp.maximum,
    "min": jnp.minimum, "div": lambda x, y: x / (1 + jnp.abs(y)),
    "atan2": lambda x, y: jnp.arctan2(x, jnp.abs(y) + 0.5),
    "hypot": lambda x, y: jnp.sqrt(x * x + y * y + 0.1), "lerp": lambda x, y: x + 0.3 * (y - x),
    "logaddexp": jnp.logaddexp, "power": lambda x, y: (jnp.abs(x) + 0.5) ** jnp.tanh(y),
}
BINARY_I = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "max": jnp.maximum,
    "min": jnp.minimum, "and": jnp.bitwise_and, "or": jnp.bitwise_or, "xor": jnp.bitwise_xor,
    "where": lambda x, y: jnp.where(x > y, x - y, y), "eq": lambda x, y: x * (x == y),
    "div": lambda x, y: x // (jnp.abs(y) % 7 + 1), "rem": lambda x, y: x % (jnp.abs(y) % 9 + 1),
}
# Fold the last or first dim of x and spread the result over y again.
FOLDS_F = {
    "sum": lambda x, a: x.mean(a, keepdims=True), "max": lambda x, a: x.max(a, keepdims=True),
    "min": lambda x, a: x.min(a, keepdims=True), "var": lambda x, a: x.var(a, keepdims=True),
    "logsumexp": lambda x, a: jax.nn.logsumexp(x, a, keepdims=True),
    "norm": lambda x, a: jnp.sqrt((x * x).mean(a, keepdims=True) + 0.1),
    "softmax": jax.nn.softmax, "log_softmax": lambda x, a: 0.2 * jax.nn.log_softmax(x, a),
    "cumsum": lambda x, a: near_one(jnp.cumsum(x, a)), "cummax": lambda x, a: lax.cummax(x, a),
    "prod": lambda x, a: jnp.prod(1 + 0.01 * jnp.sin(x), a, keepdims=True),
    "layernorm": lambda x, a: (x - x.mean(a, keepdims=True)) * lax.rsqrt(
        x.var(a, keepdims=True) + 0.5),
}
FOLDS_I = {
    "sum": lambda x, a: x.sum(a, keepdims=True), "max": lambda x, a: x.max(a, keepdims=True),
    "min": lambda x, a: x.min(a, keepdims=True), "cumsum": lambda x, a: jnp.cumsum(x, a),
    "prod": lambda x, a: jnp.prod(x, a, keepdims=True), "sort": lambda x, a: jnp.sort(x, a),
    "argmax": lambda x, a: jnp.argmax(x, a, keepdims=True), "cummax": lambda x, a: lax.cummax(x, a),
    "argsort": lambda x, a: jnp.argsort(x, a),
    "any": lambda x, a: (x > 8).any(a, keepdims=True) + 0,
    "argmin": lambda x, a: jnp.argmin(x, a, keepdims=True),
}


def rest(x, k):
    return x.shape[0] - k if x.shape[0] > k else 0


# The program's own shape is kept by each of these: f(x, k) with k a small integer.
MOVES = {
    "reverse": lambda x, k: x[::-1], "mirror": lambda x, k: x[:, ::-1] + x,
    "reverse_add": lambda x, k: x[::-1] + x,
    "roll": lambda x, k: jnp.roll(x, k, k % 2),
    "shift_rows": lambda x, k: lax.dynamic_update_slice(x, x[:rest(x, k)], (k, 0)),
    "set_slice": lambda x, k: x.at[k:].set(x[:rest(x, k)]),
    "add_slice": lambda x, k: x.at[:rest(x, k)].add(x[k:]),
    "pad": lambda x, k: jnp.pad(x, ((k, 0), (0, k)))[k:, :x.shape[1]],
    "lax_pad": lambda x, k: lax.pad(x, x[0, 0], ((-1, 1, 0), (k, -k, 0))),
    "concat": lambda x, k: jnp.concatenate([x[k:], x[:k]], 0),
    "halves": lambda x, k: jnp.concatenate([x[:, 1::2], x[:, ::2]], 1),
    "take": lambda x, k: x[(jnp.arange(x.shape[0]) * (2 * k + 1)) % x.shape[0]],
    "scatter": lambda x, k: x.at[(jnp.arange(x.shape[0]) * 3 + k) % x.shape[0]].add(x[::-1]),
    "along": lambda x, k: jnp.take_along_axis(
        x, (jnp.arange(x.shape[1]) + k)[None] % x.shape[1] + jnp.zeros(x.shape, int), 1),
    "dynamic": lambda x, k: x - lax.dynamic_slice(x, (k % x.shape[0], 0), (1, x.shape[1])),
    "first": lambda x, k: x - x[0], "corner": lambda x, k: x - x[k % x.shape[0], -1],
    "set_row": lambda x, k: x.at[k % x.shape[0]].set(x[-1] * 2),
    "turn": lambda x, k: x.T.reshape(x.shape), "tril": lambda x, k: jnp.tril(x, k),
    "repeat": lambda x, k: jnp.repeat(x, 2, 0)[:x.shape[0]],
    "tile": lambda x, k: jnp.tile(x, (2, 1))[k % x.shape[0]:][:x.shape[0]],
    "stack": lambda x, k: jnp.stack([x, x[::-1]], 1).reshape(-1, x.shape[1])[::2],
    "window": lambda x, k: lax.reduce_window(
        x, np.zeros((), x.dtype), lax.add, (2, 1), (1, 1), ((1, 0), (0, 0))),
}
PRODUCTS = {
    "dense": lambda x, y, w: x @ w,
    "residual": lambda x, y, w: x @ w + x,
    "residual_other": lambda x, y, w: x @ w + y,
    "gated": lambda x, y, w: x * (x @ w),
    "gated_other": lambda x, y, w: y * (x @ w) + x,
    "attention": lambda x, y, w: (x @ y.T) @ x,
    "gram": lambda x, y, w: x @ (x.T @ y),
    "outer": lambda x, y, w: jnp.einsum("bd,bd->b", x, y)[:, None] * x,
    "vector": lambda x, y, w: (x @ w[0])[:, None] + y,
    "both": lambda x, y, w: x @ w + y @ w.T,
    "chain": lambda x, y, w: (x @ w) @ w - x,
    "square": lambda x, y, w: x @ (w @ w + w),
    "einsum": lambda x, y, w: jnp.einsum("bd,ed,be->bd", x, w, y),
    "batched": lambda x, y, w: jnp.einsum("sbd,sde->sbe", jnp.stack([x, y]),
                                          jnp.stack([w, w.T])).sum(0),
}


def loops(rng, reverse):
    """A function (x, y, w, counter, inner) with several carried arrays; inner(x, y) is a
    piece of program that keeps its shape. reverse: it is to have a gradient, which JAX
    has for no while."""
    kind = rng.choice(["fori", "scan", "fori" if reverse else "while", "cond", "switch",
                       "scan_rows", "nested", "map", "swap", "remat", "vmap"])
    n, k = rng.randint(1, 4), rng.randint(0, 3)

    def f(x, y, w, c, inner):
        if kind == "fori":
            return lax.fori_loop(0, n, lambda i, s: (s[1], inner(s[0], s[1] - s[0][0])),
                                 (x, y))[1]
        if kind == "swap":
            return lax.fori_loop(0, n + 1, lambda i, s: (s[1], s[2], inner(s[0], s[2])),
                                 (x, y, x[::-1]))[k % 3]
        if kind == "scan":
            out, seen = lax.scan(lambda s, t: ((s[1], inner(s[0], s[1]), s[2] + t),
                                               s[0][0] + s[2]),
                                 (x, y, jnp.zeros((), x.dtype)), jnp.arange(n).astype(x.dtype))
            return out[1] + seen.sum(0) + out[2]
        if kind == "scan_rows":
            last, seen = lax.scan(lambda s, row: (inner(s, s) + row, s[k % s.shape[0]]), x, y[:6])
            return last if k % 2 else jnp.concatenate([seen, y[6:]])
        if kind == "while":
            return lax.while_loop(lambda s: s[0] < c % 4 + n,
                                  lambda s: (s[0] + 1, s[2], inner(s[1], s[2])), (0, x, y))[2]
        if kind == "cond":
            return lax.cond(c % 2 == k % 2, lambda a, b: inner(a, b), lambda a, b: b - a[::-1],
                            x, y)
        if kind == "switch":
            return lax.switch(c, [lambda a: a, lambda a: inner(a, y), lambda a: a[::-1] - y], x)
        if kind == "nested":
            return lax.fori_loop(0, n, lambda i, s: lax.cond(
                (i + c) % 2 == 0, lambda t: (t[1], inner(t[0], t[1])),
                lambda t: lax.fori_loop(0, k, lambda j, u: (u[1], u[0][::-1]), t), s),
                (x, y))[0]
        if kind == "map":
            return lax.map(lambda r: inner(r[0], r[1]), (jnp.stack([x, y]),
                                                         jnp.stack([y, x])))[k % 2]
        if kind == "vmap":
            return jax.vmap(inner)(jnp.stack([x, y, y]), jnp.stack([y, x, y]))[k % 3]
        return jax.checkpoint(inner)(x, y)

    return kind, f


class Program:
    """What a seed stands for: steps, shapes, which results, whether there is a gradient."""

    def __init__(self, seed, sizes=SIZES, long=LONG):
        rng = self.rng = random.Random(seed)
        self.seed, self.exact = seed, rng.random() < 0.4
        self.b, self.d = rng.choice(sizes), rng.choice(sizes)
        if rng.random() < 0.15:
            self.b = rng.choice(long)
        if rng.random() < 0.3:
            self.b = self.d
        self.text = [f"{'int32' if self.exact else 'float32'}[{self.b},{self.d}]"]
        self.wrap = "plain" if self.exact else rng.choice(
            ["plain", "plain", "grad", "value_and_grad", "jvp", "grad_w"])
        self.donate = rng.random() < 0.3 and self.wrap == "plain"
        self.steps = [self.step(2) for _ in range(rng.randint(2, 7))]
        n = len(self.steps) + 2
        self.results = sorted(rng.sample(range(n), rng.randint(1, min(3, n - 1))) + [n - 1])
        self.text.append(f"results {self.results} {self.wrap}{' donated' * self.donate}")

    def step(self, depth):
        """function(values, w, counter) -> a new value, drawn now."""
        rng = self.rng
        kind = rng.choices(["unary", "binary", "product", "fold", "move", "loop"],
                           [2, 3, 4, 2, 3, 2 if depth else 0])[0]
        i, j, k, axis = rng.randrange(99), rng.randrange(99), rng.randint(0, 4), rng.randint(0, 1)
        # Most values come from late in the list, so that programs are deep.
        tail = rng.random() < 0.6

        def pick(vs, n):
            return vs[-1 - n % min(len(vs), 2)] if tail else vs[n % len(vs)]

        if kind == "loop":
            name, f = loops(rng, "grad" in self.wrap)
            body = [self.step(depth - 1) for _ in range(rng.randint(1, 2))]
            self.text.append(f"  {name} of the last {len(body)}")

            def loop(vs, w, c):
                def inner(x, y):
                    ws = [x, y]
                    for s in body:
                        ws.append(s(ws, w, c))
                    return ws[-1]
                return near_one(f(pick(vs, i), pick(vs, j), w, c, inner))
            return loop
        tables = {"unary": (UNARY_F, UNARY_I), "binary": (BINARY_F, BINARY_I),
                  "fold": (FOLDS_F, FOLDS_I), "move": (MOVES, MOVES),
                  "product": (PRODUCTS, PRODUCTS)}[kind]
        name = rng.choice(sorted(tables[self.exact]))
        f = tables[self.exact][name]
        self.text.append(f"{kind} {name} {i} {j} {k} {axis}")
        k = min(k, self.b - 1, self.d - 1)

        def run(vs, w, c):
            x, y = pick(vs, i), pick(vs, j)
            if kind == "unary":
                r = f(x)
            elif kind == "binary":
                r = f(x, y)
            elif kind == "product":
                r = f(x, y, w)
            elif kind == "fold":
                r = f(x, axis) - y
            else:
                r = f(x, k)
            return near_one(r.astype(x.dtype) if self.exact else r)
        return run

    def function(self, place=None):
        """place(number of the step, value): where the value is to be, as it is."""
        def values(x, y, w, c):
            vs = [x, y]
            for i, s in enumerate(self.steps):
                v = s(vs, w, c)
                vs.append(place(i, v) if place else v)
            return [vs[i] for i in self.results]

        def loss(x, y, w, c):
            return sum(jnp.mean(v * v) + jnp.mean(v) for v in values(x, y, w, c))

        if self.wrap == "plain":
            return values
        if self.wrap == "jvp":
            return lambda x, y, w, c: jax.jvp(lambda x, w: values(x, y, w, c), (x, w), (y, w))
        if self.wrap == "value_and_grad":
            return jax.value_and_grad(loss, (0, 1))
        return jax.grad(loss, (0,) if self.wrap == "grad" else (2, 0))

    def arguments(self):
        rng = np.random.default_rng(self.seed)
        if self.exact:
            draw = [rng.integers(-9, 10, s).astype(np.int32)
                    for s in ((self.b, self.d), (self.b, self.d), (self.d, self.d))]
        else:
            draw = [rng.standard_normal(s).astype(np.float32)
                    for s in ((self.b, self.d), (self.b, self.d))]
            draw.append((rng.standard_normal((self.d, self.d)) / np.sqrt(self.d))
                        .astype(np.float32))
        return [*draw, np.int32(rng.integers(0, 4))]


class Spread:
    """A mesh and shardings for a program, of its seed."""

    def __init__(self, program, devices):
        rng = self.rng = random.Random(f"{program.seed} spread")
        shape = rng.choice(MESHES)
        devices = rng.sample(devices, int(np.prod(shape)))
        self.mesh = Mesh(np.array(devices).reshape(shape), tuple("xyz"[:len(shape)]))
        b, d = program.b, program.d
        self.args = [self.sharding(b, d), self.sharding(b, d), self.sharding(d, d),
                     NamedSharding(self.mesh, P())]
        self.values = [self.sharding(b, d) if rng.random() < 0.4 else None
                       for _ in program.steps]
        self.text = [f"mesh {shape} of {[d.id for d in devices]}",
                     f"arguments {[s.spec for s in self.args]}",
                     f"values {[s and s.spec for s in self.values]}"]

    def sharding(self, *dims):
        spec, left = [[] for _ in dims], list(dims)
        for axis in self.rng.sample(self.mesh.axis_names, len(self.mesh.axis_names)):
            i = self.rng.randint(0, len(dims))
            if i < len(dims) and left[i] % self.mesh.shape[axis] == 0:
                left[i] //= self.mesh.shape[axis]
                spec[i].append(axis)
        return NamedSharding(self.mesh, P(*(tuple(a) or None for a in spec)))

    def place(self, i, v):
        s = self.values[i]
        return lax.with_sharding_constraint(v, s) if s else v

    def run(self, program, args, donate):
        args = [jax.device_put(a, s) for a, s in zip(args, self.args)]
        out = jax.jit(program.function(self.place), donate_argnums=donate)(*args)
        return [np.asarray(x) for x in jax.tree.leaves(out)]


def run(program, where, args, donate=(), whole=True):
    """whole: as one compiled program, else op by op."""
    f = program.function()
    with jax.default_device(where), jax.disable_jit(not whole):
        args = jax.device_put(args, where)
        out = jax.jit(f, donate_argnums=donate)(*args) if whole else f(*args)
        return [np.asarray(x) for x in jax.tree.leaves(out)]


def draw(seed, spread):
    return Program(seed, EVEN, EVEN) if spread else Program(seed)


def judge(seed, devices, cpu, spread):
    """(what is wrong or None, whether XLA's CPU backend was wrong): where they differ, the
    CPU runs the program op by op, which knows none of its mistakes with whole programs
    (t = x[i]; t.at[1:].set(t[:-1]) is one)."""
    p = draw(seed, spread)
    args = p.arguments()
    donate = (0, 1) if p.donate else ()
    if spread:
        got = Spread(p, devices).run(p, args, donate)
    else:
        got = run(p, devices[0], args, donate)
    wrong = compare(p, got, args, cpu, True)
    if not wrong:
        return None, False
    again = compare(p, got, args, cpu, False)
    return (wrong, False) if again else (None, True)


def compare(p, got, args, cpu, whole):
    want = run(p, cpu, args, (), whole)
    if p.exact:
        bad = [f"result {i}: {np.count_nonzero(a != b)} of {a.size} differ"
               for i, (a, b) in enumerate(zip(got, want)) if not np.array_equal(a, b)]
        return "; ".join(bad) or None
    with jax.enable_x64(True):
        exact = run(p, cpu, [a.astype(np.float64) if a.dtype == np.float32 else a for a in args],
                    (), whole)
    bad = []
    most = max((abs(e).max(initial=0) for e in exact if np.isfinite(e).all()), default=0)
    for i, (a, b, e) in enumerate(zip(got, want, exact)):
        if a.shape != b.shape or a.dtype != b.dtype:
            bad.append(f"result {i}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}")
            continue
        if not np.isfinite(e).all() or not np.isfinite(b).all():
            # Out of reach after all: that it is so, and where, must be the same.
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                bad.append(f"result {i}: NaN elsewhere than on the CPU")
            continue
        # A result of zeros alone is of terms that cancel, and rounding leaves a trace of these:
        # they are as large as the other results.
        size = abs(e).max(initial=0) or most
        ulp = np.spacing(np.float32(max(size, 1e-30)))
        allowed = ALLOWED * abs(b - e).max(initial=0) + SLACK * ulp
        far = abs(a - e)
        if not (far <= allowed).all():
            bad.append(f"result {i}: {np.count_nonzero(~(far <= allowed))} of {a.size} differ, "
                       f"by {np.nanmax(far) / ulp:.3g} units of the largest; "
                       f"the CPU's f32 by {abs(b - e).max() / ulp:.3g}")
    return "; ".join(bad) or None


def main():
    spread = "--spread" in sys.argv
    words = [w for w in sys.argv[1:] if w != "--spread"]
    if words[0] == "--show":
        p = draw(int(words[1]), spread)
        print("\n".join(p.text + (Spread(p, jax.devices("tessera")).text if spread else [])))
        return
    devices, cpu = jax.devices("tessera"), jax.devices("cpu")[0]
    for seed in map(int, words):
        print(json.dumps({"start": seed}), flush=True)
        try:
            wrong, cpu_wrong = judge(seed, devices, cpu, spread)
        except Exception:
            wrong, cpu_wrong = traceback.format_exc(limit=-1)[-600:], False
        print(json.dumps({"end": seed, "wrong": wrong, "cpu_wrong": cpu_wrong}), flush=True)
        if seed % 16 == 0:
            jax.clear_caches()


if __name__ == "__main__":
    main()
