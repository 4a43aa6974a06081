"""A model resolved: its motion and its measurement, asked once which functions there are, and their checked values.

Filters ask these two objects. Nothing in the folders above looks into a model for a name.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np

from herdfilter._checks import Array, as_covariance, as_dims, as_generator, ask_twice, check_count, read_only, with_nan
from herdfilter.angles import wrap, wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.contract import FactoredCovariance, Model, read_covariance, read_numbers, read_rows

# Functions that are tried: the mean observation comes first, as others take an observation
TRIED: dict[str, Any] = {
    "observation_mean": ("x", "step"),
    "detection_probabilities": ("x", "step"),
    "clutter_densities": ("z", "step"),
    **contract.TRANSITION,
    **contract.OBSERVATION,
}
TRIALS = 64, 0, 1, 2, 3  # lengths of a vector with which functions are tried: indices are in range, or shapes fit
_tried: WeakValueDictionary[int, Any] = WeakValueDictionary()  # models and sensors whose functions have been tried


class Resolved:
    """A part of a model, which is never changed: a copy of what holds it holds the same."""

    modes: Any

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def in_mode(self, mode: int) -> Self:
        """Return that of a mode; of a model that does not jump, the only one."""
        resolved: Self = self.modes[mode if len(self.modes) > 1 else 0]
        return resolved


class Motion(Resolved):
    """How states move from step to step.

    Attributes
    ----------
    model : object
    dim : int
    circular : tuple of int
        Indices of the angle-valued dimensions.
    has_moments : bool
        True if the model has the mean and the covariance of additive Gaussian noise.
    additive : bool
        True if it has these alone, and no function of noise that is not additive.
    has_mean, has_density : bool
        True if it has a ``transition_mean``, a ``transition_log_density``.
    simulated_only : bool
        True if a successor can only be drawn, not computed from its noise.
    jacobian : callable or None
        ``transition_jacobian``.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.dim = int(model.dim)
        self.circular = contract.circular_dims(model)
        self.has_mean = hasattr(model, "transition_mean")
        self.has_moments = self.has_mean and hasattr(model, "transition_covariance")
        self._from_noise = hasattr(model, "transition")
        self.additive = self.has_moments and not self._from_noise
        self.simulated_only = not (self.has_moments or self._from_noise)
        self.has_density = hasattr(model, "transition_log_density")
        self.jacobian = getattr(model, "transition_jacobian", None)

    @cached_property
    def modes(self) -> tuple[Motion, ...]:
        """Those of the modes of a model that jumps; of any other, this one."""
        if not contract.jumps(self.model):
            return (self,)
        return tuple(Motion(contract.in_mode(self.model, mode)) for mode in range(len(self.model.models)))

    @cached_property
    def noise_dim(self) -> int:
        """Dimension of the standard normal noise that `propagate` takes."""
        return check_count("model.noise_dim", self.model.noise_dim) if self._from_noise else self.dim

    def copied(self) -> Motion:
        """Return the motion of the model as it is now, whose attributes may be replaced later."""
        try:
            model = copy.copy(self.model)
        except TypeError:  # a module cannot be copied, what it holds can
            names = [name for name in dir(self.model) if name[:2] != "__"]
            model = SimpleNamespace(**{name: getattr(self.model, name) for name in names})
        motion = object.__new__(Motion)
        motion.__dict__ = self.__dict__ | {"model": model}
        if self.jacobian is not None:
            motion.jacobian = model.transition_jacobian
        modes = self.modes
        motion.modes = (motion,) if modes[0] is self else tuple(mode.copied() for mode in modes)
        return motion

    def sample_initial(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` independent initial states (n, d)."""
        drawn = read_rows("model.initial", self.model.initial.sample(n, rng), (n, self.dim), 0)
        return wrap_angles(drawn, self.circular)

    def mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Transition mean of states (n, d), its angles not wrapped."""
        mean = self.model.transition_mean(read_only(x), dt, control, step)
        return read_rows("transition_mean", mean, x.shape, step)

    def noise(self, dt: float, step: int) -> FactoredCovariance:
        """Covariance of additive noise (d, d)."""
        return read_covariance("transition_covariance", self.model.transition_covariance(dt, step), self.dim, step)

    def propagate(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """Move states (n, d) by the transition with standard normal noise (n, `noise_dim`); angles are wrapped."""
        if self._from_noise:
            moved = self.model.transition(read_only(x), read_only(noise), dt, control, step)
            moved = read_rows("transition", moved, x.shape, step)
        else:
            moved = self.mean(x, dt, control, step) + noise @ self.noise(dt, step).factor.T
        return wrap(moved, self.circular)

    def sample(self, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int) -> Array:
        """Draw the next state of each state (n, d), by any of the three forms of a transition."""
        if not self.simulated_only:
            return self.propagate(x, rng.standard_normal((len(x), self.noise_dim)), dt, control, step)
        moved = self.model.sample_transition(read_only(x), rng, dt, control, step)
        return wrap(read_rows("sample_transition", moved, x.shape, step), self.circular)


class Measurement(Resolved):
    """How states are observed.

    Attributes
    ----------
    model : object
    has_likelihood : bool
        True if the model has a ``log_likelihood`` of its own.
    has_moments : bool
        True if it has the mean and the covariance of the observation, as Kalman's update needs.
    takes_partial : bool
        True if the likelihood leaves out the NaN entries of an observation, as a derived one does.
    scans : bool
        True if an observation is a scan: any number k of detections, (k, m).
    draws : bool
        True if it has a ``sample_observation``.
    jacobian : callable or None
        ``observation_jacobian``.
    entries_circular, state_circular : sequence of int
        Indices of the angle-valued entries of an observation, as the model gives them, and dimensions of the state.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.has_likelihood = hasattr(model, "log_likelihood")
        self.has_moments = contract.has(model, contract.OBSERVED)
        self.takes_partial = bool(getattr(model, "partial_observations", not self.has_likelihood))
        self.scans = contract.has_scans(model)
        self.draws = hasattr(model, "sample_observation")
        self.jacobian = getattr(model, "observation_jacobian", None)
        self.state_circular = contract.circular_dims(model)
        self.entries_circular = getattr(model, "observation_circular", None)

    @cached_property
    def modes(self) -> tuple[Measurement, ...]:
        """Those of the modes of a model that jumps; of any other, this one."""
        if not contract.jumps(self.model):
            return (self,)
        return tuple(Measurement(contract.in_mode(self.model, mode)) for mode in range(len(self.model.models)))

    @cached_property
    def takes_state(self) -> bool:
        """True if the covariance of the observation depends on the state."""
        return contract.takes_state(self.model)

    def circular(self, size: int) -> tuple[int, ...]:
        """Return the indices of the angle-valued entries of an observation of this size."""
        return () if self.entries_circular is None else as_dims("observation_circular", self.entries_circular, size)

    def mean(self, x: Array, step: int) -> Array:
        """Mean observation of states (n, d), (n, k)."""
        return read_rows("observation_mean", self.model.observation_mean(read_only(x), step), (len(x), None), step)

    def noise(self, size: int, step: int) -> FactoredCovariance:
        """Covariance of the observation (size, size), where it does not depend on the state."""
        return read_covariance("observation_covariance", self.model.observation_covariance(step), size, step)

    def noises(self, x: Array, size: int, step: int) -> Array:
        """Covariances of the observation at states (n, d): (n, size, size), or (1, size, size) for all; read-only."""
        if not self.takes_state:
            return self.noise(size, step).matrix[None]
        name = "observation_covariance"
        value = self.model.observation_covariance(step, read_only(x))
        array = read_numbers(name, value, (len(x), size, size), step)
        if (array == array[0]).all():
            return read_covariance(name, np.asarray(value)[0], size, step).matrix[None]
        return contract.read_covariances(name, value, size, step)

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        """Log-likelihood of states (n, d), (n,): -inf is allowed, NaN is not.

        It is the model's own; without one, noise is Gaussian about the mean observation, and NaN entries of z are left out.
        """
        if self.has_likelihood:
            values = read_numbers("log_likelihood", self.model.log_likelihood(z, read_only(x), step), (len(x),), step)
            if not values.max() < np.inf:  # NaN, too
                count = np.count_nonzero(np.isnan(values) | (values == np.inf))
                raise ValueError(
                    f"log_likelihood: expected values below infinity from the model, got {count} NaN or +inf of "
                    f"{len(x)} at step {step}"
                )
            return values
        z = np.atleast_1d(z)
        means = self.mean(x, step)
        size = means.shape[1]
        if z.shape != (size,):
            raise ValueError(f"z: expected shape {(size,)}, as observation_mean has, got {z.shape} at step {step}")
        observed = np.flatnonzero(~np.isnan(z))
        residuals = wrap(z - means, self.circular(size))
        noises = self.noises(x, size, step)
        if len(observed) < size:
            residuals = residuals[:, observed]
            noises = noises[:, observed[:, None], observed]
        return contract.gaussian_log_density(residuals, noises, step)

    def sample(self, x: Array, rng: np.random.Generator, step: int) -> Any:
        """Draw one observation of each state, (n, d) -> (n, k), or a list of n scans."""
        if self.draws:
            drawn = self.model.sample_observation(read_only(x), rng, step)
            return drawn if self.scans else np.asarray(with_nan(drawn))
        contract.require(self.model, "simulation", ("sample_observation",), contract.OBSERVED)
        mean = self.mean(x, step)
        white = rng.standard_normal(mean.shape)
        if not self.takes_state:
            return mean + white @ self.noise(mean.shape[1], step).factor.T
        return mean + contract.correlated(white, self.noises(x, mean.shape[1], step))


def only_mode(model: Model) -> Model:
    """Return the model of the mode if there is a single one, else the model itself."""
    return contract.in_mode(model, 0) if contract.jumps(model) and len(model.models) == 1 else model


def check_state(model: Model, user: str, *needed: str) -> None:
    """Raise an error if `dim`, `circular` or `initial` is wrong, or the initial distribution lacks a `needed` name."""
    contract.require(model, user, ("dim", "initial"))
    dim, initial = check_count("model.dim", model.dim), model.initial
    as_dims("model.circular", () if getattr(model, "circular", None) is None else model.circular, dim)
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
        read_rows("model.initial", initial.means, (None, dim), 0)
        as_covariance("model.initial", initial.distinct_covariances, dim)
    if not contract.jumps(model):
        try_model(model, getattr(model, "_model", model))  # tracks share one model


def try_model(model: Model, owner: Any) -> Model:
    """Return a model unless a function of it writes to its arguments, or gives another value when it is called again.

    They are tried at five states of the initial distribution, once for each `owner`. Errors of their own are raised where
    they are used.
    """
    if _tried.get(id(owner)) is owner:
        return model
    try:
        motion = Motion(model)
        x = motion.sample_initial(5, as_generator(0))
        known = {"x": x, "x_next": x, "noise": np.ones((5, motion.noise_dim)), "dt": 1.0, "step": 1}
    except Exception:
        return model
    scans = contract.has_scans(model)
    for name, arguments in TRIED.items():
        for size in TRIALS if arguments and "rng" not in arguments and hasattr(model, name) else ():
            vector = np.ones(size)  # a control, or an observation, of unknown length
            given = {"z": vector[:0, None] if scans else vector, "control": vector if size else None} | known
            named = getattr(model, "names_in_errors", {}).get(name, name)
            states = [x] * (not size and name == "observation_covariance")  # it may take them
            value = ask_twice(named, getattr(model, name), *map(given.get, arguments), *states)
            if value is not None:
                if name == "observation_mean":
                    known["z"] = value[:1] if scans else value[0]
                break
    with suppress(TypeError):  # an object with slots
        _tried[id(owner)] = owner
    return model
