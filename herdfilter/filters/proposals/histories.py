"""Histories of modes and associations: a Gaussian for each as long as its successors agree with it, else particles."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_part
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.jump_filters import select_histories
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.automatic import AutomaticProposal
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.proposals.limits import propose_within
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, Ancestors
from herdfilter.filters.proposals.modes import ModeProposal, label
from herdfilter.filters.proposals.scans import Hypothesis, parts_from_scan
from herdfilter.filters.resampling.base import ranked_members
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Motion, Transition
from herdfilter.samplers import balanced


@dataclass(frozen=True)
class HistoryProposal:
    r"""Carries histories of modes and associations: a Gaussian for each as long as its successors agree, else particles.

    A Gaussian is continued as in `MixtureKalmanFilter`: by all modes, and by a miss and each detection of a scan, with the
    update of an unscented Kalman filter. At most n go on to the next step. On linear Gaussian models this is that filter.

    A history of weight w is entitled to n w of the n particles. Where these are more than the sigma points of its state and
    noise, its Gaussian is tested: by points drawn from Kalman's update of state and noise, with exact weights. Their
    moments and mean weight replace Kalman's (the Gaussian particle filter of Kotecha and Djuric 2003). The Gaussian is
    rejected if fewer than n of the points count, or if n particles could tell them from a Gaussian by their third or
    fourth cumulants; n w particles then take its place, by the wrapped proposal. The heaviest history is always tested. If
    most of the weight tested is rejected, all histories become particles, light ones included.

    Particles are continued by modes as in `ModeProposal`, and each detection of a scan guides a share of them. Those of one
    mode and detection become one Gaussian again where n particles could not tell them from it.

    In two and more dimensions a filter wraps `AutomaticProposal` into this one if its model jumps, or at the first scan.
    In one dimension exact quantiles are as good where all is linear, and better where it is not.
    Given as the proposal it also keeps the hypotheses of a track apart. In a filter ``particles`` are n equal points drawn
    from all histories without random numbers; ``ess`` counts a Gaussian as the n w equal particles that it replaces.

    Parameters
    ----------
    proposal : AutomaticProposal
        For the particles.

    Raises
    ------
    TypeError
        If `proposal` is of another kind.

    See Also
    --------
    MixtureKalmanFilter, ModeProposal

    Examples
    --------
    A walk with short and long steps, observed among false alarms: the mixture Kalman filter.

    >>> short, long = (hf.models.LinearGaussian([[1]], [[1]], [[q]], [[1]], [0], [[1]]) for q in (0.01, 4.0))
    >>> walk = hf.models.JumpMarkov([short, long], [[0.9, 0.1], [0.2, 0.8]])
    >>> model = hf.models.WithClutter(walk, detection_probability=0.9, clutter_density=0.05)
    >>> scans = [[[0.1], [7.0]], [], [[3.1], [-2.0]], [[6.0]]]
    >>> pf = hf.ParticleFilter(model, 50, hf.HistoryProposal())
    >>> np.allclose(pf.run(scans).means, hf.MixtureKalmanFilter(model, 50).run(scans).means)
    True
    """

    proposal: AutomaticProposal = field(default_factory=AutomaticProposal)
    uses = base.Uses(weights=True, observation=True, whole_scan=True)

    def __post_init__(self) -> None:
        check_part("proposal", self.proposal, AutomaticProposal, "an AutomaticProposal()")

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        contract.refuse_limits(model, "HistoryProposal")
        (self._in_modes if contract.jumps(model) else self.proposal).check(model)

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        jumps = contract.jumps(model)
        parts = []
        for mode in np.flatnonzero(model.initial_modes).tolist() if jumps else [0]:
            mode_model = contract.in_mode(model, mode)
            prior = mode_model.initial
            if Motion(mode_model).simulated_only or not isinstance(prior, GaussianMixture):
                return (self._in_modes if jumps else self.proposal).initial(model, n, rng)
            means = wrap(prior.means, contract.circular_dims(model))
            part = Histories.of_gaussians(np.log(prior.weights), means, prior.covariances)
            parts.append(label(part, mode, model.initial_modes[mode]) if jumps else part)
        return Particles.join(parts, n)

    def propose(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        n = particles.n_next
        circular = transition.circular
        if isinstance(particles, Histories):
            # A Kalman filter needs the transition as a function of noise, and moments of the observation; without them all
            # histories go on as points.
            moments = observation is None or observation.in_mode(0).has_moments
            if transition.motion.modes[0].simulated_only or not moments:
                points = particles.points(circular, transition.step)
                return Histories.join(self._points(transition, points, 0.0, rng, observation), n)
        elif (
            particles.modes is None
        ):  # plain particles, as at the first scan: one Gaussian if they look like one
            particles = Histories.join(settled([particles], n, circular), n)
        else:
            particles = Histories.of(particles)
        # Points first: the evidence of all points is a part of the sum that the shares of the histories are relative to.
        parts: list[Particles] = []
        log_evidence = -np.inf
        if not particles.gaussian.all():
            points, log_mass = particles.plain().normalised()
            parts += self._points(transition, points, log_mass, rng, observation)
            log_evidence = Histories.join(parts).normalised()[1]
        if particles.gaussian.any():
            histories, log_mass = particles.take(np.flatnonzero(particles.gaussian)).normalised()
            parts += self._histories(
                transition, histories, log_mass, rng, observation, log_evidence
            )
        return Histories.join(parts, n)

    def _points(
        self,
        transition: Transition,
        points: Particles,
        log_mass: float,
        rng: np.random.Generator,
        observation: Observation | None,
    ) -> list[Particles]:
        """Move points, of the total weight `log_mass`, by the proposal; the parts are those of modes and detections."""
        n = points.n_next
        # their share of the n particles
        points.n_next = max(1, round(n * np.exp(log_mass)))
        if contract.jumps(transition.model):
            parts = self._in_modes.parts(transition, points, rng, observation)
        else:
            parts = parts_from_scan(self.proposal, transition, points, rng, observation)
        return [part.reweighted(log_mass) for part in settled(parts, n, transition.circular)]

    def _histories(
        self,
        transition: Transition,
        histories: Histories,
        log_mass: float,
        rng: np.random.Generator,
        observation: Observation | None,
        log_points: float,
    ) -> list[Particles]:
        """Continue histories of the total weight `log_mass` by modes and hypotheses; `log_points` is that of all points."""
        n = histories.n_next
        selected, weights = select_histories(histories.weights, n)
        histories = histories.take(selected)
        model = transition.model
        modes = histories.modes
        # The mixture Kalman filter: each history is split by the modes, predicted, and branched by the hypotheses.
        belief = histories.belief(weights)
        matrix = model.transition_matrix if contract.jumps(model) else np.ones((1, 1))
        predicted = belief.split(matrix).predict(transition, UNSCENTED_RULE)
        parents = np.nonzero(matrix[belief.modes] > 0)[0]
        if observation is None:
            updated = predicted
            log_density = 0.0
            sources = np.arange(len(parents))
            hypotheses = np.zeros(len(parents), int)
            offset = 0.0
        else:
            updated, log_density, sources, hypotheses = predicted.branch(
                observation, UNSCENTED_RULE
            )
            # set already if there are points, which come first
            if observation.log_offset is None and log_density > -np.inf:
                observation.log_offset = log_density
            offset = observation.log_offset or 0.0
        with np.errstate(divide="ignore"):
            log_weights = np.log(updated.weights) + log_mass + log_density - offset
            log_prior = np.log(predicted.weights[sources]) + log_mass - offset
        continued = Histories.of_gaussians(
            log_weights,
            updated.means.copy(),
            updated.covariances.copy(),
            None if modes is None else updated.modes,
        )
        if log_density == -np.inf:  # impossible by all hypotheses: nothing to test
            return [continued]
        # Histories that are entitled to more particles than their sigma points are tested, and the heaviest in any case.
        shares = np.exp(log_weights - np.logaddexp(log_mass + log_density - offset, log_points))
        d = model.dim + Motion(contract.in_mode(model, 0)).noise_dim
        entitled = n * shares > 2 * d + 1
        tested = np.union1d(np.flatnonzero(entitled), [shares.argmax()])
        rejected = np.zeros(len(continued), dtype=bool)
        parts = []
        onward = transition.modes
        for i in tested.tolist():
            mode = int(updated.modes[i])
            hypothesis = Hypothesis(
                None if observation is None else observation.in_mode(mode), int(hypotheses[i])
            )
            parent = parents[sources[i]]
            mean = belief.means[parent]
            root = belief.factors[parent]
            moments = self._gaussian(
                Ancestors.gaussian(onward[mode], mean, root), n, rng, hypothesis
            )
            rejected[i] = moments is None
            # the heaviest history, tested only to see whether Gaussians hold at all
            if not entitled[i]:
                continue
            # Particles in place of the Gaussian, by the wrapped proposal, with the factors of the hypothesis.
            if moments is None:
                ancestor = Histories.of_gaussians(np.zeros(1), mean[None], (root @ root.T)[None])
                ancestor.n_next = max(1, round(n * shares[i]))
                source = ancestor.points(transition.circular, transition.step)
                guide = hypothesis.guide()
                part = self.proposal.propose(onward[mode], source, rng, guide)
                log_offset = 0.0 if guide is None else guide.log_offset or 0.0
                part = Histories.of(
                    part.reweighted(log_prior[i] + log_offset + hypothesis.log_factors(part.x))
                )
                parts.append(part if modes is None else label(part, mode, 1.0))
            else:
                continued.x[i] = wrap(moments[0], transition.circular)
                continued.covariances[i] = moments[1]
                continued.log_weights[i] = log_prior[i] + moments[2]
        # Where Gaussians fail for most of the weight, those that were too light to be tested cannot be trusted either.
        if 2 * shares[rejected].sum() > shares[tested].sum():
            points = histories.points(transition.circular, transition.step)
            return self._points(transition, points, log_mass, rng, observation)
        return [continued.take(np.flatnonzero(~(rejected & entitled))), *parts]

    def _gaussian(
        self,
        gaussian: Ancestors,
        n: int,
        rng: np.random.Generator,
        hypothesis: Hypothesis,
    ) -> tuple[Array, Array, float] | None:
        """Return mean and covariance of the successors of a Gaussian, and the log-evidence; None if it is rejected."""
        m = SPARE_POINTS
        guide = hypothesis.guide()
        noise = gaussian.standard_noise(self.proposal.sampler, m, rng)
        log_offset = 0.0
        if guide is None:
            successors = Particles.equal(gaussian.successors(np.zeros(m, dtype=np.int64), noise))
        else:
            _, update = gaussian.look_ahead(guide)
            successors = gaussian.updated(guide, update, noise)
            log_offset = guide.log_offset or 0.0
        factors = hypothesis.log_factors(successors.x)
        weighted, log_evidence = successors.reweighted(factors).normalised()
        # few points count: Kalman's update has missed the posterior
        if log_evidence == -np.inf or weighted.ess < min(n, m / 2):
            return None
        shape = Gaussianity(weighted, gaussian.transition.circular)
        if shape.excess(n) > 1:
            return None
        return shape.mean, shape.root @ shape.root.T, log_evidence + log_offset

    @cached_property
    def _in_modes(self) -> ModeProposal:
        return ModeProposal(self.proposal)


def for_model(
    proposal: base.Proposal | None,
    model: contract.Model,
    resampling: Any,
) -> base.Proposal:
    """Wrap a proposal for a filter of this model: in histories or modes, if the model jumps.

    In one dimension exact quantiles of the predictive mixture are as good as histories where all is linear, else better.
    """
    proposal = base.BootstrapProposal() if proposal is None else proposal
    check_part("proposal", proposal, base.Proposal, "a proposal such as BootstrapProposal()")
    if isinstance(proposal, HistoryProposal):
        return proposal
    if not contract.jumps(model):
        return proposal.proposal if isinstance(proposal, ModeProposal) else proposal
    if isinstance(proposal, AutomaticProposal) and model.dim > 1 and not contract.limited(model):
        return HistoryProposal(proposal)
    if not isinstance(proposal, ModeProposal):
        return ModeProposal(proposal, resampling=resampling)
    return proposal if proposal.resampling else replace(proposal, resampling=resampling)


def propose_step(
    proposal: base.Proposal,
    transition: Transition,
    particles: Particles,
    rng: np.random.Generator,
    observation: Observation | None = None,
) -> Particles:
    """Make a step by a proposal: within limits, in histories, detection by detection, or by the proposal alone.

    An `AutomaticProposal` carries histories from the first scan on, unless the state has one dimension.
    """
    if transition.motion.limited:
        return propose_within(proposal, transition, particles, rng, observation)
    scan = observation is not None and observation.is_scan
    if isinstance(proposal, AutomaticProposal) and (
        isinstance(particles, Histories) or (scan and particles.x.shape[1] > 1)
    ):
        proposal = HistoryProposal(proposal)
    if not scan or proposal.uses.whole_scan:
        return proposal.propose(transition, particles, rng, observation)
    return Particles.join(parts_from_scan(proposal, transition, particles, rng, observation))


class Histories(Particles):
    """Particles each of which is either a point or the Gaussian of a history."""

    FIELDS = (*Particles.FIELDS, "covariances", "gaussian")

    covariances: Array
    """Covariances (n, d, d) of the Gaussians; zero about points."""
    gaussian: NDArray[np.bool_]
    """True (n,) where a particle is a Gaussian, False where it is a point."""

    @classmethod
    def of(cls, particles: Particles) -> Self:
        """Return points as histories without a spread."""
        if isinstance(particles, cls):
            return particles
        n, d = particles.x.shape
        histories = cls.unchecked(
            particles.x, particles.log_weights, particles.modes, particles.n_next
        )
        histories.covariances = np.broadcast_to(np.zeros((d, d)), (n, d, d))
        histories.gaussian = np.zeros(n, dtype=bool)
        return histories

    @classmethod
    def of_gaussians(
        cls,
        log_weights: Array,
        means: Array,
        covariances: Array,
        modes: Any = None,
    ) -> Self:
        """Return histories each of which is a Gaussian."""
        histories = cls.unchecked(means, log_weights, modes)
        histories.covariances = covariances
        histories.gaussian = np.ones(len(means), dtype=bool)
        return histories

    @classmethod
    def restored_spread(cls, saved: Any, n: int, dim: int) -> dict[str, Array]:
        """See `Particles`."""
        return {
            "covariances": saved.read("covariances", (n, dim, dim)),
            "gaussian": saved.read("gaussian", (n,)),
        }

    def fits(self, shape: tuple[int, int]) -> bool:
        """See `Particles`: there may be fewer, or more."""
        return np.shape(self.x)[1:] == shape[1:]

    @cached_property
    def ess(self) -> float:
        """See `Particles`: the Gaussian of a history counts as ``w_i n_next`` equal particles."""
        weights = self.weights
        # n w particles of weight 1/n have the sum of squares w / n; a Gaussian with less than one particle's weight has w^2.
        squares = np.where(
            self.gaussian, weights * np.minimum(weights, 1 / self.n_next), weights**2
        )
        return float(1.0 / squares.sum())

    def points(self, circular: tuple[int, ...], step: int) -> Particles:
        """Represent the histories by `n_next` equal points: each Gaussian by a number of balanced points of its own."""
        n = self.n_next
        members = ranked_members(self.x, self.weights, circular, n)
        noise = balanced.balanced_noise(n, self.x.shape[1], step % balanced.SETS)
        points = Particles.equal(
            wrap(self.x[members] + contract.correlated(noise, self.covariances[members]), circular)
        )
        points.modes = None if self.modes is None else self.modes[members]
        return points

    def belief(self, weights: Array) -> Gaussians:
        """Return the histories with these weights as a mixture of Gaussians."""
        modes = np.zeros(len(self), dtype=np.int64) if self.modes is None else self.modes
        return Gaussians(weights, self.x, covariance_factor(self.covariances), modes)

    def predicted_observation(self, reader: Measurement, step: int) -> tuple[Array, Array]:
        """See `Particles`."""
        return self.belief(self.weights).predicted_observation(reader, UNSCENTED_RULE, step)

    def updated(self, observation: Observation) -> Particles:
        """See `Particles`: Gaussians get a Kalman update."""
        circular = contract.circular_dims(observation.model)
        # Without moments of the observation no Gaussian can be updated: all become points.
        if not observation.in_mode(0).has_moments:
            return observation.weigh(self.points(circular, observation.step))
        parts: list[Particles] = []
        if self.gaussian.any():
            plain = not observation.measurement.scans and self.modes is None
            # iterated without a rule
            rule = None if plain and observation.step == 0 else UNSCENTED_RULE
            histories, log_mass = self.take(np.flatnonzero(self.gaussian)).normalised()
            updated, log_density, *_ = histories.belief(histories.weights).branch(observation, rule)
            log_weights = observation.less_offset(np.log(updated.weights) + log_mass + log_density)
            modes = None if self.modes is None else updated.modes
            parts.append(
                Histories.of_gaussians(log_weights, updated.means, updated.covariances, modes)
            )
        if not self.gaussian.all():
            parts.append(observation.weigh(self.plain()))
        return Histories.join(parts, self.n_next)

    def plain(self) -> Particles:
        """Return the points among the histories as plain particles."""
        which = ~self.gaussian
        modes = None if self.modes is None else self.modes[which]
        return Particles.unchecked(self.x[which], self.log_weights[which], modes, self.n_next)


def settled(parts: list[Particles], n: int, circular: tuple[int, ...]) -> list[Histories]:
    """Replace each part by one Gaussian if n particles could not tell it from that; otherwise keep its points."""
    settled_parts = []
    for part in parts:
        weighted, log_evidence = part.normalised()
        if log_evidence > -np.inf and (shape := Gaussianity(weighted, circular)).excess(n) <= 2:
            means = wrap(shape.mean[None], circular)
            covariances = (shape.root @ shape.root.T)[None]
            modes = None if part.modes is None else part.modes[:1]
            part = Histories.of_gaussians(np.array([log_evidence]), means, covariances, modes)
        settled_parts.append(Histories.of(part))
    return settled_parts
