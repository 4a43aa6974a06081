"""A proposal for each mode of a model that jumps between some: which mode gets how many particles is not left to chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, one_of
from herdfilter.angles import moments
from herdfilter.filters.kalman.gaussian import observation_moments, predict_gaussians
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import ObservingProposal, Proposal, check_part
from herdfilter.filters.proposals.scans import guided
from herdfilter.filters.resampling import Resampling, SystematicResampling
from herdfilter.filters.resampling.base import Indices
from herdfilter.filters.transition import Transition
from herdfilter.models.contract import OBSERVED, Model, gaussian_log_density, has, has_scans, in_mode, jumps, kind
from herdfilter.samplers.mapped import largest_remainders

EVEN = 0.1
"""Share of the particles that is dealt to all modes alike: a mode of little mass needs more than one to be spread over."""

BLIND = 0.1
"""Share that is dealt by the masses before the observation, against an evidence that its moments do not tell."""

Carry = Callable[[Transition, Particles, int], Particles]
"""Carries a part of the particles to a mode."""


@dataclass(frozen=True)
class ModeProposal:
    r"""Carries particles through a model that jumps between modes, by a proposal for the moves of each.

    With particles :math:`x_i` of weights :math:`w_i` in modes :math:`m_i`, mode j has the predicted mass
    :math:`c_j = \sum_i w_i T_{m_i j}`, and the states on their way to it are all the particles with the weights
    :math:`w_i T_{m_i j} / c_j`. From these the proposal makes :math:`n_j` successors by the model of mode j. Their weights
    sum to :math:`c_j` exactly, whatever :math:`n_j`: the mode is summed over, and no label is drawn.

    The :math:`n_j` are quotas of :math:`c_j`; where the proposal looks at the observation, of :math:`c_j` times the density
    of the observation that the moments of mode j predict. A share is dealt to all modes alike, and every mode of any mass
    has one particle at least, so that no mode dies out. With fewer particles than modes the masses of those modes that have
    none go to the others.

    A filter of a model that jumps wraps its proposal into this one; it is written out for ``modes="random"``.

    Parameters
    ----------
    proposal : Proposal
        For the moves of each mode.
    modes : {"herded", "random"}
        With "random" labels are drawn: for every particle from its row of T where particles have successors of their own,
        for every successor where those come from the particles as a whole. What herded modes gain is measured against that.
    resampling : Resampling, optional
        Makes :math:`n_j` particles of those on their way to mode j, for proposals that do not do so; that of the filter
        unless given.

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, or `modes` unknown; from the filter, if a resampling scheme has a number of its own.

    Examples
    --------
    A target that goes straight or manoeuvres. A filter of such a model wraps its proposal by itself. The predicted
    probabilities of the modes are those of the Markov chain, 0.5 * 0.95 + 0.5 * 0.1 and the rest, exactly.

    >>> steady, lively = (hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0))
    >>> model = hf.models.JumpMarkov([steady, lively], [[0.95, 0.05], [0.1, 0.9]])
    >>> pf = hf.ParticleFilter(model, n_particles=50, proposal=hf.RankedProposal())
    >>> isinstance(pf.proposal, hf.ModeProposal)
    True
    >>> pf.predict()
    >>> np.round(pf.mode_probabilities, 9).tolist()
    [0.525, 0.475]

    Labels that are drawn have these probabilities in the mean only.

    >>> pf = hf.ParticleFilter(model, 51, proposal=hf.ModeProposal(hf.BootstrapProposal(), modes="random"), rng=0)
    >>> pf.predict()
    >>> np.allclose(pf.mode_probabilities, [0.525, 0.475]), np.allclose(pf.mode_probabilities, [0.525, 0.475], atol=0.3)
    (False, True)
    """

    proposal: Proposal
    modes: Literal["herded", "random"] = "herded"
    resampling: Resampling | None = None

    def __new__(cls, proposal: Any = None, *args: Any, **options: Any) -> ModeProposal:
        """Make one that looks at the observation where the proposal does."""
        return super().__new__(_Observing if isinstance(proposal, ObservingProposal) else cls)

    def __post_init__(self) -> None:
        check_part("proposal", self.proposal, Proposal, "a proposal such as RankedProposal()")
        one_of("modes", self.modes, ("herded", "random"))
        if self.resampling is not None:
            check_part("resampling", self.resampling, Resampling, "a scheme such as SystematicResampling()")

    @property
    def absorbs_weights(self) -> bool:
        """Whether all particles are on their way to every mode, and so even ones need not be made of them first."""
        return self.modes == "herded" or self.proposal.absorbs_weights

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        if not jumps(model):
            raise TypeError(
                f"model: ModeProposal needs models and transition_matrix; {kind(model)} has none: give it to "
                f"{type(self.proposal).__name__} alone"
            )
        for mode in range(len(model.models)):
            self.proposal.check(in_mode(model, mode))

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        masses = np.asarray(model.initial_modes)
        counts, masses = self._dealt(masses, masses, n, rng)
        parts = [
            _labelled(self.proposal.initial(in_mode(model, j), int(counts[j]), rng), j, masses[j])
            for j in np.flatnonzero(counts).tolist()
        ]
        return Particles.joined(parts)

    def propose(self, transition: Transition, particles: Particles, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""

        def carry(onward: Transition, part: Particles, mode: int) -> Particles:
            return self.proposal.propose(onward, part, rng)

        return self._carried(transition, particles, carry, rng)

    def _carried(
        self,
        transition: Transition,
        particles: Particles,
        carry: Carry,
        rng: np.random.Generator,
        seen: Observation | None = None,
    ) -> Particles:
        onward = [transition._replace(model=model) for model in transition.model.models]
        allotted = self.absorbs_weights
        parts = (
            self._allotted(transition, onward, particles, rng, seen) if allotted else self._drawn(transition, particles, rng)
        )
        return Particles.joined([_labelled(carry(onward[j], part, j), j, mass) for j, (part, mass) in parts.items()])

    def _drawn(
        self, transition: Transition, particles: Particles, rng: np.random.Generator
    ) -> dict[int, tuple[Particles, float]]:
        """Draw a mode for each particle, which keeps its weight."""
        steps = np.cumsum(transition.model.transition_matrix, axis=1)[_modes(particles)]
        labels = (rng.random(len(particles))[:, None] * steps[:, -1:] >= steps).sum(axis=1)
        parts = {}
        for j in np.unique(labels):
            part, log_mass = Particles(particles.x[labels == j], particles.log_weights[labels == j]).normalised()
            parts[int(j)] = (part, float(np.exp(log_mass)))
        return parts

    def _allotted(
        self,
        transition: Transition,
        onward: list[Transition],
        particles: Particles,
        rng: np.random.Generator,
        seen: Observation | None,
    ) -> dict[int, tuple[Particles, float]]:
        """Allot successors to the modes, each of which all particles lead to."""
        joint = particles.weights[:, None] * transition.model.transition_matrix[_modes(particles)]
        masses = joint.sum(axis=0)
        sources = {}
        for j in np.flatnonzero(masses).tolist():
            leading = joint[:, j] > 0
            sources[j] = Particles.weighted(particles.x[leading], joint[leading, j] / masses[j])
        shares = masses if seen is None else _foreseen(onward, sources, masses, seen)
        counts, masses = self._dealt(shares, masses, particles.n_next, rng)
        parts = {}
        for j, source in sources.items():
            if counts[j]:
                source.n_next = int(counts[j])
                parts[j] = (self._of_size(source, transition, rng), masses[j])
        return parts

    def _dealt(self, shares: Array, masses: Array, n: int, rng: np.random.Generator) -> tuple[Indices, Array]:
        """Numbers of particles (J,), and the total weight (J,) that those of each mode have."""
        some = masses > 0
        if self.modes == "random":
            shares = shares / shares.sum()
            counts = rng.multinomial(n, shares)
            return counts, counts / n * masses / np.where(some, shares, 1.0)
        shares = np.where(some, EVEN / some.sum() + (1 - EVEN) * shares / shares.sum(), 0.0)
        each = some & (n >= some.sum())
        counts = each + largest_remainders(shares / shares.sum(), n - int(each.sum()))
        kept = np.where(counts > 0, masses, 0.0)
        return counts, kept / kept.sum() * masses.sum()

    def _of_size(self, source: Particles, transition: Transition, rng: np.random.Generator) -> Particles:
        """Make as many particles as there will be successors, where the proposal does not."""
        if self.proposal.absorbs_weights:
            return source
        scheme = SystematicResampling() if self.resampling is None else self.resampling
        resampled = scheme.resample(source, rng, transition.circular)
        if len(resampled) != source.n_next:
            raise ValueError(
                "resampling: expected a scheme that makes as many particles as it is asked for, such as "
                f"SystematicResampling(), got {type(scheme).__name__}, which makes as many as there are"
            )
        return resampled


class _Observing(ModeProposal):
    """The same for a proposal that looks at the observation."""

    @property
    def takes_scans(self) -> bool:
        """See `ObservingProposal`."""
        return getattr(self.proposal, "takes_scans", False)

    def guide(self, transition: Transition, particles: Particles, seen: Observation, rng: np.random.Generator) -> Particles:
        """See `ObservingProposal`."""
        proposal: Any = self.proposal

        def carry(onward: Transition, part: Particles, mode: int) -> Particles:
            own = seen.in_mode(mode)
            moved = guided(proposal, onward, part, own, rng)
            seen.level = own.level  # for all modes the same
            return moved

        return self._carried(transition, particles, carry, rng, seen)


_Observing.__name__ = _Observing.__qualname__ = "ModeProposal"


def in_modes(proposal: Proposal, model: Model, resampling: Resampling) -> Proposal:
    """Return the proposal for a model: for one that jumps a `ModeProposal`, for any other none."""
    if not jumps(model):
        return proposal.proposal if isinstance(proposal, ModeProposal) else proposal
    if not isinstance(proposal, ModeProposal):
        return ModeProposal(proposal, resampling=resampling)
    return proposal if proposal.resampling else dataclasses.replace(proposal, resampling=resampling)


def _labelled(part: Particles, mode: int, mass: float) -> Particles:
    """Return particles of one mode, with the weights that they have times its mass."""
    modes = np.full(len(part), mode, dtype=np.int64)
    return Particles(part.x, part.log_weights + np.log(mass), modes)


def _modes(particles: Particles) -> NDArray[np.int64]:
    if particles.modes is None:
        raise ValueError(
            "resampling: expected a scheme that copies particles with their modes, such as SystematicResampling(), got one "
            "that leaves them without"
        )
    return particles.modes


def _foreseen(onward: list[Transition], sources: dict[int, Particles], masses: Array, seen: Observation) -> Array:
    """Masses of the modes (J,) after the observation, as far as the moments of each mode tell."""
    log_masses = np.full(len(masses), -np.inf)
    for j, source in sources.items():
        log_masses[j] = np.log(masses[j]) + _log_evidence(onward[j], source, seen.in_mode(j))
    peak = log_masses.max()
    if not np.isfinite(peak):
        return masses
    after = np.exp(log_masses - peak)
    return (1 - BLIND) * after / after.sum() + BLIND * masses


def _log_evidence(transition: Transition, particles: Particles, seen: Observation) -> float:
    """Log-density of an observation as the moments of weighted particles predict it; 0 where they predict none."""
    if transition.simulated_only or has_scans(seen.model) or not has(seen.model, OBSERVED):
        return 0.0
    mean, covariance = moments(particles.x, particles.weights, transition.circular)
    means, covariances, _ = predict_gaussians(transition, mean[None], covariance[None], UNSCENTED_RULE)
    values, spread, _ = observation_moments(seen.model, means, covariances, UNSCENTED_RULE, seen.step)
    return float(gaussian_log_density(seen.residuals(values), seen.part(spread), seen.step)[0])
