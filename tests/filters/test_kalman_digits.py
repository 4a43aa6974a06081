"""Kalman filters keep their digits however wide the prior is: against the exact update in rational numbers."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import EYE, cases, refusal
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.filters.kalman.update import condition
from herdfilter.filters.observation import outside

SCANS = {"detection_probability": 1.0, "clutter_density": 1e-30}
SUM, DIFFERENCE, SUMS, DIFFERENCES = (
    hf.Sensor(lambda x, sign=sign: sign * x[:, :1] + x[:, 1:], [[0.01]], **options)
    for options in ({}, SCANS)
    for sign in (1, -1)
)


def both(x):
    return np.column_stack([x[:, 0] + x[:, 1], x[:, 1] - x[:, 0]])


BOTH = hf.Sensor(both, 0.01 * EYE)


def walk(*deviations, mean=(0.0, 0.0)):
    return hf.models.from_functions(
        lambda x: x, None, np.zeros((2, 2)), None, mean, np.diag(np.square(deviations))
    )


def exact(deviations, readings):
    """Mean and covariance after readings (row, value) with the variance 1/100, one after the other, in rational numbers."""
    mean = [Fraction(0)] * 2
    P = [[Fraction(deviations[0]) ** 2, Fraction(0)], [Fraction(0), Fraction(deviations[1]) ** 2]]
    for row, z in readings:
        cross = [sum(P[i][j] * row[j] for j in range(2)) for i in range(2)]
        variance = sum(row[i] * cross[i] for i in range(2)) + Fraction(0.01)
        residual = Fraction(z) - sum(row[i] * mean[i] for i in range(2))
        mean = [mean[i] + cross[i] * residual / variance for i in range(2)]
        P = [[P[i][j] - cross[i] * cross[j] / variance for j in range(2)] for i in range(2)]
    return np.array(mean, dtype=float), np.array(P, dtype=float)


def modes(model):
    return hf.models.JumpMarkov([model, model], np.full((2, 2), 0.5))


FILTERS = {
    "ekf": hf.ExtendedKalmanFilter,
    "ukf": hf.UnscentedKalmanFilter,
    "ckf": hf.CubatureKalmanFilter,
    "smart sampling": lambda model: hf.SmartSamplingKalmanFilter(model, 20),
    "imm": lambda model: hf.InteractingMultipleModel(modes(model)),
    "mkf": lambda model: hf.MixtureKalmanFilter(modes(model)),
}


@cases("name", *FILTERS)
@cases("wide", 1.0, 1e3, 1e6, 1e9)
@cases("narrow", 5.0, None, ids=["one is wide", "both are wide"])
@cases("together", False, True, ids=["one after the other", "in one reading"])
def test_two_readings_leave_what_they_say(name, wide, narrow, together):
    deviations = (wide if narrow is None else narrow, wide)
    z = 1.25, -0.75
    model = walk(*deviations)
    readings = [((1, 1), z[0]), ((-1, 1), z[1])]
    one = FILTERS[name](model)
    one.predict()
    if together:
        one.update(z, BOTH)
    else:
        one.update(z[:1], SUM)
        mean, covariance = exact(deviations, readings[:1])
        assert_allclose(one.covariance, covariance, rtol=1e-6)
        one.update(z[1:], DIFFERENCE)
    mean, covariance = exact(deviations, readings)
    sd = np.sqrt(np.diagonal(covariance))
    assert_allclose(one.covariance / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=1e-5)
    assert_allclose(one.mean, mean, atol=1e-5)


@cases("rule", "extended", "unscented", "cubature")
def test_so_do_batches_scans_and_mixtures(rule):
    deviations = (5.0, 1e9)
    mean, covariance = exact(deviations, [((1, 1), 1.25), ((-1, 1), -0.75)])
    model = walk(*deviations)
    batch = hf.BatchedKalmanFilter(model, np.zeros((2, 2)), model.initial.covariance, rule)
    batch.predict()
    batch.update([[1.25], [np.nan]], SUM)
    batch.update([[-0.75], [np.nan]], DIFFERENCE)
    assert_allclose(batch.means[0], mean, atol=1e-5)
    assert_allclose(
        batch.covariances, [covariance, np.diag(np.square(deviations))], rtol=1e-6, atol=1e-8
    )
    kalman = {"extended": "ekf", "unscented": "ukf", "cubature": "ckf"}[rule]
    for one in (hf.make_filter(kalman, model), hf.MixtureKalmanFilter(modes(model), rule=rule)):
        one.predict()
        one.update([[1.25]], SUMS)
        one.update([[-0.75]], DIFFERENCES)
        assert_allclose(one.covariance, covariance, rtol=1e-6, atol=1e-8)
        assert_allclose(one.mean, mean, atol=1e-5)


@cases("name", "ekf", "ukf", "ckf", "imm", "mkf")
def test_so_does_a_detection_of_both(name):
    """Its density is that of one reading: the covariance of the prediction has no digits of the noise, its root has."""
    deviations = (5.0, 1e9)
    mean, covariance = exact(deviations, [((1, 1), 1.25), ((-1, 1), -0.75)])
    plain, scanning = (FILTERS[name](walk(*deviations)) for _ in range(2))
    plain.predict()
    scanning.predict()
    plain.update([1.25, -0.75], BOTH)
    scanning.update([[1.25, -0.75]], hf.Sensor(both, 0.01 * EYE, **SCANS))
    assert_allclose(scanning.covariance, covariance, rtol=1e-5, atol=1e-7)
    assert_allclose(scanning.mean, mean, atol=1e-5)
    over_clutter = -np.log(SCANS["clutter_density"])
    assert scanning.log_likelihood == pytest.approx(plain.log_likelihood + over_clutter, abs=1e-6)


def test_a_growing_model_keeps_what_readings_say():
    """Thirteen unstable states, of which only the sum is seen: the variance of the others grows to 1e18 beside 1e-4.

    The likelihood is that of the sum alone, a model of one state, and of seventeen readings of it.
    """
    d = 13
    k = 17
    model = hf.models.from_functions(
        lambda x: 2 * x + 1,
        lambda x: np.repeat(x.sum(axis=1, keepdims=True), k, axis=1),
        0.01 * np.eye(d),
        0.01 * np.eye(k),
        np.zeros(d),
        np.eye(d),
    )
    alone = hf.models.from_functions(
        lambda x: 2 * x + d,
        lambda x: np.repeat(x, k, axis=1),
        [[0.01 * d]],
        0.01 * np.eye(k),
        [0.0],
        [[d]],
    )
    _, z = hf.simulate(model, 30, rng=3)
    reference = hf.make_filter("ukf", alone).run(z).log_likelihood
    for name in ("ukf", "ckf"):
        assert hf.make_filter(name, model).run(z).log_likelihood == pytest.approx(
            reference, abs=1e-3
        )


def test_the_smoother_subtracts_nothing():
    """A level without noise, known to 1e9 at first: smoothed at step 1, it is as well known as at the end."""
    model = hf.models.from_functions(lambda x: x, lambda x: x, [[0.0]], [[0.01]], [0.0], [[1e18]])
    kf = hf.UnscentedKalmanFilter(model)
    result = kf.run([[1.0], [1.2], [0.8], [1.1]])
    smoothed = hf.rts_smoother(kf, result)
    assert_allclose(smoothed.covariances[:, 0, 0], 0.01 / 4, rtol=1e-6)
    assert_allclose(smoothed.means[:, 0], 1.025, rtol=1e-6)


def test_differences_follow_the_deviation_and_not_the_size_of_the_state():
    """A bend over two units at a place 1.2e9 away: the slope is that of the place, as it is near the origin."""
    found = []
    for origin in (0.0, 1.2e9):
        model = hf.models.from_functions(
            lambda x: x,
            lambda x, origin=origin: np.sin(x - origin),
            [[0.0]],
            [[0.01]],
            [origin + 0.5],
            [[0.04]],
        )
        kf = hf.ExtendedKalmanFilter(model)
        kf.predict()
        kf.update([0.6])
        found.append([kf.mean[0] - origin, kf.covariance[0, 0]])
    assert_allclose(found[1], found[0], rtol=1e-5)


def test_negative_weights_may_leave_a_prediction_but_no_update():
    """Rounding, up to 1e-8 of the variances, is raised to zero; a prediction may lose more, but must be definite."""
    slopes = np.array([EYE, np.diag([1.0, 0.0])])
    nothing = np.empty((1, 0, 2))
    rounded = np.array([np.diag([1.0, -1e-9]), EYE])
    roots = condition(slopes, rounded, nothing, 1, "predicted")[0]
    assert_allclose(roots @ roots.mT, [np.diag([2.0, 1.0])] * 2, atol=1e-15)
    lost = np.diag([1.0, -0.5])[None]
    root = condition(slopes[:1], lost, nothing, 1, "predicted")[0]
    assert_allclose(root @ root.mT, [np.diag([2.0, 0.5])])
    for slope, noise, factors, message in (
        (slopes[:1], lost, EYE[None], "updated"),
        (slopes[1:], np.diag([1.0, -1e-7])[None], nothing, "predicted"),
        (slopes[1:], np.diag([1.0, np.nan])[None], nothing, "predicted"),
    ):
        with refusal(
            f"step 3: the {message} covariance is not positive", hf.IndefiniteCovarianceError
        ):
            condition(slope, noise, factors, 3, "predicted")


@cases("wide", 1e3, 1e6, 1e9)
def test_so_does_auto_whose_gaussian_a_reading_updates(wide):
    """Two sums and a difference of two numbers: mean, deviations and evidence are Kalman's."""
    model = hf.models.from_functions(
        lambda x: x,
        lambda x: x[:, :1] + x[:, 1:],
        1e-9 * EYE,
        [[0.01]],
        [0, 0],
        np.diag([25.0, wide**2]),
    )
    auto = hf.make_filter("auto", model, 100, 0)
    kalman = hf.make_filter("ukf", model)
    for one in (auto, kalman):
        one.predict()
        one.update([1.25])
        one.predict()
        one.update([-0.75], DIFFERENCE)
    assert_allclose(auto.mean, kalman.mean, atol=1e-5)
    assert_allclose(auto.covariance, kalman.covariance, rtol=1e-4, atol=1e-9)
    assert auto.log_likelihood == pytest.approx(kalman.log_likelihood, abs=1e-4)


def test_a_gate_around_a_prediction_without_digits_is_refused_by_name():
    """A covariance whose noise is rounded away: a raw LinAlgError said `Singular matrix`."""
    with refusal(r"^gate: expected None, as the covariance .* got 0.999 at step 3$"):
        outside(np.array([[3.0, 300.0]]), np.full((1, 2, 2), 1e18), 0.999, 3)
    beyond = outside(np.array([[3.0], [4.0]]), np.ones((1, 1, 1)), 0.999, 3)
    assert beyond.tolist() == [False, True]  # 3.29 is the bound
