# SPDX-License-Identifier: Apache-2.0
"""Optax: optimizers, schedules, losses."""

import jax
import jax.numpy as jnp
import optax
import pytest

OPTIMIZERS = {
    "adam": lambda: optax.adam(0.05), "adamw": lambda: optax.adamw(0.05, weight_decay=1e-3),
    "sgd": lambda: optax.sgd(0.005, momentum=0.9, nesterov=True),
    "lion": lambda: optax.lion(0.02), "lamb": lambda: optax.lamb(0.05),
    "adafactor": lambda: optax.adafactor(0.05), "rmsprop": lambda: optax.rmsprop(0.02),
    "adagrad": lambda: optax.adagrad(0.2),
    "clipped, with a schedule and noise": lambda: optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(),
        optax.add_noise(1e-3, 0.5, jax.random.key(3)),
        optax.scale_by_learning_rate(optax.warmup_cosine_decay_schedule(0, 0.1, 5, 40))),
    "in steps of four, of a mean": lambda: optax.MultiSteps(optax.adam(0.1), 4),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optax_fits_by(both, name):
    def program():
        x = jax.random.normal(jax.random.key(0), (64, 8))
        want = x @ jax.random.normal(jax.random.key(1), (8, 3)) + 0.5
        params = {"w": 0.1 * jax.random.normal(jax.random.key(2), (8, 3)), "b": jnp.zeros(3)}
        optimizer = OPTIMIZERS[name]()

        def loss(p):
            return optax.huber_loss(x @ p["w"] + p["b"], want).mean()

        @jax.jit
        def run(params):
            def turn(carry, _):
                params, state = carry
                value, slope = jax.value_and_grad(loss)(params)
                change, state = optimizer.update(slope, state, params)
                return (optax.apply_updates(params, change), state), value
            (params, _), losses = jax.lax.scan(turn, (params, optimizer.init(params)), None, 40)
            return params, losses
        return run(params)
    _, losses = both(program, rtol=5e-3, atol=2e-3)
    assert losses[-1] < 0.9 * losses[0]


def test_optax_finds_a_minimum_by_lbfgs(both):
    """With a line search: loops within a loop."""
    def program():
        def f(x):
            return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        optimizer = optax.lbfgs()

        @jax.jit
        def run(x):
            value_and_grad = optax.value_and_grad_from_state(f)

            def turn(carry, _):
                x, state = carry
                value, slope = value_and_grad(x, state=state)
                change, state = optimizer.update(slope, state, x, value=value, grad=slope,
                                                 value_fn=f)
                return (optax.apply_updates(x, change), state), value
            return jax.lax.scan(turn, (x, optimizer.init(x)), None, 60)[0][0]
        return run(jnp.array([-1.2, 1.0, -0.5, 0.7]))
    x = both(program, rtol=1e-2, atol=1e-2)
    assert jnp.allclose(x, 1, atol=1e-2)


def test_optax_has_losses(both):
    def program():
        key = jax.random.key(0)
        a, b = jax.random.normal(key, (2, 12, 7))
        labels = jnp.arange(12) % 7
        one_hot = jax.nn.one_hot(labels, 7)

        def all_of(a):
            return {
                "softmax": optax.softmax_cross_entropy(a, one_hot),
                "sigmoid": optax.sigmoid_binary_cross_entropy(a, one_hot),
                "focal": optax.sigmoid_focal_loss(a, one_hot, alpha=0.25),
                "cosine": optax.cosine_similarity(a, b), "log_cosh": optax.log_cosh(a, b),
                "kl": optax.kl_divergence(jax.nn.log_softmax(a), jax.nn.softmax(b)),
                "hinge": optax.hinge_loss(a[:, 0], jnp.sign(b[:, 0])),
                "ctc": optax.ctc_loss(a[None], jnp.zeros((1, 12)), labels[None, :4],
                                      jnp.zeros((1, 4))),
            }
        slope = jax.jit(jax.grad(lambda a: sum(v.sum() for v in all_of(a).values())))(a)
        return jax.jit(all_of)(a), slope
    both(program, rtol=1e-4, atol=1e-4)
