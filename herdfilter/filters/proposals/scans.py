"""Scans for proposals that look at the observation: each plausible detection guides a share of the particles.

The posterior after a scan is a sum over hypotheses: the state was missed, or detection j is of it.
Their terms are ``(1 - P_D) p(x)`` and ``P_D g(z_j | x) p(x) / kappa``, with p the prediction. Each gets a quota of the n
particles, which are guided by its detection and weighted by its term; together they are the posterior, whatever the quotas.
Detections whose quotas are too small share unguided particles with the hypothesis of a miss; the likelihood of these is the
sum of all their terms. So a wrong quota costs variance but adds no bias. Detections expected to have less than
`NEGLIGIBLE_SHARE` of the posterior are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from herdfilter import mixture
from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.base import Proposal
from herdfilter.filters.resampling.base import SystematicResampling
from herdfilter.filters.state import Particles, each_its_own
from herdfilter.models import resolved, with_clutter

BLIND_SHARE = 0.1
"""Share of the particles that stays unguided in addition to their share of the posterior, in case the detections were
misjudged (a defensive mixture, Hesterberg 1995)."""

MIN_QUOTA = 2  # fewest particles that a detection guides

MIN_PER_HYPOTHESIS = 20
"""Fewest particles for each of the ``1 / sum p^2`` hypotheses that count: with fewer, the parts would be so small that
guidance loses more than it gains, and no particle is guided."""

NEGLIGIBLE_SHARE = 1e-6  # share of the posterior below which a detection is left out


def parts_from_scan(
    proposal: Proposal,
    transition: resolved.Transition,
    particles: Particles,
    rng: np.random.Generator,
    observation: Any = None,
) -> list[Particles]:
    """Return a proposal's particles in parts: one for each hypothesis that guides some, if a scan is not used as a whole."""
    if observation is None or proposal.uses.whole_scan or not observation.is_scan:
        return [proposal.propose(transition, particles, rng, observation)]
    n = particles.n_next if proposal.uses.weights else len(particles)
    # A prediction without the observation tells the evidence of each hypothesis, and so the quotas.
    predicted = proposal.propose(transition, particles, rng)
    unguided, quotas = share_out(*hypothesis_evidence(observation, predicted), n)
    parts = []
    offsets = []
    for number in (1 + np.flatnonzero(quotas[1:])).tolist() + [0] * bool(quotas[0]):
        quota = quotas[number]
        hypothesis = Hypothesis(observation, number)
        guide = hypothesis.guide() or Observation(
            _UnguidedPart(observation.model, unguided), observation.z, observation.step, None
        )
        itself = each_its_own(len(particles))
        source = Particles(particles.x, particles.log_weights, particles.modes, int(quota), itself)
        # a proposal that does not use the weights keeps the number of particles, so that it is changed first
        if not proposal.uses.weights and quota != len(particles):
            source = SystematicResampling().resample(source, rng, transition.circular)
        parts.append(proposal.propose(transition, source, rng, guide).traced(source.ancestors))
        offset = np.full(len(parts[-1]), guide.log_offset or 0.0)
        # the factor P_D / kappa of the hypothesis, which the likelihood of the detection lacks
        offsets.append(offset + hypothesis.log_factors(parts[-1].x) if number else offset)
    # Each part has left out a constant of its own: they are put back, up to one that is common to all.
    if observation.log_offset is None:
        reached = [
            float(offset.max())
            for part, offset in zip(parts, offsets, strict=True)
            if (part.log_weights + offset).max() > -np.inf
        ]
        observation.log_offset = max(reached, default=None)
    common = observation.log_offset or 0.0
    return [part.reweighted(offset - common) for part, offset in zip(parts, offsets, strict=True)]


class Hypothesis(NamedTuple):
    """A hypothesis on an observation in one mode: of a scan, number 0 is a miss and j is detection j - 1."""

    observation: Observation | None
    number: int

    def guide(self) -> Observation | None:
        """Return the observation that guides particles under this hypothesis; None for a miss."""
        observation = self.observation
        if observation is None or not self.number:
            return None
        if not observation.measurement.scans:
            return Observation(observation.measurement, observation.z, observation.step, None)
        return Observation(
            observation.model.model, observation.z[self.number - 1], observation.step, None
        )

    def log_factors(self, x: Array) -> Array:
        """Return the log of what the guide's likelihood lacks, at states (n, d), (n,): 1 - P_D, or P_D / kappa."""
        observation = self.observation
        if observation is None or not observation.measurement.scans:
            return np.zeros(len(x))
        model = observation.model
        probabilities = model.detection_probabilities(x, observation.step)
        scan = observation.z
        missed, detected = model.log_factors(probabilities, scan, observation.step)
        if not self.number:
            return np.broadcast_to(missed, len(x))
        factors: Array = np.broadcast_to(detected, (len(scan), len(x)))[self.number - 1]
        return factors


class _UnguidedPart(resolved.Measurement):
    """The likelihood of a miss, or of one of the detections (indices `unguided`) that guide no particles."""

    def __init__(self, model: with_clutter.WithClutter, unguided: np.ndarray) -> None:
        super().__init__(model)
        self.unguided = unguided
        self.has_moments = False
        self.modes = (self,)  # one likelihood for all modes

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        missed, detected = self.model.log_factors(
            self.model.detection_probabilities(x, step), z, step
        )
        terms = np.full((1 + len(self.unguided), len(x)), missed)
        densities = self.model.detection_log_likelihoods(z[self.unguided], x, step)
        terms[1:] = np.broadcast_to(detected, (len(z), len(x)))[self.unguided] + densities
        return mixture.log_sum(terms)


def hypothesis_evidence(observation: Observation, predicted: Particles) -> tuple[float, Array]:
    """Return the log-evidence of each hypothesis, by predicted particles: of a miss, and of each detection (k,).

    The density of a detection is the mixture of the particles' N(h(x), R), each widened by Scott's rule for the mean
    detections, so that none falls between particles where R is small.
    """
    model = observation.model
    scan = observation.z
    step = observation.step
    # A constant P_D makes the factors numbers; else they are arrays over the particles, to be averaged.
    missed, detected = model.log_factors(
        model.detection_probabilities(predicted.x, step), scan, step
    )
    if isinstance(missed, np.ndarray):
        missed = float(mixture.log_sum(missed + predicted.log_weights))
    if not len(scan):
        return missed, np.empty(0)
    measurement = observation.measurement
    means, noises = measurement.moments(predicted.x, step)
    size = means.shape[1]
    centred = unwrap_angles(means, predicted.weights, measurement.circular(size))
    centred = centred - predicted.weights @ centred
    # Scott's rule, in the dimension of the observation
    width = predicted.ess ** (-1 / (size + 4))
    noises = noises + width**2 * (predicted.weights * centred.T) @ centred
    densities = with_clutter.detection_log_densities(model, scan, means, noises, step)
    if isinstance(detected, float):
        return missed, detected + mixture.log_sum((densities + predicted.log_weights).T)
    return missed, mixture.log_sum((detected + densities + predicted.log_weights).T)


def share_out(missed: float, detected: Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Share out n particles: return the detections that guide none, and the quotas (1 + k,), of the unguided part first.

    Quotas are largest remainders of the shares of the evidence, to the first of which `BLIND_SHARE` is added. They are
    rounded down, by a quarter at most, to a small number of sizes: points of N(0, I) are cached for each size.
    """
    # Relative to the largest, so that exp does not underflow.
    logs = np.concatenate([[missed], detected])
    peak = logs.max()
    quotas = np.zeros(len(logs), dtype=np.int64)
    quotas[0] = n
    # impossible by all hypotheses: no guidance, and the particles' likelihoods decide
    if peak == -np.inf:
        return np.arange(len(detected)), quotas
    shares = np.exp(logs - peak)
    shares /= shares.sum()
    if n * (shares @ shares) < min(MIN_PER_HYPOTHESIS, n):
        return np.flatnonzero(shares[1:] > NEGLIGIBLE_SHARE), quotas
    defended = (1 - BLIND_SHARE) * shares
    defended[0] += BLIND_SHARE
    quotas = mixture.largest_remainders(defended, n)
    guided = quotas[1:]  # a view
    size = 2 ** np.maximum(np.floor(np.log2(np.maximum(guided, 1))).astype(np.int64) - 2, 0)
    guided[:] = np.where(guided < MIN_QUOTA, 0, guided // size * size)
    unguided = np.flatnonzero((guided == 0) & (shares[1:] > NEGLIGIBLE_SHARE))
    if missed == -np.inf and not len(unguided):  # unguided particles would have no weight
        quotas[0] = 0
        quotas[quotas.argmax()] += n - quotas.sum()
    else:
        quotas[0] = n - guided.sum()
    return unguided, quotas
