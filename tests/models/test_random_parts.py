"""Parts of random models, against formulas written out."""

import numpy as np
import pytest
from scipy import stats

from herdfilter.models.random import drifts, noises, observations


def test_maps_by_hand():
    np.testing.assert_allclose(
        drifts.henon(1.4, 0.3).f(np.array([[0.5, 0.2]])), [[1 - 1.4 * 0.25 + 0.2, 0.15]]
    )
    z = 0.5 + 0.2j
    z = 1 + 0.8 * z * np.exp(1j * (0.4 - 6 / (1 + abs(z) ** 2)))
    np.testing.assert_allclose(drifts.ikeda(0.8).f(np.array([[0.5, 0.2]])), [[z.real, z.imag]])


def test_simulated_noise_is_students_t_or_jumps():
    drift, n = drifts.linear(np.zeros((1, 1))), 20_000
    x, rng = np.zeros((n, 1)), np.random.default_rng(0)
    heavy = noises.only_simulable(drift, np.array([[2.0]]), freedom=3.0)
    drawn = heavy.sample_transition(x, rng, 1.0, None, 1)[:, 0]
    assert stats.kstest(drawn / 2, stats.t(3).cdf).pvalue > 1e-4
    jumps = noises.only_simulable(drift, np.array([[1.0]]), jumps=(0.1, 5.0))
    drawn = jumps.sample_transition(x, rng, 1.0, None, 1)[:, 0]
    assert np.var(drawn) == pytest.approx(0.9 + 0.1 * 25, rel=0.08)


X = np.array([[0.3, -1.0], [1.2, 0.4]])
ALWAYS = observations.Schedule()
SENSORS = np.eye(2), np.zeros(2), np.array([[3.0, 3.0], [0.0, -2.0]])
COUNTS = observations.linear_view("counts", np.eye(2), np.zeros(2))


def test_likelihoods_by_scipy():
    sd, z = np.array([0.5, 0.2]), np.array([1.4, 2.0])
    ranges = observations.sensor_view("range", *SENSORS)
    np.testing.assert_allclose(ranges.h(X)[:, 0], np.hypot(X[:, 0] - 3, X[:, 1] - 3))
    heavy, law = (
        observations.gaussian_noise(ranges, sd, ALWAYS, freedom=3.0),
        stats.t(3.0, ranges.h(X), sd),
    )
    np.testing.assert_allclose(heavy.log_likelihood(z, X, 1), law.logpdf(z).sum(axis=1))
    np.testing.assert_allclose(heavy.observation_covariance(1), np.diag(law.var()[0]))
    np.testing.assert_allclose(
        observations.counts(COUNTS, ALWAYS).log_likelihood([2.0, 0.0], X, 1),
        stats.poisson.logpmf([2, 0], np.exp(X)).sum(axis=1),
    )
