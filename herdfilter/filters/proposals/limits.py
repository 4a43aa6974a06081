"""States with limits: points outside get no weight, and others of the same distribution take their places.

That a state is inside is an observation at every step, of likelihood 1 inside and 0 outside (Lang, Chen, Bakshi, Goel and
Ungarala 2007, "Bayesian estimation via sequential Monte Carlo sampling: constrained dynamic systems", Automatica 43; Shao,
Huang and Lee 2010, Journal of Process Control 20). The weight that stays is its probability. Where the share s of the points
is inside, about n / s are proposed, so that n stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from herdfilter.filters.kalman.jump_filters import select_histories
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.base import Proposal
from herdfilter.filters.proposals.scans import parts_from_scan
from herdfilter.filters.resampling.base import SystematicResampling
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.filters.state import Particles
from herdfilter.models.resolved import Motion, Transition

SIZES = 8
"""Numbers of points that may be proposed, for each factor of two: sets of noise are cached by their number of points."""

LEAST_FEASIBLE_SHARE = 1 / 16
"""At most n over this share are proposed."""

MOST_PROPOSALS = 3  # proposals of a step, until about n points are inside

CHANCE = 3.5
"""Deviations from n points inside, over its root, that lead to no other attempt: to repeat what chance has made would bias
the estimated probability of the limits."""


def _fill(motion: Motion, step: int, n: int, share: float, make: Callable[[int], Particles]) -> Any:
    """Return n points within the limits, not normalised: the sum of their weights is that of all points inside.

    ``make(count)`` returns points, about the `share` of which is inside. If fewer than n are, copies without weight follow.
    """
    size = _size(share)
    for _ in range(MOST_PROPOSALS):
        points = make(round(n * 2 ** (size / SIZES)))
        inside = np.flatnonzero(motion.inside(points.x, points.modes))
        share = len(inside) / len(points)
        aimed = _size(share)
        if aimed == size or abs(len(inside) - n) <= CHANCE * math.sqrt(n):
            break
        size = aimed
    if not share:
        raise DegenerateWeightsError(step, n, infeasible=True)
    if share == 1 and len(points) == n:
        points._normalised = None  # cached, without the share
    else:
        log_weights = points.log_weights[inside]
        if len(inside) > n:
            # the heaviest, and of the others as many as fit, at even steps of the order in which they come
            weighted, log_sum = points.take(inside).normalised()
            selected, weights = select_histories(weighted.weights, n)
            inside = inside[selected]
            log_weights = np.log(weights) + log_sum
        padded = np.full(n, -np.inf)
        padded[: len(inside)] = log_weights
        points = points.take(np.resize(inside, n), padded).traced(points.ancestors)
        points.n_next = n
    points.feasible_share = share
    return points


def _size(share: float) -> int:
    """Return the number of points to propose, where the share is inside: as an exponent, so that it is one of few."""
    return int(-SIZES * math.log2(max(share, LEAST_FEASIBLE_SHARE)))


def _settled(points: Particles, log_feasible: float) -> Particles:
    """Return a prediction whose weights sum to 1; it knows the probability of the limits, times those not counted yet."""
    if points.feasible_share != 1:
        points, log_sum = points.normalised()
        log_feasible += log_sum
    points.log_feasible = log_feasible
    return points


def draw_initial(proposal: Proposal, motion: Motion, n: int, rng: np.random.Generator) -> Particles:
    """Return n initial particles, within the limits of the state if there are some."""
    if not motion.limited:
        return proposal.initial(motion.model, n, rng)
    return _settled(
        _fill(motion, 0, n, 1.0, lambda count: proposal.initial(motion.model, count, rng)), 0.0
    )


def resample_within(
    scheme: Any, particles: Particles, rng: np.random.Generator, motion: Motion
) -> Particles:
    """Resample particles by a scheme; points that it moves outside the limits of the state lose their weight."""
    resampled: Any = scheme.resample(particles, rng, motion.circular)
    if motion.limited:
        inside = motion.inside(resampled.x, resampled.modes)
        if not inside.all():
            resampled = resampled.reweighted(np.where(inside, 0.0, -np.inf)).normalised()[0]
        # that they are inside is no news: the particles were
        resampled.log_feasible = particles.log_feasible
        resampled.feasible_share = (particles.feasible_share or 1.0) * inside.mean()
    return resampled  # type: ignore[no-any-return]


def propose_within(
    proposal: Proposal,
    transition: Transition,
    particles: Particles,
    rng: np.random.Generator,
    observation: Observation | None,
) -> Particles:
    """Make a step by a proposal; the particles are within the limits, and know the probability of that.

    If an observation leads all points outside, they are proposed without it.
    """
    n = particles.n_next
    share = particles.feasible_share or 1.0

    def propose(count: int) -> Particles:
        source = particles
        if count != n or share != 1:
            if proposal.uses.weights:  # all but the copies without
                source = particles.take(np.flatnonzero(particles.weights))
                source.n_next = count
                source.feasible_share = share
            else:
                source = SystematicResampling().resample(particles.replaced(n_next=count), rng)
        parts = parts_from_scan(proposal, transition, source, rng, observation)
        successors = parts[0] if len(parts) == 1 else Particles.join(parts)
        return successors if source is particles else successors.traced(source.ancestors)

    try:
        points = _fill(transition.motion, transition.step, n, share, propose)
    except DegenerateWeightsError:
        if observation is None:
            raise
        return observation.weigh(propose_within(proposal, transition, particles, rng, None))
    if observation is None:
        return _settled(points, particles.log_feasible)
    points.log_feasible = particles.log_feasible
    return points  # type: ignore[no-any-return]
