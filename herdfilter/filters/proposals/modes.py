"""A proposal for models that jump between modes: each mode gets a determined number of particles, not a random one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter._checks import Array, check_part, one_of
from herdfilter.filters import resampling as schemes
from herdfilter.filters.kalman.gaussian import log_evidence
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.rao_blackwellised import RaoBlackwellisedProposal
from herdfilter.filters.proposals.scans import parts_from_scan
from herdfilter.filters.state import Particles
from herdfilter.mixture import largest_remainders
from herdfilter.models import contract
from herdfilter.models.resolved import Transition

EVEN_SHARE = 0.1
"""Share of the particles that is divided equally among the modes: a light mode needs several to represent its spread."""

UNINFORMED_SHARE = 0.1
"""Share that is divided by the masses before the observation, in case its moments misjudge the evidence of a mode."""


@dataclass(frozen=True)
class ModeProposal:
    r"""Carries particles through a model that jumps between modes, each mode by the wrapped proposal.

    With particles :math:`x_i` of weights :math:`w_i` in modes :math:`m_i`, mode j has the predicted mass
    :math:`c_j = \sum_i w_i T_{m_i j}`, and its ancestors are all the particles with the weights
    :math:`w_i T_{m_i j} / c_j`. From these the proposal makes :math:`n_j` successors by the model of mode j. Their weights
    sum to :math:`c_j` exactly, whatever :math:`n_j`: the mode is summed over, and no label is drawn.

    The :math:`n_j` are quotas of :math:`c_j`; where the proposal looks at the observation, of :math:`c_j` times the density
    of the observation that the moments of mode j predict. A share is divided equally, and every mode of positive mass
    has at least one particle, so that no mode dies out. With fewer particles than modes the masses of those modes that have
    none go to the others.

    A filter of a model that jumps wraps its proposal into this one; write it out only for ``modes="random"``.

    Parameters
    ----------
    proposal : Proposal
        For the moves of each mode.
    modes : {"herded", "random"}
        With "random" labels are drawn: for every particle from its row of T if each has one successor, for every successor
        if they come from the particles as a whole. It is the baseline that herded modes are measured against.
    resampling : Resampling, optional
        Makes the :math:`n_j` ancestors of mode j, for proposals that keep the number of particles; by default that of the
        filter.

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, or `modes` unknown; from the filter, if a resampling scheme cannot change the number.

    Examples
    --------
    A target that goes straight or manoeuvres. A filter of such a model wraps its proposal by itself. The predicted
    probabilities of the modes are exactly those of the Markov chain, 0.5 * 0.95 + 0.5 * 0.1 and its complement.

    >>> steady, lively = (hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0))
    >>> model = hf.models.JumpMarkov([steady, lively], [[0.95, 0.05], [0.1, 0.9]])
    >>> pf = hf.ParticleFilter(model, n_particles=50, proposal=hf.RankedProposal())
    >>> isinstance(pf.proposal, hf.ModeProposal)
    True
    >>> pf.predict()
    >>> np.round(pf.mode_probabilities, 9).tolist()
    [0.525, 0.475]
    """

    proposal: base.Proposal
    modes: Literal["herded", "random"] = "herded"
    resampling: schemes.Resampling | None = None

    def __post_init__(self) -> None:
        check_part("proposal", self.proposal, base.Proposal, "a proposal such as RankedProposal()")
        one_of("modes", self.modes, ("herded", "random"))
        if self.resampling is not None:
            check_part(
                "resampling",
                self.resampling,
                schemes.Resampling,
                "a scheme such as SystematicResampling()",
            )

    @property
    def uses(self) -> base.Uses:
        """See `Proposal`: with herded modes every particle is an ancestor in every mode, so that weights are used."""
        within = self.proposal.uses
        return base.Uses(
            self.modes == "herded" or within.weights, within.observation, within.whole_scan
        )

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        if not contract.jumps(model):
            raise TypeError(
                f"model: ModeProposal needs models and transition_matrix; {contract.kind(model)} has none: give it to "
                f"{type(self.proposal).__name__} alone"
            )
        # `allot` would drop the Gaussians of its particles
        if isinstance(self.proposal, RaoBlackwellisedProposal):
            raise TypeError(
                "model: RaoBlackwellisedProposal needs a model without modes, got one that jumps"
            )
        for mode in range(len(model.models)):
            self.proposal.check(contract.in_mode(model, mode))

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        masses = np.asarray(model.initial_modes)
        counts, masses = self._deal(masses, masses, n, rng)
        parts = [
            label(
                self.proposal.initial(contract.in_mode(model, j), int(counts[j]), rng), j, masses[j]
            )
            for j in np.flatnonzero(counts).tolist()
        ]
        return Particles.join(parts)

    def propose(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        if particles.modes is None:
            raise ValueError(
                "resampling: expected a scheme that copies particles with their modes, such as SystematicResampling(), got "
                "one that drops the modes"
            )
        # the unguided part of a scan, which has one likelihood for all modes
        if observation is not None and len(observation.measurement.modes) == 1:
            predicted = self.propose(transition, particles, rng)
            return predicted.reweighted(observation.log_likelihood(predicted.x))
        return Particles.join(self.parts(transition, particles, rng, observation))

    def parts(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None,
    ) -> list[Particles]:
        """Return the successors in parts: of each mode, and of each detection of a scan that guides its particles."""
        onward = transition.modes
        if self.uses.weights:
            sources = self._allot(onward, transition, particles, rng, observation)
        else:
            sources = self._draw(transition, particles, rng)
        parts = []
        for mode, (source, mass) in sources.items():
            in_mode = None if observation is None else observation.in_mode(mode)
            for part in parts_from_scan(self.proposal, onward[mode], source, rng, in_mode):
                parts.append(label(part.traced(source.ancestors), mode, mass))
            # set by the first mode, then used by all
            if observation is not None and in_mode is not None:
                observation.log_offset = in_mode.log_offset
        return parts

    def _draw(
        self, transition: Transition, particles: Particles, rng: np.random.Generator
    ) -> dict[int, tuple[Particles, float]]:
        """Draw a mode for each particle, which keeps its weight."""
        # Inverse of the cumulative probabilities, whose last entry may differ from 1 by rounding.
        cumulative = np.cumsum(transition.model.transition_matrix, axis=1)[particles.modes]
        labels = (rng.random(len(particles))[:, None] * cumulative[:, -1:] >= cumulative).sum(
            axis=1
        )
        parts = {}
        for j in np.unique(labels):
            members = np.flatnonzero(labels == j)
            part, log_mass = Particles(
                particles.x[members], particles.log_weights[members], ancestors=members
            ).normalised()
            parts[int(j)] = (part, float(np.exp(log_mass)))
        return parts

    def _allot(
        self,
        onward: list[Transition],
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None,
    ) -> dict[int, tuple[Particles, float]]:
        """Return for each mode its ancestors, which know their number of successors, and its mass.

        Every particle from which the mode can be reached is an ancestor.
        """
        joint = particles.weights[:, None] * transition.model.transition_matrix[particles.modes]
        masses = joint.sum(axis=0)
        sources = {}
        for j in np.flatnonzero(masses).tolist():
            leading = np.flatnonzero(joint[:, j] > 0)
            # w_i T_ij / c_j: the probability that a particle in mode j has come from i
            sources[j] = Particles.weighted(particles.x[leading], joint[leading, j] / masses[j])
            sources[j].ancestors = leading
        shares = masses
        # the posterior masses, as far as the moments of each mode tell
        if observation is not None:
            log_masses = np.full(len(masses), -np.inf)
            for j, source in sources.items():
                log_masses[j] = np.log(masses[j]) + log_evidence(
                    onward[j], source, observation.in_mode(j)
                )
            # else no mode explains the observation, and c_j decides
            if np.isfinite(peak := log_masses.max()):
                after = np.exp(log_masses - peak)
                shares = (1 - UNINFORMED_SHARE) * after / after.sum() + UNINFORMED_SHARE * masses
        counts, masses = self._deal(shares, masses, particles.n_next, rng)
        scheme = schemes.SystematicResampling() if self.resampling is None else self.resampling
        parts = {}
        for j, source in sources.items():
            if not counts[j]:
                continue
            # a proposal that uses the weights makes this number of successors
            source.n_next = int(counts[j])
            # another proposal makes one successor of each ancestor, so that their number is changed first
            if not self.proposal.uses.weights:
                source = scheme.resample(source, rng, transition.circular).traced(source.ancestors)
                if len(source) != counts[j]:
                    raise ValueError(
                        "resampling: expected a scheme that can change the number of particles, such as "
                        f"SystematicResampling(), got {type(scheme).__name__}, which keeps it"
                    )
            parts[j] = (source, masses[j])
        return parts

    def _deal(
        self,
        shares: Array,
        masses: Array,
        n: int,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, Array]:
        """Return the number of particles (J,), and the total weight (J,), of each mode."""
        possible = masses > 0
        if self.modes == "random":
            shares = shares / shares.sum()
            counts = rng.multinomial(n, shares)
            # importance weights: c_j / share
            return counts, counts / n * masses / np.where(possible, shares, 1.0)
        shares = np.where(
            possible, EVEN_SHARE / possible.sum() + (1 - EVEN_SHARE) * shares / shares.sum(), 0.0
        )
        # one particle for each mode, if there are enough
        each = possible & (n >= possible.sum())
        counts = each + largest_remainders(shares / shares.sum(), n - int(each.sum()))
        represented = np.where(counts > 0, masses, 0.0)
        return counts, represented / represented.sum() * masses.sum()


def label(part: Particles, mode: int, mass: float) -> Particles:
    """Return particles labelled with a mode, their weights multiplied by its mass."""
    labelled = part.reweighted(np.log(mass))
    labelled.modes = np.full(len(part), mode, dtype=np.int64)
    return labelled
