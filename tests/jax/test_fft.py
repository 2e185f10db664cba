# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms against NumPy's in f64: errors are of the whole array's size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

BOUND = {np.complex64: 5e-7, np.complex128: 2e-15}

# 64 and 65: the largest factor of a product, and 5 * 13; 67 and 509: primes beyond it, in 134 = 2 *
# 67 and 4489 = 67 * 67 as factors; 521, 2018 = 2 * 1009, 99991: by convolution. Butterflies of 2 to
# 8 points: behind each other in 32, 1536, 6561, 13125 and 16807, behind products in 704 and 11011.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 31, 32, 49, 63, 64, 65, 66, 67, 96, 128, 134, 210, 360, 509, 521,
           704, 1000, 1024, 1536, 2018, 2048, 4489, 6561, 11011, 13125, 16807, 65536, 99991]


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


# Butterflies, which are taken where there are many elements: any count, and any number of columns.
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 21, 24, 26, 27, 28,
                               33, 35, 36, 40, 42, 48, 49, 56, 64, 88, 100, 105, 125, 128, 343])
@pytest.mark.parametrize("dtype", BOUND)
def test_butterflies(n, dtype):
    bound, count = BOUND[dtype], 65536 // n + 1
    check(jnp.fft.fft, np.fft.fft, numbers((count, n)).astype(dtype), bound)
    check(lambda a: jnp.fft.ifft(a, axis=1), lambda a: np.fft.ifft(a, axis=1),
          numbers((count // 33 + 1, n, 33)).astype(dtype), bound)


# Many bytes are transformed in blocks: of some transforms, or of some columns. Of each some fit the
# blocks, some leave one over; 2^21 bytes are the least that is cut, one more or less is not. JAX
# moves the one axis of fft and ifft to the end.
@pytest.mark.parametrize("shape, axis", [
    ((511, 512), 1), ((512, 512), 1), ((513, 512), 1), ((1009, 360), 1), ((5, 65536), 1),
    ((3, 131072), 1), ((9, 32768), 1), ((1024, 256), 0), ((1024, 257), 0), ((1000, 523), 0),
    ((3, 1024, 131), 1), ((2, 4096, 40), 1), ((2, 8192, 17), 1), ((1, 512, 512, 1), 2)])
def test_blocks(shape, axis):
    x, bound = numbers(shape).astype(np.complex64), BOUND[np.complex64]
    for f, true in ((jnp.fft.fft, np.fft.fft), (jnp.fft.ifft, np.fft.ifft)):
        check(lambda a, f=f: f(a, axis=axis), lambda a, f=true: f(a, axis=axis), x, bound)
    # The argument is as it was, also where it is looked at again.
    check(lambda a: jnp.fft.fft(a, axis=axis) + a, lambda a: np.fft.fft(a, axis=axis) + a, x, bound)


@pytest.mark.parametrize("shape", [(4096, 240), (4096, 241), (4096, 15), (3, 1024, 131),
                                   (2, 8192, 17)])
def test_blocks_of_columns(shape):
    x, bound = numbers(shape).astype(np.complex64), BOUND[np.complex64]
    check(jnp.fft.fft2, np.fft.fft2, x, bound)
    check(jnp.fft.ifft2, np.fft.ifft2, x, bound)


@pytest.mark.parametrize("shape, axes", [((511, 1024), (0, 1)), ((512, 1024), (0, 1)),
                                         ((1009, 1040), (0, 1)), ((3, 333, 1000), (1, 2)),
                                         ((700, 2, 777), (1, 2)), ((4, 524288), (0, 1))])
def test_blocks_of_real_signals(shape, axes):
    x, bound = numbers(shape).real.astype(np.float32), BOUND[np.complex64]
    check(jnp.fft.rfft, np.fft.rfft, x, bound)
    check(lambda a: jnp.fft.rfft2(a, axes=axes), lambda a: np.fft.rfft2(a, axes=axes), x, bound)
    y = np.fft.rfft2(x, axes=axes).astype(np.complex64)
    check(lambda a: jnp.fft.irfft2(a, x.shape[-2:]), lambda a: np.fft.irfft2(a, x.shape[-2:]), y,
          bound)


def test_blocks_need_little_memory():
    """One block and the next step's; of two dims the second is transformed where the first was."""
    for f, x in ((jnp.fft.fft, numbers((16, 65536)).astype(np.complex64)),
                 (jnp.fft.rfft2, numbers((4, 1024, 1024)).real.astype(np.float32)),
                 (jnp.fft.rfft, numbers((2048, 1024)).real.astype(np.float32))):
        compiled = jax.jit(f).lower(x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < x.nbytes / 6


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


# 8 dims are the most that an instruction has; pairs have one more.
@pytest.mark.parametrize("rank", [7, 8])
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


def test_a_real_transform_reads_its_argument_where_it_lies():
    """Pairs are complex numbers; what they become, here in one step, is told apart by one
    instruction."""
    x = numbers((2048, 16)).real.astype(np.float32)
    f = jax.jit(jnp.fft.rfft).lower(x).compile()
    assert f.memory_analysis().temp_size_in_bytes < 2.2 * x.nbytes
    check(jnp.fft.rfft, np.fft.rfft, x, BOUND[np.complex64])
