# SPDX-License-Identifier: Apache-2.0
"""Inputs for a function's argument shapes, and the comparison of two results."""

import zlib

import jax
import numpy as np

# Relative and absolute tolerance by the precision of the result's type.
TOLERANCE = {"float64": (1e-9, 1e-9), "complex128": (1e-9, 1e-9),
             "float32": (2e-4, 2e-5), "complex64": (2e-4, 2e-4),
             "bfloat16": (4e-2, 4e-2), "float16": (4e-3, 4e-3)}


def make_inputs(name, shapes):
    """Seeded arrays for ShapeDtypeStructs; square f32 matrices of linear algebra are
    well conditioned and positive definite."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))

    def make(s):
        dtype = np.dtype(s.dtype)
        if dtype == bool:
            return rng.integers(0, 2, s.shape).astype(bool)
        if jax.numpy.issubdtype(dtype, jax.numpy.integer):
            high = min(8, jax.numpy.iinfo(dtype).max + 1)
            return rng.integers(0, high, s.shape).astype(dtype)
        if name.startswith("model/") and name != "model/gp":
            # Weights as models have them: sums stay small, gradients well behaved.
            return (0.3 * rng.standard_normal(s.shape)).astype(dtype)
        x = rng.uniform(0.05, 0.95, s.shape)
        if jax.numpy.issubdtype(dtype, jax.numpy.complexfloating):
            return (x + 1j * rng.uniform(-1, 1, s.shape)).astype(dtype)
        square = len(s.shape) == 2 and s.shape[0] == s.shape[1]
        if name.startswith(("linalg/", "model/gp")) and square:
            x = (x + x.T) / 2 + s.shape[0] * np.eye(s.shape[0])
        return x.astype(dtype)

    return jax.tree.map(make, shapes,
                        is_leaf=lambda s: isinstance(s, jax.ShapeDtypeStruct))


def plain(x):
    """A NumPy array of a type that NumPy compares: keys and tiny floats unwrapped."""
    if jax.numpy.issubdtype(getattr(x, "dtype", None), jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)


def differences(got, want, relative=None):
    """What differs, as a list of texts; empty when the results agree.

    relative: a tolerance in place of the type's.
    """
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    if len(got) != len(want):
        return [f"{len(got)} results instead of {len(want)}"]
    found = []
    for i, (a, b) in enumerate(zip(map(plain, got), map(plain, want))):
        if a.shape != b.shape or a.dtype != b.dtype:
            found.append(f"result {i}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}")
            continue
        rtol, atol = TOLERANCE.get(a.dtype.name, (0, 0))
        rtol = relative or rtol
        if jax.numpy.issubdtype(a.dtype, jax.numpy.floating):
            if a.dtype.itemsize < 2:
                rtol, atol = 0.13, 1e-2
            a, b = a.astype("float64"), b.astype("float64")
        if rtol:
            same = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        else:
            same = a == b
        if not np.all(same):
            at = tuple(int(k) for k in np.argwhere(~np.asarray(same))[0])
            found.append(f"result {i}: {np.size(same) - np.count_nonzero(same)} of "
                         f"{np.size(same)} differ, first at {at}: {a[at]} instead of {b[at]}")
    return found
