# SPDX-License-Identifier: Apache-2.0
"""Orbax: checkpoints of what is on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest


def state(seed=0):
    key = jax.random.key(seed)
    params = {"w": jax.random.normal(key, (33, 17)), "b": jnp.arange(17, dtype="bfloat16"),
              "n": jnp.int32(7), "deep": [{"u": jnp.ones((3, 1, 2))}, jnp.arange(5) % 2 == 0]}
    floats = {"w": params["w"]}
    return {"params": params, "opt": optax.adam(0.1).init(floats), "step": 3}


def step(x):
    x["params"]["w"] = jax.jit(lambda w: jnp.tanh(w) + 1)(x["params"]["w"])
    return x


def test_orbax_writes_and_reads_a_tree(both, tmp_path):
    count = iter(range(100))

    def program():
        path, tree = tmp_path / str(next(count)), step(state())
        with ocp.StandardCheckpointer() as c:
            c.save(path, tree)
            c.wait_until_finished()
            back = c.restore(path, jax.tree.map(
                lambda x: ocp.utils.to_shape_dtype_struct(x) if isinstance(x, jax.Array) else x,
                tree))
        for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(back), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        return back
    both(program)


def test_orbax_keeps_the_newest_while_training_goes_on(both, tmp_path):
    count = iter(range(100))

    def program():
        x = jax.random.normal(jax.random.key(1), (64, 4))
        want = x @ jnp.arange(4.0)
        optimizer = optax.adam(0.1)
        path = tmp_path / str(next(count))

        @jax.jit
        def turn(w, opt):
            value, slope = jax.value_and_grad(lambda w: ((x @ w - want) ** 2).mean())(w)
            change, opt = optimizer.update(slope, opt)
            return optax.apply_updates(w, change), opt, value
        w = jnp.zeros(4)
        opt = optimizer.init(w)
        options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=5)
        with ocp.CheckpointManager(path, options=options) as manager:
            for i in range(21):
                w, opt, _ = turn(w, opt)
                manager.save(i, args=ocp.args.StandardSave({"w": w, "opt": opt}))
            manager.wait_until_finished()
            assert manager.all_steps() == [15, 20]
            old = manager.restore(15, args=ocp.args.StandardRestore({"w": w, "opt": opt}))
        # From where it was, it goes on to the same place.
        again, opt = old["w"], old["opt"]
        for _ in range(5):
            again, opt, _ = turn(again, opt)
        np.testing.assert_array_equal(again, w)
        return w, old["w"]
    both(program, rtol=1e-3, atol=1e-4)


def test_orbax_takes_a_checkpoint_to_the_other_device(tmp_path):
    """Written from the device, read to the CPU, and the other way round."""
    here, cpu = jax.devices("tessera")[0], jax.devices("cpu")[0]
    for source, to in ((here, cpu), (cpu, here)):
        with jax.default_device(source):
            x = {"a": jax.random.normal(jax.random.key(0), (40, 30)), "b": jnp.arange(9)}
        where = jax.sharding.SingleDeviceSharding(to)
        with ocp.StandardCheckpointer() as c:
            path = tmp_path / source.platform
            c.save(path, x)
            c.wait_until_finished()
            y = c.restore(path, jax.tree.map(
                lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=where), x))
        for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
            assert b.devices() == {to}
            np.testing.assert_array_equal(a, b)


def test_orbax_says_what_does_not_fit(tmp_path):
    with ocp.StandardCheckpointer() as c:
        c.save(tmp_path / "x", {"a": jnp.ones(4)})
        c.wait_until_finished()
        with pytest.raises((ValueError, KeyError)):
            c.restore(tmp_path / "x", {"b": jnp.ones(4)})
