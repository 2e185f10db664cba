# SPDX-License-Identifier: Apache-2.0
"""Arrays whose dims lie in another order in memory: honoured, reported, kept."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding


def format_of(*order):
    return Format(Layout(order), SingleDeviceSharding(jax.devices("tessera")[0]))


def array(*shape, dtype="float32"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "bool"])
def test_every_order_of_three_dims(order, dtype):
    x, fmt = array(3, 4, 5, dtype=dtype), format_of(*order)
    y = jax.device_put(x, fmt)
    assert y.format.layout.major_to_minor == order and y.shape == x.shape
    np.testing.assert_array_equal(y, x)
    f = jax.jit(lambda a, b: (a.T, jnp.where(b, a, a), jnp.sum(a, 1)), in_shardings=(fmt, None),
                out_shardings=(format_of(*order), fmt, format_of(1, 0)))
    c = f.lower(y, x).compile()
    assert c.input_formats[0][0].layout.major_to_minor == order
    assert [o.layout.major_to_minor for o in c.output_formats] == [order, order, (1, 0)]
    t, same, total = f(y, x)
    np.testing.assert_array_equal(t, x.T)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(np.asarray(total, "complex64"),
                                  np.asarray(jnp.sum(jnp.asarray(x), 1), "complex64"))
    assert t.format.layout.major_to_minor == order
    # Back to row-major, and on to a program that takes any.
    np.testing.assert_array_equal(jax.device_put(same, format_of(0, 1, 2)), x)
    np.testing.assert_array_equal(jax.jit(lambda a: a[1:, ::-1])(same), x[1:, ::-1])


def test_products_and_loops_in_another_order():
    a, b = array(33, 17) / 100, array(17, 50) / 100
    fa, fb = format_of(1, 0), format_of(1, 0)

    @jax.jit
    def plain(a, b):
        return jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + a @ b, a @ b)
    f = jax.jit(plain, in_shardings=(fa, fb), out_shardings=format_of(1, 0))
    got = f(jax.device_put(a, fa), jax.device_put(b, fb))
    np.testing.assert_array_equal(got, plain(a, b))


@pytest.mark.parametrize("to", [(0, 1), (1, 0)])
def test_donated_arrays_of_another_order(to):
    fmt, x = format_of(1, 0), array(5, 6)
    f = jax.jit(lambda a: a[::-1] * 2, donate_argnums=0, in_shardings=fmt,
                out_shardings=format_of(*to))
    y = jax.device_put(x, fmt)
    z = f(y)
    assert y.is_deleted()
    np.testing.assert_array_equal(z, x[::-1] * 2)
    assert z.format.layout.major_to_minor == to


def test_auto_and_serialized_programs():
    x, fmt = array(4, 5), format_of(1, 0)
    f = jax.jit(lambda a: a + 1, in_shardings=fmt, out_shardings=fmt)
    c = f.lower(x).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(c))
    z = again(jax.device_put(x, fmt))
    np.testing.assert_array_equal(z, x + 1)
    assert z.format.layout.major_to_minor == (1, 0)
    auto = jax.jit(lambda a: a.T, in_shardings=Format(Layout.AUTO),
                   out_shardings=Format(Layout.AUTO))
    c = auto.lower(x).compile()
    assert c.output_formats.layout.major_to_minor == (1, 0)     # nothing is turned
    np.testing.assert_array_equal(c(x), x.T)


def test_what_is_left_to_us_lies_as_it_is_made():
    def orders(f, *args, **kw):
        c = jax.jit(f, out_shardings=Format(Layout.AUTO), **kw).lower(*args).compile()
        for y, want in zip(jax.tree.leaves(c(*args)), jax.tree.leaves(f(*args))):
            np.testing.assert_array_equal(y, want)
        return jax.tree.map(lambda o: o.layout.major_to_minor, c.output_formats)
    x = array(3, 4, 5)
    assert orders(lambda a: a.transpose(1, 2, 0), x) == (2, 0, 1)
    assert orders(lambda a: ((a + 1).transpose(2, 0, 1) * 3).transpose(1, 0, 2), x) == (0, 2, 1)
    assert orders(lambda a: (a.T, a * 2, jnp.sum(a, 1)), x) == ((2, 1, 0), (0, 1, 2), (0, 1))
    square = array(4, 4)
    assert orders(lambda a: a.T + 0, square, donate_argnums=0,
                  in_shardings=Format(Layout.AUTO)) == (0, 1)


def test_an_order_within_a_program_is_ours():
    x, fmt = array(4, 6), format_of(1, 0)
    y = jax.jit(lambda a: jax.lax.with_sharding_constraint(a.T, fmt) + 1)(x)
    np.testing.assert_array_equal(y, x.T + 1)


def test_pending_arrays_in_another_order():
    """The content is not there when it is asked for."""
    def host(x):
        return x
    x, fmt = array(8, 9), format_of(1, 0)
    f = jax.jit(lambda a: jax.pure_callback(host, jax.ShapeDtypeStruct((8, 9), "float32"), a),
                in_shardings=fmt, out_shardings=fmt)
    y = f(jax.device_put(x, fmt))
    np.testing.assert_array_equal(y, x)


def test_what_does_not_fit_is_said():
    x = array(4, 4)
    f = jax.jit(lambda a: a, in_shardings=format_of(1, 0))
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError)):
        f.lower(x).compile()(jax.device_put(x, format_of(0, 1)))
    tiled = Format(Layout((1, 0), ((2, 2),)), SingleDeviceSharding(jax.devices("tessera")[0]))
    with pytest.raises(Exception, match="tiles|tiled|tiling"):
        jax.jit(lambda a: a + 1, out_shardings=tiled)(x).block_until_ready()


def test_other_memories_keep_the_order():
    x, fmt = array(3, 7), format_of(1, 0)
    host = SingleDeviceSharding(jax.devices("tessera")[0], memory_kind="pinned_host")
    y = jax.device_put(jax.device_put(x, fmt), host)
    np.testing.assert_array_equal(y, x)


# The sides of the product, and where the dims of its result go.
PRODUCTS = {
    "a small matrix along the middle": ("ij,ajb->aib", (8, 8), (6, 8, 40)),
    "few columns along the middle": ("ij,ajb->aib", (5, 8), (6, 8, 7)),
    "heads": ("bhts,bshd->bthd", (2, 3, 17, 20), (2, 20, 3, 24)),
    "all turned": ("ij,jk->ki", (33, 9), (9, 40)),
    "batch last": ("bij,bjk->ikb", (4, 18, 5), (4, 5, 21)),
    "rows between": ("ijc,cbk->bijk", (3, 20, 6), (6, 5, 9)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64"])
def test_a_product_is_made_where_its_transposition_puts_it(name, dtype):
    spec, *shapes = PRODUCTS[name]
    rng = np.random.default_rng(7)
    x, y = (rng.integers(-4, 5, s).astype(dtype) for s in shapes)
    if dtype == "complex64":
        x, y = x + 1j * x[::-1], y - 2j * y[::-1]
    f = jax.jit(lambda x, y: jnp.einsum(spec, x, y))
    c = f.lower(x, y).compile()
    wide = {"int8": "int64", "complex64": "complex64"}.get(dtype, "float64")
    np.testing.assert_array_equal(
        c(x, y), np.einsum(spec, x.astype(wide), y.astype(wide)).astype(dtype))
    temp = c.memory_analysis().temp_size_in_bytes
    if name == "batch last":    # an element of each matrix after the other: made, then turned
        assert 0 <= temp - c(x, y).nbytes < 64
    else:
        assert temp == 0
