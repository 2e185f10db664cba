# SPDX-License-Identifier: Apache-2.0
"""Elementwise work on arrays whose last dims are short and lie apart or backwards, as channels of
images that are flipped, cropped and taken apart do. Against NumPy, which only moves elements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

TYPES = ["bool", "int8", "uint16", "float32", "complex64"]


def image(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape) % 251
    return x % 3 == 0 if dtype == "bool" else (x - 7).astype(dtype)


def agree(f, x):
    """f of what elementwise work gives, and elementwise work on what f gives."""
    def work(x):
        return ~x if x.dtype == bool else x + np.array(1, x.dtype)

    for g in (lambda x: f(work(x)), lambda x: work(f(x))):
        np.testing.assert_array_equal(np.asarray(jax.jit(g)(x)), g(x))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 15, 16, 17, 33])
def test_flips_crops_and_parts(dtype, channels):
    x = image((3, 37, 41, channels), dtype)
    for f in (lambda x: x[..., ::-1], lambda x: x[:, :, ::-1], lambda x: x[:, ::-1, ::-1],
              lambda x: x[:, 5:30, 7:40], lambda x: x[..., channels // 2], lambda x: x[..., ::2],
              lambda x: x[:, ::3, ::2], lambda x: x[..., 1:], lambda x: x[:, :, -1:1:-3, :2]):
        agree(f, x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [2, 3, 4, 16, 17])
def test_parts_that_are_written_apart(dtype, channels):
    x = image((2, 19, 23, channels), dtype)

    def f(x):
        y = ~x if x.dtype == bool else x + np.array(1, x.dtype)
        return (jnp.concatenate([y[..., :1], y], -1),
                jnp.concatenate([y, y[..., ::-1]], -1).transpose(3, 0, 1, 2))

    y = ~x if dtype == "bool" else x + np.array(1, x.dtype)
    one, two = jax.jit(f)(x)
    np.testing.assert_array_equal(np.asarray(one), np.concatenate([y[..., :1], y], -1))
    np.testing.assert_array_equal(np.asarray(two),
                                  np.concatenate([y, y[..., ::-1]], -1).transpose(3, 0, 1, 2))
