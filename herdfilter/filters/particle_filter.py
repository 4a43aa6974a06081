"""The particle filter core: predict, update, estimate; everything else is a part that is plugged in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_count, as_generator, as_positive, one_of
from herdfilter.angles import moments
from herdfilter.filters.proposals import BootstrapProposal, Proposal
from herdfilter.filters.resampling import Resampling, SystematicResampling
from herdfilter.filters.results import DegenerateWeightsError, FilterResult, Outcome, StepRecord
from herdfilter.models.contract import Model, circular_dims, require


class ParticleFilter:
    """A particle filter whose prediction and resampling steps can be swapped for deterministic ones.

    Parameters
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    n_particles : int
        Number of particles n.
    proposal : Proposal
        How particles are carried through the transition; `BootstrapProposal` by default.
    resampling : Resampling
        How uneven weights are evened out; `SystematicResampling` by default. Not used by proposals that draw from the
        weighted particles as a whole (`HerdedProposal`, `AugmentedProposal`).
    resample_below : float
        Resample, before the next prediction, when the effective sample size is below this fraction of n; from 0 (never)
        to 1 (whenever weights are uneven).
    rng : numpy.random.Generator or int, optional
        Source of every random draw. Filters of deterministic parts do not use it.
    on_degeneracy : {"raise", "predict"}
        What to do when the likelihood vanishes at every particle: raise `DegenerateWeightsError`, or discard the observation
        and record `Outcome.DEGENERATE`.

    Attributes
    ----------
    step : int
        Time index of the particles; 0 at the start.
    particles : ndarray, shape (n, d)
    log_likelihood : float
        Estimate of the log-likelihood of all observations so far.
    record : StepRecord or None
        The last completed step.

    Raises
    ------
    TypeError
        If the model lacks a function that the proposal or the update needs, or a part is not of its kind.
    ValueError
        If a number is out of range.
    """

    def __init__(
        self,
        model: Model,
        n_particles: int = 100,
        proposal: Proposal | None = None,
        resampling: Resampling | None = None,
        resample_below: float = 0.5,
        rng: np.random.Generator | int | None = None,
        on_degeneracy: Literal["raise", "predict"] = "raise",
    ) -> None:
        self.model = model
        self.n_particles = as_count("n_particles", n_particles)
        self.proposal = BootstrapProposal() if proposal is None else proposal
        self.resampling = SystematicResampling() if resampling is None else resampling
        _check_part("proposal", self.proposal, Proposal, "a proposal such as BootstrapProposal()")
        _check_part("resampling", self.resampling, Resampling, "a scheme such as SystematicResampling()")
        if not isinstance(resample_below, int | float | np.number) or not 0 <= resample_below <= 1:
            raise ValueError(f"resample_below: expected a fraction from 0 to 1, got {resample_below!r}")
        self.resample_below = float(resample_below)
        self.on_degeneracy = one_of("on_degeneracy", on_degeneracy, ("raise", "predict"))
        self.rng = as_generator(rng)
        require(model, "ParticleFilter", ("dim", "initial", "log_likelihood"))
        self.proposal.check(model)
        self._circular = circular_dims(model)
        self.particles: Array
        self._log_weights: Array
        self.step = 0
        self.log_likelihood = 0.0
        self.record: StepRecord | None = None
        self._set_particles(self.proposal.initial(model, self.n_particles, self.rng))
        self._resampled = False

    @property
    def weights(self) -> Array:
        """Weights of the particles, shape (n,), summing to 1."""
        return np.exp(self._log_weights)

    @property
    def mean(self) -> Array:
        """Mean of the weighted particles, shape (d,); circular in angle-valued dimensions."""
        return moments(self.particles, self.weights, self._circular)[0]

    @property
    def covariance(self) -> Array:
        """Covariance of the weighted particles, shape (d, d)."""
        return moments(self.particles, self.weights, self._circular)[1]

    @property
    def ess(self) -> float:
        """Effective sample size ``1 / sum_i w_i^2``."""
        weights = self.weights
        return float(1.0 / (weights @ weights))

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry the particles to the next step, after resampling them where their weights are too uneven.

        Parameters
        ----------
        dt : float
            Time to the next step, in the model's unit.
        control
            Control input, passed on to the model.
        """
        dt = as_positive("dt", dt)
        self._resampled = False
        if (
            not self.proposal.absorbs_weights
            and self.ess < (1 - 1e-9) * self.resample_below * self.n_particles
        ):
            self._set_particles(
                self.resampling.resample(self.particles, self.weights, self.rng, self._circular)
            )
            self._resampled = True
        self._set_particles(
            self.proposal.propose(
                self.model, self.particles, self._log_weights, self.rng, dt, control, self.step + 1
            )
        )
        self.step += 1

    def update(self, z: ArrayLike | None) -> StepRecord:
        """Weight the particles by the likelihood of an observation, after `predict`: observations begin at step 1.

        Parameters
        ----------
        z : array_like or None
            The observation in the form that the model's `log_likelihood` takes; None, or any NaN in it, means missing.

        Returns
        -------
        StepRecord

        Raises
        ------
        DegenerateWeightsError
            If the likelihood vanishes at every particle, unless ``on_degeneracy="predict"``; the prediction is kept.
        RuntimeError
            If the particles still stand at step 0, the initial state, of which there is no observation.
        ValueError
            If the model returns a log-likelihood of the wrong shape, or one that is NaN or +inf.
        """
        if self.step == 0:
            raise RuntimeError("update: the filter stands at the initial state, step 0; call predict first")
        increment, outcome = 0.0, Outcome.MISSING
        try:
            observation = None if z is None else np.asarray(z, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"z: expected None or an array of numbers, got {z!r}") from None
        if observation is not None and not np.isnan(observation).any():
            log_weights = self._log_weights + self._log_likelihood(observation)
            peak = log_weights.max()
            if peak > -np.inf:
                total = np.log(np.exp(log_weights - peak).sum()) + peak
                self._log_weights = log_weights - total
                increment, outcome = float(total), Outcome.UPDATED
            elif self.on_degeneracy == "raise":
                raise DegenerateWeightsError(self.step, self.n_particles)
            else:
                outcome = Outcome.DEGENERATE
        self.log_likelihood += increment
        weights = self.weights
        mean, covariance = moments(self.particles, weights, self._circular)
        self.record = StepRecord(
            self.step, mean, covariance, float(1.0 / (weights @ weights)), self._resampled, increment, outcome
        )
        return self.record

    def run(
        self,
        observations: Iterable[ArrayLike | None],
        dt: float | Sequence[float] | Array = 1.0,
        controls: Sequence[Any] | Array | None = None,
        keep_particles: bool = False,
    ) -> FilterResult:
        """Predict to, and update with, each observation in turn.

        Parameters
        ----------
        observations : iterable, length T
            One observation a step; None or NaN where it is missing.
        dt : float or sequence of float, length T
            Time from the step before to each observation.
        controls : sequence, length T, optional
            Control input on the way to each observation.
        keep_particles : bool
            Keep all particles and weights in the result.

        Returns
        -------
        FilterResult

        Raises
        ------
        DegenerateWeightsError
            As in `update`; its `result` holds the steps completed.
        """
        observations = list(observations)
        steps = len(observations)
        dts = np.full(steps, dt) if np.ndim(dt) == 0 else np.asarray(dt)
        for name, count in (("dt", len(dts)), ("controls", steps if controls is None else len(controls))):
            if count != steps:
                raise ValueError(f"{name}: expected one a step, {steps}, got {count}")
        records: list[StepRecord] = []
        kept: list[tuple[Array, Array]] | None = [] if keep_particles else None
        try:
            for k, z in enumerate(observations):
                self.predict(float(dts[k]), None if controls is None else controls[k])
                records.append(self.update(z))
                if kept is not None:
                    kept.append((self.particles, self.weights))
        except DegenerateWeightsError as error:
            error.result = FilterResult.collect(records, self.model.dim, kept)
            raise
        return FilterResult.collect(records, self.model.dim, kept)

    def _set_particles(self, drawn: tuple[Array, Array]) -> None:
        particles, log_weights = drawn
        n, d = self.n_particles, self.model.dim
        if particles.shape != (n, d) or log_weights.shape != (n,):
            raise ValueError(
                f"particles: expected shape ({n}, {d}) and as many weights, got {particles.shape} and "
                f"{len(log_weights)}; look at the model's initial and dim, or at the sampler"
            )
        self.particles, self._log_weights = particles, log_weights

    def _log_likelihood(self, z: Array) -> Array:
        values = np.asarray(self.model.log_likelihood(z, self.particles, self.step), dtype=np.float64)
        if values.shape != (self.n_particles,):
            raise ValueError(
                f"log_likelihood: expected shape ({self.n_particles},) from the model, got {values.shape}"
            )
        invalid = np.count_nonzero(np.isnan(values) | (values == np.inf))
        if invalid:
            raise ValueError(
                f"log_likelihood: expected values below infinity from the model, got {invalid} NaN or +inf of "
                f"{self.n_particles} at step {self.step}"
            )
        return values


def _check_part(name: str, part: object, kind: type, expected: str) -> None:
    if isinstance(part, type):
        raise TypeError(f"{name}: expected {expected}, an instance, got the class {part.__name__}")
    if not isinstance(part, kind):
        raise TypeError(f"{name}: expected {expected}, got {part!r}")
