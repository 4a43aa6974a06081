"""The model contract: which functions a filter may call on a model, and the few helpers that call them.

A model is any object with vectorised functions; it needs no base class, and only what the chosen filter uses must exist.
Arrays are (n, d), particles first. `step` counts from 1: the initial state is step 0.

=========================================================  ============================================================
``dim``                                                    dimension d of the state
``circular``                                               indices of angle-valued dimensions, in radians (optional)
``initial``                                                a `GaussianMixture`, or an object with ``sample(n, rng)``
``transition_mean(x, dt, control, step)``                  (n, d) -> (n, d), with ``transition_covariance(dt, step)`` (d, d)
``transition(x, noise, dt, control, step)``                where noise (n, ``noise_dim``), from N(0, I), is not additive
``sample_transition(x, rng, dt, control, step)``           where the transition can only be simulated
``transition_log_density(x_next, x, dt, control, step)``   (m, d), (n, d) -> (m, n), for a smoother (optional)
``log_likelihood(z, x, step)``                             (n, d) -> (n,)
``partial_observations``                                   True if ``log_likelihood`` leaves out NaN entries of z (optional)
``observation_mean(x, step)``                              (n, d) -> (n, k), with ``observation_covariance(step)`` (k, k)
``observation_circular``                                   indices of angle-valued entries of an observation (optional)
``transition_jacobian(x, dt, control, step)``              (n, d) -> (n, d, d), of ``transition_mean`` (optional)
``observation_jacobian(x, step)``                          (n, d) -> (n, k, d), of ``observation_mean`` (optional)
``sample_observation(x, rng, step)``                       (n, d) -> (n, k), to simulate noise that is not Gaussian
``control(step)``                                          input of a simulated transition to `step` (c,) (optional)
=========================================================  ============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_count, as_generator, as_positive
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.mixture import GaussianMixture, covariance_factor

Model = Any  # an object that follows the contract above; checked by `require` at the point of use

ADDITIVE = ("transition_mean", "transition_covariance")
"""What a model with additive Gaussian transition noise has."""

OBSERVED = ("observation_mean", "observation_covariance")
"""What a model has whose observations have a mean and a covariance, as Kalman filters ask for."""


def has(model: Model, names: Sequence[str]) -> bool:
    """Whether a model has all these names."""
    return all(hasattr(model, name) for name in names)


def require(model: Model, user: str, *alternatives: Sequence[str]) -> None:
    """Raise TypeError, naming what is missing, unless the model has all names of at least one alternative."""
    if isinstance(model, type):
        raise TypeError(f"model: expected an instance, got the class {model.__name__}")
    if any(has(model, names) for names in alternatives):
        return
    wanted = ", or ".join(" and ".join(names) for names in alternatives)
    missing = [name for name in alternatives[0] if not hasattr(model, name)]
    raise TypeError(f"model: {user} needs {wanted}; {type(model).__name__} has no {' and no '.join(missing)}")


def circular_dims(model: Model) -> tuple[int, ...]:
    """Return the indices of the angle-valued dimensions of a model."""
    return tuple(getattr(model, "circular", None) or ())


def noise_dim(model: Model) -> int:
    """Return the dimension of the standard normal noise that `propagate` takes."""
    return int(model.noise_dim if hasattr(model, "transition") else model.dim)


def transition_mean(model: Model, x: Array, dt: float, control: Any, step: int) -> Array:
    """Return the model's transition mean of states (n, d), checked."""
    return _states("transition_mean", model.transition_mean(x, dt, control, step), x, step)


def transition_covariance(model: Model, dt: float, step: int) -> Array:
    """Return the model's transition covariance (d, d), checked for its shape."""
    return as_array("transition_covariance", model.transition_covariance(dt, step), (model.dim, model.dim))


def propagate(model: Model, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
    """Push states (n, d) and standard normal noise (n, `noise_dim`) through the transition."""
    if hasattr(model, "transition"):
        moved = _states("transition", model.transition(x, noise, dt, control, step), x, step)
    else:
        factor = _factor(transition_covariance(model, dt, step).tobytes(), model.dim)
        moved = transition_mean(model, x, dt, control, step) + noise @ factor.T
    return wrap_angles(moved, circular_dims(model))


@lru_cache(maxsize=8)
def _factor(covariance: bytes, dim: int) -> Array:
    """Return the factor of a transition covariance, which as a rule is that of the step before."""
    factor = covariance_factor(np.frombuffer(covariance).reshape(dim, dim))
    factor.flags.writeable = False
    return factor


def sample_transition(
    model: Model, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int
) -> Array:
    """Draw one successor of each state (n, d), by whichever of the three forms of transition the model has."""
    if hasattr(model, "transition") or has(model, ADDITIVE):
        return propagate(model, x, rng.standard_normal((len(x), noise_dim(model))), dt, control, step)
    moved = _states("sample_transition", model.sample_transition(x, rng, dt, control, step), x, step)
    return wrap_angles(moved, circular_dims(model))


def _shaped(name: str, value: Any, shape: tuple[int, ...], step: int) -> Array:
    """Return what a model's function gave as numbers of this shape."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape} from the model at step {step}, got {array.shape}")
    return array


def _states(name: str, value: Any, x: Array, step: int) -> Array:
    """Return what a model's function gave for states x, or name the function, the step and what is wrong."""
    moved = _shaped(name, value, x.shape, step)
    return _finite(name, moved, step)


def _finite(name: str, rows: Array, step: int) -> Array:
    """Return what a model's function gave for each state, if all numbers are finite."""
    if not np.isfinite(rows).all():
        count = np.count_nonzero(~np.isfinite(rows).all(axis=1))
        raise ValueError(
            f"{name}: expected finite numbers from the model at step {step}, got {count} rows that are not"
        )
    return rows


def sample_initial(model: Model, n: int, rng: np.random.Generator) -> Array:
    """Draw `n` independent initial states (n, d)."""
    return wrap_angles(np.asarray(model.initial.sample(n, rng)), circular_dims(model))


def sample_observation(model: Model, x: Array, rng: np.random.Generator, step: int) -> Array:
    """Draw one observation of each state, (n, d) -> (n, k)."""
    if hasattr(model, "sample_observation"):
        return np.asarray(model.sample_observation(x, rng, step))
    require(model, "simulation", ("sample_observation",), ("observation_mean", "observation_covariance"))
    mean = np.asarray(model.observation_mean(x, step))
    factor = covariance_factor(np.asarray(model.observation_covariance(step)))
    return mean + rng.standard_normal(mean.shape) @ factor.T


def observation_circular(model: Model, size: int) -> tuple[int, ...]:
    """Return the indices of the angle-valued ones of the `size` entries of an observation."""
    circular = tuple(getattr(model, "observation_circular", None) or ())
    if any(i not in range(size) for i in circular):
        raise ValueError(f"observation_circular: expected indices from 0 to {size - 1}, got {circular}")
    return circular


def observation_mean(model: Model, x: Array, step: int) -> Array:
    """Return the model's mean observation of states (n, d), (n, k), checked."""
    name, mean = "observation_mean", np.asarray(model.observation_mean(x, step), dtype=np.float64)
    if mean.ndim != 2 or len(mean) != len(x):
        raise ValueError(
            f"{name}: expected shape ({len(x)}, *) from the model at step {step}, got {mean.shape}"
        )
    return _finite(name, mean, step)


def observation_covariance(model: Model, size: int, step: int) -> Array:
    """Return the model's observation covariance (size, size), checked for its shape."""
    return as_array("observation_covariance", model.observation_covariance(step), (size, size))


def log_likelihood(model: Model, z: Array, x: Array, step: int) -> Array:
    """Return the model's log-likelihood of states (n, d), (n,), checked: minus infinity is a number, NaN is none."""
    values = _shaped("log_likelihood", model.log_likelihood(z, x, step), (len(x),), step)
    if not values.max() < np.inf:  # NaN, too
        count = np.count_nonzero(np.isnan(values) | (values == np.inf))
        raise ValueError(
            f"log_likelihood: expected values below infinity from the model, got {count} NaN or +inf of "
            f"{len(x)} at step {step}"
        )
    return values


def predictive_mixture(
    model: Model, x: Array, weights: Array, dt: float, control: Any, step: int
) -> GaussianMixture:
    """Return the predictive density ``sum_i w_i N(f(x_i), Q)`` of a model with additive Gaussian transition noise.

    Angles of the means are unwrapped about their circular mean.
    """
    means = unwrap_angles(transition_mean(model, x, dt, control, step), weights, circular_dims(model))
    return GaussianMixture.trusted(weights, means, transition_covariance(model, dt, step))


def simulated_controls(model: Model, steps: int) -> Array | None:
    """Return the control inputs of simulated transitions to steps 1 to `steps`, (steps, c); None if the model has none."""
    if not hasattr(model, "control"):
        return None
    return np.array([model.control(step) for step in range(1, steps + 1)], dtype=np.float64)


def simulate_observations(model: Model, truth: Array, rng: np.random.Generator) -> Array:
    """Draw the observation of a given state at each of steps 1 to T, (T, d) -> (T, k)."""
    return np.array([sample_observation(model, x[None], rng, step)[0] for step, x in enumerate(truth, 1)])


def simulate(
    model: Model,
    steps: int,
    rng: np.random.Generator | int,
    dt: float = 1.0,
    initial: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Simulate a trajectory and its observations at `steps` steps, `dt` apart, with the inputs of `simulated_controls`.

    Parameters
    ----------
    model : object
        A model with a transition and with ``sample_observation``, or ``observation_mean`` and ``observation_covariance``.
    steps : int
    rng : numpy.random.Generator or int
        Source of the random draws, or a seed.
    dt : float
    initial : array_like, shape (d,), optional
        State at step 0; drawn from the model's initial distribution unless given.

    Returns
    -------
    truth, observations : ndarray, shapes (steps, d) and (steps, k)
        At steps 1 to `steps`.

    Raises
    ------
    TypeError, ValueError
        If the model lacks what simulation needs; if `steps`, `dt` or `initial` is not as above.
    """
    require(model, "simulation", ("dim", "initial"))
    steps, dt, rng = as_count("steps", steps), as_positive("dt", dt), as_generator(rng)
    if initial is None:
        x = sample_initial(model, 1, rng)
    else:
        x = wrap_angles(as_array("initial", initial, (model.dim,))[None], circular_dims(model))
    controls, truth, observations = simulated_controls(model, steps), [], []
    for step in range(1, steps + 1):
        control = None if controls is None else controls[step - 1]
        x = sample_transition(model, x, rng, dt, control, step)
        truth.append(x[0])
        observations.append(sample_observation(model, x, rng, step)[0])
    return np.array(truth), np.array(observations)
