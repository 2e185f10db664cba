# SPDX-License-Identifier: Apache-2.0
"""Inputs for a program's argument shapes, its oracles, and the distance of two results.

A result is compared with two oracles, both JAX's CPU backend: the program as it is, and
the program in f64, whose own error is far below what is measured. An element is as far
off as from the nearer of the two, in units in the last place (`units`).
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np

# Programs whose result has an element for each element of the arguments, or moves
# elements about: a unit is that of the element. Elsewhere sums are made, and a unit is
# that of the largest element of the result.
ELEMENTWISE = ("elt/", "int/", "cast/", "shape/", "idx/", "sort/", "spec/", "pool/max",
               "pool/same")
# Where results come near zero by subtraction, no unit is smaller than that of 1.
LEAST = ("elt/logaddexp", "spec/", "linalg/")

MILD, SIGNED, WIDE, SPECIAL = "mild", "signed", "wide", "special"
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0]


# The kinds of inputs that a program is not run with, each with why.
LEFT_OUT = [
    ("linalg/", (SIGNED, WIDE, SPECIAL), "factorisations have tests of their own"),
    ("model/", (SIGNED, WIDE, SPECIAL), "weights and data as models have them"),
    ("rng/", (SIGNED, WIDE, SPECIAL), "it takes no array"),
    ("spmd/", (SIGNED, WIDE, SPECIAL), "moves nothing on one device"),
    ("ctl/vwhile", (SIGNED, SPECIAL), "its loop ends for positive numbers only"),
    ("fft/", (SPECIAL,), "where a NaN spreads to is the algorithm's"),
    ("cplx/", (SPECIAL,), "C and XLA differ in the parts of a complex NaN"),
    ("conv/grad", (SPECIAL,), "whether holes between elements are multiplied is free"),
    ("conv/transpose", (SPECIAL,), "whether holes between elements are multiplied is free"),
    ("red/max", (SPECIAL,), "XLA's CPU backend loses NaN (test_nan.py has NumPy's answers)"),
    ("red/min", (SPECIAL,), "as red/max"), ("red/ptp", (SPECIAL,), "as red/max"),
    ("red/histogram", (SPECIAL,), "as red/max"), ("pool/max", (SPECIAL,), "as red/max"),
    ("sort/approx", (SPECIAL,), "it compares by GT, which orders no NaN"),
    ("cast/mm_", (WIDE,), "partial sums overflow in an order that is free"),
]


def kinds(name):
    """The kinds of inputs that a program is run with."""
    left_out = {k for prefix, ks, _ in LEFT_OUT if name.startswith(prefix) for k in ks}
    return [k for k in (MILD, SIGNED, WIDE, SPECIAL) if k not in left_out and
            (k != WIDE or name.startswith(ELEMENTWISE))]


def enlarge(name, shapes, to=None):
    """The shapes with some thousand elements, several tiles of the model and a rest; or with the
    sizes that `to` has for those of the corpus."""
    if name.startswith(("linalg/", "model/", "rng/", "spmd/", "cb/")):
        return shapes
    leaves = jax.tree.leaves(shapes, is_leaf=is_shape)
    flat = all(len(s.shape) <= 1 for s in leaves) and not name.startswith(("sort/", "idx/"))
    if to is None:
        to = {16: 5003 if flat else 131, 8: 35}
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(
        tuple(to.get(n, n) for n in s.shape), s.dtype), shapes, is_leaf=is_shape)


def is_shape(s):
    return isinstance(s, jax.ShapeDtypeStruct)


def draw_floats(rng, kind, shape, finfo):
    n = int(np.prod(shape))
    if kind == MILD:
        x = rng.uniform(0.05, 0.95, n)
    elif kind == WIDE:
        x = np.ldexp(rng.uniform(1, 2, n), rng.integers(finfo.minexp, finfo.maxexp, n))
        x *= rng.choice([1, -1], n)
    else:
        x = np.choose(rng.integers(0, 4, n), [
            rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), 4 * rng.standard_normal(n),
            20 * abs(rng.standard_normal(n))])
    if kind == SPECIAL:
        # Most pairs of two arguments' specials meet somewhere; rows without any are left.
        at = rng.random(n) < (0.5 if len(shape) < 2 else 0.02)
        x[at] = rng.choice(SPECIALS, at.sum())
    return x.reshape(shape)


def make_inputs(name, shapes, kind=MILD):
    """Seeded arrays for ShapeDtypeStructs; square f32 matrices of linear algebra are
    well conditioned and positive definite."""
    rng = np.random.default_rng(zlib.crc32(name.encode() + kind.encode()))

    def make(s):
        dtype = np.dtype(s.dtype)
        if dtype == bool:
            return rng.integers(0, 2, s.shape).astype(bool)
        if jnp.issubdtype(dtype, jnp.integer):
            info = jnp.iinfo(dtype)
            low, high = (0, 8) if kind == MILD else (-8, 20)
            if kind == WIDE and name.startswith(("int/", "cast/")):
                low, high = info.min, info.max + 1
            return rng.integers(max(low, info.min), min(high, info.max + 1),
                                s.shape).astype(dtype)
        if name.startswith("model/") and name != "model/gp":
            # Weights as models have them: sums stay small, gradients well behaved.
            return (0.3 * rng.standard_normal(s.shape)).astype(dtype)
        finfo = jnp.finfo(dtype)
        x = draw_floats(rng, kind, s.shape, finfo)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            y = rng.uniform(-1, 1, s.shape) if kind == MILD else \
                draw_floats(rng, kind, s.shape, finfo)
            z = np.empty(s.shape, dtype)
            z.real, z.imag = x, y
            return z
        square = len(s.shape) == 2 and s.shape[0] == s.shape[1]
        if name.startswith(("linalg/", "model/gp")) and square:
            x = (x + x.T) / 2 + s.shape[0] * np.eye(s.shape[0])
        with np.errstate(all="ignore"):
            return np.clip(x, -float(finfo.max), float(finfo.max)).astype(dtype) \
                if kind == WIDE else x.astype(dtype)

    return jax.tree.map(make, shapes, is_leaf=is_shape)


def in_f64(tree):
    """Arrays of floats as f64 and c128."""
    def widen(x):
        if jnp.issubdtype(x.dtype, jnp.complexfloating):
            return x.astype(np.complex128)
        return x.astype(np.float64) if jnp.issubdtype(x.dtype, jnp.floating) else x
    return jax.tree.map(widen, tree)


def plain(x):
    """A NumPy array: keys unwrapped."""
    if jnp.issubdtype(getattr(x, "dtype", None), jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)


def parts(x):
    """An array of floats as f64; of a complex one, its parts in a last dim of two."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        x = np.stack([x.real, x.imag], -1)
    return np.atleast_1d(x.astype(np.float64))


def distance(got, want, finfo, scale):
    """Units in the last place, of the element or of `scale` where that is larger; below
    the smallest normal number there is only zero."""
    tiny = float(finfo.smallest_normal)
    with np.errstate(all="ignore"):
        unit = np.ldexp(float(finfo.eps), np.frexp(np.maximum(
            np.maximum(abs(want), scale), tiny))[1] - 1)
        far = abs(got - want) / unit
        far[abs(got - want) <= tiny] = 0
        # What the type rounds to infinity may be its largest number, and the other way.
        largest = float(finfo.max)
        near_top = (np.isinf(got) & (abs(want) >= largest * (1 - float(finfo.eps)))) | (
            np.isinf(want) & (abs(got) >= largest * (1 - float(finfo.eps))))
        far[near_top & (np.sign(got) == np.sign(want))] = 1
    far[(got == want) | (np.isnan(got) & np.isnan(want))] = 0
    far[np.isnan(far)] = np.inf
    return far


def units(name, got, wants):
    """How far a program's results are from the nearest of several oracles'; inf: not to be
    compared.

    Returns (units, text of where). Integers and booleans are equal or inf.
    """
    got = [plain(x) for x in jax.tree.leaves(got)]
    wants = [[plain(x) for x in jax.tree.leaves(w)] for w in wants]
    worst, where = 0.0, ""
    for w in wants:
        if len(w) != len(got):
            return np.inf, f"{len(got)} results instead of {len(w)}"
    for i, a in enumerate(got):
        b = wants[0][i]
        if a.shape != b.shape or a.dtype != b.dtype:
            return np.inf, f"result {i}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
        others = [w[i] for w in wants if w[i].shape == a.shape]
        if not jnp.issubdtype(a.dtype, jnp.inexact):
            # f64 may decide a comparison otherwise: then the program as it is counts.
            far = np.atleast_1d(np.where(np.any([a == o for o in others], 0), 0.0, np.inf))
        else:
            far = far_floats(name, a, others)
        if far.size and far.max() > worst:
            worst = far.max()
            at = tuple(int(k) for k in np.unravel_index(far.argmax(), far.shape))[:a.ndim]
            where = (f"result {i} at {at}: {a[at]} instead of "
                     f"{' or '.join(str(o[at]) for o in others)}; "
                     f"{np.count_nonzero(far >= worst / 2)} of {far.size} are as far off")
    return float(worst), where


def far_floats(name, a, others):
    finfo, elementwise = jnp.finfo(a.dtype), name.startswith(ELEMENTWISE)
    least = 1.0 if name.startswith(LEAST) else 0.0
    x, ys = parts(a), [parts(o) for o in others]
    far = np.full(x.shape, np.inf)
    for y in ys:
        finite = abs(y[np.isfinite(y)])
        scale = 0.0 if elementwise or not finite.size else min(finite.max(), float(finfo.max))
        far = np.minimum(far, distance(x, y, finfo, max(scale, least)))
    if elementwise:
        # A zero on which the oracles agree has their sign.
        zero = np.all([(y == 0) & (np.signbit(y) == np.signbit(ys[0])) for y in ys], 0)
        far[zero & (x == 0) & (np.signbit(x) != np.signbit(ys[0]))] = np.inf
    return far
