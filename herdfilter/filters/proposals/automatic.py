"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.filters.cloud import Cloud
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals._normality import beyond_chance
from herdfilter.filters.proposals._sources import Source
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.kalman_mixture import KalmanMixtureProposal
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.fitting import GaussianFit
from herdfilter.mixture import floored
from herdfilter.models.contract import OBSERVED, Model, has
from herdfilter.samplers import QuantileSampling
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class AutomaticProposal:
    r"""One Gaussian while nothing speaks against it, else the particles themselves, ranked or at exact quantiles.

    The rule has three sentences. Where the particles cannot be told from one Gaussian, their third and fourth cumulants
    being no more than twice what chance makes of as many, the step is made from that Gaussian. It stands if the step is as
    good as linear: if the chi-square distance that is left to correct, of the weights after Kalman's update, or of the
    successors from a linear function of their noise where there is no observation, is at most :math:`n^{-1/2}`, the size of a
    random error. Else every particle stands for itself: `KalmanMixtureProposal` with exact quantiles in one dimension,
    `RankedProposal` in more.

    Both bounds shrink as n grows, so that any misfit is seen once there are particles enough, and estimates converge. On a
    linear Gaussian model the first way is the Kalman filter, exactly. Every model of the contract is served: without a mean
    and a covariance of the observation points are placed by the transition alone, and where that can only be simulated,
    ancestors are ranked and their successors random; only there are random numbers used, and for an initial distribution
    that is not a `GaussianMixture`.

    Parameters
    ----------
    sampler : Sampler, optional
        In place of quantiles and balanced points: ``RandomSampling()`` gives the random counterpart of this proposal, which
        shows what the points themselves contribute.
    """

    sampler: Sampler | None = None
    absorbs_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        RankedProposal(self.sampler)

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        self._ranked.check(model)

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        return self._of_particles(model).initial(model, n, rng)

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        if not move.simulated_only and (source := one_gaussian(move, cloud)) is not None:
            noise = self._ranked.noise(len(cloud), source.dim, move.step, rng)
            moved = source.at(np.zeros(len(cloud), dtype=np.int64), noise)
            if nonlinear_share(unwrap_angles(moved, cloud.weights, move.circular), noise) <= _chance(cloud):
                return Cloud.equal(moved)
        return self._for(move).propose(move, cloud, rng)

    def guide(self, move: Move, cloud: Cloud, seen: Observation, rng: np.random.Generator) -> Cloud:
        """See `ObservingProposal`."""
        proposal = self._for(move)
        observed = has(move.model, OBSERVED)
        if observed and not move.simulated_only and (source := one_gaussian(move, cloud)) is not None:
            moved = self._ranked.looked_ahead(source, seen, len(cloud), rng)
            weighted, evidence = moved.normalised()
            if evidence > -np.inf and len(cloud) / weighted.ess - 1 <= _chance(cloud):
                return moved
        if not observed:
            moved = proposal.propose(move, cloud, rng)
            return moved.reweighted(seen.log_likelihood(moved.particles))
        return proposal.guide(move, cloud, seen, rng)

    def _for(self, move: Move) -> Any:
        """Return the proposal for particles that stand for themselves; a transition without a density needs ranks."""
        proposal = self._of_particles(move.model)
        if proposal is not self._ranked and floored(covariance := move.covariance) is not covariance:
            return self._ranked
        return proposal

    def _of_particles(self, model: Model) -> Any:
        if model.dim > 1 or hasattr(model, "transition") or not hasattr(model, "transition_mean"):
            return self._ranked
        return self._guided_line if has(model, OBSERVED) else self._line

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _line(self) -> HerdedProposal:
        return HerdedProposal(QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_line(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(QuantileSampling() if self.sampler is None else self.sampler)


def _chance(cloud: Cloud) -> float:
    return float(len(cloud) ** -0.5)


def one_gaussian(move: Move, cloud: Cloud) -> Source | None:
    """The Gaussian of the particles' mean and covariance, as a source of successors; None where they tell against it."""
    fitted = GaussianFit().fit(cloud.particles, cloud.weights, move.circular)
    mean, root = fitted.means[0], fitted.factors[0]
    x = unwrap_angles(cloud.particles, cloud.weights, move.circular)
    if beyond_chance(np.linalg.solve(root, (x - mean).T).T, cloud.weights):
        return None
    return Source.gaussian(move, mean, root)


def nonlinear_share(x: Array, noise: Array) -> float:
    """Share of the variance of states (n, d) that no linear function of their noise (n, D) explains, in the worst dimension."""
    x, noise = x - x.mean(axis=0), noise - noise.mean(axis=0)
    slopes = np.linalg.lstsq(noise, x, rcond=None)[0]
    variance = (x**2).sum(axis=0)
    rest = ((x - noise @ slopes) ** 2).sum(axis=0)
    return float((rest / np.where(variance > 0, variance, 1.0)).max())
