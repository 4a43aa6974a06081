"""Scans of detections: the exact posterior by enumeration, and the model alone where nothing is left open."""

import itertools

import numpy as np
import pytest
from helpers import assert_same

import herdfilter as hf

LINE = hf.models.LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[0.04]], [0.0], [[4.0]])
PLANE = hf.models.LinearGaussian(
    [[1.0, 1.0], [0.0, 1.0]], np.eye(2), np.diag([0.2, 0.1]), np.diag([0.5, 0.3]), [0.0, 1.0], np.eye(2)
)
P, KAPPA = 0.8, 0.3
SCANS = [[[0.3], [2.5]], [], [[-1.0], [1.2], [6.0]], [[1.0]]]


def enumerated(scans, line=LINE):
    """Posterior mean and variance at the last step, and the log-likelihood: a sum over histories of Kalman filters."""
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
    [("mkf", 400, 1e-9), ("auto", 400, 0.01), ("ranked", 400, 0.02), ("guided", 3000, 0.05), ("bootstrap", 10000, 0.08)],
)
def test_the_posterior_is_the_sum_over_all_histories(name, n, within):
    mean, variance, log_likelihood = enumerated(SCANS)
    result = hf.make_filter(name, hf.models.WithClutter(LINE, P, KAPPA), n, rng=1).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=within * np.sqrt(variance))
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, rel=2 * within)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=2 * within)


@pytest.mark.parametrize("name", ["ukf", "mkf"])
def test_a_scan_without_a_target_that_is_detected_for_certain_is_named(name):
    online = hf.make_filter(name, hf.models.WithClutter(LINE, 1.0, KAPPA), 20)
    online.predict()
    with pytest.raises(
        ValueError, match=r"z: expected a scan with a detection of the target, .* got \[\] at step 1; give the model"
    ):
        online.update([])
    assert online.update([[0.5]]).outcome.value == "updated"


@pytest.mark.parametrize("name", ["bootstrap", "auto", "ranked", "guided", "ukf", "ekf", "ckf", "mkf"])
def test_without_clutter_and_misses_it_is_the_model_alone(name):
    z = np.random.default_rng(3).normal(size=(6, 2))
    alone = hf.make_filter(name, PLANE, 30, rng=5).run(z)
    scans = hf.make_filter(name, hf.models.WithClutter(PLANE, 1.0, 0.0), 30, rng=5).run(z[:, None])
    assert_same(scans, alone, "means", "covariances")
    assert scans.log_likelihood == alone.log_likelihood


@pytest.mark.parametrize("name", ["ukf", "ekf", "ckf"])
def test_kalman_filters_associate_by_probability(name):
    """The recursion of Bar-Shalom and Tse (1975), written out for a linear model."""
    rng = np.random.default_rng(7)
    scans = [rng.normal(0, 2, (k, 2)) for k in (3, 0, 1, 8)]
    F, H, Q, R = PLANE.F, PLANE.H, PLANE.Q, PLANE.R
    m, C, log_likelihood = PLANE.initial.mean, PLANE.initial.covariance, 0.0
    for Z in scans:
        m, C = F @ m, F @ C @ F.T + Q
        S = H @ C @ H.T + R
        K, residuals = C @ H.T @ np.linalg.inv(S), Z - H @ m
        g = np.exp(-0.5 * np.einsum("ij,jk,ik->i", residuals, np.linalg.inv(S), residuals))
        terms = P * g / np.sqrt(np.linalg.det(2 * np.pi * S)) / KAPPA
        total = 1 - P + terms.sum()
        each = [m] + [m + K @ r for r in residuals]
        spreads = [C] + [C - K @ S @ K.T] * len(Z)
        shares = np.append(1 - P, terms) / total
        m = shares @ np.array(each)
        C = sum(b * (V + np.outer(x - m, x - m)) for b, V, x in zip(shares, spreads, each, strict=True))
        log_likelihood += np.log(total)
    result = hf.make_filter(name, hf.models.WithClutter(PLANE, P, KAPPA), 1).run(scans)
    np.testing.assert_allclose(result.means[-1], m, atol=1e-10)
    np.testing.assert_allclose(result.covariances[-1], C, atol=1e-10)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-10)


@pytest.mark.parametrize("name", ["bootstrap", "auto", "ukf"])
def test_a_sensor_gives_scans_as_the_model_does(name):
    sensor = hf.Sensor(lambda x: x, PLANE.R, detection_probability=P, clutter_density=KAPPA)
    scans = [np.array([[0.5, 1.0], [3.0, 0.0]]), np.empty((0, 2)), np.array([[2.0, 1.5]])]
    own = hf.make_filter(name, hf.models.WithClutter(PLANE, P, KAPPA), 40, rng=1).run(scans)
    by_sensor = hf.make_filter(name, PLANE, 40, rng=1)
    result = by_sensor.run([(t + 1, sensor, scan) for t, scan in enumerate(scans)])
    np.testing.assert_allclose(result.means, own.means, atol=1e-9)
    assert result.log_likelihood == pytest.approx(own.log_likelihood, abs=1e-9)


@pytest.mark.parametrize("name", ["bootstrap", "auto", "ukf"])
def test_no_scan_is_no_news_and_an_empty_scan_is(name):
    pf = hf.make_filter(name, hf.models.WithClutter(PLANE, P, KAPPA), 40, rng=1)
    pf.predict()
    assert pf.update(None).outcome is hf.filters.Outcome.MISSING
    assert pf.log_likelihood == 0.0
    pf.update([])
    assert pf.log_likelihood == pytest.approx(np.log(1 - P))


@pytest.mark.parametrize("name", ["bootstrap", "auto", "guided"])
def test_what_is_never_missed_was_not_missed(name):
    pf = hf.make_filter(name, hf.models.WithClutter(PLANE, 1.0, 0.0), 40, rng=1)
    pf.predict()
    with pytest.raises(hf.DegenerateWeightsError, match="step 1"):
        pf.update([])


def test_a_filter_of_one_detection_says_so():
    kf = hf.make_filter("enkf", hf.models.WithClutter(PLANE, P, KAPPA), 40, rng=1)
    kf.predict()
    with pytest.raises(TypeError, match="take a filter for scans"):
        kf.update([[0.0, 0.0], [1.0, 1.0]])


def test_modes_take_scans():
    modes = hf.models.JumpMarkov([LINE, LINE], [[0.9, 0.1], [0.5, 0.5]])
    mean, variance, log_likelihood = enumerated(SCANS)
    result = hf.make_filter("auto", hf.models.WithClutter(modes, P, KAPPA), 400, rng=1).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=0.03 * np.sqrt(variance))
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=0.03)


def wavy(x):
    """Detection probability that changes slowly beside the spread of the state, and is nearly 0 at places."""
    return 0.5 + 0.49 * np.sin(0.4 * x[:, 0])


def patchy(z):
    """Clutter density by place."""
    return 0.3 + 0.25 * np.cos(z[:, 0])


def integrated(scans, line=LINE, detected=wavy, clutter=patchy):
    """Posterior mean and variance at the last step, and the log-likelihood, by sums over a fine grid."""
    x = np.linspace(-25, 25, 4001)
    F, H, Q, R = line.F[0, 0], line.H[0, 0], line.Q[0, 0], line.R[0, 0]
    density = np.exp(-0.5 * (x - line.initial.means[0, 0]) ** 2 / line.initial.covariances[0, 0, 0])
    move = np.exp(-0.5 * (x[:, None] - F * x) ** 2 / Q)
    move, density, log = move / move.sum(axis=0), density / density.sum(), 0.0
    for scan in scans:
        p = detected(x[:, None])
        likelihood = 1 - p
        for (z,) in scan:
            g = np.exp(-0.5 * (z - H * x) ** 2 / R) / np.sqrt(2 * np.pi * R)
            likelihood = likelihood + p * g / clutter(np.array([[z]]))[0]
        density = likelihood * (move @ density)
        log += np.log(density.sum())
        density /= density.sum()
    mean = density @ x
    return mean, density @ (x - mean) ** 2, log


@pytest.mark.parametrize(
    ("name", "n", "within"),
    [("auto", 400, 0.03), ("ranked", 400, 0.03), ("guided", 3000, 0.05), ("bootstrap", 10000, 0.08)],
)
def test_detection_and_clutter_may_depend_on_state_and_place(name, n, within):
    mean, variance, log_likelihood = integrated(SCANS)
    assert abs(mean - enumerated(SCANS)[0]) > 0.2 * np.sqrt(variance)  # another answer than with constants
    result = hf.make_filter(name, hf.models.WithClutter(LINE, wavy, patchy), n, rng=1).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=within * np.sqrt(variance))
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, rel=2 * within)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=2 * within)


@pytest.mark.parametrize("name", ["ukf", "ekf", "ckf", "mkf"])
def test_gaussians_take_the_detection_probability_that_is_expected(name):
    """Of a linear function all rules give the expectation exactly: the function of the mean, which is 0."""

    def linear(x):
        return 0.5 + 0.02 * x[:, 0]

    for scan in SCANS:
        varying, constant = (
            hf.make_filter(name, hf.models.WithClutter(LINE, p, patchy), 20).run([scan]) for p in (linear, 0.5)
        )
        np.testing.assert_allclose(varying.means, constant.means, atol=1e-12)
        assert varying.log_likelihood == pytest.approx(constant.log_likelihood, abs=1e-12)
    assert varying.log_likelihood == pytest.approx(integrated([scan], detected=lambda x: 0.5 + 0 * x[:, 0])[2], abs=1e-6)


@pytest.mark.parametrize("varying", [False, True], ids=["numbers", "functions of state and place"])
def test_a_grid_takes_scans(varying):
    mean, variance, log_likelihood = (integrated if varying else enumerated)(SCANS)
    detection = (wavy, patchy) if varying else (P, KAPPA)
    result = hf.GridFilter(hf.models.WithClutter(LINE, *detection), -25, 25, 800).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=1e-5)
    assert result.covariances[-1, 0, 0] == pytest.approx(variance, abs=1e-5)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-5)


@pytest.mark.parametrize("name", ["bootstrap", "auto", "ranked", "guided", "ukf", "ekf", "ckf", "mkf"])
@pytest.mark.parametrize("density", [KAPPA, 1e-3])
def test_functions_that_are_constant_do_as_the_numbers(name, density):
    scans = [np.random.default_rng(k).normal(size=(k, 2)) for k in (3, 0, 1, 2)]
    number = hf.make_filter(name, hf.models.WithClutter(PLANE, P, density), 40, rng=1).run(scans)
    model = hf.models.WithClutter(PLANE, lambda x: np.full(len(x), P), lambda z: np.full(len(z), density))
    function = hf.make_filter(name, model, 40, rng=1).run(scans)
    np.testing.assert_allclose(function.means, number.means, atol=1e-9)
    assert function.log_likelihood == pytest.approx(number.log_likelihood, abs=1e-9)


@pytest.mark.parametrize("name", ["bootstrap", "auto"])
def test_all_modes_have_the_detection_probability_of_the_sensor(name):
    jumping = hf.models.JumpMarkov([LINE, LINE], [[0.9, 0.1], [0.1, 0.9]])
    mean, variance, _ = integrated(SCANS)
    result = hf.make_filter(name, hf.models.WithClutter(jumping, wavy, patchy), 4000, rng=1).run(SCANS)
    assert result.means[-1, 0] == pytest.approx(mean, abs=0.1 * np.sqrt(variance))


@pytest.mark.parametrize("name", ["bootstrap", "auto", "ukf", "mkf"])
def test_where_nothing_can_be_detected_a_miss_is_no_news(name):
    blind = hf.models.WithClutter(PLANE, lambda x: np.zeros(len(x)), KAPPA)
    own, none = (hf.make_filter(name, blind, 40, rng=1) for _ in range(2))
    for pf, scan in ((own, [[0.5, 1.0]]), (none, [])):
        pf.predict()
        pf.update(scan)
    np.testing.assert_allclose(own.mean, none.mean, atol=1e-9)
    assert own.log_likelihood == none.log_likelihood == pytest.approx(0.0, abs=1e-12)
