# SPDX-License-Identifier: Apache-2.0
"""Writes the programs of the plugin tests: what JAX hands over, at a fixed version.

    JAX_PLATFORMS=cpu python3 tests/data/programs/make_plugin.py

Donation is asked for as on a device, so that the programs carry it.
"""

import pathlib

import jax
import jax.numpy as jnp
from jax._src.interpreters import mlir
from jax._src.lib import _jax

HERE = pathlib.Path(__file__).parent
VERSION = "1.13.7"
if "cpu" not in mlir._platforms_with_donation:
    mlir._platforms_with_donation.append("cpu")


def write(name, f, *args, **options):
    module = jax.jit(f, **options).lower(*args).compiler_ir("stablehlo")
    write_text(name, module.operation.get_asm(enable_debug_info=False))


def write_text(name, text):
    (HERE / f"{name}.mlirbc").write_bytes(
        _jax.mlir.serialize_portable_artifact(text, VERSION))


x = jax.ShapeDtypeStruct((16,), jnp.float32)
write("scale_add", lambda x, y: x * 2 + y, x, x)
write("scale_add_donated", lambda x, y: x * 2 + y, x, x, donate_argnums=0)
write("two_results", lambda x, y: (x + y, (x > y).astype(jnp.int32).reshape(4, 4)), x, x)
write("reverse_add_donated", lambda x, y: x + jnp.flip(jnp.cumsum(y)), x, x,
      donate_argnums=0)
write("loop", lambda x: jax.lax.fori_loop(0, 2000, lambda i, v: v * 0.999 + 1.0, x),
      jax.ShapeDtypeStruct((4096,), jnp.float32))
write("no_results", lambda x: (), x)
# A splat of a type without elements brings one all the same.
TYPES = ["0x3xf32", "2x0xcomplex<f64>", "0xi1", "3x0xi4", "0xbf16", "0xui64"]
VALUES = ["1.5", "(1.0, -2.0)", "true", "-3", "0.5", "7"]
write_text("empty_splats", f"""func.func @main() -> ({", ".join(f"tensor<{t}>" for t in TYPES)}) {{
{"".join(f"  %{i} = stablehlo.constant dense<{v}> : tensor<{t}>{chr(10)}"
         for i, (t, v) in enumerate(zip(TYPES, VALUES)))}
  return {", ".join(f"%{i}" for i in range(len(TYPES)))} : {
        ", ".join(f"tensor<{t}>" for t in TYPES)}
}}
""")
write_text("empty_lists", """
func.func @main() -> (tensor<0xf32>, tensor<0xi1>, tensor<2x0xcomplex<f64>>) {
  %0 = stablehlo.constant dense<> : tensor<0xf32>
  %1 = stablehlo.constant dense<> : tensor<0xi1>
  %2 = stablehlo.constant dense<> : tensor<2x0xcomplex<f64>>
  return %0, %1, %2 : tensor<0xf32>, tensor<0xi1>, tensor<2x0xcomplex<f64>>
}
""")
