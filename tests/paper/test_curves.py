import numpy as np
import pytest
from scipy.integrate import quad

import herdfilter as hf
from herdfilter.paper.common import PrefixErrors, broad_components, narrow_component, rotated_mixture


@pytest.mark.parametrize("dim", [1, 5])
def test_errors_of_prefixes_are_the_direct_ones(dim):
    rng = np.random.default_rng(dim)
    mixture = rotated_mixture(dim, rng)
    a = rng.standard_normal((dim, dim))
    kernel = 0.3 * np.eye(dim) + 0.2 * a @ a.T
    x = mixture.sample(40, rng)
    herding, l2 = PrefixErrors(mixture, kernel)(x)
    for t in (1, 2, 17, 40):
        points = hf.Points(x[:t])
        assert herding[t - 1] == pytest.approx(hf.herding_error(points, mixture, kernel), rel=1e-9)
        assert l2[t - 1] == pytest.approx(hf.normalised_l2(points, mixture, kernel), rel=1e-9, abs=1e-12)


def test_the_floor_is_the_distance_to_the_smoothed_density():
    mixture = hf.GaussianMixture([0.3, 0.7], [[-1.0], [2.0]], [[[0.2]], [[1.0]]])
    kernel = np.array([[0.25]])

    def product(a, b):
        return quad(lambda x: float(np.exp(a.log_density([[x]]) + b.log_density([[x]]))[0]), -9, 11)[0]

    smooth = mixture.convolve(kernel)
    cosine = product(mixture, smooth) / np.sqrt(product(mixture, mixture) * product(smooth, smooth))
    assert PrefixErrors(mixture, kernel).floor == pytest.approx(2 * (1 - cosine), rel=1e-6)


def test_mixtures_are_what_the_pages_say():
    long = np.linalg.eigvalsh(narrow_component().covariances[0])
    assert np.sqrt(long) == pytest.approx([0.1414, 2.0], abs=1e-3)
    assert np.linalg.eigvalsh(broad_components().covariances).min() == pytest.approx(1.0)
    mixture = rotated_mixture(10, np.random.default_rng(0))
    spread = np.linalg.eigvalsh(mixture.covariances)
    assert spread.min() >= 0.1
    assert spread.max() <= 4.1
    assert np.abs(mixture.means).max() <= 5
