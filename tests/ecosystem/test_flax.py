# SPDX-License-Identifier: Apache-2.0
"""Flax: linen and nnx."""

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx, serialization
from flax.training import train_state


def data(shape, n=32, classes=4):
    y = jnp.arange(n) % classes
    x = jax.random.normal(jax.random.key(0), (classes, *shape))[y]
    return x + 0.1 * jax.random.normal(jax.random.key(1), x.shape), y


def test_flax_trains_a_conv_net(both):
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(linen.Conv(8, (3, 3))(x))
            x = linen.avg_pool(x, (2, 2), strides=(2, 2))
            x = linen.GroupNorm(4)(linen.Conv(16, (3, 3), strides=(2, 2))(x))
            return linen.Dense(4)(linen.gelu(x).reshape(x.shape[0], -1))

    def program():
        x, y = data((12, 12, 1))
        net = Net()
        state = train_state.TrainState.create(
            apply_fn=net.apply, params=net.init(jax.random.key(2), x)["params"],
            tx=optax.adamw(5e-3))

        @jax.jit
        def step(state):
            def loss(p):
                out = state.apply_fn({"params": p}, x)
                return optax.softmax_cross_entropy_with_integer_labels(out, y).mean()
            value, slope = jax.value_and_grad(loss)(state.params)
            return state.apply_gradients(grads=slope), value
        losses = []
        for _ in range(10):
            state, value = step(state)
            losses.append(value)
        return jnp.stack(losses)
    losses = both(program, rtol=1e-2, atol=5e-3)
    assert losses[-1] < 0.5 * losses[0]


def test_flax_reads_sequences_and_is_restored(both):
    """Linen: a recurrent cell under scan, batch norm's own state, dropout by a key; half of the
    training goes on from bytes."""
    class Reader(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.Embed(11, 8)(x)
            x = linen.RNN(linen.LSTMCell(16))(x)
            x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(x[:, -1])
            return linen.Dense(4)(linen.Dropout(0.1, deterministic=not train)(x))

    class State(train_state.TrainState):
        batch_stats: dict

    def program():
        y = jnp.arange(48) % 4
        x = (jnp.arange(9) * (y[:, None] + 1) + jnp.arange(48)[:, None] // 16) % 11
        net = Reader()
        first = net.init(jax.random.key(0), x, False)
        state = State.create(apply_fn=net.apply, tx=optax.adam(1e-2), **first)

        @jax.jit
        def step(state, key):
            def loss(p):
                out, more = state.apply_fn(
                    {"params": p, "batch_stats": state.batch_stats}, x, True,
                    rngs={"dropout": key}, mutable=["batch_stats"])
                return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), more
            (value, more), slope = jax.value_and_grad(loss, has_aux=True)(state.params)
            return state.apply_gradients(grads=slope, batch_stats=more["batch_stats"]), value
        losses = []
        for i in range(24):
            if i == 12:
                data = serialization.to_bytes(state)
                fresh = State.create(apply_fn=net.apply, tx=state.tx,
                                     **jax.tree.map(jnp.zeros_like, first))
                state = jax.device_put(serialization.from_bytes(fresh, data),
                                       losses[0].sharding)
            state, value = step(state, jax.random.fold_in(jax.random.key(1), i))
            losses.append(value)
        out = net.apply({"params": state.params, "batch_stats": state.batch_stats}, x, False)
        return jnp.stack(losses), out, state.batch_stats
    losses, *_ = both(program, rtol=2e-2, atol=2e-2)
    assert losses[-1] < 0.5 * losses[0]


def test_flax_nnx_trains_a_transformer(both):
    """Modules with state of their own, updated in place under nnx.jit: attention over a causal
    mask, batch norm, dropout, then decoding by the cache."""
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.LayerNorm(16, rngs=rngs)
            self.attend = nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)
            self.batch = nnx.BatchNorm(16, rngs=rngs)
            self.drop = nnx.Dropout(0.05, rngs=rngs)

        def __call__(self, x):
            y = self.norm(x)
            mask = None if self.attend.decode else nnx.make_causal_mask(x[..., 0])
            x = x + self.attend(y, mask=mask)
            return self.batch(x + self.drop(self.down(nnx.gelu(self.up(x)))))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(7, 16, rngs=rngs)
            self.place = nnx.Param(0.1 * jax.random.normal(rngs.params(), (12, 16)))
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.out = nnx.Linear(16, 7, rngs=rngs)

        def __call__(self, tokens, first=0):
            x = self.embed(tokens) + self.place[first:first + tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.out(x)

    def program():
        tokens = (jnp.arange(13) * jnp.arange(1, 7)[:, None] + jnp.arange(6)[:, None]) % 7
        model = Model(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

        @nnx.jit
        def step(model, optimizer):
            def loss(model):
                out = model(tokens[:, :-1])
                return optax.softmax_cross_entropy_with_integer_labels(
                    out, tokens[:, 1:]).mean()
            value, slope = nnx.value_and_grad(loss)(model)
            optimizer.update(model, slope)
            return value
        model.train()
        losses = jnp.stack([step(model, optimizer) for _ in range(25)])
        model.eval()
        whole = nnx.jit(lambda model: model(tokens[:, :-1]))(model)
        # The same by one token after the other, as a model is served.
        for block in model.blocks:
            block.attend.decode = True
            block.attend.init_cache((6, 12, 16))
        each = nnx.jit(lambda model: jnp.concatenate(
            [model(tokens[:, i:i + 1], i) for i in range(12)], 1))(model)
        return losses, whole, each
    losses, whole, each = both(program, rtol=3e-2, atol=3e-2)
    assert losses[-1] < 0.5 * losses[0]
    assert jnp.allclose(whole, each, rtol=1e-3, atol=1e-3)
