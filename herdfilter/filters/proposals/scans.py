"""Scans for proposals that look at the observation: each detection that may be of the state guides a share of the particles.

The posterior after a scan is a sum over hypotheses: that the state was missed, or that this or that detection is of it.
Their terms are ``(1 - P_D) p(x)`` and ``P_D g(z_j | x) p(x) / kappa``, with p the prediction. Each has its quota of the n
particles, which its own detection guides and its own term weights; together they are the posterior, whatever the quotas
are. A detection whose quota is too small for particles of its own joins the hypothesis of the missed state: particles that
no observation guides, with the terms of all these detections as the likelihood. So a wrong quota costs variance and brings
no bias. What is left out altogether are detections expected to have less than `NEGLIGIBLE` of the posterior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import ObservingProposal
from herdfilter.filters.resampling.copies import SystematicResampling
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.with_clutter import WithClutter, detection_log_densities, log_sum
from herdfilter.samplers.mapped import largest_remainders

UNGUIDED = 0.1
"""Share of the particles for what guides none, beyond its share of the posterior: if the detections were judged wrongly,
there are particles for them all the same (a defensive mixture, Hesterberg 1995)."""

LEAST = 2
"""Fewest particles that a detection guides."""

EACH = 20
"""Fewest particles for each of the hypotheses that count, ``1 / sum p^2`` of them: with fewer, parts would be so small that
guidance loses more than it gains, and no particle is guided."""

NEGLIGIBLE = 1e-6
"""Share of the posterior below which a detection is not looked at."""


def guided(
    proposal: ObservingProposal, transition: Transition, particles: Particles, seen: Observation, rng: np.random.Generator
) -> Particles:
    """Let a proposal guide particles by what was seen, a scan or not; see `ObservingProposal.guide`."""
    whole = getattr(proposal, "takes_scans", False) or not contract.has(seen.model, contract.OBSERVED)
    if whole or not isinstance(seen.model, WithClutter):
        return proposal.guide(transition, particles, seen, rng)
    n = particles.n_next if proposal.absorbs_weights else len(particles)
    ahead = proposal.propose(transition, particles, rng)
    rest, quotas = shared(*expected(seen.model, seen, ahead), n)
    parts: list[tuple[Particles, float]] = []
    for j in np.flatnonzero(quotas[1:]):
        part = _part(proposal, transition, particles, int(quotas[1 + j]), rng)
        one = Observation(seen.model.model, seen.z[j], seen.step, None)
        part = proposal.guide(transition, part, one, rng)
        _, detected = seen.model.log_factors(len(seen.z), seen.step)
        parts.append((part, detected + (one.level or 0.0)))
    if quotas[0]:
        part = _part(proposal, transition, particles, int(quotas[0]), rng)
        left = Observation(_Left(seen.model, rest), seen.z, seen.step, None)
        part = getattr(proposal, "unguided", proposal.propose)(transition, part, rng)
        part = part.reweighted(left.log_likelihood(part.x))
        parts.append((part, left.level or 0.0))
    return _together(parts, seen)


class _Left(NamedTuple):
    """The likelihood of a scan from which detections are taken out; a model's part."""

    model: WithClutter
    rest: np.ndarray

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        missed, detected = self.model.log_factors(len(z), step)
        terms = np.full((1 + len(self.rest), len(x)), missed)
        terms[1:] = detected + self.model.detection_log_likelihoods(z[self.rest], x, step)
        return log_sum(terms)


def expected(model: WithClutter, seen: Observation, ahead: Particles) -> tuple[float, Array]:
    """Logarithms of the evidence of each hypothesis, by particles `ahead` without the observation: missed, and (k,).

    The density of a detection is that of the particles' own, N(h(x), R), each widened by Scott's rule for the mean
    detections of all, so that none falls between particles where R is small.
    """
    scan, step = seen.z, seen.step
    missed, detected = model.log_factors(len(scan), step)
    if not len(scan):
        return missed, np.empty(0)
    means = contract.observation_mean(model, ahead.x, step)
    size = means.shape[1]
    noises = contract.observation_covariances(model, ahead.x, size, step)
    about = unwrap_angles(means, ahead.weights, contract.observation_circular(model, size))
    about = about - ahead.weights @ about
    width = ahead.ess ** (-1 / (size + 4))
    noises = noises + width**2 * (ahead.weights * about.T) @ about
    densities = detection_log_densities(model, scan, means, noises, step)
    return missed, detected + log_sum((densities + ahead.log_weights).T)


def shared(missed: float, detected: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Share out n particles: quotas (1 + k,), and which detections join the first hypothesis, that of the missed state.

    Quotas are largest remainders of the shares of the evidence, of which the first gets `UNGUIDED` more.
    """
    logs = np.concatenate([[missed], detected])
    peak = logs.max()
    if peak == -np.inf:  # out of reach of all: whatever there is, is found without guidance
        return np.arange(len(detected)), np.eye(1, len(logs), dtype=np.int64)[0] * n
    shares = np.exp(logs - peak)
    shares /= shares.sum()
    if n * (shares @ shares) < min(EACH, n):
        return np.flatnonzero(shares[1:] > NEGLIGIBLE), np.eye(1, len(logs), dtype=np.int64)[0] * n
    defended = (1 - UNGUIDED) * shares
    defended[0] += UNGUIDED
    quotas = largest_remainders(defended, n)
    quotas[1:] = _rounded(quotas[1:])
    rest = np.flatnonzero((quotas[1:] == 0) & (shares[1:] > NEGLIGIBLE))
    if missed == -np.inf and not len(rest):
        quotas[0] = 0
        quotas[quotas.argmax()] += n - quotas.sum()
    else:
        quotas[0] = n - quotas[1:].sum()
    return rest, quotas


def _rounded(quotas: np.ndarray) -> np.ndarray:
    """Quotas rounded down to few sizes, by a quarter at most: points of N(0, I) are kept for each size."""
    step = 2 ** np.maximum(np.floor(np.log2(np.maximum(quotas, 1))).astype(np.int64) - 2, 0)
    return np.where(quotas < LEAST, 0, quotas // step * step)


def _part(
    proposal: ObservingProposal, transition: Transition, particles: Particles, quota: int, rng: np.random.Generator
) -> Particles:
    """Return what stands for all particles where a hypothesis has this quota of successors."""
    part = Particles(particles.x, particles.log_weights, particles.modes, quota)
    if proposal.absorbs_weights or quota == len(particles):
        return part
    return SystematicResampling().resample(part, rng, transition.circular)


def _together(parts: list[tuple[Particles, float]], seen: Observation) -> Particles:
    """Join parts, whose weights lack a factor each, of which only a common one is left out: `Observation.level`."""
    if seen.level is None:
        reached = [level for part, level in parts if part.log_weights.max() > -np.inf]
        seen.level = max(reached, default=None)
    common = seen.level or 0.0
    return Particles.joined([part.reweighted(np.full(len(part), level - common)) for part, level in parts])
