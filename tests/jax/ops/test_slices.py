# SPDX-License-Identifier: Apache-2.0
"""Slices whose starts are known at run time: products and fusions read them where they lie, without
a copy. Against NumPy or the CPU backend, and by the memory that they need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jaxlib import _jax

CPU = jax.devices("cpu")[0]
RNG = np.random.default_rng(0)


def uniform(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def agree(f, *args, rtol=1e-5, **how):
    here = jax.jit(f, **how)(*args)
    true = jax.jit(f)(*(jax.device_put(a, CPU) for a in args))
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(true), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


def temporaries(f, *args, **how):
    return jax.jit(f, **how).lower(*args).compile().memory_analysis().temp_size_in_bytes


def at(x, i, n=1, axis=0):
    return lax.dynamic_slice_in_dim(x, i, n, axis)


def layers(h, stack):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), h, stack)[0]


def test_layers_of_a_scan_are_not_copied():
    h, stack = uniform(8, 128), uniform(6, 128, 128) * np.float32(0.1)
    agree(layers, h, stack)
    assert temporaries(layers, h, stack) < stack[0].nbytes


def test_nor_in_its_gradient():
    h, stack = uniform(8, 128), uniform(6, 128, 128) * np.float32(0.1)
    agree(jax.grad(lambda h, s: layers(h, s).sum()), h, stack)
    agree(jax.grad(lambda s, h: layers(h, s).sum()), stack, h)


def test_elements_of_a_scan_are_not_copied():
    xs, h = uniform(64, 32, 64), uniform(32, 64)

    def f(h, xs):
        return lax.scan(lambda h, x: (h * 0.5 + jnp.sin(x), None), h, xs)[0]

    agree(f, h, xs)
    assert temporaries(f, h, xs) < xs[0].nbytes


@pytest.mark.parametrize("start", [-(2**31), -7, -1, 0, 1, 5, 6, 7, 2**31 - 1])
def test_starts_are_clamped(start):
    x, w = uniform(7, 16, 64), uniform(64, 8)
    agree(lambda x, w, i: (at(x, i, 2) @ w, at(x, i)[0] * 2 + 1), x, w, np.int32(start))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_starts_of_any_type(dtype):
    x, w = uniform(9, 64), uniform(64, 8)
    info = np.iinfo(dtype)
    with jax.enable_x64(True):
        for start in (info.min, 0, 3, info.max):
            agree(lambda x, w, i: at(x, i, 4) @ w, x, w, np.array(start, dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "bfloat16", "float32",
                                   "complex64"])
def test_elements_of_any_type(dtype):
    x = jnp.asarray(uniform(9, 64, 64) * 100).astype(dtype)
    agree(lambda x, i: at(x, i, 3)[1] != at(x, i + 2)[0], x, np.int32(4))
    if dtype != "bool":
        agree(lambda x, i: at(x, i, 3) + at(x, i + 1, 3), x, np.int32(4))


def test_two_slices_of_one_array_have_starts_of_their_own():
    x, w = uniform(9, 32, 32), uniform(9, 32, 32)

    def turn(i, h):
        return h + at(x, i)[0] - at(x, 8 - i)[0] * at(x, i * i)[0]

    agree(lambda h: lax.fori_loop(0, 9, turn, h), uniform(32, 32))
    # The same product reads two of them, at two places.
    agree(lambda x, w, i: jnp.matmul(at(x, i)[0], at(w, i + 1)[0]) + at(x, i + 2)[0], x, w,
          np.int32(3))
    agree(lambda x, i: at(x, i)[0] @ at(x, i + 3)[0], x, np.int32(2))


def test_a_slice_that_several_steps_read_while_others_read_others():
    x = uniform(9, 64, 64)

    def f(x, i):
        a, b = at(x, i)[0], at(x, 8 - i)[0]
        u = jnp.sort(a * 2)
        v = jnp.sort(b * 3 + u)
        return jnp.sort(a - v) @ b + a

    for i in range(9):
        agree(f, x, np.int32(i), rtol=1e-4)


def test_many_slices_in_one_step():
    x = uniform(40, 512)
    agree(lambda x, i: sum(at(x, i + k)[0] * (k + 1) for k in range(24)), x, np.int32(7))


@pytest.mark.parametrize("donated", [False, True])
def test_what_a_slice_was_before_an_update(donated):
    """The whole is updated in place, the slice is looked at later once more."""
    how = {"donate_argnums": 0} if donated else {}

    def f(x, i):
        old = at(x, i, 2)
        y = lax.dynamic_update_slice_in_dim(x, old * 2 + 1, i + 1, 0)
        return y, old - at(y, i, 2)

    def loop(x, i):
        def turn(k, x):
            old = at(x, k, 2)
            y = lax.dynamic_update_slice_in_dim(x, jnp.sin(old), k + 1, 0)
            return lax.dynamic_update_slice_in_dim(y, old + at(y, k + 1, 2), k, 0)
        return lax.fori_loop(0, i + 4, turn, x)

    for g in (f, loop):
        x = uniform(8, 512)
        true = jax.tree.map(np.asarray, jax.jit(g)(jax.device_put(x, CPU), np.int32(2)))
        here = jax.jit(g, **how)(jax.device_put(x, jax.devices()[0]), np.int32(2))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5), here,
                     true)


def test_a_late_look_does_not_make_an_update_copy_the_whole():
    """Slices stay where they are only if the whole does for so long anyway."""
    x = uniform(256, 512)

    def f(x):
        def turn(k, state):
            x, h = state
            old = at(x, k)
            x = lax.dynamic_update_slice_in_dim(x, old * 2, k, 0)
            return x, h + jnp.sort(at(x, k)[0]) * old[0]
        return lax.fori_loop(0, 256, turn, (x, jnp.zeros(512)))

    agree(f, x)
    assert temporaries(f, x) < x.nbytes / 8


def test_a_start_that_goes_on_before_the_slice_is_read():
    x, w = uniform(12, 16, 64), uniform(64, 64)

    def turn(c):
        i, h = c
        part = at(x, i)[0]
        i = i + 3
        h = jnp.sort(h + i) @ w
        return i, jnp.tanh(h + part) + part @ w

    agree(lambda h: lax.while_loop(lambda c: c[0] < 11, turn, (jnp.int32(0), h)),
          uniform(16, 64), rtol=1e-4)
    # A start that is computed, and whose own memory is soon somebody else's.
    agree(lambda x, i: (lambda part, j: (part + jnp.sort(x)[0] * j) @ w)(
        at(x, (i * 7) % 11)[0], (i * 5) % 3), x, np.int32(5), rtol=1e-4)


def test_shapes_of_slices():
    x, k = uniform(5, 4, 16, 64), uniform(5, 3, 3, 8, 8)
    agree(lambda x, i: at(x, i).reshape(64, 64).T @ at(x, i + 1).reshape(64, 64), x, np.int32(1))
    agree(lambda x, i: at(x, i, 2, axis=2) * 2, x, np.int32(3))
    agree(lambda x, i: at(at(x, i, 3), i - 1)[0, 1] @ uniform_64, x, np.int32(1))
    agree(lambda x, i: lax.dynamic_slice(x, (i, i, i, i), (2, 2, 8, 32)).sum(-1), x, np.int32(1))
    image = uniform(2, 10, 10, 8)
    agree(lambda k, i: lax.conv_general_dilated(
        image, at(k, i)[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) * 2, k,
        np.int32(3), rtol=1e-4)


uniform_64 = uniform(64, 8)


def test_slices_of_what_a_loop_makes():
    w = uniform(64, 64)

    def turn(k, x):
        y = jnp.sort(x * 1.5, 0)
        part = at(y, k, 8)
        return y + jnp.pad(part @ w, ((0, 24), (0, 0))) * 0.1 - at(y, 24 - k, 1)

    agree(lambda x: lax.fori_loop(0, 9, turn, x), uniform(32, 64), rtol=1e-3)


def test_a_slice_that_an_inner_loop_and_a_branch_read():
    x, w = uniform(6, 32, 64), uniform(64, 64)

    def turn(k, h):
        part = at(x, k)[0]
        h = lax.fori_loop(0, 3, lambda i, h: h * 0.5 + part @ w * i, h)
        return lax.cond(k % 2 == 0, lambda h: h + part, lambda h: h - part * part, h)

    agree(lambda h: lax.fori_loop(0, 6, turn, h), uniform(32, 64), rtol=1e-3)


# Random programs: arrays that are read at changing places, updated, or both, in a loop.
@pytest.mark.parametrize("seed", range(24))
def test_random_loops(seed):
    rng = np.random.default_rng(seed)
    plan = [(int(rng.integers(8)), *(int(v) for v in rng.integers(0, 3, 2)),
             *(int(v) for v in rng.integers(-3, 9, 2))) for _ in range(8)]
    w = rng.uniform(-0.1, 0.1, (64, 64)).astype(np.float32)

    def turn(k, arrays):
        arrays, held = list(arrays), jnp.zeros((4, 64))
        for what, a, b, i, j in plan:
            x, y = arrays[a], arrays[b]
            part = at(x, k * i + j, 4)
            if what == 0:
                held = held + part
            elif what == 1:
                held = jnp.tanh(part @ w + held)
            elif what == 2:
                arrays[b] = lax.dynamic_update_slice_in_dim(y, part * 0.5 + held, j - k, 0)
            elif what == 3:
                arrays[b] = y * 0.9 + part[1]
            elif what == 4:
                arrays[a], arrays[b] = y, x
            elif what == 5:
                held = part - at(y, k + i, 4) @ w
            elif what == 6:
                arrays[a] = jnp.sort(x, 0) + jnp.tanh(held[0])
            else:
                arrays[b] = lax.dynamic_update_slice_in_dim(y, held, k * j, 0)
                held = part * 2
        return tuple(arrays)

    agree(lambda *x: lax.fori_loop(0, 7, turn, x), *(rng.uniform(-1, 1, (16, 64)).astype(
        np.float32) for _ in range(3)), rtol=2e-3)


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_random_state_begins_anywhere(device, start):
    """Of words of 32 bits, which JAX itself does not give."""
    def draw(words, start):
        text = f"""func.func public @main(%a: tensor<{len(words)}xui32>)
            -> (tensor<4xui32>, tensor<6xui32>) {{
          %s = stablehlo.slice %a [{start}:{start + 4}] : (tensor<{len(words)}xui32>)
            -> tensor<4xui32>
          %o, %r = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<4xui32>)
            -> (tensor<4xui32>, tensor<6xui32>)
          return %o, %r : tensor<4xui32>, tensor<6xui32>
        }}"""
        run = device.client.compile_and_load(text.encode(), [device], _jax.CompileOptions())
        out = run.execute_sharded([jax.device_put(words, device)])
        return [np.asarray(x[0]) for x in out.disassemble_into_single_device_arrays()]

    words = np.arange(7, dtype=np.uint32) * np.uint32(0x9e3779b9)
    for a, b in zip(draw(words, start), draw(words[start:start + 4], 0), strict=True):
        np.testing.assert_array_equal(a, b)
