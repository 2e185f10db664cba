# SPDX-License-Identifier: Apache-2.0
"""Arrays of about as many dims as an instruction runs along, and of more: as JAX's CPU backend.
Arithmetic is exact."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def agree(device, cpu, f, *args):
    got, want = (jax.device_get(jax.jit(f)(*jax.device_put(args, d))) for d in (device, cpu))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def whole(*shape):
    return (np.arange(np.prod(shape)) % 11 - 5).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("dims", [
    "abcdefgk,abcdefgk->abcdefg", "abcdefk,abcdefkn->abcdefn", "abcdefgk,abcdefgkn->abcdefgn",
    "abcdefgk,k->abcdefg", "abcdefghk,k->abcdefgh", "k,abcdefghk->abcdefgh",
    "kabcdefgh,k->abcdefgh", "abcdk,efghk->abcdefgh"])
def test_products_and_what_follows_them(device, cpu, dims):
    a, b = ([2 if d != "k" else 3 for d in side] for side in dims.split("->")[0].split(","))
    for one in ("", "a", "h"):
        shapes = [[1 if d in one and d else n for d, n in zip(side, shape)]
                  for side, shape in zip(dims.split("->")[0].split(","), (a, b))]
        agree(device, cpu, lambda x, y: jnp.maximum(jnp.einsum(dims, x, y) + 1, 0),
              *(whole(*s) for s in shapes))


X = whole(*(2, 3, 1, 2, 2, 1, 3, 2, 2, 2))


@pytest.mark.parametrize("f", [
    lambda x: jnp.maximum(x * 2 + 1, x[::-1]),
    lambda x: jnp.where(x > 0, x, 3).astype(np.int8),
    lambda x: jnp.clip(x, -1, jnp.float32(2)) * lax.broadcasted_iota(np.float32, x.shape, 6),
    lambda x: x * x.sum(3, keepdims=True),
    lambda x: x.sum((1, 4, 7)), lambda x: x.max((0, 2, 4, 6, 8)), lambda x: x.sum(),
    lambda x: x.min((1, 3, 5, 7, 9)), lambda x: (x.argmax(6), x.argmin(0)),
    lambda x: (x > 1).any((0, 9)), lambda x: lax.broadcasted_iota(np.int32, x.shape, 1),
    lambda x: (x[..., :0] + 1, x[..., :0].sum((0, 9))),
    lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2 - i, x),
    lambda x: lax.complex(x, x + 1) == lax.complex(x, x[::-1] + 1)])
def test_elementwise_work_and_reductions(device, cpu, f):
    agree(device, cpu, f, X)
    agree(device, cpu, f, X[:, :, None, :, None])


def window(x, size, stride, pad=None):
    full = [(0, 0)] * x.ndim if pad is None else pad
    return lax.reduce_window(x, -np.float32(np.inf), lax.max, size, stride, full)


@pytest.mark.parametrize("f", [
    lambda x: lax.sort(x, dimension=6), lambda x: lax.sort(x, dimension=0),
    lambda x: lax.sort(x, dimension=9), lambda x: lax.sort(x, dimension=2),
    lambda x: lax.sort((x, x[::-1]), dimension=1, num_keys=2),
    lambda x: lax.sort([x + k for k in range(6)], dimension=6, num_keys=1)[1:],
    lambda x: lax.sort(x[..., :0], dimension=6), lambda x: x.argsort(6)])
def test_sorts(device, cpu, f):
    agree(device, cpu, f, X)


@pytest.mark.parametrize("f", [
    lambda x: window(x, [2 if d == 3 else 1 for d in range(10)], [1] * 10),
    lambda x: window(x, [2 if d in (1, 6) else 1 for d in range(10)], [1] * 10),
    lambda x: window(x, [2 if d == 1 else 1 for d in range(10)], [2 if d in (0, 6) else 1
                                                                  for d in range(10)]),
    lambda x: window(x, [2 if d == 9 else 1 for d in range(10)], [1] * 10,
                     [(1, 0) if d in (5, 9) else (0, 0) for d in range(10)]),
    lambda x: lax.cumsum(x, 6), lambda x: lax.cummax(x, 0, reverse=True)])
def test_windows(device, cpu, f):
    agree(device, cpu, f, X)


@pytest.mark.parametrize("d", [0, 4, 9])
def test_wide_windows(device, cpu, d):
    x = whole(*(30 if k == d else 2 for k in range(10)))
    for at in (d, d and d - 1):
        size = [21 if k == d else 2 if k == at else 1 for k in range(10)]
        agree(device, cpu, lambda x, size=size: window(x, size, [1] * 10), x)


@pytest.mark.parametrize("a, b, dims", [
    ((2, 1, 3, 1, 1, 2, 1, 1, 5), (1, 2, 1, 1, 5, 1, 1, 3, 1, 4), (((8,), (4,)), ((), ()))),
    ((1, 2, 1, 3, 1, 1, 1, 1, 5), (1, 5, 2, 1, 1, 1, 4), (((0, 8), (0, 1)), ((1,), (2,)))),
    ((1, 1, 1, 1, 1, 1, 1, 1, 1), (1,), (((4,), (0,)), ((), ()))),
    ((2, 1, 1, 1, 1), (3, 1, 1, 1, 1), (((), ()), ((), ()))),
    ((1, 2, 0, 1, 1, 1, 1, 1, 1), (0, 3), (((2,), (0,)), ((), ())))])
def test_products_of_which_some_dims_have_one_element(device, cpu, a, b, dims):
    agree(device, cpu, lambda x, y: lax.dot_general(x, y, dims), whole(*a), whole(*b))


@pytest.mark.parametrize("dims", [
    "fjkxmpdi,zmefi->ijxekzmpd", "alynwbkc,kyjcdnlebwip->kwaljpidye",
    "akblcmdnepfqgrh,klmnpqrz->abcdefghz", "klmnpqrz,akblcmdnepfqgrh->abcdefghz",
    "kalbmcndoepfq,klmnopqgh->abcdefgh", "axbykzcwdve,vkewxzyfag->axyzwvbcdefg"])
def test_products_whose_dims_lie_apart(device, cpu, dims):
    a, b = (whole(*(3 if d in "ak" else 2 for d in side))
            for side in dims.split("->")[0].split(","))
    agree(device, cpu, lambda x, y: jnp.einsum(dims, x, y), a, b)
    agree(device, cpu, jax.grad(lambda x, y: (jnp.einsum(dims, x, y) % 7).sum(), (0, 1)), a, b)


def test_products_of_batches_in_different_orders(device, cpu):
    """No two of them lie behind each other on either side."""
    batch = (0, 3, 6, 1, 4, 7, 2, 5, 8), (8, 4, 0, 7, 3, 6, 2, 5, 1)
    agree(device, cpu, lambda x, y: lax.dot_general(x, y, (((10,), (9,)), batch)),
          whole(*(2,) * 9, 4, 33), whole(*(2,) * 9, 33, 3))


@pytest.mark.parametrize("n", [9, 12, 17, 20])
def test_gates_on_some_of_many_qubits(device, cpu, n):
    """As simulators of quantum computers write them."""
    def gates(state, one, two):
        for k in (0, n // 2, n - 1):
            state = jnp.moveaxis(jnp.tensordot(one, state, ((1,), (k,))), 0, k)
        for pair in ((1, 4), (n - 1, 0), (n - 2, n // 2)):
            state = jnp.moveaxis(jnp.tensordot(two, state, ((2, 3), pair)), (0, 1), pair)
        return state

    args = whole(*(2,) * n), whole(2, 2) % 2, whole(2, 2, 2, 2) % 3
    agree(device, cpu, gates, *args)
    agree(device, cpu, lambda *a: gates(*a).sum(tuple(range(1, n, 2))).ravel()[:4], *args)


PARTS = (4, 3, 2, 3, 4, 2, 2, 2, 3)
TWOS = whole(*(2,) * 12)
ALTERNATE = tuple(d ^ 1 for d in range(12))
EVEN, ODD = tuple(range(0, 12, 2)), tuple(range(1, 12, 2))


@pytest.mark.parametrize("f", [
    lambda x: x.transpose(ALTERNATE), lambda x: x.transpose()[1:], lambda x: jnp.flip(x, EVEN),
    lambda x: x + x.transpose(EVEN + ODD), lambda x: x.transpose(ALTERNATE).astype(jnp.int4),
    lambda x: x.sum(ODD), lambda x: x - x.max(EVEN, keepdims=True),
    lambda x: lax.broadcast_in_dim(x[(0,) * 6], (2,) * 12, EVEN),
    lambda x: jnp.pad(x[(slice(1),) * 6], [(0, 1), (0, 0)] * 6),
    lambda x: jnp.concatenate([x, x.transpose(), jnp.flip(x, ODD)], 3),
    lambda x: jnp.einsum("abcdefghijkl,bdfhjl->acegik", x, x[(0,) * 6]),
    lambda x: jnp.einsum("acegik,bdfhjl->abcdefghijkl", x[(0,) * 6], x[(1,) * 6]),
    lambda x: lax.fori_loop(0, 3, lambda i, x: (x + i).transpose(ALTERNATE), x),
    lambda x: lax.cond(x[(0,) * 12] > 0, lambda x: x.transpose(), lambda x: jnp.flip(x, EVEN), x)])
def test_what_moves_along_more_dims_than_an_instruction_walks(device, cpu, f):
    agree(device, cpu, f, TWOS)


def test_a_copy_of_too_many_instructions_is_refused_by_name(device):
    """Gaps between all places: 10 GB of them, which nobody asks for at run time."""
    x = jax.device_put(np.zeros((2,) * 21, np.int8), device)
    with pytest.raises(jax.errors.JaxRuntimeError, match="copies along 21 dims"):
        jax.jit(lambda x: jnp.pad(x, [(0, 1)] * 21)).lower(x).compile()


@pytest.mark.parametrize("f", [
    lambda x, i: x.at[1, 1].multiply(-1), lambda x, i: x.at[:, :, :, 1, :, :, 1].set(7),
    lambda x, i: x.at[1, :, :, :, :, :, :, :, :, :, :, 1].add(3),
    lambda x, i: (x[:, :, i[0]], x[i[0], :, :, i[1]]), lambda x, i: x.at[i[0], :, i[1]].add(1),
    lambda x, i: x.at[:, i[0], 0].max(i[1, 0]), lambda x, i: (x[tuple(i)], x[tuple(i[:9])]),
    lambda x, i: x.at[tuple(i)].add(2), lambda x, i: x.at[tuple(i[:9])].set(4, mode="drop"),
    lambda x, i: x.at[tuple(i[:9])].get(mode="fill", fill_value=9),
    lambda x, i: jnp.take_along_axis(x, (x > 0).astype(np.int32), 5),
    lambda x, i: jax.vmap(jax.vmap(lambda y, j: y[:, j], (1, 0)), (2, None))(x, i[0, :2]),
    lambda x, i: jax.grad(lambda x: (x[:, i[0], :, i[1]] ** 2).sum())(x),
    lambda x, i: jax.ops.segment_sum(x, i[0, :2], 3)])
@pytest.mark.parametrize("kind", [np.int32, np.int16, np.uint32])
def test_gathers_and_scatters(device, cpu, f, kind):
    low = 0 if kind == np.uint32 else -3
    i = np.random.default_rng(7).integers(low, 4, (12, 9)).astype(kind)
    agree(device, cpu, f, TWOS, i)


@pytest.mark.parametrize("batch", [(), (0, 1), (3, 7), (3, 4)])
@pytest.mark.parametrize("whole_dims", [(5,), (5, 6), (2, 5, 6, 8)])
def test_gathers_whose_indices_are_of_dims_that_are_taken_whole(device, cpu, batch, whole_dims):
    left = [d for d in range(11) if d not in batch]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(len(batch), 11)), collapsed_slice_dims=(),
        start_index_map=tuple(left[::-1]), operand_batching_dims=batch,
        start_indices_batching_dims=tuple(range(len(batch))))
    sizes = [2 if d in left and (d in whole_dims or d > 8) else 1 for d in range(11)]
    i = np.random.default_rng(8).integers(-1, 3, (2,) * len(batch) + (len(left),))
    agree(device, cpu, lambda x, i: lax.gather(x, i, numbers, sizes, mode="clip"),
          whole(*(2,) * 11), i.astype(np.int32))


@pytest.mark.parametrize("part", [(4,), (1, 8), (3, 4)])
def test_windows_that_are_a_part_of_a_dim(device, cpu, part):
    sizes = [1 if d == 0 else 2 if d in part else n for d, n in enumerate(whole(*PARTS).shape)]
    gather = lax.GatherDimensionNumbers(offset_dims=tuple(range(1, 9)), collapsed_slice_dims=(0,),
                                        start_index_map=(0,))
    scatter = lax.ScatterDimensionNumbers(update_window_dims=tuple(range(1, 9)),
                                          inserted_window_dims=(0,),
                                          scatter_dims_to_operand_dims=(0,))
    i = np.array([[2], [0], [5]], np.int32)
    agree(device, cpu, lambda x, i: lax.gather(x, i, gather, sizes, mode="clip"), whole(*PARTS), i)
    agree(device, cpu, lambda x, i, u: lax.scatter_add(x, i, u, scatter), whole(*PARTS), i,
          whole(3, *sizes[1:]))


def test_indices_above_what_has_a_sign_are_too_large(device, cpu):
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=tuple(range(9)),
                                         start_index_map=tuple(range(9)))
    i = np.eye(10, 9, dtype=np.uint64) * np.uint64(2**64 - 1)
    with jax.enable_x64(True):
        agree(device, cpu, lambda x, i: lax.gather(x, i, numbers, (1,) * 9, mode="clip"),
              whole(*PARTS), i)


@pytest.mark.parametrize("ones", [(0,), (3, 11), (0, 1), (6,), (12,)])
def test_indices_beside_those_of_dims_of_one_element(device, cpu, ones):
    """Dim 7 is taken whole, so the indices before it and those behind it are two."""
    shape = [1 if d in ones else 3 if d == 7 else 2 for d in range(13)]
    i = np.random.default_rng(9).integers(0, 2, (13, 6)).astype(np.int32)
    at = tuple(slice(None) if d == 7 else i[d] % shape[d] for d in range(13))
    for f in (lambda x: x[at], lambda x: x.at[at].add(1)):
        agree(device, cpu, f, whole(*shape))


# An instruction runs along 8 dims of a result and of its windows, and so along 4 that have both.

def fold(arrays, starts, body, size, stride, pad, holes, steps):
    """What body makes of each window, in order: (so far, element) to what is there then."""
    found = []
    for x, start in zip(arrays, starts):
        wide = [max((n - 1) * h + 1, 0) for n, h in zip(x.shape, holes)]
        full = np.full([w + sum(p) for w, p in zip(wide, pad)], start, x.dtype)
        full[tuple(slice(p[0], p[0] + w, h) for p, w, h in zip(pad, wide, holes))] = x
        found.append(full)
    marks = np.zeros(found[0].shape, bool)
    marks[tuple(slice(p[0], p[0] + w, h) for p, w, h in zip(pad, wide, holes))] = True
    shape = [(n - (s - 1) * d - 1) // k + 1
             for n, s, d, k in zip(found[0].shape, size, steps, stride)]
    out = [np.full(shape, start, x.dtype) for x, start in zip(arrays, starts)]
    for at in np.ndindex(*size):
        part = tuple(slice(a * d, a * d + (n - 1) * k + 1, k)
                     for a, d, n, k in zip(at, steps, shape, stride))
        new = body(out, [x[part] for x in found])
        out = [np.where(marks[part], y, x) for x, y in zip(out, new)]
    return out


def last(so_far, element):
    """Of the elements other than 0 the last one, and what goes along with it."""
    is_one = element[0] != 0
    return [(np if isinstance(x, np.ndarray) else jnp).where(is_one, y, x)
            for x, y in zip(so_far, element)]


@pytest.mark.parametrize("rank", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("how", ["plain", "padded", "apart", "strides"])
def test_windows_along_many_dims(device, rank, n, how):
    rng = np.random.default_rng(rank)
    shape = {"apart": [2 + d % 2 for d in range(rank)], "strides": [4] * rank}.get(
        how, [3] * (rank - 1) + [4])
    arrays = [rng.integers(-2, 3, shape).astype(np.float32), rng.integers(0, 99, shape)][:n]
    starts = [np.float32(7), np.int64(5)][:n]
    size, stride, holes, steps, pad = ([1] * rank for _ in range(5))
    pad = [(0, 0)] * rank
    if how == "apart":
        size = [2 if d % 3 != 1 else 1 for d in range(rank)]
        holes = [2 if d % 3 == 2 else 1 for d in range(rank)]
        steps = [2 if d % 2 else 1 for d in range(rank)]
        pad = [(1, 0) if d % 2 else (0, 1) for d in range(rank)]
    elif how == "strides":
        size, stride = [2] * rank, [2 - d % 2 for d in range(rank)]
    else:
        size = [2] * rank
        pad = [(1, 1) if how == "padded" and d % 2 else (0, 0) for d in range(rank)]
    want = fold(arrays, starts, last, size, stride, pad, holes, steps)
    with jax.enable_x64(True):
        got = jax.jit(lambda *x: lax.reduce_window(list(x), starts, last, size, stride, pad, holes,
                                                   steps))(*jax.device_put(arrays, device))
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("rank", [4, 5, 6])
def test_sums_and_products_of_windows_along_many_dims(device, cpu, rank):
    x = whole(*[3] * rank)
    for join, start in (lax.add, 0), (lax.add, 2), (lax.mul, 1), (lax.max, -9), (lax.min, 1):
        for pad in "VALID", "SAME":
            agree(device, cpu, lambda x: lax.reduce_window(
                x, np.float32(start), join, [2] * rank, [1] * rank, pad), x)
            agree(device, cpu, lambda x: lax.reduce_window(
                x[..., :0], np.float32(start), join, [2] * (rank - 1) + [1], [1] * rank, pad), x)


# 12 dims of 2 are places of as many instructions as a copy may take, 8 are walked.
@pytest.mark.parametrize("rank", [12, 20, 21, 22])
def test_arrays_of_two_by_two_that_are_turned(device, rank):
    x = np.arange(2 ** rank, dtype=np.int32).reshape([2] * rank)
    turn = np.random.default_rng(rank).permutation(rank)
    for f in (lambda x: x.transpose(), lambda x: x.transpose(turn),
              lambda x: x.transpose() + 1, lambda x: x.transpose(turn)[:, 1:],
              lambda x: x[(slice(None, None, -1), slice(None)) * (rank // 2)],
              lambda x: x.transpose(turn)[(slice(None), slice(None, None, -1)) * (rank // 2)]):
        got = jax.jit(f)(jax.device_put(x, device))
        assert np.array_equal(got, f(x))


def test_repeated_along_every_other_dim(device):
    x = np.arange(2 ** 11, dtype=np.int16).reshape([2] * 11)
    got = jax.jit(lambda x: lax.broadcast_in_dim(x, (2,) * 22, range(1, 22, 2)))(
        jax.device_put(x, device))
    assert np.array_equal(got, np.broadcast_to(x.reshape([1, 2] * 11), [2] * 22))


def test_arrays_of_wider_dims_that_are_turned(device):
    shape = [3, 4] * 6 + [3]
    x = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    for turn in range(13)[::-1], [*range(1, 13, 2), *range(0, 13, 2)], [*range(12), 12]:
        got = jax.jit(lambda x: x.transpose(turn))(jax.device_put(x, device))
        assert np.array_equal(got, x.transpose(turn))
