"""Every sampler with what it promises, and mixtures to draw from."""

import pytest

from herdfilter import testing
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

DETERMINISTIC = {
    "kernel herding": KernelHerding(),
    "herded Gibbs": ContinuousHerdedGibbs(),
    "herded Gibbs as published": ContinuousHerdedGibbs(target="paper"),
    "mapped kernel herding": MappedSampling(KernelHerding()),
    "mapped herded Gibbs": MappedSampling(ContinuousHerdedGibbs()),
}
RANDOM = {
    "random": RandomSampling(),
}
SAMPLERS = DETERMINISTIC | RANDOM

# Keywords of `herdfilter.testing.check_sampler`, where they differ from its defaults.
PROMISES = {name: {"deterministic": False} for name in RANDOM} | {
    "herded Gibbs": {"affine": "any"},
    # It drifts off and cannot leave a mode: see test_herded_gibbs.
    "herded Gibbs as published": {"moments": False, "far_components": False},
}


@pytest.fixture(params=SAMPLERS)
def named(request):
    """Name of a sampler, the sampler, and what it promises."""
    return request.param, SAMPLERS[request.param], PROMISES.get(request.param, {})


@pytest.fixture(params=SAMPLERS.values(), ids=SAMPLERS)
def sampler(request):
    return request.param


@pytest.fixture(params=DETERMINISTIC.values(), ids=DETERMINISTIC)
def deterministic(request):
    return request.param


@pytest.fixture(params=RANDOM.values(), ids=RANDOM)
def random(request):
    return request.param


@pytest.fixture(params=[KernelHerding(), ContinuousHerdedGibbs()], ids=["kernel herding", "herded Gibbs"])
def herding(request):
    """The two samplers that are meant to beat random draws on any mixture, with their default options."""
    return request.param


@pytest.fixture
def random_mixture():
    """A function of seed, d and components=5: overlapping components, of total variance about 10 a dimension."""
    return testing.random_mixture
