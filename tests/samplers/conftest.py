"""Every sampler with what it promises, and mixtures to draw from."""

import pytest
from helpers import fixture_of

from herdfilter import testing
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    JointHerdedGibbs,
    JointHerding,
    KernelHerding,
    LCDSampling,
    MappedSampling,
    Polished,
    QuantileSampling,
    RandomSampling,
    SigmaPoints,
    SobolSampling,
)

DETERMINISTIC = {
    "kernel herding": KernelHerding(),
    "herded Gibbs": ContinuousHerdedGibbs(),
    "herded Gibbs as published": ContinuousHerdedGibbs(target="paper"),
    "joint herding": JointHerding(),
    "joint herded Gibbs": JointHerdedGibbs(smoothing=50),
    "mapped kernel herding": MappedSampling(KernelHerding()),
    "mapped Sobol": MappedSampling(SobolSampling()),
    "Sobol": SobolSampling(),
    "localized cumulative distributions": LCDSampling(iterations=5),
    "polished": Polished(KernelHerding(), iterations=8),
    "quantiles": QuantileSampling(),
}
OF_CERTAIN_SIZES = {
    "unscented": SigmaPoints(),
    "unscented, negative weight": SigmaPoints(kappa=-0.5),
    "cubature": SigmaPoints("cubature"),
}
RANDOM = {"random": RandomSampling(), "scrambled Sobol": SobolSampling(scramble=True)}
SAMPLERS = DETERMINISTIC | OF_CERTAIN_SIZES | RANDOM

# Keywords of `check_everything`, where they differ from its defaults; that random samplers are not
# deterministic goes without saying.
PROMISES = {
    "herded Gibbs": {"affine": "any"},
    # It drifts off and cannot leave a mode: see test_continuous_herded_gibbs.
    "herded Gibbs as published": {"moments": False, "far_components": False},
    # Slow, by a descent for every number of points in a component.
    "localized cumulative distributions": {"largest": 12, "dims": (2,)},
    # Flat minima: rounding moves the points, not their quality.
    "polished": {"affine": None, "largest": 40, "dims": (1, 2)},
    "quantiles": {"affine": "any", "dims": (1,)},
    # The points of one Gaussian with the mixture's moments lie where its components need not be.
    "unscented": {"sizes": lambda dim, components: [2 * dim + 1], "far_components": False},
    "unscented, negative weight": {
        "sizes": lambda dim, components: [2 * dim + 1],
        "far_components": False,
        "signed_weights": True,
    },
    "cubature": {"sizes": lambda dim, components: [2 * dim], "far_components": False},
}


@pytest.fixture(params=SAMPLERS)
def named(request):
    name = request.param
    return (
        name,
        SAMPLERS[name],
        {"deterministic": name not in RANDOM, "dims": (1, 2, 5)} | PROMISES.get(name, {}),
    )


samplers = pytest.fixture(lambda: SAMPLERS)
# to beat random draws anywhere
herding = fixture_of({name: SAMPLERS[name] for name in ("kernel herding", "herded Gibbs")})


random_mixture = pytest.fixture(lambda: testing.random_mixture)


@pytest.fixture
def hostile_mixture():
    """The wide family of mixtures of the benchmarks, which an installed package may lack."""
    return pytest.importorskip("benchmarks.hostile").hostile_mixture
