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
``log_likelihood(z, x, step)``                             (n, d) -> (n,); without it, that of Gaussian noise by the next two
``partial_observations``                                   True if ``log_likelihood`` leaves out NaN entries of z (optional)
``observation_mean(x, step)``                              (n, d) -> (n, k), with ``observation_covariance(step)`` (k, k)
``observation_covariance(step, x)``                        (n, d) -> (n, k, k), in its place where it depends on the state
``observation_circular``                                   indices of angle-valued entries of an observation (optional)
``transition_jacobian(x, dt, control, step)``              (n, d) -> (n, d, d), of ``transition_mean`` (optional)
``observation_jacobian(x, step)``                          (n, d) -> (n, k, d), of ``observation_mean`` (optional)
``sample_observation(x, rng, step)``                       (n, d) -> (n, k), to simulate noise that is not Gaussian
``scans``                                                  True if an observation is a scan of detections (optional)
``control(step)``                                          input of a simulated transition to `step` (c,) (optional)
``models``, ``transition_matrix``, ``initial_modes``       modes that the state jumps between, as of `JumpMarkov` (optional)
=========================================================  ============================================================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_covariance, as_numbers, check_count, short_repr, with_nan
from herdfilter._covariances import covariance_factor
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models._answers import Covariance, covariance, covariances, rows, shaped
from herdfilter.models._derived import gaussian_log_density
from herdfilter.models._signatures import check_signature, takes_state

__all__ = ["predictive_mixture", "propagate", "require", "sample_initial", "sample_transition"]

Model = Any  # an object that follows the contract above; checked by `require` at the point of use

ADDITIVE = ("transition_mean", "transition_covariance")
"""What a model with additive Gaussian transition noise has."""

OBSERVED = ("observation_mean", "observation_covariance")
"""What a model has whose observations have a mean and a covariance, as Kalman filters ask for."""

SEEN = (("log_likelihood",), OBSERVED)
"""What a model has of which particles are weighted: a likelihood, or what one is derived from."""

OBSERVATION = (
    "log_likelihood",
    "partial_observations",
    *OBSERVED,
    "observation_circular",
    "observation_jacobian",
    "sample_observation",
    "scans",
)
"""All that the contract says about observations."""

MODES = ("models", "transition_matrix", "initial_modes")
"""What a model has that jumps between modes."""

COMPANIONS = {"transition_mean": "transition_jacobian", "observation_mean": "observation_jacobian"}
"""Function -> an optional one that is used with it."""


def has(model: Model, names: Sequence[str]) -> bool:
    """Whether a model has all these names."""
    return all(hasattr(model, name) for name in names)


def jumps(model: Model) -> bool:
    """Whether a model jumps between modes, each with functions of its own."""
    return has(model, MODES)


def in_mode(model: Model, mode: int) -> Model:
    """Return the model of one mode of a model that jumps; what is wrapped around that is wrapped around the mode's, too."""
    if hasattr(type(model), "in_mode"):  # a wrapper's own, not that of the model inside, which it passes on
        return model.in_mode(mode)
    if dataclasses.is_dataclass(model) and "model" in vars(model):
        wrapper: Any = model
        return dataclasses.replace(wrapper, model=in_mode(wrapper.model, mode))
    return model.models[mode]


def only_mode(model: Model) -> Model:
    """Return the model of a single mode in place of one that jumps between no others."""
    return in_mode(model, 0) if jumps(model) and len(model.models) == 1 else model


def kind(model: Model) -> str:
    """Return the name of a model's class, for errors; a model that is seen by a sensor says so."""
    return getattr(model, "kind_in_errors", type(model).__name__)


def require(model: Model, user: str, *alternatives: Sequence[str]) -> None:
    """Raise TypeError unless the model has all names of an alternative, as functions of the arguments of the contract.

    The error names what is missing, or the arguments expected.

    Examples
    --------
    It says nothing where all is there, and else what is missing:

    >>> from herdfilter.models.contract import require
    >>> require(hf.models.UNGM(), "my filter", ["log_likelihood"])
    >>> try:
    ...     require(hf.models.UNGM(), "my filter", ["transition_log_density"])
    ... except TypeError as error:
    ...     print(error)
    ...
    model: my filter needs transition_log_density; UNGM has no transition_log_density
    """
    if isinstance(model, type):
        raise TypeError(f"model: expected an instance, got the class {model.__name__}")
    met = [names for names in alternatives if has(model, names)]
    if not met and jumps(model):
        raise TypeError(
            f"model: {user} knows no modes, and {kind(model)} jumps between {len(model.models)}; those who "
            "know some are ParticleFilter, InteractingMultipleModel and MixtureKalmanFilter"
        )
    if not met:
        wanted = ", or ".join(" and ".join(names) for names in alternatives)
        missing = [name for name in alternatives[0] if not hasattr(model, name)]
        raise TypeError(f"model: {user} needs {wanted}; {kind(model)} has no {' and no '.join(missing)}")
    for name in dict.fromkeys(name for names in met for name in names):
        check_signature(model, name)
        if getattr(model, COMPANIONS.get(name, ""), None) is not None:
            check_signature(model, COMPANIONS[name])


def require_likelihood(model: Model, user: str) -> None:
    """Raise TypeError unless a model, or each of its modes, has a likelihood of its own or what one is derived from."""
    if jumps(model):
        for mode in range(len(model.models)):
            require_likelihood(in_mode(model, mode), user)
        return
    require(model, user, *(SEEN[:1] if has(model, SEEN[0]) else SEEN))


def check_state(model: Model, user: str, *needed: str) -> None:
    """Raise an error that names what is wrong with `dim`, `circular` or `initial`, as far as that shows without a draw.

    Parameters
    ----------
    model : object
    user : str
        Whose needs are named.
    *needed : str
        Names that the initial distribution must have, such as ``"sample"``.
    """
    require(model, user, ("dim", "initial"))
    dim, initial = check_count("model.dim", model.dim), model.initial
    circular = getattr(model, "circular", None)
    known = circular is None or (isinstance(circular, Iterable) and all(i in range(dim) for i in circular))
    if not known:
        raise ValueError(f"model.circular: expected indices from 0 to {dim - 1}, got {short_repr(circular)}")
    if isinstance(initial, type):
        raise TypeError(f"model.initial: expected an instance, got the class {initial.__name__}")
    missing = [name for name in needed if not hasattr(initial, name)]
    if missing:
        raise TypeError(
            f"model.initial: {user}'s initial distribution needs {' and '.join(needed)}; {type(initial).__name__} has "
            f"no {' and no '.join(missing)}: give herdfilter.GaussianMixture([1.0], [mean], covariance), or an object "
            "with sample(n, rng) -> (n, d)"
        )
    given = getattr(initial, "dim", dim)
    if given != dim:
        raise ValueError(f"model.initial: expected a distribution in {dim} dimensions, as dim says, got {given}")
    if isinstance(initial, GaussianMixture):
        rows("model.initial", initial.means, (None, dim), 0)
        as_covariance("model.initial", initial.distinct_covariances, dim)


def circular_dims(model: Model) -> tuple[int, ...]:
    """Return the indices of the angle-valued dimensions of a model."""
    circular = getattr(model, "circular", None)
    return () if circular is None else tuple(circular)


def simulated_only(model: Model) -> bool:
    """Whether a successor can only be drawn, not computed from its noise."""
    return not (has(model, ADDITIVE) or hasattr(model, "transition"))


def noise_dim(model: Model) -> int:
    """Return the dimension of the standard normal noise that `propagate` takes."""
    return check_count("model.noise_dim", model.noise_dim) if hasattr(model, "transition") else int(model.dim)


def transition_mean(model: Model, x: Array, dt: float, control: Any, step: int) -> Array:
    """Return the model's transition mean of states (n, d), checked."""
    return rows("transition_mean", model.transition_mean(x, dt, control, step), x.shape, step)


def transition_covariance(model: Model, dt: float, step: int) -> Array:
    """Return the model's transition covariance (d, d), checked."""
    return _transition_noise(model, dt, step).matrix.copy()


def _transition_noise(model: Model, dt: float, step: int) -> Covariance:
    return covariance("transition_covariance", model.transition_covariance(dt, step), model.dim, step)


def transition_factor(model: Model, dt: float, step: int) -> Array:
    """Return a factor F of the model's transition covariance, ``F @ F.T``, (d, d); not to be written to."""
    return _transition_noise(model, dt, step).factor


def propagate(model: Model, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
    """Push states (n, d) and standard normal noise (n, `noise_dim`) through the transition.

    Examples
    --------
    The same noise takes the same state to the same place, and none to the mean; an angle beyond pi comes out wrapped.

    >>> from herdfilter.models.contract import propagate
    >>> model = hf.models.from_functions(lambda x: x + 1, None, Q=[[1]], R=None, x0=[0], P0=[[1]], angles=[0])
    >>> x = propagate(model, np.array([[0.0], [3.0]]), np.zeros((2, 1)), 1.0, None, 1)
    >>> np.allclose(x, [[1.0], [4.0 - 2 * np.pi]])
    True
    """
    x, noise = as_numbers("x", x, (None, None)), as_numbers("noise", noise, (None, None))
    if hasattr(model, "transition"):
        moved = rows("transition", model.transition(x, noise, dt, control, step), x.shape, step)
    else:
        moved = transition_mean(model, x, dt, control, step) + noise @ transition_factor(model, dt, step).T
    return wrap_angles(moved, circular_dims(model))


def sample_transition(model: Model, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int) -> Array:
    """Draw one successor of each state (n, d), by whichever of the three forms of transition the model has.

    Examples
    --------
    Successors of 1000 times the same state have the transition's mean and covariance.

    >>> from herdfilter.models.contract import sample_transition
    >>> x = np.ones((1000, 1))
    >>> moved = sample_transition(hf.models.linear_chain(1), x, np.random.default_rng(0), 1.0, None, 1)
    >>> np.allclose(moved.mean(), 0.42, atol=0.15), np.allclose(moved.var(), 1.0, atol=0.2)
    (True, True)
    """
    x = as_numbers("x", x, (None, None))
    if hasattr(model, "transition") or has(model, ADDITIVE):
        return propagate(model, x, rng.standard_normal((len(x), noise_dim(model))), dt, control, step)
    moved = model.sample_transition(x, rng, dt, control, step)
    return wrap_angles(rows("sample_transition", moved, x.shape, step), circular_dims(model))


def sample_initial(model: Model, n: int, rng: np.random.Generator) -> Array:
    """Draw `n` independent initial states (n, d).

    Examples
    --------
    Positions around a known one, and any heading, in [-pi, pi):

    >>> from herdfilter.models.contract import sample_initial
    >>> x = sample_initial(hf.models.LandmarkLocalisation(), 5, np.random.default_rng(0))
    >>> x.shape, bool((abs(x[:, 2]) <= np.pi).all())
    ((5, 3), True)
    """
    drawn = rows("model.initial", model.initial.sample(n, rng), (n, model.dim), 0)
    return wrap_angles(drawn, circular_dims(model))


def sample_observation(model: Model, x: Array, rng: np.random.Generator, step: int) -> Any:
    """Draw one observation of each state, (n, d) -> (n, k), or a list of n scans."""
    if hasattr(model, "sample_observation"):
        drawn = model.sample_observation(x, rng, step)
        return drawn if has_scans(model) else np.asarray(with_nan(drawn))
    require(model, "simulation", ("sample_observation",), OBSERVED)
    mean = observation_mean(model, x, step)
    size, white = mean.shape[1], rng.standard_normal(mean.shape)
    if not takes_state(model):
        return mean + white @ _observation_noise(model, size, step).factor.T
    return mean + correlated(white, observation_covariances(model, x, size, step))


def correlated(white: Array, matrices: Array) -> Array:
    """Turn standard normal rows (n, k) into rows with covariances (n, k, k), or (1, k, k) for all."""
    factors = covariance_factor(matrices)
    if len(factors) == 1:
        return white @ factors[0].T
    return (factors @ white[:, :, None])[:, :, 0]


def observation_circular(model: Model, size: int) -> tuple[int, ...]:
    """Return the indices of the angle-valued ones of the `size` entries of an observation."""
    given = getattr(model, "observation_circular", None)
    circular = () if given is None else tuple(given)
    if any(i not in range(size) for i in circular):
        raise ValueError(f"observation_circular: expected indices from 0 to {size - 1}, got {circular}")
    return circular


def observation_mean(model: Model, x: Array, step: int) -> Array:
    """Return the model's mean observation of states (n, d), (n, k), checked."""
    return rows("observation_mean", model.observation_mean(x, step), (len(x), None), step)


def observation_covariance(model: Model, size: int, step: int) -> Array:
    """Return the observation covariance (size, size), checked, of a model where it does not depend on the state."""
    return _observation_noise(model, size, step).matrix.copy()


def observation_covariances(model: Model, x: Array, size: int, step: int) -> Array:
    """Return the model's observation covariances at states (n, d), checked, not to be written to.

    They are (n, size, size), or (1, size, size) where all states have the same.
    """
    if not takes_state(model):
        return _observation_noise(model, size, step).matrix[None]
    return covariances("observation_covariance", model.observation_covariance(step, x), len(x), size, step)


def require_constant_noise(model: Model, user: str) -> None:
    """Raise TypeError if the model's observation covariance depends on the state."""
    if takes_state(model):
        raise TypeError(
            f"model: {user} needs observation_covariance(step), the same for all states; that of "
            f"{kind(model)} takes the states, too"
        )


def _observation_noise(model: Model, size: int, step: int) -> Covariance:
    return covariance("observation_covariance", model.observation_covariance(step), size, step)


def takes_partial(model: Model) -> bool:
    """Whether the likelihood leaves out entries of an observation that are NaN, as one that is derived does."""
    return bool(getattr(model, "partial_observations", not hasattr(model, "log_likelihood")))


def log_likelihood(model: Model, z: Array, x: Array, step: int) -> Array:
    """Return the log-likelihood of states (n, d), (n,), checked: minus infinity is a number, NaN is none.

    It is the model's own, or that of Gaussian noise where there are mean and covariance alone; there, NaN is left out.
    """
    if not hasattr(model, "log_likelihood"):
        return _derived_log_likelihood(model, np.atleast_1d(z), x, step)
    values = shaped("log_likelihood", model.log_likelihood(z, x, step), (len(x),), step)
    if not values.max() < np.inf:  # NaN, too
        count = np.count_nonzero(np.isnan(values) | (values == np.inf))
        raise ValueError(
            f"log_likelihood: expected values below infinity from the model, got {count} NaN or +inf of "
            f"{len(x)} at step {step}"
        )
    return values


def _derived_log_likelihood(model: Model, z: Array, x: Array, step: int) -> Array:
    means = observation_mean(model, x, step)
    size = means.shape[1]
    if z.shape != (size,):
        raise ValueError(f"z: expected shape {(size,)}, as of observation_mean, got {z.shape} at step {step}")
    kept = np.flatnonzero(~np.isnan(z))
    residuals = wrap_angles(z - means, observation_circular(model, size))
    noises = observation_covariances(model, x, size, step)
    if len(kept) < size:
        residuals, noises = residuals[:, kept], noises[:, kept[:, None], kept]
    return gaussian_log_density(residuals, noises, step)


def predictive_mixture(model: Model, x: Array, weights: Array, dt: float, control: Any, step: int) -> GaussianMixture:
    """Return the predictive density ``sum_i w_i N(f(x_i), Q)`` of a model with additive Gaussian transition noise.

    Angles of the means are unwrapped about their circular mean.

    Examples
    --------
    Two weighted particles, and the density of where they go to:

    >>> from herdfilter.models.contract import predictive_mixture
    >>> x, weights = np.array([[0.0], [10.0]]), np.array([0.25, 0.75])
    >>> mixture = predictive_mixture(hf.models.linear_chain(1), x, weights, 1.0, None, 1)
    >>> mixture.weights.tolist(), np.round(mixture.means.ravel(), 6).tolist(), mixture.distinct_covariances.tolist()
    ([0.25, 0.75], [0.0, 4.2], [[[1.0]]])
    """
    x, weights = as_numbers("x", x, (None, None)), as_numbers("weights", weights, (None,))
    means = unwrap_angles(transition_mean(model, x, dt, control, step), weights, circular_dims(model))
    return GaussianMixture.unchecked(weights, means, transition_covariance(model, dt, step))


def has_scans(model: Model) -> bool:
    """Whether an observation by this model is a scan: detections (k, m), of any number k."""
    return bool(getattr(model, "scans", False))
