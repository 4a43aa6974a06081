"""What a filter reports: the record of one step, the result of a run, and its named failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter._repr import fields_in_line, summary_repr
from herdfilter.filters._times import as_objects
from herdfilter.filters.views import Views


class Outcome(Enum):
    """What became of an observation.

    Examples
    --------
    >>> model = hf.models.UNGM()
    >>> result = hf.ParticleFilter(model, 50, rng=0).run([[0.2], None, [np.nan], [4.0]])
    >>> [outcome.name for outcome in result.outcomes]
    ['UPDATED', 'MISSING', 'MISSING', 'UPDATED']
    """

    UPDATED = "updated"
    """The weights took up the observation."""
    MISSING = "missing"
    """The observation was None or held NaN: the step is a prediction only."""
    DEGENERATE = "degenerate"
    """The likelihood vanished at every particle; the observation was discarded and the prediction kept."""


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class StepRecord:
    """One filter step.

    Attributes
    ----------
    step : int
        Time index, from 1.
    mean, covariance : ndarray, shapes (d,) and (d, d)
        Of the weighted particles, before any resampling.
    ess : float
        Effective sample size ``1 / sum_i w_i^2``; the size of an ensemble; NaN in filters without particles.
    resampled : bool
        Whether the particles were resampled on the way to this step.
    log_likelihood : float
        Increment ``log p(z_step | z_1 .. z_step-1)``; 0 where no observation was used.
    outcome : Outcome
    mode_probabilities : ndarray, shape (J,), or None
        Of a model that jumps between J modes.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.CoordinatedTurn(), n_particles=50, rng=0)
    >>> pf.predict()
    >>> record = pf.update([1414.0, 0.785])
    >>> record.step, record.mean.shape, record.covariance.shape, record.outcome.name
    (1, (5,), (5, 5), 'UPDATED')
    >>> record.log_likelihood == pf.log_likelihood, 1 <= record.ess <= 50, record.resampled
    (True, True, False)
    """

    step: int
    mean: Array
    covariance: Array
    ess: float
    resampled: bool
    log_likelihood: float
    outcome: Outcome
    mode_probabilities: Array | None = None

    __repr__ = fields_in_line


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FilterResult(Views):
    """A run over T observations.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
    ess : ndarray, shape (T,)
    resampled : ndarray of bool, shape (T,)
    log_likelihoods : ndarray, shape (T,)
        Increments.
    outcomes : tuple of Outcome, length T
    particles, weights : ndarray, shapes (T, n, d) and (T, n), or None
        Kept only on request.
    steps : ndarray of int, shape (T,)
        Time index of each row; readings of the same time share one.
    times : ndarray, shape (T,)
        Time of each row, as it was given: numbers, durations or dates; sums of `dt` where that was given.
    circular : tuple of int
        Indices of the angle-valued dimensions.
    mode_probabilities : ndarray, shape (T, J), or None
        Of a model that jumps between J modes.

    Examples
    --------
    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> result = hf.ParticleFilter(model, n_particles=50, rng=0).run(z, keep_particles=True)
    >>> result.means.shape, result.covariances.shape, result.particles.shape, result.weights.shape
    ((20, 5), (20, 5, 5), (20, 50, 5), (20, 50))
    >>> np.allclose(np.einsum("tn,tnd->td", result.weights, result.particles), result.means)
    True
    >>> result.steps[-1].item(), np.allclose(result.log_likelihoods.sum(), result.log_likelihood)
    (20, True)
    """

    means: Array
    covariances: Array
    ess: Array
    resampled: np.ndarray
    log_likelihoods: Array
    outcomes: tuple[Outcome, ...]
    particles: Array | None = None
    weights: Array | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    circular: tuple[int, ...] = ()
    mode_probabilities: Array | None = None

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        unused = len(self) - sum(outcome is Outcome.UPDATED for outcome in self.outcomes)
        return summary_repr(
            self,
            steps=len(self),
            dim=self.means.shape[1],
            log_likelihood=self.log_likelihood,
            unused_observations=unused or None,
            particles=self.particles,
        )

    @property
    def log_likelihood(self) -> float:
        """Estimate of ``log p(z_1 .. z_T)``."""
        return float(self.log_likelihoods.sum())

    @classmethod
    def collect(
        cls,
        records: list[StepRecord],
        dim: int,
        kept: list[tuple[Array, Array]] | None = None,
        times: Sequence[Any] | None = None,
        circular: tuple[int, ...] = (),
    ) -> FilterResult:
        """Stack step records, the particles and weights kept beside them, and the times of as many of the first steps."""
        return cls(
            means=np.array([r.mean for r in records]).reshape(-1, dim),
            covariances=np.array([r.covariance for r in records]).reshape(-1, dim, dim),
            ess=np.array([r.ess for r in records]),
            resampled=np.array([r.resampled for r in records], dtype=bool),
            log_likelihoods=np.array([r.log_likelihood for r in records]),
            outcomes=tuple(r.outcome for r in records),
            particles=None if kept is None else np.array([x for x, _ in kept]),
            weights=None if kept is None else np.array([w for _, w in kept]),
            steps=np.array([r.step for r in records], dtype=int),
            times=None if times is None else as_objects(times[: len(records)]),
            circular=circular,
            mode_probabilities=_stacked([r.mode_probabilities for r in records]),
        )


def _stacked(rows: list[Array | None]) -> Array | None:
    """Rows of a table; None where one is missing, or all."""
    known = [row for row in rows if row is not None]
    return np.array(known) if known and len(known) == len(rows) else None


class DegenerateWeightsError(RuntimeError):
    """The likelihood of an observation vanished at every particle.

    The filter stands at the prediction: the observation may be skipped or replaced.

    Attributes
    ----------
    step : int
        The step at which it happened.
    result : FilterResult or None
        In a batch run, the steps before.

    Examples
    --------
    A detector rings within 1 of its place, and only there. Of a place that no particle is near the
    filter can make nothing, and keeps its prediction.

    >>> near = hf.Sensor(None, None, log_likelihood=lambda z, x: np.where(abs(x[:, 0] - z) < 1, 0.0, -np.inf))
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=50, rng=0)
    >>> pf.predict()
    >>> try:
    ...     pf.update(20.0, sensor=near)
    ... except hf.DegenerateWeightsError as error:
    ...     print(error.step, error.n)
    ...
    1 50
    >>> pf.update(0.0, sensor=near).outcome.name
    'UPDATED'
    """

    def __init__(self, step: int, n: int) -> None:
        super().__init__(
            f"step {step}: the likelihood vanishes at all {n} particles; use more particles, a heavier-tailed "
            'likelihood, or on_degeneracy="predict" to skip such observations'
        )
        self.step = step
        self.n = n
        self.result: FilterResult | None = None

    def __reduce__(self) -> tuple[type, tuple[int, int], dict[str, FilterResult | None]]:
        return type(self), (self.step, self.n), {"result": self.result}
