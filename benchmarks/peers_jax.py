"""Bootstrap filters of smcx, of cuthbert and in plain JAX, compiled, a whole series in one call, in JAX's single precision.

Both libraries keep the particles of all steps, of which means are taken inside the compiled call. See peer_runs.py.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from peer_runs import BEARING_SD, CHAIN, PRIOR, SENSORS, main, velocity


def parts(name, dt):
    """Return standard deviations of the start, the transition of states (..., d), and the log-likelihood of one state."""
    sd = jnp.sqrt(jnp.array(PRIOR[name]))
    if name == "bearings":
        F, Q = velocity(dt)
        F, factor = jnp.array(F), jnp.array(np.linalg.cholesky(Q))
    else:
        F, factor = jnp.array(CHAIN), jnp.eye(4)

    def grow(key, x, step):
        mean = 0.5 * x + 25 * x / (1 + x**2) + 8 * jnp.cos(1.2 * step)
        return mean + jnp.sqrt(10.0) * jax.random.normal(key, x.shape)

    def move(key, x, step):
        return x @ F.T + jax.random.normal(key, x.shape) @ factor.T

    def residual(z, x):
        if name == "ungm":
            return z - x**2 / 20
        if name == "linear_chain":
            return z - x
        away = x[:2] - SENSORS
        off = z - jnp.arctan2(away[:, 1], away[:, 0])
        return (off - 2 * jnp.pi * jnp.rint(off / (2 * jnp.pi))) / BEARING_SD

    def log_likelihood(z, x):
        peak = len(z) * np.log((BEARING_SD if name == "bearings" else 1.0) * np.sqrt(2 * np.pi))
        return -0.5 * (residual(z, x) ** 2).sum() - peak

    return sd, (grow if name == "ungm" else move), log_likelihood


def on_arrays(run):
    """Make a compiled function of key and observations a run: see peer_runs.py."""
    compiled = jax.jit(run)

    def called(z, seed):
        means, log_likelihood = jax.block_until_ready(
            compiled(jax.random.key(seed), jnp.asarray(z))
        )
        return means, log_likelihood

    return called


def of_smcx(name, dt, n):
    """Its bootstrap filter with its defaults; its first state is that of step 1."""
    import smcx

    sd, move, log_likelihood = parts(name, dt)

    def initial(key, count, step):
        first, second = jax.random.split(key)
        x = sd * jax.random.normal(first, (count, len(sd)))
        return jax.vmap(move, (0, 0, None))(jax.random.split(second, count), x, step[0])

    def run(key, z):
        steps = jnp.arange(1.0, len(z) + 1)
        found = smcx.bootstrap_filter(
            key,
            initial,
            lambda k, x, s: move(k, x, s[0]),
            lambda y, x, s: log_likelihood(y, x),
            z,
            n,
            inputs=steps,
        )
        means = (jnp.exp(found.filtered_log_weights)[..., None] * found.filtered_particles).sum(
            axis=1
        )
        return means, found.marginal_loglik

    return on_arrays(run)


def of_cuthbert(name, dt, n):
    """Its particle filter with systematic resampling below half of the particles."""
    import cuthbert
    from cuthbert.smc import particle_filter
    from cuthbertlib.resampling import adaptive, systematic

    sd, move, log_likelihood = parts(name, dt)
    built = particle_filter.build_filter(
        lambda key: sd * jax.random.normal(key, (len(sd),)),
        lambda key, x, given: move(key, x, given[0]),
        lambda before, x, given: log_likelihood(given[1], x),
        n,
        adaptive.ess_decorator(systematic.resampling, 0.5),
    )

    def run(key, z):
        first, second = jax.random.split(key)
        given = (jnp.arange(1.0, len(z) + 1), z)
        states = cuthbert.filter(built, given, built.init_prepare(key=first), key=second)
        means = (jax.nn.softmax(states.log_weights, axis=1)[..., None] * states.particles).sum(
            axis=1
        )[1:]
        return means, states.log_normalizing_constant[-1]

    return on_arrays(run)


def of_jax(name, dt, n):
    """Plain JAX, and as little of it as possible: only means are kept, and all noises of a step are drawn at once."""
    sd, move, log_likelihood = parts(name, dt)

    def step(carry, given):
        x, log_weights, key = carry
        number, z = given
        key, first, second = jax.random.split(key, 3)
        weights = jax.nn.softmax(log_weights)

        def resampled():
            levels = (jnp.arange(n) + jax.random.uniform(first)) / n
            sums = jnp.cumsum(weights)
            return x[jnp.minimum(jnp.searchsorted(sums, levels * sums[-1]), n - 1)], jnp.full(
                n, -jnp.log(n)
            )

        x, log_weights = jax.lax.cond(
            n * (weights**2).sum() > 2, resampled, lambda: (x, log_weights)
        )
        x = move(second, x, number)
        log_weights += jax.vmap(log_likelihood, (None, 0))(z, x)
        total = jax.nn.logsumexp(log_weights)
        return (x, log_weights - total, key), (jnp.exp(log_weights - total) @ x, total)

    def run(key, z):
        first, second = jax.random.split(key)
        start = (sd * jax.random.normal(first, (n, len(sd))), jnp.full(n, -jnp.log(n)), second)
        means, logs = jax.lax.scan(step, start, (jnp.arange(1.0, len(z) + 1), z))[1]
        return means, logs.sum()

    return on_arrays(run)


if __name__ == "__main__":
    main(
        {"jax-bootstrap": of_jax, "smcx-bootstrap": of_smcx, "cuthbert-bootstrap": of_cuthbert}, {}
    )
