# SPDX-License-Identifier: Apache-2.0
"""Factorisations are as accurate as LAPACK's: each error is measured on the device's result and
on that of JAX's CPU backend, and may be 4 times the latter's, or of a random matrix of the
same size, or a unit in the last place for a value and for a row of the norms of a matrix."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
TIMES = 4


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


def adjoint(x):
    return np.swapaxes(np.conj(x), -1, -2)


def is_complex(dtype):
    return np.issubdtype(dtype, np.complexfloating)


def random(rng, *shape, dtype):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if is_complex(dtype) else x


def with_values(rng, n, dtype, hermitian, values):
    left = np.linalg.qr(random(rng, n, n, dtype=dtype))[0]
    right = left if hermitian else np.linalg.qr(random(rng, n, n, dtype=dtype))[0]
    return (left * values) @ adjoint(right)


def matrices(n, dtype, hermitian):
    """Names and matrices [n, n] of every kind; the first is random."""
    rng = np.random.default_rng(n)
    i = np.arange(n)
    make = functools.partial(with_values, rng, n, dtype, hermitian)
    scale = np.logspace(0, -10, n)
    kinds = {
        "random": random(rng, n, n, dtype=dtype),
        "graded values": make(np.logspace(0, -12, n)),
        "two clusters": make(np.where(i < n // 2, 1.0, 1.0 + 1e-6)),
        "values of 1 and -1": make(np.where(i < n // 2, 1.0, -1.0)),
        "deficient": make(np.where(i < n // 3 + 1, np.linspace(1, 2, n), 0)),
        "graded rows": random(rng, n, n, dtype=dtype) * scale[:, None] * scale,
        "identity": np.eye(n), "zero": np.zeros((n, n)), "ones": np.ones((n, n)),
        "Hilbert": 1 / (i[:, None] + i + 1.0),
        "integers": np.floor(3 * rng.standard_normal((n, n))),
    }
    found = np.stack(list(kinds.values())).astype(dtype)
    if hermitian:
        found = ((found + adjoint(found)) / 2).astype(dtype)
    return list(kinds), found


def widen(*arrays):
    return [np.asarray(x, np.complex128) for x in arrays]


def off_unitary(x):
    return np.linalg.norm(adjoint(x) @ x - np.eye(x.shape[-1]), axis=(-2, -1))


def eigh_errors(a, norm, w, v):
    a, v = widen(a, v)
    want = np.linalg.eigvalsh(a)
    left = np.linalg.norm(a @ v - v * w[:, None, :], axis=(-2, -1))
    return {"values": np.abs(w - want).max(-1) / norm, "orthogonality": off_unitary(v),
            "residual": left / norm}


def svd_errors(a, norm, u, s, vh):
    a, u, vh = widen(a, u, vh)
    k = s.shape[-1]
    left = np.linalg.norm((u[..., :k] * s[:, None, :]) @ vh[..., :k, :] - a, axis=(-2, -1))
    assert np.all(np.diff(s) <= 0), "singular values descend"
    return {**values_errors(a, norm, s), "left": off_unitary(u),
            "right": off_unitary(adjoint(vh)), "residual": left / norm}


def values_errors(a, norm, s):
    want = np.linalg.svd(np.asarray(a, np.complex128), compute_uv=False)
    return {"values": np.abs(s - want).max(-1) / norm}


def qr_errors(a, norm, q, r):
    a, q, r = widen(a, q, r)
    assert np.all(np.tril(r, -1) == 0), "R is a triangle"
    return {"orthogonality": off_unitary(q),
            "residual": np.linalg.norm(q @ r - a, axis=(-2, -1)) / norm}


def schur_errors(a, norm, t, z):
    below = np.tril(t, -1 if np.iscomplexobj(t) else -2)
    assert np.all(below == 0), "T is a triangle, but for pairs"
    if not np.iscomplexobj(t):
        low, high = np.diagonal(t, -1, 1, 2), np.diagonal(t, 1, 1, 2)
        d = np.diagonal(t, 0, 1, 2)
        is_pair = low != 0
        assert not np.any(is_pair[:, 1:] & is_pair[:, :-1]), "pairs stand apart"
        is_standard = (np.sign(low) != np.sign(high)) & (d[:, 1:] == d[:, :-1])
        assert np.all(~is_pair | is_standard), "as LAPACK's"
    a, t, z = widen(a, t, z)
    return {"orthogonality": off_unitary(z),
            "residual": np.linalg.norm(z @ t @ adjoint(z) - a, axis=(-2, -1)) / norm}


def hessenberg_errors(a, norm, h, q):
    assert np.all(np.tril(h, -2) == 0), "H is a triangle and a diagonal"
    a, h, q = widen(a, h, q)
    return {"orthogonality": off_unitary(q),
            "residual": np.linalg.norm(q @ h @ adjoint(q) - a, axis=(-2, -1)) / norm}


def eig_errors(a, norm, w, left, right):
    if not np.iscomplexobj(a):      # real values have real vectors, pairs have pairs
        is_real = (w.imag == 0)[:, None, :]
        assert not np.any(is_real & ((left.imag != 0) | (right.imag != 0)))
        at, k = np.nonzero(w.imag > 0)
        assert np.all(w[at, k + 1] == w[at, k].conj())
        assert np.all(right[at, :, k + 1] == right[at, :, k].conj())
    a, w, left, right = widen(a, w, left, right)
    by_left = adjoint(left) @ a - w[:, :, None] * adjoint(left)
    return {"left": np.linalg.norm(by_left, axis=(-2, -1)) / norm,
            "right": np.linalg.norm(a @ right - right * w[:, None], axis=(-2, -1)) / norm,
            "lengths": np.abs(np.linalg.norm(np.stack([left, right]), axis=2) - 1).max((0, 2))}


def tridiagonal_errors(a, norm, found, d, e, taus, q):
    t = found * 0
    i = np.arange(a.shape[-1])
    t[:, i, i], t[:, i[1:], i[:-1]], t[:, i[:-1], i[1:]] = d, e, e
    a, t, q = widen(a, t, q)
    return {"orthogonality": off_unitary(q),
            "residual": np.linalg.norm(q @ t @ adjoint(q) - a, axis=(-2, -1)) / norm}


def tridiagonal(a):
    found, d, e, taus = jax.lax.linalg.tridiagonal(a)
    q = jax.lax.linalg.householder_product(found[:, 1:, :-1], taus)
    return found, d, e, taus, jax.vmap(lambda q: jax.scipy.linalg.block_diag(
        jnp.ones((1, 1), q.dtype), q))(q)


def pivoted_errors(a, norm, q, r, p):
    d = np.abs(np.diagonal(r, 0, 1, 2))
    eps = np.finfo(a.dtype).eps
    assert np.all(d[:, 1:] <= d[:, :-1] * (1 + 8 * eps) + 8 * eps * norm[:, None]), "they descend"
    assert np.all(np.sort(p) == np.arange(p.shape[-1]))
    return qr_errors(np.take_along_axis(a, p[:, None], 2), norm, q, r)


METHODS = {
    "schur": (jax.lax.linalg.schur, schur_errors),
    "schur one by one": (functools.partial(jax.lax.map, jax.lax.linalg.schur), schur_errors),
    "hessenberg": (functools.partial(jax.scipy.linalg.hessenberg, calc_q=True),
                   hessenberg_errors),
    "eig": (functools.partial(jax.lax.linalg.eig, compute_left_eigenvectors=True), eig_errors),
    "eig one by one": (functools.partial(jax.lax.map, functools.partial(
        jax.lax.linalg.eig, compute_left_eigenvectors=True)), eig_errors),
    "tridiagonal": (tridiagonal, tridiagonal_errors),
    "qr with pivots": (functools.partial(jax.lax.linalg.qr, pivoting=True,
                                         full_matrices=False), pivoted_errors),
    "eigh": (functools.partial(jnp.linalg.eigh, symmetrize_input=False), eigh_errors),
    "svd": (jnp.linalg.svd, svd_errors),
    "svd thin": (functools.partial(jnp.linalg.svd, full_matrices=False), svd_errors),
    "svd values": (lambda x: [jnp.linalg.svd(x, compute_uv=False)], values_errors),
    "qr": (jnp.linalg.qr, qr_errors),
    "qr complete": (functools.partial(jnp.linalg.qr, mode="complete"), qr_errors),
}


def run(f, device, *args):
    placed = [jax.device_put(x, device) for x in args]
    return [np.asarray(x) for x in jax.tree.leaves(jax.jit(f)(*placed))]


def check(method, names, a, device, cpu, alike=False):
    """alike: the worst of LAPACK's errors is the measure of all matrices."""
    f, errors = METHODS[method]
    eps = np.finfo(a.dtype).eps
    norm = np.linalg.norm(np.asarray(a, np.complex128), 2, axis=(-2, -1))
    norm = np.where(norm == 0, 1, norm)
    got, lapack = errors(a, norm, *run(f, device, a)), errors(a, norm, *run(f, cpu, a))
    for what, found in got.items():
        if alike:
            lapack[what][:] = lapack[what].max()
        # Of f64 the reference is LAPACK too, so that its own error seems to be zero.
        least = eps if np.finfo(a.dtype).bits == 32 else 2 * eps
        if what != "values":  # of a small matrix LAPACK's own may be small by chance
            least = eps * np.sqrt(max(min(a.shape[1:]), 8))
        bound = TIMES * np.maximum(np.maximum(lapack[what], lapack[what][0]), least)
        for i, name in enumerate(names):
            assert found[i] <= bound[i], (
                f"{method} of {name}, {a.dtype}{a.shape[1:]}: {what} {found[i] / eps:.1f} eps, "
                f"LAPACK {lapack[what][i] / eps:.1f}, bound {bound[i] / eps:.1f}")


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 9, 16, 17, 32, 65])
@pytest.mark.parametrize("method", ["eigh", "svd", "svd values", "qr"])
def test_square(method, n, dtype, device, cpu):
    names, a = matrices(n, dtype, method == "eigh")
    keep = [0, 2, 4, 7] if n > 16 and dtype != np.float32 else range(len(names))
    check(method, [names[i] for i in keep], a[list(keep)], device, cpu)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 33])
@pytest.mark.parametrize("method", ["schur", "hessenberg", "eig", "tridiagonal",
                                    "qr with pivots"])
def test_square_and_of_the_cpu_alone_in_jax(method, n, dtype, device, cpu):
    names, a = matrices(n, dtype, hermitian=method == "tridiagonal")
    check(method, names, a, device, cpu)


# In a batch all branches are taken, by one matrix only its own.
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [2, 3, 4, 17])
@pytest.mark.parametrize("method", ["schur", "eig"])
def test_one_by_one(method, n, dtype, device, cpu):
    names, a = matrices(n, dtype, False)
    check(method + " one by one", names, a, device, cpu)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_values_alone_are_those_beside_vectors(n, dtype, device):
    a = random(np.random.default_rng(n), n, n, dtype=dtype).astype(dtype)
    near = dict(rtol=0, atol=100 * n * np.finfo(dtype).eps)
    np.testing.assert_allclose(run(jnp.linalg.eigvals, device, a)[0],
                               run(jnp.linalg.eig, device, a)[0], **near)
    schur = functools.partial(jax.lax.linalg.schur, compute_schur_vectors=False)
    np.testing.assert_allclose(run(schur, device, a)[0],
                               run(jax.lax.linalg.schur, device, a)[0], **near)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("lower", [True, False])
def test_a_tridiagonal_form_reads_one_triangle(lower, dtype, device, cpu):
    a = random(np.random.default_rng(3), 9, 9, dtype=dtype).astype(dtype)
    f = functools.partial(jax.lax.linalg.tridiagonal, lower=lower)
    for got, want in zip(run(f, device, a), run(f, cpu, a)):
        np.testing.assert_allclose(got, want, rtol=0, atol=1000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(2, 7, 4), (2, 4, 7), (0, 3), (3, 0)], ids=str)
def test_pivots_of_every_shape(shape, device, cpu):
    a = np.random.default_rng(1).standard_normal(shape)
    f = functools.partial(jax.lax.linalg.qr, pivoting=True)
    for got, want in zip(run(f, device, a), run(f, cpu, a)):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


def test_columns_that_are_to_come_first(device, cpu):
    from jax._src.lax.linalg import geqp3
    a = np.random.default_rng(1).standard_normal((6, 5)) * [1, 10, 1, 20, 5]
    first = np.array([1, 0, 0, 0, 0], "int32")
    (_, pivots, _), (_, want, _) = (run(geqp3, d, a, first) for d in (device, cpu))
    np.testing.assert_array_equal(pivots, want)
    assert pivots[:2].tolist() == [1, 4]


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**110])
def test_schur_forms_of_small_and_large_numbers(scale, device):
    a = np.random.default_rng(4).standard_normal((12, 12)).astype("float32")
    (t, z), (t2, z2) = (run(jax.lax.linalg.schur, device, x)
                        for x in (a, a * np.float32(scale)))
    np.testing.assert_array_equal(t2, t * np.float32(scale))
    np.testing.assert_array_equal(z2, z)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_number_in_no_eigenvalues_out(bad, device):
    a = np.ones((3, 4, 4), "float32")
    a[1, 2, 3] = bad
    for f in (jax.lax.linalg.schur, jax.lax.linalg.eig):
        for x in run(f, device, a):
            assert np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all()


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [2, 5, 24])
def test_eigenvalues_of_a_matrix_in_bad_units(n, dtype, device, cpu):
    """S A S^-1 has the eigenvalues of A, and S has its vectors: the errors are as LAPACK's of A."""
    rng = np.random.default_rng(n)
    a = random(rng, n, n, dtype=dtype).astype(dtype)
    power = rng.integers(-30, 31, n)
    bad = (a * 2.0 ** (power[:, None] - power)).astype(dtype)
    want = np.linalg.eigvals(np.asarray(a, np.complex128))

    def error(where, matrix, power):
        w, x = run(jnp.linalg.eig, where, matrix)
        off = np.abs(w[:, None] - want).min(0).max() / np.abs(want).max()
        x = np.asarray(x, np.complex128) / 2.0 ** power[:, None]
        x /= np.linalg.norm(x, axis=0)
        left = np.linalg.norm(np.asarray(a, np.complex128) @ x - x * w, 2) / np.linalg.norm(a, 2)
        return np.array([off, left])
    least = np.finfo(dtype).eps * n
    lapack = np.maximum(error(cpu, a, 0 * power), least)
    assert np.all(error(device, bad, power) <= TIMES * lapack)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_eigenvalues_that_stand_alone_are_exact(dtype, device):
    """Of triangles in any order of rows, and what is around a block."""
    rng = np.random.default_rng(8)
    a = np.triu(random(rng, 9, 9, dtype=dtype)) * np.logspace(0, 9, 9)
    for full in (None, slice(3, 6)):
        if full:
            a[full, full] = random(rng, 3, 3, dtype=dtype)
        order = rng.permutation(9)
        mixed = a[order][:, order].astype(dtype)
        w, x = run(jnp.linalg.eig, device, mixed)
        alone = np.delete(np.diagonal(a), range(9)[full] if full else []).astype(w.dtype)
        assert set(alone) <= set(w)
        off = np.linalg.norm(mixed.astype(np.complex128) @ x - x * w, axis=0)
        assert np.all(off <= 100 * np.finfo(dtype).eps * np.linalg.norm(mixed))


def test_a_user_who_mixes_no_types_or_ranks_may_ask_for_them(device):
    a = np.stack([np.eye(4, dtype="float32") + 1] * 5)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        for f in (jax.lax.linalg.schur, jax.lax.linalg.eig, jax.lax.linalg.hessenberg,
                  jax.lax.linalg.tridiagonal, functools.partial(jax.lax.linalg.qr, pivoting=True),
                  lambda a: jax.lax.linalg.tridiagonal_solve(a[0], a[1], a[2], a[:4],
                                                             perturb_singular=True)):
            assert all(np.isfinite(x).all() for x in run(f, device, a))


def test_a_perturbed_tridiagonal_system_has_a_solution(device, cpu):
    """Singular ones among them: the direction is what matters, as in inverse iteration."""
    d, e, b = np.zeros((3, 7)), np.ones((3, 7)), np.arange(1.0, 22).reshape(3, 7, 1)
    d[1], d[2] = 1, 2
    low, up = e.copy(), e.copy()
    low[:, 0] = up[:, -1] = 0
    f = functools.partial(jax.lax.linalg.tridiagonal_solve, perturb_singular=True)
    for dtype in (np.float32, np.float64):
        [x], [y] = (run(f, where, *(v.astype(dtype) for v in (low, d, up, b)))
                    for where in (device, cpu))
        assert np.isfinite(x).all()
        x, y = (v[..., 0] / np.linalg.norm(v[..., 0], axis=1)[:, None] for v in (x, y))
        np.testing.assert_allclose(np.abs((x * y).sum(1)), 1, atol=1e-4)


def test_eigenvectors_of_a_tridiagonal_matrix(device, cpu):
    rng = np.random.default_rng(5)
    d, e = rng.standard_normal(12), rng.standard_normal(11)
    w, v = run(jax.scipy.linalg.eigh_tridiagonal, device, d, e)
    a = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-10)
    assert off_unitary(v) < 1e-8


def test_what_is_made_of_eigenvalues(device, cpu):
    """Polynomials' roots, a square root, a gradient, JAX's own rules among them."""
    rng = np.random.default_rng(2)
    a = rng.standard_normal((6, 6))
    for f in (lambda a: jnp.sort_complex(jnp.roots(a[0], strip_zeros=False)),
              lambda a: jax.scipy.linalg.sqrtm(a @ a.T),
              lambda a: jax.scipy.linalg.solve_sylvester(a, a.T @ a, a),
              jax.grad(lambda a: (jnp.abs(jnp.linalg.eigvals(a)) ** 2).sum())):
        for got, want in zip(run(f, device, a), run(f, cpu, a)):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    with pytest.raises(NotImplementedError, match="leave `implementation` out"):
        run(functools.partial(jax.lax.linalg.eig, implementation=jax.lax.linalg.
                              EigImplementation.CUSOLVER), device, a)


@pytest.mark.parametrize("dtype,n", [(np.float32, n) for n in (63, 64, 127, 128, 129, 300)] +
                         [(np.float64, 129)])
@pytest.mark.parametrize("method", ["eigh", "svd", "qr", "svd values"])
def test_square_and_large(method, dtype, n, device, cpu):
    names, a = matrices(n, dtype, method == "eigh")
    keep = [0, 2, 4, 9] if n < 128 else [0, 4]
    check(method, [names[i] for i in keep], a[keep], device, cpu)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (65, 3), (3, 65), (129, 64), (64, 129)],
                         ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("method", ["svd", "svd thin", "svd values", "qr", "qr complete"])
def test_tall_and_wide(method, shape, dtype, device, cpu):
    rng = np.random.default_rng(7)
    a = random(rng, 3, *shape, dtype=dtype)
    a[1, :, -1] = a[1, :, 0]
    a[2] = 0
    check(method, ["random", "a column twice", "zero"], a.astype(dtype), device, cpu)


# Up to 4 columns, the shorter side, are turned until they are orthogonal; of up to 8 rows at once.
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (3, 3), (3, 8), (4, 4), (8, 4), (9, 4), (4, 5),
                                   (5, 5), (8, 1)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("method", ["svd", "svd thin", "svd values"])
def test_singular_values_of_few_columns(method, shape, dtype, device, cpu):
    """Numbers of -1, 0 and 1 make equal values, zeros and every rank."""
    rng = np.random.default_rng(12)
    n = 100
    few = rng.integers(-1, 2, (n, *shape))
    graded = rng.standard_normal((n, *shape)) * 10.0 ** rng.uniform(-8, 0, (n, *shape))
    nearly = 1 + 1e-5 * rng.standard_normal((n, *shape))
    a = np.concatenate([rng.standard_normal((n, *shape)), few, graded, nearly])
    names = [kind for kind in ("random", "few", "graded", "nearly one") for _ in range(n)]
    check(method, names, a.astype(dtype), device, cpu, alike=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_number_spoils_its_own_few_columns_alone(bad, dtype, device):
    a = np.random.default_rng(2).standard_normal((20, 4, 3)).astype(dtype)
    want = run(jnp.linalg.svd, device, a)
    a[7, 1, 2] = bad
    for x, y in zip(run(jnp.linalg.svd, device, a), want):
        assert np.isnan(x[7]).all()
        np.testing.assert_array_equal(np.delete(x, 7, 0), np.delete(y, 7, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_a_column_too_short_to_be_squared(dtype, device):
    """Its left vector is orthogonal to the others all the same."""
    short = float(np.finfo(dtype).tiny) ** 0.75
    a = np.array([[1, 0, 0], [0, short, short], [0, short, -2 * short]], dtype)
    u, s, vh = run(jnp.linalg.svd, device, a)
    assert off_unitary(u[None]) < 8 * np.finfo(dtype).eps
    assert off_unitary(vh[None]) < 8 * np.finfo(dtype).eps
    assert s[0] == 1 and 0 <= s[2] <= s[1] <= 4 * short


@pytest.mark.parametrize("function", [
    lambda x: jnp.linalg.svd(x, full_matrices=False)[1].sum(), lambda x: jnp.linalg.norm(x, 2),
    lambda x: jnp.linalg.pinv(x).sum(), lambda x: jnp.linalg.svd(x, full_matrices=False)[0][0, 0]**2
], ids=["values", "norm", "pinv", "a vector"])
def test_gradients_through_few_columns(function, device, cpu):
    a = np.random.default_rng(4).standard_normal((4, 3))
    [got], [want] = (run(jax.grad(function), where, a) for where in (device, cpu))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


# FEW of runtime/compiler/lower/qr.c is 16, MOST_IN_ONE 32, BLOCK 64, MOST_WITHOUT_LOOP 128, LONG
# 2048 rows: all at once, halves, two blocks, loops, wide ones, and few columns of many rows.
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(17, 16), (17, 17), (16, 40), (33, 32), (40, 33), (65, 64),
                                   (70, 65), (33, 130), (140, 130), (600, 9), (2100, 6),
                                   (2100, 20)], ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("method", ["qr", "qr complete"])
def test_qr_of_every_shape(method, shape, dtype, device, cpu):
    if method == "qr complete" and shape[0] > 1000:
        shape = (512, shape[1])
    a = random(np.random.default_rng(9), 3, *shape, dtype=dtype)
    a[1, :, 3] = 0
    a[2, :, 5:] = a[2, :, :1]
    check(method, ["random", "a zero column", "rank 5"], a.astype(dtype), device, cpu)


SCALED = {
    "eigh": METHODS["eigh"][0], "svd": jnp.linalg.svd, "qr": jnp.linalg.qr,
    "pinv": jnp.linalg.pinv, "lu": jax.scipy.linalg.lu, "cholesky": jnp.linalg.cholesky,
    "inv": jnp.linalg.inv, "matrix_rank": jnp.linalg.matrix_rank,
    "lstsq": lambda x: jnp.linalg.lstsq(x, x[:, :1])[0],
    "solve": lambda x: jnp.linalg.solve(x, x),
}


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-66, 2.0**66, 2.0**110])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("method", SCALED)
def test_a_power_of_two_scales_the_result(method, dtype, scale, device, cpu):
    """What is right for numbers near 1 is right for those whose squares leave the range."""
    a = np.array([[2, 1, 0], [1, 2, 0.5], [0, 0.5, 1]], dtype)
    if dtype == np.complex64:
        a = a + np.array([[0, 1j, 0], [-1j, 0, 0], [0, 0, 0]], dtype) / 2
    got = run(SCALED[method], device, (a * np.float32(scale)).astype(dtype))
    near_one, want = run(SCALED[method], device, a), run(SCALED[method], cpu, a)
    for x, y, z in zip(got, near_one, want):
        assert np.all(np.isfinite(x))
        ratio = np.abs(x).max() / np.abs(y).max()
        power = 2.0 ** (np.round(2 * np.log2(ratio)) / 2)
        assert np.isclose(ratio, power, rtol=1e-5), f"{x} is no multiple of {y}"
        assert power in (1, scale, 1 / scale) or method == "cholesky"
        np.testing.assert_allclose(np.abs(x / x.dtype.type(power)), np.abs(z), atol=3e-6)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_eigenvalues_of_small_and_large_numbers(scale, device):
    a = (np.array([[2, 1], [1, 2]]) * scale).astype(np.float32)
    w, v = run(METHODS["eigh"][0], device, a)
    np.testing.assert_allclose(w, np.array([1, 3]) * scale, rtol=1e-6)
    np.testing.assert_allclose(np.abs(v), np.sqrt(0.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_values_far_below_the_largest_are_the_same(dtype, device, cpu):
    """Poles of a secular equation so near that a root between them can't be told from both, and one
    beside zero that the row which couples two halves nearly is."""
    least = 4 * float(np.finfo(dtype).tiny)
    near = np.diag([1, least, 2 * least, 3 * least, 1 / 2, 5 * least, 0, 7 * least])
    alike = np.zeros((3, 3))
    alike[:2, 1], alike[2, 2] = [np.finfo(dtype).eps ** 2, 1], 1 / 2
    for method, a in (("eigh", near), ("svd", near), ("svd", alike), ("svd", alike.T)):
        check(method, ["nearly the same"], a[None].astype(dtype), device, cpu)


@pytest.mark.parametrize("n", [2, 5, 8, 32, 40])
def test_the_svd_of_zeros_has_no_other_values(n, device):
    for method in ("svd", "svd values"):
        values = next(x for x in run(METHODS[method][0], device, np.zeros((2, n, n), np.float32))
                      if x.ndim == 2)
        np.testing.assert_array_equal(values, 0)
    assert run(jnp.linalg.matrix_rank, device, np.zeros((n, n), np.float32)) == [0]


@pytest.mark.parametrize("first", [0, 1e-3])
@pytest.mark.parametrize("scale", [1e-25, 1e25])
@pytest.mark.parametrize("method", ["eigh", "svd", "svd values"])
def test_the_first_row_may_be_smaller_than_the_others(method, scale, first, device):
    a = np.array([[first, 0, 0], [0, 2, 1], [0, 1, 2]])
    got = run(METHODS[method][0], device, (a * scale).astype(np.float32))
    values = next(x for x in got if x.ndim == 1)
    np.testing.assert_allclose(np.sort(values), np.array([first, 1, 3]) * scale, rtol=1e-6,
                               atol=2e-7 * scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda t: t.__name__)
def test_columns_of_qr_of_any_size(dtype, device):
    """LAPACK's error is small in each column, not only beside the largest."""
    a = random(np.random.default_rng(1), 9, 4, dtype=dtype)
    power = 1 if dtype == np.float32 else 8
    a = (a * np.array([1e25, 1, 1e-25, 1e-30]) ** power).astype(dtype)
    q, r = (np.asarray(x, float) for x in run(jnp.linalg.qr, device, a))
    off = np.abs(q @ r - a).max(0) / np.abs(a.astype(float)).max(0)
    eps = np.finfo(dtype).eps
    assert off.max() < 8 * eps and off_unitary(q) < 32 * eps


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [2, 65])
@pytest.mark.parametrize("method", ["eigh", "svd", "svd values", "qr"])
def test_no_number_in_no_number_out(method, n, bad, device):
    """And the other matrices of a batch have their values."""
    a = matrices(n, np.float32, True)[1][[0, 9, 5]]
    alone = run(METHODS[method][0], device, a)
    a[1, n - 1, 0] = a[1, 0, n - 1] = bad
    for got, good in zip(run(METHODS[method][0], device, a), alone):
        assert np.isnan(got[1]).any()
        if method != "qr":
            assert np.isnan(got[1]).all()
        assert np.isfinite(got[[0, 2]]).all()
        if got.ndim == 2:
            np.testing.assert_allclose(got[[0, 2]], good[[0, 2]], atol=2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", ["eigh", "svd", "svd values"])
def test_an_infinity_on_a_diagonal_spoils_the_whole_result(method, bad, device):
    for got in run(METHODS[method][0], device, np.diag([1, bad, 2, 3]).astype(np.float32)):
        assert np.isnan(got).all()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2)],
                         ids=lambda s: "x".join(map(str, s)))
def test_empty(shape, device, cpu):
    methods = [jnp.linalg.svd, jnp.linalg.qr]
    if shape[-1] == shape[-2]:
        methods += [jnp.linalg.eigh, jnp.linalg.cholesky]
    for f in methods:
        for got, want in zip(run(f, device, np.zeros(shape, np.float32)),
                             run(f, cpu, np.zeros(shape, np.float32)), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_eigh_reads_one_triangle_and_the_real_diagonal(device, cpu):
    rng = np.random.default_rng(3)
    a = random(rng, 5, 5, dtype=np.complex64).astype(np.complex64)
    for uplo in "LU":
        f = functools.partial(jnp.linalg.eigh, UPLO=uplo, symmetrize_input=False)
        got, want = run(f, device, a), run(f, cpu, a)
        np.testing.assert_allclose(got[0], want[0], atol=1e-5)


def test_a_part_of_eigenvalues_and_singular_values(device, cpu):
    a = random(np.random.default_rng(4), 6, 6, dtype=np.float32).astype(np.float32)
    a += a.T
    v, w = run(lambda x: jax.lax.linalg.eigh(x, subset_by_index=(1, 4)), device, a)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a)[1:4], atol=1e-5)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-5)
    u, s, vh = run(lambda x: jax.lax.linalg.svd(x, subset_by_index=(0, 2),
                                                full_matrices=False), device, a)
    np.testing.assert_allclose(s, np.linalg.svd(a)[1][:2], atol=1e-5)
    np.testing.assert_allclose(a @ adjoint(vh), u * s, atol=1e-5)


# Of up to 8 matrices of up to 512 rows panels of 16 columns are factored 4 columns at once; of more
# matrices of up to 256 rows corners of 64, which are cut down to 8. The others have loops.
@pytest.mark.parametrize("batch", [1, 3, 20])
@pytest.mark.parametrize("n", [8, 9, 16, 17, 22, 63, 64, 65, 129, 256, 257, 512, 513])
def test_cholesky_on_both_sides_of_where_it_is_cut(n, batch, device):
    for dtype in TYPES:
        rng = np.random.default_rng(n)
        x = rng.normal(size=(batch, n, n)) + 1j * rng.normal(size=(batch, n, n))
        x = (x if np.dtype(dtype).kind == "c" else x.real) / np.sqrt(n)
        a = (x @ adjoint(x) + np.eye(n)).astype(dtype)
        got, = run(jnp.linalg.cholesky, device, a)
        wide = got.astype(np.complex128)
        np.testing.assert_array_equal(got, np.tril(got))
        np.testing.assert_allclose(wide @ adjoint(wide), a, rtol=0,
                                   atol=n * np.finfo(dtype).eps * abs(a).max())


# Behind what JAX makes zero itself.
@pytest.mark.parametrize("n", [8, 20, 70])
def test_a_factor_is_zero_above_its_diagonal(n, device):
    a = (n * np.eye(n) + 1).astype(np.float32)
    got, = run(jax.lax.linalg.cholesky_p.bind, device, a)
    np.testing.assert_array_equal(got, np.tril(got))


def test_cholesky_of_a_matrix_without_factor_is_nan(device):
    for dtype in TYPES:
        a = np.array([[1, 2], [2, 1]], dtype)
        got, = run(functools.partial(jnp.linalg.cholesky, symmetrize_input=False), device, a)
        assert np.isnan(got[np.tril_indices(2)]).all()


# In the first columns, in the first half, at its end, in the second half, at the very end.
@pytest.mark.parametrize("bad", [0, 3, 23, 24, 30, 39])
def test_cholesky_fails_as_a_whole_wherever_it_fails(bad, device):
    a = 40 * np.eye(40, dtype=np.float32) + 1
    a[bad, bad] = -1
    got, = run(jnp.linalg.cholesky, device, a)
    assert np.isnan(got[np.tril_indices(40)]).all()


@pytest.mark.parametrize("n", [1, 3])
def test_cholesky_of_zeros_is_nan(n, device, cpu):
    for dtype in TYPES:
        a = np.zeros((n, n), dtype)
        f = functools.partial(jnp.linalg.cholesky, symmetrize_input=False)
        np.testing.assert_array_equal(run(f, device, a)[0], run(f, cpu, a)[0])


@pytest.mark.parametrize("n,first", [(2, 0), (30, 0), (30, 21)])
@pytest.mark.parametrize("a", [[[np.inf, 0], [0, 1]], [[1, 0], [0, np.inf]],
                               [[np.inf, 1], [1, 1]]], ids=str)
def test_cholesky_of_an_infinite_pivot_is_its_root(a, n, first, device, cpu):
    whole = np.eye(n, dtype=np.float32)
    whole[first:first + 2, first:first + 2] = a
    f = functools.partial(jnp.linalg.cholesky, symmetrize_input=False)
    np.testing.assert_array_equal(run(f, device, whole)[0], run(f, cpu, whole)[0])


@pytest.mark.parametrize("batch", [1, 40])
@pytest.mark.parametrize("lower", [True, False])
def test_what_a_unit_diagonal_holds_does_not_count(lower, batch, device, cpu):
    a = np.tile(np.float32([[np.nan, 5, 1], [2, np.inf, 3], [4, 5, -np.inf]]), (batch, 1, 1))
    b = np.tile(np.float32([[1], [2], [3]]), (batch, 1, 1))
    f = functools.partial(jax.lax.linalg.triangular_solve, left_side=True, lower=lower,
                          unit_diagonal=True)
    got, = run(f, device, a, b)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, run(f, cpu, a, b)[0], rtol=1e-5)


@pytest.mark.parametrize("batch", [1, 40])
def test_an_infinite_pivot_leaves_its_unknown_zero(batch, device, cpu):
    a = np.tile(np.float32([[1, 0, 0], [2, np.inf, 0], [3, 4, 5]]), (batch, 1, 1))
    b = np.tile(np.float32([[1], [2], [3]]), (batch, 1, 1))
    f = functools.partial(jax.lax.linalg.triangular_solve, left_side=True, lower=True)
    np.testing.assert_allclose(run(f, device, a, b)[0], run(f, cpu, a, b)[0], rtol=1e-6)


# Nor what is below the diagonal of an upper one, in its blocks and beside them.
@pytest.mark.parametrize("n,k", [(5, 1), (40, 2), (580, 2), (580, 40)])
@pytest.mark.parametrize("lower", [True, False])
def test_what_is_outside_a_triangle_does_not_count(lower, n, k, device, cpu):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) / n + 2 * np.eye(n)
    a = (np.tril(a) + np.triu(np.full((n, n), np.nan), 1)).astype(np.float32)
    a = a if lower else a.T.copy()
    b = rng.standard_normal((n, k)).astype(np.float32)
    f = functools.partial(jax.lax.linalg.triangular_solve, left_side=True, lower=lower)
    np.testing.assert_allclose(run(f, device, a, b)[0], run(f, cpu, a, b)[0], atol=1e-5)


# Up to MOST_WITHOUT_LOOPS of runtime/compiler/lower/linalg.c, 256 rows, there is no loop. Of more a
# loop does up to MOST_BLOCKS, 8, blocks of BLOCK, 64 rows, or of 8 if right sides are MANY, 32.
SYSTEMS = [(40, 4, 3), (40, 8, 9), (2, 8, 70), (2, 17, 3), (16, 17, 16)]
OF_F32 = [(2, 15, 3), (2, 16, 3), (2, 32, 3), (2, 33, 3), (2, 3, 3), (2, 40, 3), (15, 5, 1),
          (520, 17, 1), (16, 17, 15), (1, 129, 2), (40, 1, 2), (70, 33, 3), (1, 257, 2),
          (1, 577, 32), (2, 512, 31), (1, 700, 1)]


@pytest.mark.parametrize("batch,n,k,dtype", [(*s, t) for s in SYSTEMS for t in TYPES] +
                         [(*s, np.float32) for s in OF_F32])
def test_triangular_systems_of_every_form(batch, n, k, dtype, device, cpu):
    rng = np.random.default_rng(n)
    t = (random(rng, batch, n, n, dtype=dtype) / n + 2 * np.eye(n)).astype(dtype)
    rhs = random(rng, batch, n, k, dtype=dtype).astype(dtype)

    def solve(t, rhs, left, lower, transpose, unit):
        return jax.lax.linalg.triangular_solve(
            t, rhs if left else rhs.mT, left_side=left, lower=lower, transpose_a=transpose,
            conjugate_a=transpose and is_complex(dtype), unit_diagonal=unit)

    forms = list(itertools.product((True, False), repeat=4))
    ours = run(lambda t, rhs: [solve(t, rhs, *form) for form in forms], device, t, rhs)
    for form, here in zip(forms, ours):
        # One by one: side by side in a program, XLA:CPU's may wait for one another for ever, for
        # each spreads its batch over the threads on which they run.
        there, = run(lambda t, rhs, form=form: [solve(t, rhs, *form)], cpu, t, rhs)
        error = np.linalg.norm(here - there) / np.linalg.norm(there)
        assert error <= 16 * np.finfo(dtype).eps


def compile_many(times, batch, n, dtype, function, device):
    def f(t, rhs):
        for i in range(times):
            rhs = rhs + function(t + i, rhs)
        return rhs

    on = jax.sharding.SingleDeviceSharding(device)
    shapes = [jax.ShapeDtypeStruct((batch, n, k), dtype, sharding=on) for k in (n, 4)]
    return jax.jit(f).lower(*shapes).compile().memory_analysis().generated_code_size_in_bytes


def factor(t, _):
    return jnp.linalg.cholesky(t)[..., :4]


def solve_lower(t, rhs):
    return jax.lax.linalg.triangular_solve(t, rhs, left_side=True, lower=True)


# Without loops up to MOST_IN_PROGRAM of runtime/compiler/lower/linalg.c, 2048 rows; where these are
# too much, as what is complex and of a batch is, none are.
@pytest.mark.parametrize("times,batch,n,dtype,function", [
    (8, 8, 512, np.float32, factor), (40, 64, 256, np.float32, solve_lower),
    (100, 9, 129, np.complex128, solve_lower)], ids=["factors", "systems", "complex systems"])
def test_programs_of_many_large_matrices_compile(times, batch, n, dtype, function, device):
    assert compile_many(times, batch, n, dtype, function, device)


def test_code_of_many_large_systems_has_loops_in_the_end(device):
    few, many = (compile_many(n, 64, 256, np.float32, solve_lower, device) for n in (8, 12))
    assert many < 1.25 * few



# From LEAST_TURNED of runtime/compiler/lower/linalg.c on, 512, they lie the other way.
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("function", [
    jnp.linalg.cholesky, jax.lax.linalg.lu, jnp.linalg.qr, jnp.linalg.eigh, jnp.linalg.svd,
    jnp.linalg.inv, lambda a: jnp.linalg.solve(a, a[..., :2])
], ids=["cholesky", "lu", "qr", "eigh", "svd", "inv", "solve"])
def test_many_small_matrices_are_done_as_few_are(function, n, dtype, device):
    a = random(np.random.default_rng(n), 520, n, n, dtype=dtype)
    a = (a @ adjoint(a) + np.eye(n)).astype(dtype)
    many = run(function, device, a)
    few = [run(function, device, part) for part in np.split(a, 2)]
    for x, *parts in zip(many, *few):  # sums may take another order
        bound = 4 * np.finfo(dtype).eps * np.abs(x).max()
        np.testing.assert_allclose(x, np.concatenate(parts), rtol=0, atol=bound)


@pytest.mark.parametrize("method", ["cholesky", "lu", "solve"])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("n", [1, 3, 6, 8, 9, 20, 32, 65, 129, 300])
def test_residuals_of_systems(method, n, dtype, device, cpu):
    a = matrices(n, dtype, False)[1][0]
    eps = np.finfo(dtype).eps
    if method == "cholesky":
        a = (a @ adjoint(a) + n * np.eye(n)).astype(dtype)

    def residual(where):
        if method == "solve":
            x, = run(jnp.linalg.solve, where, a, a[:, :2])
            x, whole = widen(x, a)
            return np.linalg.norm(whole @ x - whole[:, :2]) / np.linalg.norm(whole, 2) / \
                np.linalg.norm(x, 2)
        if method == "lu":
            p, low, up = widen(*run(jax.scipy.linalg.lu, where, a))
            return np.linalg.norm(p @ low @ up - a) / np.linalg.norm(a)
        low, = widen(*run(jnp.linalg.cholesky, where, a))
        return np.linalg.norm(low @ adjoint(low) - a) / np.linalg.norm(a)

    assert residual(device) <= TIMES * max(residual(cpu), eps)


def lu_errors(a, where):
    """And L has no large entry, as pivots are the largest of |re| + |im|; they give the rows."""
    lu, pivots, rows = run(jax.lax.linalg.lu, where, a)
    assert pivots.dtype == rows.dtype == np.int32
    m, n = a.shape[-2:]
    k = min(m, n)
    errors = []
    for x, f, swaps, order in zip(a, lu, pivots, rows):
        low = np.tril(f[:, :k], -1)
        assert np.all(np.abs(low) <= (1.4143 if is_complex(a.dtype) else 1))
        want = np.arange(m)
        for i, j in enumerate(swaps):
            want[[i, j]] = want[[j, i]]
        np.testing.assert_array_equal(order, want)
        x, low, up = widen(x, low + np.eye(m, k), np.triu(f[:k]))
        errors.append(np.linalg.norm(low @ up - x[order]) / max(np.linalg.norm(x), 1e-30))
    return np.array(errors)


# FEW of runtime/compiler/lower/lu.c is 16, more than 256 rows have a loop; batches larger than
# matrices go the other way.
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(3, 5, 1), (3, 1, 5), (2, 17, 16), (2, 16, 17), (1, 70, 33),
                                   (40, 4, 4), (3, 3, 8), (2, 6, 6), (3, 8, 8), (5, 9, 7),
                                   (2, 33, 70), (40, 5, 4), (40, 33, 33), (2, 270, 20)],
                         ids=lambda s: "x".join(map(str, s)))
def test_lu_of_every_shape(shape, dtype, device, cpu):
    a = random(np.random.default_rng(11), *shape, dtype=dtype).astype(dtype)
    a[-1, :, -1] = a[-1, :, 0]
    least = np.finfo(dtype).eps
    assert np.all(lu_errors(a, device) <= TIMES * np.maximum(lu_errors(a, cpu), least))


@pytest.mark.parametrize("n", [4, 40])
def test_what_is_made_of_lu(n, device, cpu):
    a = random(np.random.default_rng(12), 3, n, n, dtype=np.float64)
    for f in (jnp.linalg.det, jnp.linalg.slogdet, jnp.linalg.inv,
              jax.vmap(jax.grad(lambda x: jnp.linalg.slogdet(x)[1])),
              lambda x: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(x), x[..., :1])):
        for got, want in zip(run(f, device, a), run(f, cpu, a), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


def test_lu_of_a_matrix_without_an_inverse(device, cpu):
    a = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[0, 1], [0, 2]]], np.float32)
    for got, want in zip(run(jax.lax.linalg.lu, device, a), run(jax.lax.linalg.lu, cpu, a)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(run(jnp.linalg.det, device, a)[0], 0)


@pytest.mark.parametrize("batch", [2, 40])
def test_a_nan_in_a_batch_of_lu_is_of_its_matrix(batch, device):
    a = random(np.random.default_rng(13), batch, 20, 20, dtype=np.float32).astype(np.float32)
    good, = run(jnp.linalg.inv, device, a)
    a[1, 3, 0] = np.nan
    got, = run(jnp.linalg.inv, device, a)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(np.delete(got, 1, 0), np.delete(good, 1, 0))


def test_lu_of_nothing(device, cpu):
    for shape in [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)]:
        for got, want in zip(run(jax.lax.linalg.lu, device, np.zeros(shape, np.float32)),
                             run(jax.lax.linalg.lu, cpu, np.zeros(shape, np.float32)),
                             strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def tridiagonal(low, diagonal, up):
    n = diagonal.shape[-1]
    full = np.zeros((*diagonal.shape, n), diagonal.dtype)
    i = np.arange(n)
    full[..., i, i] = diagonal
    full[..., i[1:], i[:-1]] = low[..., 1:]
    full[..., i[:-1], i[1:]] = up[..., :-1]
    return full


# A turn of the plugin's loops does 16 rows; of 384 and more of these six systems of f32 it makes
# pairs, too.
@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 18, 40, 301, 383, 384])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_tridiagonal_systems_take_pivots(n, dtype, device, cpu):
    rng = np.random.default_rng(n)
    diagonals = [random(rng, 3, n, dtype=dtype).astype(dtype) for _ in range(3)]
    diagonals[1][1] /= 1e6
    diagonals[0][:, 0] = diagonals[2][:, -1] = np.nan  # which stand for nothing
    rhs = random(rng, 3, n, 2, dtype=dtype).astype(dtype)
    a, eps = tridiagonal(*diagonals), np.finfo(dtype).eps

    def residual(where):
        x, = run(jax.lax.linalg.tridiagonal_solve, where, *diagonals, rhs)
        full, x, right = widen(a, x, rhs)
        off = np.linalg.norm(full @ x - right, axis=(-2, -1))
        return off / np.linalg.norm(full, 2, (-2, -1)) / np.linalg.norm(x, axis=(-2, -1))
    assert np.all(residual(device) <= TIMES * np.maximum(residual(cpu), eps))


# Enough rows for pairs.
@pytest.mark.parametrize("n", [256, 259])
def test_one_tridiagonal_system_is_solved_as_by_lapack(n, device, cpu):
    """Whatever pivots there are: pairs of rows without an inverse, sizes far apart, none."""
    solve = jax.lax.linalg.tridiagonal_solve
    rng = np.random.default_rng(n)
    low, diagonal, up, rhs = random(rng, 4, n, dtype=np.float32).astype(np.float32)
    holes = np.where(np.arange(n) % 3, 0, diagonal)
    steep = np.logspace(-12, 12, n).astype(np.float32)
    none = np.where(np.arange(n) == 77, 0, diagonal), *(
        np.where(np.arange(n) == 77 - i, 0, x) for i, x in ((-1, low), (1, up)))
    endless = np.where(np.arange(n) == 100, np.inf, diagonal + 4).astype(np.float32)
    for args in [(low, holes, up), (low * steep, diagonal * steep, up * steep),
                 (low, steep * diagonal, up), (none[1], none[0], none[2]), (low, endless, up)]:
        [x], [y] = (run(solve, where, *args, rhs[:, None]) for where in (device, cpu))
        np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
        assert np.isfinite(args[1]).all() or x[100] == 0 and np.isfinite(x).all()
        if np.isfinite(x).all() and np.isfinite(args[1]).all():
            a, x, y, right = widen(tridiagonal(*args), x, y, rhs[:, None])
            off, least = (np.linalg.norm(a @ v - right) / (
                np.linalg.norm(a, 2) * np.linalg.norm(v)) for v in (x, y))
            assert off <= TIMES * max(least, np.finfo(np.float32).eps)


# One system, two, and complex ones: as pairs, or row by row where nothing is wider.
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("batch", [1, 2])
def test_tridiagonal_systems_have_solutions_as_near_as_those_of_lapack(dtype, batch, device, cpu):
    """Rounding in the large elements of a row leaves what is small, and sums to zero, as it is."""
    n = 400
    rng = np.random.default_rng(batch)
    low, diagonal, up, rhs = random(rng, 4, batch, n, dtype=dtype).astype(dtype)
    minus = np.full((batch, n), -1, dtype)
    weak = np.where(np.arange(n) % 2, dtype(1e-8), dtype(1)) * diagonal
    for args in [(minus, np.where(np.arange(n), 2, 1).astype(dtype) - 0 * minus, minus),
                 (low, weak, up)]:
        x, y = (run(jax.lax.linalg.tridiagonal_solve, where, *args, rhs[..., None])[0]
                for where in (device, cpu))
        a, x, y, right = widen(tridiagonal(*args), x, y, rhs[..., None])
        best = np.linalg.solve(a, right)
        off, least = (np.linalg.norm(v - best) / np.linalg.norm(best) for v in (x, y))
        assert off <= TIMES * max(least, 10 * np.finfo(dtype).eps)


def test_tridiagonal_systems_are_made_wide_where_nothing_else_is(device):
    """Of a system whose solution is whole numbers, which f32 alone does not find."""
    minus, rhs = np.full(300, -1, np.float32), np.ones((300, 1), np.float32)
    with jax.enable_x64(False):
        x, = run(jax.lax.linalg.tridiagonal_solve, device, minus,
                 np.where(np.arange(300), 2, 1).astype(np.float32), minus, rhs)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x[::-1, 0], np.cumsum(np.arange(300, 0, -1)))


def test_tridiagonal_systems_without_a_solution_or_unknowns(device, cpu):
    solve = jax.lax.linalg.tridiagonal_solve
    one = np.ones((3, 3), np.float32)
    diagonal = np.array([[0, 1, 2], [1, 1, 0], [3, 4, 5]], np.float32)  # without: the second
    low = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1]], np.float32)
    for got, want in zip(run(solve, device, low, diagonal, one, one[..., None]),
                         run(solve, cpu, low, diagonal, one, one[..., None])):
        assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()
        np.testing.assert_allclose(got, want, atol=1e-6)
    for n, k in [(0, 2), (3, 0)]:
        none = [np.zeros((2, n), np.float32)] * 3
        got, = run(solve, device, *none, np.zeros((2, n, k), np.float32))
        assert got.shape == (2, n, k)


def test_the_gradient_of_a_tridiagonal_system(device, cpu):
    rng = np.random.default_rng(5)
    args = [random(rng, n, dtype=np.float64) for n in (9, 9, 9)] + [rng.standard_normal((9, 2))]

    def loss(*args):
        return (jax.lax.linalg.tridiagonal_solve(*args) ** 2).sum()
    f = jax.grad(loss, argnums=(0, 1, 2, 3))
    for got, want in zip(run(f, device, *args), run(f, cpu, *args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


# Rows and columns of which the last ones are too small to be squared.
@pytest.mark.parametrize("n", [17, 32, 49])
@pytest.mark.parametrize("least", [-20, -30])
def test_svd_of_steep(n, least):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((8, n, n)) * np.logspace(0, least, n)
    a[4:] = np.swapaxes(a[4:], 1, 2)
    u, _, vh = jax.jit(jnp.linalg.svd)(a.astype(np.float32))
    for x in widen(u, adjoint(np.asarray(vh))):
        assert off_unitary(x).max() < 1e-5


@pytest.mark.parametrize("n", [5, 8, 16, 40, 64])
@pytest.mark.parametrize("batch", [1, 9])
def test_values_alone_of_few_rows_are_right_however_small(n, batch, device):
    """Of a diagonal matrix nothing is lost by reflections. First values that are tried make a 0."""
    d = np.stack([np.logspace(0, -20, n), np.linspace(0.5, 1, n, False)]).astype(np.float32)
    x, = run(functools.partial(jnp.linalg.svd, compute_uv=False), device,
             np.tile(d[:, None] * np.eye(n, dtype=d.dtype), (batch, 1, 1)))
    np.testing.assert_allclose(x, np.tile(-np.sort(-d), (batch, 1)), rtol=3e-7)
