# SPDX-License-Identifier: Apache-2.0
"""Writes the quantized_*.mlirbc beside it: programs whose arguments and results are of uniform
quantized types, which JAX cannot make.

    python3 tests/data/programs/make_quantized.py
"""

import pathlib

from jaxlib import _jax

HERE = pathlib.Path(__file__).parent
A, B = "!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<u8:f32, 0.25:128>"
W = "!quant.uniform<i8:f32:1, {0.5, 0.25, 2.0}>"
C = "!quant.uniform<i32:f32, 0.125:-5>"
D = "!quant.uniform<i4<-7:7>:bf16, 2.0:1>"


def write(name, args, results, lines):
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    text = (f"module @{name} {{ func.func public @main("
            f"{', '.join(f'%a{i}: {t}' for i, t in enumerate(args))}) -> "
            f"({', '.join(results)}) {{\n{lines}\nreturn {values} : {', '.join(results)} }} }}")
    code = _jax.mlir.serialize_portable_artifact(text, "1.17.0", True)
    (HERE / f"quantized_{name}.mlirbc").write_bytes(code)


def main():
    write("types", [f"tensor<4x{A}>"], [f"tensor<4x{B}>", "tensor<4xf32>"], f"""
      %r0 = stablehlo.uniform_quantize %a0 : (tensor<4x{A}>) -> tensor<4x{B}>
      %r1 = stablehlo.uniform_dequantize %a0 : (tensor<4x{A}>) -> tensor<4xf32>""")
    write("dot", [f"tensor<5x70x{A}>", f"tensor<70x3x{W}>"], [f"tensor<5x3x{C}>"], f"""
      %r0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0]
        : (tensor<5x70x{A}>, tensor<70x3x{W}>) -> tensor<5x3x{C}>""")
    write("conv", [f"tensor<1x6x6x4x{A}>", f"tensor<3x3x4x3x{W.replace(':1', ':3')}>"],
          [f"tensor<1x6x6x3x{C}>"], f"""
      %r0 = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{pad = [[1, 1], [1, 1]]}} {{feature_group_count = 1 : i64,
        batch_group_count = 1 : i64}} : (tensor<1x6x6x4x{A}>,
        tensor<3x3x4x3x{W.replace(':1', ':3')}>) -> tensor<1x6x6x3x{C}>""")
    write("narrow", [f"tensor<9x{D}>", f"tensor<9x{D}>"], [f"tensor<9x{D}>", f"tensor<9x{D}>"], f"""
      %c = stablehlo.constant() <{{value = dense<[-7, -3, 0, 1, 2, 5, 7, 6, 1]> : tensor<9xi4>}}>
        : () -> tensor<9x{D}>
      %r0 = stablehlo.multiply %a0, %a1 : tensor<9x{D}>
      %r1 = stablehlo.add %a0, %c : tensor<9x{D}>""")
    write("bodies", [f"tensor<7x{A}>", f"tensor<{A}>", f"tensor<7x{B}>"],
          [f"tensor<7x{A}>", f"tensor<{A}>", f"tensor<7x{B}>"], f"""
      %r0 = "stablehlo.sort"(%a0) <{{dimension = 0 : i64, is_stable = true}}> ({{
        ^bb0(%x: tensor<{A}>, %y: tensor<{A}>):
          %l = stablehlo.compare LT, %x, %y : (tensor<{A}>, tensor<{A}>) -> tensor<i1>
          stablehlo.return %l : tensor<i1>
      }}) : (tensor<7x{A}>) -> tensor<7x{A}>
      %r1 = "stablehlo.reduce"(%a0, %a1) <{{dimensions = array<i64: 0>}}> ({{
        ^bb0(%x: tensor<{A}>, %y: tensor<{A}>):
          %m = stablehlo.minimum %x, %y : tensor<{A}>
          stablehlo.return %m : tensor<{A}>
      }}) : (tensor<7x{A}>, tensor<{A}>) -> tensor<{A}>
      %r2 = stablehlo.reverse %a2, dims = [0] : tensor<7x{B}>""")


if __name__ == "__main__":
    main()
