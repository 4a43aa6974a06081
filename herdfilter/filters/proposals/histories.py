"""Histories of modes and associations: a Gaussian for each while nothing speaks against it, else particles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_part
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.histories import select_histories
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import balanced, base
from herdfilter.filters.proposals.automatic import AutomaticProposal
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, Ancestors
from herdfilter.filters.proposals.modes import ModeProposal, in_modes, label
from herdfilter.filters.proposals.scans import one_by_one, parts_from_scan
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Motion, Transition

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
        check_part("proposal", self.proposal, AutomaticProposal, "an AutomaticProposal()")

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        (self._in_modes if contract.jumps(model) else self.proposal).check(model)

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        jumps, parts = contract.jumps(model), []
        for mode in np.flatnonzero(model.initial_modes).tolist() if jumps else [0]:
            own = contract.in_mode(model, mode)
            if Motion(own).simulated_only or not isinstance(own.initial, GaussianMixture):
                return (self._in_modes if jumps else self.proposal).initial(model, n, rng)
            means, covariances = wrap(own.initial.means, contract.circular_dims(model)), own.initial.covariances
            given = Histories.of_gaussians(np.log(own.initial.weights), means, covariances)
            parts.append(label(given, mode, model.initial_modes[mode]) if jumps else given)
        return Particles.join(parts, n)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        n = particles.n_next
        circular = transition.circular
        if isinstance(particles, Histories):
            # Gaussians need functions of the noise and moments of the observation
            moments = observation is None or observation.in_mode(0).has_moments
            if transition.motion.modes[0].simulated_only or not moments:
                points = particles.points(circular, transition.step)
                return Histories.join(self._points(transition, points, 0.0, n, rng, observation), n)
        elif particles.modes is None:
            particles = Histories.join(settled([particles], n, circular), n)
        else:
            particles = Histories.of(particles)
        # points first: the more of the weight is theirs, the fewer have the histories earned
        parts: list[Particles] = []
        log_evidence = -np.inf
        if not particles.gaussian.all():
            points, log_mass = particles.plain(~particles.gaussian).normalised()
            parts += self._points(transition, points, log_mass, n, rng, observation)
            log_evidence = Histories.join(parts).normalised()[1]
        if particles.gaussian.any():
            histories, log_mass = particles.take(np.flatnonzero(particles.gaussian)).normalised()
            parts += self._histories(transition, histories, log_mass, n, rng, observation, log_evidence)
        return Histories.join(parts, n)

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
            onward = transition.modes
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
        histories: Histories,
        log_mass: float,
        n: int,
        rng: np.random.Generator,
        observation: Observation | None,
        log_points: float,
    ) -> list[Particles]:
        """Continue histories of the weight `log_mass` by modes and hypotheses; `log_points` is the evidence of points."""
        kept, weights = select_histories(histories.weights, n)
        histories = histories.take(kept)
        model, modes = transition.model, histories.modes
        count = len(model.models) if contract.jumps(model) else 1
        belief = histories.belief(weights)
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
        made = Histories.of_gaussians(
            log_weights, updated.means.copy(), updated.covariances.copy(), None if modes is None else updated.modes
        )
        if log_density == -np.inf:
            return [made]
        shares = np.exp(log_weights - np.logaddexp(log_mass + log_density - offset, log_points))
        d = model.dim + Motion(contract.in_mode(model, 0)).noise_dim
        earned = n * shares > 2 * d + 1
        tested = np.union1d(np.flatnonzero(earned), [shares.argmax()])
        refused, parts = np.zeros(len(made), dtype=bool), []
        for i in tested.tolist():
            mode = int(updated.modes[i])
            onward = transition.of(transition.motion.modes[mode])
            by: Hypothesis = (None, lambda x: 0.0)
            if observation is not None:
                by = guide_of(observation.in_mode(mode), int(hypotheses[i]))
            start = belief.means[parents[which[i]]], belief.factors[parents[which[i]]]
            found = self._gaussian(onward, *start, n, rng, *by)
            refused[i] = found is None
            if not earned[i]:
                continue
            if found is None:
                ancestor = Histories.of_gaussians(np.zeros(1), start[0][None], (start[1] @ start[1].T)[None])
                ancestor.n_next = max(1, round(n * shares[i]))
                source = ancestor.points(transition.circular, transition.step)
                part = self.proposal.propose(onward, source, rng, by[0])
                log_offset = 0.0 if by[0] is None else by[0].log_offset or 0.0
                part = Histories.of(part.reweighted(np.full(len(part), log_prior[i] + log_offset) + by[1](part.x)))
                parts.append(part if modes is None else label(part, mode, 1.0))
            else:
                made.x[i], made.covariances[i] = wrap(found[0], transition.circular), found[1]
                made.log_weights[i] = log_prior[i] + found[2]
        if 2 * shares[refused].sum() > shares[tested].sum():
            points = histories.points(transition.circular, transition.step)
            return self._points(transition, points, log_mass, n, rng, observation)
        return [made.take(np.flatnonzero(~(refused & earned))), *parts]

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
            moved = gaussian.updated(guide, update, only, noise, np.full(m, -np.log(m)))
            log_offset = guide.log_offset or 0.0
        weighted, log_evidence = moved.reweighted(log_factors(moved.x) + np.zeros(m)).normalised()
        if log_evidence == -np.inf or weighted.ess < min(n, m / 2):
            return None
        shape = Gaussianity(weighted, transition.circular)
        return (shape.mean, shape.root @ shape.root.T, log_evidence + log_offset) if shape.excess(n) <= 1 else None

    @cached_property
    def _in_modes(self) -> ModeProposal:
        return ModeProposal(self.proposal)


def for_model(proposal: base.Proposal | None, model: contract.Model, resampling: Any) -> base.Proposal:
    """Return the proposal as a filter of this model takes it: by histories, or by modes, where it has any.

    On a line exact quantiles of the predictive mixture are as good as histories where all is linear, and better where not.
    """
    proposal = base.BootstrapProposal() if proposal is None else proposal
    check_part("proposal", proposal, base.Proposal, "a proposal such as BootstrapProposal()")
    if isinstance(proposal, HistoryProposal):
        return proposal
    if isinstance(proposal, AutomaticProposal) and contract.jumps(model) and model.dim > 1:
        return HistoryProposal(proposal)
    return in_modes(proposal, model, resampling)


def for_step(proposal: base.Proposal, particles: Particles, observation: Observation | None) -> base.Proposal:
    """Return the proposal as it moves these particles: a scan is taken by histories, or detection by detection.

    An `AutomaticProposal` carries histories from the first scan on, unless the state is a line.
    """
    if type(particles) is Particles and (observation is None or not observation.measurement.scans):
        return proposal
    scan = observation is not None and observation.is_scan and particles.x.shape[1] > 1
    if isinstance(proposal, AutomaticProposal) and (scan or isinstance(particles, Histories)):
        return HistoryProposal(proposal)
    return one_by_one(proposal, observation)


def guide_of(observation: Observation, hypothesis: int) -> Hypothesis:
    """Return the observation by a hypothesis, None for a miss, and the logs of the factors of its density at states."""
    if not observation.measurement.scans:
        return Observation(observation.measurement, observation.z, observation.step, None), lambda x: 0.0
    model, scan, step = observation.model, observation.z, observation.step

    def log_factors(x: Array) -> Array:
        missed, detected = model.log_factors(model.detection_probabilities(x, step), scan, step)
        return (
            np.broadcast_to(detected, (len(scan), len(x)))[hypothesis - 1] if hypothesis else np.broadcast_to(missed, len(x))
        )

    return Observation(model.model, scan[hypothesis - 1], step, None) if hypothesis else None, log_factors


class Histories(Particles):
    """Particles of which each may stand for the Gaussian of a history."""

    FIELDS: ClassVar[tuple[str, ...]] = (*Particles.FIELDS, "covariances", "gaussian")

    covariances: Array
    """Covariances (n, d, d) of the Gaussians; zero about points."""
    gaussian: NDArray[np.bool_]
    """True (n,) where a particle stands for a Gaussian, else it is a point."""

    @classmethod
    def of(cls, particles: Particles) -> Self:
        """Return points as histories without a spread."""
        if isinstance(particles, cls):
            return particles
        n, d = particles.x.shape
        histories = cls.unchecked(particles.x, particles.log_weights, particles.modes, particles.n_next)
        histories.covariances = np.broadcast_to(np.zeros((d, d)), (n, d, d))
        histories.gaussian = np.zeros(n, dtype=bool)
        return histories

    @classmethod
    def of_gaussians(cls, log_weights: Array, means: Array, covariances: Array, modes: Any = None) -> Self:
        """Return histories each of which is a Gaussian."""
        histories = cls.unchecked(means, log_weights, modes)
        histories.covariances = covariances
        histories.gaussian = np.ones(len(means), dtype=bool)
        return histories

    @classmethod
    def restored_spread(cls, saved: Any, n: int, dim: int) -> dict[str, Array]:
        """See `Particles`."""
        return {"covariances": saved.read("covariances", (n, dim, dim)), "gaussian": saved.read("gaussian", (n,))}

    def fits(self, shape: tuple[int, int]) -> bool:
        """See `Particles`: there may be fewer, or more."""
        return np.shape(self.x)[1:] == shape[1:]

    def effective_size(self) -> float:
        """See `Particles`: the Gaussian of a history counts as ``w_i n_next`` equal particles."""
        weights = self.weights
        squares = np.where(self.gaussian, weights * np.minimum(weights, 1 / self.n_next), weights**2)
        return float(1.0 / squares.sum())

    def moments(self, circular: tuple[int, ...] = ()) -> tuple[Array, Array]:
        """See `Particles`."""
        mean, covariance = super().moments(circular)
        return mean, covariance + np.tensordot(self.weights, self.covariances, 1)

    def points(self, circular: tuple[int, ...], step: int) -> Particles:
        """Deal as many equal points as the next step has to histories by their weights, in place of their Gaussians."""
        n, d = self.n_next, self.x.shape[1]
        chosen = balanced.ranked_members(self.x, self.weights, circular, n)
        noise = balanced.balanced_noise(n, d, step % balanced.SETS)
        roots = covariance_factor(self.covariances[chosen])
        points = Particles.equal(wrap(self.x[chosen] + (roots @ noise[:, :, None])[:, :, 0], circular))
        points.modes = None if self.modes is None else self.modes[chosen]
        return points

    def belief(self, weights: Array) -> Gaussians:
        """Return the histories, with these weights, as the mixture Kalman filter has them."""
        modes = np.zeros(len(self), dtype=np.int64) if self.modes is None else self.modes
        return Gaussians(weights, self.x, covariance_factor(self.covariances), modes)

    def predicted_observation(self, reader: Measurement, step: int) -> tuple[Array, Array]:
        """See `Particles`."""
        return self.belief(self.weights).predicted_observation(reader, UNSCENTED_RULE, step)

    def updated(self, observation: Observation) -> Particles:
        """See `Particles`: Gaussians are updated as Kalman."""
        circular = contract.circular_dims(observation.model)
        if not observation.in_mode(0).has_moments:
            return observation.weigh(self.points(circular, observation.step))
        parts: list[Particles] = []
        if self.gaussian.any():
            plain = not observation.measurement.scans and self.modes is None
            rule = None if plain and observation.step == 0 else UNSCENTED_RULE  # iterated without a rule
            histories, log_mass = self.take(np.flatnonzero(self.gaussian)).normalised()
            updated, log_density, *_ = histories.belief(histories.weights).branch(observation, rule)
            log_weights = observation.less_offset(np.log(updated.weights) + log_mass + log_density)
            modes = None if self.modes is None else updated.modes
            parts.append(Histories.of_gaussians(log_weights, updated.means, updated.covariances, modes))
        if not self.gaussian.all():
            parts.append(observation.weigh(self.plain(~self.gaussian)))
        return Histories.join(parts, self.n_next)

    def plain(self, which: Any) -> Particles:
        """Return those of these entries that are points."""
        modes = None if self.modes is None else self.modes[which]
        return Particles.unchecked(self.x[which], self.log_weights[which], modes, self.n_next)


def settled(parts: list[Particles], n: int, circular: tuple[int, ...]) -> list[Histories]:
    """Return one Gaussian in place of each part that n particles could not tell from it, else its points."""
    settled_parts = []
    for part in parts:
        weighted, log_evidence = part.normalised()
        if log_evidence > -np.inf and (shape := Gaussianity(weighted, circular)).excess(n) <= 2:
            means, covariances = wrap(shape.mean[None], circular), (shape.root @ shape.root.T)[None]
            modes = None if part.modes is None else part.modes[:1]
            settled_parts.append(Histories.of_gaussians(np.array([log_evidence]), means, covariances, modes))
        else:
            settled_parts.append(Histories.of(part))
    return settled_parts
