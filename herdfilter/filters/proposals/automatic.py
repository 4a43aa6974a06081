"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.filters.cloud import Cloud, normalised
from herdfilter.filters.move import Move
from herdfilter.filters.proposals.augmented import AugmentedProposal
from herdfilter.filters.proposals.base import Proposal, initial_points
from herdfilter.filters.proposals.guided_augmented import GuidedAugmentedProposal
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.kalman_mixture import KalmanMixtureProposal
from herdfilter.fitting import EMFit, GaussianFit
from herdfilter.mixture import floored
from herdfilter.models.contract import ADDITIVE, Model, require
from herdfilter.samplers import KernelHerding, MappedSampling

BIMODAL = 5 / 9  # Sarle's coefficient of a uniform distribution
EVEN = 0.25  # of the points: the least effective sample size after the update of one Gaussian


@dataclass(frozen=True)
class AutomaticProposal:
    """One Gaussian where it suffices, a mixture where it does not, decided at each step; what kind, by what the model has.

    ============================  ==========================================  ==========================================
    the model has                 with ``observation_mean``, ``_covariance``  without
    ============================  ==========================================  ==========================================
    additive noise, Q regular     `KalmanMixtureProposal`                     `HerdedProposal`
    other noise, or Q singular    `GuidedAugmentedProposal`, 3 Gaussians      `AugmentedProposal`, 3 Gaussians
    ============================  ==========================================  ==========================================

    With a mean and a covariance of the observation, `GuidedAugmentedProposal` with one Gaussian, which takes a fraction of
    the time and is exact on linear Gaussian models, comes first. Its points are dropped, and those of the mixture taken,
    where one Gaussian will not do for the particles (`bimodality` above 5/9, the value of a uniform distribution), or has
    led to weights with an effective sample size below a quarter of the points. A step that has to be repeated evaluates
    the model twice as often.

    No random number is used, unless the initial distribution is not a `GaussianMixture`.
    """

    absorbs_weights: ClassVar[bool] = True

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(model, "AutomaticProposal", ADDITIVE, ("transition", "noise_dim"))

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """See `Proposal`."""
        return initial_points(model, n, rng, self._mapped)

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> tuple[Array, Array]:
        """See `Proposal`."""
        return self._of_mixture(move).propose(move, cloud, rng)

    def guide(self, move: Move, cloud: Cloud, z: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """See `ObservingProposal`."""
        proposal = self._of_mixture(move)
        if not hasattr(proposal, "guide"):
            moved, log_weights = proposal.propose(move, cloud, rng)
            return moved, log_weights + move.log_likelihood(z, moved)
        if bimodality(cloud, move.circular) <= BIMODAL:
            moved, log_weights = self._of_gaussian.guide(move, cloud, z, rng)
            updated, total = normalised(log_weights)
            if total > -np.inf and Cloud(moved, updated).ess >= EVEN * len(cloud):
                return moved, log_weights
        return proposal.guide(move, cloud, z, rng)

    def _of_mixture(self, move: Move) -> Any:
        """Return the proposal for this model and step when one Gaussian does not suffice."""
        seen = hasattr(move.model, "observation_mean") and hasattr(move.model, "observation_covariance")
        additive = all(hasattr(move.model, name) for name in ADDITIVE)
        regular = additive and floored(noise := move.covariance) is noise
        return self._of_mixtures[regular, seen]

    @cached_property
    def _of_mixtures(self) -> dict[tuple[bool, bool], Proposal]:
        """By whether the transition has a density, and whether the observation has moments."""
        kh, several = KernelHerding(), (EMFit(3), self._mapped)
        return {
            (True, True): KalmanMixtureProposal(kh),
            (True, False): HerdedProposal(kh),
            (False, True): GuidedAugmentedProposal(*several),
            (False, False): AugmentedProposal(*several),
        }

    @cached_property
    def _mapped(self) -> MappedSampling:
        return MappedSampling(KernelHerding())

    @cached_property
    def _of_gaussian(self) -> GuidedAugmentedProposal:
        return GuidedAugmentedProposal(GaussianFit(), self._mapped)


def bimodality(cloud: Cloud, circular: tuple[int, ...] = ()) -> float:
    """Sarle's bimodality coefficient, ``(skewness^2 + 1) / kurtosis``, the largest along the principal axes.

    It is 1/3 for a Gaussian, 5/9 for a uniform distribution, and 1, the largest value possible, for two points. Dimensions
    are scaled to unit variance before the axes are taken, so that units do not matter.
    """
    x = unwrap_angles(cloud.particles, cloud.weights, circular)
    centred = x - cloud.weights @ x
    sd = np.sqrt(cloud.weights @ centred**2)
    centred = centred / np.where(sd > 0, sd, 1.0)
    axes = np.linalg.eigh((centred.T * cloud.weights) @ centred)[1]
    along = centred @ axes
    second, third, fourth = (cloud.weights @ along**k for k in (2, 3, 4))
    wide = second > 1e-12
    coefficients = (third[wide] ** 2 / second[wide] + second[wide] ** 2) / fourth[wide]
    return float(coefficients.max(initial=0.0))
