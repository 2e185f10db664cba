# SPDX-License-Identifier: Apache-2.0
"""Programs over several devices: run as a program, each on 8 devices of tessera and on 8 of JAX's
CPU backend, prints a line of JSON for each: its name, and what is wrong ("" if nothing).
test_devices.py runs it.

A case takes 8 devices and gives arrays. Their values must agree, and which device has which part of
each.
"""

import json
import sys
import threading
import traceback

if __name__ == "__main__":
    import eight_cpus  # noqa: F401: before jax

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

CASES = {}
RTOL = 2e-5     # of the largest number of an array: sums are in another order


def case(f):
    CASES[f.__name__] = f
    return f


def mesh(devices, shape, names, axis_type=AxisType.Auto):
    n = int(np.prod(shape))
    return Mesh(np.array(devices[:n]).reshape(shape), names, axis_types=(axis_type,) * len(names))


def data(*shape, seed=0, dtype=np.float32):
    x = np.random.RandomState(seed + sum(shape)).uniform(-1, 1, shape)
    return (x * 100 if np.issubdtype(dtype, np.integer) else x).astype(dtype)


def put(m, x, *spec):
    return jax.device_put(x, NamedSharding(m, P(*spec)))


# ---- jit: data, tensors, parameters shared out ----

@case
def elementwise_over_two_axes(d):
    m = mesh(d, (4, 2), ("x", "y"))
    return jax.jit(lambda a: jnp.sin(a) * 2 + 1)(put(m, data(16, 8), "x", "y"))


@case
def products_with_any_sharding(d):
    m = mesh(d, (4, 2), ("x", "y"))
    f = jax.jit(lambda a, b: a @ b)
    specs = [(), ("x",), (None, "x"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))]
    return [f(put(m, data(16, 32), *p), put(m, data(32, 24), *q)) for p in specs for q in specs]


def mlp(params, x):
    (w1, b1), (w2, b2) = params
    return jnp.tanh(x @ w1 + b1) @ w2 + b2


def mlp_loss(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def mlp_params(place):
    return [(place(data(32, 64, seed=1), 0), place(data(64, seed=2), 1)),
            (place(data(64, 8, seed=3), 2), place(data(8, seed=4), 3))]


@case
def data_parallel_training(d):
    m = mesh(d, (8,), ("data",))
    params = mlp_params(lambda a, i: put(m, a))
    x, y = put(m, data(64, 32), "data"), put(m, data(64, 8), "data")
    step = jax.jit(lambda p, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, p,
                                                jax.grad(mlp_loss)(p, x, y)))
    for _ in range(5):
        params = step(params, x, y)
    return params


@case
def tensor_parallel_gradients(d):
    m = mesh(d, (2, 4), ("data", "model"))
    specs = [(None, "model"), ("model",), ("model", None), ()]
    params = mlp_params(lambda a, i: put(m, a, *specs[i]))
    x, y = put(m, data(32, 32), "data"), put(m, data(32, 8), "data")
    return jax.jit(jax.value_and_grad(mlp_loss))(params, x, y)


@case
def parameters_shared_out_and_donated(d):
    m = mesh(d, (8,), ("all",))
    specs = [("all",), ("all",), ("all",), ("all",)]
    params = mlp_params(lambda a, i: put(m, a, *specs[i]))
    shardings = jax.tree.map(lambda a: a.sharding, params)
    x, y = put(m, data(64, 32), "all"), put(m, data(64, 8), "all")

    def step(p, x, y):
        loss, g = jax.value_and_grad(mlp_loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), loss

    step = jax.jit(step, donate_argnums=0, out_shardings=(shardings, NamedSharding(m, P())))
    losses = []
    for _ in range(5):
        old = params
        params, loss = step(params, x, y)
        losses.append(loss)
        assert all(a.is_deleted() for a in jax.tree.leaves(old))
    return params, losses


@case
def attention_with_heads_shared_out(d):
    m = mesh(d, (2, 4), ("batch", "heads"))

    def attend(q, k, v):
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)

    q, k, v = (put(m, data(4, 12, 8, 16, seed=s), "batch", None, "heads") for s in range(3))
    return jax.jit(jax.value_and_grad(lambda *a: attend(*a).sum(), argnums=(0, 1, 2)))(q, k, v)


@case
def convolution_over_space(d):
    m = mesh(d, (2, 4), ("n", "h"))
    x = put(m, data(4, 16, 8, 3), "n", "h")
    w = put(m, data(3, 3, 3, 8))
    return jax.jit(lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))(x, w)


@case
def along_what_is_shared_out(d):
    m = mesh(d, (8,), ("x",))
    a = put(m, data(32, 6), "x")
    return [jax.jit(f)(a) for f in (
        lambda a: jnp.sort(a, 0), lambda a: jnp.cumsum(a, 0), lambda a: a[::-1],
        lambda a: jnp.roll(a, 3, 0), lambda a: a[1:] - a[:-1], lambda a: a.reshape(8, 24),
        lambda a: jnp.argmax(a, 0), lambda a: a[5], lambda a: jnp.concatenate([a, a * 2]),
        lambda a: jnp.pad(a, ((3, 1), (0, 0))), lambda a: a.at[4:9].set(0), lambda a: a.T)]


@case
def uneven_within(d):
    m = mesh(d, (8,), ("x",))

    def f(a):
        b = lax.with_sharding_constraint(a[1:] * 2, NamedSharding(m, P("x")))
        return b.sum(), jnp.max(b, 0), b @ b.T
    return jax.jit(f)(put(m, data(16, 6), "x"))


@case
def joined_of_what_is_uneven_along_two_axes(d):
    m = mesh(d, (4, 2), ("x", "y"))
    args = put(m, data(24, 24), "x", "y"), put(m, data(3, 23))

    def f(a, b, dim):
        z = jnp.concatenate([a[1:, 1:] * 2 + 1, b if dim == 0 else b.T], dim) * 3
        return z, z.sum(0), jnp.max(z, 1)
    return [jax.jit(f, static_argnums=2)(*args, dim) for dim in (0, 1)]


@case
def slices_joined_with_what_is_uneven_along_another_axis(d):
    m = mesh(d, (4, 2), ("x", "y"))
    f = jax.jit(lambda a, b: jnp.concatenate([a[1:, 1:] * 2 + 1, b[:9]]) * 3)
    return f(put(m, data(24, 24), "x", "y"), put(m, data(24, 23), "x"))


@case
def results_where_they_are_asked_for(d):
    m = mesh(d, (4, 2), ("x", "y"))
    a = put(m, data(16, 8), "x", "y")
    specs = [P(), P("y"), P(None, "x"), P(("x", "y")), P(("y", "x")), P("y", "x")]
    return [jax.jit(lambda a: a + 1, out_shardings=NamedSharding(m, p))(a) for p in specs]


@case
def arguments_that_nobody_placed(d):
    m = mesh(d, (8,), ("x",))
    f = jax.jit(lambda a, b, c: (a * c, b + c), in_shardings=(NamedSharding(m, P("x")), None, None),
                out_shardings=(None, NamedSharding(m, P("x"))))
    return f(data(16, 4), put(m, data(8)), 3.0)


@case
def random_numbers_do_not_depend_on_the_mesh(d):
    m = mesh(d, (4, 2), ("x", "y"))
    f = jax.jit(lambda k: jax.random.normal(k, (16, 8)),
                out_shardings=NamedSharding(m, P("x", "y")))
    return f(jax.device_put(jax.random.key(3), NamedSharding(m, P())))


@case
def explicit_axes(d):
    m = mesh(d, (4, 2), ("x", "y"), AxisType.Explicit)
    with jax.sharding.set_mesh(m):
        a, b = put(m, data(16, 8), "x", "y"), put(m, data(8, 12), None, None)
        f = jax.jit(lambda a, b: (jnp.sin(a) * 2, jnp.einsum(
            "ij,jk->ik", a, b, out_sharding=P("x", None))))
        return f(a, b)


# ---- meshes ----

@case
def meshes_of_any_devices_in_any_order(d):
    out = []
    for order in ([7, 6, 5, 4, 3, 2, 1, 0], [3, 1, 0, 2], [5, 0], [6, 2, 4],
                  [1, 7, 2, 5, 4, 0], [3]):
        n = len(order)
        m = mesh([d[i] for i in order], (n,), ("x",))
        a = put(m, data(n * 2, 6), "x")
        out += jax.jit(lambda a: (a * 2, a.sum(0), a @ a.T))(a)
    return out


@case
def programs_on_meshes_that_overlap(d):
    meshes = [mesh(d, (8,), ("x",)), mesh(d[2:6], (4,), ("x",)), mesh(d[::-2], (4,), ("x",)),
              mesh([d[7], d[0]], (2,), ("x",))]
    f = jax.jit(lambda a: (a * a).sum(0) + a)
    results, failed = [[] for _ in range(8)], []

    def work(i):
        try:
            for k in range(40):
                m = meshes[(i + k) % 4]
                results[i].append(f(put(m, np.full((8, 4), i + k, np.float32), "x")))
        except Exception as e:    # noqa: BLE001: told by the main thread
            failed.append(e)

    # XLA's CPU backend waits for ever where threads launch in different orders.
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
        if d[0].platform == "cpu":
            t.join()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return results


# ---- moving ----

@case
def arrays_move_to_other_shardings(d):
    m, other = mesh(d, (4, 2), ("x", "y")), mesh(d[::-1], (8,), ("z",))
    a = put(m, data(16, 8), "x", "y")
    one = jax.device_put(a, SingleDeviceSharding(d[5]))
    return [jax.device_put(a, NamedSharding(m, P("y"))), one, put(m, one, None, "x"),
            jax.device_put(a, NamedSharding(other, P("z"))),
            jax.make_array_from_callback((16, 8), NamedSharding(other, P(None, "z")),
                                         lambda i: data(16, 8)[i])]


# ---- shard_map ----

def shmap(m, f, i, o, **kw):
    return jax.jit(jax.shard_map(f, mesh=m, in_specs=i, out_specs=o, **kw))


@case
def collectives_of_shard_map(d):
    m = mesh(d, (4, 2), ("x", "y"))
    a = put(m, data(16, 8), "x", "y")
    ring = [(i, (i + 1) % 4) for i in range(4)]
    xy = P("x", "y")
    return [
        shmap(m, lambda a: lax.psum(a, "x"), xy, P(None, "y"))(a),
        shmap(m, lambda a: lax.psum(a, ("x", "y")), xy, P())(a),
        shmap(m, lambda a: lax.pmax(a, "y"), xy, P("x"))(a),
        shmap(m, lambda a: lax.pmean(a, "x"), xy, P(None, "y"))(a),
        shmap(m, lambda a: lax.all_gather(a, "x", tiled=True), xy, P(None, "y"),
              check_vma=False)(a),
        shmap(m, lambda a: lax.all_gather(a, "y", axis=1), xy, P("x"), check_vma=False)(a),
        shmap(m, lambda a: lax.ppermute(a, "x", ring), xy, xy)(a),
        shmap(m, lambda a: lax.ppermute(a, "x", [(0, 2), (3, 1)]), xy, xy)(a),
        shmap(m, lambda a: lax.all_to_all(a, "x", 0, 1, tiled=True), xy, P(None, ("y", "x")))(a),
        shmap(m, lambda a: lax.psum_scatter(a, "x", tiled=True), P(None, "y"), xy)(a),
        shmap(m, lambda a: a + lax.axis_index("x") * 10 + lax.axis_index("y"), xy, xy)(a),
    ]


@case
def collectives_of_other_types(d):
    m = mesh(d, (8,), ("x",))
    return [shmap(m, lambda a: lax.psum(a, "x"), P("x"), P())(put(m, data(16, 4, dtype=t), "x"))
            for t in (jnp.bfloat16, np.int32, np.int8, np.uint32, np.complex64)] + [
            shmap(m, lambda a: lax.pmin(a, "x"), P("x"), P())(put(m, data(16, 4) > 0, "x"))]


@case
def floats_of_a_byte_and_less(d):
    m = mesh(d, (8,), ("x",))
    ring, whole = [(i, (i + 3) % 8) for i in range(8)], NamedSharding(m, P())

    def f(a):
        return jax.lax.with_sharding_constraint(a[::-1], whole)

    results = []
    for name in ("float8_e5m2", "float8_e4m3", "float8_e4m3fn", "float8_e5m2fnuz",
                 "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e3m4", "float8_e8m0fnu",
                 "float4_e2m1fn"):
        a = put(m, np.abs(data(16, 4)) + 1, "x").astype(getattr(jnp, name))
        results += [shmap(m, lambda a: lax.ppermute(a, "x", pairs), P("x"), P("x"))(a)
                    .astype(jnp.float32) for pairs in (ring, ring[:3])]
        results += [jax.jit(f)(a).astype(jnp.float32)]
    return results


@case
def large_collectives(d):
    m = mesh(d, (8,), ("x",))
    a = put(m, data(256, 1024), "x")
    return [shmap(m, lambda a: lax.psum(a, "x"), P("x"), P())(a),
            shmap(m, lambda a: lax.all_gather(a, "x", tiled=True), P("x"), P(),
                  check_vma=False)(a),
            shmap(m, lambda a: lax.psum_scatter(a, "x", tiled=True), P("x"), P("x"))(a)]


@case
def large_collectives_of_other_types_and_shapes(d):
    m = mesh(d, (4, 2), ("x", "y"))
    ring = [(i, (i + 1) % 4) for i in range(4)]
    xy, results = P("x", "y"), []
    for t in (jnp.bfloat16, np.int8, np.float32, np.complex64):
        a = put(m, data(1203 * 4, 514, dtype=t), "x", "y")
        results += [
            shmap(m, lambda a: lax.pmean(a, "x") if t != np.int8 else lax.pmax(a, "x"), xy,
                  P(None, "y"))(a),
            shmap(m, lambda a: lax.psum(a, ("y", "x")), xy, P())(a),
            shmap(m, lambda a: lax.ppermute(a, "x", ring), xy, xy)(a),
            shmap(m, lambda a: lax.ppermute(a, "x", ring[1:]), xy, xy)(a),
            shmap(m, lambda a: lax.all_gather(a, "y", axis=1, tiled=True), xy, P("x", None),
                  check_vma=False)(a)]
    b = put(m, data(1024, 512), "x", "y")
    return results + [shmap(m, lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), xy,
                            P(None, ("x", "y")))(b)]


@case
def large_collectives_in_loops_and_in_place(d):
    m = mesh(d, (8,), ("x",))
    ring = [(i, (i + 3) % 8) for i in range(8)]

    def f(a, b):
        def turn(c, _):
            c = lax.ppermute(c, "x", ring)
            return c + lax.psum(c, "x") / 16, None
        first = lax.ppermute(a, "x", ring)
        last, _ = lax.scan(turn, first, None, length=5)
        some = lax.cond(lax.psum(b.sum(), "x") > 0, lambda v: lax.psum(v, "x"),
                        lambda v: -lax.psum(v, "x"), b)
        return last, lax.psum(some * 2, "x") - some, first
    g = jax.jit(jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=(P("x"), P(), P("x")),
                              check_vma=False), donate_argnums=(0, 1))
    a, results = put(m, data(8 * 96, 512), "x"), []
    for turn in range(3):
        a, *rest = g(a, put(m, np.abs(data(8 * 64, 1024, seed=turn)), "x"))
        results += [jnp.copy(a), *rest]
    return results + [a]


@case
def collectives_in_loops(d):
    m = mesh(d, (8,), ("x",))
    ring = [(i, (i + 1) % 8) for i in range(8)]

    def f(a):
        def turn(c, _):
            c = lax.ppermute(c, "x", ring)
            return c, c.sum()
        last, sums = lax.scan(turn, a, None, length=8)
        big = lax.while_loop(lambda c: lax.pmax(jnp.max(c), "x") < 50, lambda c: c * 3, a)
        some = lax.cond(lax.psum(a.sum(), "x") > 0, lambda v: lax.psum(v, "x"),
                        lambda v: -lax.psum(v, "x"), a)
        return last, lax.psum(sums, "x"), big, some
    return shmap(m, f, P("x"), (P("x"), P(), P("x"), P()))(put(m, np.abs(data(16, 4)), "x"))


@case
def gradients_through_collectives(d):
    m = mesh(d, (8,), ("x",))

    def loss(w, a):
        def part(w, a):
            g = lax.all_gather(a, "x", tiled=True)
            return lax.psum(jnp.sum(jnp.tanh(a @ w) * g.mean()), "x")
        return jax.shard_map(part, mesh=m, in_specs=(P(), P("x")), out_specs=P())(w, a)
    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(put(m, data(6, 5)),
                                                             put(m, data(16, 6), "x"))


@case
def partly_manual(d):
    m = mesh(d, (4, 2), ("x", "y"))
    f = shmap(m, lambda a: lax.psum(jnp.sin(a) @ jnp.ones((8, 3), a.dtype), "x"), P("x"), P(),
              axis_names={"x"})
    return f(put(m, data(16, 8), "x", "y"))


@case
def pmap_with_collectives(d):
    f = jax.pmap(lambda a: (lax.psum(a, "i"), lax.axis_index("i") + a[0]), "i", devices=d)
    g = jax.pmap(lambda a, s: a * s, "i", in_axes=(0, None), devices=d[:4])
    return f(data(8, 5)), g(data(4, 3), np.float32(2))


# ---- compiled ahead ----

@case
def sums_that_are_left_in_parts(d):
    m = mesh(d, (4, 2), ("x", "y"), AxisType.Explicit)
    left = P(None, "y", unreduced={"x"})
    with jax.set_mesh(m):
        a, b = put(m, data(6, 16), None, "x"), put(m, data(16, 8), "x", "y")
        out = jax.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=left))(a, b)
        more = jax.jit(lambda s: s + s)(out)
        assert out.sharding.spec == more.sharding.spec == left, (out.sharding, more.sharding)
        whole = jax.jit(lambda s: jax.sharding.reshard(s, P(None, "y")))(more)
    # What each device has is its own part of the sum.
    return whole, [[np.asarray(s.data) for s in x.addressable_shards] for x in (out, more)]


# ---- calls that a function of Python's shares out ----

def partitioned(f, rule, body, operands=None, results=None, infer=None):
    """f, of which each device does `body` with its parts: as they are, or as PartitionSpecs say."""
    from jax.experimental.custom_partitioning import custom_partitioning
    call = custom_partitioning(f)

    def shardings(m, specs, shapes):
        found = jax.tree.map(lambda s: s.sharding, shapes)
        if specs is None:
            return found
        return jax.tree.map(lambda p: NamedSharding(m, p), specs,
                            is_leaf=lambda p: isinstance(p, P))

    def partition(m, args, result):
        return m, body, shardings(m, results, result), shardings(m, operands, args)
    call.def_partition(partition=partition, sharding_rule=rule,
                       infer_sharding_from_operands=infer or (lambda m, args, result:
                                                              args[0].sharding),
                       propagate_user_sharding=lambda m, user: jax.tree.map(
                           lambda s: s.sharding, user))
    return call


@case
def custom_partitioning_on_the_parts_that_there_are(d):
    m = mesh(d, (4, 2), ("x", "y"))
    f = partitioned(lambda a: a * 2 + 1, "i j -> i j", lambda a: a * 2 + 1)
    specs = [(), ("x",), ("x", "y"), (None, "y"), (("x", "y"),), ("y", "x")]
    return [jax.jit(lambda a: f(f(a) - a) * 3)(put(m, data(16, 24), *p)) for p in specs]


@case
def custom_partitioning_wants_other_parts(d):
    m = mesh(d[::-1], (4, 2), ("x", "y"))
    f = partitioned(lambda a: a - a.mean(1, keepdims=True), "i j -> i j",
                    lambda a: a - a.mean(1, keepdims=True), (P("x"),), P("x"))
    uneven = partitioned(jnp.sin, "i j -> i j", jnp.sin, (P(("x", "y")),), P(("x", "y")))
    a = put(m, data(16, 24), "y", "x")
    return jax.jit(f)(a), jax.jit(lambda a: f(a.T) @ f(a))(a), \
        jax.jit(uneven)(put(m, data(13, 5)))


@case
def custom_partitioning_with_collectives(d):
    m = mesh(d, (4, 2), ("x", "y"))

    def product(a, b):
        return lax.psum(a @ b, "y"), lax.axis_index("x") * jnp.ones((1,), jnp.int32)
    f = partitioned(lambda a, b: (a @ b, jnp.arange(4, dtype=jnp.int32)), "i j, j k -> i k, l",
                    product, (P("x", "y"), P("y")), (P("x"), P("x")),
                    lambda m, args, result: (NamedSharding(m, P("x")), NamedSharding(m, P("x"))))
    a, b = put(m, data(16, 8), "x", "y"), put(m, data(8, 12), "y")

    def step(x, _):
        y, i = f(x, b)
        return jnp.tanh(y @ b.T), i.sum()
    return jax.jit(f)(a, b), jax.jit(lambda a: lax.scan(step, a, length=3))(a), \
        jax.jit(lambda a: lax.cond(a[0, 0] < 2, lambda a: f(a, b)[0], lambda a: -a @ b, a))(a)


@case
def a_body_wants_free_axes_in_other_dims_than_what_is_around_it(d):
    m = mesh(d, (2, 4), ("x", "y"))
    want = lax.with_sharding_constraint

    def along_x(g, *spec):
        g = jax.shard_map(g, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
                          check_vma=False)
        return jax.jit(g)(put(m, data(16, 8), *spec)), jax.jit(lambda a: want(
            g(jnp.cos(a)), NamedSharding(m, P("x", "y"))))(put(m, data(16, 8), "x"))
    return [along_x(lambda b: want(b, P("y")) * 2, "x", "y"),
            along_x(lambda b: jnp.cumsum(want(b, P("y")), 1) * 2, "x", "y"),
            along_x(lambda b: want(jnp.sin(b), P("y")), "x")]


@case
def what_each_device_draws_by_itself(d):
    def draw(a):
        r = lax.rng_uniform(a[0], a[0] + 0.5, (4,))
        return jnp.floor(r) + lax.cond(a[0] < 30, lambda: jnp.floor(lax.rng_uniform(
            0.0, 0.5, (4,))), lambda: jnp.zeros(4))

    def run(m, axes):
        f = jax.shard_map(draw, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names=axes,
                          check_vma=False)
        n = m.shape["x"]
        return jax.jit(f)(put(m, np.arange(n, dtype=np.float32) * 10, "x"))
    return run(mesh(d, (8,), ("x",)), {"x"}), run(mesh(d, (4, 2), ("x", "y")), {"x", "y"})


@case
def inspected_shardings(d):
    m = mesh(d, (4, 2), ("x", "y"))
    seen = []

    def f(a):
        b = jnp.sin(a)
        jax.debug.inspect_array_sharding(b, callback=seen.append)
        return b @ b.T
    out = jax.jit(f)(put(m, data(16, 8), "x", "y"))
    assert len(seen) == 1 and seen[0].is_equivalent_to(NamedSharding(m, P("x", "y")), 2), seen
    assert list(seen[0].mesh.devices.flat) == d, seen
    return out


@case
def compiled_ahead_and_serialized(d):
    from jax.experimental import serialize_executable
    m = mesh(d[::-1], (4, 2), ("x", "y"))
    a = put(m, data(16, 8), "x", "y")
    compiled = jax.jit(lambda a: (a @ a.T, a.sum())).lower(a).compile()
    if d[0].platform == "cpu":
        return compiled(a), compiled(a)
    assert compiled.cost_analysis() is not None
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=list(m.devices.flat))
    return compiled(a), again(a)


# ---- comparing ----

def parts(a, devices):
    """Which device, by place, has which part."""
    return {devices.index(dev): tuple((s.start or 0, s.stop or n) for s, n in zip(i, a.shape))
            for dev, i in a.sharding.devices_indices_map(a.shape).items()}


def lies_as(a, b, devices, cpus):
    """Where the programs did not say, GSPMD's choice is its own."""
    return parts(a, devices) == parts(b, cpus) or not jax.config.jax_use_shardy_partitioner


def compare(name, got, want, devices, cpus):
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want), name
    for i, (a, b) in enumerate(zip(got, want)):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=0, atol=RTOL * np.abs(b).max())
            continue
        assert a.shape == b.shape and a.dtype == b.dtype, (i, a.aval, b.aval)
        assert lies_as(a, b, devices, cpus), (i, a.sharding, b.sharding)
        whole = np.asarray(b)
        for s in a.addressable_shards:
            x, y = np.asarray(s.data), whole[s.index]
            if np.issubdtype(x.dtype, np.integer) or x.dtype == bool:
                np.testing.assert_array_equal(x, y, err_msg=f"array {i}")
                continue
            big = x.dtype if x.dtype.kind == "c" else np.float64
            x, y = x.astype(big), y.astype(big)
            room = 0.02 if a.dtype == jnp.bfloat16 else RTOL
            room *= max(1, np.max(np.abs(y), initial=0))
            np.testing.assert_allclose(x, y, rtol=0, atol=room, err_msg=f"array {i}")


def main():
    devices, cpus = jax.devices("tessera")[:8], jax.devices("cpu")[:8]
    assert len(devices) == len(cpus) == 8, (devices, cpus)
    for name, f in CASES.items():
        wrong = ""
        try:
            compare(name, f(devices), f(cpus), devices, cpus)
        except Exception:    # noqa: BLE001: the test's message
            wrong = traceback.format_exc()[-3000:]
        print(json.dumps([name, wrong]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
