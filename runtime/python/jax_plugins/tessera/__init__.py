# SPDX-License-Identifier: Apache-2.0
"""JAX finds this through its entry point and calls initialize()."""

import functools
import hashlib
import pathlib
import warnings

import tessera_pjrt

NAME = "tessera"


def _enable_donation():
    """JAX hands donation on only to platforms in a list of its own."""
    try:
        from jax._src.interpreters import mlir
        if NAME not in mlir._platforms_with_donation:
            mlir._platforms_with_donation.append(NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its list of platforms with donation "
                      f"elsewhere ({e}); donated arguments are not reused", stacklevel=2)


def _register_lowerings():
    """LU, eigenvectors and singular values: calls that the compiler knows, of any size. An
    algorithm that the user names stays JAX's."""
    try:
        from jax._src.interpreters import mlir
        from jax._src.lax import linalg
        from jax._src.tpu.linalg import eigh, svd
        mlir.register_lowering(linalg.lu_p, _lower_lu(mlir), platform=NAME)
        mlir.register_lowering(linalg.tridiagonal_solve_p,
                               _lower_tridiagonal_solve(mlir, linalg), platform=NAME)
        mlir.register_lowering(linalg.eigh_p, _lower_eigh(mlir, linalg, eigh), platform=NAME)
        mlir.register_lowering(linalg.svd_p, _lower_svd(mlir, linalg, svd), platform=NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn("tessera: this JAX keeps its lowerings of linear algebra elsewhere "
                      f"({e}); eigh and what is made of it do not run, lu is slow, "
                      "tridiagonal_solve takes no pivots", stacklevel=2)


def _allow_export():
    """jax.export takes calls of targets in a list of JAX's own. Ours keeps its meaning."""
    try:
        from jax._src.export import _export
        _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.add("tessera.svd")
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its list of exportable calls elsewhere ({e}); "
                      "jax.export refuses programs with svd", stacklevel=2)


def _register_callbacks():
    """Functions of the host are called by sends and receives, as JAX does it for a TPU."""
    try:
        from jax._src import callback, checkify, debugging
        from jax._src.interpreters import mlir
        callback.emit_python_callback = _emit_callback(callback.emit_python_callback)
        for primitive, rule in (
                (debugging.debug_callback_p, debugging.debug_callback_lowering),
                (debugging.debug_print_p, debugging.debug_print_lowering_rule),
                (checkify.check_p, checkify.check_lowering_rule)):
            # What is lowered holds the numbers of its channels: not to be used twice.
            mlir.register_lowering(primitive, rule, platform=NAME, cacheable=False)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its lowerings of callbacks elsewhere ({e}); "
                      "callbacks, jax.debug.print among them, do not run", stacklevel=2)


def _enable_cache():
    """JAX keeps compiled programs on disk for platforms in a list of its own. What another build of
    ours compiled is another entry."""
    try:
        from jax._src import compilation_cache
        is_used, key_of = compilation_cache.is_cache_used, compilation_cache.get_cache_key
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its cache of compiled programs elsewhere ({e}); "
                      "it is not used", stacklevel=2)
        return

    @functools.lru_cache
    def build():
        return hashlib.sha256(pathlib.Path(tessera_pjrt.library()).read_bytes()).hexdigest()[:16]

    def is_cache_used(backend):
        return is_used(_Supported if backend.platform == NAME else backend)

    def get_cache_key(module, devices, options, backend, *args, **kwargs):
        key = key_of(module, devices, options, backend, *args, **kwargs)
        return f"{key}-{build()}" if backend.platform == NAME else key
    compilation_cache.is_cache_used = is_cache_used
    compilation_cache.get_cache_key = get_cache_key


class _Supported:
    """What JAX asks a backend before it uses its cache."""

    platform, supports_executable_serialization = "tpu", True


def _enable_dlpack():
    """DLPack has no number for our device: others get a copy in the CPU's memory."""
    try:
        from jax._src import xla_bridge
        from jax._src.array import ArrayImpl
        from jax._src.dlpack import DLDeviceType
        give, where = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its part of DLPack elsewhere ({e}); arrays of the "
                      "device are not taken by others", stacklevel=2)
        return

    def is_ours(array):
        return len(array.sharding.device_set) == 1 and array.platform() == NAME

    def __dlpack__(self, *, copy=None, **kwargs):
        if not is_ours(self):
            return give(self, copy=copy, **kwargs)
        if copy is False:
            raise BufferError(f"an array on {NAME} is given to others as a copy in the CPU's "
                              "memory, and copy=False was asked for")
        import jax
        cpu = xla_bridge.local_devices(backend="cpu")[0]
        return give(jax.device_put(self, cpu), **kwargs)

    def __dlpack_device__(self):
        return (DLDeviceType.kDLCPU, 0) if is_ours(self) else where(self)
    ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__ = __dlpack__, __dlpack_device__


def _emit_callback(theirs):
    def emit(ctx, *args, partitioned=False, **kwargs):
        module = ctx.module_context
        if tuple(module.platforms) != (NAME,):
            return theirs(ctx, *args, partitioned=partitioned, **kwargs)
        backend = module.get_backend()
        if partitioned and len(backend.local_devices()) > 1:
            raise NotImplementedError("partitioned callbacks among several devices do not run "
                                      f"on {NAME}")
        return theirs(ctx.replace(module_context=_AsTpu(module, backend)), *args, **kwargs)
    return emit


class _AsTpu:
    """A module's context that asks for what a TPU would be given, of our backend."""

    platforms = ("tpu",)

    def __init__(self, module, backend):
        self._module, self._backend = module, backend

    def __getattr__(self, name):
        return getattr(self._module, name)

    def get_backend(self, optional=False):
        return self._backend


def _call(mlir, ctx, target, operand, config):
    shapes = None
    if any(not isinstance(n, int) for aval in ctx.avals_out for n in aval.shape):
        shapes = [mlir.eval_dynamic_shape_as_tensor(ctx, aval.shape) for aval in ctx.avals_out]
    types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
    return mlir.custom_call(target, result_types=types, operands=[operand],
                            backend_config=config, api_version=1, result_shapes=shapes).results


def _lower_lu(mlir):
    def lower(ctx, operand):
        return _call(mlir, ctx, "LuDecomposition", operand, "")
    return lower


def _lower_tridiagonal_solve(mlir, theirs):
    """JAX's own lowering has no pivots. perturb_singular it refuses."""
    def lower(ctx, *operands, perturb_singular):
        rule = theirs._tridiagonal_solve_jax if perturb_singular else _solve_tridiagonal
        if perturb_singular:
            rule = functools.partial(rule, perturb_singular=True)
        return mlir.lower_fun(rule, multiple_results=False)(ctx, *operands)
    return lower


def _solve_tridiagonal(low, diagonal, up, rhs):
    """Elimination with partial pivoting as LAPACK's gtsv: an exchange of two rows leaves a second
    diagonal above. A matrix with a pivot of zero has NaNs for its solution."""
    import jax
    import jax.numpy as jnp

    n, k = rhs.shape[-2:]
    if not rhs.size:
        return rhs
    low, diagonal, up = (x.reshape(-1, n).T[..., None] for x in (low, diagonal, up))
    up = jnp.concatenate([up[:-1], jnp.zeros_like(up[:1])])  # its last is not read
    b = jnp.moveaxis(rhs.reshape(-1, n, k), 1, 0)

    def size(x):
        return abs(x.real) + abs(x.imag) if jnp.iscomplexobj(x) else abs(x)

    def eliminate(row, following):
        d, u, y = row
        next_l, next_d, next_u, next_y = following
        is_kept = size(d) >= size(next_l)
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

    last, rows = jax.lax.scan(eliminate, (diagonal[0], up[0], b[0]),
                              (low[1:], diagonal[1:], up[1:], b[1:]), unroll=16)
    x_last = last[2] / last[0]
    _, x = jax.lax.scan(substitute, (x_last, jnp.zeros_like(x_last)), rows, reverse=True,
                        unroll=16)
    x = jnp.concatenate([x, x_last[None]])
    is_singular = jnp.any(rows[0] == 0, axis=0) | (last[0] == 0)
    x = jnp.where(is_singular, jnp.nan, x)
    return jnp.moveaxis(x, 0, 1).reshape(rhs.shape)


def _lower_eigh(mlir, linalg, theirs):
    names = linalg.EighImplementation

    def lower(ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        if algorithm not in (None, names.JACOBI):
            return theirs._eigh_tpu_lowering(
                ctx, operand, lower=lower, sort_eigenvalues=sort_eigenvalues,
                subset_by_index=subset_by_index, algorithm=algorithm)
        n = ctx.avals_in[0].shape[-1]
        if subset_by_index is None or tuple(subset_by_index) == (0, n):
            return _call(mlir, ctx, "Eigh", operand, f"{int(lower)},{int(sort_eigenvalues)}")

        def part(x):
            v, w = linalg.eigh_p.bind(x, lower=lower, sort_eigenvalues=sort_eigenvalues,
                                      subset_by_index=None, algorithm=algorithm)
            which = slice(*subset_by_index)
            return v[..., which], w[..., which]
        return mlir.lower_fun(part, multiple_results=True)(ctx, operand)
    return lower


def _lower_svd(mlir, linalg, theirs):
    names = linalg.SvdAlgorithm

    def lower(ctx, operand, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        if algorithm not in (None, names.DEFAULT, names.JACOBI):
            return theirs._svd_tpu_lowering_rule(
                ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv,
                subset_by_index=subset_by_index, algorithm=algorithm)
        m, n = ctx.avals_in[0].shape[-2:]
        if m == 0 or n == 0:
            return mlir.lower_fun(linalg._empty_svd, multiple_results=True)(
                ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv)
        if subset_by_index is None or tuple(subset_by_index) == (0, min(m, n)):
            config = "full" if compute_uv and full_matrices else ""
            return _call(mlir, ctx, "tessera.svd", operand, config)

        def part(x):
            found = linalg.svd_p.bind(x, full_matrices=False, compute_uv=compute_uv,
                                      subset_by_index=None, algorithm=algorithm)
            which = slice(*subset_by_index)
            s = found[0][..., which]
            return (s, found[1][..., which], found[2][..., which, :]) if compute_uv else (s,)
        return mlir.lower_fun(part, multiple_results=True)(ctx, operand)
    return lower


def initialize():
    from jax._src import xla_bridge
    # Above cpu: with the package installed and JAX_PLATFORMS unset, cpu stays default.
    xla_bridge.register_plugin(NAME, priority=-100, library_path=tessera_pjrt.library())
    _enable_donation()
    _register_lowerings()
    _register_callbacks()
    _enable_cache()
    _enable_dlpack()
    _allow_export()
