"""Herded prediction: the defensive mixture and its importance weights."""

import numpy as np
from helpers import cases
from numpy.testing import assert_allclose

from herdfilter.filters import HerdedProposal, ParticleFilter
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import KernelHerding, RandomSampling


@cases("sampler share", (RandomSampling(), 0.0), (KernelHerding(), 0.3), (RandomSampling(), 0.8))
def test_weights_are_the_ratio_of_the_predictive_density_to_the_one_drawn_from(
    walk, sampler, share
):
    pf = ParticleFilter(walk, 30, HerdedProposal(sampler, share), rng=0)
    pf.predict()
    pf.update([1.5])
    before = pf.weights
    x = pf.particles
    pf.predict()
    predictive = GaussianMixture(before, x, walk.transition_covariance(1.0, 2))
    even = GaussianMixture(np.full(30, 1 / 30), x, walk.transition_covariance(1.0, 2))
    p, q = (np.exp(m.log_density(pf.particles)) for m in (predictive, even))
    ratio = p / ((1 - share) * p + share * q)
    assert_allclose(pf.weights, ratio / ratio.sum(), rtol=1e-9)
    assert ratio.max() <= 1 / (1 - share) + 1e-12
