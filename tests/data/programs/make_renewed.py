# SPDX-License-Identifier: Apache-2.0
"""Writes the renewed_*.mlirbc beside it: ops that StableHLO has given up, which JAX does not send.

    python3 tests/data/programs/make_renewed.py
"""

import pathlib

from jaxlib import _jax

HERE = pathlib.Path(__file__).parent
PROGRAMS = {
    "einsum": (["2x3x3xf32", "2x3x5xf32"], "2x5xf32", 'einsum_config = "bii,bij->bj"'),
    "unary_einsum": (["3x4x3xi32"], "4x3xi32", 'einsum_config = "iji->ji"'),
    "torch_index_select": (["2x5x3xf32", "2x4xi32"], "2x4x3xf32",
                           "dim = 1 : i64, batch_dims = 1 : i64"),
    "broadcast": (["3xf32"], "2x4x3xf32", "broadcast_sizes = array<i64: 2, 4>"),
}


def main():
    for name, (args, result, attributes) in PROGRAMS.items():
        types = ", ".join(f"tensor<{t}>" for t in args)
        values = [f"%a{i}" for i in range(len(args))]
        text = (f"module @{name} {{ func.func public @main("
                f"{', '.join(f'{v}: tensor<{t}>' for v, t in zip(values, args))}) -> "
                f"tensor<{result}> {{\n%r = \"stablehlo.{name}\"({', '.join(values)}) "
                f"{{{attributes}}} : ({types}) -> tensor<{result}>\n"
                f"return %r : tensor<{result}> }} }}")
        code = _jax.mlir.serialize_portable_artifact(text, "1.17.0", True)
        (HERE / f"renewed_{name}.mlirbc").write_bytes(code)


if __name__ == "__main__":
    main()
