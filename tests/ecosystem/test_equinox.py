# SPDX-License-Identifier: Apache-2.0
"""Equinox: modules as trees, filtered transformations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


def blobs(key, n, classes=4, width=16):
    centre, noise = jax.random.split(key)
    y = jnp.arange(n) % classes
    x = jax.random.normal(centre, (classes, width))[y] + \
        0.3 * jax.random.normal(noise, (n, width))
    return x, y


def train(model, x, y, loss, steps=30, optimizer=None):
    optimizer = optimizer or optax.adam(1e-2)

    @eqx.filter_jit
    def step(model, state):
        value, slope = eqx.filter_value_and_grad(loss)(model, x, y)
        change, state = optimizer.update(slope, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, change), state, value
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    losses = []
    for _ in range(steps):
        model, state, value = step(model, state)
        losses.append(value)
    return model, jnp.stack(losses)


def cross_entropy(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


def test_equinox_trains_an_mlp(both):
    def program():
        x, y = blobs(jax.random.key(0), 128)
        model = eqx.nn.MLP(16, 4, 32, 2, key=jax.random.key(1))
        model, losses = train(model, x, y, cross_entropy)
        return losses, jax.vmap(model)(x)
    losses, _ = both(program, rtol=2e-3, atol=2e-3)
    assert losses[-1] < 0.2 * losses[0]


def test_equinox_trains_a_conv_net_with_batch_norm(both):
    class Net(eqx.Module):
        conv: eqx.nn.Conv2d
        norm: eqx.nn.BatchNorm
        pool: eqx.nn.MaxPool2d
        out: eqx.nn.Linear

        def __init__(self, key):
            a, b = jax.random.split(key)
            self.conv = eqx.nn.Conv2d(1, 8, 3, key=a)
            self.norm = eqx.nn.BatchNorm(8, "batch", mode="batch")
            self.pool = eqx.nn.MaxPool2d(2, 2)
            self.out = eqx.nn.Linear(8 * 5 * 5, 4, key=b)

        def __call__(self, x, state):
            x, state = self.norm(self.conv(x), state)
            return self.out(self.pool(jax.nn.relu(x)).ravel()), state

    def program():
        y = jnp.arange(32) % 4
        x = jax.random.normal(jax.random.key(0), (4, 1, 12, 12))[y] + \
            0.1 * jax.random.normal(jax.random.key(2), (32, 1, 12, 12))
        model, state = eqx.nn.make_with_state(Net)(jax.random.key(1))
        optimizer = optax.sgd(0.1, momentum=0.9)

        def loss(model, state):
            out, state = jax.vmap(model, axis_name="batch", in_axes=(0, None),
                                  out_axes=(0, None))(x, state)
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), state

        @eqx.filter_jit
        def step(model, state, opt):
            (value, state), slope = eqx.filter_value_and_grad(loss, has_aux=True)(model, state)
            change, opt = optimizer.update(slope, opt)
            return eqx.apply_updates(model, change), state, opt, value
        opt, losses = optimizer.init(eqx.filter(model, eqx.is_array)), []
        for _ in range(12):
            model, state, opt, value = step(model, state, opt)
            losses.append(value)
        return jnp.stack(losses), eqx.filter(model, eqx.is_array)
    losses, _ = both(program, rtol=1e-2, atol=1e-2)
    assert losses[-1] < 0.5 * losses[0]


def test_equinox_scans_a_gru_with_checks(both):
    def program():
        cell = eqx.nn.GRUCell(5, 12, key=jax.random.key(3))
        xs = jax.random.normal(jax.random.key(4), (40, 5))

        @eqx.filter_jit
        def run(cell, xs):
            def turn(h, x):
                h = cell(x, h)
                return eqx.error_if(h, jnp.any(jnp.isnan(h)), "not a number"), h.sum()
            h, sums = jax.lax.scan(turn, jnp.zeros(12), xs)
            return h, sums
        slope = eqx.filter_grad(lambda cell: run(cell, xs)[1].sum())(cell)
        return run(cell, xs), eqx.filter(slope, eqx.is_array)
    both(program, rtol=1e-3, atol=1e-4)


def test_equinox_attends(both):
    def program():
        a = eqx.nn.MultiheadAttention(4, 32, key=jax.random.key(0))
        norm = eqx.nn.LayerNorm(32)
        x = jax.random.normal(jax.random.key(1), (24, 32))
        mask = jnp.tril(jnp.ones((24, 24), bool))
        f = eqx.filter_jit(lambda a, x: jax.vmap(norm)(x + a(x, x, x, mask=mask)))
        return f(a, x), eqx.filter_grad(lambda a: (f(a, x) ** 3).sum())(a)
    both(program, rtol=2e-3, atol=1e-3)
