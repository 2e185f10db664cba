# SPDX-License-Identifier: Apache-2.0
"""jax.experimental.buffer_callback, as a function of the host on copies of the arrays: JAX's own
asks for a CPU or GPU backend of jaxlib's."""

import numpy as np
from jax._src import callback as callbacks
from jax._src import tree_util
from jax._src.buffer_callback import ExecutionStage


class Buffer:
    """An array of the host's that a function sees, with what jaxlib's own has on a CPU."""

    def __init__(self, array):
        self._array = array

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    writeable = property(lambda self: self._array.flags.writeable)

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("the array is in the host's memory, not in a GPU's")


class ExecutionContext:
    stage = ExecutionStage.EXECUTE

    @property
    def stream(self):
        raise RuntimeError("functions of the host run on copies of their arrays: there is no "
                           "stream of the device")


def lower(ctx, *operands, callback, in_tree, out_tree, has_side_effect, input_output_aliases,
          command_buffer_compatible, **_):
    del command_buffer_compatible       # calls are not recorded anywhere
    aliased = {out: at for at, out in input_output_aliases}

    def call(*args):
        arrays = [np.asarray(a) for a in args]
        for at in aliased.values():
            arrays[at] = np.array(arrays[at])
        outs = [arrays[aliased[i]] if i in aliased else np.zeros(aval.shape, aval.dtype)
                for i, aval in enumerate(ctx.avals_out)]
        args, kwargs = tree_util.tree_unflatten(in_tree, [Buffer(a) for a in arrays])
        out = tree_util.tree_unflatten(out_tree, [Buffer(a) for a in outs])
        if callback(ExecutionContext(), out, *args, **kwargs) is not None:
            raise ValueError("buffer_callback callback must not return any values.")
        return tuple(outs)
    return callbacks.emit_python_callback(
        ctx, call, None, list(operands), ctx.avals_in, ctx.avals_out,
        has_side_effect=has_side_effect, returns_token=False)[0]
