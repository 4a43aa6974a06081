"""Scans for proposals that look at the observation: each detection that may be of the state guides a share of the particles.

The posterior after a scan is a sum over hypotheses: that the state was missed, or that this or that detection is of it.
Their terms are ``(1 - P_D) p(x)`` and ``P_D g(z_j | x) p(x) / kappa``, with p the prediction. Each has its quota of the n
particles, which its own detection guides and its own term weights; together they are the posterior, whatever the quotas
are. A detection whose quota is too small for particles of its own joins the hypothesis of the missed state: particles that
no observation guides, with the terms of all these detections as the likelihood. So a wrong quota costs variance and brings
no bias. Detections expected to have less than `NEGLIGIBLE_SHARE` of the posterior are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.base import Proposal, Uses
from herdfilter.filters.resampling.base import SystematicResampling
from herdfilter.filters.state import Particles
from herdfilter.mixture import largest_remainders
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.with_clutter import WithClutter, detection_log_densities, log_sum

BLIND_SHARE = 0.1
"""Share of the particles without guidance, beyond their share of the posterior: if the detections were judged wrongly, there
are particles for them all the same (a defensive mixture, Hesterberg 1995)."""

MIN_QUOTA = 2  # fewest particles that a detection guides

MIN_PER_HYPOTHESIS = 20
"""Fewest particles for each of the hypotheses that count, ``1 / sum p^2`` of them: with fewer, parts would be so small that
guidance loses more than it gains, and no particle is guided."""

NEGLIGIBLE_SHARE = 1e-6  # share of the posterior below which a detection is left out


@dataclass(frozen=True)
class ScanProposal:
    """Gives a proposal one detection after the other of a scan, each with a share of the particles; see the module."""

    proposal: Proposal

    @property
    def uses(self) -> Uses:
        """See `Proposal`."""
        return self.proposal.uses._replace(whole_scan=True)

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        self.proposal.check(model)

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        return self.proposal.initial(model, n, rng)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Any = None
    ) -> Particles:
        """See `Proposal`."""
        return Particles.join(parts_from_scan(self.proposal, transition, particles, rng, observation))


def one_by_one(proposal: Proposal, observation: Observation | None) -> Proposal:
    """Return the proposal as it takes an observation: of a scan detection by detection, unless it uses the whole scan."""
    if observation is None or proposal.uses.whole_scan or not observation.is_scan:
        return proposal
    return ScanProposal(proposal)


def parts_from_scan(
    proposal: Proposal, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Any = None
) -> list[Particles]:
    """Return the particles that a proposal makes in parts, one for each hypothesis of a scan that guides particles."""
    if observation is None or not observation.is_scan:
        return [proposal.propose(transition, particles, rng, observation)]
    model = observation.model
    n = particles.n_next if proposal.uses.weights else len(particles)
    predicted = proposal.propose(transition, particles, rng)
    rest, quotas = share_out(*hypothesis_evidence(observation, predicted), n)
    step = observation.step
    detection = Measurement(model.model)
    guides = [(detection, observation.z[j], quotas[1 + j]) for j in np.flatnonzero(quotas[1:])]
    if quotas[0]:
        guides.append((_Rest(model, rest), observation.z, quotas[0]))
    parts, offsets = [], []
    for reader, z, quota in guides:
        guide = Observation(reader, z, step, None)
        source = Particles(particles.x, particles.log_weights, particles.modes, int(quota))
        if not proposal.uses.weights and quota != len(particles):
            source = SystematicResampling().resample(source, rng, transition.circular)
            parts.append(proposal.propose(transition, source, rng, guide).traced(source.ancestors))
        else:
            parts.append(proposal.propose(transition, source, rng, guide))
        offset = np.full((1, len(parts[-1])), guide.log_offset or 0.0)
        if reader is detection:  # its likelihood lacks P_D and the density of clutter
            p = model.detection_probabilities(parts[-1].x, step)
            offset = model.log_factors(p, z[None], step)[1] + offset
        offsets.append(offset[0])
    if observation.log_offset is None:
        pairs = zip(parts, offsets, strict=True)
        reached = [float(offset.max()) for part, offset in pairs if (part.log_weights + offset).max() > -np.inf]
        observation.log_offset = max(reached, default=None)
    common = observation.log_offset or 0.0
    return [part.reweighted(offset - common) for part, offset in zip(parts, offsets, strict=True)]


class _Rest(Measurement):
    """The likelihood of a miss, or of one of the detections that guide no particles."""

    def __init__(self, model: WithClutter, rest: np.ndarray) -> None:
        super().__init__(model)
        self.rest = rest
        self.has_moments = False
        self.modes = (self,)  # all modes read it alike

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        missed, detected = self.model.log_factors(self.model.detection_probabilities(x, step), z, step)
        terms = np.full((1 + len(self.rest), len(x)), missed)
        densities = self.model.detection_log_likelihoods(z[self.rest], x, step)
        terms[1:] = np.broadcast_to(detected, (len(z), len(x)))[self.rest] + densities
        return log_sum(terms)


def hypothesis_evidence(observation: Observation, predicted: Particles) -> tuple[float, Array]:
    """Return the log-evidence of each hypothesis, by particles without the observation: missed, and each detection (k,).

    The density of a detection is that of the particles' own, N(h(x), R), each widened by Scott's rule for the mean
    detections of all, so that none falls between particles where R is small.
    """
    model, scan, step = observation.model, observation.z, observation.step
    missed, detected = model.log_factors(model.detection_probabilities(predicted.x, step), scan, step)
    if isinstance(missed, np.ndarray):
        missed = float(log_sum(missed + predicted.log_weights))
    if not len(scan):
        return missed, np.empty(0)
    measurement = observation.measurement
    means = measurement.mean(predicted.x, step)
    size = means.shape[1]
    noises = measurement.noises(predicted.x, size, step)
    about = unwrap_angles(means, predicted.weights, measurement.circular(size))
    about = about - predicted.weights @ about
    width = predicted.ess ** (-1 / (size + 4))
    noises = noises + width**2 * (predicted.weights * about.T) @ about
    densities = detection_log_densities(model, scan, means, noises, step)
    if isinstance(detected, float):
        return missed, detected + log_sum((densities + predicted.log_weights).T)
    return missed, log_sum((detected + densities + predicted.log_weights).T)


def share_out(missed: float, detected: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Share out n particles: quotas (1 + k,), and which detections join the first hypothesis, that of the missed state.

    Quotas are largest remainders of the shares of the evidence, to the first of which `BLIND_SHARE` is added. They are
    rounded down to few sizes, by a quarter at most: points of N(0, I) are kept for each size.
    """
    logs = np.concatenate([[missed], detected])
    peak = logs.max()
    if peak == -np.inf:  # out of reach of all: whatever there is, is found without guidance
        return np.arange(len(detected)), np.eye(1, len(logs), dtype=np.int64)[0] * n
    shares = np.exp(logs - peak)
    shares /= shares.sum()
    if n * (shares @ shares) < min(MIN_PER_HYPOTHESIS, n):
        return np.flatnonzero(shares[1:] > NEGLIGIBLE_SHARE), np.eye(1, len(logs), dtype=np.int64)[0] * n
    defended = (1 - BLIND_SHARE) * shares
    defended[0] += BLIND_SHARE
    quotas = largest_remainders(defended, n)
    own = quotas[1:]
    size = 2 ** np.maximum(np.floor(np.log2(np.maximum(own, 1))).astype(np.int64) - 2, 0)
    own[:] = np.where(own < MIN_QUOTA, 0, own // size * size)
    rest = np.flatnonzero((own == 0) & (shares[1:] > NEGLIGIBLE_SHARE))
    if missed == -np.inf and not len(rest):
        quotas[0] = 0
        quotas[quotas.argmax()] += n - quotas.sum()
    else:
        quotas[0] = n - own.sum()
    return rest, quotas
