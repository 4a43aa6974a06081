"""Every sampler, and mixtures to draw from."""

import numpy as np
import pytest

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

HERDING = {
    "kernel herding": KernelHerding(),
    "herded Gibbs": ContinuousHerdedGibbs(),
    "herded Gibbs as published": ContinuousHerdedGibbs(target="paper"),
}
DETERMINISTIC = HERDING | {
    "mapped kernel herding": MappedSampling(KernelHerding()),
    "mapped herded Gibbs": MappedSampling(ContinuousHerdedGibbs()),
}
SAMPLERS = DETERMINISTIC | {"random": RandomSampling()}


@pytest.fixture(params=SAMPLERS.values(), ids=SAMPLERS)
def sampler(request):
    return request.param


@pytest.fixture(params=DETERMINISTIC.values(), ids=DETERMINISTIC)
def deterministic(request):
    return request.param


@pytest.fixture(params=[KernelHerding(), ContinuousHerdedGibbs()], ids=["kernel herding", "herded Gibbs"])
def herding(request):
    """The two samplers that are meant to beat random draws on any mixture, with their default options."""
    return request.param


@pytest.fixture
def random_mixture():
    """A function: overlapping components of random shape, of total variance about 10 a dimension."""

    def build(seed, d, components=5):
        rng = np.random.default_rng(seed)
        roots = rng.standard_normal((components, d, d))
        covariances = roots @ roots.transpose(0, 2, 1) / d + 0.2 * np.eye(d)
        return GaussianMixture(
            rng.dirichlet(2 * np.ones(components)), 3 * rng.standard_normal((components, d)), covariances
        )

    return build
