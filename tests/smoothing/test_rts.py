"""The Rauch-Tung-Striebel smoother against conditioning of the Gaussian of all states, filterpy, and a grid."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter
from helpers import CONTROLS, EYE, cases, in_units, of_inner_noise, refusal
from helpers import DURATIONS as DT
from helpers import READINGS as Z
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

FILTERS = {
    "extended": hf.ExtendedKalmanFilter,
    "unscented": hf.UnscentedKalmanFilter,
    "cubature": hf.CubatureKalmanFilter,
    "smart sampling": lambda model: hf.SmartSamplingKalmanFilter(model, 9),
}


@pytest.fixture(autouse=True)
def one_start(monkeypatch):
    """Points of smart sampling that are merely good are placed at once, and as exact for what is linear."""
    monkeypatch.setattr("herdfilter.samplers.lcd.POINTS_OF_ALL_STARTS", 1)


def agree(smoothed, means, covariances, tolerance=1e-9):
    """Differences know the slopes of the extended filter to eps ** (2 / 3) = 4e-11 of the states, here below 10."""
    assert_allclose(smoothed.means, means, rtol=0, atol=tolerance)
    assert_allclose(smoothed.covariances, covariances, rtol=0, atol=tolerance)


@cases("name noise", *((name, "additive") for name in FILTERS), ("unscented", "pushed"))
def test_linear_models_are_smoothed_exactly(driven, exact, name, noise):
    kf = FILTERS[name](of_inner_noise(driven) if noise == "pushed" else driven)
    result = kf.run(Z, dt=DT, controls=CONTROLS)
    expected = exact(driven, Z, DT, CONTROLS)
    agree(
        hf.rts_smoother(kf, result, DT, CONTROLS),
        *expected,
        tolerance=1e-9 if name == "extended" else 1e-12,
    )


def test_filterpy_agrees_where_the_transition_bends():
    """Its unscented smoother, from the same filtered moments, over the same points."""
    bent = hf.models.from_functions(
        lambda x: np.column_stack([x[:, 0] + np.sin(x[:, 1]), 0.9 * x[:, 1] + 0.1 * x[:, 0] ** 2]),
        lambda x: x[:, :1], [[0.1, 0.02], [0.02, 0.2]], [[0.5]], [0.3, -0.2], [[0.5, 0.1], [0.1, 0.4]],
    )  # fmt: skip
    points = MerweScaledSigmaPoints(2, alpha=1.0, beta=0.0, kappa=1.0)
    theirs = UnscentedKalmanFilter(
        2,
        1,
        1.0,
        lambda x: x[:1],
        lambda x, dt: bent.transition_mean(x[None], dt, None, 1)[0],
        points,
    )
    theirs.Q = bent.transition_covariance(1.0, 1)
    kf = hf.UnscentedKalmanFilter(bent)
    result = kf.run(Z)
    agree(
        hf.rts_smoother(kf, result),
        *theirs.rts_smoother(result.means, result.covariances)[:2],
        1e-10,
    )


def test_times_are_those_of_the_result_unless_others_are_given(driven):
    """As numbers or dates; a wrong time step is not passed over."""
    start = datetime(2026, 3, 1)
    kf = hf.ExtendedKalmanFilter(driven)
    told = hf.rts_smoother(kf, kf.run(Z, dt=DT), dt=DT)
    dates = [start + timedelta(seconds=s) for s in np.cumsum(DT)]
    result = hf.ExtendedKalmanFilter(driven).run(Z, times=dates, start=start)
    for options in ({}, {"times": dates}):
        again = hf.rts_smoother(kf, result, **options)
        agree(again, told.means, told.covariances)
        assert_array_equal(again.times, result.times)
    assert np.abs(hf.rts_smoother(kf, result, dt=1.0).means - told.means).max() > 0.1


def test_readings_of_one_time_are_of_one_state(driven, joint, readings):
    kf = hf.ExtendedKalmanFilter(driven)
    # on the way to the first of a time
    controls = np.array([[1.0, 0.0], [9.0, 9.0], [0.5, -1.0], [2.0, 1.0], [9.0, 9.0]])
    result = kf.run(readings, controls=controls)
    smoothed = hf.rts_smoother(kf, result, controls=controls)
    place = [0, 0, 1, 2, 2]
    rows = [(k, s.mean(EYE).T, s.covariance[0, 0], np.nan if z is None else z[0])
            for k, (_, s, z) in zip(place, readings, strict=True)]  # fmt: skip
    means, C = joint(driven, rows, 3, [1.0, 1.5, 0.5], controls[[0, 2, 3]])
    agree(smoothed, means[place], C[np.arange(3), :, np.arange(3)][place])
    assert_array_equal(smoothed.steps, [1, 1, 2, 3, 3])


def test_a_run_that_goes_on_has_the_steps_of_the_filter():
    class Growing(hf.models.LinearGaussian):
        def transition_covariance(self, dt, step):
            return 0.3 * step * np.eye(1)

    model = Growing([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    kf = hf.ExtendedKalmanFilter(model)
    z = np.array([[0.0], [3.0], [1.0], [5.0], [2.0]])
    whole = hf.rts_smoother(kf, hf.ExtendedKalmanFilter(model).run(z))
    kf.run(z[:3])
    agree(hf.rts_smoother(kf, kf.run(z[3:])), whole.means[3:], whole.covariances[3:])


@cases("certain", (), (1,), (0, 1))
def test_states_without_doubt_have_singular_predictions(driven, exact, certain):
    """No noise in some dimensions or in any, and a start that is certain of one combination of them."""
    driven.Q = np.diag([0.0 if i in certain else 0.4 for i in range(2)])
    driven.initial = hf.GaussianMixture([1.0], [[1.0, -1.0]], [[1.0, 2.0], [2.0, 4.0]])
    # slopes by differences are right to 1e-11, which a state that is all but certain blows up
    driven.transition_jacobian = lambda x, dt, control, step: np.tile(driven.F(dt), (len(x), 1, 1))
    driven.observation_jacobian = lambda x, step: np.tile(driven.H, (len(x), 1, 1))
    for build in (hf.ExtendedKalmanFilter, hf.CubatureKalmanFilter):
        kf = build(driven)
        agree(hf.rts_smoother(kf, kf.run(Z, dt=DT)), *exact(driven, Z, DT))


def test_units_do_not_matter(driven):
    unit = np.array([1.0, 1e-9])
    plain = hf.models.LinearGaussian(
        driven.F(1.0), driven.H, driven.Q, driven.R, driven.initial.mean, driven.initial.covariance
    )
    one, other = (
        hf.rts_smoother(kf, kf.run(Z))
        for kf in map(hf.UnscentedKalmanFilter, (plain, in_units(plain, unit)))
    )
    assert_allclose(other.means / unit, one.means, atol=1e-9)
    assert_allclose(other.covariances / np.outer(unit, unit), one.covariances, atol=1e-9)


def test_filters_that_keep_no_gaussian_are_named(driven):
    result = hf.ExtendedKalmanFilter(driven).run(Z)
    for other, name in (
        (hf.EnsembleKalmanFilter(driven, 10, rng=0), "EnsembleKalmanFilter"),
        (hf.ParticleFilter(driven, 10, rng=0), "ParticleFilter; marginal_smoother serves"),
        (hf.ExtendedKalmanFilter, "the class ExtendedKalmanFilter"),
        (driven, "Driven"),
    ):
        with refusal(f"filter: rts_smoother expected a Kalman filter .*, got {name}", TypeError):
            hf.rts_smoother(other, result)


def test_an_indefinite_prediction_is_named():
    """Sigma points whose centre has a negative weight, and a transition that bends."""
    bent = hf.models.from_functions(lambda x: x**2, lambda x: x, [[1.0]], [[10.0]], [0.0], [[1.0]])
    result = hf.ExtendedKalmanFilter(bent).run([[0.1], [0.0]])
    with refusal("step 2: the predicted covariance", hf.IndefiniteCovarianceError) as caught:
        hf.rts_smoother(hf.UnscentedKalmanFilter(bent, alpha=0.5, beta=-3.0), result)
    assert caught.value.step == 2
