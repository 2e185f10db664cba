# SPDX-License-Identifier: Apache-2.0
"""Packs programs that torch_xla sent, with their arguments and results, for the C tests.

    python3 tests/data/torch/make.py FOLDER [NAME...]
    python3 tests/data/torch/make.py FOLDER/replicated --replicated

FOLDER holds, for each program, NAME.hlo.pb (a serialized HloModuleProto) and NAME.npz (in0,
..., out0, ... in the order of Execute's lists, and `meta`: JSON with the dtypes and whether
the results are random). Writes NAME.hlo and NAME.arrays here, and NAME.mlirbc by jaxlib's
converter where that can; README.md has the form. --replicated: programs that all of four
replicas ran, into replicated/, whose arrays have the replica as one more dim in front.
"""

import json
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def to_bf16(a):
    """Whose values are bfloat16's already."""
    return (np.ascontiguousarray(a, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def pack(npz):
    with np.load(npz) as z:
        meta = json.loads(bytes(z["meta"]))
        lines, data = [], []
        if meta["rng"]:
            lines.append("random")
        for kind in "in", "out":
            for i, dtype in enumerate(meta["dtypes"][kind]):
                a = z[f"{kind}{i}"]
                lines.append(" ".join([kind, dtype, *map(str, a.shape)]))
                data.append((to_bf16(a) if dtype == "bf16" else a).tobytes())
    return ("\n".join(lines) + "\n\n").encode() + b"".join(data)


# The converter ends the process or gives other programs of these; or they are many of a kind.
NOT_AS_MLIR = re.compile(r"spmd|all_to_all|reduce_scatter_list|params_3301|randperm|complex\.1|"
                         r"eigh|inv_det\.1|masked_scatter|debug|"
                         r"lbfgs_free\.([2-9]|[1-3][0-9])$")


def to_mlir(hlo):
    from jaxlib import _jax
    return _jax.mlir.serialize_portable_artifact(_jax.mlir.hlo_to_stablehlo(hlo), "1.13.0")


def pack_replicated(folder):
    for program in sorted(pathlib.Path(folder).glob("*.hlo.pb")):
        name = program.name[:-len(".hlo.pb")]
        arrays = program.with_name(f"{name}.npz")
        if not arrays.exists():
            continue
        with np.load(arrays) as z:
            if json.loads(bytes(z["meta"]))["ranks"] != [0, 1, 2, 3]:
                continue
        (HERE / "replicated" / f"{name}.hlo").write_bytes(program.read_bytes())
        (HERE / "replicated" / f"{name}.arrays").write_bytes(pack(arrays))


def main(folder, *names):
    if names == ("--replicated",):
        pack_replicated(folder)
        return
    for program in sorted(pathlib.Path(folder).glob("*.hlo.pb")):
        name = program.name[:-len(".hlo.pb")]
        if names and name not in names:
            continue
        (HERE / f"{name}.hlo").write_bytes(program.read_bytes())
        arrays = program.with_name(f"{name}.npz")
        if arrays.exists():
            (HERE / f"{name}.arrays").write_bytes(pack(arrays))
            if not NOT_AS_MLIR.search(name):
                (HERE / f"{name}.mlirbc").write_bytes(to_mlir(program.read_bytes()))


if __name__ == "__main__":
    main(*sys.argv[1:])
