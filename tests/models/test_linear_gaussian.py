"""The linear Gaussian model."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from herdfilter.models import LinearGaussian, linear_chain

GOOD = {
    "F": [[1.0, 1.0], [0.0, 1.0]],
    "H": [[1.0, 0.0], [0.5, 2.0]],
    "Q": [[0.1, 0.15], [0.15, 0.3]],
    "R": [[1.0, 0.4], [0.4, 2.0]],
    "initial_mean": [0.0, 1.0],
    "initial_covariance": np.eye(2),
}


def test_likelihood_is_the_gaussian_density():
    model = LinearGaussian(**GOOD)
    x = np.random.default_rng(0).normal(size=(10, 2))
    expected = [multivariate_normal(model.H @ s, model.R).logpdf([0.3, -1.0]) for s in x]
    np.testing.assert_allclose(model.log_likelihood([0.3, -1.0], x, 1), expected, rtol=1e-12)


def test_transition_is_linear():
    model = LinearGaussian(**GOOD)
    x = np.array([[1.0, 2.0], [-1.0, 0.5]])
    np.testing.assert_allclose(model.transition_mean(x, 1.0, None, 1), [[3.0, 2.0], [-0.5, 0.5]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"F": np.eye(3)}, r"F: expected shape \(2, 2\), got \(3, 3\)"),
        ({"H": [[1.0]]}, r"H: expected shape \(\*, 2\), got \(1, 1\)"),
        ({"Q": [[1.0, 0.5], [0.0, 1.0]]}, "Q: expected symmetric"),
        ({"R": np.eye(3)}, r"R: expected shape \(2, 2\), got \(3, 3\)"),
        ({"R": [[1.0, 1.0], [1.0, 1.0]]}, "R: expected a positive definite matrix"),
        ({"initial_mean": 0.0}, r"initial_mean: expected shape \(\*,\), got \(\)"),
        ({"initial_covariance": np.diag([1.0, -1.0])}, "initial_covariance: expected positive semi-definite"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearGaussian(**GOOD | arguments)


def test_chain_couples_neighbours():
    model = linear_chain(3)
    a = 0.42
    np.testing.assert_allclose(model.F, [[a, a**2, a**3], [a**2, a, a**2], [a**3, a**2, a]])
    assert (np.abs(np.linalg.eigvals(linear_chain(6).F)) < 1).all()  # the states stay bounded


@pytest.mark.parametrize(
    ("arguments", "message"), [({"dim": 0}, "dim: expected"), ({"coupling": 1.0}, "coupling: expected")]
)
def test_bad_chains_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        linear_chain(**arguments)
