# SPDX-License-Identifier: Apache-2.0
"""Writes programs of tests/data/programs and tests/data/vectors as HLO modules, by XLA's own
converter: those with opcodes that the programs of tests/data/torch do not have, and with calls,
branches and loops as JAX makes them.

    JAX_PLATFORMS=cpu python tests/data/hlo/make.py
"""

import pathlib

from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).resolve().parent
NAMES = """
    programs/jax_bools programs/jax_calls programs/jax_complex programs/jax_cond programs/jax_fft
    programs/jax_gather programs/jax_nested programs/jax_random programs/jax_rbg
    programs/jax_reduce_pair programs/jax_scan programs/jax_scatter programs/jax_sort_pair
    programs/jax_switch programs/jax_topk programs/jax_while programs/reverse_add_donated
    vectors/cbrt_float16_20_20 vectors/population_count_uint32_3 vectors/reduce_precision_float16
    vectors/shift_left_uint8_20_20_uint8_20_20
    vectors/shift_right_arithmetic_int32_1_20_int32_20_20
""".split()


def main():
    context = mlir.make_ir_context()
    for name in NAMES:
        source = HERE.parent / f"{name}.mlirbc"
        module = stablehlo.deserialize_portable_artifact(context, source.read_bytes())
        hlo = _jax.mlir.mlir_module_to_xla_computation(str(module), use_tuple_args=False,
                                                       return_tuple=True)
        (HERE / f"{source.stem}.hlo").write_bytes(hlo.as_serialized_hlo_module_proto())


if __name__ == "__main__":
    main()
