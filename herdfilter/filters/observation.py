"""An observation of one step, read once for the filter, its proposal and the Kalman update alike."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from herdfilter._checks import LARGEST, Array, as_number, as_numbers, short_repr
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap
from herdfilter.filters.state import Indices, Particles
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.with_clutter import WithClutter, read_scan


class Observation:
    """An observation with at least one entry present, and the model that reads it.

    Attributes
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    measurement : Measurement
        What has been resolved of its functions.
    z : ndarray
        The observation as the model's ``log_likelihood`` takes it: a vector (k,), or a scan (k, m); NaN where an entry is
        missing.
    step : int
        Its time index.
    log_offset : float or None
        The constant that is subtracted from all log-likelihoods; None until the first ones are computed, of which it is the
        largest. Weights do not depend on it, but a large one would cost them all digits; the filter adds it to the evidence.

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

    lowest = np.nan
    """The smallest of the first log-likelihoods by a function of the model's own."""

    def __init__(
        self,
        model: contract.Model | Measurement,
        z: Array,
        step: int,
        log_offset: float | None = 0.0,
    ) -> None:
        self.measurement = model if isinstance(model, Measurement) else Measurement(model)
        self.model = self.measurement.model
        self.z = z
        self.step = step
        self.log_offset = log_offset
        self.has_moments = self.measurement.has_moments
        # a scan of detections, each of which can guide particles
        self.is_scan = self.has_moments and isinstance(self.model, WithClutter)
        # Its moments can guide particles, or its likelihood unless it is a scan.
        self.guides = self.has_moments or not self.measurement.scans

    def __repr__(self) -> str:
        return summary_repr(
            self, model=self.model, z=self.z, step=self.step, log_offset=self.log_offset
        )

    @classmethod
    def read(
        cls,
        model: contract.Model | Measurement,
        z: Any,
        step: int,
        partial: bool | None = None,
    ) -> Observation | None:
        """Read an observation as a user passes it; None if it is missing. A number is a vector of one entry.

        It is missing if it is None or NaN in all entries; without `partial`, also if it is NaN in any entry. Masked entries
        and ``pandas.NA`` count as NaN. `partial` defaults to the model's ``partial_observations``, and to True where the
        likelihood is derived from mean and covariance. ValueError if `z` is not an array of finite numbers.
        """
        if z is None:
            return None
        measurement = model if isinstance(model, Measurement) else Measurement(model)
        # an empty scan is an observation: that of a miss
        if isinstance(measurement.model, WithClutter):
            reading_model, detections = read_scan(measurement.model, z, step)  # type: ignore[misc]
            if reading_model is not measurement.model:
                return cls.read(reading_model, detections, step, partial)
            return cls(measurement, detections, step, None)
        if type(z) is not np.ndarray or z.dtype != np.float64:
            try:
                z = as_numbers("z", z, (None,), missing=True)
            except ValueError:
                raise ValueError(
                    f"z: expected None or an array of numbers, got {short_repr(z)} at step {step}"
                ) from None
        if not z.ndim:
            z = z[None]
        if z.ndim > 1 and len(z) > 1 and measurement.has_moments:
            raise ValueError(
                f"z: expected the entries of one observation, got shape {z.shape} at step {step}"
            )
        # the common case; False if any entry is NaN
        if z.size and np.abs(z).max() <= LARGEST:
            return cls(measurement, z, step, None)
        if (np.abs(z) > LARGEST).any():
            raise ValueError(
                f"z: expected finite numbers, or NaN where missing, got {z} at step {step}; beyond {LARGEST:g} choose "
                "larger units"
            )
        if partial is None:
            partial = measurement.takes_partial
        missing = z.size and (np.isnan(z).all() or not partial)
        return None if missing else cls(measurement, z, step, None)

    def log_likelihood(self, x: Array, modes: Indices | None = None) -> Array:
        """Log-likelihood (n,) of states (n, d), each in its mode (n,) if the model jumps, less `log_offset`."""
        if modes is None:  # one model for all particles
            return self.less_offset(self.measurement.log_likelihood(self.z, x, self.step))
        values = np.empty(len(x))
        for mode in np.unique(modes):
            members = modes == mode
            values[members] = self.measurement.modes[mode].log_likelihood(
                self.z, x[members], self.step
            )
        return self.less_offset(values)

    def less_offset(self, values: Array) -> Array:
        """Return log-likelihoods (n,) less `log_offset`, which is set to the largest of them if it is None."""
        if self.log_offset is None and values.max() > -np.inf:
            self.log_offset = float(values.max())
            if self.measurement.has_likelihood:
                self.lowest = float(values.min())
        offset = self.log_offset or 0.0
        # no difference can overflow; `errstate` would cost more than the subtraction
        if abs(offset) < LARGEST:
            return values - offset
        with np.errstate(over="ignore"):  # to -inf: a weight of zero
            return values - offset

    def weigh(self, particles: Particles) -> Particles:
        """Return the particles with their weights times the likelihood, not normalised."""
        return particles.updated(self)

    def in_mode(self, mode: int) -> Observation:
        """Return the observation as the model of one mode reads it."""
        return self.by(self.measurement.in_mode(mode))

    def by(self, model: contract.Model | Measurement) -> Observation:
        """Return the same observation as another model reads it."""
        return type(self)(model, self.z, self.step, self.log_offset)

    def after(self, transition: Transition) -> Observation:
        """Return the observation as a function of state and noise before a transition, rows (n, d + noise_dim)."""
        return self.by(_BeforeTransition(transition, self.measurement))

    @cached_property
    def vector(self) -> Array:
        """The observation as a vector (k,). TypeError if it is a scan, ValueError if it is not a vector."""
        if self.measurement.scans:
            raise TypeError(
                f"z: expected an observation, got a scan of {len(self.z)} detections at step {self.step}; take a filter for "
                "scans: a particle filter, or a Kalman filter of one Gaussian such as ukf"
            )
        if self.z.ndim != 1:
            raise ValueError(f"z: expected a vector, got shape {self.z.shape} at step {self.step}")
        return self.z

    @cached_property
    def observed_entries(self) -> np.ndarray:
        """Indices of the entries that are not missing."""
        return np.flatnonzero(~np.isnan(self.vector))

    @cached_property
    def circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries."""
        return self.measurement.circular(self.vector.shape[-1])

    def mean(self, x: Array) -> Array:
        """Mean observation of each state (n, d), (n, k); ValueError unless it has the shape of the observation."""
        means = self.measurement.mean(x, self.step)
        if means.shape[1:] != self.vector.shape[-1:]:
            self.expect(means.shape[1:], "observation_mean")
        return means

    def noises(self, x: Array) -> Array:
        """Noise covariances of the observed entries at states (n, d): (n, k, k), or (1, k, k) for all."""
        return self.part(self.measurement.noises(x, len(self.vector), self.step))

    def part(self, matrices: Array) -> Array:
        """Rows and columns of matrices (..., k, k) that belong to the observed entries."""
        # nothing is missing: no copy
        if len(self.observed_entries) == matrices.shape[-1]:
            return matrices
        rows, columns = np.ix_(self.observed_entries, self.observed_entries)
        return matrices[..., rows, columns]

    def expect(self, shape: tuple[int, ...], where: str) -> None:
        """Raise ValueError unless the vector has the shape of the result of the model's function `where`."""
        if self.vector.shape[-1:] != shape:
            raise ValueError(f"z: expected shape {shape}, as {where} has, got {np.shape(self.z)}")

    def residuals(self, predictions: Array) -> Array:
        """Observed entries of ``z - predictions``, angles wrapped, (..., k) -> (..., observed)."""
        self.expect(predictions.shape[-1:], "observation_mean")
        return wrap(self.vector - predictions, self.circular)[..., self.observed_entries]

    def beyond(self, gate: float, moments: tuple[Array, Array] | None) -> bool:
        """Return True if it lies outside the ellipsoid that has the probability `gate` under its prediction, N(`moments`).

        Missing entries do not count. TypeError without moments: the model has only a likelihood, or takes scans.
        """
        if moments is None or self.measurement.scans:
            raise TypeError(
                f"gate: expected None, as {contract.kind(self.model)} has no mean and covariance of one observation, "
                f"got {gate}"
            )
        residuals = self.residuals(moments[0])[None]
        return bool(outside(residuals, self.part(moments[1])[None], gate, self.step)[0])


class ObservationRows(Observation):
    """Observations z (K, k) at a step, one for each of K states; NaN where entries are missing."""

    @property
    def vector(self) -> Array:
        """The observations."""
        return self.z


def outside(residuals: Array, covariances: Array, gate: float, step: int) -> Any:
    """Return which residuals (n, k) lie outside the ellipsoids of N(0, S), S (n, k, k), that hold the probability `gate`.

    The result is boolean, (n,). NaN stands for missing entries, which are uncorrelated with the others.
    """
    gate = as_number("gate", gate, "a probability such as 0.999", lambda p: 0 < p < 1)
    # The squared Mahalanobis distance is chi-square with as many degrees of freedom as entries are present; its quantile is
    # twice the inverse of the regularised incomplete gamma function.
    present = ~np.isnan(residuals)
    residuals = np.where(present, residuals, 0.0)
    try:
        white = np.linalg.solve(covariances, residuals[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        raise ValueError(
            f"gate: expected None, as the covariance predicted for the observation is singular to rounding, got "
            f"{gate:g} at step {step}"
        ) from None
    return np.asarray(
        (residuals * white).sum(axis=1) > 2 * gammaincinv(present.sum(axis=1) / 2, gate)
    )


class _BeforeTransition(Measurement):
    """The measurement of the state that (state, noise) leads to, as a function of both."""

    def __init__(self, transition: Transition, measurement: Measurement) -> None:
        self.__dict__ |= measurement.__dict__
        self.transition = transition
        self.measurement = measurement
        self._jacobian = None  # that of the measurement alone does not apply
        self.state_circular = transition.circular

    def mean(self, joint: Array, step: int) -> Array:
        return self.measurement.mean(self.transition.propagate_joint(joint), step)

    def noises(self, joint: Array, size: int, step: int) -> Array:
        return self.measurement.noises(self.transition.propagate_joint(joint), size, step)


def linear_part_observation(
    measurement: Measurement, x: Array, covariances: Array, step: int
) -> tuple[Array, Array, Array]:
    """Moments of the observation predicted by each N(x[i], covariances[i]), linear in the model's ``linear`` dimensions.

    Return means (n, k), covariances (n, k, k) or (1, k, k), noise included, and cross-covariances of state and observation
    (n, d, k).
    """
    dims = np.array(measurement.model.linear)
    means, slopes = contract.linear_slopes(measurement.at(step), x, covariances, dims)
    k = means.shape[1]
    noises = measurement.noises(x, k, step)
    # P H' and H P H' + R; where only the nonlinear part is observed the slopes H are zero, and one row serves all.
    cross = (
        covariances[:, :, dims] @ slopes.transpose(0, 2, 1)
        if slopes.any()
        else np.zeros((1, x.shape[1], k))
    )
    observed = noises + slopes @ cross[:, dims]
    return means, observed, np.broadcast_to(cross, (len(observed), *cross.shape[1:]))
