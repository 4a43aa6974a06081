"""Herded particles in Stone Soup's particle filter: a proposal for its predictor and a resampler for its updater."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
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

from herdfilter._checks import Array, as_fraction, as_generator, check_count, check_part, short_repr
from herdfilter.adapters.stone_soup import states
from herdfilter.adapters.stone_soup.models import StoneSoupModel, check_transition_model, measurement_model_of
from herdfilter.filters import AutomaticProposal, Observation, Particles, Resampling, SystematicResampling, Transition
from herdfilter.filters.proposals import Proposal
from herdfilter.filters.resampling.base import CopyingResampling
from herdfilter.models.sensors import to_check

STEP_ATTRIBUTE = "_herdfilter_step"  # attribute of a prediction: the number of predictions that led to it, itself included


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
            self.proposal = AutomaticProposal()
        check_transition_model(self.transition_model)
        check_part("proposal", self.proposal, Proposal, "a proposal of herdfilter such as AutomaticProposal()")
        self._rng = as_generator(self.rng)
        self._checked: dict[Hashable, Proposal] = {}

    def initial(self, prior: Any, n_particles: int) -> ParticleState:
        """Return the first particles, drawn from a state of Stone Soup as in `from_stonesoup`."""
        model = StoneSoupModel(self.transition_model, prior=prior)
        count = check_count("n_particles", n_particles)
        particles = self.proposal.initial(model, count, self._rng)
        Particles.checked(particles, self.proposal, "initial", (count, model.dim))
        return ParticleState(
            states.as_state_vectors(particles.x, prior), log_weight=particles.log_weights, timestamp=prior.timestamp
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
            raise TypeError("control_input: expected None, as Stone Soup's control models are not converted")
        prior = states.particle_state("prior", prior)
        measurement = None if isinstance(measurement, MissedDetection) else measurement
        time, dt = _prediction_time(prior, measurement, time_interval)
        detection = measurement if self.proposal.uses.observation else None
        start, total = states.particles_of_state(prior)
        sensor = None if detection is None else measurement_model_of(detection, self.measurement_model)
        model = StoneSoupModel(self.transition_model, sensor)  # as it is now
        model.circular = states.circular_of_state(prior)
        if model.dim != prior.ndim:
            raise ValueError(
                f"prior: expected {model.dim} dimensions, as {type(self.transition_model).__name__} has, got {prior.ndim}"
            )
        hypothesis = getattr(prior, "hypothesis", None)
        hypothesis = (getattr(hypothesis, "single_hypotheses", None) or [hypothesis])[0]
        before = getattr(prior, STEP_ATTRIBUTE, 0) or getattr(getattr(hypothesis, "prediction", None), STEP_ATTRIBUTE, 0)
        transition = Transition(model, dt, None, 1 + int(before))
        still = dt == 0 and not transition.covariance.any()  # a second detection at the same time
        if still:
            moved = Particles(transition.wrapped(transition.mean(start.x)), start.log_weights)
        else:
            moved = self._propose(transition, start, detection)
        prediction = Prediction.from_state(
            prior,
            parent=prior if still or not self.proposal.uses.weights else None,
            state_vector=states.as_state_vectors(moved.x, prior),
            log_weight=moved.log_weights + total,
            timestamp=time,
            transition_model=self.transition_model,
            prior=prior,
        )
        setattr(prediction, STEP_ATTRIBUTE, transition.step)
        return prediction

    def _propose(self, transition: Transition, start: Particles, detection: Detection | None) -> Particles:
        """Return new particles, their weights divided by the likelihood; a proposal checks models of other classes first."""
        model, shape = transition.model, start.x.shape
        made_of = tuple(
            states.class_key(part) for part in (model.transition_model, model.measurement_model) if part is not None
        )
        if self._checked.get(made_of) is not self.proposal:
            self.proposal.check(to_check(model))
            self._checked[made_of] = self.proposal
        if detection is not None:
            observation = RemembersLikelihood.read(model, states.as_rows(detection.state_vector)[0], transition.step)
            if isinstance(observation, RemembersLikelihood):
                guided = self.proposal.propose(transition, start, self._rng, observation)
                without = observation.taken_from(Particles.checked(guided, self.proposal, "propose", shape))
                if without.log_weights.max() > -np.inf:
                    return without
        return Particles.checked(self.proposal.propose(transition, start, self._rng), self.proposal, "propose", shape)


class RemembersLikelihood(Observation):
    """An observation that keeps its last likelihoods, so that weights can be divided by them."""

    _said: tuple[Array, Array] | None = None

    def log_likelihood(self, x: Array, modes: Any = None) -> Array:
        self._said = x, super().log_likelihood(x, modes)
        return self._said[1]

    def taken_from(self, particles: Particles) -> Particles:
        """Return particles with their weights divided by the likelihood; the weight is 0 where the likelihood is."""
        if self._said is None or self._said[0] is not particles.x:
            self.log_likelihood(particles.x)
        said = self._said[1]  # type: ignore[index]
        with np.errstate(invalid="ignore"):
            left = np.where(said > -np.inf, particles.log_weights - said, -np.inf)
        return Particles(particles.x, left)


def _prediction_time(
    prior: ParticleState, measurement: Detection | None, time_interval: timedelta | None
) -> tuple[datetime, float]:
    """Return the time of a prediction, and the seconds until then."""
    start = prior.timestamp
    try:
        if measurement is not None and measurement.timestamp is not None:
            return measurement.timestamp, (measurement.timestamp - start).total_seconds()
        return start + time_interval, time_interval.total_seconds()  # type: ignore[union-attr]
    except (AttributeError, TypeError):
        end = getattr(measurement, "timestamp", None)
        raise TypeError(
            "time_interval: expected times of prior and measurement, both with a time zone or both without, or a timedelta; "
            f"got {short_repr(start)}, {short_repr(end)} and {short_repr(time_interval)}"
        ) from None


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
            self.resampling = SystematicResampling()
        check_part("resampling", self.resampling, Resampling, "a scheme such as SystematicResampling()")
        self.resample_below = as_fraction("resample_below", self.resample_below)
        self._rng = as_generator(self.rng)

    def resample(self, particles: ParticleState | Sequence[Particle], nparts: int | None = None) -> ParticleState:
        """Return as many particles, less unevenly weighted, or the same object where the weights are even enough.

        Parameters
        ----------
        particles : stonesoup.types.state.ParticleState or list of stonesoup.types.particle.Particle
        nparts : int, optional
            Must be the number of particles given.
        """
        if isinstance(particles, list) and particles and isinstance(particles[0], Particle):
            particles = ParticleState(None, particle_list=particles)
        copies = isinstance(self.resampling, CopyingResampling)
        state = states.particle_state("particles", particles, plain=not copies)
        n = len(state)
        if nparts not in (None, n):
            raise ValueError(
                f"nparts: expected None or the number of particles, {n}, got {short_repr(nparts)}; a SystematicResampler of "
                "Stone Soup changes their number"
            )
        weighted, _ = states.particles_of_state(state)
        if weighted.ess >= (1 - 1e-9) * self.resample_below * n:
            return state
        if copies:
            chosen = state[self.resampling.ancestors(weighted.weights, self._rng)]
            chosen.log_weight = np.full(n, -np.log(n))
            return chosen
        new = self.resampling.resample(weighted, self._rng, states.circular_of_state(state))
        return type(state).from_state(
            state, state_vector=states.as_state_vectors(new.x, state), log_weight=new.log_weights, parent=None
        )
