# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms against NumPy's in f64: errors are of the whole array's size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

BOUND = {np.complex64: 5e-7, np.complex128: 2e-15}

# 61 is the largest prime that the instruction takes: 67, 97, 127, 134, 509, 4489 = 67 * 67 and
# others go by convolution, long ones along their largest prime: 16432 = 16 * 13 * 79,
# 20100 = 67 * 300, 35912 = 8 * 67 * 67. 1025 = 5 * 5 * 41, 3721 = 61 * 61.
LENGTHS = [*range(1, 71), 97, 127, 128, 134, 210, 360, 509, 521, 704, 1000, 1024, 1025, 1536, 2018,
           2048, 3721, 4096, 4489, 6561, 8576, 11011, 13125, 16432, 16807, 20100,
           35912, 65536, 98304, 99991]


def numbers(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def check(f, true, x, bound):
    with jax.enable_x64(True):
        here = np.asarray(jax.jit(f)(x))
    true = true(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64))
    assert here.shape == true.shape
    assert np.linalg.norm(here - true) <= bound * max(np.linalg.norm(true), 1e-30)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", BOUND)
def test_lengths(n, dtype):
    x, bound = numbers((3, n)).astype(dtype), BOUND[dtype]
    check(jnp.fft.fft, np.fft.fft, x, bound)
    check(jnp.fft.ifft, np.fft.ifft, x, bound)
    check(jnp.fft.rfft, np.fft.rfft, x.real, bound)
    # Imaginary parts of the ends count for nothing.
    half = x[:, :n // 2 + 1]
    check(lambda a: jnp.fft.irfft(a, n), lambda a: np.fft.irfft(a, n), half, bound)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 65, 32), (1, 128, 128), (5, 130, 2), (96, 1, 33),
                                   (2, 8, 16, 32)])
def test_several_dims(shape):
    x, bound = numbers(shape).astype(np.complex64), BOUND[np.complex64]
    axes = (-3, -2, -1)
    check(lambda a: jnp.fft.fftn(a, axes=axes), lambda a: np.fft.fftn(a, axes=axes), x, bound)
    check(lambda a: jnp.fft.ifft(a, axis=0), lambda a: np.fft.ifft(a, axis=0), x, bound)
    check(jnp.fft.rfft2, np.fft.rfft2, x.real, bound)
    if shape[-1] > 1:
        size = shape[-2:]
        check(lambda a: jnp.fft.irfft2(a, size), lambda a: np.fft.irfft2(a, size),
              x[..., :size[-1] // 2 + 1], bound)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 12, 61, 67, 100])
@pytest.mark.parametrize("dtype", BOUND)
def test_any_axis(n, axis, dtype):
    """Frameworks turn it to the end and back: what is turned is read and written as it lies."""
    shape = [3, 4, 5]
    shape[axis] = n
    x, bound = numbers(shape).astype(dtype), BOUND[dtype]
    half = np.take(x, range(n // 2 + 1), axis)
    for f, true, y in ((jnp.fft.fft, np.fft.fft, x), (jnp.fft.ifft, np.fft.ifft, x),
                       (jnp.fft.rfft, np.fft.rfft, x.real)):
        check(lambda a, f=f: f(a, axis=axis), lambda a, f=true: f(a, axis=axis), y, bound)
        check(lambda a, f=f: f(a, axis=axis) * 2, lambda a, f=true: f(a, axis=axis) * 2, y, bound)
    check(lambda a: jnp.fft.irfft(a, n, axis), lambda a: np.fft.irfft(a, n, axis), half, bound)
    check(lambda a: jnp.fft.hfft(a, n, axis), lambda a: np.fft.hfft(a, n, axis), half, bound)
    check(lambda a: jnp.fft.ihfft(a, axis=axis), lambda a: np.fft.ihfft(a, axis=axis), x.real,
          bound)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (2, 0), (0, 1, 2), (1,)])
@pytest.mark.parametrize("shape", [(6, 4, 10), (7, 67, 3), (1, 8, 61)])
def test_some_axes(shape, axes):
    x, bound = numbers(shape).astype(np.complex64), BOUND[np.complex64]
    size = [shape[a] for a in axes]
    half = np.take(x, range(size[-1] // 2 + 1), axes[-1])
    for name, y in (("fftn", x), ("ifftn", x), ("rfftn", x.real)):
        check(lambda a, f=getattr(jnp.fft, name): f(a, axes=axes),
              lambda a, f=getattr(np.fft, name): f(a, axes=axes), y, bound)
    check(lambda a: jnp.fft.irfftn(a, size, axes), lambda a: np.fft.irfftn(a, size, axes), half,
          bound)


# 2^20 points are the most that the instruction takes; more are made of two, or, as 67 * 2^14, by
# convolution, whose transforms are made of two.
@pytest.mark.parametrize("n", [1 << 20, 1 << 21, 3 << 20, 67 << 14])
def test_large(n):
    x, bound = numbers(n).astype(np.complex64), BOUND[np.complex64]
    check(jnp.fft.fft, np.fft.fft, x, bound)
    check(jnp.fft.ifft, np.fft.ifft, x, bound)
    check(jnp.fft.rfft, np.fft.rfft, x.real, bound)
    check(lambda a: jnp.fft.irfft(a, n), lambda a: np.fft.irfft(a, n), x[:n // 2 + 1], bound)


def test_large_beside_others():
    x = numbers((2, 3 << 19, 2)).astype(np.complex128)
    check(lambda a: jnp.fft.fft(a, axis=1), lambda a: np.fft.fft(a, axis=1), x,
          BOUND[np.complex128])


# Around powers of two, of lines and of what lies beside each other.
@pytest.mark.parametrize("shape, axis", [
    ((511, 512), 1), ((513, 512), 1), ((1009, 360), 1), ((5, 65536), 1), ((9, 32768), 1),
    ((1024, 257), 0), ((1000, 523), 0), ((3, 1024, 131), 1), ((2, 8192, 17), 1), ((128, 1), 0),
    ((128, 7), 0), ((128, 8), 0), ((128, 9), 0), ((60, 15), 0), ((60, 16), 0), ((60, 17), 0),
    ((2, 31, 33), 1), ((1, 512, 512, 1), 2)])
def test_many_lines(shape, axis):
    x, bound = numbers(shape).astype(np.complex64), BOUND[np.complex64]
    for f, true in ((jnp.fft.fft, np.fft.fft), (jnp.fft.ifft, np.fft.ifft)):
        check(lambda a, f=f: f(a, axis=axis), lambda a, f=true: f(a, axis=axis), x, bound)
    # The argument is as it was, also where it is looked at again.
    check(lambda a: jnp.fft.fft(a, axis=axis) + a, lambda a: np.fft.fft(a, axis=axis) + a, x, bound)


@pytest.mark.parametrize("shape, axes", [((511, 1024), (0, 1)), ((1009, 1040), (0, 1)),
                                         ((3, 333, 1000), (1, 2)), ((700, 2, 777), (1, 2)),
                                         ((4, 524288), (0, 1))])
def test_many_real_signals(shape, axes):
    x, bound = numbers(shape).real.astype(np.float32), BOUND[np.complex64]
    check(jnp.fft.rfft, np.fft.rfft, x, bound)
    check(lambda a: jnp.fft.rfft2(a, axes=axes), lambda a: np.fft.rfft2(a, axes=axes), x, bound)
    y = np.fft.rfft2(x, axes=axes).astype(np.complex64)
    check(lambda a: jnp.fft.irfft2(a, x.shape[-2:]), lambda a: np.fft.irfft2(a, x.shape[-2:]), y,
          bound)


VIEWS = {"turned": lambda a: a.swapaxes(0, 2), "reversed": lambda a: a[:, ::-1, ::-1],
         "every other": lambda a: a[1:, ::2, 1::2], "repeated": lambda a: a[:1].repeat(3, 0),
         "a part": lambda a: a[2:5, :, 3:15], "one": lambda a: a[:, 3:4, :]}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view):
    x, bound, f = numbers((6, 10, 16)).astype(np.complex64), BOUND[np.complex64], VIEWS[view]
    n = f(x).shape[-1]
    check(lambda a: jnp.fft.fft(f(a)), lambda a: np.fft.fft(f(a)), x, bound)
    check(lambda a: f(jnp.fft.fft(a)), lambda a: f(np.fft.fft(a)), x, bound)
    check(lambda a: jnp.fft.rfft(f(a)), lambda a: np.fft.rfft(f(a)), x.real, bound)
    check(lambda a: jnp.fft.fftn(f(a)), lambda a: np.fft.fftn(f(a)), x, bound)
    check(lambda a: jnp.fft.irfft(f(a), 2 * n - 2), lambda a: np.fft.irfft(f(a), 2 * n - 2), x,
          bound)


@pytest.mark.parametrize("n", [1, 2, 9, 16, 67])
def test_gradients(n):
    """Of sums of squares of distances to a target, as NumPy has them by definition."""
    x, y = numbers((3, n), 1), numbers((3, n // 2 + 1), 2)
    there = lambda a: jnp.sum(jnp.abs(jnp.fft.rfft(a) - y) ** 2)  # noqa: E731
    back = lambda a: jnp.sum((jnp.fft.irfft(a, n) - x.real) ** 2)  # noqa: E731
    matrix = np.fft.rfft(np.eye(n))
    check(jax.grad(there), lambda a: 2 * ((a @ matrix - y) @ matrix.conj().T).real, x.real, 1e-13)
    re = np.fft.irfft(np.eye(n // 2 + 1), n)
    im = np.fft.irfft(1j * np.eye(n // 2 + 1), n)

    def true(a):
        off = 2 * (a.real @ re + a.imag @ im - x.real)
        return off @ re.T - 1j * (off @ im.T)
    check(jax.grad(back), true, y, 1e-13)


def test_nothing_is_kept_beside_the_result():
    """Arguments are read where they lie; of several dims the next is transformed in its place."""
    for f, x, most in ((jnp.fft.fft, numbers((16, 4096)).astype(np.complex64), 0),
                       (lambda a: jnp.fft.fft(a, axis=0), numbers((256, 96)), 0),
                       (jnp.fft.rfft2, numbers((4, 64, 128)).real.astype(np.float32), 0),
                       (jnp.fft.irfft2, numbers((4, 64, 65)).astype(np.complex64), 133120)):
        compiled = jax.jit(f).lower(x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes <= most


def test_one_instruction_makes_what_is_joined():
    """Nothing is kept between: sums and differences are born in the whole."""
    x = numbers((3, 4096)).astype(np.complex64)

    def stacked(x):
        a, b, c = x
        b = b * 2
        return jnp.stack([a + b, a - b, a * c + b, a * c - b], 1)

    compiled = jax.jit(stacked).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes == 0
    check(stacked, lambda x: np.asarray(stacked(x)), x, BOUND[np.complex64])


def test_a_real_spectrum_has_real_ends():
    x = numbers((4, 96)).real.astype(np.float32)
    y = np.asarray(jax.jit(jnp.fft.rfft)(x))
    assert (y.imag[:, 0] == 0).all() and (y.imag[:, -1] == 0).all()


# 8 dims are the most that an instruction has.
@pytest.mark.parametrize("rank", [7, 8, 9])
@pytest.mark.parametrize("n", [6, 7])
def test_many_dims(rank, n):
    x, bound = numbers((2,) * (rank - 1) + (n,)).astype(np.complex64), BOUND[np.complex64]
    check(jnp.fft.rfft, np.fft.rfft, x.real, bound)
    half = x[..., :n // 2 + 1]
    check(lambda a: jnp.fft.irfft(a, n), lambda a: np.fft.irfft(a, n), half, bound)


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_real_signals_begin_anywhere(start):
    """Also where no complex number may lie."""
    x, bound = numbers(1001).real.astype(np.float32), BOUND[np.complex64]
    lax = jax.lax
    for f in (lambda a: a[start:start + 64],
              lambda a: lax.dynamic_slice(a, (lax.optimization_barrier(start),), (64,)),
              lambda a: lax.fori_loop(0, start + 1, lambda i, _: lax.dynamic_slice(
                  a, (i,), (64,)), jnp.zeros(64, a.dtype))):
        check(lambda a, f=f: jnp.fft.rfft(f(a)), lambda a: np.fft.rfft(a[start:start + 64]), x,
              bound)
    rows = x[:975].reshape(15, 65)
    check(lambda a: lax.map(lambda v: jnp.fft.rfft(v[start:start + 60]), a),
          lambda a: np.fft.rfft(a[:, start:start + 60]), rows, bound)


def test_nothing_of_one_element(device, cpu):
    """numpy.fft.irfft of a row of one gives 2 * (1 - 1) elements, an error there alone."""
    x = np.ones((12, 1), np.float32)
    for f in (lambda a: jnp.fft.irfft(jnp.fft.rfft(a)),
              lambda a: jnp.sum(jnp.fft.irfft(a.astype(jnp.complex64)), -1)):
        here, there = (jax.jit(f)(jax.device_put(x, d)) for d in (device, cpu))
        np.testing.assert_array_equal(here, there)
