# SPDX-License-Identifier: Apache-2.0
"""Writes programs with dims of bounded size, as MLIR bytecode and as HLO modules by XLA's own
converter, with arguments and results: sizes of 0, 1, one less than the bound and the bound.

    JAX_PLATFORMS=cpu python tests/data/dynamic/make.py

Results are numpy's, of arrays that are as short as their sizes. XLA's CPU backend must give the
same, but for what is in NOT_XLA: why, and of which sizes it gives the same (None: of none). A
program's arrays stand in NAME.arrays as those of tests/data/torch do, one run behind the other.
"""

import itertools
import pathlib

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "1.14.0"
TYPES = {"f32": np.float32, "i32": np.int32, "i1": np.bool_, "bf16": ml_dtypes.bfloat16,
         "i64": np.int64, "f64": np.float64}
NAMES = {"float32": "f32", "int32": "s32", "bool": "pred", "bfloat16": "bf16", "int64": "s64",
         "float64": "f64"}
NOT_XLA = {}
SUM = """{{
  ^bb0(%l: tensor<{0}>, %r: tensor<{0}>):
    %both = stablehlo.{1} %l, %r : tensor<{0}>
    stablehlo.return %both : tensor<{0}>
  }}"""


def bounded(elem, *dims):
    """The type with dims as numbers, and as texts ("5": at most 5)."""
    if not any(isinstance(d, str) for d in dims):
        return f"tensor<{''.join(f'{d}x' for d in dims)}{elem}>"
    shape = "".join("?x" if isinstance(d, str) else f"{d}x" for d in dims)
    bounds = ", ".join(d if isinstance(d, str) else "?" for d in dims)
    return f"tensor<{shape}{elem}, #stablehlo.bounds<{bounds}>>"


class Program:
    """Arguments are arrays (elem, dims) as above, each dim with a bound being set by one more
    argument, a size; dims given the same letter ("5:a") share it."""

    def __init__(self, name, args, body, results, reference, cases=None):
        self.name, self.body, self.results, self.reference = name, body, results, reference
        self.args, self.sizes = args, []
        for _, dims in args:
            for d in dims:
                if isinstance(d, str) and self.size_name(d) not in self.sizes:
                    self.sizes.append(self.size_name(d))
        self.bounds = {self.size_name(d): int(d.split(":")[0]) for _, dims in args for d in dims
                       if isinstance(d, str)}
        self.cases = cases

    @staticmethod
    def size_name(d):
        return d.split(":")[1] if ":" in d else f"n{d}"

    def text(self, with_sizes=False):
        lines, params = [], []
        for i, (elem, dims) in enumerate(self.args):
            plain = [int(d.split(":")[0]) if isinstance(d, str) else d for d in dims]
            last = max((at for at, d in enumerate(dims) if isinstance(d, str)), default=-1)
            name = f"%x{i}" if last < 0 else f"%x{i}_"
            params.append(f"{name}: {bounded(elem, *plain)}")
            now = list(plain)
            for at, d in enumerate(dims):
                if isinstance(d, str):
                    before = bounded(elem, *now)
                    now[at] = d.split(":")[0]
                    to = f"%x{i}" if at == last else f"%x{i}_{at}"
                    lines.append(f"{to} = stablehlo.set_dimension_size {name}, "
                                 f"%{self.size_name(d)}, dim = {at} : ({before}, tensor<i32>) "
                                 f"-> {bounded(elem, *now)}")
                    name = to
        params += [f"%{n}: tensor<i32>" for n in self.sizes]
        outs = [f"%r{i}" for i in range(len(self.results))]
        types = [bounded(*t) for t in self.results]
        tail = []
        for i, (_, *dims) in enumerate(self.results if with_sizes else []):
            for at, d in enumerate(dims):
                tail.append(f"%z{i}_{at} = stablehlo.get_dimension_size %r{i}, dim = {at} : "
                            f"({bounded(*self.results[i])}) -> tensor<i32>")
                outs.append(f"%z{i}_{at}")
                types.append("tensor<i32>")
        return (f"module @{self.name} {{ func.func @main({', '.join(params)}) -> "
                f"({', '.join(types)}) {{\n" + "\n".join(lines) + "\n" + self.body + "\n" +
                "\n".join(tail) + f"\nreturn {', '.join(outs)} : {', '.join(types)} }} }}")

    def runs(self):
        values = self.cases or itertools.product(*(
            sorted({0, 1, self.bounds[n] - 1, self.bounds[n]}) for n in self.sizes))
        for sizes in values:
            yield dict(zip(self.sizes, sizes))

    def inputs(self, sizes, rng):
        full, cut = [], []
        for elem, dims in self.args:
            plain = [int(d.split(":")[0]) if isinstance(d, str) else d for d in dims]
            x = np.round(rng.standard_normal(plain) * 4)
            x = (x > 0) if elem == "i1" else x.astype(TYPES[elem])
            at = tuple(slice(0, min(max(sizes[self.size_name(d)], 0), int(d.split(":")[0])))
                       if isinstance(d, str) else slice(None) for d in dims)
            cut.append(x[at].copy())
            if elem in ("f32", "f64", "bf16"):      # what must not be seen
                past = np.full_like(x, np.inf)
                past[at] = x[at]
                x = past
            full.append(x)
        return full, cut


class Oracle:
    def __init__(self, program):
        device = jax.devices("cpu")[0]
        self.program = program
        self.run = device.client.compile_and_load(
            program.text(True), xla_client.DeviceList((device,)), xla_client.CompileOptions())

    def __call__(self, args):
        n = len(self.program.results)
        out = self.run.execute_sharded([jax.device_put(a) for a in args])
        out = [np.asarray(a[0]) for a in out.disassemble_into_single_device_arrays()]
        sizes = iter(int(z) for z in out[n:])
        dims = [[next(sizes) for _ in dims] for _, *dims in self.program.results]
        # What counts lies at the beginning, without gaps.
        return [out[i].reshape(-1)[:int(np.prod(d))].reshape(d) for i, d in enumerate(dims)]


def pack(arrays):
    lines = [" ".join([kind, NAMES[a.dtype.name], *map(str, a.shape)]) for kind, a in arrays]
    return "\n".join(lines).encode() + b"\n\n" + b"".join(a.tobytes() for _, a in arrays)


def write(program):
    rng = np.random.default_rng(len(program.name))
    oracle = None if NOT_XLA.get(program.name, (0, 0))[1] is None else Oracle(program)
    arrays = []
    for sizes in program.runs():
        full, cut = program.inputs(sizes, rng)
        held = {n: min(max(v, 0), program.bounds[n]) for n, v in sizes.items()}
        args = full + [np.int32(v) for v in sizes.values()]
        want = program.reference(*cut, **held)
        want = [np.asarray(w, dtype=TYPES[t[0]])
                for w, t in zip(want if isinstance(want, tuple) else (want,), program.results)]
        if oracle and all(v == held[n] for n, v in sizes.items()) and \
                NOT_XLA.get(program.name, (None, lambda **_: True))[1](**sizes):
            for got, w in zip(oracle(args), want):
                assert got.shape == w.shape, (program.name, sizes, got.shape, w.shape)
                assert np.allclose(got.astype(np.float64), w.astype(np.float64), 1e-6, 1e-6,
                                   equal_nan=True), (program.name, sizes, got, w)
        arrays += [("in", np.asarray(a)) for a in args] + [("out", w) for w in want]
    (HERE / f"{program.name}.arrays").write_bytes(pack(arrays))
    with mlir.make_ir_context() as context:
        module = ir.Module.parse(program.text(), context)
        (HERE / f"{program.name}.mlirbc").write_bytes(
            stablehlo.serialize_portable_artifact(module, VERSION))
    # XLA's converter drops the bound of a dim that is taken apart, and gives one to a part.
    if not program.name.startswith(("shaped_", "expand", "slice_static")):
        hlo = _jax.mlir.mlir_module_to_xla_computation(program.text(), use_tuple_args=False,
                                                       return_tuple=True)
        (HERE / f"{program.name}.hlo").write_bytes(hlo.as_serialized_hlo_module_proto())


def main():
    from programs import PROGRAMS, REFUSED_BY_XLA
    NOT_XLA.update(REFUSED_BY_XLA)
    for program in PROGRAMS:
        write(program)


if __name__ == "__main__":
    main()
