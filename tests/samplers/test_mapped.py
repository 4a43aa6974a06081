"""Points for the standard normal, mapped into the components of a mixture."""

import numpy as np
import pytest
from helpers import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_allclose

from herdfilter.mixture import GaussianMixture, largest_remainders
from herdfilter.points import Points
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling, RandomSampling

few = settings(max_examples=15, deadline=None, derandomize=True)


class Weighted:
    """A base sampler whose points differ in weight."""

    def sample(self, mixture, n, rng=None):
        x = default_rng(n).standard_normal((n, mixture.dim))
        return Points(x, np.arange(1, n + 1))


BASES = {
    "kernel herding": KernelHerding(),
    "herded Gibbs": ContinuousHerdedGibbs(),
    "random": RandomSampling(),
    "weighted": Weighted(),
}


@pytest.fixture(params=BASES.values(), ids=BASES)
def mapped(request):
    return MappedSampling(request.param)


@cases("d shared", (1, True), (5, False))
def test_moments_of_every_component_are_met_exactly(mapped, random_mixture, d, shared):
    mixture = random_mixture(60, d, n_components=3)
    means = mixture.means + 1e3 * np.arange(3)[:, None]  # so that every point's component is known
    covariances = mixture.covariances[0] if shared else mixture.covariances
    mixture = GaussianMixture(mixture.weights, means, covariances)
    points = mapped.sample(mixture, 60, default_rng(0))
    labels = np.argmin(((points.x[:, None] - means) ** 2).sum(-1), axis=1)
    shares = largest_remainders(mixture.weights, 60)
    for m in range(3):
        own = Points(points.x[labels == m], points.weights[labels == m])
        assert len(own) == shares[m]
        assert points.weights[labels == m].sum() == pytest.approx(shares[m] / 60, rel=1e-12)
        assert_allclose(own.mean, means[m], atol=1e-9)
        assert_allclose(own.covariance, mixture.covariances[m], atol=1e-9)


def test_too_few_points_to_span_the_space_have_the_mean(random_mixture):
    for n, d in ((1, 1), (1, 3), (3, 3)):
        gaussian = random_mixture(62, d, n_components=1)
        points = MappedSampling(RandomSampling()).sample(gaussian, n, default_rng(0))
        assert_allclose(points.mean, gaussian.mean, atol=1e-12)


@few
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda w: sum(w) > 1e-3),
    st.integers(1, 500),
)
def test_shares_are_whole_and_within_one_of_the_weights(weights, n):
    weights = np.array(weights) / np.sum(weights)
    shares = largest_remainders(weights, n)
    assert shares.sum() == n
    assert (shares >= 0).all()
    assert np.abs(shares - n * weights).max() < 1 + 1e-9
