"""The Rauch-Tung-Striebel smoother, with the moment rule of any Kalman filter.

Rauch, Tung and Striebel (1965), "Maximum likelihood estimates of linear dynamic systems", AIAA Journal 3; for nonlinear
models Särkkä (2008), "Unscented Rauch-Tung-Striebel smoother", IEEE Transactions on Automatic Control 53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters import FilterResult, ParticleFilter, Transition
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief, definite, predict_gaussians
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.models.contract import circular_dims
from herdfilter.smoothing.results import Course, Horizons, SmoothedResult

RANGE_EIGENVALUE = 1e-11
"""Smaller eigenvalues of a predicted correlation matrix are rounding errors: the state is certain in their directions."""


def rts_smoother(
    filter: KalmanFilter,  # noqa: A002
    result: FilterResult,
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> SmoothedResult:
    r"""Smooth means and covariances of a Kalman filter, from the last step to the first; return a `SmoothedResult`.

    With m and P the filtered moments of a step, :math:`m^-` and :math:`P^-` the predicted ones of the next, and C the
    covariance of the two states, all by the filter's own moment rule,

    .. math::
        G = C (P^-)^{-1}, \quad m^s_t = m + G (m^s_{t+1} - m^-), \quad P^s_t = P + G (P^s_{t+1} - P^-) G^\top.

    On a linear Gaussian model these are the exact moments of each state given all observations. A singular :math:`P^-` is
    replaced by its pseudo-inverse, which is exact.

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
    return course.smooth(filter.model, result, gaussian_steps(filter, result, course))


def check_gaussian(filter: Any, user: str, or_else: str = "") -> None:  # noqa: A002
    """Raise TypeError unless `filter` is a Kalman filter that keeps one Gaussian; `or_else` names other kinds."""
    if isinstance(filter, KalmanFilter) and isinstance(filter.belief, GaussianBelief):
        return
    name = f"the class {filter.__name__}" if isinstance(filter, type) else type(filter).__name__
    hint = "; marginal_smoother serves its particles" if isinstance(filter, ParticleFilter) else ""
    raise TypeError(
        f"filter: {user} expected {or_else}a Kalman filter that keeps a Gaussian (extended, unscented, cubature or smart "
        f"sampling), got {name}{hint}"
    )


def gaussian_steps(filter: KalmanFilter, result: FilterResult, course: Course) -> list[GaussianStep]:  # noqa: A002
    """Return the steps of a result as Gaussians."""
    belief: Any = filter.belief
    rows = zip(course.last, course.transitions, strict=True)
    return [GaussianStep(result.means[row], result.covariances[row], belief.rule, onward) for row, onward in rows]


@dataclass(frozen=True, eq=False)
class GaussianStep:
    """The filtered moments of a step, and the transition from there (a `FilteredStep`)."""

    mean: Array
    covariance: Array
    rule: MomentRule
    onward: Transition

    @property
    def belief(self) -> Horizons:
        return self.mean[None], self.covariance[None]

    @cached_property
    def _prediction(self) -> tuple[Array, Array, Array]:
        """Predicted mean (d,) and covariance (d, d) of the next step, and the gain (d, d) from there."""
        predicted = predict_gaussians(self.onward, self.mean[None], self.covariance[None], self.rule)
        mean, covariance, cross = (part[0] for part in predicted)
        # the inverse of the covariance on its range, whatever the units of the dimensions
        scale = np.sqrt(np.diagonal(covariance))
        scale = np.where(scale > 0, scale, 1.0)
        values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        positive = values > RANGE_EIGENVALUE
        vectors = vectors[:, positive] / scale[:, None]
        return mean, covariance, cross @ ((vectors / values[positive]) @ vectors.T)

    def back(self, after: Any, later: Horizons) -> Horizons:
        """Carry moments (K, d) and (K, d, d) of the next step to this one."""
        transition, (next_means, next_covariances) = self.onward, later
        mean, covariance, gain = self._prediction
        means = self.mean + wrap_angles(next_means - mean, transition.circular) @ gain.T
        covariances = self.covariance + gain @ (next_covariances - covariance) @ gain.T
        return transition.wrapped(means), definite(covariances, self.covariance, transition.step - 1, "smoothed")

    def moments(self, belief: Horizons) -> tuple[Array, Array]:
        return wrap_angles(belief[0][0], circular_dims(self.onward.model)), belief[1][0]
