# SPDX-License-Identifier: Apache-2.0
"""Functions that share out calls of a program for several devices, which the plugin asks when it
compiles: JAX's custom_partitioning, and inspect_array_sharding, which only looks.

What JAX's function gives a member to do is MLIR of this jaxlib's own; the plugin takes programs
in StableHLO's portable form, as all others come."""

import weakref

from jax._src import custom_partitioning, debugging
from jax._src.interpreters import mlir
from jax._src.lib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

INSPECT = debugging._INSPECT_SHARDING_CALL_NAME
# By the bytes that stand for one in a program. They are addresses, and are never used as such:
# who has no callback here has none.
_inspecting = weakref.WeakValueDictionary()
_encode = xla_client.encode_inspect_sharding_callback


def check():
    """AttributeError where this JAX has not what register() takes."""
    _jax.mlir.serialize_portable_artifact, stablehlo.get_current_version
    _ours()


def _remember(callback):
    key = _encode(callback)
    _inspecting[bytes(key)] = callback
    return key


def _portable(module):
    return _jax.mlir.serialize_portable_artifact(module, stablehlo.get_current_version())


def _ours():
    partition = custom_partitioning._custom_partitioning_partition

    def as_portable(*args):
        module, operands, results = partition(*args)
        return _portable(module), operands, results
    return [(custom_partitioning._CUSTOM_PARTITIONING_CALL_NAME,
             custom_partitioning._custom_partitioning_propagate_user_sharding, as_portable,
             custom_partitioning._custom_partitioning_infer_sharding_from_operands),
            (INSPECT, lambda sharding, shape, key: sharding, _inspect,
             lambda shapes, shardings, shape, key: shardings[0])]


def _inspect(shapes, shardings, result_shape, result_sharding, key):
    callback = _inspecting.get(bytes(key))
    if callback is None:
        raise ValueError("inspect_array_sharding: the program comes from another process, whose "
                         "callback is not here")
    (shape,), (sharding,) = shapes, shardings
    callback(sharding)
    dims = shape.dimensions() if sharding.is_manual() else sharding.tile(shape).dimensions()
    with mlir.make_ir_context(), ir.Location.unknown():
        kind = ir.RankedTensorType.get(dims, mlir.dtype_to_ir_type(shape.numpy_dtype()))
        module = ir.Module.parse(f"func.func public @main(%x: {kind}) -> {kind} "
                                 f"{{ return %x : {kind} }}")
        return _portable(mlir.module_to_bytecode(module)), [sharding], sharding


def register(c_api):
    xla_client.encode_inspect_sharding_callback = _remember
    for name, propagate, partition, infer in _ours():
        xla_client.register_custom_call_partitioner(
            name, propagate, partition, infer,
            can_side_effecting_have_replicated_sharding=True, c_api=c_api)
