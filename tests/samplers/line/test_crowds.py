"""Few components that stand for many."""

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.line import as_line, condensed


def test_few_components_have_the_density_of_many():
    """To rounding of its peak; the weights need not be positive, and their sum is that of before."""
    rng = np.random.default_rng(0)
    mixture = GaussianMixture(rng.dirichlet(np.ones(2000)), 3 * rng.standard_normal((2000, 1)), [[0.25]])
    line = condensed(as_line(mixture))
    assert len(line.means) < 1000
    assert (np.diff(line.means) > 0).all()
    assert abs(line.weights.sum() - 1) < 1e-14
    x = np.linspace(-15, 15, 200)
    terms = np.exp(-0.5 * ((x[:, None] - line.means) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(terms @ line.weights, np.exp(mixture.log_density(x)), atol=1e-14)


def test_components_of_different_widths_are_left_alone():
    rng = np.random.default_rng(0)
    line = as_line(GaussianMixture(np.ones(300), rng.standard_normal((300, 1)), rng.uniform(1.0, 3.0, (300, 1, 1))))
    np.testing.assert_array_max_ulp(condensed(line).means, line.means)
    np.testing.assert_array_max_ulp(condensed(line).weights, line.weights)
