"""Joint herding and joint herded Gibbs: blocks, ratios of densities, smoothing and far modes."""

import numpy as np
import pytest
from helpers import EYE, cases
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.discrepancy import energy_distance
from herdfilter.filters import HerdedProposal, ParticleFilter
from herdfilter.mixture import GaussianMixture
from herdfilter.models import UNGM
from herdfilter.samplers import JointHerdedGibbs, JointHerding, QuantileSampling

BOTH = [JointHerding, JointHerdedGibbs]


def cloud(n, noise):
    """Return n components, narrow in one direction, on a curve in the plane."""
    t = default_rng(3).standard_normal(n)
    means = np.stack([t, 0.3 * t**2], axis=1)
    return GaussianMixture(np.full(n, 1 / n), means, np.diag([0.3, noise]) ** 2)


@cases("method", *BOTH)
def test_ratios_are_those_of_the_densities_and_in_blocks_have_the_mean_one(method):
    q = cloud(300, 0.05)
    target = default_rng(4).dirichlet(np.ones(300))
    p = GaussianMixture(target, q.means, q.distinct_covariances[0])
    x, ratios = method().draw_weighted(q, 300, target)
    assert_allclose(ratios, p.log_density(x) - q.log_density(x), atol=1e-9)
    x, ratios = method(block=30).draw_weighted(q, 300, target)
    assert np.exp(ratios).mean() == pytest.approx(1, abs=0.05)
    assert np.exp(ratios) @ x / 300 == pytest.approx(p.mean, abs=0.1)


@cases("method", *BOTH)
def test_smoothing_fills_gaps_and_keeps_the_covariance(method):
    mixture = cloud(50, 1e-4)
    plain = method().sample(mixture, 50)
    filled = method(smoothing=50).sample(mixture, 50)
    gaps = [np.abs(p.x[:, 1:] - mixture.means[:, 1]).min(axis=1).mean() for p in (plain, filled)]
    assert gaps[1] > 1.5 * gaps[0]
    assert np.trace(filled.covariance) == pytest.approx(np.trace(mixture.covariance), rel=0.15)


@cases("method", *BOTH)
def test_a_dimension_without_spread_keeps_its_value(method):
    means = np.stack([np.linspace(-2, 2, 9), np.full(9, 3.0)], axis=1)
    mixture = GaussianMixture(np.full(9, 1 / 9), means, np.diag([0.1, 0.0]))
    x = method(smoothing=50).sample(mixture, 20).x
    assert_allclose(x[:, 1], 3.0, atol=1e-12)


@cases("method", *BOTH)
def test_far_modes_get_their_shares_and_kernels_of_their_own_width(method):
    mixture = GaussianMixture([0.9, 0.1], [[0.0, 0.0], [1e3, 1e3]], EYE)
    x = method(smoothing=50).sample(mixture, 100).x
    near = np.abs(x[:, 0]) < 500
    assert near.sum() == 90
    for mode, centre in ((x[near], 0.0), (x[~near], 1e3)):
        assert np.abs(mode - centre).max() < 4
        assert np.cov(mode.T) == pytest.approx(EYE, abs=0.45)


@cases("method", *BOTH, QuantileSampling)
def test_a_subclass_that_draws_otherwise_is_not_passed_by(method):
    class Fixed(method):
        def draw(self, mixture, n, rng):
            return np.full((n, 1), 7.0), np.full(n, 1 / n)

    pf = ParticleFilter(UNGM(), 5, proposal=HerdedProposal(Fixed()))
    pf.predict()
    assert (pf.particles == 7).all()


@cases("method", *BOTH)
def test_on_a_line_points_stay_near_the_quantiles(method):
    means = default_rng(5).standard_normal((40, 1)) * 5
    mixture = GaussianMixture(np.full(40, 1 / 40), means, [[4.0]])
    for n in (20, 100):
        best = energy_distance(QuantileSampling().sample(mixture, n), mixture)
        for smoothing in (0, 50):
            points = method(smoothing=smoothing, block=300).sample(mixture, n)
            assert energy_distance(points, mixture) < 1.1 * best
    # in blocks: the quantiles themselves
    x = method(smoothing=50, block=30).sample(mixture, 100).x
    assert_array_equal(x, QuantileSampling().sample(mixture, 100).x)
