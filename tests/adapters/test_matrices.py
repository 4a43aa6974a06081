"""Models of statsmodels and pykalman as ours, beside the numbers of their own filters."""

import numpy as np
import pytest
from helpers import EYE, cases, refuses
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.adapters.pykalman import from_pykalman
from herdfilter.adapters.statsmodels import from_statsmodels

tsa = pytest.importorskip("statsmodels.tsa.api")
pykalman = pytest.importorskip("pykalman")
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(4)
X = np.arange(60.0)
Z = RNG.normal(size=(60, 2)).cumsum(0)
Z[3:5] = np.nan
LEVEL = Z[:, 0]
MASKED = np.ma.masked_invalid(Z)
VARYING = pykalman.KalmanFilter(
    *RNG.random((2, 60, 2, 2)),
    EYE * RNG.random((60, 1, 1)),
    None,
    *RNG.normal(size=(2, 60, 2)),
)
WALK = tsa.UnobservedComponents(LEVEL, "llevel")


def converted(theirs):
    """Our model and observations; their means, covariances and log-likelihood, and the steps that this leaves out."""
    if theirs is VARYING:
        moments = VARYING.filter(MASKED)
        return *from_pykalman(VARYING, MASKED), *moments, VARYING.loglikelihood(MASKED), 0
    results = theirs.filter(theirs.start_params)
    moments = results.filtered_state.T, np.moveaxis(results.filtered_state_cov, 2, 0)
    return *from_statsmodels(results), *moments, results.llf, results.loglikelihood_burn


@cases(
    "theirs",
    WALK,
    tsa.UnobservedComponents(LEVEL, "llevel", exog=X, mle_regression=False),
    tsa.UnobservedComponents(LEVEL, "lltrend", seasonal=4),
    tsa.SARIMAX(LEVEL, X, order=(1, 1, 1), seasonal_order=(1, 0, 0, 4)),
    tsa.SARIMAX(LEVEL, order=(2, 0, 0), trend="c", concentrate_scale=True),
    tsa.VARMAX(Z, order=(1, 0), trend="ct"),
    VARYING,
)
def test_kalman_filter_has_the_numbers_of_the_library(theirs):
    model, z, means, covariances, log_likelihood, burn = converted(theirs)
    found = hf.ExtendedKalmanFilter(model).run(z)
    assert_allclose(found.means[burn:], means[burn:], rtol=1e-9, atol=1e-9)
    assert_allclose(found.covariances[burn:], covariances[burn:], rtol=1e-9, atol=1e-9)
    assert found.log_likelihoods[burn:].sum() == pytest.approx(log_likelihood, rel=1e-9)


def test_unscented_filter_has_the_numbers_of_pykalman():
    kf = pykalman.AdditiveUnscentedKalmanFilter(
        lambda x: np.cos(x[::-1]), lambda x: x**3, n_dim_state=2, n_dim_obs=2
    )
    # pykalman's alpha, beta and kappa for two dimensions
    ours = hf.UnscentedKalmanFilter(from_pykalman(kf, MASKED)[0], 1.0, 0.0, 1.0)
    assert_allclose(ours.run(MASKED).means, kf.filter(MASKED)[0], rtol=1e-9)


test_what_cannot_be_converted_is_named = refuses(
    lambda convert, *theirs: convert(*theirs),
    (TypeError, from_statsmodels, WALK, r"results: expected those of fit\(\) or filter"),
    (from_statsmodels, WALK.filter([1.0, np.nan]), "state_cov: expected finite numbers"),
    (
        from_statsmodels,
        tsa.UnobservedComponents(LEVEL, "llevel", use_exact_diffuse=True).filter([1.0, 1.0]),
        "initialization: .* got an exact diffuse one; leave out",
    ),
    (from_pykalman, VARYING, np.zeros((61, 2)), r"for step 61, got those for 1 to 60"),
)
