"""The particle filter core: predict, update, estimate; everything else is a part that is plugged in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_count, as_generator, as_positive, one_of
from herdfilter.angles import moments
from herdfilter.filters._series import run, series
from herdfilter.filters.cloud import Cloud, normalised
from herdfilter.filters.move import Move
from herdfilter.filters.proposals import BootstrapProposal, ObservingProposal, Proposal
from herdfilter.filters.resampling import Resampling, SystematicResampling
from herdfilter.filters.results import DegenerateWeightsError, FilterResult, Outcome, StepRecord
from herdfilter.models.contract import Model, circular_dims, log_likelihood, observed, require


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
        self._observing = self.proposal if isinstance(self.proposal, ObservingProposal) else None
        self._circular = circular_dims(model)
        self.step = 0
        self.log_likelihood = 0.0
        self.record: StepRecord | None = None
        self._cloud = self._checked(*self.proposal.initial(model, self.n_particles, self.rng))
        self._move: Move | None = None  # of a guided proposal that has not seen the observation
        self._prediction: _Prediction | None = None
        self._resampled = False

    @property
    def particles(self) -> Array:
        """The particles, shape (n, d).

        A proposal that looks at the observation has none between `predict` and `update`: its prediction is drawn when
        it is asked for, and asking does not change what follows.
        """
        return self._current().particles

    @property
    def weights(self) -> Array:
        """Weights of the particles, shape (n,), summing to 1."""
        return self._current().weights

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
        return self._current().ess

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
        self._keep_prediction()
        cloud = self._cloud
        uneven = not self.proposal.absorbs_weights and (
            cloud.ess < (1 - 1e-9) * self.resample_below * self.n_particles
        )
        if uneven:
            resampled = self.resampling.resample(cloud.particles, cloud.weights, self.rng, self._circular)
            cloud = self._checked(*resampled)
        move = Move(self.model, dt, control, self.step + 1)
        if self._observing is not None:
            self._cloud, self._move = cloud, move
        else:
            self._cloud = self._proposed(cloud, move)
        self._resampled = uneven
        self.step += 1

    def update(self, z: ArrayLike | None) -> StepRecord:
        """Weight the particles by the likelihood of an observation, after `predict`: observations begin at step 1.

        Parameters
        ----------
        z : array_like or None
            The observation in the form that the model's `log_likelihood` takes. None means missing, and so does NaN in
            any entry, unless the model says ``partial_observations = True``: then only NaN in all entries does.

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
        observation = observed(self.model, z)
        if observation is not None:
            particles, log_weights = self._weighed(observation)
            log_weights, total = normalised(log_weights)
            if total > -np.inf:
                self._cloud, self._move, self._prediction = Cloud(particles, log_weights), None, None
                increment, outcome = total, Outcome.UPDATED
            elif self.on_degeneracy == "raise":
                raise DegenerateWeightsError(self.step, self.n_particles)
            else:
                outcome = Outcome.DEGENERATE
        self._keep_prediction()
        self.log_likelihood += increment
        cloud = self._cloud
        mean, covariance = moments(cloud.particles, cloud.weights, self._circular)
        self.record = StepRecord(self.step, mean, covariance, cloud.ess, self._resampled, increment, outcome)
        return self.record

    def run(
        self,
        observations: Iterable[ArrayLike | None],
        dt: float | Sequence[float] | Array = 1.0,
        controls: Sequence[Any] | Array | None = None,
        keep_particles: bool = False,
        times: ArrayLike | None = None,
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
        times : array_like, shape (T,), optional
            In place of `dt`: the time of each observation, increasing, where the filter now stands at time 0.

        Returns
        -------
        FilterResult

        Raises
        ------
        DegenerateWeightsError
            As in `update`.
        ValueError
            If lengths differ, a time step is not positive or times do not increase, before the first step; and as in
            `update`.

        Notes
        -----
        Whatever is raised on the way, the error's attribute ``result`` holds the steps completed.
        """
        steps = series(observations, dt, controls, times)
        return run(self, steps, self.model.dim, [] if keep_particles else None)

    def _weighed(self, z: Array) -> tuple[Array, Array]:
        """Return particles and their log-weights times the likelihood, not normalised."""
        cloud = self._cloud
        if self._move is None or self._observing is None:
            likelihood = log_likelihood(self.model, z, cloud.particles, self.step)
            return cloud.particles, cloud.log_weights + likelihood
        return self._sized(*self._observing.guide(self._move, cloud, z, self.rng))

    def _current(self) -> Cloud:
        """Return the particles where the filter stands."""
        if self._move is None:
            return self._cloud
        if self._prediction is None:  # drawn from where the generator stands, which is then put back
            stream = self.rng.bit_generator
            before = stream.state
            self._prediction = _Prediction(self._proposed(self._cloud, self._move), stream.state)
            stream.state = before
        return self._prediction.cloud

    def _keep_prediction(self) -> None:
        """Let a prediction that no observation has followed stand."""
        if self._move is not None:
            self._current()
            assert self._prediction is not None
            self._cloud, self.rng.bit_generator.state = self._prediction.cloud, self._prediction.stream
            self._move, self._prediction = None, None

    def _proposed(self, cloud: Cloud, move: Move) -> Cloud:
        return self._checked(*self.proposal.propose(move, cloud, self.rng))

    def _checked(self, particles: Array, log_weights: Array) -> Cloud:
        return Cloud(*self._sized(particles, log_weights))

    def _sized(self, particles: Array, log_weights: Array) -> tuple[Array, Array]:
        n, d = self.n_particles, self.model.dim
        if particles.shape != (n, d) or log_weights.shape != (n,):
            raise ValueError(
                f"particles: expected shape ({n}, {d}) and as many weights, got {particles.shape} and "
                f"{len(log_weights)}; look at the model's initial and dim, or at the sampler"
            )
        return particles, log_weights


class _Prediction(NamedTuple):
    """What a guided proposal predicts, and the generator's state after it."""

    cloud: Cloud
    stream: Any


def _check_part(name: str, part: object, kind: type, expected: str) -> None:
    if isinstance(part, type):
        raise TypeError(f"{name}: expected {expected}, an instance, got the class {part.__name__}")
    if not isinstance(part, kind):
        raise TypeError(f"{name}: expected {expected}, got {part!r}")
