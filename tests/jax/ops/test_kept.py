# SPDX-License-Identifier: Apache-2.0
"""Arrays that need not be there: what a program keeps in memory between its instructions, by the
temporaries that it asks for, and its results against the CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy.ndimage import map_coordinates

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def uniform(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(np.float32).astype(dtype)


def agree(f, *args, tol=2e-5):
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    here = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(1, np.abs(b).max(initial=0)))


def temporaries(f, *args):
    return jax.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


def test_a_sum_of_more_products_than_an_instruction_reads():
    """The first of them are one array, not one each, and it lies in the result's memory."""
    x = [uniform(64, 1000) for _ in range(22)]

    def f(*x):
        return sum((a * b for a, b in zip(x[2::2], x[3::2], strict=True)), x[0] * x[1])

    agree(f, *x)
    assert temporaries(f, *x) < x[0].nbytes


def test_a_convolution_of_each_channel_by_itself():
    x, w = uniform(4, 24, 24, 64), uniform(3, 3, 1, 64)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=64,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    agree(f, x, w)
    assert temporaries(f, x, w) < 1.3 * x.nbytes      # with its padding, and nothing else


def test_what_a_loop_gives_is_written_over():
    x = uniform(200, 200)

    def f(x, y):
        return lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) * 0.9 + x[0], x) * 2 + y

    agree(f, x, x.T)
    # the other side of a turn, which reads a row of all
    assert temporaries(f, x, x.T) < 1.5 * x.nbytes


def test_gradients_that_a_step_takes_lie_where_its_results_go():
    """Of a scan over stacked layers, each of which adds its own."""
    w, x = uniform(6, 96, 96) / 10, uniform(32, 96)

    def f(w, m, x):
        def loss(w):
            return (lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0] ** 2).sum()
        m = 0.9 * m + jax.grad(loss)(w)
        return w - 0.1 * m, m

    agree(f, w, w * 2, x, tol=1e-4)
    assert temporaries(f, w, w * 2, x) < w.nbytes


def layers(act, depth=4):
    """A loss whose gradient needs what every layer was given and gave."""
    def loss(w, x):
        for k in range(depth):
            x = act(x @ w[k])
        return (x * x).sum()
    return jax.grad(loss)


def test_of_a_rectifier_one_side_is_kept():
    w, x = uniform(4, 64, 64) / 4, uniform(512, 64)
    f = layers(jax.nn.relu)
    agree(f, w, x, tol=1e-4)
    # what each of four layers gives, and two gradients on their way
    assert temporaries(f, w, x) < 6.5 * x.nbytes


def test_what_a_function_went_through_is_made_again():
    w, x = uniform(4, 64, 64) / 4, uniform(512, 64)
    f = layers(jax.nn.gelu)
    agree(f, w, x, tol=1e-4)
    # three for each layer: of its tanh the operand, the result, and what it gives
    assert temporaries(f, w, x) < 14.5 * x.nbytes


def test_the_gradient_of_a_convolution_with_strides():
    """Its parts lie in the result's memory until they are put together there."""
    x, w = uniform(4, 32, 32, 64), uniform(3, 3, 64, 64) / 8

    def f(x, w):
        return jax.grad(lambda x: (lax.conv_general_dilated(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum())(x)

    agree(f, x, w, tol=1e-4)
    assert temporaries(f, x, w) < 1.4 * x.nbytes


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int32])
@pytest.mark.parametrize("falling", [True, False])
def test_keys_of_a_selection_are_no_array(dtype, falling):
    x = (uniform(2, 70001) * 1000).astype(dtype)

    def f(x):
        return lax.top_k(x, 9) if falling else lax.sort(x)[:, :9]

    agree(f, x, tol=0)
    if dtype == np.float32 and falling:
        x = x[:, :1 << 16]
        assert temporaries(lambda x: lax.top_k(x, 9), x) < x.nbytes / 2


# Nothing is asked of a bound where the answer is another one.
ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 1.5, -1.5, 3e38, 1e-30, -1e-30] * 3)


@pytest.mark.parametrize("bound", [0.0, -0.0, 1.0, -1.5, np.inf, np.nan])
@pytest.mark.parametrize("ask", [lax.gt, lax.ge, lax.lt, lax.le, lax.eq, lax.ne])
@pytest.mark.parametrize("of", [lax.max, lax.min])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_questions_about_what_is_bounded(of, ask, bound, dtype):
    x = ODD.astype(np.float32).astype(dtype)

    def f(x, y):
        x = x * y
        k = jnp.full_like(x, bound)
        return of(x, k), jnp.where(ask(x, k), x + 1, 7).astype(np.float32), ask(x, k)

    def g(x, y):
        x = x * y
        k = jnp.full_like(x, bound)
        return of(x, k), jnp.where(ask(x, k), y, -y), ask(x, k)

    one = np.ones_like(x)
    for h in (f, g):
        true = jax.jit(h)(*jax.device_put((x, one), CPU))
        for a, b in zip(jax.jit(h)(x, one), true, strict=True):
            np.testing.assert_array_equal(np.asarray(a).astype(np.float64),
                                          np.asarray(b).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_the_least_of_wide_numbers(dtype):
    """What fills the last group is none of them: no double holds the largest of 64 bits."""
    with jax.enable_x64(True):
        x = (RNG.standard_normal((2, 70001)) * 1000).astype(dtype)
        x[0, 5] = np.iinfo(np.int64).max if dtype == np.int64 else 1e300
        agree(lambda x: (lax.sort(x)[:, :9], jnp.argsort(x, -1)[:, :9]), x, tol=0)
        agree(lambda x: lax.top_k(x, 9), x, tol=0)


def least(dtype):
    return -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min


@pytest.mark.parametrize("at_least", [0, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_search_that_asks_for_the_place(dtype, at_least):
    """Of elements from a place on: that of a part is not one of the line."""
    x = (RNG.standard_normal(1 << 14) * 1000).astype(dtype)
    x[:5000] += 4000

    def larger(a, b):
        (v, i), (w, k) = a, b
        v, w = (jnp.where(p < at_least, least(dtype), n) for n, p in ((v, i), (w, k)))
        return jnp.where(v > w, v, w), jnp.where((v > w) | ((v == w) & (i < k)), i, k)

    def f(x):
        return lax.reduce((x, lax.iota(np.int32, x.size)),
                          (np.array(least(dtype), dtype), np.int32(0)), larger, (0,))

    value, place = jax.jit(f)(x)
    assert place == at_least + np.argmax(x[at_least:])
    assert value == x[place]


@pytest.mark.parametrize("dim", [0, 1])
def test_what_rows_reduce_is_not_made_again_of_places(dim):
    """What is the same along a row is none that an instruction reduces."""
    def f(x):
        v = lax.broadcasted_iota(np.float32, (64, 128), dim) * 0.03
        t = jnp.sort(jnp.sin(v) + x, 0)
        e = jnp.exp(v * t - jnp.max(v * 2, 1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    agree(f, uniform(64, 128), tol=1e-4)


def of_kind(kind, shape, dtype):
    x = RNG.standard_normal(shape) * 50
    if kind == "few":
        x = np.round(x / 40)
    elif kind == "equal":
        x[:] = 3
    elif kind == "late":
        x[..., :-1], x[..., -1] = 0, 1
    elif kind == "least":
        x[:] = -np.inf if dtype == np.float32 else np.iinfo(dtype).min
    elif kind == "nan":
        x[RNG.uniform(size=shape) < 3 / shape[-1]] = np.nan if dtype == np.float32 else 7
    return x.astype(dtype)


@pytest.mark.parametrize("kind", ["any", "few", "equal", "late", "least", "nan"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(1 << 14,), (1, 1, 9000), (3, 8192), (8209,), (1, 1 << 17)])
def test_places_along_a_line_are_counted_in_its_parts(shape, dtype, kind):
    x = of_kind(kind, shape, dtype)
    agree(lambda x: (jnp.argmax(x, -1), jnp.argmin(x, -1)), x, tol=0)
    agree(lambda x: jnp.argmax(x.T, 0), x, tol=0)
    if shape == (1 << 14,):
        assert temporaries(lambda x: jnp.argmax(x, -1), x) < 1 << 14


def test_whether_indices_are_inside():
    """That is asked again of them, where elements from outside are left out."""
    x, i = uniform(96, 256), RNG.integers(-300, 300, (96, 256)).astype(np.int32)

    def f(x, i):
        return jnp.take_along_axis(x, i, 1)

    np.testing.assert_array_equal(jax.jit(f)(x, i), jax.jit(f)(*jax.device_put((x, i), CPU)))
    assert temporaries(f, x, i) <= i.nbytes


@pytest.mark.parametrize("donated", [False, True])
def test_places_between_elements(donated):
    """What they are weighed by in the end is made of the arguments again."""
    x, at = uniform(64, 64), np.abs(uniform(2, 9000)) * 70 - 3

    def f(x, at):
        return map_coordinates(x, list(at), order=1), at + 1

    kept = jax.jit(f, donate_argnums=1) if donated else jax.jit(f)
    true = jax.jit(f)(*jax.device_put((x, at), CPU))
    for a, b in zip(kept(x, jnp.asarray(at)), true, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    if not donated:
        # what single elements are taken by, and three of the four that are
        assert temporaries(f, x, at) < 6.2 * at[0].nbytes
