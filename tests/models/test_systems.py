"""Stochastic volatility and the uniform box: what marks each."""

import numpy as np
import pytest
from scipy import stats

from herdfilter.models import StochasticVolatility, UniformBox


def test_likelihood_is_the_density_of_a_return():
    x, model = np.linspace(-6, 4, 21)[:, None], StochasticVolatility()
    expected = stats.norm(0, np.exp(x[:, 0] / 2)).logpdf(-3.0)
    np.testing.assert_allclose(model.log_likelihood([-3.0], x, 1), expected, rtol=1e-12)


def test_the_prior_of_volatility_is_stationary():
    model = StochasticVolatility(mu=0.4, rho=-0.8, sigma=0.5)
    variance = model.rho**2 * model.initial.covariance + model.transition_covariance(1.0, 1)
    np.testing.assert_allclose(variance, model.initial.covariance, rtol=1e-13)
    np.testing.assert_allclose(
        model.transition_mean(model.initial.mean[None], 1.0, None, 1), [[0.4]]
    )


def test_density_of_a_box_is_flat_inside_and_draws_fill_it_evenly():
    box = UniformBox([0.0, -1.0], [2.0, 3.0])
    grid = np.stack(
        np.meshgrid(np.arange(-0.95, 4, 0.1), np.arange(-1.95, 4, 0.1)), axis=-1
    ).reshape(-1, 2)
    density = np.exp(box.log_density(grid))
    assert density.sum() * 0.01 == pytest.approx(1.0)
    np.testing.assert_allclose(np.unique(density), [0.0, 1 / 8], rtol=1e-12)
    counts, *_ = np.histogram2d(*box.sample(40_000, 0).T, bins=(4, 4), range=((0, 2), (-1, 3)))
    assert counts.sum() == 40_000
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)
