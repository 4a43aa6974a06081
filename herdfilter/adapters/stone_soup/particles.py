"""Herded particles in Stone Soup's particle filter: a proposal for its predictor and a resampler for its updater."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from stonesoup.base import Property
from stonesoup.models.measurement import MeasurementModel
from stonesoup.models.transition import TransitionModel
from stonesoup.proposal.base import Proposal as TheirProposal
from stonesoup.resampler.base import Resampler as TheirResampler
from stonesoup.types.detection import Detection, MissedDetection
from stonesoup.types.particle import Particle
from stonesoup.types.prediction import Prediction
from stonesoup.types.state import ParticleState

from herdfilter import _checks, filters
from herdfilter.adapters.stone_soup import models, states
from herdfilter.filters import Particles
from herdfilter.filters.resampling.base import CopyingResampling
from herdfilter.models.sensors import to_check

# attribute of a prediction: the number of predictions that led to it, itself included
STEP_ATTRIBUTE = "_herdfilter_step"


class HerdfilterProposal(TheirProposal):
    """Herded particles for Stone Soup's `ParticlePredictor`: its argument ``proposal``.

    A proposal that uses the observation gets the one that the predictor is given, ``predict(prior, timestamp=...,
    measurement=detection)``. The prediction's weights are divided by the likelihood: after Stone Soup's `ParticleUpdater`
    has multiplied them by it they are those of the posterior, and their sum estimates the density of the observation.

    Most proposals take the weighted particles as a whole: leave `ParticleUpdater` without a resampler for them, and use
    `HerdfilterResampler` for others. New particles then have no parents.

    Parameters
    ----------
    transition_model : stonesoup.models.transition.TransitionModel
        With additive Gaussian noise.
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
        For detections that have none of their own.
    proposal : herdfilter.filters.Proposal, optional
        Any proposal; `AutomaticProposal` unless given.
    rng : numpy.random.Generator or int, optional
        Source of random draws, or a seed. Without random draws a prediction depends only on the prior, the measurement and
        their times.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> from stonesoup.models.transition.linear import ConstantVelocity
    >>> from stonesoup.predictor.particle import ParticlePredictor
    >>> from stonesoup.types.state import GaussianState
    >>> from herdfilter.adapters.stone_soup import HerdfilterProposal
    >>> transition, start = ConstantVelocity(0.05), datetime(2030, 1, 1)
    >>> proposal = HerdfilterProposal(transition)
    >>> prior = proposal.initial(GaussianState([0, 1], np.diag([1.5, 0.5]), timestamp=start), 40)
    >>> predictor = ParticlePredictor(transition, proposal=proposal)
    >>> predicted = predictor.predict(prior, timestamp=start + timedelta(seconds=2))
    >>> print(np.ravel(predicted.mean).round(1))  # exactly 2 and 1
    [2. 1.]
    """

    transition_model: TransitionModel = Property()
    measurement_model: MeasurementModel = Property(default=None)
    proposal: Any = Property(default=None)
    rng: Any = Property(default=None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.proposal is None:
            self.proposal = filters.AutomaticProposal()
        models.check_transition_model(self.transition_model)
        _checks.check_part(
            "proposal",
            self.proposal,
            filters.Proposal,
            "a proposal of herdfilter such as AutomaticProposal()",
        )
        self._rng = _checks.as_generator(self.rng)

    def initial(self, prior: Any, n_particles: int) -> ParticleState:
        """Return the first particles, drawn from a state of Stone Soup as in `from_stonesoup`."""
        model = models.StoneSoupModel(self.transition_model, prior=prior)
        particles = self.proposal.initial(
            model, _checks.check_count("n_particles", n_particles), self._rng
        )
        return ParticleState(
            states.as_state_vectors(particles.x, prior),
            log_weight=particles.log_weights,
            timestamp=prior.timestamp,
        )

    def rvs(
        self,
        prior: ParticleState,
        measurement: Detection | None = None,
        time_interval: timedelta | None = None,
        **kwargs: Any,
    ) -> Prediction:
        """Return particles at the next time, with corrected weights; Stone Soup's predictor calls it.

        Parameters
        ----------
        prior : stonesoup.types.state.ParticleState
        measurement : stonesoup.types.detection.Detection, optional
            Detection by which the updater will weight the particles. Its time is that of the prediction.
        time_interval : datetime.timedelta, optional
            Duration of the prediction, if there is no measurement.
        **kwargs
            Not used.
        """
        if kwargs.get("control_input") is not None:
            raise TypeError(
                "control_input: expected None, as Stone Soup's control models are not converted"
            )
        prior = states.particle_state("prior", prior)
        if isinstance(measurement, MissedDetection):
            measurement = None
        if measurement is not None and measurement.timestamp is not None:
            time_interval = measurement.timestamp - prior.timestamp
        if time_interval is None:
            raise TypeError(
                "time_interval: expected a timedelta, or a measurement with a time, got None"
            )
        # Without the observation in view the updater alone uses it.
        detection = measurement if self.proposal.uses.observation else None
        start, log_total = states.particles_of_state(prior)
        measured_by = detection and models.measurement_model_of(detection, self.measurement_model)
        # built anew, as the user may have changed the models
        model = models.StoneSoupModel(self.transition_model, measured_by)
        # The particles tell which entries are angles, as there is no prior here.
        model.circular = states.circular_of_state(prior)
        if model.dim != prior.ndim:
            raise ValueError(
                f"prior: expected {model.dim} dimensions, as {type(self.transition_model).__name__} has, got {prior.ndim}"
            )
        dt = time_interval.total_seconds()
        # A prediction, or an update of one, tells how many predictions led to it.
        prediction = getattr(getattr(prior, "hypothesis", None), "prediction", prior)
        step = 1 + getattr(prediction, STEP_ATTRIBUTE, 0)
        transition = filters.Transition(model, dt, None, step)
        # a second detection at the same time
        still = dt == 0 and not transition.covariance.any()
        if still:
            x = transition.wrapped(transition.mean(start.x))
            predicted = Particles(x, start.log_weights)
        else:
            self.proposal.check(to_check(model))
            observation = None
            if detection is not None:
                z = states.as_rows(detection.state_vector)[0]
                observation = filters.Observation.read(model, z, step)
            predicted = self._propose(transition, start, observation)
        prediction = Prediction.from_state(
            prior,
            # where all particles are drawn from the whole prior, none of them has a parent
            parent=prior if still or not self.proposal.uses.weights else None,
            state_vector=states.as_state_vectors(predicted.x, prior),
            log_weight=predicted.log_weights + log_total,
            timestamp=prior.timestamp + time_interval,
            transition_model=self.transition_model,
            prior=prior,
        )
        # Stone Soup has times, but no steps: the count travels with the states.
        setattr(prediction, STEP_ATTRIBUTE, step)
        return prediction

    def _propose(
        self,
        transition: filters.Transition,
        start: Particles,
        observation: filters.Observation | None,
    ) -> Particles:
        """Return new particles, their weights divided by the likelihood, which Stone Soup's updater multiplies by."""
        particles = self.proposal.propose(transition, start, self._rng, observation)
        particles = Particles.checked(particles, self.proposal, "propose", start.x.shape)
        if observation is None:
            return particles
        likelihood = observation.log_likelihood(particles.x)
        # where the likelihood is 0 the weight is 0, too: -inf - (-inf)
        with np.errstate(invalid="ignore"):
            log_weights = particles.log_weights - likelihood
        log_weights[likelihood == -np.inf] = -np.inf
        if log_weights.max() > -np.inf:
            return Particles(particles.x, log_weights)
        # no particle explains the observation: a prediction
        return self._propose(transition, start, None)


class HerdfilterResampler(TheirResampler):
    """A scheme of this package for Stone Soup's `ParticleUpdater`: its argument ``resampler``.

    If the weights are even enough the same object is returned, so that the updater runs no regulariser. Schemes that copy
    particles keep their parents and models; `MixtureResampling` makes new particles without any.

    Parameters
    ----------
    resampling : herdfilter.filters.Resampling, optional
        `SystematicResampling` unless given; `MixtureResampling(fit, sampler)` herds the new particles.
    resample_below : float
        Fraction of the number of particles that the effective sample size may fall to.
    rng : numpy.random.Generator or int, optional
        Source of random draws, or a seed.

    Examples
    --------
    >>> from stonesoup.types.state import ParticleState, StateVectors
    >>> from herdfilter.adapters.stone_soup import HerdfilterResampler
    >>> weights = np.array([0.01, 0.97, 0.01, 0.01])
    >>> particles = ParticleState(StateVectors([[0.0, 1.0, 2.0, 3.0]]), weight=weights)
    >>> resampled = HerdfilterResampler(hf.SystematicResampling(), rng=0).resample(particles)
    >>> np.ravel(resampled.state_vector).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    resampling: Any = Property(default=None)
    resample_below: float = Property(default=0.5)
    rng: Any = Property(default=None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.resampling is None:
            self.resampling = filters.SystematicResampling()
        _checks.check_part(
            "resampling",
            self.resampling,
            filters.Resampling,
            "a scheme such as SystematicResampling()",
        )
        self.resample_below = _checks.as_fraction("resample_below", self.resample_below)
        self._rng = _checks.as_generator(self.rng)

    def resample(
        self, particles: ParticleState | Sequence[Particle], nparts: int | None = None
    ) -> ParticleState:
        """Return as many particles, less unevenly weighted, or the same object where the weights are even enough.

        Parameters
        ----------
        particles : stonesoup.types.state.ParticleState or list of stonesoup.types.particle.Particle
        nparts : int, optional
            Must be the number of particles given.
        """
        if isinstance(particles, list):
            particles = ParticleState(None, particle_list=particles)
        copies = isinstance(self.resampling, CopyingResampling)
        state = states.particle_state("particles", particles, plain=not copies)
        n = len(state)
        if nparts not in (None, n):
            raise ValueError(
                f"nparts: expected None or the number of particles, {n}, got {_checks.short_repr(nparts)}; a "
                "SystematicResampler of Stone Soup changes their number"
            )
        weighted, _ = states.particles_of_state(state)
        # a little lower than asked: the ESS of equal weights may round to just below n
        if weighted.ess >= (1 - 1e-9) * self.resample_below * n:
            return state
        if copies:
            # Indexing keeps the parent, and the model of each particle, with its copies.
            resampled = state[self.resampling.ancestors(weighted.weights, self._rng)]
            resampled.log_weight = np.full(n, -np.log(n))
            return resampled
        new = self.resampling.resample(weighted, self._rng, states.circular_of_state(state))
        return type(state).from_state(
            state,
            state_vector=states.as_state_vectors(new.x, state),
            log_weight=new.log_weights,
            parent=None,
        )
