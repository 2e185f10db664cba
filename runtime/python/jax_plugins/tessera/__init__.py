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


def _say_it_is_supported(xla_bridge):
    """JAX warns of platforms that are in no list of its own. Before it is registered."""
    try:
        xla_bridge._nonexperimental_plugins.add(NAME)
    except AttributeError as e:
        warnings.warn(f"tessera: this JAX keeps its list of platforms elsewhere ({e}), and will "
                      "say that this one is experimental", stacklevel=2)


def _register_lowerings():
    """LU, eigenvectors and singular values: calls that the compiler knows, of any size. An
    algorithm that the user names stays JAX's."""
    try:
        from jax._src.interpreters import mlir
        from jax._src.lax import linalg
        from jax._src.tpu.linalg import eigh, svd
        mlir.register_lowering(linalg.lu_p, _lower_lu(mlir), platform=NAME)
        # JAX's own lowering has no pivots.
        mlir.register_lowering(linalg.tridiagonal_solve_p,
                               _lower_by(mlir, _solve_tridiagonal, False), platform=NAME)
        mlir.register_lowering(linalg.eigh_p, _lower_eigh(mlir, linalg, eigh), platform=NAME)
        mlir.register_lowering(linalg.svd_p, _lower_svd(mlir, linalg, svd), platform=NAME)
        for primitive, rule in ((linalg.hessenberg_p, _hessenberg), (linalg.schur_p, _schur),
                                (linalg.tridiagonal_p, _tridiagonal), (linalg.eig_p, _eig),
                                (linalg.geqp3_p, _geqp3)):
            mlir.register_lowering(primitive, _lower_by(mlir, rule, True), platform=NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn("tessera: this JAX keeps its lowerings of linear algebra elsewhere "
                      f"({e}); eigh, eig, schur, hessenberg, tridiagonal, qr with pivots and what "
                      "is made of them do not run, lu is slow, tridiagonal_solve takes no pivots",
                      stacklevel=2)


def _register_collectives():
    """What one member has, for all: JAX has it on the GPU alone."""
    try:
        from jax._src.interpreters import mlir
        from jax._src.lax import parallel
        mlir.register_lowering(parallel.pbroadcast_p, parallel._pbroadcast_lowering,
                               platform=NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its lowering of pbroadcast elsewhere ({e}); it "
                      "does not run", stacklevel=2)


def _allow_export():
    """jax.export takes calls of targets in a list of JAX's own. Ours keeps its meaning."""
    try:
        from jax._src.export import _export
        _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.update(
            ("tessera.svd", "tessera.tridiagonal"))
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its list of exportable calls elsewhere ({e}); "
                      "jax.export refuses programs with svd or tridiagonal", stacklevel=2)


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


def _register_buffer_callback():
    """jax.experimental.buffer_callback: its function fills arrays of the host, which go back."""
    try:
        from jax._src import buffer_callback
        from jax._src.interpreters import mlir

        from . import buffers
        mlir.register_lowering(buffer_callback.buffer_callback_p, buffers.lower, platform=NAME,
                               cacheable=False)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its buffer_callback elsewhere ({e}); it does not "
                      "run", stacklevel=2)


def _register_partitioners(c_api):
    """jax.experimental.custom_partitioning and jax.debug.inspect_array_sharding: functions of
    Python's that are asked when a program is compiled."""
    try:
        from jax._src import xla_bridge

        from . import partitioners
        partitioners.check()
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps custom_partitioning elsewhere ({e}); it does not "
                      "run, and inspect_array_sharding says nothing in jitted functions",
                      stacklevel=2)
        return

    ours = c_api

    def register(*, c_api):
        if c_api is ours:
            partitioners.register(c_api)
    # JAX registers its own when all plugins are there; ours come after them, and count.
    xla_bridge.register_plugin_callbacks(register)


def _tell_others_of_the_end():
    """Before jax.distributed.shutdown, which JAX calls at exit, too, and which waits there for all
    processes: others may wait in a collective for this one."""
    try:
        from jax._src import distributed

        from . import end
        end.tell(distributed.State)
    except (ImportError, AttributeError, RuntimeError) as e:
        warnings.warn("tessera: others are not told when a process of jax.distributed ends "
                      f"({e}), and wait for it in their collectives", stacklevel=2)


def _let_children_end():
    """Programs fork, and what they fork ends by sys.exit as often as not."""
    try:
        from jax._src import dispatch, distributed, xla_bridge
        from jax._src.interpreters import mlir

        from . import end
        end.keep_in_children(xla_bridge, mlir, distributed.global_state,
                             dispatch.runtime_tokens)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its clients elsewhere ({e}): a child of fork that "
                      "does not end by os._exit may hang or crash", stacklevel=2)


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
        # Not array.platform(), which ends the process when the array is deleted.
        if [d.platform for d in array.sharding.device_set] != [NAME]:
            return False
        if array.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={array.aval.str_short()}.")
        return True

    def __dlpack__(self, *, copy=None, **kwargs):
        if not is_ours(self):
            return give(self, copy=copy, **kwargs)
        if copy is False:
            raise BufferError(f"an array on {NAME} is given to others as a copy in the CPU's "
                              "memory, and copy=False was asked for")
        import jax
        cpu = xla_bridge.local_devices(backend="cpu")[0]
        # Theirs to write to: not the array that JAX keeps for numpy.
        return give(jax.device_put(self, cpu, may_alias=False), **kwargs)

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


def _lower_by(mlir, rule, multiple_results):
    """By a program of ours, whatever types and ranks the user's own may not mix."""
    @functools.wraps(rule)
    def traced(*args, **kwargs):
        import jax
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return rule(*args, **kwargs)
    return mlir.lower_fun(traced, multiple_results=multiple_results)


def _solve_tridiagonal(*args, perturb_singular):
    from . import tridiagonal
    return tridiagonal.solve(*args, perturb_singular=perturb_singular)


def _hessenberg(a):
    from . import linalg
    return linalg.hessenberg(a)


def _tridiagonal(a, *, lower):
    from . import linalg
    return linalg.tridiagonal(a, lower=lower)


def _geqp3(a, pivots, *, use_magma):
    from . import linalg
    return linalg.geqp3(a, pivots)


def _schur(a, *, compute_schur_vectors, sort_eig_vals, select_callable):
    from . import linalg
    if sort_eig_vals:
        raise NotImplementedError("schur does not sort eigenvalues (sort_eig_vals=True)")
    return linalg.schur(a, vectors=compute_schur_vectors)


def _eig(a, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs,
         implementation):
    from . import linalg
    if implementation is not None:
        raise NotImplementedError(f"eig by {implementation} does not run on {NAME}, which has one "
                                  "of its own: leave `implementation` out")
    return linalg.eig(a, left=compute_left_eigenvectors, right=compute_right_eigenvectors)


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


def _register_ffi():
    """jax.ffi.register_ffi_target(..., platform="tessera"), before or after there is a client."""
    try:
        from jaxlib import xla_client
        take_targets = xla_client.register_custom_call_handler
        take_types = xla_client.register_custom_type_handler
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX takes functions of the host elsewhere ({e}); "
                      "jax.ffi.register_ffi_target does not reach the device", stacklevel=2)
        return

    from . import ffi
    is_late = False     # what came before this is handed over now: who registered it is gone

    def handed_to(register):
        def take(name, *args):
            try:
                register(name, *args)
            except ValueError as e:
                if is_late:
                    raise
                warnings.warn(f"tessera: {name} is not registered: {e}", stacklevel=2)
        return take
    take_types(NAME, handed_to(ffi.register_type))      # functions ask for their types
    take_targets(NAME, handed_to(ffi.register_target))
    is_late = True


def initialize():
    from jax._src import xla_bridge
    _say_it_is_supported(xla_bridge)
    # Above cpu: with the package installed and JAX_PLATFORMS unset, cpu stays default.
    c_api = xla_bridge.register_plugin(NAME, priority=-100,
                                       library_path=tessera_pjrt.library())
    _enable_donation()
    _register_lowerings()
    _register_collectives()
    _register_callbacks()
    _register_buffer_callback()
    _register_ffi()
    _register_partitioners(c_api)
    _tell_others_of_the_end()
    _let_children_end()
    _enable_cache()
    _enable_dlpack()
    _allow_export()
