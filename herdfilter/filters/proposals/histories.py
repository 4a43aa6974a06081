"""Histories of modes and associations: a Gaussian for each while nothing speaks against it, else particles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.histories import select_histories
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import balanced, base
from herdfilter.filters.proposals.automatic import AutomaticProposal
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, Ancestors
from herdfilter.filters.proposals.modes import ModeProposal, in_modes, label
from herdfilter.filters.proposals.scans import parts_from_scan
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract

Hypothesis = tuple[Observation | None, Callable[[Array], Array | float]]
"""An observation by one hypothesis, None for a miss, and the logs of the factors of its density at states (n, d)."""


@dataclass(frozen=True)
class HistoryProposal:
    r"""Carries histories of modes and associations: a Gaussian for each while nothing speaks against it, else particles.

    A Gaussian goes on as in `MixtureKalmanFilter`: all modes continue it, and a miss or each detection of a scan updates it
    by an unscented Kalman filter. At most n go on to the next step. On linear Gaussian models the result is that filter's.

    A history of weight w has earned n w of the n particles. Where these are more than the sigma points of its state and
    noise, its successors are looked at: points drawn from Kalman's update of state and noise, with exact weights. Their
    moments and mean weight replace Kalman's (the Gaussian particle filter of Kotecha and Djuric 2003). The Gaussian is
    refused if fewer than n of the points count, or if n particles could tell them from a Gaussian by their third or
    fourth cumulants. Then n w particles go on by the wrapped proposal. If most of the weight that is looked at, the heaviest
    history at least, is refused, all histories become particles: the light ones follow the heavy ones.

    Particles go on by modes as in `ModeProposal`, and each detection of a scan guides a share of them. Those of one mode and
    detection become one Gaussian again where n particles could not tell them from it.

    In two and more dimensions a filter of a model that jumps wraps `AutomaticProposal` into this one, any other at the first
    scan that it is given. On a line exact quantiles are as good where all is linear, and better where it is not.
    Given as the proposal it also keeps the hypotheses of a track apart. In a filter ``particles`` are n equal points drawn
    from all histories without random numbers; ``ess`` counts a Gaussian as the n w equal particles that it stands for.

    Parameters
    ----------
    proposal : AutomaticProposal
        For the particles.

    Raises
    ------
    TypeError
        If `proposal` is another one.

    See Also
    --------
    MixtureKalmanFilter, ModeProposal

    Examples
    --------
    A walk with short and long steps, seen among false alarms: the mixture Kalman filter.

    >>> short, long = (hf.models.LinearGaussian([[1]], [[1]], [[q]], [[1]], [0], [[1]]) for q in (0.01, 4.0))
    >>> walk = hf.models.JumpMarkov([short, long], [[0.9, 0.1], [0.2, 0.8]])
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.05)
    >>> scans = [[[0.1], [7.0]], [], [[3.1], [-2.0]], [[6.0]]]
    >>> pf = hf.ParticleFilter(model, 50, hf.HistoryProposal())
    >>> np.allclose(pf.run(scans).means, hf.MixtureKalmanFilter(model, 50).run(scans).means)
    True
    """

    proposal: AutomaticProposal = field(default_factory=AutomaticProposal)
    uses: ClassVar[base.Uses] = base.Uses(weights=True, observation=True, whole_scan=True)

    def __post_init__(self) -> None:
        base.check_part("proposal", self.proposal, AutomaticProposal, "an AutomaticProposal()")

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        (self._in_modes if contract.jumps(model) else self.proposal).check(model)

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        jumps, parts = contract.jumps(model), []
        for mode in np.flatnonzero(model.initial_modes).tolist() if jumps else [0]:
            own = contract.in_mode(model, mode)
            if contract.simulated_only(own) or not isinstance(own.initial, GaussianMixture):
                return (self._in_modes if jumps else self.proposal).initial(model, n, rng)
            means, covariances = wrap(own.initial.means, contract.circular_dims(model)), own.initial.covariances
            given = gaussians(np.log(own.initial.weights), means, covariances)
            parts.append(label(given, mode, model.initial_modes[mode]) if jumps else given)
        return Particles.join(parts, n)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        n, circular, known = particles.n_next, transition.circular, particles.gaussian
        one = contract.in_mode(transition.model, 0)
        # Gaussians need functions of the noise and moments of the observation
        if known is not None and (
            contract.simulated_only(one) or not (observation is None or observation.in_mode(0).has_moments)
        ):
            points = as_points(particles, circular, transition.step)
            return Particles.join(self._points(transition, points, 0.0, n, rng, observation), n)
        if known is None:
            whole = settled([particles], n, circular) if particles.modes is None else [_as_part(particles)]
            particles = Particles.join(whole, n)
            known = particles.gaussian
        # points first: the more of the weight is theirs, the fewer have the histories earned
        parts, log_evidence = [], -np.inf
        if not known.all():
            points, log_mass = subset(particles, ~known).normalised()
            parts = self._points(transition, points, log_mass, n, rng, observation)
            log_evidence = Particles.join(parts).normalised()[1]
        if known.any():
            histories, log_mass = subset(particles, known).normalised()
            parts += self._histories(transition, histories, log_mass, n, rng, observation, log_evidence)
        return Particles.join(parts, n)

    def _points(
        self,
        transition: Transition,
        points: Particles,
        log_mass: float,
        n: int,
        rng: np.random.Generator,
        observation: Observation | None,
    ) -> list[Particles]:
        """Move points, of the weight `log_mass`, by the proposal; in parts, by modes and detections."""
        points.n_next = max(1, round(n * np.exp(log_mass)))
        if not contract.jumps(transition.model):
            sources = {0: (points, 1.0)}
            onward = [transition]
        else:
            onward = [transition.of(model) for model in transition.model.models]
            sources = self._in_modes.allot(onward, transition, points, rng, observation)
        parts = []
        for mode, (source, mass) in sources.items():
            if observation is None:
                moved = [self.proposal.propose(onward[mode], source, rng)]
            else:
                own = observation.in_mode(mode)
                moved = parts_from_scan(self.proposal, onward[mode], source, rng, own)
                observation.log_offset = own.log_offset
            parts += moved if points.modes is None else [label(part, mode, mass) for part in moved]
        return [part.reweighted(np.full(len(part), log_mass)) for part in settled(parts, n, transition.circular)]

    def _histories(
        self,
        transition: Transition,
        histories: Particles,
        log_mass: float,
        n: int,
        rng: np.random.Generator,
        observation: Observation | None,
        log_points: float,
    ) -> list[Particles]:
        """Continue histories of the weight `log_mass` by modes and hypotheses; `log_points` is the evidence of points."""
        kept, weights = select_histories(histories.weights, n)
        histories = subset(histories, kept)
        model, modes = transition.model, histories.modes
        count = len(model.models) if contract.jumps(model) else 1
        belief = belief_about(histories, weights)
        matrix = model.transition_matrix if count > 1 else np.ones((1, 1))
        predicted = belief.split(matrix).predict(transition, UNSCENTED_RULE)
        parents = np.nonzero(matrix[belief.modes] > 0)[0]
        if observation is None:
            updated, log_density, which, hypotheses = predicted, 0.0, np.arange(len(parents)), np.zeros(len(parents), int)
        else:
            updated, log_density, which, hypotheses = predicted.branch(observation, UNSCENTED_RULE)
            if observation.log_offset is None and log_density > -np.inf:
                observation.log_offset = log_density
        offset = 0.0 if observation is None else observation.log_offset or 0.0
        with np.errstate(divide="ignore"):
            log_weights = np.log(updated.weights) + log_mass + log_density - offset
            log_prior = np.log(predicted.weights[which]) + log_mass - offset
        made = gaussians(log_weights, updated.means.copy(), updated.covariances.copy())
        made.modes = None if modes is None else updated.modes
        if log_density == -np.inf:
            return [made]
        shares = np.exp(log_weights - np.logaddexp(log_mass + log_density - offset, log_points))
        d = model.dim + contract.noise_dim(contract.in_mode(model, 0))
        earned = n * shares > 2 * d + 1
        tested = np.union1d(np.flatnonzero(earned), [shares.argmax()])
        refused, parts = np.zeros(len(made), dtype=bool), []
        for i in tested.tolist():
            mode = int(updated.modes[i])
            onward = transition.of(contract.in_mode(model, mode))
            by: Hypothesis = (None, lambda x: 0.0)
            if observation is not None:
                by = guide_of(observation.in_mode(mode), int(hypotheses[i]))
            start = belief.means[parents[which[i]]], belief.factors[parents[which[i]]]
            found = self._gaussian(onward, *start, n, rng, *by)
            refused[i] = found is None
            if not earned[i]:
                continue
            if found is None:
                source = gaussians(np.zeros(1), start[0][None], (start[1] @ start[1].T)[None], max(1, round(n * shares[i])))
                source = as_points(source, transition.circular, transition.step)
                part = self.proposal.propose(onward, source, rng, by[0])
                log_offset = 0.0 if by[0] is None else by[0].log_offset or 0.0
                part = _as_part(part.reweighted(np.full(len(part), log_prior[i] + log_offset) + by[1](part.x)))
                parts.append(part if modes is None else label(part, mode, 1.0))
            else:
                made.x[i], made.covariances[i] = wrap(found[0], transition.circular), found[1]
                made.log_weights[i] = log_prior[i] + found[2]
        if 2 * shares[refused].sum() > shares[tested].sum():
            points = as_points(histories, transition.circular, transition.step)
            return self._points(transition, points, log_mass, n, rng, observation)
        return [subset(made, ~(refused & earned)), *parts]

    def _gaussian(
        self,
        transition: Transition,
        mean: Array,
        root: Array,
        n: int,
        rng: np.random.Generator,
        guide: Observation | None,
        log_factors: Callable[[Array], Array | float],
    ) -> tuple[Array, Array, float] | None:
        """Return mean and covariance of the successors of a Gaussian, and the log-evidence; None if they are refused."""
        m = SPARE_POINTS
        gaussian, only = Ancestors.gaussian(transition, mean, root), np.zeros(m, dtype=np.int64)
        noise = gaussian.standard_noise(self.proposal.sampler, m, rng)
        log_offset = 0.0
        if guide is None:
            moved = Particles.equal(gaussian.successors(only, noise))
        else:
            _, update = gaussian.look_ahead(guide)
            moved = gaussian.particles(guide, update, only, noise, np.full(m, -np.log(m)))
            log_offset = guide.log_offset or 0.0
        weighted, log_evidence = moved.reweighted(log_factors(moved.x) + np.zeros(m)).normalised()
        if log_evidence == -np.inf or weighted.ess < min(n, m / 2):
            return None
        shape = Gaussianity(weighted, transition.circular)
        return (shape.mean, shape.root @ shape.root.T, log_evidence + log_offset) if shape.excess(n) <= 1 else None

    @cached_property
    def _in_modes(self) -> ModeProposal:
        return ModeProposal(self.proposal)


def for_model(proposal: base.Proposal, model: contract.Model, resampling: Any) -> base.Proposal:
    """Return the proposal as a filter of this model takes it: by histories, or by modes, where it has any.

    On a line exact quantiles of the predictive mixture are as good as histories where all is linear, and better where not.
    """
    if isinstance(proposal, HistoryProposal):
        return proposal
    if isinstance(proposal, AutomaticProposal) and contract.jumps(model) and model.dim > 1:
        return HistoryProposal(proposal)
    return in_modes(proposal, model, resampling)


def at_step(proposal: base.Proposal, particles: Particles, observation: Observation | None = None) -> base.Proposal:
    """Return the proposal for a step: by histories once a sensor has given a scan, unless the state is a line."""
    scan = observation is not None and contract.has_scans(observation.model) and particles.x.shape[1] > 1
    if isinstance(proposal, AutomaticProposal) and (scan or particles.gaussian is not None):
        return HistoryProposal(proposal)
    return proposal


def guide_of(observation: Observation, hypothesis: int) -> Hypothesis:
    """Return the observation by a hypothesis, None for a miss, and the logs of the factors of its density at states."""
    if not contract.has_scans(observation.model):
        return replace(observation, log_offset=None), lambda x: 0.0
    model, scan, step = observation.model, observation.z, observation.step

    def log_factors(x: Array) -> Array:
        missed, detected = model.log_factors(model.detection_probabilities(x, step), scan, step)
        return (
            np.broadcast_to(detected, (len(scan), len(x)))[hypothesis - 1] if hypothesis else np.broadcast_to(missed, len(x))
        )

    return Observation(model.model, scan[hypothesis - 1], step, None) if hypothesis else None, log_factors


def gaussians(log_weights: Array, means: Array, covariances: Array, n_next: Any = None) -> Particles:
    """Return histories, each a Gaussian."""
    return Particles.unchecked(means, log_weights, None, n_next, covariances, np.ones(len(means), dtype=bool))


def subset(particles: Particles, which: Any) -> Particles:
    """Return some entries of histories, with the weights that they have; as plain particles if all of them are points."""
    arrays = particles.modes, particles.covariances, particles.gaussian
    modes, covariances, gaussian = (None if one is None else one[which] for one in arrays)
    about = (covariances, gaussian) if gaussian is not None and gaussian.any() else ()
    return Particles.unchecked(particles.x[which], particles.log_weights[which], modes, particles.n_next, *about)


def settled(parts: list[Particles], n: int, circular: tuple[int, ...]) -> list[Particles]:
    """Return one Gaussian in place of each part that n particles could not tell from it, else its points."""
    found = []
    for part in parts:
        weighted, log_evidence = part.normalised()
        made = _as_part(part)
        if log_evidence > -np.inf and (shape := Gaussianity(weighted, circular)).excess(n) <= 2:
            made = gaussians(np.array([log_evidence]), wrap(shape.mean[None], circular), (shape.root @ shape.root.T)[None])
            made.modes = None if part.modes is None else part.modes[:1]
        found.append(made)
    return found


def _as_part(points: Particles) -> Particles:
    """Return points as a part of histories."""
    (m, d), none = points.x.shape, np.zeros(len(points), dtype=bool)
    nothing = np.broadcast_to(np.zeros((d, d)), (m, d, d))
    return Particles.unchecked(points.x, points.log_weights, points.modes, points.n_next, nothing, none)


def as_points(particles: Particles, circular: tuple[int, ...], set_index: int) -> Particles:
    """Return as many equal points as the next step has, dealt to histories by their weights, in place of their Gaussians."""
    n, d = particles.n_next, particles.x.shape[1]
    chosen = balanced.ranked_members(particles.x, particles.weights, circular, n)
    noise = balanced.balanced_noise(n, d, set_index % balanced.SETS)
    roots = covariance_factor(particles.covariances[chosen])
    points = Particles.equal(wrap(particles.x[chosen] + (roots @ noise[:, :, None])[:, :, 0], circular))
    points.modes = None if particles.modes is None else particles.modes[chosen]
    return points


def belief_about(histories: Particles, weights: Array) -> Gaussians:
    """Return histories as the mixture Kalman filter has them."""
    modes = np.zeros(len(histories), dtype=np.int64) if histories.modes is None else histories.modes
    return Gaussians(weights, histories.x, covariance_factor(histories.covariances), modes)


def weigh(observation: Observation, particles: Particles) -> Particles:
    """Return histories with their weights times the likelihood, not normalised; their Gaussians are updated."""
    circular, known = contract.circular_dims(observation.model), particles.gaussian
    if not observation.in_mode(0).has_moments:
        return observation.weigh(as_points(particles, circular, observation.step))
    parts = []
    if known.any():
        plain = not contract.has_scans(observation.model) and particles.modes is None
        rule = None if plain and observation.step == 0 else UNSCENTED_RULE  # iterated without a rule
        histories, log_mass = subset(particles, known).normalised()
        belief = belief_about(histories, histories.weights)
        updated, log_density, *_ = belief.branch(observation, rule)
        made = gaussians(
            observation.less_offset(np.log(updated.weights) + log_mass + log_density), updated.means, updated.covariances
        )
        made.modes = None if particles.modes is None else updated.modes
        parts.append(made)
    if not known.all():
        parts.append(_as_part(observation.weigh(subset(particles, ~known))))
    return Particles.join(parts, particles.n_next)
