"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from herdfilter.angles import unwrap_angles
from herdfilter.filters.cloud import Cloud
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.augmented import AugmentedProposal
from herdfilter.filters.proposals.base import initial_points
from herdfilter.filters.proposals.guided_augmented import GuidedAugmentedProposal
from herdfilter.filters.proposals.kalman_mixture import KalmanMixtureProposal
from herdfilter.fitting import EMFit, GaussianFit
from herdfilter.mixture import floored
from herdfilter.models.contract import ADDITIVE, OBSERVED, Model, has, require
from herdfilter.samplers import KernelHerding, MappedSampling

BIMODAL = 5 / 9  # Sarle's coefficient of a uniform distribution
CHANCE = 0.5  # of a dimension, over the effective sample size: how much higher few points make the coefficient by chance
EVEN = 0.25  # of the points: the effective sample size after the update below which one Gaussian is doubted
MARGIN = 1.0  # by which the logarithm of its evidence must then exceed the mixture's, for it to stand
FLOOR = 2.0  # of the root of n: the effective sample size that weights are tempered to


@dataclass(frozen=True)
class AutomaticProposal:
    """One Gaussian where it suffices, a mixture where it does not, decided at each step; what kind, by what the model has.

    With a mean and a covariance of the observation, `GuidedAugmentedProposal` with one Gaussian comes first: it takes a
    fraction of the time and is exact on linear Gaussian models. Where it will not do, a mixture takes its place:
    `KalmanMixtureProposal` where the noise is additive with a regular covariance, else `GuidedAugmentedProposal` with three
    Gaussians. That is decided twice. Before, by the particles: if their `bimodality` is above 5/9, the value of a uniform
    distribution, and above what chance makes of few points, the mixture is taken at once. Afterwards, by the weights: if
    they leave an effective sample size below a quarter of the points, the mixture is tried too, and taken unless the one
    Gaussian has found more evidence, by a factor of e. Such a step evaluates the model twice as often.

    Weights that leave an effective sample size below ``2 sqrt(n)`` are tempered until it is that: raised to a power below
    1, their sum kept (as in Koblents and Miguez 2015, "A population Monte Carlo scheme with transformed weights"). Where
    few points lie in many dimensions the Kalman filters' posterior is worth more than weights that make one point of it.
    With more points the bound loses its force, so that estimates tend to where they would without it.

    Where an observation is missing, the particles decide alone. Without a mean and a covariance of the observation:
    `AugmentedProposal` with as many Gaussians as lower BIC.

    No random number is used, unless the initial distribution is not a `GaussianMixture`.
    """

    absorbs_weights: ClassVar[bool] = True

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(model, "AutomaticProposal", ADDITIVE, ("transition", "noise_dim"))
        if has(model, OBSERVED):
            require(model, "AutomaticProposal", OBSERVED)

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        return initial_points(model, n, rng, self._mapped)

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        one = self._is_seen(move) and self._looks_single(move, cloud)
        return (self._of_gaussian if one else self._of_mixture(move)).propose(move, cloud, rng)

    def guide(self, move: Move, cloud: Cloud, seen: Observation, rng: np.random.Generator) -> Cloud:
        """See `ObservingProposal`."""
        if not self._is_seen(move):
            moved = self._blind.propose(move, cloud, rng)
            return moved.reweighted(seen.log_likelihood(moved.particles))
        enough = FLOOR * np.sqrt(len(cloud))
        single = None
        if self._looks_single(move, cloud):
            single = self._of_gaussian.guide(move, cloud, seen, rng)
            updated, evidence = single.normalised()
            if evidence > -np.inf and updated.ess >= EVEN * len(cloud):
                return single.tempered(enough)
        moved = self._of_mixture(move).guide(move, cloud, seen, rng)
        if single is not None and moved.normalised()[1] + MARGIN <= evidence:
            moved = single
        return moved.tempered(enough)

    def _is_seen(self, move: Move) -> bool:
        return has(move.model, OBSERVED)

    def _looks_single(self, move: Move, cloud: Cloud) -> bool:
        return bimodality(cloud, move.circular) <= BIMODAL + CHANCE * move.model.dim / cloud.ess

    def _of_mixture(self, move: Move) -> Any:
        """Return the proposal for this model and step when one Gaussian does not suffice."""
        if not self._is_seen(move):
            return self._blind
        regular = has(move.model, ADDITIVE) and floored(noise := move.covariance) is noise
        return self._regular if regular else self._singular

    @cached_property
    def _of_gaussian(self) -> GuidedAugmentedProposal:
        return GuidedAugmentedProposal(GaussianFit(), self._mapped)

    @cached_property
    def _regular(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(KernelHerding())

    @cached_property
    def _singular(self) -> GuidedAugmentedProposal:
        return GuidedAugmentedProposal(EMFit(3), self._mapped)

    @cached_property
    def _blind(self) -> AugmentedProposal:
        return AugmentedProposal(EMFit("bic"), self._mapped)

    @cached_property
    def _mapped(self) -> MappedSampling:
        return MappedSampling(KernelHerding())


def bimodality(cloud: Cloud, circular: tuple[int, ...] = ()) -> float:
    """Sarle's bimodality coefficient, ``(skewness^2 + 1) / kurtosis``, the largest along the principal axes.

    It is 1/3 for a Gaussian, 5/9 for a uniform distribution, and 1, the largest value possible, for two points. Dimensions
    are scaled to unit variance before the axes are taken, so that units do not matter.
    """
    weights = cloud.weights
    x = unwrap_angles(cloud.particles, weights, circular)
    centred = x - x[0]  # exactly zero where all particles agree, however sums are rounded
    centred = centred - weights @ centred
    variance = weights @ centred**2
    centred = centred / np.sqrt(np.where(variance > 0, variance, 1.0))
    along = centred @ np.linalg.eigh((centred.T * weights) @ centred)[1]
    share = (
        weights[:, None] * along**2
    )  # first: of a far particle of hardly any weight the fourth power overflows
    second, third, fourth = share.sum(axis=0), (share * along).sum(axis=0), (share * along**2).sum(axis=0)
    spread = second > 1e-12
    second, third, fourth = second[spread], third[spread], fourth[spread]
    return float(((third**2 / second + second**2) / fourth).max(initial=0.0))
