"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

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

UNGUIDED = 0.3
"""Share of the predictive mixture in what quantiles are taken of after Kalman's updates, against weights without bound."""


@dataclass(frozen=True)
class AutomaticProposal:
    r"""One Gaussian while nothing speaks against it, else the particles themselves, ranked or at exact quantiles.

    The rule has three sentences. Where the particles cannot be told from one Gaussian, their third and fourth cumulants
    being no more than twice what chance makes of as many, the step is made from that Gaussian. It stands if the step is as
    good as linear: if the chi-square distance that is left to correct, of the weights after Kalman's update, or of the
    successors from a linear function of their noise where there is no observation, is at most 1/n, so that no mean is off by
    more than by chance of n random draws. Else every particle stands for itself: at exact quantiles of the predictive mixture
    in one dimension, and of what Kalman filters make of it where the likelihood would leave an effective sample size below
    :math:`\sqrt n`; as ranked particles in more.

    All bounds follow n, so that any misfit is seen once there are particles enough. On a
    linear Gaussian model the first way is the Kalman filter, exactly. Every model of the contract is served: without a mean
    and a covariance of the observation points are placed by the transition alone, and where that can only be simulated,
    ancestors are ranked and their successors random; only there are random numbers used, and for an initial distribution
    that is not a `GaussianMixture`.

    Parameters
    ----------
    sampler : Sampler, optional
        In place of quantiles and balanced points: ``RandomSampling()`` gives the random counterpart of this proposal, which
        shows what the points themselves contribute.

    See Also
    --------
    RankedProposal, HerdedProposal, KalmanMixtureProposal, QuantileSampling
    """

    sampler: Sampler | None = None
    absorbs_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        RankedProposal(self.sampler)  # names a sampler that is none

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        self._ranked.check(model)

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        return (self._line if model.dim == 1 else self._ranked).initial(model, n, rng)

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        if (source := self._gaussian(move, cloud)) is not None:
            noise = self._ranked.noise(len(cloud), source.dim, move.step, rng)
            moved = source.at(np.zeros(len(cloud), dtype=np.int64), noise)
            straight = unwrap_angles(moved, cloud.weights, move.circular)
            if len(cloud) * nonlinear_share(straight, noise) <= 1:
                return Cloud.equal(moved)
        return (self._line if self._on_line(move) else self._ranked).propose(move, cloud, rng)

    def guide(self, move: Move, cloud: Cloud, seen: Observation, rng: np.random.Generator) -> Cloud:
        """See `ObservingProposal`."""
        n, observed = len(cloud), has(move.model, OBSERVED)
        if observed and (source := self._gaussian(move, cloud)) is not None:
            moved = self._ranked.looked_ahead(source, seen, n, rng)
            weighted, evidence = moved.normalised()
            if evidence > -np.inf and n * (n / weighted.ess - 1) <= 1:
                return moved
        if not self._on_line(move):
            return self._ranked.guide(move, cloud, seen, rng)
        moved = self._line.propose(move, cloud, rng)
        moved = moved.reweighted(seen.log_likelihood(moved.particles))
        if observed:
            weighted, evidence = moved.normalised()
            if evidence == -np.inf or weighted.ess < np.sqrt(n):
                return self._guided_line.guide(move, cloud, seen, rng)
        return moved

    def _gaussian(self, move: Move, cloud: Cloud) -> Source | None:
        """Return the particles' Gaussian; None where they tell against it, or their transition can only be simulated."""
        return None if move.simulated_only else one_gaussian(move, cloud)

    def _on_line(self, move: Move) -> bool:
        """Whether the predictive density is a mixture on a line."""
        return (
            move.model.dim == 1 and move.additive and floored(covariance := move.covariance) is covariance
        )

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _line(self) -> HerdedProposal:
        return HerdedProposal(QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_line(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(
            QuantileSampling() if self.sampler is None else self.sampler, unguided_share=UNGUIDED
        )


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
