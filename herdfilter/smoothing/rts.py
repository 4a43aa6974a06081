"""The Rauch-Tung-Striebel smoother for Kalman filters with any moment rule.

Rauch, Tung and Striebel (1965), "Maximum likelihood estimates of linear dynamic systems", AIAA Journal 3; for nonlinear
models Särkkä (2008), "Unscented Rauch-Tung-Striebel smoother", IEEE Transactions on Automatic Control 53.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import filters
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.kalman import KalmanFilter, update
from herdfilter.filters.kalman.gaussian import linearise_transition
from herdfilter.filters.kalman.gaussian_filters import ONE_GAUSSIAN
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.models.contract import refuse_limits
from herdfilter.smoothing.results import Course, Horizons, SmoothedResult

CERTAIN_SHARE = 1e-11
"""An entry counts as determined by those before it if their knowledge leaves less of its standard deviation than this."""


def rts_smoother(
    filter: KalmanFilter,  # noqa: A002
    result: filters.FilterResult,
    dt: TimeSteps | None = None,
    controls: Controls | None = None,
    times: ArrayLike | None = None,
) -> SmoothedResult:
    r"""Smooth means and covariances of a Kalman filter, from the last step to the first; return a `SmoothedResult`.

    With m and P the filtered moments of a step, :math:`m^-` and :math:`P^-` the predicted ones of the next, and C the
    covariance of the two states, all by the filter's own moment rule,

    .. math::
        G = C (P^-)^{-1}, \quad m^s_t = m + G (m^s_{t+1} - m^-), \quad P^s_t = P + G (P^s_{t+1} - P^-) G^\top.

    On a linear Gaussian model these are the exact moments of each state given all observations. They are computed with
    square roots of the covariances and without a subtraction. A singular :math:`P^-` has a pseudo-inverse.

    Parameters
    ----------
    filter : KalmanFilter
        The filter that was run, or another one of the same model: extended, unscented, cubature or smart sampling. It does
        not change.
    result : FilterResult
        Result of its ``run``. Rows of the same time are one state.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Raises
    ------
    IndefiniteCovarianceError
        If a predicted or a smoothed covariance is indefinite, which negative weights of a moment rule can cause.

    Examples
    --------
    A constant level is measured four times. The filter knows it best at the end, the smoother from the start.

    >>> model = hf.models.LinearGaussian([[1]], [[1]], Q=[[1e-9]], R=[[1]], initial_mean=[0], initial_covariance=[[100]])
    >>> kf = hf.ExtendedKalmanFilter(model)
    >>> filtered = kf.run([[2.1], [1.7], [2.4], [2.0]])
    >>> smoothed = hf.rts_smoother(kf, filtered)
    >>> np.round(filtered.means.ravel(), 2).tolist(), np.round(smoothed.means.ravel(), 2).tolist()
    ([2.08, 1.89, 2.06, 2.04], [2.04, 2.04, 2.04, 2.04])
    """
    check_gaussian(filter, "rts_smoother")
    course = Course.of(filter.model, result, dt, controls, times)
    return course.smooth(gaussian_steps(filter, course))


def check_gaussian(filter: Any, user: str, or_else: str = "") -> None:  # noqa: A002
    """Raise TypeError unless `filter` is a Kalman filter that keeps one Gaussian; `or_else` names other kinds allowed."""
    if isinstance(filter, ONE_GAUSSIAN):
        refuse_limits(filter.model, user)
        return
    name = f"the class {filter.__name__}" if isinstance(filter, type) else type(filter).__name__
    hint = (
        "; marginal_smoother serves its particles"
        if isinstance(filter, filters.ParticleFilter)
        else ""
    )
    raise TypeError(
        f"filter: {user} expected {or_else}a Kalman filter that keeps a Gaussian (extended, unscented, cubature or smart "
        f"sampling), got {name}{hint}"
    )


def gaussian_steps(filter: KalmanFilter, course: Course) -> list[GaussianStep]:  # noqa: A002
    """Return the steps of a result as Gaussians."""
    result = course.result
    return [
        GaussianStep(
            result.means[[row]],
            covariance_factor(result.covariances[[row]]),
            filter.rule,
            onward,
        )
        for row, onward in zip(course.last, course.transitions, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class GaussianStep:
    """The filtered mean (1, d) and factor (1, d, d) of a step, and the transition from there (a `FilteredStep`)."""

    means: Array
    factors: Array
    rule: MomentRule
    onward: filters.Transition
    particles: None = None

    @property
    def belief(self) -> Horizons:
        return self.means, self.factors

    @cached_property
    def _backward(self) -> tuple[Array, Array, Array]:
        """Predicted mean (d,) of the next step, the gain (d, d), and a factor (d, d) of the residual covariance P - G C'."""
        mean, slopes, noises = linearise_transition(
            self.onward, self.means, self.factors, self.rule
        )
        d = self.means.shape[1]
        # The transition is treated as an observation of this state by the next one.
        # Its noise has coordinates of its own, on which this state does not depend.
        joint = np.zeros((1, d, slopes.shape[2]))
        joint[:, :, :d] = self.factors
        (root,), (gain,), (remainder,) = update.condition(
            slopes, noises, joint, self.onward.step, "predicted"
        )
        # The pseudo-inverse: entries that those before them determine tell nothing more.
        certain = np.diagonal(root) <= CERTAIN_SHARE * np.sqrt((root**2).sum(axis=1))
        root[certain] = np.eye(d)[certain]
        gain[:, certain] = 0.0
        return mean[0], np.linalg.solve(root.T, gain.T).T, remainder

    def back(self, after: Any, later: Horizons) -> Horizons:
        """Return means (K, d) and factors (K, d, d) of this step from those of the next one."""
        next_means, next_factors = later
        mean, gain, remainder = self._backward
        means = self.means + wrap(next_means - mean, self.onward.circular) @ gain.T
        # (P - G C') + G P^s G' as the factor of the two factors side by side.
        remainders = np.broadcast_to(remainder, (len(means), *remainder.shape))
        return self.onward.wrapped(means), update.triangular(
            np.concatenate([remainders, gain @ next_factors], axis=2)
        )

    def moments(self, belief: Horizons) -> tuple[Array, Array]:
        return self.onward.wrapped(belief[0][0]), belief[1][0] @ belief[1][0].T
