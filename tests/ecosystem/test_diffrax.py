# SPDX-License-Identifier: Apache-2.0
"""Diffrax: differential equations, ordinary, stiff, controlled and stochastic."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax


def test_diffrax_solves_lotka_and_volterra(both):
    def program():
        def field(t, y, args):
            prey, hunter = y
            a, b, c, d = args
            return jnp.stack([a * prey - b * prey * hunter, -c * hunter + d * prey * hunter])

        @jax.jit
        def solve(y0, args):
            return diffrax.diffeqsolve(
                diffrax.ODETerm(field), diffrax.Tsit5(), 0, 12, 0.1, y0, args,
                saveat=diffrax.SaveAt(ts=jnp.linspace(0, 12, 25)),
                stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5)).ys
        y0, args = jnp.array([10.0, 5.0]), (1.0, 0.1, 1.5, 0.075)
        slope = jax.jit(jax.grad(lambda y0: solve(y0, args)[-1].sum()))(y0)
        return solve(y0, args), slope
    both(program, rtol=2e-3, atol=2e-3)


def test_diffrax_solves_a_stiff_problem(both):
    """Robertson's, by an implicit method: Newton's steps, LU within."""
    def program():
        def field(t, y, args):
            a = -0.04 * y[0] + 1e4 * y[1] * y[2]
            c = 3e7 * y[1] ** 2
            return jnp.stack([a, -a - c, c])
        return jax.jit(lambda y0: diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Kvaerno5(), 0.0, 100.0, 2e-4, y0,
            saveat=diffrax.SaveAt(ts=jnp.array([0.0, 1e-2, 1, 10, 100])),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys)(
                jnp.array([1.0, 0, 0]))
    ys = both(program, rtol=2e-3, atol=1e-5)
    assert jnp.allclose(ys.sum(1), 1, atol=1e-4)


def test_diffrax_follows_a_brownian_path(both):
    def program():
        def solve(key):
            path = diffrax.VirtualBrownianTree(0, 1, tol=1e-2, shape=(), key=key)
            terms = diffrax.MultiTerm(
                diffrax.ODETerm(lambda t, y, args: 0.1 * y),
                diffrax.ControlTerm(lambda t, y, args: 0.3 * y, path))
            return diffrax.diffeqsolve(terms, diffrax.Heun(), 0, 1, 0.05, jnp.float32(1),
                                       saveat=diffrax.SaveAt(steps=True), max_steps=32).ys[:20]
        return jax.jit(jax.vmap(solve))(jax.random.split(jax.random.key(0), 16))
    both(program, rtol=1e-3, atol=1e-4)


def test_diffrax_trains_a_neural_equation(both):
    """Through the solver, by its recursive checkpoints."""
    def program():
        class Field(eqx.Module):
            mlp: eqx.nn.MLP

            def __call__(self, t, y, args):
                return self.mlp(y)
        ts = jnp.linspace(0, 2, 11)
        turn = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
        want = jax.vmap(lambda t: jax.scipy.linalg.expm(turn * t) @ jnp.array([1.0, 0.5]))(ts)
        model = Field(eqx.nn.MLP(2, 2, 16, 1, jnp.tanh, key=jax.random.key(5)))
        optimizer = optax.adam(2e-2)

        @eqx.filter_jit
        def step(model, state):
            def loss(model):
                ys = diffrax.diffeqsolve(
                    diffrax.ODETerm(model), diffrax.Tsit5(), 0, 2, 0.1, want[0],
                    saveat=diffrax.SaveAt(ts=ts)).ys
                return ((ys - want) ** 2).mean()
            value, slope = eqx.filter_value_and_grad(loss)(model)
            change, state = optimizer.update(slope, state)
            return eqx.apply_updates(model, change), state, value
        state, losses = optimizer.init(eqx.filter(model, eqx.is_array)), []
        for _ in range(8):
            model, state, value = step(model, state)
            losses.append(value)
        return jnp.stack(losses)
    losses = both(program, rtol=1e-2, atol=1e-3)
    assert losses[-1] < losses[0]
