# SPDX-License-Identifier: Apache-2.0
"""One program of each family of operations, for n elements, whose time must grow no faster than
with n, or with n log n: bench-growth fits exponents, tests/jax/test_growth.py holds the order."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LINEAR, SORTING = 1.1, 1.2      # the greatest exponents of time


def numbers(n):
    return np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32)


def indices(n):
    return np.random.default_rng(n).integers(0, n, n).astype(np.int32)


def one(n):
    return (numbers(n),)


def square(n):
    """As even as a power of two allows."""
    rows = 1 << (n.bit_length() - 1) // 2
    return (numbers(n).reshape(rows, n // rows),)


def wide_window(x):
    w = len(x) // 64
    return lax.reduce_window(x, 0.0, lax.add, (w,), (1,), [(w - 1, 0)])


def narrow_window(x):
    return lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), "SAME")


def recurrence(x):
    return lax.associative_scan(lambda s, t: (s[0] * t[0], s[1] * t[0] + t[1]), (x, x))[1]


# name: (function, its arguments for n elements, the greatest exponent)
FAMILIES = {
    "elementwise": (jnp.tanh, one, LINEAR),
    "sum": (jnp.sum, one, LINEAR),
    "softmax": (jax.nn.softmax, square, LINEAR),
    "cumsum": (lax.cumsum, one, LINEAR),
    "cummax, backwards": (lambda x: lax.cummax(x, reverse=True), one, LINEAR),
    "cumlogsumexp": (lax.cumlogsumexp, one, LINEAR),
    "cumsum of rows": (lambda x: lax.cumsum(x, 1), square, LINEAR),
    "associative scan": (recurrence, one, LINEAR),
    "window of a 64th": (wide_window, one, LINEAR),
    "window of 3": (narrow_window, one, LINEAR),
    "its gradient": (jax.grad(lambda x: (narrow_window(x) ** 2).sum()), one, LINEAR),
    "convolution of 9": (lambda x: jnp.convolve(x, jnp.arange(9.0), "same"), one, LINEAR),
    "sort": (jnp.sort, one, SORTING),
    "argsort": (jnp.argsort, one, SORTING),
    "top_k 64": (lambda x: lax.top_k(x, 64), one, LINEAR),
    "argmax": (jnp.argmax, one, LINEAR),
    "gather": (lambda x, i: x[i], lambda n: (numbers(n), indices(n)), LINEAR),
    "scatter-add": (lambda x, i: x.at[i].add(x), lambda n: (numbers(n), indices(n)), LINEAR),
    "transpose": (jnp.transpose, square, LINEAR),
    "reverse": (lambda x: x[::-1], one, LINEAR),
    "pad and concatenate": (lambda x: jnp.concatenate([jnp.pad(x, (3, 1)), x]), one, LINEAR),
    "random numbers": (lambda x: x + jax.random.normal(jax.random.key(1), x.shape), one, LINEAR),
    "FFT": (lambda x: jnp.fft.fft(x), one, SORTING),
    "product with a vector": (lambda x: x @ x[0], square, LINEAR),
}
