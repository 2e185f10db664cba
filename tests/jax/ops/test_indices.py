# SPDX-License-Identifier: Apache-2.0
"""Indices of several components, which JAX joins along a dim: beside each other in memory they
would be read and written with gaps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

DTYPES = ("float32", "bfloat16", "int8", "complex64")


def drawn(shape, dtype="float32", seed=0):
    x = np.random.default_rng(seed).integers(-99, 99, shape)
    return jnp.asarray(x).astype(dtype)


def places(shape, most, seed):
    """Some of them before and behind the table."""
    return np.random.default_rng(seed).integers(-most - 2, most + 2, shape).astype("int32")


def turned(x, at, dims, sizes):
    """Windows of the sizes, by indices of the dims in this order."""
    rest = tuple(d for d in range(3) if d not in dims)
    return jax.lax.gather(x, at, jax.lax.GatherDimensionNumbers(
        tuple(range(1, 1 + len(rest))), tuple(sorted(dims)), dims), sizes, mode="clip")


PROGRAMS = {
    "two": lambda x, i, j, k: x[i, j],
    "three": lambda x, i, j, k: x[i, j, k],
    "the outer ones": lambda x, i, j, k: x[i, :, k],
    "the inner ones": lambda x, i, j, k: x[:, j, k],
    "the inner ones of four": lambda x, i, j, k: jnp.stack([x, x + x])[:, i, j],
    "outward": lambda x, i, j, k: turned(x, jnp.stack([k, j], -1), (2, 1), (9, 1, 1)),
    "all, outward": lambda x, i, j, k: turned(x, jnp.stack([k, j, i], -1), (2, 1, 0), (1, 1, 1)),
    "parts of rows": lambda x, i, j, k: turned(x, jnp.stack([i, j], -1), (0, 1), (1, 1, 4)),
    "of other shapes": lambda x, i, j, k: x[i.reshape(3, 50)[:, :, None], j[:4]],
    "turned about": lambda x, i, j, k: x[i.reshape(3, 50).T, j.reshape(50, 3)],
    "unsigned": lambda x, i, j, k: x[abs(i).astype("uint8"), abs(j).astype("uint8")],
    "many at once": lambda x, i, j, k: x[i[:, None], j[None, :7], k[:, None]],
    "added": lambda x, i, j, k: x.at[i, j, k].add(x[i, j, k]),
    "rows added": lambda x, i, j, k: x.at[i, j].add(x[k, i]),
    "set": lambda x, i, j, k: x.at[i, j].set(3, mode="drop"),
    "mapped": lambda x, i, j, k: jax.vmap(lambda t, a, b: t[a, b])(x, jnp.resize(i, (9, 6)),
                                                                  jnp.resize(j, (9, 6))),
    "mapped, added": lambda x, i, j, k: jax.vmap(lambda t, a, b: t.at[a, b].add(1))(
        x, jnp.resize(i, (9, 6)), jnp.resize(j, (9, 6))),
    "windows": lambda x, i, j, k: jax.vmap(lambda a, b: jax.lax.dynamic_slice(
        x, (a, b, 0), (2, 3, 4)))(i, j),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", PROGRAMS)
def test_components_lead_where_they_do_on_the_cpu(what, dtype, device, cpu):
    args = (drawn((9, 8, 7), dtype), places(150, 9, 1), places(150, 8, 2), places(150, 7, 3))
    ours, theirs = (np.asarray(jax.jit(PROGRAMS[what])(*jax.device_put(args, d)))
                    for d in (device, cpu))
    np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float32", "int64"])
def test_pixels_are_those_of_numpy(dtype, channels, device):
    with jax.enable_x64(True):
        x = np.arange(37 * 41 * channels).reshape(37, 41, channels) % 7
        x = np.asarray(jnp.asarray(x).astype(dtype))
        at = [np.random.default_rng(k).integers(-n, n, 3000) for k, n in enumerate((37, 41))]
        got = jax.jit(lambda x, i, j: x[i, j])(*jax.device_put((x, *at), device))
        np.testing.assert_array_equal(np.asarray(got), x[at[0], at[1]])


COLUMNS = {
    "last": lambda x, i: x[:, :, i],
    "middle": lambda x, i: x[:, i],
    "of a transposition": lambda x, i: x.T[:, i],
    "by two": lambda x, i: x[:, i, i[::-1]],
    "one of each row": lambda x, i: jnp.take_along_axis(x, jnp.broadcast_to(
        i, (6, 50, i.size)), axis=2, mode="clip"),
    "of two dims": lambda x, i: x[:, :, jnp.stack([i, i[::-1]])],
    "in strides": lambda x, i: x[:, ::2, i],
    "of windows": lambda x, i: jax.vmap(lambda a: jax.lax.dynamic_slice(
        x, (0, 0, a), (x.shape[0], x.shape[1], 3)), out_axes=2)(i),
}


# On both sides of what is worth a line, and of what is found at a time.
@pytest.mark.parametrize("n", (1, 15, 16, 17, 300, 1025))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", COLUMNS)
def test_columns_are_what_they_are_on_the_cpu(what, dtype, n, device, cpu):
    x, i = drawn((6, 50, 40), dtype), places(n, 40, 5)
    f = jax.jit(COLUMNS[what])
    got, want = (np.asarray(f(*(jax.device_put(a, d) for a in (x, i)))) for d in (device, cpu))
    np.testing.assert_array_equal(got, want)


# JAX refuses more places than the indices' type can count.
@pytest.mark.parametrize("size, kind", [
    (size, kind) for kind in ("int8", "int16", "int32", "uint8")
    for size in (1, 2, 127, 128, 129, 255) if size <= np.iinfo(kind).max])
def test_places_at_both_ends(size, kind, device, cpu):
    """What lies outside is filled: of the least and the largest numbers, and those about the
    table's ends."""
    most = np.iinfo(kind)
    near = [most.min, most.min + 1, -size - 1, -size, -1, 0, size - 1, size, most.max - 1, most.max]
    at = np.array([i for i in near if most.min <= i <= most.max], kind)
    at = np.resize(at, (3, 40))
    x = drawn((3, size))
    for f in (lambda x, i: jnp.take_along_axis(x, i, 1), lambda x, i: x[0][i],
              lambda x, i: x.at[:, i[0]].get(mode="fill", fill_value=7)):
        ours, theirs = (np.asarray(jax.jit(f)(*jax.device_put((x, at), d)))
                        for d in (device, cpu))
        np.testing.assert_array_equal(ours, theirs)


def wrapped(size, kind, n, seed):
    """From before the table's beginning to behind its end, as far as the type counts."""
    at = np.random.default_rng(seed).integers(-size - 3, size + 4, n)
    most = np.iinfo(kind)
    return jnp.asarray(np.clip(abs(at) if most.min == 0 else at, most.min, most.max).astype(kind))


LOOKUPS = {
    "elements": lambda x, i, **how: x.ravel()[:40].at[i].get(**how),
    "rows": lambda x, i, **how: x.at[i].get(**how),
    "columns": lambda x, i, **how: x.at[:, i].get(**how),
    "along an axis": lambda x, i, **how: jnp.take_along_axis(
        x, i[:, None] + jnp.zeros(7, i.dtype), 0, **how),
    "mapped": lambda x, i, **how: jax.vmap(lambda t: t.at[i].get(**how))(x),
    "of what is made": lambda x, i, **how: x.at[i * 2 - i].get(**how),
    "and looked at": lambda x, i, **how: (x.at[i].get(**how), jnp.where(i < 0, i + 40, i)),
    "in a loop": lambda x, i, **how: jax.lax.scan(
        lambda c, j: (c, x.at[j].get(**how)), 0, i)[1],
}


@pytest.mark.parametrize("how", ({}, {"mode": "fill"}, {"mode": "clip"},
                                 {"mode": "fill", "fill_value": 1}), ids=str)
@pytest.mark.parametrize("kind", ("int8", "int32", "int64", "uint32"))
@pytest.mark.parametrize("what", LOOKUPS)
def test_the_instruction_wraps_and_fills(what, kind, how, device, cpu):
    """Lines of indices on both sides of a vector's length, of elements of each size that it has."""
    with jax.enable_x64(True):
        for n, dtype in ((0, "float32"), (1, "bool"), (15, "uint8"), (16, "float64"),
                         (33, "float32"), (300, "bfloat16"), (17, "complex128"), (40, "int64")):
            if how.get("fill_value") is None or dtype != "bool":
                x, i = drawn((40, 7), dtype, n), wrapped(40, kind, n, n)
                f = jax.jit(lambda x, i: LOOKUPS[what](x, i, **how))
                got, want = (jax.tree.leaves(f(jax.device_put(x, d), jax.device_put(i, d)))
                             for d in (device, cpu))
                for g, w in zip(got, want, strict=True):
                    assert np.asarray(g).tobytes() == np.asarray(w).tobytes()


@pytest.mark.parametrize("last", (9, 15, 16, 40))
@pytest.mark.parametrize("out", (0, 1, 2))
def test_windows_that_lie_between_dims_of_the_indices(device, cpu, out, last):
    """As of a channel for each point of images that are warped one by one."""
    x = np.arange(3 * 5 * 12 * 8, dtype=np.float32).reshape(3, 5, 12, 8)
    i = np.random.default_rng(3).integers(-12, 12, (3, 4, last)).astype(np.int32)
    for f in (lambda x, i: x[:, i, i % 8], lambda x, i: x[:, i],
              lambda x, i: x.at[:, :, i].get(mode="fill", fill_value=7)):
        both = [jax.device_get(jax.jit(jax.vmap(f, (0, 0), out))(*jax.device_put((x, i), d)))
                for d in (device, cpu)]
        np.testing.assert_array_equal(*both)
