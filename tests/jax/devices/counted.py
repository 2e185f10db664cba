# SPDX-License-Identifier: Apache-2.0
"""How often the members of a program over 8 devices meet, and what each of them is sent then,
beside what XLA's CPU backend makes of the same program. In a loop they meet in each turn.

Each program here is compiled for both and run on both. A line a program: its name and what is
wrong: results that differ, more meetings, more bytes.
"""

import json
import re
import sys
import traceback

if __name__ == "__main__":
    import eight_cpus  # noqa: F401: before jax

import jax                                                                    # noqa: E402
import jax.numpy as jnp                                                       # noqa: E402
import numpy as np                                                            # noqa: E402
from jax import lax                                                           # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P                    # noqa: E402

ROWS, COLS = P("x"), P(None, "x")


def data(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def gradient(f):
    return lambda *args: jax.grad(lambda *a: jnp.sum(jnp.sin(f(*a))),
                                  tuple(range(len(args))))(*args)


def smoothed(x):
    for _ in range(3):
        x = x / 2 + (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0)) / 4
    return x


def shifted(x):
    return jnp.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0)))


def shifted_back(x):
    return jnp.concatenate([x[:, 1:], jnp.ones_like(x[:, :1])], 1) - x


def stages(w, x):
    """A member each, which hands on what it made to the next one."""
    def step(state, new):
        state = jnp.concatenate([new[None], state[:-1]])
        state = jax.vmap(lambda w, a: jnp.tanh(a @ w))(w, state)
        return state, state[-1]
    return lax.scan(step, jnp.zeros((8, 4, 16)), x)


def convolved(step):
    return lambda x, k: lax.conv_general_dilated(x, k, (step, step), "SAME",
                                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def loss_of_the_next(logits, tokens):
    p = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.mean(jnp.take_along_axis(p, tokens[:, 1:, None], -1))


def heated(x):
    def step(_, x):
        inner = (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1])
        return x + jnp.pad(inner, 1) / 10
    return lax.fori_loop(0, 4, step, x)


def decayed(x, reverse=False):
    """Its rows, of which no member has all, one in a turn."""
    return lax.scan(lambda c, row: (c * 0.9 + row, c), jnp.zeros_like(x[0]), x, reverse=reverse)


def decayed_some_times(x):
    return lax.fori_loop(0, 3, lambda _, c: lax.scan(
        lambda c, row: (c * 0.9 + row, None), c, x)[0], jnp.zeros(x.shape[1:]))


def decayed_until(x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.9 + x[s[0]]),
                          (jnp.int32(1), jnp.zeros(x.shape[1:])))


def decayed_in_an_order(x, order):
    return lax.scan(lambda c, i: (c * 0.9 + jnp.take(x, i, axis=0), None), jnp.zeros(x.shape[1:]),
                    order)[0]


def through_layers(w, x):
    """One layer in a turn; what it is to remember lies as x does."""
    def layer(x, w):
        h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1)
        return x + jnp.tanh(h @ w), None
    return lax.scan(layer, x, w)[0]


def layers_a_step_on(w, x):
    return w - jax.grad(lambda w: jnp.mean(through_layers(w, x) ** 2))(w) / 10


LOGITS = [(data(4, 32, 32), COLS), (np.arange(128, dtype=np.int32).reshape(4, 32) * 7 % 32, COLS)]

def padded_convolution(x, k):
    x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return lax.conv_general_dilated(x, k, (1, 1), "VALID",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def causal_convolution(x, k):
    return lax.conv_general_dilated(jnp.pad(x, ((0, 0), (3, 0), (0, 0))), k, (1,), "VALID",
                                    dimension_numbers=("NWC", "WIO", "NWC"),
                                    feature_group_count=8)


def pooled_with_overlaps(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def halves(x):
    return x[..., :x.shape[-1] // 2] * jnp.sin(x[..., x.shape[-1] // 2:])


def rotated(x, c, s):
    a, b = jnp.split(x, 2, -1)
    return x * c + jnp.concatenate([-b, a], -1) * s


def rotated_by_halves(x, c, s):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


def gated(x, w):
    a, b = jnp.split(x @ w, 2, -1)
    return a * jax.nn.sigmoid(b)


def attended(x, w):
    """All three of one product."""
    q, k, v = jnp.split(x @ w, 3, -1)
    return jax.nn.softmax(q @ k.mT / 8) @ v


def decayed_in_pairs(a, x):
    return lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, x))[1]


def second_differences(x):
    return x[2:] + x[:-2] - 2 * x[1:-1]


def around(mode):
    return lambda x: second_differences(jnp.pad(x, ((1, 1), (0, 0)), mode=mode))


def reflected_convolution(x, k):
    x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect")
    return lax.conv_general_dilated(x, k, (1, 1), "VALID",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def parts(n, axis):
    return lambda x: [a * (i + 1) for i, a in enumerate(jnp.split(x, n, axis))]


def with_ends(x):
    return jnp.sum(jnp.sin(jnp.concatenate([x[:1], x, x[-1:]])))


LAST = P(None, None, "x")
WEIGHTS = [(data(16, 24), P()), (data(24, 96), COLS)]

def lying_as(spec):
    return lambda x: jnp.sin(lax.with_sharding_constraint(x, spec)) * 2


BOTH = P(("x", "y"))

# Name: function, arguments with their shardings over a mesh of 8, or of 4 by 2 if they have a "y".
PROGRAMS = {
    "rolled_by_an_argument": (lambda x, n: jnp.roll(x, n, 0),
                              [(data(32, 4), ROWS), (np.int32(3), P())]),
    "largest": (lambda x: lax.top_k(x, 4), [(data(8, 32), COLS)]),
    "above_the_largest": (lambda x: jnp.where(x >= lax.top_k(x, 4)[0][:, -1:], x, -1e9),
                          [(data(8, 32), COLS)]),
    "rolled": (lambda x: jnp.roll(x, 1, 0), [(data(32, 4), ROWS)]),
    "rolled_by_more_than_a_part": (lambda x: jnp.roll(x, 5, 0), [(data(32, 4), ROWS)]),
    "rolled_by_a_part": (lambda x: jnp.roll(x, -4, 0), [(data(32, 4), ROWS)]),
    "rolled_along_two_dims": (lambda x: jnp.roll(x, (1, -2), (0, 1)), [(data(32, 4), ROWS)]),
    "gradient_of_a_roll": (gradient(lambda x: jnp.roll(x, 1, 0) * x), [(data(32, 4), ROWS)]),
    "smoothed": (smoothed, [(data(64, 4), ROWS)]),
    "shifted": (shifted, [(data(4, 32, 6), COLS)]),
    "gradient_of_a_shift": (gradient(lambda x: shifted(x) * x), [(data(4, 32, 6), COLS)]),
    "shifted_by_padding": (lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1] * x,
                           [(data(4, 32, 6), COLS)]),
    "shifted_back": (shifted_back, [(data(4, 32, 6), COLS)]),
    "gradients_of_a_convolution": (gradient(convolved(1)),
                                   [(data(2, 32, 32, 4), COLS), (data(3, 3, 4, 8), P())]),
    "gradients_of_a_convolution_with_steps": (gradient(convolved(2)),
                                              [(data(2, 32, 32, 4), COLS),
                                               (data(3, 3, 4, 8), P())]),
    "gradient_of_a_pool": (gradient(pooled), [(data(2, 32, 32, 4), COLS)]),
    "gradient_of_a_convolution_and_a_pool": (
        gradient(lambda k, x: pooled(jax.nn.relu(convolved(1)(x, k)))),
        [(data(3, 3, 4, 8), P()), (data(2, 32, 32, 4), COLS)]),
    "place_of_the_largest": (lambda x: jnp.argmax(x, 1), [(data(8, 32), COLS)]),
    "places_with_equals_and_nans": (
        lambda x: (jnp.argmax(jnp.round(x * 2), 1), jnp.argmin(jnp.round(x * 2), 1),
                   jnp.argmax(jnp.where(x > 0.9, jnp.nan, x), 1), jnp.argmin(x * -jnp.inf, 1)),
        [(data(8, 32), COLS)]),
    "last_row": (lambda x: x[:, -1] * 2, [(data(4, 32, 6), COLS)]),
    "each_row": (lambda x: [x[i] * i for i in range(8)], [(data(8, 6), ROWS)]),
    "sorted": (lambda x: jnp.sort(x, 1), [(data(64, 1024), COLS)]),
    "sorted_along_the_first_dim": (lambda x: jnp.sort(x, 0), [(data(1024, 64), ROWS)]),
    "places_when_sorted": (lambda x: jnp.argsort(x, 1), [(data(64, 1024), COLS)]),
    "sorted_by_another": (lambda x, y: lax.sort((x, y), num_keys=1, dimension=1),
                          [(data(64, 1024), COLS), (data(64, 1024, seed=1), COLS)]),
    "largest_of_many": (lambda x: lax.top_k(x, 4), [(data(64, 1024), COLS)]),
    "averages_of_neighbours": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9,
        [(data(2, 32, 32, 4), COLS)]),
    "loss_of_the_next_token": (loss_of_the_next, LOGITS),
    "gradient_of_that_loss": (jax.grad(loss_of_the_next), LOGITS),
    "all_but_the_first": (lambda x: jnp.sum(x[:, 1:] ** 2), [(data(4, 32, 6), COLS)]),
    "differences": (lambda x: jnp.sum(jnp.diff(x, axis=1) ** 2), [(data(4, 32, 6), COLS)]),
    "gradient_of_differences": (jax.grad(lambda x: jnp.sum(jnp.abs(x[1:] - x[:-1]))),
                                [(data(32, 6), ROWS)]),
    "largest_difference": (lambda x: jnp.argmax(x[:, 1:] - x[:, :-1], 1), [(data(8, 32), COLS)]),
    "products_of_neighbours": (lambda x: jnp.einsum("bsd,bse->bde", x[:, 1:], x[:, :-1]),
                               [(data(4, 32, 6), COLS)]),
    "heated": (heated, [(data(32, 16), ROWS)]),
    "gradients_of_a_padded_convolution": (gradient(padded_convolution),
                                          [(data(2, 32, 32, 4), COLS), (data(3, 3, 4, 8), P())]),
    "gradients_of_a_causal_convolution": (gradient(causal_convolution),
                                          [(data(2, 64, 8), COLS), (data(4, 1, 8), P())]),
    "sum_of_a_convolution_without_padding": (
        lambda x, k: jnp.sum(lax.conv_general_dilated(
            x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))),
        [(data(2, 32, 32, 4), COLS), (data(3, 3, 4, 8), P())]),
    "gradient_of_a_pool_with_overlaps": (gradient(pooled_with_overlaps),
                                         [(data(2, 32, 32, 4), COLS)]),
    "decayed": (decayed, [(data(256, 96), ROWS)]),
    "decayed_backwards": (lambda x: decayed(x, True), [(data(256, 96), ROWS)]),
    "gradient_of_what_decays": (jax.grad(lambda x: jnp.sum(jnp.sin(decayed(x)[1]))),
                                [(data(256, 96), ROWS)]),
    "decayed_some_times": (decayed_some_times, [(data(256, 96), ROWS)]),
    "decayed_until": (decayed_until, [(data(256, 96), ROWS), (np.int32(200), P())]),
    "decayed_in_an_order": (decayed_in_an_order, [(data(256, 96), ROWS),
                                                  (np.arange(256, dtype=np.int32)[::-1].copy(),
                                                   P())]),
    "halves": (halves, [(data(2, 4, 96), LAST)]),
    "halves_in_the_other_order": (lambda x: jnp.concatenate(jnp.split(x, 2, 1)[::-1], 1),
                                  [(data(4, 32), COLS)]),
    "rotated": (rotated, [(data(2, 4, 64), LAST), (data(64), P("x")), (data(64), P("x"))]),
    "rotated_by_halves": (rotated_by_halves, [(data(2, 4, 64), LAST), (data(32), P("x")),
                                              (data(32), P("x"))]),
    "gradient_of_what_is_rotated": (gradient(rotated_by_halves),
                                    [(data(2, 4, 64), LAST), (data(32), P("x")),
                                     (data(32), P("x"))]),
    "gated": (gated, WEIGHTS),
    "gradient_of_what_is_gated": (gradient(gated), WEIGHTS),
    "attended": (attended, WEIGHTS),
    "gradient_of_what_is_attended": (gradient(attended), WEIGHTS),
    "joined": (lambda x, y: jnp.concatenate([x, y], 0), [(data(64, 4), ROWS),
                                                         (data(64, 4, seed=1), ROWS)]),
    "scanned_in_pairs": (lambda x: lax.associative_scan(jnp.add, x), [(data(64, 12), ROWS)]),
    "decayed_in_pairs": (decayed_in_pairs, [(data(64, 12), ROWS), (data(64, 12, seed=1), ROWS)]),
    "area": (lambda x: jnp.trapezoid(x, axis=0), [(data(64, 4), ROWS)]),
    "reflected": (around("reflect"), [(data(64, 4), ROWS)]),
    "wrapped": (around("wrap"), [(data(64, 4), ROWS)]),
    "with_the_edges_again": (around("edge"), [(data(64, 4), ROWS)]),
    "much_reflected": (around("reflect"), [(data(64, 28), ROWS)]),
    "much_wrapped": (around("wrap"), [(data(64, 28), ROWS)]),
    "much_with_the_edges_again": (around("edge"), [(data(64, 28), ROWS)]),
    "reflected_convolution": (reflected_convolution, [(data(2, 32, 32, 4), COLS),
                                                      (data(3, 3, 4, 8), P())]),
    "with_both_ends_again": (with_ends, [(data(64, 28), ROWS)]),
    "split_into_eight": (parts(8, 0), [(data(64, 28), ROWS)]),
    "split_into_sixteen": (parts(16, 1), [(data(4, 128, 6), COLS)]),
    "split_into_four": (parts(4, 0), [(data(64, 28), ROWS)]),
    "uneven_rows": (lambda x: x[3:61] * 2, [(data(64, 28), ROWS)]),
    "fewer_rows": (lambda x: x[5:37] * 2, [(data(64, 28), ROWS)]),
    "joined_unevenly": (lambda x, y: jnp.concatenate([x[:30], y[:34]]) * 2,
                        [(data(64, 28), ROWS), (data(64, 28, seed=1), ROWS)]),
    "joined_with_uneven_rows": (lambda x, y: jnp.concatenate([x, y[:13]]) * 2,
                                [(data(64, 28), ROWS), (data(64, 28, seed=1), ROWS)]),
    "joined_around_another": (lambda x, y: jnp.concatenate([x[:3], y, x[3:8]]) * 2,
                              [(data(64, 28), ROWS), (data(64, 28, seed=1), ROWS)]),
    "parts_of_the_minor_axis": (lying_as(P("y")), [(data(64, 28), BOTH)]),
    "parts_of_the_major_axis": (lying_as(P("x")), [(data(64, 28), BOTH)]),
    "parts_of_the_minor_axis_and_of_columns": (lying_as(P("y", "x")), [(data(64, 28), BOTH)]),
    "layers_a_step_on": (layers_a_step_on, [(data(4, 32, 32), COLS), (data(16, 8, 32), ROWS)]),
    "stages": (stages, [(data(8, 16, 16), ROWS), (data(5, 4, 16), P())]),
}

# All-reduces that are one meeting, which XLA shows as one and we do not: so many.
SHOWN_APART = {"area": 1}

KINDS = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
BYTES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4}


def bytes_of(types):
    return sum(BYTES[e] * int(np.prod([int(n) for n in dims.split(",") if n], dtype=int))
               for e, dims in re.findall(r"(\w+)\[([\d,]*)\]", types))


def members(line):
    """How many meet."""
    if found := re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        return int(np.prod([int(sizes[a]) for a in re.findall(r"'(\w+)'", found[2])], dtype=int))
    if found := re.search(r"replica_groups=\[[\d,]*?(\d+)\]<=", line):
        return int(found[1])
    found = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    return found[1].count(",") + 1 if found else 8


TURNS = 256    # of a loop, as if each had so many


def meetings(text):
    """How many, and how many bytes a member gets in them, of a module as HLO text."""
    n = received = 0
    bodies = set(re.findall(r"body=%?([\w.-]+)", text))
    for line in text.splitlines():
        if found := re.match(r"(?:ENTRY )?%?([\w.-]+) .*{$", line):
            turns = TURNS if found[1] in bodies else 1
        if found := re.search(rf" = (.*?) ({KINDS})(-start)?\(", line):
            n += turns
            size = bytes_of(found[1]) * turns
            k = members(line)
            received += {"all-gather": size * (k - 1) // k, "all-to-all": size * (k - 1) // k,
                         "all-reduce": size * 2 * (k - 1) // k,
                         "reduce-scatter": size * (k - 1)}.get(found[2], size)
    return n, received


def on(platform, f, args):
    devices = np.array(jax.devices(platform)[:8])
    is_grid = any("y" in str(p) for _, p in args)
    mesh = (jax.sharding.Mesh(devices.reshape(4, 2), ("x", "y")) if is_grid else
            jax.sharding.Mesh(devices, ("x",)))
    args = [jax.device_put(x, NamedSharding(mesh, p)) for x, p in args]
    with jax.set_mesh(mesh):
        compiled = jax.jit(f).lower(*args).compile()
        return jax.tree.leaves(compiled(*args)), meetings(compiled.as_text())


def compare(name, f, args):
    (got, (n, received)), (want, (most, most_received)) = on("tessera", f, args), on("cpu", f, args)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)
    n -= SHOWN_APART.get(name, 0)
    assert n <= most, f"{n} meetings, with XLA {most}"
    assert received <= most_received, f"{received} bytes, with XLA {most_received}"


def main():
    for name, (f, args) in PROGRAMS.items():
        wrong = ""
        try:
            compare(name, f, args)
        except Exception:    # noqa: BLE001: the test's message
            wrong = traceback.format_exc()[-3000:]
        print(json.dumps([name, wrong]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
