# SPDX-License-Identifier: Apache-2.0
"""Runs StableHLO on JAX's CPU backend for fuzz_ops; jax.c says what goes over the pipe."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
# One thread is enough for small programs, and another process has the other core.
# Without the passes that rewrite by rules of their own (README.md#jax), and without LLVM's
# optimizations: most of the time would go there.
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true "
    "--xla_disable_hlo_passes=constant_folding,algsimp,fusion,cpu-instruction-fusion")

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import compiler  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402

# Types by MLIR's names; where NumPy has none, ml_dtypes'.
PLAIN = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64",
         "complex<f32>": "complex64", "complex<f64>": "complex128"}
SMALL = {"bf16": "bfloat16", "i4": "int4", "i2": "int2", "ui4": "uint4", "ui2": "uint2",
         "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn", "f8E4M3": "float8_e4m3",
         "f8E4M3B11FNUZ": "float8_e4m3b11fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
         "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E3M4": "float8_e3m4",
         "f8E8M0FNU": "float8_e8m0fnu", "f4E2M1FN": "float4_e2m1fn"}


def dtype_of(name):
    if name in SMALL:
        return np.dtype(getattr(ml_dtypes, SMALL[name]))
    if name in PLAIN:
        return np.dtype(PLAIN[name])
    return np.dtype(name.replace("ui", "uint") if name[0] == "u" else name.replace("i", "int"))


class Backend:
    def __init__(self):
        self.device = jax.devices("cpu")[0]
        self.devices = xla_client.DeviceList((self.device,))
        self.options = compiler.get_compile_options(num_replicas=1, num_partitions=1)

    def run(self, text, args):
        exe = self.device.client.compile_and_load(text, self.devices, self.options)
        placed = [jax.device_put(a, self.device) for a in args]
        results = exe.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [np.asarray(r[0]) for r in results]


def main():
    pipe, answer = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not get between the answers.
    sys.stdout = sys.stderr
    backend = Backend()
    while header := pipe.readline():
        length, n_args = map(int, header.split())
        text = pipe.read(length)
        args = []
        for _ in range(n_args):
            name, size, *dims = pipe.readline().split()
            data = pipe.read(int(size))
            flat = np.frombuffer(data, dtype_of(name.decode()))
            args.append(flat.reshape([int(d) for d in dims]))
        try:
            results = [r.tobytes() for r in backend.run(text, args)]
        except Exception as e:  # any refusal is an answer
            why = str(e).encode()[:2000]
            answer.write(b"no %d\n" % len(why) + why)
        else:
            answer.write(b"ok %d\n" % len(results))
            for r in results:
                answer.write(b"%d\n" % len(r) + r)
        answer.flush()


main()
