# SPDX-License-Identifier: Apache-2.0
"""Programs whose results are born in memory that is still read: through views, in loops,
in donated arguments. Arithmetic is exact, so every element equals the CPU backend's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

lax = jax.lax
CPU = jax.devices("cpu")[0]

pytestmark = pytest.mark.filterwarnings("ignore:Some donated buffers")

# A tile of the model is a few thousand elements: sizes on both sides of one, and of many.
SIZES = [1, 2, 1000, 20_000, 300_000]
LARGE = [1 << 20, 4 << 20]
SIDES = [1, 2, 32, 48, 100, 512]
LARGE_SIDE = 2048


def whole(n):
    """Small whole numbers: sums and differences of a few are exact in f32."""
    return (np.arange(n, dtype=np.int64) * 7919 % 257 - 128).astype(np.float32)


def square(n):
    return whole(n * n).reshape(n, n)


def check(f, *args, donate=(), device):
    donate = donate if isinstance(donate, tuple) else (donate,)
    wanted = jax.jit(f)(*[jax.device_put(a, CPU) for a in args])
    given = [jax.device_put(a, device) for a in args]
    got = jax.jit(f, donate_argnums=donate)(*given)
    wanted, got = jax.tree.leaves(wanted), jax.tree.leaves(got)
    assert len(wanted) == len(got)
    for w, g in zip(wanted, got):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))
    for i, a in enumerate(given):
        if i not in donate:
            np.testing.assert_array_equal(np.asarray(a), args[i], err_msg=f"argument {i}")


def loop(n, body):
    return lambda *x: lax.fori_loop(0, n, lambda i, b: body(b), x if len(x) > 1 else x[0])


# ---- the family by size: one array in, small whole numbers ----

ARRAYS = {
    "minus_its_first": loop(2, lambda b: b - b[0]),
    "minus_its_last": loop(3, lambda b: b - b[-1]),
    "plus_its_reverse": lambda a: a[::-1] + a,
    "minus_its_reverse_in_a_loop": loop(3, lambda b: b[::-1] - b),
    "moved_up": loop(3, lambda b: lax.dynamic_update_slice(b, b[:-64], (64,))
                     if b.shape[0] > 64 else b + 1),
    "moved_down": loop(3, lambda b: lax.dynamic_update_slice(b, b[1:], (0,))),
    "moved_by_what_it_holds": loop(3, lambda b: lax.dynamic_update_slice(
        b, b[b.shape[0] // 2:], (b[0].astype(jnp.int32) % 3,))),
    "rolled": loop(3, lambda b: jnp.concatenate([b[1:], b[:1]])),
    "rolled_by_a_third": loop(3, lambda b: jnp.roll(b, b.shape[0] // 3) + 1),
    "scattered_from_its_reverse": lambda a: a.at[
        (jnp.arange(a.shape[0]) * 3 + 1) % a.shape[0]].max(a[::-1]),
    "scattered_in_a_loop": loop(2, lambda b: b.at[
        (b.astype(jnp.int32) + 128) % b.shape[0]].add(b[::-1], mode="drop")),
    "sorted_from_behind": lambda a: jnp.sort(a[::-1]),
    "sorted_in_a_loop": loop(2, lambda b: jnp.sort(b[::-1]) - b),
    "padded_by_itself": loop(2, lambda b: jnp.pad(b[1:], (0, 1)) + b),
    "shifted_difference": loop(3, lambda b: b.at[1:].set(b[1:] - b[:-1])),
    "reversed_in_a_branch": lambda a: lax.cond(a[0] < 500, lambda x: x[::-1], lambda x: x, a),
    "reversed_branch_in_a_loop": lambda a: lax.fori_loop(0, 3, lambda i, b: lax.cond(
        i % 2 == 0, lambda x: x[::-1], lambda x: x - x[0], b), a),
    "a_view_and_itself": lambda a: (a[::-1], a + 1),
    "itself_twice": lambda a: (a, a),
    "two_views": lambda a: (a[::-1], a[::-1] + a[0]),
    "cumulative": lambda a: lax.associative_scan(jnp.add, a.astype(jnp.int32)) +
    a[::-1].astype(jnp.int32),
    "behind_a_barrier": lambda a: lax.optimization_barrier(a)[::-1] + a,
    "halves_swapped": loop(3, lambda b: jnp.concatenate(
        [b[b.shape[0] // 2:] + b[0], b[:b.shape[0] // 2]])),
    "odd_and_even": loop(2, lambda b: b.at[::2].set(b[1::2][0] if b.shape[0] > 1 else b[0])),
    "windows": loop(2, lambda b: lax.reduce_window(b, -np.inf, lax.max, (3,), (1,), "SAME")
                    - b[::-1]),
    "bits_of_itself": lambda a: lax.bitcast_convert_type(a[::-1], jnp.int32) +
    lax.bitcast_convert_type(a, jnp.int32),
    "made_for_a_loop": lambda a: loop(3, lambda b: b[::-1] - b)(a * 2),
    "made_for_a_loop_and_kept": lambda a: (lambda b: (loop(3, lambda c: c + 1)(b), b[::-1]))(a * 2),
    "made_for_two_loops": lambda a: (lambda b: (loop(3, lambda c: c + 1)(b),
                                                loop(2, lambda c: c[::-1] - 1)(b)))(a * 2),
    "a_loop_behind_a_loop": lambda a: loop(2, lambda b: b - b[0])(
        loop(3, lambda b: b[::-1] + 1)(a).reshape(-1, 1)).reshape(-1),
    "a_loop_behind_a_loop_that_is_kept": lambda a: (lambda b: (loop(2, lambda c: c - c[0])(b), b))(
        loop(3, lambda b: b[::-1] + 1)(a)),
    "other_width": lambda a: (a[::-1].astype(jnp.bfloat16), a.astype(jnp.bfloat16) + 1),
}


# Those that once were wrong, and the ones closest to them.
ALSO_LARGE = ["minus_its_first", "plus_its_reverse", "moved_up", "minus_its_reverse_in_a_loop"]


@pytest.mark.parametrize("donated", [False, True], ids=["kept", "donated"])
@pytest.mark.parametrize("name,n", [(name, n) for name in ARRAYS for n in SIZES] +
                         [(name, n) for name in ALSO_LARGE for n in LARGE])
def test_array_read_through_views_while_it_is_written(name, n, donated, device):
    check(ARRAYS[name], whole(n), donate=0 if donated else (), device=device)


# ---- square matrices ----

def choleskyish(a):
    """Column by column, each step reading rows that earlier steps wrote."""
    def step(k, m):
        column = m[:, k] - m[k, :]
        return m.at[:, k].set(column).at[k, :].add(jnp.minimum(m[k, ::-1], 3))
    return lax.fori_loop(0, min(3, a.shape[0]), step, a)


MATRICES = {
    "divided_by_its_corner": loop(3, lambda b: b / jnp.maximum(jnp.abs(b[0, 0]), 1)),
    "minus_its_first_row": loop(3, lambda b: b - b[0]),
    "minus_its_first_column": loop(3, lambda b: b - b[:, :1]),
    "symmetric_in_scan": lambda a: lax.scan(
        lambda x, _: ((x + x.T) / 2, x[0, 0]), a, None, length=3),
    "stacked_transposes": lambda a: lax.scan(lambda x, _: (x.T + 1, x.T), a, None, length=3),
    "transposed": loop(3, lambda b: b.T),
    "transposed_of_a_transpose": loop(2, lambda b: b.T[::-1].T - b),
    "plus_its_transpose": lambda a: a + a.T,
    "rotated": loop(3, lambda b: jnp.rot90(b)),
    "columns_swapped": loop(3, lambda b: jnp.concatenate(
        [b[:, b.shape[1] // 2:], b[:, :b.shape[1] // 2]], 1)),
    "row_set_from_column": loop(3, lambda b: b.at[0].set(b[:, -1])),
    "rows_by_column": loop(2, lambda b: b - jnp.sum(b, 1).astype(jnp.int32) % 5),
    "softmaxish": loop(2, lambda b: b - jnp.max(b, 1, keepdims=True)),
    "product_plus_itself": loop(2, lambda b: jnp.sign(b @ b.T) + b.T),
    "choleskyish": choleskyish,
    "reshaped": lambda a: a.reshape(-1)[::-1].reshape(a.shape) + a,
    "reshaped_in_a_loop": loop(2, lambda b: (b.reshape(-1) - b.reshape(-1)[0])
                               .reshape(b.shape).T),
    "broadcast_row": lambda a: a - jnp.broadcast_to(a[-1], a.shape),
    "gathered_rows": loop(2, lambda b: b[jnp.arange(b.shape[0])[::-1]] - b),
    "upper_triangle": loop(2, lambda b: jnp.triu(b.T) + b),
    "convolved": lambda a: lax.conv(jnp.sign(a)[None, None], jnp.sign(a[:1, :1])[None, None],
                                    (1, 1), "SAME")[0, 0] + a.T,
}


@pytest.mark.parametrize("donated", [False, True], ids=["kept", "donated"])
@pytest.mark.parametrize("name,n", [(name, n) for name in MATRICES for n in SIDES] +
                         [("divided_by_its_corner", LARGE_SIDE),
                          ("symmetric_in_scan", LARGE_SIDE)])
def test_matrix_read_through_views_while_it_is_written(name, n, donated, device):
    check(MATRICES[name], square(n), donate=0 if donated else (), device=device)


# ---- several arrays ----

PAIRS = {
    "swapped": loop(3, lambda b: (b[1], b[0])),
    "swapped_and_changed": loop(3, lambda b: (b[1] - 1, b[0] + 1)),
    "swapped_through_views": loop(3, lambda b: (b[1][::-1], b[0][::-1])),
    "one_from_both": loop(3, lambda b: (b[1][::-1] - b[0], b[0])),
    "both_from_one": loop(3, lambda b: (b[0][::-1], b[0] + 1)),
    "sum_and_difference": loop(2, lambda b: (b[0] + b[1], b[0] - b[1])),
    "crossed_halves": loop(3, lambda b: (
        jnp.concatenate([b[0][:b[0].shape[0] // 2], b[1][b[0].shape[0] // 2:]]),
        jnp.concatenate([b[1][:b[0].shape[0] // 2], b[0][b[0].shape[0] // 2:]]))),
    "results_crossed": lambda a, b: (b[::-1], a[::-1]),
    "results_exchanged": lambda a, b: (b, a),
    "both_of_the_first": lambda a, b: (a[::-1], a + b),
    "scattered_together": lambda a, b: (a.at[::2].add(b[::-1][::2]), b.at[::2].add(a[::2])),
    "sorted_together": lambda a, b: lax.sort((a[::-1], b), num_keys=2),
    "loop_in_a_loop": lambda a, b: lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(
        0, 2, lambda k, d: (d[1][::-1] - c[0], d[0]), (c[1], c[0])), (a, b)),
    "captured_view": lambda a, b: lax.fori_loop(0, 2, lambda i, c: c - a[::-1], a) + b,
    "captured_by_the_condition": lambda a, b: lax.while_loop(
        lambda c: c[2] < 3, lambda c: (c[1][::-1], c[0] - c[0][0], c[2] + 1), (a, b, 0)),
    "same_array_twice": lambda a, b: lax.fori_loop(
        0, 2, lambda i, c: (c[0] + 1, c[1] - c[0][::-1]), (a + b, a + b)),
    "views_of_one_carried": lambda a, b: (lambda t: lax.fori_loop(
        0, 2, lambda i, c: (c[1][::-1], c[0] + 1), (t[:t.shape[0] // 2],
                                                     t[t.shape[0] - t.shape[0] // 2:])))(a + b),
    "branch_of_views": lambda a, b: lax.cond(a[0] > b[0], lambda x, y: (y[::-1], x),
                                             lambda x, y: (x, y[::-1]), a, b),
    "branches_in_a_loop": lambda a, b: lax.fori_loop(0, 4, lambda i, c: lax.switch(
        i % 3, [lambda x, y: (y, x), lambda x, y: (x[::-1], y - 1),
                lambda x, y: (y[::-1], x)], *c), (a, b)),
}


@pytest.mark.parametrize("n", [2, 1000, 50_000])
@pytest.mark.parametrize("name", PAIRS)
def test_two_arrays_that_change_places(name, n, device):
    a = whole(n)
    for donate in ((), 0, 1, (0, 1)):
        check(PAIRS[name], a, np.roll(a, 3) + 1, donate=donate, device=device)


@pytest.mark.parametrize("n", [7, 20_000])
@pytest.mark.parametrize("k", [3, 5, 9])
def test_carried_tuple_rotates(k, n, device):
    args = [whole(n) + i for i in range(k)]
    turn = loop(k + 1, lambda b: b[1:] + (b[0][::-1],))
    for donate in ((), tuple(range(k))):
        check(turn, *args, donate=donate, device=device)


@pytest.mark.parametrize("n", [1, 7, 4099, 1 << 20, 4 << 20])
def test_scattered_over_itself_by_a_permutation(n, device):
    a = whole(n)
    perm = np.random.default_rng(n).permutation(n).astype(np.int32)
    for donate in ((), 0):
        check(lambda a, p: a.at[p].set(a[::-1]), a, perm, donate=donate, device=device)


def test_empty_random_bits_keep_the_state(device):
    check(lambda s: lax.rng_bit_generator(s, (0,)), np.arange(4, dtype=np.uint32) + 9,
          device=device)


# ---- what is computed at once and then put together is computed where it ends ----

def temporaries_and_results(f, *args):
    g = jax.jit(f).lower(*args).compile()
    here = jax.device_get(g(*args))
    with jax.default_device(CPU):
        there = jax.device_get(jax.jit(f)(*args))
    return g.memory_analysis().temp_size_in_bytes, here, there


def three(x):
    """By one instruction: each is made of the one before."""
    a = x + 1
    b = a * x
    return a, b, b - a


# Along each dim, behind each other and interleaved, in another shape, and in two arrays at once.
JOINS = {
    "dim 0": lambda x: jnp.concatenate(three(x), 0),
    "dim 1": lambda x: jnp.concatenate(three(x), 1),
    "stacked first": lambda x: jnp.stack(three(x), 0),
    "stacked between": lambda x: jnp.stack(three(x), 1),
    "stacked last": lambda x: jnp.stack(three(x), 2),
    "flat": lambda x: jnp.stack(three(x), 2).reshape(-1),
    "flat parts": lambda x: jnp.concatenate([y.reshape(-1) for y in three(x)]),
    "turned": lambda x: jnp.concatenate([y.T for y in three(x)], 1),
    "two wholes": lambda x: (jnp.stack(three(x), 2), jnp.concatenate(three(x * x), 1)),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("shape", [(24, 40), (1, 8), (8, 1), (1, 4), (300, 400)])
def test_joined_parts_are_born_in_their_places(name, shape):
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.float32)
    temps, here, there = temporaries_and_results(JOINS[name], x)
    jax.tree.map(np.testing.assert_array_equal, here, there)
    assert temps == 0


# What others look at too, parts of two instructions, parts twice, and what has elements between.
NO_JOINS = {
    "a part is a result": lambda x: (jnp.stack(three(x), 2), three(x)[1]),
    "a part is used": lambda x: jnp.stack(three(x), 2).sum() + three(x)[0].max(),
    "one part twice": lambda x: jnp.stack([*three(x), x + 1], 1),
    "two instructions": lambda x: jnp.stack([*three(x), lax.optimization_barrier(x * 2) - 1], 1),
    "an argument": lambda x: jnp.stack([*three(x), x], 1),
    "a constant": lambda x: jnp.stack([*three(x), jnp.zeros_like(x)], 2),
    "rows of parts": lambda x: jnp.concatenate([y.reshape(-1, 4) for y in three(x)], 1),
    "another shape on the way": lambda x: jnp.concatenate(
        [y.reshape(8, -1) for y in three(x)], 1),
    "one after the other": lambda x: jnp.stack([jnp.stack(three(x), 0), jnp.stack(
        three(x * 3), 0)], 3),
}


@pytest.mark.parametrize("name", NO_JOINS)
def test_other_joins_are_right_too(name):
    x = np.random.default_rng(2).integers(-50, 50, (24, 40)).astype(np.float32)
    _, here, there = temporaries_and_results(NO_JOINS[name], x)
    jax.tree.map(np.testing.assert_array_equal, here, there)


# Each by an instruction of its own, one after the other in memory.
BLOCKS = {
    "products": lambda x: jnp.concatenate([x @ x.T, x[:8] @ x.T, x[3:4] @ x.T]),
    "products that are stacked": lambda x: jnp.stack([x @ x.T, x @ x[::-1].T]),
    "with work on them": lambda x: jnp.concatenate([(x @ x.T) * 2, jnp.abs(x[:8] @ x.T)]),
    "turned": lambda x: jnp.concatenate([(x @ x.T).T, (x[:, :8] @ x[:, 8:16].T).T]),
    "rows that are looked up": lambda x: jnp.concatenate(
        [x[jnp.arange(0, 24, 2)], x[:5, :24] @ x]),
    "a convolution": lambda x: jnp.concatenate([
        lax.conv_general_dilated(x.reshape(1, 4, 40, 6), w.reshape(3, 3, 6, 8), (1, 1), "SAME",
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
        for w in (x.ravel()[:432], x.ravel()[432:864])]),
}
OTHERS = {
    "an argument between": lambda x: jnp.concatenate([x @ x.T, x[:, :24], x[::-1] @ x.T]),
    "side by side": lambda x: jnp.concatenate([x @ x.T, x[::-1] @ x.T], 1),
    "seen by others": lambda x: (lambda y: (jnp.concatenate([y, x[::-1] @ x.T]), y.T @ y))(
        x @ x.T),
    "twice": lambda x: (lambda y: jnp.concatenate([y, y]))(x @ x.T),
    "twice in two": lambda x: jnp.concatenate([jnp.concatenate([x @ x.T, x[:4] @ x.T]), x[:, :24]]),
    "folded after": lambda x: jnp.concatenate([x @ x.T, x[::-1] @ x.T]).sum(0),
    "an empty one": lambda x: jnp.concatenate([x @ x.T, x[:0] @ x.T, x[:1] @ x.T]),
    "in a loop": lambda x: lax.fori_loop(0, 4, lambda i, y: jnp.concatenate(
        [y[:8] @ y[:, ::-1] % 7, (y[8:] + i) @ y % 5]), x[:, :24]),
    "by way of a branch": lambda x: jnp.concatenate([x @ x.T, lax.cond(
        x[0, 0] > 0, lambda: x @ x[::-1].T, lambda: x[::-1] @ x.T)]),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_several_instructions_are_born_in_their_places(name):
    x = np.random.default_rng(5).integers(-5, 5, (24, 40)).astype(np.float32)
    temps, here, there = temporaries_and_results(BLOCKS[name], x)
    np.testing.assert_array_equal(here, there)
    assert temps <= 64      # where to look; the smallest block has 160 bytes


def test_a_small_block_holds_no_memory_for_large_ones_to_come():
    def f(x):
        first = x[:1] @ x.T
        y = jnp.sort(jnp.tile(x, (6, 1)), 0)
        return jnp.concatenate([first, y[:512] @ x, y[512:1024] @ x]).sum()

    x = np.eye(512, dtype=np.float32)
    temps, here, there = temporaries_and_results(f, x)
    assert here == there
    assert temps < 12.5 * x.nbytes      # two arrays of six each; the whole would be two more


@pytest.mark.parametrize("name", OTHERS)
def test_other_blocks_are_right_too(name):
    x = np.random.default_rng(6).integers(-5, 5, (24, 40)).astype(np.float32)
    _, here, there = temporaries_and_results(OTHERS[name], x)
    jax.tree.map(np.testing.assert_array_equal, here, there)


# Eight wholes, one after the other; of each the first rows are made before all of them.
def test_small_blocks_do_not_keep_wholes_in_memory():
    def f(x, w):
        first = [w[k:k + 2] * k @ x for k in range(8)]
        for rows in first:
            x = (jnp.concatenate([rows, jnp.sort(x, 0) + 1]) @ x)[:64]
        return x

    x = np.random.default_rng(7).integers(-5, 5, (64, 64)).astype(np.float32)
    temps, _, _ = temporaries_and_results(f, x, x[:16])
    assert temps < 5 * x.nbytes     # not one for each


def test_a_donated_argument_is_joined_after_it_is_read():
    x = np.random.default_rng(3).integers(-50, 50, (64, 32)).astype(np.float32)

    def f(x, y):
        return jnp.concatenate([y + 1, (y + 1) * y], 1) - x[::-1]

    want = np.concatenate([x[:, :16] + 1, (x[:, :16] + 1) * x[:, :16]], 1) - x[::-1]
    got = jax.jit(f, donate_argnums=0)(jax.device_put(x), x[:, :16])
    np.testing.assert_array_equal(got, want)

    def turned(x):
        a = x[:, :16] + 1
        return jnp.concatenate([a, a * x[::-1, 16:]], 1)

    got = jax.jit(turned, donate_argnums=0)(jax.device_put(x))
    np.testing.assert_array_equal(got, np.concatenate(
        [x[:, :16] + 1, (x[:, :16] + 1) * x[::-1, 16:]], 1))


def test_loops_join_what_they_carry():
    x = np.random.default_rng(4).integers(0, 5, (16, 12)).astype(np.float32)

    def turn(_, x):
        a = x[:, 6:] + 1
        return jnp.concatenate([a, a - x[:, :6]], 1)

    def rounds(_, x):
        a = x[:, 1::2] + 1
        return jnp.stack([a, a - x[:, ::2]], 2).reshape(x.shape)

    for body in (turn, rounds):
        _, here, there = temporaries_and_results(lambda x, b=body: lax.fori_loop(0, 5, b, x), x)
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("donated,others", [(2100, 0), (4000, 40), (4000, 60)])
def test_a_donated_result_counts_once(device, donated, others):
    """Of the 4094 arrays that a program may have."""
    def f(a, b):
        return [x + 1 for x in a], [x + 2 for x in b]

    args = jax.device_put(([np.float32(i) for i in range(donated)], [np.float32(1)] * others),
                          device)
    if donated + 2 * others > 4094:
        with pytest.raises(jax.errors.JaxRuntimeError, match="4094 together, but for results"):
            jax.jit(f, donate_argnums=0)(*args)
        return
    got, rest = jax.device_get(jax.jit(f, donate_argnums=0)(*args))
    assert got == [i + 1 for i in range(donated)] and rest == [3] * others
