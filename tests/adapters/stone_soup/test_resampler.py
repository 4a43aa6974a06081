"""Our resampling schemes inside the library's updater."""

import numpy as np
import pytest
from helpers import cases, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

pytest.importorskip("stonesoup", reason="the optional library Stone Soup is not installed")

from stonesoup.types.array import StateVectors
from stonesoup.types.particle import Particle
from stonesoup.types.state import MultiModelParticleState, ParticleState

from herdfilter.adapters.stone_soup import HerdfilterResampler

X = default_rng(2).standard_normal((3, 40))
UNEVEN = default_rng(3).dirichlet(np.full(40, 0.1))
MIXTURE = hf.MixtureResampling(hf.GaussianFit(), hf.SobolSampling())


def state(weights=UNEVEN, kind=ParticleState, **more):
    return kind(StateVectors(X), log_weight=np.log(weights), **more)


@cases("resampling", hf.SystematicResampling(), MIXTURE, ids=["systematic", "mixture"])
def test_same_object_where_nothing_is_resampled(resampling):
    even = state(np.full(40, 1 / 40))
    assert HerdfilterResampler(resampling, resample_below=1.0).resample(even) is even
    uneven = state()
    assert HerdfilterResampler(resampling, resample_below=0.0).resample(uneven) is uneven
    assert HerdfilterResampler(resampling).resample(uneven) is not uneven


@cases("resampling", hf.SystematicResampling(), hf.SSPResampling(), MIXTURE)
def test_points_and_weights_are_those_of_the_scheme(resampling):
    given = state()
    particles = resampling.resample(hf.Particles.weighted(X.T, UNEVEN), default_rng(7))
    found = HerdfilterResampler(resampling, rng=7).resample(given)
    assert_allclose(found.state_vector.T, particles.x, rtol=1e-9)
    assert_allclose(found.log_weight, particles.log_weights, rtol=1e-12)


def test_copies_keep_what_belongs_to_them():
    models = np.arange(40)
    given = state(kind=MultiModelParticleState, dynamic_model=models, parent=state())
    found = HerdfilterResampler(rng=1).resample(given)
    assert_array_equal(found.state_vector, X[:, found.dynamic_model])
    assert_array_equal(found.parent.state_vector, X[:, found.dynamic_model])


test_what_cannot_be_resampled_is_named = refuses(
    lambda given, arguments: HerdfilterResampler().resample(given, **arguments),
    (
        [Particle([0.0], 1.0)],
        {"nparts": 5},
        "nparts: expected None or the number of particles, 1, got 5",
    ),
    ("x", {}, "particles: expected a ParticleState, got str"),
    error=(TypeError, ValueError),
)
