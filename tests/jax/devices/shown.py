# SPDX-License-Identifier: Apache-2.0
"""What `compiled.as_text()` shows of programs over 8 devices, run by XLA's CPU backend.

The device shows what one of its members runs. Each program here is compiled for the device and
run there; then the module that it shows is given to XLA as it stands, which must get the same
parts of results on the same devices. A line a program: its name and what is wrong.
"""

import json
import re
import sys
import traceback

if __name__ == "__main__":
    import eight_cpus  # noqa: F401: before jax

import jax                                                                    # noqa: E402
import jax.numpy as jnp                                                       # noqa: E402
import numpy as np                                                            # noqa: E402
from jax import lax                                                           # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P                    # noqa: E402
from jaxlib import _jax                                                       # noqa: E402
from jaxlib._hlo import hlo_module_from_text                                   # noqa: E402
from jaxlib.xla_client import CompileOptions, DeviceAssignment, XlaComputation  # noqa: E402


def data(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def ints(n, *shape):
    return np.random.default_rng(n).integers(0, n, shape).astype(np.int32)


def halves(x):
    return jax.shard_map(lambda a: lax.ppermute(lax.psum_scatter(a, "x", tiled=True), "x",
                                                [(i, (i + 1) % 4) for i in range(4)]),
                         in_specs=P(None, "y"), out_specs=P("x", "y"))(x)


def swapped(x):
    return jax.shard_map(lambda a: lax.all_to_all(a, "y", 1, 0, tiled=True),
                         in_specs=P("x", None), out_specs=P(("y", "x"), None))(x)


def scanned(x, w):
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, length=5)


def chosen(x, i):
    return lax.switch(i[0], [jnp.sin, lambda a: a * 2, lambda a: a.sum(1, keepdims=True) + a], x)


def looked_up(table, i):
    return table[i], table.at[i].add(1.0)


def convolved(x, k):
    return lax.conv_general_dilated(x, k, (2, 1), ((1, 0), (2, 1)), rhs_dilation=(1, 2),
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(x):
    return jax.grad(lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                                                "SAME").sum())(x)


# Name: function, arguments with their shardings over a mesh of 4 by 2, what its text must have.
PROGRAMS = {
    "product": (lambda a, b: a @ b, [(data(16, 32), P(None, "x")), (data(32, 8), P("x", "y"))],
                "all-reduce"),
    "gradient": (jax.grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2)),
                 [(data(8, 4), P("y")), (data(32, 8), P("x"))], "all-reduce"),
    "gathered": (lambda a: a.reshape(8, 64)[::-1, ::3], [(data(16, 32), P("x", "y"))],
                 "all-gather"),
    "halves": (halves, [(data(16, 8), P(None, "y"))], "collective-permute"),
    "swapped": (swapped, [(data(8, 16), P("x"))], "all-to-all"),
    "scanned": (scanned, [(data(8, 16), P("x")), (data(16, 16), P(None, "y"))], "while"),
    "chosen": (chosen, [(data(8, 16), P("x", "y")), (ints(3, 1), P())], "conditional"),
    "sorted": (lambda a: jnp.sort(a, axis=1), [(data(8, 16), P("x"))], "sort"),
    "looked_up": (looked_up, [(data(16, 8), P("x")), (ints(16, 6), P())], "gather"),
    "convolved": (convolved, [(data(8, 10, 9, 3), P("x")), (data(3, 3, 3, 4), P())],
                  "dim_labels"),
    "pooled": (pooled, [(data(8, 8, 8, 3), P("x"))], "select-and-scatter"),
    "random": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (16, 8)),
               [(np.array([1, 2], np.uint32), P())], "xor"),
    "transformed": (lambda a: jnp.fft.rfft(a), [(data(8, 16), P("x"))], "fft"),
    "factored": (lambda a: lax.linalg.cholesky(a @ a.mT + 8 * jnp.eye(4)),
                 [(data(8, 4, 4), P("x"))], "cholesky"),
    "masked": (lambda a, m: jnp.where(m & (jnp.arange(16) % 3 == 0), a, 0).sum(0),
               [(data(8, 16), P("x", "y")), (ints(2, 8, 16) > 0, P("x"))], "select"),
    "erf": (lambda a: lax.erf(a) + lax.reduce_precision(a, 8, 7), [(data(8, 16), P("x", "y"))],
            "erf"),
    "exactly": (lambda a, b: jnp.dot(a, b, precision=lax.DotAlgorithmPreset.F32_F32_F32),
                [(data(16, 32), P(None, "x")), (data(32, 8), P("x"))], "algorithm="),
    "solved": (lambda a, b: lax.linalg.triangular_solve(a + 4 * jnp.eye(4), b, left_side=True,
                                                        lower=True, transpose_a=True),
               [(data(8, 4, 4), P("x")), (data(8, 4, 2), P("x"))], "triangular-solve"),
    "first": (lambda a: (jnp.argmax(a, 1), jnp.cumsum(a, 1)), [(data(8, 16), P("x"))], "reduce"),
    "rotated": (lambda a: a * np.exp(1j * np.arange(6)).astype(np.complex64),
                [(data(8, 6), P("x"))], "c64[6]"),
    "at_odds": (lambda a: jnp.where(np.arange(6) % 3 == 1, a, -a), [(data(8, 6), P("x"))],
                "pred[6]"),
    "nothing": (lambda a, b: (a.sum(0), b.T), [(data(0, 8), P(None, "x")), (data(4, 0), P("x"))],
                "constant"),
    "bits": (lambda a: jnp.concatenate([a, a[::-1]]).astype(jnp.int4).astype(jnp.int32) +
             jnp.array([[1, -2, 7]], jnp.int4).astype(jnp.int32), [(ints(7, 8, 3), P("x"))], "s4"),
}


def shown(compiled, n):
    """The module that the executable shows, compiled by XLA for the CPU as it stands.

    XLA would partition a module of several partitions anew: as replicas they are left alone.
    """
    module, = compiled.runtime_executable().hlo_modules()
    text = re.sub(r"spmd_\w+sharding\w*=\{.*?\}\}?, ", "", module.to_string())
    text = re.sub(r"channel_id=\d+, |, use_global_device_ids=true", "", text)
    module = hlo_module_from_text(text.replace("partition-id()", "replica-id()"))
    computation = XlaComputation(module.as_serialized_hlo_module_proto())
    cpus = jax.devices("cpu")[:n]
    options = CompileOptions()
    options.num_replicas = n
    options.executable_build_options.num_replicas = n
    options.executable_build_options.device_assignment = DeviceAssignment.create(
        np.arange(n).reshape(n, 1))
    return cpus[0].client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        _jax.DeviceList(tuple(cpus)), options)


def on(platform, args):
    mesh = jax.sharding.Mesh(np.array(jax.devices(platform)[:8]).reshape(4, 2), ("x", "y"))
    return mesh, [jax.device_put(x, NamedSharding(mesh, p)) for x, p in args]


def compare(f, args, word):
    mesh, ours = on("tessera", args)
    with jax.set_mesh(mesh):
        compiled = jax.jit(f).lower(*ours).compile()
        got = jax.tree.leaves(compiled(*ours))
    text = compiled.as_text()
    assert word in text, f"no {word} in {text}"
    assert "num_partitions=8" in text, text
    xla = shown(compiled, 8).execute_sharded(on("cpu", args)[1])
    parts = xla.disassemble_into_single_device_arrays()
    assert len(parts) == len(got), (len(parts), len(got))
    order = {d: i for i, d in enumerate(jax.devices("tessera"))}
    for a, members in zip(got, parts):
        for s in a.addressable_shards:
            x, y = np.asarray(s.data), np.asarray(members[order[s.device]])
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def main():
    for name, (f, args, word) in PROGRAMS.items():
        wrong = ""
        try:
            compare(f, args, word)
        except Exception:    # noqa: BLE001: the test's message
            wrong = traceback.format_exc()[-3000:]
        print(json.dumps([name, wrong]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
