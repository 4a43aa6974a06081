"""Forecasts of states and observations: a copy of a filter predicts on, and the filter itself is unchanged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import (
    MAX_STEPS,
    Array,
    as_array,
    as_generator,
    as_list,
    check_count,
    short_repr,
)
from herdfilter._repr import summary_repr
from herdfilter.angles import mean_and_covariance, unwrap
from herdfilter.filters.observation import linear_part_observation
from herdfilter.filters.resampling.base import inverse_cdf
from herdfilter.filters.results import Views
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.filters.state import Indices
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, resolved, sensors, series, with_clutter
from herdfilter.samplers.quantile import quantiles as mixture_quantiles

LEAST_DRAWS = 1000  # fewest observations to draw at each step


class Spread(NamedTuple):
    """A distribution to take quantiles of: weighted points (n, m), or Gaussians with covariances (n or 1, m, m)."""

    centres: Array
    weights: Array
    covariances: Array | None = None
    modes: Indices | None = None  # (n,), of particles in a model that jumps

    def quantiles(self, levels: Array, circular: tuple[int, ...]) -> Array:
        """Return quantiles (P, m) of each entry; those of points are interpolated between the middles of their weights."""
        values = np.full((len(levels), self.centres.shape[1]), np.nan)
        order = np.argsort(levels)
        for i, centres in enumerate(self.centres.T):
            # a model may draw observations with missing entries
            present = ~np.isnan(centres)
            if not present.any():
                continue
            weights = self.weights[present] / self.weights[present].sum()
            # Quantiles of an angle are those of the unwrapped values, about their circular mean.
            x = unwrap(centres[present, None], weights, (0,) if i in circular else ())
            if self.covariances is not None and self.covariances[:, i, i].any():
                variances = np.broadcast_to(self.covariances[:, i, i, None, None], (len(x), 1, 1))
                mixture = GaussianMixture.unchecked(weights, x, variances)
                values[order, i] = mixture_quantiles(mixture, levels[order])[0]
            else:
                ranks = x[:, 0].argsort(kind="stable")
                values[:, i] = np.interp(
                    levels, np.cumsum(weights[ranks]) - 0.5 * weights[ranks], x[ranks, 0]
                )
        return values


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Views):
    """States and observations at H steps ahead of a filter, given the observations that it has had.

    Attributes
    ----------
    means, covariances : ndarray, shapes (H, d) and (H, d, d)
        Of the state.
    steps, times : ndarray, shape (H,)
        Time indices; times as numbers, durations or dates.
    particles, weights : ndarray, shapes (H, n, d) and (H, n), or None
        The particles carried ahead; None of a filter that keeps Gaussians.
    observation_means, observation_covariances : ndarray, shapes (H, k) and (H, k, k), or None
        Of the observation, its noise included; None of a model that neither has them nor draws observations.
    observations : ndarray, shape (H, m, k), or None
        Draws of the observation, of equal weight, m = max(n, 1000); NaN in entries that the model leaves out.
    circular, observation_circular, position_dims : tuple of int
        Indices of angles in state and observation, and of the dimensions that the model calls positions.

    Examples
    --------
    A random walk whose step has a variance of 1. Its forecast widens; the forecast of its reading has the noise as well.

    >>> kf = hf.ExtendedKalmanFilter(hf.models.LinearGaussian([[1]], [[1]], [[1]], [[4]], [0], [[1]]))
    >>> ahead = kf.forecast(3)
    >>> print(ahead.times, ahead.covariances.ravel().round(9), ahead.observation_covariances.ravel().round(9))
    [1. 2. 3.] [2. 3. 4.] [6. 7. 8.]
    >>> ahead.quantiles([0.025, 0.975])[-1, :, 0].round(2).tolist()
    [-3.92, 3.92]
    """

    means: Array
    covariances: Array
    steps: np.ndarray
    particles: Array | None
    weights: Array | None
    observation_means: Any
    observation_covariances: Any
    observations: Array | None
    times: np.ndarray
    circular: tuple[int, ...]
    observation_circular: tuple[int, ...]
    position_dims: tuple[int, ...]
    spreads: list[Spread]
    observation_spreads: list[Spread]

    name_in_pictures = "forecast"

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        parts = {"observations": self.observation_means, "particles": self.particles}
        return summary_repr(self, steps=len(self), dim=self.means.shape[1], **parts)

    def quantiles(self, probabilities: ArrayLike) -> Array:
        """Quantiles of the state at probabilities (P,), (H, P, d); those of particles are interpolated, angles unwrapped."""
        levels = as_array("probabilities", np.atleast_1d(probabilities), (None,))
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(
                f"probabilities: expected numbers between 0 and 1, got {short_repr(levels.tolist())}"
            )
        return np.array([spread.quantiles(levels, self.circular) for spread in self.spreads])

    def observation_quantiles(self, probabilities: ArrayLike) -> Array:
        """Quantiles of the observation, (H, P, k): of the mixture of Gaussians about all particles, else of draws."""
        return self._of_observations().quantiles(probabilities)

    def plot(  # type: ignore[override]
        self,
        ax: Any = None,
        dims: int | Sequence[int] | None = None,
        truth: ArrayLike | None = None,
        quantiles: Sequence[float] = (0.5, 0.8, 0.95),
        labels: Sequence[str] = (),
        observations: bool = False,
    ) -> Any:
        """Draw bands between quantiles over time, a fan; in the plane the means with ellipses.

        Parameters
        ----------
        ax, dims, labels
            As in `FilterResult.plot`: give the axes that it returned, and the fan goes on from the past.
        truth : array_like, shape (H, d) or (H, len(dims)), optional
            The true states, or the observations that came.
        quantiles : sequence of float
            Probabilities inside the bands; an ellipse has the largest.
        observations : bool
            Draw the entries of the observation in place of the dimensions of the state.
        """
        forecast = self._of_observations() if observations else self
        if observations and not labels:
            labels = [f"z{i}" for i in range(forecast.means.shape[1])]
        masses: Any = as_list("quantiles", quantiles, "probabilities")
        return Views.plot(forecast, ax, dims, truth, masses, labels)

    def _of_observations(self) -> Forecast:
        """Return the forecast of the observations, as if they were the states."""
        if self.observation_means is None:
            raise ValueError(
                "observations: expected a model with observation_mean and observation_covariance, or sample_observation, "
                "got one without; give forecast a sensor"
            )
        return replace(
            self,
            means=self.observation_means,
            covariances=self.observation_covariances,
            circular=self.observation_circular,
            position_dims=(),
            spreads=self.observation_spreads,
        )


class Forecaster:
    """Base of all filters that predict step by step."""

    def forecast(
        self: Any,
        steps: int | None = None,
        dt: TimeSteps | None = None,
        controls: Controls | None = None,
        times: ArrayLike | None = None,
        start: Any = None,
        sensor: sensors.Sensor | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Forecast:
        """Forecast states and observations at steps ahead; the filter and its generator are unchanged.

        The forecast is what the filter would estimate if no observation came from now on; between `predict` and `update` it
        starts from the prediction. TypeError or ValueError if arguments do not fit together, or as in `predict`.

        Parameters
        ----------
        steps : int, optional
            Number of steps H; `times` may take its place.
        dt, controls, times, start
            As in `run`, with an entry for each step.
        sensor : Sensor, optional
            What is observed, in place of the model's own observation functions.
        rng : numpy.random.Generator or int, optional
            Source of all random draws. Unless given, it is a copy of the filter's generator, and for the observations
            one of a fixed seed: the same question has the same answer.
        """
        if (steps is None) == (times is None):
            raise ValueError(
                f"steps: expected a number of steps, or times without it, got {steps} and {short_repr(times)}"
            )
        if times is None:
            count = check_count("steps", steps, most=MAX_STEPS)
        else:
            count = check_count("len(times)", len(as_list("times", times)), most=MAX_STEPS)
        model = (
            None
            if sensor is None and sensors.unobserved(self.model)
            else sensors.sensed(self.model, sensor)
        )
        # the detection of the target
        model = model.model if isinstance(model, with_clutter.WithClutter) else model
        noise = as_generator(0 if rng is None else rng)
        start = self._clock if start is None else start
        entries = series.series([None] * count, dt, controls, times, start)
        rows: list[Any] = []
        spreads: list[Spread] = []
        observation_spreads: list[Any] = []
        # A copy predicts on: parts of the user's own may keep a state, and other threads may read the filter. The memo of
        # `deepcopy` shares what does not change: the model, which may be large or not copyable, and what is made of it.
        fixed = (resolved.Resolved, resolved.Transition)
        shared = [self.model, *(part for part in vars(self).values() if isinstance(part, fixed))]
        ahead = copy.deepcopy(self, {id(part): part for part in shared})
        ahead._settle()
        if rng is not None and ahead.rng is not None:
            ahead.rng = noise
        for entry in entries:
            if entry.dt > 0:  # with dt = 0 the first step is the present one
                ahead.predict(entry.dt, entry.control)
            spread = _spread(ahead)
            *observed, observation_spread = (
                4 * (None,) if model is None else _observed(model, ahead, spread, sensor, noise)
            )
            points = spread[:2] if hasattr(ahead, "particles") else (None, None)
            rows.append((ahead.mean, ahead.covariance, ahead.step, *points, *observed))
            spreads.append(spread)
            observation_spreads.append(observation_spread)
        # Columns in the order of the fields of `Forecast`.
        columns: list[Any] = [
            None if column[0] is None else np.array(column) for column in zip(*rows, strict=True)
        ]
        observation_means = columns[5]
        return Forecast(  # type: ignore[misc]
            *columns,
            times=series.as_objects([entry.time for entry in entries]),
            circular=contract.circular_dims(self.model),
            observation_circular=()
            if observation_means is None
            else resolved.Measurement(model).circular(observation_means.shape[1]),
            position_dims=contract.position_dims(self.model),
            spreads=spreads,
            observation_spreads=observation_spreads,
        )


def _spread(ahead: Any) -> Spread:
    """Return the distribution of the state at a filter's present step."""
    if ahead.has_weights:
        points = ahead._points()
        return Spread(points.x, points.weights, points.covariances, points.modes)
    if hasattr(ahead, "particles"):  # an ensemble: members of equal weight
        n = len(ahead.particles)
        return Spread(ahead.particles, np.full(n, 1 / n))
    return Spread(ahead.mean[None], np.ones(1), ahead.covariance[None])


def _observed(
    model: Any, ahead: Any, spread: Spread, sensor: sensors.Sensor | None, rng: np.random.Generator
) -> tuple[Any, ...]:
    """Return mean, covariance, draws (m, k) and distribution of the predicted observation; None for what a model lacks."""
    moments: Any = ahead.predicted_observation(sensor) or (None, None)
    mean, covariance = moments
    if not hasattr(ahead, "particles"):  # a Gaussian: its moments are the distribution
        return mean, covariance, None, Spread(mean[None], np.ones(1), covariance[None])
    step = ahead.step
    x, weights, state_covariances, particle_modes = spread
    # Each mode may observe by functions of its own; a model without modes is one.
    measurement = resolved.Measurement(model)
    modes = np.zeros(len(x), int) if particle_modes is None else particle_modes
    by_mode = {mode: measurement.modes[mode] for mode in np.unique(modes).tolist()}
    by_draws = any(part.draws for part in by_mode.values())
    if mean is None and not by_draws:
        return None, None, None, None
    # Equal draws: states at even steps through the weights, then one observation of each.
    m = max(len(x), LEAST_DRAWS)
    indices = inverse_cdf(weights, (np.arange(m) + 0.5) / m)
    states = x[indices]
    if state_covariances is not None:
        shared = len(state_covariances) == 1
        of_states = state_covariances if shared else state_covariances[indices]
        states = states + contract.correlated(rng.standard_normal(states.shape), of_states)
    draws = np.concatenate(
        [part.sample(states[modes[indices] == mode], rng, step) for mode, part in by_mode.items()]
    )
    k = draws.shape[1]
    if by_draws:
        # the model draws observations but has no moments: those of the complete draws
        if mean is None:
            complete = draws[~np.isnan(draws).any(axis=1)]
            mean = np.full(k, np.nan)
            covariance = np.full((k, k), np.nan)
            if n := len(complete):
                mean, covariance = mean_and_covariance(
                    complete, np.full(n, 1 / n), measurement.circular(k)
                )
        return mean, covariance, draws, Spread(draws, np.full(m, 1 / m))
    # Gaussian noise needs no draws: the observation is a mixture with one component for each particle.
    if state_covariances is not None:
        centres, noises, _ = linear_part_observation(measurement, x, state_covariances, step)
        return mean, covariance, draws, Spread(centres, weights, noises)
    centres = np.empty((len(x), k))
    noises = np.empty((len(x), k, k))
    for mode, part in by_mode.items():
        members = modes == mode
        centres[members] = part.mean(x[members], step)
        noises[members] = part.noises(x[members], k, step)
    return mean, covariance, draws, Spread(centres, weights, noises)
