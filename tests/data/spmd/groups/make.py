# SPDX-License-Identifier: Apache-2.0
"""Programs that say in each of VHLO's forms who meets, as bytecode, for unit/tc/tc_gang_test.

    python3 tests/data/spmd/groups/make.py

Their main takes tensor<4xf32>. Needs JAX, for its dialects and writer.
"""

import pathlib

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).resolve().parent
MESH = ('#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, '
        '#stablehlo.mesh_axis<name = "y", size = %d>]%s>')
ADD = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32>
})"""
GLOBAL = ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids"


def axes(mesh, *names):
    return (f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = "
            f"[{', '.join(f'#stablehlo.axis_ref<name = {n}>' for n in names)}]>")


def matrix(rows, shape):
    return f"replica_groups = dense<{rows}> : tensor<{shape}xi64>"


def program(op, attributes, region="", before="", out="4xf32"):
    return f"""module {{ {before}
func.func @main(%a: tensor<4xf32>) -> tensor<{out}> {{
%r = "stablehlo.{op}"(%a) {region} {{{attributes}}} : (tensor<4xf32>) -> tensor<{out}>
return %r : tensor<{out}> }} }}"""


ONE_MESH = MESH % (4, "")
NUMBERED = MESH % (2, ", device_ids = dense<[3, 1, 0, 2]> : tensor<4xi64>")
NAMED = f'sdy.mesh @mesh = <["x"=2, "y"=4]> {{stablehlo.mesh = {ONE_MESH}}}'
ROW = matrix("[[1, 0]]", "1x2")
PROGRAMS = {
    "axis_part": program("all_reduce", axes(ONE_MESH, '"y", sub_axis_info = (1)2') + GLOBAL, ADD),
    "axes_two": program("all_gather", axes(ONE_MESH, '"y"', '"x"') + GLOBAL +
                        ", all_gather_dim = 0 : i64", out="32xf32"),
    "axes_ids": program("all_reduce", axes(NUMBERED, '"x"') + GLOBAL, ADD),
    "axes_named": program("all_reduce", axes("@mesh", '"y"') + GLOBAL, ADD, before=NAMED),
    "cross_replica_sum": program("cross-replica-sum", ROW),
    "broadcast": program("collective_broadcast", ROW),
    "to_all_old": program("all_to_all", ROW + ", split_dimension = 0 : i64, concat_dimension = "
                          "0 : i64, split_count = 2 : i64"),
    "reduce_all": program("all_reduce", matrix("", "0x0"), ADD),
}


def main():
    for name, text in PROGRAMS.items():
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            version = "1.0.0" if name == "to_all_old" else "1.17.0"
            code = stablehlo.serialize_portable_artifact(module, version, True)
        (HERE / f"{name}.mlirbc").write_bytes(code)


if __name__ == "__main__":
    main()
