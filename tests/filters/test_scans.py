"""Scans of detections: the exact posterior, by enumeration of what is of the state, and the model alone where nothing is left open."""

import itertools

import numpy as np
import pytest

import herdfilter as hf

LINE = hf.models.LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[0.04]], [0.0], [[4.0]])
PLANE = hf.models.LinearGaussian(
    [[1.0, 1.0], [0.0, 1.0]], np.eye(2), np.diag([0.2, 0.1]), np.diag([0.5, 0.3]), [0.0, 1.0], np.eye(2)
)
P, KAPPA = 0.8, 0.3
SCANS = [[[0.3], [2.5]], [], [[-1.0], [1.2], [6.0]], [[1.0]]]


def enumerated(scans, line=LINE):
    """Posterior mean and variance at the last step, and the log-likelihood of all: a sum over histories of Kalman filters."""
    F, H, Q, R = line.F[0, 0], line.H[0, 0], line.Q[0, 0], line.R[0, 0]
    terms = []
    for history in itertools.product(*[range(1 + len(scan)) for scan in scans]):
        mean, variance, log = line.initial.means[0, 0], line.initial.covariances[0, 0, 0], 0.0
        for scan, j in zip(scans, history, strict=True):
            mean, variance = F * mean, F**2 * variance + Q
            if j == 0:
                log += np.log(1 - P)
                continue
            residual, spread = scan[j - 1][0] - H * mean, H**2 * variance + R
            log += np.log(P / KAPPA) - 0.5 * (residual**2 / spread + np.log(2 * np.pi * spread))
            gain = variance * H / spread
            mean, variance = mean + gain * residual, (1 - gain * H) * variance
        terms.append((log, mean, variance))
    logs, means, variances = np.array(terms).T
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    mean = shares @ means
    return mean, shares @ (variances + (means - mean) ** 2), np.logaddexp.reduce(logs)


@pytest.mark.parametrize(
    ("name", "n", "within"),
    [
        ("auto-kh", 400, 0.01),
        ("ranked", 400, 0.02),
        ("kalman-mixture-random", 3000, 0.05),
        ("guided", 3000, 0.05),
        ("auxiliary", 3000, 0.08),
        ("bootstrap", 10000, 0.08),
    ],
)
def test_the_posterior_is_the_sum_over_all_histories(name, n, within):
    """Mean, variance and evidence, all relative to exact ones."""
    mean, variance, log_likelihood = enumerated(SCANS)
    result = hf.make_filter(name, hf.models.WithClutter(LINE, P, KAPPA), n, rng=1).run(SCANS)
    print(
        result.means[-1, 0],
        mean,
        result.covariances[-1, 0, 0],
        variance,
        result.log_likelihood,
        log_likelihood,
    )
    assert result.means[-1, 0] == pytest.approx(mean, abs=within * np.sqrt(variance))
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, rel=2 * within)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=2 * within)


def test_a_grid_takes_scans():
    mean, variance, log_likelihood = enumerated(SCANS)
    result = hf.GridFilter(hf.models.WithClutter(LINE, P, KAPPA), -25, 25, 800).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=1e-5)
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, abs=1e-5)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-5)
