# SPDX-License-Identifier: Apache-2.0
"""Work on neighbours in arrays whose ends meet, that are shifted, or that have an edge."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def whole(*shape, kind=np.float32):
    return (np.arange(np.prod(shape)) * 7 % 23 - 11).astype(kind).reshape(shape)


def agree(device, cpu, f, *args):
    got, want = (jax.device_get(jax.jit(f)(*jax.device_put(args, d))) for d in (device, cpu))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(x, y)


def around(x):
    return sum(jnp.roll(x, s, d) for d in range(x.ndim) for s in (1, -1))


def shifted(x, d):
    return jnp.concatenate([lax.slice_in_dim(x, 1, None, axis=d),
                            jnp.zeros_like(lax.slice_in_dim(x, 0, 1, axis=d))], d)


FORMS = [
    around, lambda x: jnp.maximum(x, jnp.roll(x, (3, -2), (0, x.ndim - 1))),
    lambda x: x - shifted(x, 0) + shifted(x, x.ndim - 1) * 2,
    lambda x: jnp.where(jnp.roll(x, 5, -1) > 3, x, -x),
    lambda x: jnp.pad(x, 1)[tuple(slice(2, None) for _ in x.shape)] + x,
    lambda x: jnp.pad(x, 2, constant_values=7)[tuple(slice(0, -4) for _ in x.shape)] * 3 + x,
    lambda x: around(x) * jnp.arange(x.shape[-1]), lambda x: around(x) + x.sum(0),
    lambda x: (around(x), around(x) + x), lambda x: around(around(x)),
    lambda x: around(x).astype(np.int8), lambda x: jnp.stack([around(x), x]),
    lambda x: jnp.roll(around(x), 1, 0), lambda x: around(x).sum(-1),
    lambda x: jnp.concatenate([x[:5], around(x)[5:]]) + jnp.roll(x, 1, 0)]


@pytest.mark.parametrize("f", FORMS)
@pytest.mark.parametrize("shape", [(300000,), (300, 400), (40, 50, 60), (20, 30, 10, 16)])
def test_neighbours(device, cpu, f, shape):
    agree(device, cpu, f, whole(*shape))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.float16, jnp.bfloat16, np.int32, bool])
def test_neighbours_of_other_types(device, cpu, kind):
    agree(device, cpu, lambda x: jnp.maximum(jnp.roll(x, 1, 0), jnp.roll(x, -1, 1)) | 0
          if x.dtype.kind in "iu" else jnp.where(jnp.roll(x, 1, 0), x, jnp.roll(x, -1, 1)),
          whole(512, 300).astype(kind))


@pytest.mark.parametrize("turn", [
    lambda u, v: (around(u), v), lambda u, v: (v - around(u), u),
    lambda u, v: (jnp.clip(u + around(v), -9, 9), jnp.clip(v - around(u), -9, 9)),
    lambda u, v: (jnp.minimum(around(u), v), jnp.maximum(u, around(v))),
    lambda u, v: (v, u), lambda u, v: (v, jnp.clip(around(u) - v, -9, 9)),
    lambda u, v: (jnp.clip(u[::-1] + v, -9, 9), jnp.clip(v[:, ::-1] - u, -9, 9)),
    lambda u, v: (jnp.minimum(u, u[:, 7:8] + u[3:4]), jnp.clip(around(v), -9, 9))])
def test_turns_of_a_loop(device, cpu, turn):
    u = whole(256, 200) % 2
    for n in (1, 2, 4, 5, 9, 10):
        agree(device, cpu, lambda u, v: lax.fori_loop(0, n, lambda i, s: turn(*s), (u, v)),
              u, u[::-1].copy())


def test_what_one_turn_gives_another_is_not_written_over_by_it(device, cpu):
    def twice(x, y):
        for _ in range(2):
            x, y = jnp.maximum(x, around(y)), jnp.minimum(around(y) + x, y)
        return x, y, jnp.stack([x, y])

    agree(device, cpu, twice, whole(256, 200), whole(200, 256).T.copy())


@pytest.mark.parametrize("seed", range(12))
def test_more_edges_along_a_dim_than_there_is_room_for(device, cpu, seed):
    draw = np.random.default_rng(seed)
    far = [(int(draw.integers(12, 40)), int(draw.integers(1, 3))) for _ in range(3)]
    moves = draw.permutation([(k, 0) for k in range(1, draw.integers(7, 12))] + far)

    def moved(x, rows, columns):
        padded = jnp.pad(x, ((rows, 0), (columns, 0)))
        return padded[:x.shape[0], :x.shape[1]]

    agree(device, cpu, lambda x: sum(moved(x, *m) * (i + 1) for i, m in enumerate(moves.tolist())),
          whole(500, 600))


def places(x, d):
    return lax.broadcasted_iota(np.int32, x.shape, d)


def checkered(x):
    return sum(places(x, d) for d in range(x.ndim)) % 2 == 0


ENDS = [
    lambda x: (around(x) * x).sum(), lambda x: (around(x) * x).sum(0),
    lambda x: (around(x) * x).sum(-1), lambda x: (jnp.roll(x, 1, 0) - x).max(),
    lambda x: ((around(x) * x).sum(), jnp.abs(around(x) * x).max(-1), around(x) * x),
    lambda x: jnp.pad(x, 1).sum(0), lambda x: jnp.pad(x - 3, 2, constant_values=-2).min(),
    lambda x: jnp.any(jnp.roll(x, 1, 0) == x), lambda x: jnp.all(jnp.roll(x, 1, -1) != x, 0)]


@pytest.mark.parametrize("f", ENDS)
@pytest.mark.parametrize("shape", [(300000,), (300, 400), (40, 50, 60), (1, 700, 1, 300)])
def test_neighbours_that_are_summed_up(device, cpu, f, shape):
    agree(device, cpu, f, whole(*shape))
    agree(device, cpu, f, whole(*shape, kind=np.int32))


PLACED = [
    lambda x: jnp.where(checkered(x), x, around(x)),
    lambda x: jnp.where(places(x, 0) == 0, x, x - jnp.roll(x, 1, 0)),
    lambda x: jnp.where(places(x, x.ndim - 1) > 7, x - jnp.roll(x, 3, -1), 0),
    lambda x: around(x) * places(x, 0).astype(np.uint8) + places(x, -1 % x.ndim).astype("f2"),
    lambda x: (around(x) * places(x, x.ndim - 1) % 5).sum(0)]


@pytest.mark.parametrize("f", PLACED)
@pytest.mark.parametrize("shape", [(300000,), (300, 400), (40, 50, 60)])
def test_neighbours_beside_where_they_are(device, cpu, f, shape):
    agree(device, cpu, f, whole(*shape))


def test_a_place_is_rounded_once(device, cpu):
    agree(device, cpu, lambda x: jnp.roll(x, 1, 0) + lax.broadcasted_iota(np.float32, x.shape, 0),
          np.zeros((1 << 24) + 100, np.float32))


@pytest.mark.parametrize("kinds", [(np.uint8, np.float32), (bool, np.int32), (np.int32, bool),
                                   (np.float32, jnp.bfloat16), (jnp.bfloat16, np.float32)])
def test_neighbours_as_another_type(device, cpu, kinds):
    x = whole(400, 500).astype(kinds[0])

    def f(x):
        return (jnp.roll(x, 1, 0).astype(np.float32) * 2 + jnp.roll(x, -1, 1).astype(np.float32)
                ).astype(kinds[1])

    agree(device, cpu, f, x)
    assert temporaries(device, f, x) == 0


def temporaries(device, f, x):
    return jax.jit(f).lower(jax.device_put(x, device)).compile() \
        .memory_analysis().temp_size_in_bytes


def test_what_is_rolled_or_shifted_is_not_written(device):
    x = whole(512, 512)
    assert temporaries(device, around, x) == 0
    assert temporaries(device, lambda x: shifted(x, 0) + shifted(x, 1), x) == 0
    assert temporaries(device, lambda x: jnp.pad(x, 1)[2:, 2:] + x, x) == 0
    assert temporaries(device, lambda x: (around(x) * x).sum(), x) < x.nbytes
    assert temporaries(device, lambda x: (around(x) * x).sum(0), x) < x.nbytes
    assert temporaries(device, lambda x: jnp.where(checkered(x), x, around(x)), x) == 0
    # Somebody else looks at it.
    assert temporaries(device, lambda x: jnp.roll(x, 1, 0) @ x + jnp.roll(x, 1, 0), x) >= x.nbytes


def test_rows_and_columns_of_an_array_that_is_written_over(device, cpu):
    def shorter(k, x):
        return jnp.minimum(x, x[:, k][:, None] + x[k][None])

    def f(x):
        return lax.fori_loop(0, 300, shorter, x)

    x = np.abs(whole(300, 300))
    agree(device, cpu, f, x)
    assert temporaries(device, f, x) < x.nbytes


CHAINS = [
    lambda x: (lambda y: y + jnp.roll(jnp.roll(jnp.roll(y, 1, 1), 1, 2), 1, 0))(jnp.roll(x, 1, 0)),
    lambda x: (lambda y: jnp.roll(jnp.roll(jnp.roll(y, 1, 1), 1, 2), 1, 0) - y)(jnp.roll(x, 1, 0)),
    lambda x: (lambda y: jnp.roll(jnp.roll(jnp.roll(jnp.roll(y, 1, 1), 1, 2), 2, 1), 1, 0) * 3
               - jnp.roll(y, 1, 2) - y)(jnp.roll(x, 1, 0))]


@pytest.mark.parametrize("f", CHAINS)
def test_rolls_of_what_is_looked_at_before_they_are(device, cpu, f):
    agree(device, cpu, f, whole(40, 30, 60))
    agree(device, cpu, f, whole(100, 64, 96))
