# SPDX-License-Identifier: Apache-2.0
"""Tridiagonal systems, by elimination with pivots: row by row, as LAPACK's gtsv does it, or, of few
systems, all pairs of rows at once, then pairs of pairs, so that there is little that waits for
something before it. What gtsv rounds in a matrix is a part of each element; in pairs it is a part
of the largest ones, so that they want numbers that are twice as wide."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

MOST_SYSTEMS = 16       # times right sides, that pairs are for: of more, rows are long enough
MOST_COMPLEX = 4        # matrices, whose numbers are taken apart
LEAST_NUMBERS = 256     # of one system or two, in which pairs are fewer instructions
LEAST_ROWS = 64         # for each system, as pairs have more to do in all
MOST_ODD = 8            # parts, of which one may be added at a time
WIDE = {"float32": "float64", "complex64": "complex128"}


def solve(low, diagonal, up, rhs, *, perturb_singular):
    """A matrix with a pivot of zero has NaNs for its solution, or with perturb_singular one that
    is finite: small pivots become eps of the largest entry. Pairs of rows may round a pivot that
    is zero row by row, so that the solution of a singular matrix has huge numbers there."""
    n, k = rhs.shape[-2:]
    if not rhs.size:
        return rhs
    low, diagonal, up = (x.reshape(-1, n).T[..., None] for x in (low, diagonal, up))
    # Ends are not read.
    low = jnp.concatenate([jnp.zeros_like(low[:1]), low[1:]])
    up = jnp.concatenate([up[:-1], jnp.zeros_like(up[:1])])
    b = jnp.moveaxis(rhs.reshape(-1, n, k), 1, 0)
    systems = b.shape[1] * k
    args = low, diagonal, up, b
    if perturb_singular or not _are_pairs_faster(n, systems, b):
        x, is_singular = _by_rows(*args, perturb_singular)
    else:
        # An infinite pivot makes its unknown 0 where no row before was made of its row.
        is_finite = functools.reduce(jnp.logical_and, [jnp.isfinite(x).all() for x in args])
        x, is_singular = lax.cond(is_finite, _by_pairs, _by_rows, *args)
    x = jnp.where(is_singular, jnp.nan, x)
    return jnp.moveaxis(x, 0, 1).reshape(rhs.shape)


def _are_pairs_faster(n, systems, b):
    most = MOST_COMPLEX if jnp.iscomplexobj(b) else MOST_SYSTEMS
    return (b.dtype.name in WIDE and systems <= MOST_SYSTEMS and b.shape[1] <= most and
            n * min(systems, 2) >= LEAST_NUMBERS and n >= LEAST_ROWS * systems)


def _size(x):
    return abs(x.real) + abs(x.imag) if jnp.iscomplexobj(x) else abs(x)


# ---- row by row ----

def _by_rows(low, diagonal, up, b, perturb_singular=False):
    """An exchange of two rows leaves a second diagonal above."""
    def eliminate(row, following):
        d, u, y = row
        next_l, next_d, next_u, next_y = following
        is_kept = _size(d) >= _size(next_l)
        pivot, other = jnp.where(is_kept, d, next_l), jnp.where(is_kept, next_l, d)
        factor = other / jnp.where(pivot == 0, 1, pivot)

        def split(above, below):
            first, second = jnp.where(is_kept, above, below), jnp.where(is_kept, below, above)
            return first, second - factor * first
        done_u, new_d = split(u, next_d)
        done_u2, new_u = split(jnp.zeros_like(u), next_u)
        done_y, new_y = split(y, next_y)
        return (new_d, new_u, new_y), (pivot, done_u, done_u2, done_y)

    def substitute(known, row):
        after, later = known
        d, u, u2, y = row
        x = (y - u * after - u2 * later) / d
        return (x, after), x

    last, rows = lax.scan(eliminate, (diagonal[0], up[0], b[0]),
                          (low[1:], diagonal[1:], up[1:], b[1:]), unroll=16)
    if perturb_singular:
        largest = jnp.maximum(_size(last[0]), jnp.max(jnp.maximum(_size(rows[0]), jnp.maximum(
            _size(rows[1]), _size(rows[2]))), axis=0, initial=0))
        kind = jnp.finfo(b.dtype)
        least = jnp.maximum(kind.eps * largest, kind.tiny)

        def enough(pivot):
            least_of_sign = jnp.where(pivot.real < 0, -least, least)
            return jnp.where(_size(pivot) < least, least_of_sign, pivot).astype(b.dtype)
        last, rows = (enough(last[0]), *last[1:]), (enough(rows[0]), *rows[1:])
    x_last = last[2] / last[0]
    _, x = lax.scan(substitute, (x_last, jnp.zeros_like(x_last)), rows, reverse=True, unroll=16)
    return jnp.concatenate([x, x_last[None]]), jnp.any(rows[0] == 0, axis=0) | (last[0] == 0)


# ---- in pairs ----

# A part of the matrix has two rows left: of its first and last unknown, and of those beside it,
# the last of the part before and the first of the part behind. Of two parts side by side the four
# rows are the only ones with what lies between them, the left part's last unknown and the right
# one's first: these go, by two of the rows, and what is left is a part again. So it is Gauss's
# elimination with another order of columns, and factors of 1 at most.

def _eliminate(x, y):
    """Rows with a pivot first, and as many numbers: the row whose pivot is larger, and what the
    other is without it but for the pivot. None is 0."""
    is_first = _size(x[0]) >= _size(y[0])

    def pick(a, b):
        if a is None and b is None:
            return None
        a, b = (jnp.zeros((), x[0].dtype) if z is None else z for z in (a, b))
        return jnp.where(is_first, a, b)
    above = [pick(*both) for both in zip(x, y)]
    below = [pick(*both) for both in zip(y, x)]
    factor = below[0] / jnp.where(above[0] == 0, 1, above[0])
    rest = [b if a is None else b - factor * a for a, b in zip(above[1:], below[1:])]
    return above, rest


def _join(left, right):
    """What is left of two parts, and the rows by which the unknowns between them went."""
    def turn(part, between, outside):
        """The part's rows with what lies between first, of which one has nothing of that one."""
        rows = [[row[i] for i in between + outside] for row in part]
        return _eliminate(*rows)
    none = [None, None]
    a, a_rest = turn(left, [2, 3], [0, 1, 4])
    b, b_rest = turn(right, [0, 1], [2, 3, 4])
    first, rest = _eliminate(a[:4] + none + a[4:], b[:2] + none + b[2:])
    second, one = _eliminate(a_rest[:3] + none + a_rest[3:], rest)
    second, two = _eliminate(b_rest[:1] + none + b_rest[1:], second)
    return (one, two), (first, second)


def _sum(row, before, behind):
    """The right side without what is known of it."""
    *factors, y = row
    for factor, x in zip(factors, before + behind):
        y = y - factor * x
    return y


def _by_pairs(*args):
    kind = args[-1].dtype
    with jax.enable_x64(True):      # whatever types the user's own may have
        x, is_singular = _by_wide_pairs(*(x.astype(WIDE[kind.name]) for x in args))
        return x.astype(kind), is_singular


def _by_wide_pairs(low, diagonal, up, b):
    n = len(b)
    parts = (n + 1) // 2
    step = 2 ** max(0, math.ceil(math.log2(parts / MOST_ODD)))
    more = 2 * (-(-parts // step) * step) - n

    def extend(x, value, by):
        return jnp.concatenate([x, jnp.full((by, *x.shape[1:]), value, x.dtype)]) if by else x
    low, diagonal, up, b = (extend(x, v, more)
                            for x, v in ((low, 0), (diagonal, 1), (up, 0), (b, 0)))
    zero = jnp.zeros_like(low[::2])
    part = ([low[::2], diagonal[::2], up[::2], zero, b[::2]],
            [zero, low[1::2], diagonal[1::2], up[1::2], b[1::2]])
    done = []
    while len(part[0][0]) > 1:
        if len(part[0][0]) % 2:
            part = [[extend(x, i == at, 1) for i, x in enumerate(row)]
                    for at, row in zip((1, 2), part)]
        part, rows = _join(*([[x[i::2] for x in row] for row in part] for i in (0, 1)))
        done.append(rows)
    first, rest = _eliminate(part[0][1:3] + part[0][4:], part[1][1:3] + part[1][4:])
    last = rest[1] / rest[0]
    x = jnp.concatenate([(first[2] - first[1] * last) / first[0], last])
    is_singular = ((first[0] == 0) | (rest[0] == 0))[0]
    for first, second in reversed(done):
        m = len(first[0])
        x = x[:2 * m]
        ends = jnp.pad(x, [(1, 1), (0, 0), (0, 0)])
        before, behind = [ends[:-2:2], x[::2]], [x[1::2], ends[3::2]]
        v = _sum(second[1:], before, behind) / second[0]
        u = _sum(first[1:], [v] + before, behind) / first[0]
        x = jnp.stack([x[::2], u, v, x[1::2]], 1).reshape(4 * m, *x.shape[1:])
        is_singular |= jnp.any((first[0] == 0) | (second[0] == 0), axis=0)
    return x[:n], is_singular
