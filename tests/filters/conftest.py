"""Every proposal, and the smallest models that serve them."""

import numpy as np
import pytest

from herdfilter.filters import (
    AugmentedProposal,
    BootstrapProposal,
    HerdedProposal,
    SequentialQuasiMonteCarlo,
)
from herdfilter.fitting import GaussianFit, KernelDensityFit
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

DETERMINISTIC = {
    "herded, kernel herding": lambda: HerdedProposal(KernelHerding()),
    "herded, herded Gibbs": lambda: HerdedProposal(ContinuousHerdedGibbs()),
    "augmented, mapped": lambda: AugmentedProposal(GaussianFit(), MappedSampling(KernelHerding())),
    "augmented, kernel herding": lambda: AugmentedProposal(KernelDensityFit(), KernelHerding()),
}
PROPOSALS = {
    "bootstrap": BootstrapProposal,
    "herded, random": lambda: HerdedProposal(RandomSampling()),
    "augmented, random": lambda: AugmentedProposal(GaussianFit(), RandomSampling()),
    "quasi-Monte Carlo": SequentialQuasiMonteCarlo,
    **DETERMINISTIC,
}


@pytest.fixture(params=PROPOSALS.values(), ids=PROPOSALS)
def proposal(request):
    """A fresh proposal of every kind."""
    return request.param()


@pytest.fixture(params=DETERMINISTIC.values(), ids=DETERMINISTIC)
def deterministic(request):
    """A fresh proposal of every kind that leaves no random number in the filter."""
    return request.param()


class Walk:
    """A random walk seen through Gaussian noise: a model without any base class."""

    dim = 1
    initial = GaussianMixture([1.0], [[0.5]], [[2.0]])

    def transition_mean(self, x, dt, control, step):
        return x + (0.0 if control is None else control[0] * dt)

    def transition_covariance(self, dt, step):
        return np.array([[0.5 * dt]])

    def log_likelihood(self, z, x, step):
        return -0.5 * (z[0] - x[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)


@pytest.fixture
def walk():
    return Walk()


@pytest.fixture
def walk_class():
    """To derive models from that lack or change something."""
    return Walk
