"""Returns whose log-variance is an autoregressive process."""

import numpy as np
import pytest
from scipy import stats

import herdfilter as hf
from herdfilter.filters import GridFilter
from herdfilter.models import StochasticVolatility


def test_likelihood_is_the_density_of_a_return():
    x, model = np.linspace(-6, 4, 21)[:, None], StochasticVolatility()
    for y in (-3.0, 0.0, 0.2):
        expected = stats.norm(0, np.exp(x[:, 0] / 2)).logpdf(y)
        np.testing.assert_allclose(model.log_likelihood([y], x, 1), expected, rtol=1e-12)


def test_the_sign_of_a_return_says_nothing():
    x, model = np.linspace(-6, 4, 21)[:, None], StochasticVolatility()
    np.testing.assert_array_equal(model.log_likelihood([0.7], x, 1), model.log_likelihood([-0.7], x, 1))


def test_the_prior_is_stationary():
    model = StochasticVolatility(mu=0.4, rho=-0.8, sigma=0.5)
    variance = model.rho**2 * model.initial.covariance + model.transition_covariance(1.0, 1)
    np.testing.assert_allclose(variance, model.initial.covariance, rtol=1e-13)
    np.testing.assert_allclose(model.transition_mean(model.initial.mean[None], 1.0, None, 1), [[0.4]])


def test_returns_have_the_variance_and_tails_of_the_model():
    """E[y^2] = exp(mu + v / 2), and the kurtosis is 3 exp(v), with v the variance of the state."""
    model, n = StochasticVolatility(), 400_000
    rng = np.random.default_rng(3)
    y = model.sample_observation(model.initial.sample(n, rng), rng, 1)
    v = model.initial.covariance[0, 0]
    assert y.shape == (n, 1)
    squares, fourths = y**2, y**4
    assert abs(squares.mean() - np.exp(model.mu + v / 2)) < 4.5 * squares.std() / np.sqrt(n)
    expected = 3 * np.exp(2 * model.mu + 2 * v)
    assert abs(fourths.mean() - expected) < 4.5 * fourths.std() / np.sqrt(n)


def test_filters_agree_with_the_exact_posterior():
    model = StochasticVolatility()
    _, z = hf.simulate(model, 60, 5)
    exact = GridFilter(model, -8.0, 6.0, 801).run(z)
    for proposal in (hf.BootstrapProposal(), hf.HerdedProposal(hf.KernelHerding())):
        result = hf.ParticleFilter(model, n_particles=400, proposal=proposal, rng=1).run(z)
        assert np.abs(result.means - exact.means).max() < 0.15
        assert abs(result.log_likelihood - exact.log_likelihood) < 0.5


def test_kalman_filters_are_refused():
    """The mean of a return is zero whatever the state: they would learn nothing."""
    for kind in (hf.UnscentedKalmanFilter, hf.ExtendedKalmanFilter):
        with pytest.raises(TypeError, match="needs observation_mean and observation_covariance"):
            kind(StochasticVolatility())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mu": np.inf}, "mu: expected a finite number, got inf"),
        ({"rho": 1.0}, "rho: expected a number above -1 and below 1, got 1.0"),
        ({"rho": np.nan}, "rho: expected a number above -1 and below 1, got nan"),
        ({"sigma": 0}, "sigma: expected a positive"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        StochasticVolatility(**arguments)
