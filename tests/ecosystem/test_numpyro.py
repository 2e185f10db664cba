# SPDX-License-Identifier: Apache-2.0
"""NumPyro: sampling and variational inference. Chains are chaotic: what is compared exactly is
short, what is long by its moments and what the model says."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import infer
from numpyro.infer.reparam import LocScaleReparam

X = jnp.array([[0.2, 1.1], [1.4, -0.3], [-0.7, 0.4], [0.9, 0.8], [-1.2, -1.0], [0.1, -0.6]] * 5)
Y = X[:, 0] * 1.5 - X[:, 1] * 0.7 + 0.3


def regression(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    s = numpyro.sample("s", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(x @ w + b, s + 0.1), obs=y)


def sampled(kernel, warmup, samples, *args):
    mcmc = infer.MCMC(kernel, num_warmup=warmup, num_samples=samples, progress_bar=False)
    mcmc.run(jax.random.key(0), *jax.device_put(args))
    return mcmc.get_samples()


def test_numpyro_samples_a_regression_by_nuts(both):
    def program():
        samples = sampled(infer.NUTS(regression), 150, 150, X, Y)
        return {k: v.mean(0) for k, v in samples.items()}
    means = both(program, rtol=0.1, atol=0.05)
    assert jnp.allclose(means["w"], jnp.array([1.5, -0.7]), atol=0.1)


def test_numpyro_takes_the_same_first_steps(both):
    both(lambda: sampled(infer.HMC(regression, step_size=0.01, num_steps=4,
                                   adapt_step_size=False, adapt_mass_matrix=False),
                         0, 6, X, Y), rtol=2e-3, atol=1e-3)


# The schools of Rubin (1981), whose effects share a mean.
EFFECT = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SPREAD = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(spread, effect=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(spread)), \
            numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effect", dist.Normal(theta, spread), obs=effect)


def test_numpyro_fits_a_hierarchy_by_a_guide(both):
    """Variational inference: a guide trained by the steps of a scan, then what it predicts."""
    def program():
        spread, effect = jax.device_put((SPREAD, EFFECT))
        guide = infer.autoguide.AutoNormal(schools)
        svi = infer.SVI(schools, guide, numpyro.optim.Adam(0.02), infer.Trace_ELBO(8))
        state = svi.init(jax.random.key(1), spread, effect)

        @jax.jit
        def train(state):
            return jax.lax.scan(lambda state, _: svi.update(state, spread, effect), state, None,
                                length=300)
        state, losses = train(state)
        fitted = svi.get_params(state)
        drawn = infer.Predictive(guide, params=fitted, num_samples=500)(
            jax.random.key(2), spread)
        said = infer.Predictive(schools, drawn)(jax.random.key(3), spread)
        return losses[:20], losses[-50:].mean(), fitted["mu_auto_loc"], {
            k: v.mean(0) for k, v in (drawn | said).items() if k in ("mu", "theta", "effect")}
    losses, at_the_end, mu, means = both(program, rtol=2e-2, atol=0.15)
    assert at_the_end < losses[0] and 1 < mu < 8
    # Drawn towards the mean, those that say least the most: 28 +- 15 as far as 18 +- 10.
    theta = means["theta"]
    assert theta.argmax() in (0, 6) and 0 < theta.min() and theta.max() < 12
    assert means["effect"].shape == (8,)
