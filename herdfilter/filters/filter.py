"""The particle filter: predict, update, estimate; everything else is a part that is plugged in."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np

from herdfilter import _checks as checks
from herdfilter.filters import proposals, results, state
from herdfilter.filters import resampling as schemes
from herdfilter.filters.observation import Observation
from herdfilter.filters.online import OnlineFilter
from herdfilter.models import resolved, series

_log = logging.getLogger(__name__)


class ParticleFilter(state.ParticleEstimates, OnlineFilter):
    """A particle filter whose prediction and resampling steps can be swapped for deterministic ones.

    Parameters
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    n_particles : int
        Number of particles n.
    proposal : Proposal
        How particles are carried through the transition; `BootstrapProposal` by default. For a model that jumps between
        modes it is wrapped in a `ModeProposal` or a `HistoryProposal`, which the attribute and the repr show.
    resampling : Resampling
        How uneven weights are evened out; `SystematicResampling` by default. Not used by proposals that draw from the
        weighted particles as a whole (`HerdedProposal`, `AugmentedProposal`).
    resample_below : float
        Resample before a prediction if the effective sample size is below this fraction of n (0: never, 1: if uneven).
    rng : numpy.random.Generator or int, optional
        Source of every random draw. Filters of deterministic parts do not use it.
    on_degeneracy : {"raise", "predict"}
        If the likelihood vanishes at every particle: raise `DegenerateWeightsError`, or discard the observation.

    Attributes
    ----------
    step, log_likelihood, record
        Time index of the particles, 0 at the start; estimate of the log-likelihood of all observations so far; the last
        completed step, a `StepRecord`, or None.

    Raises
    ------
    TypeError, ValueError
        If the model lacks a function that a part needs, a part is not of its kind, or a number is out of range. The
        particles are drawn when they are first needed: what only a draw can show is raised then.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.UNGM(), n_particles=500, rng=0)
    >>> pf.predict()
    >>> record = pf.update([1.2])
    >>> pf.step, pf.particles.shape, record.outcome.name
    (1, (500, 1), 'UPDATED')
    """

    @checks.known_keywords
    def __init__(
        self,
        model: Any,
        n_particles: int = 100,
        proposal: proposals.Proposal | None = None,
        resampling: schemes.Resampling | None = None,
        resample_below: float = 0.5,
        rng: np.random.Generator | int | None = None,
        on_degeneracy: Literal["raise", "predict"] = "raise",
    ) -> None:
        model = resolved.only_mode(model)
        self.n_particles = checks.check_count("n_particles", n_particles)
        self.resampling = schemes.SystematicResampling() if resampling is None else resampling
        expected = "a scheme such as SystematicResampling()"
        checks.check_part("resampling", self.resampling, schemes.Resampling, expected)
        self.proposal = proposals.for_model(proposal, model, self.resampling)
        self.resample_below = checks.as_fraction("resample_below", resample_below)
        self.on_degeneracy = checks.one_of("on_degeneracy", on_degeneracy, ("raise", "predict"))
        self.rng = checks.as_generator(rng)
        self.proposal.check(self._checked_model(model))
        self.model = model
        self.reset()

    def _rewind(self) -> None:
        self._particles: Any = None  # drawn when first needed
        self._waiting: Any = None  # the transition to the present step, until the observation comes
        self._predicted: Any = None  # particles after it, without one, and the generator's state
        self._origins: Any = None  # of the lineages of the particles of the step before
        self._resampled = False
        self._untouched = True  # neither predicted nor updated since the start

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry the particles over a time `dt` to the next step; resample them first if their weights are too uneven."""
        if type(dt) is not float or not 0.0 < dt < np.inf:
            dt = series.as_duration("dt", dt)
        if control is not None:
            control = series.as_control(control)
        transition = resolved.Transition(self._motion, dt, control, self.step + 1)
        # A transition that still waits got no observation: it becomes a prediction.
        self._settle()
        particles = self._particles
        self._origins, collapsed = particles.lineages(self._origins)
        if collapsed:
            results.warn_of_loss(self.step, self.n_particles, alone=False, stacklevel=3)
        # Equal weights have an ESS of n up to rounding, and are not resampled even at resample_below = 1.
        uneven = particles.ess < (1 - 1e-9) * self.resample_below * self.n_particles
        uneven |= len(particles.x) != particles.n_next
        self._resampled = uneven and not self.proposal.uses.weights
        if self._resampled:
            _log.debug("step %d: resampled, effective sample size %.1f", self.step, particles.ess)
            arguments = (self.resampling, particles, self.rng, self._motion)
            particles = self._checked(proposals.resample_within(*arguments), "resample")
        if self.proposal.uses.observation:
            self._waiting = transition.snapshot()  # the model may be changed before the update
            self._particles = particles
            self._predicted = None
        else:
            proposed = proposals.propose_step(self.proposal, transition, particles, self.rng)
            self._particles = self._checked(proposed, "propose")
            if self._resampled:
                self._particles.traced(particles.ancestors)
        self.step += 1
        self._clock = series.Clock(self._clock.origin, self._clock.since + dt, self._clock.zoned)
        self._untouched = False

    def update(self, z: Any, sensor: Any = None, gate: float | None = None) -> results.StepRecord:
        """Weight the particles by the likelihood of an observation of this step: before the first `predict`, of step 0.

        There may be several updates at one step, by one sensor after the other. If the prior is Gaussian, the first update
        draws the particles anew with the observation in view, so that a track can start from a wide prior.

        Parameters
        ----------
        z : array_like or None
            The observation in the form that the model's `log_likelihood` takes. None means missing, and so does NaN in
            any entry, unless the model says ``partial_observations = True`` or its likelihood is derived: then only NaN in
            all entries does. Entries that are masked or ``pandas.NA`` count as NaN.
        sensor : Sensor, optional
            What the observation is of, in place of the model's own observation functions.
        gate : float, optional
            Probability, such as 0.999, of the predicted ellipsoid outside which an observation is `Outcome.GATED`: left out.

        Raises
        ------
        DegenerateWeightsError
            If the likelihood vanishes at every particle, unless ``on_degeneracy="predict"``; the prediction is kept.
        RuntimeError
            If the model reads a second observation of the initial state: `predict` was forgotten.
        TypeError, ValueError
            If a function of the observation is missing, or the model's log-likelihood is of the wrong shape, NaN or +inf.

        Warns
        -----
        DegeneracyWarning, PartialObservationWarning
            If few particles or ancestors are left; if some entries are NaN and all are left out. `run` warns once.
        """
        if self.step == 0:
            self._check_order(sensor)
        measurement = self._measurement
        by_sensor = sensor is not None or self._needs_sensor
        if by_sensor:
            measurement = resolved.Measurement(self._observed_by(sensor))
        observation, outcome = self._read(measurement, z, sensor, gate)
        increment = 0.0
        if observation is not None:
            if by_sensor:  # it may lack what the model's own functions have
                self.proposal.check(measurement.model)
            # Weights of the posterior, not normalised: their sum is the evidence.
            updated, log_sum = self._weigh(observation).normalised()
            if log_sum > -np.inf:
                self._particles = updated
                self._waiting = None
                increment = log_sum + (observation.log_offset or 0.0)  # which the weights lack
                self._inspection = self._inspection.after(observation)
                self._untouched = False
            else:
                outcome = results.Outcome.DEGENERATE
                problem = results.DegenerateWeightsError(self.step, self.n_particles)
                if self.on_degeneracy == "raise":
                    raise problem
                _log.warning("%s; the prediction is kept", problem)
        self._settle()
        if self._motion.limited:
            increment += self._particles.log_feasible
            self._particles = self._particles.settled()
        particles = self._particles
        # The record is of the posterior, or of the prediction if the observation was not used.
        mean, covariance = particles.moments(self._circular)
        modes = None if particles.modes is None else self.mode_probabilities
        self.log_likelihood += increment
        self._by_model_at_start |= self.step == 0 and sensor is None
        ess, distinct, collapsed = particles.counts(mean, covariance, self._circular)
        numbers = (ess, self._resampled, increment, outcome, modes, distinct)
        limits = particles.feasible_share
        self.record = results.StepRecord(self.step, mean, covariance, *numbers, limits)
        if outcome is not results.Outcome.UPDATED or collapsed:
            results.warn_of_step(self.record, z, self.n_particles)
        return self.record

    def _weigh(self, observation: Observation) -> state.Particles:
        """Return the particles with weights that include the likelihood of an observation, not normalised."""
        if self._waiting is not None:
            return self._propose(observation)
        particles: state.Particles = self._current() if self._particles is None else self._particles
        if self.step > 0 or not self._untouched:
            return particles.updated(observation)
        prior = self.model.initial
        return proposals.first_update(self.proposal, prior, particles, observation, self.rng)

    def _propose(self, observation: Observation | None = None) -> state.Particles:
        """Make the transition that waits; return the particles, their weights times the likelihood, not normalised."""
        particles = self._particles
        arguments = (self._waiting, particles, self.rng, observation)
        successors = proposals.propose_step(self.proposal, *arguments)
        proposed = self._checked(successors, "propose")
        return proposed.traced(particles.ancestors) if self._resampled else proposed

    def _current(self) -> Any:
        """Return the particles of the present step; where the proposal waits for the observation, a prediction without it.

        The generator is set back after that draw: whether the prediction is looked at does not change later results.
        """
        if self._particles is None:
            n = self.n_particles
            initial = proposals.draw_initial(self.proposal, self._motion, n, self.rng)
            self._particles = self._checked(initial, "initial")
        if self._waiting is not None and self._predicted is None:
            stream = self.rng.bit_generator
            before = stream.state
            self._predicted = (self._propose(), stream.state)
            stream.state = before
        return self._particles if self._waiting is None else self._predicted[0]

    def _settle(self) -> None:
        """Let a prediction stand that no observation has followed."""
        if self._particles is None or self._waiting is not None:
            self._current()
        if self._waiting is not None:
            self._particles, self.rng.bit_generator.state = self._predicted
            self._waiting = None

    def _checked(self, particles: Any, method: str) -> state.Particles:
        """Return what a method of a part has returned; raise an error that names the part if it is not n particles."""
        part = self.resampling if method == "resample" else self.proposal
        return state.Particles.checked(
            particles, part, method, (self.n_particles, self._motion.dim)
        )
