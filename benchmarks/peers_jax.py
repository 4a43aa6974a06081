"""Bootstrap filters of smcx, of cuthbert and in plain JAX, on two models: run by the Python that has these libraries.

``PYTHON peers_jax.py IN OUT`` reads recordings, an npz file of `model`, `dt`, `n` (k,) and `observations` (runs, T, m), and
writes one of `means` (k, runs, T, d) and `ms` (k, runs), milliseconds per step without compilation, of each library. The
environment needs no herdfilter: ``pip install smcx cuthbert``. `bench_default.py --part peers --jax-python PYTHON` calls it.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

BEARING_SD, DENSITY = 0.05, 0.1
SENSORS = jnp.array([[-1.0, -2.0], [1.0, 1.0]])
PRIOR_SD = {"ungm": jnp.sqrt(jnp.array([5.0])), "bearings": jnp.sqrt(jnp.array([0.1, 0.1, 0.5, 0.5]))}


def ungm(dt):
    def move(key, x, step):
        mean = 0.5 * x + 25 * x / (1 + x**2) + 8 * jnp.cos(1.2 * step)
        return mean + jnp.sqrt(10.0) * jax.random.normal(key, x.shape)

    def log_likelihood(z, x):
        return -0.5 * ((z - x**2 / 20) ** 2).sum() - 0.5 * jnp.log(2 * jnp.pi)

    return move, log_likelihood


def bearings(dt):
    block = np.linalg.cholesky(DENSITY * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]))
    factor = jnp.array(np.kron(block, np.eye(2)))

    def move(key, x, step):
        mean = jnp.concatenate([x[..., :2] + dt * x[..., 2:], x[..., 2:]], axis=-1)
        return mean + jax.random.normal(key, x.shape) @ factor.T

    def log_likelihood(z, x):
        away = x[:2] - SENSORS
        off = z - jnp.arctan2(away[:, 1], away[:, 0])
        off = off - 2 * jnp.pi * jnp.rint(off / (2 * jnp.pi))
        return -0.5 * ((off / BEARING_SD) ** 2).sum() - 2 * jnp.log(BEARING_SD * jnp.sqrt(2 * jnp.pi))

    return move, log_likelihood


def of_smcx(model, dt, n):
    """Its bootstrap filter; the first state is that of step 1."""
    import smcx

    move, log_likelihood = {"ungm": ungm, "bearings": bearings}[model](dt)
    sd = PRIOR_SD[model]

    def initial(key, count, step):
        first, second = jax.random.split(key)
        x = sd * jax.random.normal(first, (count, len(sd)))
        return jax.vmap(move, (0, 0, None))(jax.random.split(second, count), x, step[0])

    @jax.jit
    def run(key, z):
        steps = jnp.arange(1.0, len(z) + 1)
        found = smcx.bootstrap_filter(
            key, initial, lambda k, x, s: move(k, x, s[0]), lambda y, x, s: log_likelihood(y, x), z, n, inputs=steps
        )
        return (jnp.exp(found.filtered_log_weights)[..., None] * found.filtered_particles).sum(axis=1)

    return run


def of_cuthbert(model, dt, n):
    """Its particle filter with systematic resampling below half of the particles."""
    import cuthbert
    from cuthbert.smc import particle_filter
    from cuthbertlib.resampling import adaptive, systematic

    move, log_likelihood = {"ungm": ungm, "bearings": bearings}[model](dt)
    sd = PRIOR_SD[model]
    built = particle_filter.build_filter(
        lambda key: sd * jax.random.normal(key, (len(sd),)),
        lambda key, x, given: move(key, x, given[0]),
        lambda before, x, given: log_likelihood(given[1], x),
        n,
        adaptive.ess_decorator(systematic.resampling, 0.5),
    )

    @jax.jit
    def run(key, z):
        first, second = jax.random.split(key)
        given = (jnp.arange(1.0, len(z) + 1), z)
        states = cuthbert.filter(built, given, built.init_prepare(key=first), key=second)
        return (jax.nn.softmax(states.log_weights, axis=1)[..., None] * states.particles).sum(axis=1)[1:]

    return run


def of_jax(model, dt, n):
    """Plain JAX, and as little of it as possible: only means are kept, and all noises of a step are drawn at once."""
    move, log_likelihood = {"ungm": ungm, "bearings": bearings}[model](dt)
    sd = PRIOR_SD[model]

    def step(carry, given):
        x, log_weights, key = carry
        number, z = given
        key, first, second = jax.random.split(key, 3)
        weights = jax.nn.softmax(log_weights)

        def resampled():
            levels = (jnp.arange(n) + jax.random.uniform(first)) / n
            sums = jnp.cumsum(weights)
            return x[jnp.minimum(jnp.searchsorted(sums, levels * sums[-1]), n - 1)], jnp.zeros(n)

        x, log_weights = jax.lax.cond(n * (weights**2).sum() > 2, resampled, lambda: (x, log_weights))
        x = move(second, x, number)
        log_weights += jax.vmap(log_likelihood, (None, 0))(z, x)
        return (x, log_weights, key), jax.nn.softmax(log_weights) @ x

    @jax.jit
    def run(key, z):
        first, second = jax.random.split(key)
        x = sd * jax.random.normal(first, (n, len(sd)))
        return jax.lax.scan(step, (x, jnp.zeros(n), second), (jnp.arange(1.0, len(z) + 1), z))[1]

    return run


LIBRARIES = {"jax": of_jax, "smcx": of_smcx, "cuthbert": of_cuthbert}


def main(source: str, target: str) -> None:
    given, found = np.load(source), {}
    model, dt, observations = str(given["model"]), float(given["dt"]), given["observations"]
    for name, build in LIBRARIES.items():
        means, ms = [], []
        for n in given["n"]:
            run = build(model, dt, int(n))
            run(jax.random.key(0), jnp.asarray(observations[0])).block_until_ready()
            for k, z in enumerate(observations):
                start = time.perf_counter()
                x = run(jax.random.key(k), jnp.asarray(z)).block_until_ready()
                ms.append(1e3 * (time.perf_counter() - start) / len(z))
                means.append(np.asarray(x))
        shape = (len(given["n"]), len(observations))
        found[f"{name}/means"] = np.reshape(means, (*shape, *np.shape(means)[1:]))
        found[f"{name}/ms"] = np.reshape(ms, shape)
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
