# SPDX-License-Identifier: Apache-2.0
"""JAX finds this through its entry point and calls initialize().

TESSERA_PLUGIN names another build of the plugin than the one in this package.
"""

import os
import pathlib
import warnings

NAME = "tessera"


def _library():
    named = os.environ.get("TESSERA_PLUGIN")
    path = pathlib.Path(named) if named else \
        pathlib.Path(__file__).parent / "pjrt_plugin_tessera.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: install the package again, or let "
                                "TESSERA_PLUGIN name a built pjrt_plugin_tessera.so")
    return str(path)


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
    """Eigenvectors and singular values: calls that the compiler knows, of any size. An algorithm
    that the user names stays JAX's."""
    try:
        from jax._src.interpreters import mlir
        from jax._src.lax import linalg
        from jax._src.tpu.linalg import eigh, svd
        mlir.register_lowering(linalg.eigh_p, _lower_eigh(mlir, linalg, eigh), platform=NAME)
        mlir.register_lowering(linalg.svd_p, _lower_svd(mlir, linalg, svd), platform=NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its lowerings of eigh and svd elsewhere ({e}); "
                      "eigh and what is made of it do not run", stacklevel=2)


def _allow_export():
    """jax.export takes calls of targets in a list of JAX's own. Ours keeps its meaning."""
    try:
        from jax._src.export import _export
        _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.add("tessera.svd")
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its list of exportable calls elsewhere ({e}); "
                      "jax.export refuses programs with svd", stacklevel=2)


def _call(mlir, ctx, target, operand, config):
    shapes = None
    if any(not isinstance(n, int) for aval in ctx.avals_out for n in aval.shape):
        shapes = [mlir.eval_dynamic_shape_as_tensor(ctx, aval.shape) for aval in ctx.avals_out]
    types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
    return mlir.custom_call(target, result_types=types, operands=[operand],
                            backend_config=config, api_version=1, result_shapes=shapes).results


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
    xla_bridge.register_plugin(NAME, priority=-100, library_path=_library())
    _enable_donation()
    _register_lowerings()
    _allow_export()
