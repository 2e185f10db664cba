# SPDX-License-Identifier: Apache-2.0
"""BlackJAX: samplers as functions."""

import blackjax
import jax
import jax.numpy as jnp

MEAN = jnp.array([1.0, -2.0, 0.5])


def density(x):
    return -0.5 * ((x - jax.device_put(MEAN)) ** 2 / jnp.array([1.0, 0.25, 2.0])).sum()


def run(algorithm, key, start, n):
    def turn(state, key):
        state, info = algorithm.step(key, state)
        return state, (state.position, info.acceptance_rate)
    return jax.jit(lambda key, start: jax.lax.scan(
        turn, algorithm.init(start), jax.random.split(key, n))[1])(key, start)


def test_blackjax_takes_the_same_steps_by_hmc(both):
    both(lambda: run(blackjax.hmc(density, 0.1, jnp.ones(3), 8), jax.random.key(0),
                     jnp.zeros(3), 25), rtol=5e-3, atol=5e-3)


def test_blackjax_warms_nuts_up(both):
    def program():
        warmup = blackjax.window_adaptation(blackjax.nuts, density)
        (state, parameters), _ = warmup.run(jax.random.key(1), jnp.zeros(3), 200)
        positions, _ = run(blackjax.nuts(density, **parameters), jax.random.key(2),
                           state.position, 400)
        return positions.mean(0)
    mean = both(program, rtol=0.3, atol=0.3)
    assert jnp.allclose(mean, MEAN, atol=0.4)


def test_blackjax_walks_many_chains_by_mala(both):
    def program():
        mala = blackjax.mala(density, 0.1)
        keys = jax.random.split(jax.random.key(3), 16)

        @jax.jit
        def walk(starts):
            def turn(states, i):
                states, _ = jax.vmap(mala.step)(
                    jax.vmap(jax.random.fold_in, (0, None))(keys, i), states)
                return states, states.position.mean(0)
            return jax.lax.scan(turn, jax.vmap(mala.init)(starts), jnp.arange(40))[1]
        return walk(jnp.zeros((16, 3)))
    both(program, rtol=1e-2, atol=2e-2)


def test_blackjax_anneals_by_smc(both):
    def program():
        smc = blackjax.adaptive_tempered_smc(
            lambda x: -0.5 * (x ** 2).sum() / 9, density, blackjax.hmc.build_kernel(),
            blackjax.hmc.init, blackjax.smc.extend_params(
                {"step_size": 0.2, "inverse_mass_matrix": jnp.ones(3),
                 "num_integration_steps": 5}),
            blackjax.smc.resampling.systematic, 0.5, num_mcmc_steps=3)
        state = smc.init(3 * jax.random.normal(jax.random.key(4), (200, 3)))
        step = jax.jit(smc.step)
        for i in range(20):
            if state.tempering_param >= 1:
                break
            state, _ = step(jax.random.fold_in(jax.random.key(5), i), state)
        return state.particles.mean(0), state.tempering_param
    (_, at_the_end) = both(program, rtol=0.2, atol=0.25)
    assert at_the_end == 1
