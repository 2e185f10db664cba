# SPDX-License-Identifier: Apache-2.0
"""Programs of several replicas that have several partitions each, for unit/rt/rt_grid_test.

    python3 tests/data/spmd/grid/make.py

Collectives in all four ways in which StableHLO's specification names who meets, JAX's call
ragged_all_to_all, and main arguments that are cut among the partitions of each replica. What
they give is worked out here by numpy, member by member, as the specification says. Needs JAX,
for its dialects and writer.

Writes grid.bin: for each program `program NAME REPLICAS PARTITIONS BYTES ARGUMENTS RESULTS\\n`
and its bytecode, and for each array, with the member as one more dim in front,
`array DIMSxDIMS\\n` and its f32.
"""

import pathlib

import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).resolve().parent
GRIDS = [(2, 2), (2, 4), (4, 2)]
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = %d>"
REDUCE = """({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %s = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""


# ---- who meets ----

def groups_of(way, groups, R, P):
    """Rows of (replica, partition), as the specification's functions of these names."""
    if way == "cross_replica":
        return [[(r, p) for r in g] for g in groups for p in range(P)]
    if way == "cross_partition":
        return [[(r, p) for p in g] for g in groups for r in range(R)]
    if way == "cross_replica_and_partition":
        return [[(r, p) for p in range(P) for r in g] for g in groups]
    return [[divmod(i, P) for i in g] for g in groups]


def count_of(way, R, P):
    return {"cross_partition": P, "flattened_ids": R * P}.get(way, R)


def attributes_of(way):
    if way == "cross_replica":
        return ""
    flag = ", use_global_device_ids" if way == "flattened_ids" else ""
    return f", {CHANNEL % 1}{flag}"


def matrix(rows):
    width = max(map(len, rows))
    rows = [list(r) + [-1] * (width - len(r)) for r in rows]
    return f"dense<{rows}> : tensor<{len(rows)}x{width}xi64>"


# ---- arrays of members: [R * P, ...] ----

def brought(members, *shape):
    """Whole numbers, another one for each element of each member, small enough to add up."""
    n = int(np.prod(shape))
    x = np.arange(members)[:, None] * 131 + np.arange(n) * 7
    return (x % 251 - 100).astype(np.float32).reshape(members, *shape)


def place(rows, P):
    """member -> its row, as members, and its place there."""
    at = {}
    for row in rows:
        ids = [r * P + p for r, p in row]
        for i, m in enumerate(ids):
            at[m] = ids, i
    return at


def all_reduce(x, at):
    return np.stack([x[at[m][0]].sum(0) for m in range(len(x))])


def all_gather(x, at):
    return np.stack([np.concatenate(list(x[at[m][0]]), 1) for m in range(len(x))])


def reduce_scatter(x, at):
    out = []
    for m in range(len(x)):
        ids, i = at[m]
        out.append(np.split(x[ids].sum(0), len(ids), 0)[i])
    return np.stack(out)


def all_to_all(x, at):
    out = []
    for m in range(len(x)):
        ids, i = at[m]
        out.append(np.concatenate([np.split(x[k], len(ids), 1)[i] for k in ids], 0))
    return np.stack(out)


def broadcast(x, at):
    return np.stack([x[at[m][0][0]] if m in at else np.zeros_like(x[m]) for m in range(len(x))])


def permute(x, pairs, P):
    out = np.zeros_like(x)
    for (r, p), (s, q) in pairs:
        out[s * P + q] = x[r * P + p]
    return out


# ---- programs ----

def type_of(x):
    return f"tensor<{'x'.join(map(str, x.shape[1:]))}xf32>"


def plain(x, out, op, attributes, region=""):
    """One collective of what each member brings."""
    return f"""func.func @main(%a: {type_of(x)}) -> {type_of(out)} {{
%r = "stablehlo.{op}"(%a) {region} {{{attributes}}} : ({type_of(x)}) -> {type_of(out)}
return %r : {type_of(out)} }}"""


def groupings(n):
    """All; two rows against their order; far ones together."""
    yield "all", [list(range(n))]
    yield "turned", [list(range(n))[::-1][:n // 2], list(range(n))[::-1][n // 2:]]
    if n > 2:
        yield "far", [list(range(0, n, 2)), list(range(1, n, 2))]


def collectives(R, P):
    M = R * P
    reducing = ["cross_replica", "cross_replica_and_partition", "flattened_ids"]
    ops = {"all_reduce": (all_reduce, reducing), "all_gather": (all_gather, reducing),
           "reduce_scatter": (reduce_scatter, reducing),
           "all_to_all": (all_to_all, ["cross_replica", "cross_partition"]),
           "collective_broadcast": (broadcast, ["cross_replica", "cross_partition"])}
    for op, (fn, ways) in ops.items():
        for way in ways:
            n = count_of(way, R, P)
            choices = dict(groupings(n))
            if op == "all_reduce" and n > 2:
                choices["uneven"] = [list(range(1, n)), [0]]
            if op == "collective_broadcast" and n > 2:
                choices["some"] = [[2, 0]]
            for name, rows in choices.items():
                at = place(groups_of(way, rows, R, P), P)
                x = brought(M, 8, 8)
                out = fn(x, at)
                size = len(next(iter(at.values()))[0])
                more = {"all_gather": ", all_gather_dim = 1 : i64",
                        "reduce_scatter": ", scatter_dimension = 0 : i64",
                        "all_to_all": ", split_dimension = 1 : i64, concat_dimension = 0 : i64, "
                                      f"split_count = {size} : i64"}.get(op, "")
                text = plain(x, out, op, f"replica_groups = {matrix(rows)}{more}" +
                             attributes_of(way), REDUCE if "reduce" in op else "")
                yield f"{op}.{way}.{name}", text, [x], [out]
    for way in "cross_replica", "cross_partition":
        n = count_of(way, R, P)
        ring = [(i, (i + 1) % n) for i in range(n)]
        for name, pairs in ("ring", ring), ("one", [(n - 1, 0)]), ("self", [(0, 0), (1, 1)]):
            whole = [q for s, t in pairs for q in (
                [((s, p), (t, p)) for p in range(P)] if way == "cross_replica" else
                [((r, s), (r, t)) for r in range(R)])]
            x = brought(M, 3, 5)
            list_ = f"dense<{[list(p) for p in pairs]}> : tensor<{len(pairs)}x2xi64>"
            out = permute(x, whole, P)
            yield f"collective_permute.{way}.{name}", plain(
                x, out, "collective_permute", f"source_target_pairs = {list_}" +
                attributes_of(way)), [x], [out]


# ---- rows by the number ----

def ragged_all_to_all(x, y, lists, at):
    """lists: [members, 3, entries]: from, how many, to. What leaves an array is not sent."""
    out = y.copy()
    for m in range(len(x)):
        group, i = at[m]
        for k in group:
            u = lists.shape[2] // len(group)
            for start, size, to in lists[k, :, i * u:(i + 1) * u].T.astype(int):
                for n in range(size):
                    if 0 <= start + n < x.shape[1] and 0 <= to + n < y.shape[1]:
                        out[m, to + n] = x[k, start + n]
    return out


def lists_for(at, u, rows, rng):
    """Any rows of anyone's, behind each other at the receiver."""
    lists = np.zeros((len(at), 3, u * len(at[0][0])), np.float32)
    for m, (group, i) in at.items():
        to = 0
        for k in group:
            for e in range(i * u, (i + 1) * u):
                size = rng.integers(0, 4)
                lists[k, :, e] = rng.integers(-1, rows), size, to - (m == 0)
                to += size
    return lists


def ragged(R, P):
    for way in "cross_replica", "cross_partition":
        for name, rows in groupings(count_of(way, R, P)):
            for u, shape in (1, (16,)), (2, (24, 3)):
                at = place(groups_of(way, rows, R, P), P)
                x, y = brought(R * P, *shape), -brought(R * P, 20, *shape[1:]) - 1000
                lists = lists_for(at, u, shape[0], np.random.default_rng(u))
                n = lists.shape[2]
                parts = "".join(f"""
%s{i} = stablehlo.slice %i [{i}:{i + 1}, 0:{n}] : (tensor<3x{n}xi32>) -> tensor<1x{n}xi32>
%l{i} = stablehlo.reshape %s{i} : (tensor<1x{n}xi32>) -> tensor<{n}xi32>""" for i in range(3))
                dictionary = f"replica_groups = {matrix(rows)}" + (
                    ", channel_id = 1 : i64" if way == "cross_partition" else "")
                yield f"ragged.{way}.{name}.{u}", f"""func.func @main(%x: {type_of(x)},
  %y: {type_of(y)}, %l: {type_of(lists)}) -> {type_of(y)} {{
%i = stablehlo.convert %l : ({type_of(lists)}) -> tensor<3x{n}xi32>{parts}
%r = stablehlo.custom_call @ragged_all_to_all(%x, %y, %l0, %l1, %l2, %l1) {{
  api_version = 4 : i32, backend_config = {{{dictionary}}}}} : ({type_of(x)}, {type_of(y)},
  tensor<{n}xi32>, tensor<{n}xi32>, tensor<{n}xi32>, tensor<{n}xi32>) -> {type_of(y)}
return %r : {type_of(y)} }}""", [x, y, lists], [ragged_all_to_all(x, y, lists, at)]


def ids(R, P):
    out = np.array([[10 * r + p] for r in range(R) for p in range(P)], np.float32)
    yield "ids", """func.func @main() -> tensor<1xf32> {
%r = stablehlo.replica_id : tensor<ui32>
%p = stablehlo.partition_id : tensor<ui32>
%a = stablehlo.convert %r : (tensor<ui32>) -> tensor<f32>
%b = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
%t = stablehlo.constant dense<1.0e1> : tensor<f32>
%c = stablehlo.multiply %a, %t : tensor<f32>
%d = stablehlo.add %c, %b : tensor<f32>
%e = stablehlo.reshape %d : (tensor<f32>) -> tensor<1xf32>
return %e : tensor<1xf32> }""", [], [out]


# ---- arguments that are cut among each replica's partitions ----

def cut(whole, dim, P, order=None):
    """[R, ...] -> [R * P, ...], dim of a replica's array cut (None: each has it all); part i
    goes to partition order[i]."""
    parts = [np.split(w, P, dim) if dim is not None else [w] * P for w in whole]
    order = list(order or range(P))
    return np.stack([r[order.index(p)] for r in parts for p in range(P)])


def rows_of(P, rank, dim):
    return f"{{devices=[{','.join(str(P if d == dim else 1) for d in range(rank))}]<=[{P}]}}"


def sharded(R, P):
    x, w = brought(R, 8, 16) % 8, brought(R + 1, 16, 8)[:R] % 5
    y = np.einsum("rbd,rdf->rbf", x, w)
    over = [list(range(R))]
    replicas = f"replica_groups = {matrix(over)}"
    reduced = np.broadcast_to(y.sum(0), y.shape)

    # Columns of the weights, then the sum over dim 0 of all, of all replicas.
    def dot(name, xs, ws, out, result, want):
        text = f"""func.func @main(%x: tensor<8x16xf32> {{mhlo.sharding = "{xs[0]}"}},
  %w: tensor<16x8xf32> {{mhlo.sharding = "{ws[0]}"}}) ->
  (tensor<8x8xf32> {{mhlo.sharding = "{out[0]}"}}) {{
%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
  (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
{result}
return %r : tensor<8x8xf32> }}"""
        return name, text, [cut(x, xs[1], P, *xs[2:]), cut(w, ws[1], P)], \
            [cut(want, out[1], P, *out[2:])]

    everywhere = ("{replicated}", None)
    same = "%r = stablehlo.negate %y : tensor<8x8xf32>"
    total = f"""%r = "stablehlo.all_reduce"(%y) {REDUCE} {{{replicas}}} :
  (tensor<8x8xf32>) -> tensor<8x8xf32>"""
    first, second = (rows_of(P, 2, 0), 0), (rows_of(P, 2, 1), 1)
    yield dot("dot.rows", first, everywhere, first, same, -y)
    yield dot("dot.columns", everywhere, second, everywhere, same, -y)
    yield dot("dot.contracted", second, first, everywhere, same, -y)
    yield dot("dot.contracted_cut", second, first, second, same, -y)
    yield dot("dot.turned", first, second, second, same, -y)
    order = [3, 1, 0, 2] if P == 4 else [1, 0]
    mixed = f"{{devices=[{P},1]{','.join(map(str, order))}}}", 0, order
    yield dot("dot.other_order", mixed, everywhere, mixed, same, -y)
    yield dot("dot.other_order_in", mixed, everywhere, first, same, -y)
    yield dot("dot.other_order_out", second, first, mixed, total, reduced)
    yield dot("dot.rows_all_replicas", first, everywhere, first, total, reduced)
    yield dot("dot.contracted_all_replicas", second, first, everywhere, total, reduced)

    # Each partition's part by itself, and a sum over all members.
    part = 8 // P
    local = cut(x, 0, P)
    want = np.broadcast_to(local.sum(0), local.shape)
    everybody = matrix([list(range(R * P))])
    for name, way, rows in (("flattened", f", {CHANNEL % 1}, use_global_device_ids", everybody),
                            ("both", f", {CHANNEL % 1}", matrix(over))):
        yield f"manual.{name}", f"""func.func @main(%x: tensor<8x16xf32> {{mhlo.sharding =
  "{first[0]}"}}) -> (tensor<8x16xf32> {{mhlo.sharding = "{first[0]}"}}) {{
%0 = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{first[0]}"}} :
  (tensor<8x16xf32>) -> tensor<8x16xf32>
%1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} :
  (tensor<8x16xf32>) -> tensor<{part}x16xf32>
%2 = "stablehlo.all_reduce"(%1) {REDUCE} {{replica_groups = {rows}{way}}} :
  (tensor<{part}x16xf32>) -> tensor<{part}x16xf32>
%3 = stablehlo.custom_call @Sharding(%2) {{mhlo.sharding = "{{manual}}"}} :
  (tensor<{part}x16xf32>) -> tensor<{part}x16xf32>
%4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {{mhlo.sharding = "{first[0]}"}} :
  (tensor<{part}x16xf32>) -> tensor<8x16xf32>
return %4 : tensor<8x16xf32> }}""", [local], [want]


# ---- the file ----

def bytecode(text, R, P):
    with mlir.make_ir_context():
        module = ir.Module.parse(f"module attributes {{mhlo.num_replicas = {R} : i32, "
                                 f"mhlo.num_partitions = {P} : i32}} {{ {text} }}")
        return stablehlo.serialize_portable_artifact(module, "1.17.0", True)


def main():
    with open(HERE / "grid.bin", "wb") as f:
        for R, P in GRIDS:
            for kind in collectives, ragged, ids, sharded:
                for name, text, args, outs in kind(R, P):
                    code = bytecode(text, R, P)
                    f.write(f"program {name} {R} {P} {len(code)} {len(args)} {len(outs)}\n"
                            .encode() + code)
                    for a in (*args, *outs):
                        f.write(f"array {'x'.join(map(str, a.shape))}\n".encode() +
                                np.ascontiguousarray(a, np.float32).tobytes())


if __name__ == "__main__":
    main()
