"""Resampling by optimal transport: the ensemble transform particle filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from herdfilter import _checks, angles
from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.filters.resampling.base import inverse_cdf
from herdfilter.filters.state import Particles

NEGLIGIBLE_MASS = 1e-12  # smaller weights, relative to one new particle, are lost in the rounding of the linear programme
SOLVER_OPTIONS: Any = {"primal_feasibility_tolerance": 1e-10}
"""The least tolerance for the constraints that HiGHS accepts."""


@dataclass(frozen=True)
class OptimalTransportResampling:
    r"""Each new particle is the average of the mass that an optimal transport plan carries to it (Reich 2013).

    The transport plan T minimises :math:`\sum_{ij} T_{ij} |x_i - x_j|^2` over :math:`T_{ij} \ge 0` with
    :math:`\sum_j T_{ij} = n w_i` and :math:`\sum_i T_{ij} = 1`; the new particles are :math:`\sum_i T_{ij} x_i`. No random
    number is used, the weighted mean is kept, and equal weights leave all particles where they are. The covariance comes
    out too small, the more so the fewer the particles and the more uneven the weights.

    In one dimension the plan is monotone and sorting finds it. Otherwise the simplex of HiGHS (`scipy.optimize.linprog`)
    solves a linear programme of :math:`n^2` variables, in time roughly proportional to :math:`n^3`.

    Parameters
    ----------
    distance : {"whitened", "euclidean"}
        The distance between particles: relative to their covariance before weighting, or, as published, in raw state
        units. Without effect in one dimension.
    largest : int
        Most particles to accept in two and more dimensions.

    Raises
    ------
    ValueError
        If `distance` is unknown or `largest` not a positive integer; from `resample`, if there are more particles.
    RuntimeError
        From `resample`, if the linear programme cannot be solved.

    Examples
    --------
    Each of three new particles takes a third of all weight, from the nearest. The first takes it from the first alone, the
    second from the first and the second in equal parts, and the last what is left. The mean stays 1.7.

    >>> particles = hf.Particles.weighted(np.array([[1.0], [2.0], [3.0]]), np.array([0.5, 0.3, 0.2]))
    >>> new = hf.OptimalTransportResampling().resample(particles, rng=None)
    >>> np.round(new.x.ravel(), 6).tolist()
    [1.0, 1.5, 2.6]
    """

    distance: Literal["whitened", "euclidean"] = "whitened"
    largest: int = 500

    def __post_init__(self) -> None:
        _checks.one_of("distance", self.distance, ("whitened", "euclidean"))
        _checks.check_fields(self, largest=_checks.check_count)

    def resample(
        self,
        particles: Particles,
        rng: np.random.Generator,
        circular: Sequence[int] = (),
    ) -> Particles:
        """Return equally weighted averages of particles, in the order of the particles moved; `rng` is not used."""
        n, d = particles.x.shape
        # the plan below is for equal numbers; here ancestors are taken at even steps
        if particles.n_next != n:
            steps = (np.arange(particles.n_next) + 0.5) / particles.n_next
            return Particles.equal(particles.x[inverse_cdf(particles.weights, steps)])
        if d > 1 and n > self.largest:
            raise ValueError(
                f"particles: expected at most {self.largest} for optimal transport in {d} dimensions, got {n}; "
                "raise `largest`, or take SystematicResampling"
            )
        weights = particles.weights / particles.weights.sum()
        # Averages of angles are taken of unwrapped values. The weighted mean is added at the end, and so kept exactly.
        x = angles.unwrap_angles(particles.x, weights, circular)
        mean = weights @ x
        centred = x - mean
        if d == 1:
            new = _averages_on_line(centred, weights)
        else:
            scaled = centred
            if self.distance == "whitened":
                scaled = centred - centred.mean(axis=0)
                root = np.linalg.cholesky(regularised(scaled.T @ scaled / n))
                scaled = np.linalg.solve(root, scaled.T).T
            new = _averages(scaled, centred, weights)
        return Particles.equal(angles.wrap_angles(mean + new - new.mean(axis=0), circular))


def _averages_on_line(x: Array, weights: Array) -> Array:
    """Return averages (n, 1): the particle of rank i becomes the mean of the i-th of n equal shares of the weight."""
    n = len(x)
    order = np.argsort(x[:, 0], kind="stable")
    # The first moment as a piecewise linear function of the cumulative weight: its increments are n-ths of the averages.
    share = np.concatenate([[0.0], np.cumsum(weights[order])])
    moment = np.concatenate([[0.0], np.cumsum(weights[order] * x[order, 0])])
    new = np.empty_like(x)
    new[order, 0] = n * np.diff(np.interp(np.arange(n + 1) / n, share, moment))
    return new


def _averages(scaled: Array, x: Array, weights: Array) -> Array:
    """Return the averages (n, d) of points x (n, d) by the plan that is optimal for squared distances of `scaled` (n, d)."""
    from scipy.optimize import linprog  # slow to import
    from scipy.sparse import eye_array, kron, vstack
    from scipy.spatial.distance import cdist

    n = len(x)
    sources = np.flatnonzero(n * weights > NEGLIGIBLE_MASS)
    m = len(sources)
    if m == 1:
        return np.tile(x[sources], (n, 1))
    cost = cdist(scaled[sources], scaled, "sqeuclidean")
    scale = cost.mean()
    if scale == 0:
        return x
    # The last constraint follows from the others; without it rounding cannot make them contradict each other.
    marginals: Any = vstack(
        [kron(eye_array(m), np.ones((1, n))), kron(np.ones((1, m)), eye_array(n))]
    ).tocsr()[:-1]
    totals = np.concatenate([n * weights[sources], np.ones(n - 1)])
    plan = linprog(
        (cost / scale).ravel(),
        A_eq=marginals,
        b_eq=totals,
        method="highs-ds",
        options=SOLVER_OPTIONS,
    )
    if plan.status != 0 or plan.x is None:
        raise RuntimeError(f"OptimalTransportResampling: no transport plan found ({plan.message})")
    shares = np.maximum(plan.x.reshape(m, n), 0.0)
    averages: Array = (shares / shares.sum(axis=0)).T @ x[sources]
    return averages
