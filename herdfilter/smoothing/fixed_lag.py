"""Fixed-lag smoothing, of a whole series or online: each state given the observations up to `lag` steps later."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import filters
from herdfilter._checks import Array, check_count
from herdfilter._repr import summary_repr
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.models.contract import require
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import as_duration
from herdfilter.smoothing import particles, results, rts


def fixed_lag_smoother(
    filter: filters.ParticleFilter | KalmanFilter,  # noqa: A002
    result: filters.FilterResult,
    lag: int,
    dt: TimeSteps | None = None,
    controls: Controls | None = None,
    times: ArrayLike | None = None,
) -> results.SmoothedResult:
    """Smooth each state by the observations up to `lag` steps after it; return a `SmoothedResult`.

    Particles are weighted as by `marginal_smoother`, Gaussians smoothed as by `rts_smoother`; the same errors are raised.
    The largest lag gives the result of these two, a lag of 0 that of the filter. There is one sweep backwards, so that a
    short lag takes about as long as a long one. `FixedLagSmoother` does the same online.

    Parameters
    ----------
    filter : ParticleFilter or KalmanFilter
        The filter that was run, or another one of the same model; it does not change.
    result : FilterResult
        Result of its ``run``, with ``keep_particles=True`` for a particle filter.
    lag : int
        Number of steps, from 0. Rows of the same time are one step.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Examples
    --------
    The variance of a state falls with the lag, most with the first steps:

    >>> model = hf.models.linear_chain(1, coupling=0.95)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> kf = hf.ExtendedKalmanFilter(model)
    >>> filtered = kf.run(z)
    >>> variances = [hf.fixed_lag_smoother(kf, filtered, lag).covariances[9, 0, 0] for lag in (0, 1, 2, 11)]
    >>> np.round(variances, 3).tolist()
    [0.608, 0.477, 0.459, 0.456]
    """
    lag = check_count("lag", lag, minimum=0)
    _check_filter(filter, "fixed_lag_smoother")
    course = results.Course.of(filter.model, result, dt, controls, times)
    if isinstance(filter, filters.ParticleFilter):
        return course.smooth(particles.particle_steps(course), lag)
    return course.smooth(rts.gaussian_steps(filter, course), lag)


def _check_filter(filter: Any, user: str) -> None:  # noqa: A002
    """Raise TypeError unless the filter's steps can be smoothed."""
    if isinstance(filter, filters.ParticleFilter):
        require(filter.model, user, *particles.DENSITY)
    else:
        rts.check_gaussian(filter, user, "a ParticleFilter, or ")


class FixedLagSmoother:
    """Estimates of a filter `lag` steps behind the latest observation.

    Call its `predict` and `update` instead of the filter's. The estimate is that of the oldest step in the window. A step
    with n particles takes a time proportional to lag times n^2.

    Parameters
    ----------
    filter : ParticleFilter or KalmanFilter
        A filter that `fixed_lag_smoother` accepts. You may read it at any time, but must leave `predict` and `update` to the
        smoother.
    lag : int
        Number of steps, from 0.

    Examples
    --------
    >>> model = hf.models.linear_chain(1)
    >>> smoother = hf.FixedLagSmoother(hf.ExtendedKalmanFilter(model), lag=2)
    >>> for z in [[0.2], [1.5], [4.0]]:
    ...     smoother.predict()
    ...     record = smoother.update(z)
    ...
    >>> record.step, smoother.step, smoother.window.means.shape
    (3, 1, (3, 1))
    """

    def __init__(self, filter: filters.ParticleFilter | KalmanFilter, lag: int) -> None:  # noqa: A002
        self.filter = filter
        self.lag = check_count("lag", lag, minimum=0)
        _check_filter(filter, "FixedLagSmoother")
        # The steps before the filter's own; the window is these and the current one.
        self._past: deque[results.FilteredStep] = deque(maxlen=self.lag)
        # Smoothed when it is first read after a step: a step that nobody reads costs nothing.
        self._window: results.SmoothedResult | None = None

    def __repr__(self) -> str:
        return summary_repr(self, filter=self.filter, lag=self.lag, step=self.step)

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Predict the filter's next step, as its own ``predict`` does."""
        transition = filters.Transition(
            self.filter.model, as_duration("dt", dt), control, self.filter.step + 1
        )
        # The initial state is not smoothed.
        departed = [self._current_step(transition.snapshot())] if self.filter.step else []
        # The step joins the past only if the prediction succeeds.
        self.filter.predict(dt, control)
        self._past.extend(departed)
        self._window = None

    def update(self, z: ArrayLike | None, sensor: Sensor | None = None) -> filters.StepRecord:
        """Update with an observation, as the filter's own ``update`` does, and return its record."""
        self._window = None
        return self.filter.update(z, sensor)

    @property
    def step(self) -> int:
        """Time index of the estimate: `lag` steps before the filter's, but not before the filter's first step."""
        return int(self.filter.step - len(self._past))

    @property
    def mean(self) -> Array:
        """Mean of the state at `step`, given all observations so far, shape (d,)."""
        return self.window.means[0, ...]

    @property
    def covariance(self) -> Array:
        """Covariance of the state at `step`, given all observations so far, shape (d, d)."""
        return self.window.covariances[0, ...]

    @property
    def window(self) -> results.SmoothedResult:
        """All steps from `step` to the latest, each given all observations so far."""
        if self.filter.step == 0:
            raise RuntimeError(
                "window: the filter stands at the initial state, step 0; call predict first"
            )
        if self._window is None:
            numbers = np.arange(self.step, self.filter.step + 1)
            # The transition from the current step is not known yet, and not used.
            steps = [*self._past, self._current_step(filters.Transition(self.filter.model))]
            self._window = results.smooth_back(steps, len(steps), steps=numbers)
        return self._window

    def _current_step(
        self, onward: filters.Transition
    ) -> rts.GaussianStep | particles.ParticleStep:
        """Return the filter's current step, with the transition from there."""
        if isinstance(self.filter, filters.ParticleFilter):
            return particles.ParticleStep(self.filter.particles, self.filter.weights, onward)
        kalman: Any = self.filter
        return rts.GaussianStep(kalman.belief.means, kalman.belief.factors, kalman.rule, onward)
