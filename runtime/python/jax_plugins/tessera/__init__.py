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
    """Eigenvectors: JAX's algorithm for accelerators, which other platforms must ask for."""
    try:
        from jax._src.interpreters import mlir
        from jax._src.lax import linalg
        from jax._src.tpu.linalg import eigh
        mlir.register_lowering(linalg.eigh_p, eigh._eigh_tpu_lowering, platform=NAME)
    except (ImportError, AttributeError) as e:
        warnings.warn(f"tessera: this JAX keeps its lowering of eigh elsewhere ({e}); eigh and "
                      "what is made of it do not run", stacklevel=2)


def initialize():
    from jax._src import xla_bridge
    # Above cpu: with the package installed and JAX_PLATFORMS unset, cpu stays default.
    xla_bridge.register_plugin(NAME, priority=-100, library_path=_library())
    _enable_donation()
    _register_lowerings()
