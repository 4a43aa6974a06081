"""What was observed at a step, read once for the filter, its proposal and Kalman's update alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from herdfilter._checks import LARGEST, Array, as_number, as_numbers, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.angles import mean_and_covariance, merged, wrap
from herdfilter.filters.particles import Particles
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.with_clutter import WithClutter, read_scan


@dataclass(eq=False, repr=False)
class Observation:
    """An observation, not missing altogether, and the model that reads it.

    Attributes
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    z : ndarray
        The observation in the form that the model's ``log_likelihood`` takes; NaN where an entry is missing.
    step : int
        Its time index.
    log_offset : float or None
        The constant that all log-likelihoods lack; None stands for the largest of those that are first asked for. Weights
        are the same without it, and a large one would leave them no digits; the filter adds it to the evidence.

    Examples
    --------
    Range and bearing of a target; the bearing is missing. The model's likelihood is derived from its mean and covariance,
    so that the range counts alone.

    >>> model = hf.models.from_functions(
    ...     f=lambda x: x, h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
    ...     Q=np.eye(2), R=np.diag([0.5, 0.1]), initial_mean=[3, 4], initial_covariance=np.eye(2), observation_circular=[1],
    ... )
    >>> observation = hf.Observation.read(model, [5.0, np.nan], step=1)
    >>> observation.observed_entries.tolist(), observation.circular
    ([0], (1,))
    >>> values = observation.log_likelihood(np.array([[3.0, 4.0], [-4.0, 3.0], [5.0, 12.0]]))
    >>> bool(values[0] == values[1] > values[2])
    True
    """

    model: contract.Model
    z: Array
    step: int
    log_offset: float | None = 0.0

    __repr__ = fields_in_line

    @classmethod
    def read(cls, model: contract.Model, z: Any, step: int, partial: bool | None = None) -> Observation | None:
        """Read what a user gives as an observation; None if it is missing.

        It is missing if it is None or NaN in all entries; without `partial`, also if it is NaN in any entry. What a mask
        hides, and ``pandas.NA``, is NaN. The model's ``partial_observations`` decides unless `partial` is given, and a
        likelihood that is derived leaves NaN out. ValueError if `z` is no array of numbers, or one of them is infinite.
        """
        if z is None:
            return None
        if isinstance(model, WithClutter):
            read = read_scan(model, z, step)
            if read is not None and read[0] is not model:
                return cls.read(*read, step, partial)
            return None if read is None else cls(*read, step, None)
        if type(z) is not np.ndarray or z.dtype != np.float64:
            try:
                z = as_numbers("z", z, (None,), missing=True)
            except ValueError:
                raise ValueError(f"z: expected None or an array of numbers, got {short_repr(z)} at step {step}") from None
        if z.ndim > 1 and len(z) > 1 and contract.has(model, contract.OBSERVED):
            raise ValueError(f"z: expected the entries of one observation, got shape {z.shape} at step {step}")
        if z.size and np.abs(z).max() <= LARGEST:
            return cls(model, z, step, None)
        if np.isinf(z).any():
            raise ValueError(f"z: expected finite numbers, or NaN where missing, got {z} at step {step}")
        if (np.abs(z) > LARGEST).any():
            raise ValueError(f"z: expected numbers up to {LARGEST:g}, got {z} at step {step}; choose larger units")
        if partial is None:
            partial = contract.takes_partial(model)
        missing = z.size and (np.isnan(z).all() or not partial)
        return None if missing else cls(model, z, step, None)

    def log_likelihood(self, x: Array, modes: NDArray[np.int64] | None = None) -> Array:
        """Log-likelihood of each state (n, d) by the model, in its mode (n,) if the model jumps: (n,), less `log_offset`."""
        if modes is None:
            values = contract.log_likelihood(self.model, self.z, x, self.step)
        else:
            values = np.empty(len(x))
            for mode in np.unique(modes):
                members = modes == mode
                own = contract.in_mode(self.model, int(mode))
                values[members] = contract.log_likelihood(own, self.z, x[members], self.step)
        return self.less_offset(values)

    def less_offset(self, values: Array) -> Array:
        """Return log-likelihoods (n,) less `log_offset`, which is the largest of them unless it is known."""
        if self.log_offset is None and values.max() > -np.inf:
            self.log_offset = float(values.max())
        with np.errstate(over="ignore"):  # so much less than the largest that nothing is left
            return values - (self.log_offset or 0.0)

    def weigh(self, particles: Particles) -> Particles:
        """Return the particles with their weights times the likelihood, not normalised."""
        return particles.reweighted(self.log_likelihood(particles.x, particles.modes))

    @cached_property
    def has_moments(self) -> bool:
        """True if the model has a mean and a covariance of the observation, as Kalman's update needs."""
        return contract.has(self.model, contract.OBSERVED)

    @cached_property
    def guides(self) -> bool:
        """True if particles can be moved with a look at it: by its moments or, unless it is a scan, by its likelihood."""
        return self.has_moments or not contract.has_scans(self.model)

    def in_mode(self, mode: int) -> Observation:
        """Return the observation as the model of one mode reads it."""
        return replace(self, model=contract.in_mode(self.model, mode))

    def after(self, transition: Transition) -> Observation:
        """Return the observation as that of states and noise side by side, (n, d + noise_dim), before a transition."""
        return replace(self, model=_BeforeTransition(transition, self.model))

    @cached_property
    def vector(self) -> Array:
        """The observation as a vector (k,); a number is an entry. TypeError if it is a scan, ValueError if not a vector."""
        if contract.has_scans(self.model):
            raise TypeError(
                f"z: expected an observation, got a scan of {len(self.z)} detections at step {self.step}; take a filter for "
                "scans: a particle filter, or a Kalman filter of one Gaussian such as ukf"
            )
        z = np.atleast_1d(self.z)
        if z.ndim != 1:
            raise ValueError(f"z: expected a vector, got shape {z.shape} at step {self.step}")
        return z

    @cached_property
    def observed_entries(self) -> np.ndarray:
        """Indices of the entries that are not missing."""
        return np.flatnonzero(~np.isnan(self.vector))

    @cached_property
    def circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries."""
        return contract.observation_circular(self.model, self.vector.shape[-1])

    def mean(self, x: Array) -> Array:
        """Mean observation of each state (n, d), (n, k); ValueError unless it has the shape of the observation."""
        means = contract.observation_mean(self.model, x, self.step)
        self.expect(means.shape[1:], "observation_mean")
        return means

    def noises(self, x: Array) -> Array:
        """Noise covariances of the observed entries at states (n, d): (n, k, k), or (1, k, k) for all."""
        return self.part(contract.observation_covariances(self.model, x, len(self.vector), self.step))

    def part(self, matrices: Array) -> Array:
        """Rows and columns of matrices (..., k, k) that belong to the observed entries."""
        self.expect(matrices.shape[-1:], "observation_mean")
        if len(self.observed_entries) == matrices.shape[-1]:
            return matrices
        rows, columns = np.ix_(self.observed_entries, self.observed_entries)
        return matrices[..., rows, columns]

    def expect(self, shape: tuple[int, ...], where: str) -> None:
        """Raise ValueError unless the vector has this shape, that of the result of the model's function `where`."""
        if self.vector.shape[-1:] != shape:
            raise ValueError(f"z: expected shape {shape}, as {where} has, got {np.shape(self.z)}")

    def residuals(self, predictions: Array) -> Array:
        """Observed entries of ``z - predictions``, angles wrapped, (..., k) -> (..., observed)."""
        self.expect(predictions.shape[-1:], "observation_mean")
        return wrap(self.vector - predictions, self.circular)[..., self.observed_entries]

    def beyond(self, gate: float, moments: tuple[Array, Array] | None) -> bool:
        """Return True if it lies outside the ellipsoid that holds its prediction, N(`moments`), with probability `gate`.

        Missing entries do not count. TypeError without moments, as of a model that has a likelihood only or takes scans.
        """
        gate = as_number("gate", gate, "a probability such as 0.999", lambda p: 0 < p < 1)
        if moments is None or contract.has_scans(self.model):
            raise TypeError(
                f"gate: expected None, as {contract.kind(self.model)} has no mean and covariance of one observation, "
                f"got {gate:g}"
            )
        return bool(outside(self.residuals(moments[0])[None], self.part(moments[1])[None], gate, self.step)[0])


@dataclass(eq=False, repr=False)
class Observations(Observation):
    """Observations z (K, k) at a step, one of each of K states; NaN where entries are missing."""

    @property
    def vector(self) -> Array:
        """The observations."""
        return self.z


def outside(residuals: Array, covariances: Array, gate: float, step: int) -> Any:
    """Return which residuals (n, k) lie outside the ellipsoids of N(0, S), S (n, k, k), that hold the probability `gate`.

    NaN stands for missing entries, which are uncorrelated with the others.
    """
    present = ~np.isnan(residuals)
    residuals = np.where(present, residuals, 0.0)
    try:
        white = np.linalg.solve(covariances, residuals[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        raise ValueError(
            f"gate: expected None, as the covariance that is predicted for the observation is singular to rounding, got "
            f"{gate:g} at step {step}"
        ) from None
    return np.asarray((residuals * white).sum(axis=1) > 2 * gammaincinv(present.sum(axis=1) / 2, gate))


class _BeforeTransition:
    """The part of a model by which states and noise, side by side, are observed after the transition."""

    def __init__(self, transition: Transition, observed: contract.Model) -> None:
        self.transition, self.observed = transition, observed
        self.dim = transition.model.dim + transition.noise_dim
        self.circular = transition.circular
        self.observation_circular = getattr(observed, "observation_circular", None)
        state_dependent = contract.takes_state(observed)
        self.observation_covariance = self._noise if state_dependent else observed.observation_covariance

    def observation_mean(self, joint: Array, step: int) -> Array:
        return contract.observation_mean(self.observed, self.transition.propagate_joint(joint), step)

    def _noise(self, step: int, joint: Array) -> Any:
        return self.observed.observation_covariance(step, self.transition.propagate_joint(joint))


def linear_observation(model: contract.Model, x: Array, covariances: Array, step: int) -> tuple[Array, Array, Array]:
    """Moments of the observation by each N(x[i], covariances[i]) of a model's linear dimensions, given the others.

    Return means (n, k), covariances (n, k, k) or (1, k, k), noise included, and those of state and observation (n, d, k).
    """
    dims = np.array(model.linear)
    jacobian = getattr(model, "observation_jacobian", None)
    function = contract.VectorFunction(
        lambda x: contract.observation_mean(model, x, step),
        lambda size: contract.observation_circular(model, size),
        jacobian and (lambda x: jacobian(x, step)),
    )
    means, slopes = contract.linear_slopes(function, x, covariances, dims)
    noises = contract.observation_covariances(model, x, means.shape[1], step)
    cross = (
        covariances[:, :, dims] @ slopes.transpose(0, 2, 1) if slopes.any() else np.zeros((1, x.shape[1], means.shape[1]))
    )
    observed = noises + slopes @ cross[:, dims]
    return means, observed, np.broadcast_to(cross, (len(observed), *cross.shape[1:]))


def predicted_observation(model: contract.Model, particles: Particles, step: int) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of the observation of weighted particles, in their modes if the model jumps."""
    x, weights, modes = particles.x, particles.weights, particles.modes
    if particles.covariances is not None:
        means, covariances, _ = linear_observation(model, x, particles.covariances, step)
        covariances = np.broadcast_to(covariances, (len(x), *covariances.shape[1:]))
        return merged(means, covariances, weights, contract.observation_circular(model, means.shape[1]))
    if modes is None:
        mean, covariance, noise = predicted_moments(model, x, weights, step)
        return mean, covariance + noise
    parts = []
    for mode in np.unique(modes):
        own, members = contract.in_mode(model, int(mode)), modes == mode
        share = weights[members].sum()
        if share > 0:
            mean, covariance, noise = predicted_moments(own, x[members], weights[members] / share, step)
            parts.append((share, mean, covariance + noise))
    shares, means, covariances = (np.array(values) for values in zip(*parts, strict=True))
    return merged(means, covariances, shares, contract.observation_circular(own, means.shape[1]))


def predicted_moments(model: contract.Model, x: Array, weights: Array, step: int) -> tuple[Array, Array, Array]:
    """Mean (k,) and covariance (k, k) of the mean observations of weighted states (n, d), and that of the noise (k, k)."""
    values = contract.observation_mean(model, x, step)
    size = values.shape[1]
    noises = contract.observation_covariances(model, x, size, step)
    noise = noises[0] if len(noises) == 1 else np.tensordot(weights, noises, 1)
    return *mean_and_covariance(values, weights, contract.observation_circular(model, size)), noise
