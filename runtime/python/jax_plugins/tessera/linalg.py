# SPDX-License-Identifier: Apache-2.0
"""What JAX leaves to LAPACK on the CPU, as programs of the device: Hessenberg and tridiagonal
forms, QR with pivots, Schur forms and eigenvalues of any square matrix.

Reflectors and their factors are as LAPACK gives them. Schur forms come by the QR algorithm on the
Hessenberg form: with two shifts at a time for real matrices, with one for complex ones. What does
not converge, and what is not finite, is NaN. For eigenvalues a matrix is balanced before.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

TURNS = 30      # for each row, as LAPACK's limit
PATIENCE = 20   # turns for a row, before rounding of the largest entries counts as none


def _dot(a, b):
    return jnp.dot(a, b, precision=lax.Precision.HIGHEST)


def _times(n, turn, state):
    return lax.fori_loop(0, n, turn, state) if n > 0 else state


def _size(x):
    return abs(x.real) + abs(x.imag) if jnp.iscomplexobj(x) else abs(x)


def _scale_of(*xs):
    """By which to divide them, so that their squares neither vanish nor overflow."""
    largest = functools.reduce(jnp.maximum, [_size(x) for x in xs])
    return jnp.where(largest < jnp.finfo(largest.dtype).tiny, 1.0, largest)


def _batched(f, ranks):
    """f takes arrays of these ranks; more dims before them are a batch."""
    @functools.wraps(f)
    def over(*args, **kwargs):
        batch = args[0].shape[:args[0].ndim - ranks[0]]
        if not batch:
            return f(*args, **kwargs)
        flat = [x.reshape(-1, *x.shape[x.ndim - r:]) for x, r in zip(args, ranks)]
        found = jax.vmap(functools.partial(f, **kwargs))(*flat)
        return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), found)
    return over


def _reflector(x, k):
    """v, tau, beta: (1 - tau v v^H)^H x is beta at k and 0 after it; v is 1 at k. What stands
    before k is not looked at."""
    at = jnp.arange(len(x))
    x = jnp.where(at < k, 0, x)
    scale = _scale_of(_size(x).max())
    y = x / scale
    alpha = y[k]
    tail = jnp.where(at > k, y, 0)
    rest = (tail * tail.conj()).real.sum()
    length = jnp.sqrt((alpha * alpha.conj()).real + rest)
    is_done = (rest == 0) & (alpha.imag == 0)
    beta = jnp.where(is_done, alpha.real, jnp.where(alpha.real < 0, length, -length))
    tau = jnp.where(is_done, 0, (beta - alpha) / jnp.where(is_done, 1, beta))
    v = jnp.where(at == k, 1, tail / jnp.where(is_done, 1, alpha - beta))
    return v.astype(x.dtype), tau.astype(x.dtype), (beta * scale).astype(x.dtype)


def _from_left(a, v, tau):
    """(1 - tau v v^H)^H a"""
    return a - jnp.conj(tau) * jnp.outer(v, _dot(v.conj(), a))


def _from_right(a, v, tau):
    """a (1 - tau v v^H)"""
    return a - tau * jnp.outer(_dot(a, v), v.conj())


def _keep(column, k, v, beta):
    """The column after its reflector: beta at k, below it what of v is not 1."""
    at = jnp.arange(len(column))
    return jnp.where(at < k, column, jnp.where(at == k, beta, v))


@functools.partial(_batched, ranks=[2])
def hessenberg(a):
    n = a.shape[-1]

    def turn(k, state):
        a, taus = state
        v, tau, beta = _reflector(a[:, k], k + 1)
        rest = _from_right(_from_left(a, v, tau), v, tau)
        a = jnp.where(jnp.arange(n) > k, rest, a)
        return a.at[:, k].set(_keep(a[:, k], k + 1, v, beta)), taus.at[k].set(tau)
    return _times(n - 1, turn, (a, jnp.zeros(max(n - 1, 0), a.dtype)))


def tridiagonal(a, *, lower):
    """The triangle that is not asked for stays as it is."""
    *batch, n, _ = a.shape
    turned = a if lower else a[..., ::-1, ::-1]
    d = jnp.diagonal(turned, 0, -2, -1).real
    at = jnp.arange(n)
    found, e, taus = turned, d[..., 1:], turned[..., 0, 1:]
    if n > 1:
        full = jnp.tril(turned, -1)
        full = full + full.conj().mT
        full = full.at[..., at, at].set(d.astype(a.dtype))
        found, taus = jax.ffi.ffi_call("tessera.tridiagonal", [
            jax.ShapeDtypeStruct(a.shape, a.dtype),
            jax.ShapeDtypeStruct((*batch, n - 1), a.dtype)])(full)
        d, e = (jnp.diagonal(found, k, -2, -1).real for k in (0, -1))
        found = jnp.where(jnp.tri(n, dtype=bool), found, turned)
    found = found.at[..., at, at].set(d.astype(a.dtype))
    if lower:
        return found, d, e, taus
    return found[..., ::-1, ::-1], d[..., ::-1], e[..., ::-1], taus[..., ::-1]


@functools.partial(_batched, ranks=[2, 1])
def geqp3(a, pivots):
    """Columns whose pivot is not 0 come first, in their order; the others by what is left of them,
    the largest first. Pivots count from 1."""
    m, n = a.shape
    n_fixed = (pivots != 0).sum()
    order = jnp.argsort(pivots == 0, stable=True)
    columns = jnp.arange(n)

    def turn(k, state):
        a, order, taus = state
        # Of columns that are done, below the diagonal, reflectors are as large as 1.
        left = jnp.where((jnp.arange(m)[:, None] >= k) & (columns >= k), abs(a), 0)
        scale = left.max()
        left = ((left / jnp.where(scale > 0, scale, 1)) ** 2).sum(0)
        p = jnp.where(k < n_fixed, k, jnp.argmax(jnp.where(columns >= k, left, -1)))
        swap = jnp.where(columns == k, p, jnp.where(columns == p, k, columns))
        a, order = a[:, swap], order[swap]
        v, tau, beta = _reflector(a[:, k], k)
        a = jnp.where(columns > k, _from_left(a, v, tau), a)
        return a.at[:, k].set(_keep(a[:, k], k, v, beta)), order, taus.at[k].set(tau)
    a, order, taus = _times(min(m, n), turn,
                            (a[:, order], order, jnp.zeros(min(m, n), a.dtype)))
    return a, (order + 1).astype(pivots.dtype), taus


# ---- Schur forms ----

# Z^H stands beside T, in an array of as many rows: what turns rows of T turns those of Z^H, which
# are runs of memory, and columns are T's alone. Rows and columns are taken one by one, as
# elementwise work on them is one instruction.

def _part(w, at, shape):
    """As it is in bounds: JAX would ask whether it counts from the end."""
    return lax.dynamic_slice(w, at, shape, allow_negative_indices=False)


def _put(w, part, at):
    return lax.dynamic_update_slice(w, part, at, allow_negative_indices=False)


def _of_rows(w, k, n, f):
    """f of the n rows from k on instead of them."""
    return _put(w, jnp.stack(f(*_part(w, (k, 0), (n, w.shape[1])))), (k, 0))


def _of_columns(w, k, n, f):
    return _put(w, jnp.stack(f(*_part(w, (0, k), (len(w), n)).T), 1), (0, k))


def _rotate(w, k, c, s):
    """U T U^H, U Z^H, where U = [[c^H, s^H], [-s, c]] in the rows and columns from k on."""
    cc, ss = jnp.conj(c), jnp.conj(s)
    w = _of_rows(w, k, 2, lambda x, y: (cc * x + ss * y, c * y - s * x))
    return _of_columns(w, k, 2, lambda x, y: (c * x + s * y, cc * y - ss * x))


def _diagonals(w, n):
    """Of the first n rows: the diagonal and what is below and above it. In a run of all entries
    these are as far apart as a row and one are long; jnp.diagonal() gathers."""
    wide = w.shape[1]
    run = w.reshape(-1)
    return [lax.slice(run, (at,), (at + (k - 1) * (wide + 1) + 1,), (wide + 1,))
            for at, k in ((0, n), (wide, n - 1), (1, n - 1))]


def _small(d, below, above, least, enough):
    """Which entries below the diagonal are to be taken for 0, of a matrix of entries about 1: those
    that are small beside the diagonal, and change it by no more than rounding does, whatever is
    above it (Ahues and Tisseur, 1997); and those up to `enough`: beside a diagonal of zeros, of two
    pairs of eigenvalues that are the same, rounding leaves entries that are not small."""
    eps = jnp.finfo(d.dtype).eps
    below, above, before, last = (_size(x) for x in (below, above, d[:-1], d[1:]))
    apart = _size(d[1:] - d[:-1])
    # No product of two small numbers: it would be none. Over a scale of 0 this is NaN, where
    # what is below is 0.
    scale = jnp.maximum(last, apart) + jnp.maximum(below, above)
    changes = below * (above / scale) - eps * last * (apart / scale)
    is_small = (below <= eps * (last + before)) & (changes <= least)
    return is_small | (below <= enough)


def _iterate(w, n, sweep, finish, block):
    """The QR algorithm: `sweep` makes a turn on rows lo to hi, `finish` ends a block of two rows
    that stands alone, if `block`, the most rows of one that does, is 2."""
    at = jnp.arange(n - 1)
    kind = jnp.finfo(w.dtype)
    least = kind.tiny * (n / kind.eps)
    unit = jnp.maximum(kind.eps * _size(w[:n, :n]).max(), least)
    row, column = (lax.broadcasted_iota(jnp.int32, w.shape, i) for i in (0, 1))

    def go_on(state):
        _, hi, turns, _ = state
        return (hi > 0) & (turns < TURNS * max(10, n))

    def turn(state):
        w, hi, turns, since = state
        enough = jnp.where(since < PATIENCE, least, unit)
        is_zero = _small(*_diagonals(w, n), least, enough)
        lo = jnp.where(is_zero & (at < hi), at + 1, 0).max()
        is_zero = jnp.pad(is_zero, (1, len(w) - n))[:, None] & (row == column + 1)
        w = jnp.where(is_zero | (row > column + 1) & (row < n), 0.0, w)
        ends, is_pair = hi - lo < block, hi - lo == 1
        # In a batch both are done: no turns of its loop where a block ends.
        end = jnp.where(ends, lo, hi)
        if block > 1:
            w = lax.cond(is_pair, finish, lambda w, lo: sweep(w, lo, end, since), w, lo)
        else:
            w = sweep(w, lo, end, since)
        return w, jnp.where(ends, lo - 1, hi), turns + 1, jnp.where(ends, 0, since + 1)
    w, hi, *_ = lax.while_loop(go_on, turn, (w, n - 1, 0, 0))
    return w, hi <= 0


def _rotation(x, y):
    """c, s of a U that takes (x, y) to (r, 0)."""
    scale = _scale_of(x, y)
    x, y = x / scale, y / scale
    r = jnp.sqrt((x * jnp.conj(x) + y * jnp.conj(y)).real)
    r_or_1 = jnp.where(r == 0, 1.0, r)
    return jnp.where(r == 0, 1.0, x / r_or_1), y / r_or_1


def _complex_sweep(w, lo, hi, since):
    (a, b), (c, d) = _part(w, (hi - 1, hi - 1), (2, 2))
    scale = _scale_of(a - d, b, c)
    half, b, low = (a - d) / 2 / scale, b / scale, c / scale
    root = jnp.sqrt(half * half + b * low)
    root = jnp.where((half * jnp.conj(root)).real < 0, -root, root)
    far = half + root
    shift = d - scale * b * low / jnp.where(far == 0, 1.0, far)
    shift = jnp.where(since % 10 == 9, d + _size(c), shift)

    x, y = _part(w, (lo, lo), (2, 1))[:, 0]
    first = x - shift, y

    def turn(k, w):
        # Of a turn that is not the first, the column before it.
        x = _part(w, (k, k - 1), (2, 1))[:, 0]
        return _rotate(w, k, *_rotation(*(jnp.where(k == lo, *both) for both in zip(first, x))))
    return lax.fori_loop(lo, hi, turn, w)


def _real_sweep(w, lo, hi, since):
    """Francis's: two shifts, by reflectors of three rows. The one behind the last two is another
    block's, or padding, with zeros before its diagonal: it stays as it is."""
    (_, a, b), (before, c, d) = _part(w, (hi - 1, hi - 2), (2, 3))
    (p, r), (q, s), (_, u) = _part(w, (lo, lo), (3, 2))
    # Of two real eigenvalues of the last rows the one nearer to d counts twice.
    scale = _scale_of(a, b, c, d)
    half, b, low = (a - d) / 2 / scale, b / scale, c / scale
    apart = half * half + b * low
    root = jnp.sqrt(abs(apart))
    far = half + jnp.where(half < 0, -root, root)
    by = scale * jnp.where(apart > 0, -b * low / jnp.where(far == 0, 1.0, far), half)
    beside = jnp.where(apart < 0, scale * root, 0.0)
    around = abs(c) + abs(before)
    is_odd = since % 10 == 9
    shift = d + jnp.where(is_odd, 0.75 * around, by)
    beside = jnp.where(is_odd, 0.4375 ** 0.5 * around, beside)
    # The first column is of what is left without them: little, where all are nearly the same, and
    # products of two would be none.
    p, s = p - shift, s - shift
    scale = _scale_of(p, beside, q)
    part = q / scale
    first = p * (p / scale) + beside * (beside / scale) + r * part, part * (p + s), part * u

    def turn(k, w):
        # Of a turn that is not the first, the column before it.
        x = _part(w, (k, k - 1), (3, 1))[:, 0]
        tau, y, z = _reflector_of_three(*(jnp.where(k == lo, *both) for both in zip(first, x)))

        def apply(a, b, c):
            by = tau * (a + y * b + z * c)
            return a - by, b - y * by, c - z * by
        return _of_columns(_of_rows(w, k, 3, apply), k, 3, apply)
    return lax.fori_loop(lo, hi, turn, w)


def _reflector_of_three(x, y, z):
    """tau, and v but for its first 1, as _reflector() has them."""
    scale = _scale_of(x, y, z)
    x, y, z = x / scale, y / scale, z / scale
    rest = y * y + z * z
    length = jnp.sqrt(x * x + rest)
    beta = jnp.where(x < 0, length, -length)
    # Not the square of the rest, which may be too small a number: a sweep that loses what it moves
    # along changes nothing.
    is_done = (y == 0) & (z == 0) | (length == 0)
    far = jnp.where(is_done, 1.0, x - beta)
    tau = jnp.where(is_done, 0.0, (beta - x) / jnp.where(is_done, 1.0, beta))
    return tau, y / far, z / far


def _standard(a, b, c, d):
    """LAPACK's lanv2: c, s of a rotation that makes [[a, b], [c, d]] a triangle, or a pair of
    complex eigenvalues with a = d; and what it makes."""
    eps = jnp.finfo(a.dtype).eps
    sign = lambda x: jnp.where(x < 0, -1.0, 1.0).astype(a.dtype)  # noqa: E731
    some = lambda x: jnp.where(x == 0, 1.0, x)  # noqa: E731
    p = (a - d) / 2
    most = jnp.maximum(abs(b), abs(c))
    least = jnp.minimum(abs(b), abs(c)) * sign(b) * sign(c)
    scale = some(jnp.maximum(abs(p), most))
    disc = p / scale * p + most / scale * least
    # Two real eigenvalues.
    far = p + sign(p) * jnp.sqrt(scale) * jnp.sqrt(jnp.maximum(disc, 0))
    length = some(jnp.hypot(c, far))
    real = (far / length, c / length, d + far, b - c, 0 * c, d - most / some(far) * least)
    # A pair, or two that are nearly one: first the same value twice on the diagonal.
    length = some(jnp.hypot(b + c, a - d))
    cs = jnp.sqrt((1 + abs(b + c) / length) / 2)
    sn = -p / (length * cs) * sign(b + c)
    aa, bb, cc, dd = a * cs + b * sn, b * cs - a * sn, c * cs + d * sn, d * cs - c * sn
    b2, c2 = bb * cs + dd * sn, cc * cs - aa * sn
    mean = (aa * cs + cc * sn + dd * cs - bb * sn) / 2
    pair = (cs, sn, mean, b2, c2, mean)
    # They are real after all.
    root = jnp.sqrt(abs(b2)) * jnp.sqrt(abs(c2)) * sign(c2)
    over = 1 / jnp.sqrt(some(abs(b2 + c2)))
    cs1, sn1 = jnp.sqrt(abs(b2)) * over, jnp.sqrt(abs(c2)) * over
    split = (cs * cs1 - sn * sn1, cs * sn1 + sn * cs1, mean + root, b2 - c2, 0 * c, mean - root)
    turned = (-sn, cs, mean, -c2, 0 * c, mean)
    one, zero = jnp.ones_like(a), jnp.zeros_like(a)
    cases = [
        (c == 0, (one, zero, a, b, c, d)),
        (b == 0, (zero, one, d, -c, zero, a)),
        # Apart by so little that it cannot be divided by.
        ((abs(a - d) < jnp.finfo(a.dtype).tiny * 4) & (sign(b) != sign(c)),
         (one, zero, a, b, c, a)),
        (disc >= 4 * eps, real),
        (c2 == 0, pair),
        (b2 == 0, turned),
        (sign(b2) == sign(c2), split),
    ]
    found = pair
    for is_case, values in reversed(cases):     # jnp.select() counts cases
        found = [jnp.where(is_case, x, y) for x, y in zip(values, found)]
    return found


def _real_finish(w, k):
    (a, b), (c, d) = _part(w, (k, k), (2, 2))
    cs, sn, *new = _standard(a, b, c, d)
    return _put(_rotate(w, k, cs, sn), jnp.stack(new).reshape(2, 2), (k, k))


@functools.partial(_batched, ranks=[2])
def schur(a, vectors=True):
    """T and Z; without `vectors` T alone."""
    n = a.shape[-1]
    if n < 2:
        return [a, jnp.ones_like(a)][:1 + vectors]
    is_finite = jnp.isfinite(a).all()
    a = jnp.where(is_finite, a, 0)
    # Entries of about 1, by a power of two.
    _, exponent = jnp.frexp(_size(a).max())
    half = exponent // 2    # its power alone may be none
    up = [jnp.ldexp(jnp.ones((), a.real.dtype), e) for e in (half, exponent - half)]
    down = [jnp.ldexp(jnp.ones((), a.real.dtype), -e) for e in (half, exponent - half)]
    h, taus = hessenberg(a * down[0] * down[1])

    def turn(k, q):
        k = n - 2 - k
        v = jnp.where(jnp.arange(n) > k + 1, h[:, k], jnp.where(jnp.arange(n) == k + 1, 1, 0))
        return q - taus[k] * jnp.outer(v, _dot(v.conj(), q))
    is_real = not jnp.iscomplexobj(a)
    w = jnp.pad(jnp.triu(h, -1), [(0, is_real)] * 2)    # a sweep takes three rows
    if vectors:
        q = _times(n - 1, turn, jnp.eye(n, dtype=a.dtype))
        w = jnp.concatenate([w, jnp.pad(q.conj().T, [(0, is_real), (0, 0)])], 1)
    if is_real:
        w, is_done = _iterate(w, n, _real_sweep, _real_finish, 2)
    else:
        w, is_done = _iterate(w, n, _complex_sweep, None, 1)
    is_right = is_finite & is_done
    t = jnp.triu(w[:n, :n], -1 if is_real else 0) * up[0] * up[1]
    z = w[:n, n + is_real:].conj().T
    return [jnp.where(is_right, x, jnp.nan) for x in (t, z)[:1 + vectors]]


# ---- eigenvalues ----

def _isolate(a):
    """An order of rows and columns in which what can be a triangle is one: the rows that have one
    entry beside the others go last, then columns of that kind first. And which ones are left."""
    n = len(a)
    is_entry = (a != 0) & ~jnp.eye(n, dtype=bool)

    def alone(is_entry, is_left):
        return is_left & ~(is_entry & is_left).any(1)

    def take(is_entry, step, state):
        def turn(state):
            is_left, place, at = state
            i = jnp.argmax(alone(is_entry, is_left))
            return is_left.at[i].set(False), place.at[i].set(at), at + step
        return lax.while_loop(lambda state: alone(is_entry, state[0]).any(), turn, state)
    is_left, place, _ = take(is_entry, -1, (jnp.ones(n, bool), jnp.zeros(n, jnp.int32), n - 1))
    is_left, place, first = take(is_entry.T, 1, (is_left, place, 0))
    place = jnp.where(is_left, first + jnp.cumsum(is_left, dtype=jnp.int32) - 1, place)
    order = jnp.argsort(place)
    return order, is_left[order]


def _length(x):
    scale = _scale_of(x.max())
    return scale * jnp.sqrt(((x / scale) ** 2).sum())


def _balance(a):
    """As LAPACK's gebal: S^-1 P^T A P S, where S is of powers of two and rows and columns of what
    is no triangle yet are about as long; the order that P is, and S."""
    n = len(a)
    order, is_left = _isolate(a)
    most = jnp.finfo(a.dtype).maxexp - 28
    at = jnp.arange(n)

    def even(i, state):
        b, exponents, changed = state
        is_i = at == i
        c, r = (_length(jnp.where(is_left, _size(x.reshape(n)), 0.0))
                for x in (_part(b, (0, i), (n, 1)), _part(b, (i, 0), (1, n))))
        is_any = (is_i & is_left).any() & (c > 0) & (r > 0)
        m, k = jnp.frexp(jnp.sqrt(r) / jnp.sqrt(jnp.where(c > 0, c, 1.0)))
        k = jnp.where(m < 0.5 ** 0.5, k - 1, k)
        by, back = (jnp.ldexp(jnp.ones((), c.dtype), e) for e in (k, -k))
        is_worth = is_any & (c * by + r * back < 0.95 * (c + r))
        to = exponents + k
        is_worth &= (is_i & (abs(to) <= most)).any()
        by, back = (jnp.where(is_worth & is_i, x, 1.0) for x in (by, back))
        return b * by * back[:, None], jnp.where(is_worth & is_i, to, exponents), \
            changed | is_worth

    def sweep(state):
        b, exponents, _, turns = state
        return *lax.fori_loop(0, n, even, (b, exponents, False)), turns + 1
    b, exponents, *_ = lax.while_loop(lambda state: state[2] & (state[3] < TURNS), sweep, (
        a[order][:, order], jnp.zeros(n, jnp.int32), n > 1, 0))
    return b, order, jnp.ldexp(jnp.ones(n, a.real.dtype), exponents)


def _values(t):
    """Of a real Schur form; of a pair the one above the axis comes first."""
    d, below, above = jnp.diagonal(t), jnp.diagonal(t, -1), jnp.diagonal(t, 1)
    w = jnp.sqrt(abs(below)) * jnp.sqrt(abs(above)) * (below != 0)
    return lax.complex(d, jnp.pad(w, (0, 1)) - jnp.pad(w, (1, 0)))


def _split_pairs(t, z):
    """A real Schur form as a complex one: eigenvalues, T, Z."""
    n = len(t)
    below, values = jnp.diagonal(t, -1), _values(t)

    def turn(k, w):
        k = n - 2 - k
        is_zero = _part(below, (k,), (1,))[0] == 0
        y, x = _part(w, (k + 1, k), (1, 2))[0]
        x = jnp.where(is_zero, 1.0, _part(values, (k,), (1,))[0] - x)
        return _rotate(w, k, *_rotation(x, jnp.where(is_zero, 0.0, y)))
    w = _times(n - 1, turn, jnp.concatenate([t, z.T], 1).astype(values.dtype))
    return values, jnp.triu(w[:, :n]), w[:, n:].conj().T


def _vectors(t, values):
    """Columns x with T x = x value, of a triangle T."""
    n = len(t)
    to = jnp.arange(n)
    kind = jnp.finfo(t.dtype)
    # Beside each value, not the largest: rows that balancing scaled by much show what small ones
    # lack. And as much as keeps quotients finite.
    least = jnp.maximum(kind.tiny * (n / kind.eps) * _size(t).max(), kind.tiny)
    least = jnp.maximum(kind.eps * _size(values), least)

    def turn(i, x):
        i = n - 2 - i
        apart = _part(t, (i, i), (1, 1))[0] - values
        apart = jnp.where(_size(apart) < least, least, apart)
        row = -_dot(jnp.where(to > i, _part(t, (i, 0), (1, n))[0], 0.0), x) / apart
        row = jnp.where(to > i, row, (to == i).astype(t.dtype))
        # What grows without end, of a matrix without enough vectors, stays finite. Other entries
        # are of 1 at most.
        x = jnp.where((to == i)[:, None], row, x)
        most = jnp.maximum(abs(row), 1.0)
        return lax.complex(x.real / most, x.imag / most)
    return _times(n - 1, turn, jnp.eye(n, dtype=t.dtype))


def _normalized(v, values, is_real):
    """Columns of length 1 whose largest entry is real; of a real matrix, real ones and pairs."""
    v = v / jnp.maximum(abs(v).max(0), jnp.finfo(v.dtype).tiny)
    largest = jnp.take_along_axis(v, abs(v).argmax(0)[None], 0)
    v = v * (largest.conj() / abs(largest))
    if is_real:
        v = jnp.where(values.imag == 0, v.real.astype(v.dtype), v)
    v = v / jnp.sqrt((v * v.conj()).real.sum(0))
    if is_real:
        v = jnp.where(values.imag < 0, jnp.roll(v, 1, 1).conj(), v)
    return v


@functools.partial(_batched, ranks=[2])
def eig(a, *, left, right):
    """Eigenvalues, and of which are asked for: left and right eigenvectors."""
    is_real = not jnp.iscomplexobj(a)
    a, order, scale = _balance(a)
    back = jnp.argsort(order)
    if not left and not right:
        t, = schur(a, vectors=False)
        return [_values(t) if is_real else jnp.diagonal(t)]
    t, z = schur(a)
    values, t, z = _split_pairs(t, z) if is_real else (jnp.diagonal(t), t, z)
    found = [values]
    if left:
        # T^H turned about is a triangle above again.
        y = _vectors(t.conj().T[::-1, ::-1], values.conj()[::-1])[::-1, ::-1]
        y = _dot(z, y) / scale[:, None]
        found.append(_normalized(y[back], values, is_real))
    if right:
        x = _dot(z, _vectors(t, values)) * scale[:, None]
        found.append(_normalized(x[back], values, is_real))
    return found
