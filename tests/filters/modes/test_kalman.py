"""Kalman filters of models that jump: interacting multiple models, and histories of modes."""

import numpy as np
import pytest
from helpers import assert_same, assert_turns, cases, compass
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters.kalman.jump_filters import select_histories

Z = [[0.3], None, [1.1], [-0.4]]


@cases(
    "filter_class jump rule alone",
    (hf.InteractingMultipleModel, True, "unscented", "ukf"),
    (hf.InteractingMultipleModel, False, "cubature", "ckf"),
    (hf.MixtureKalmanFilter, True, "extended", "ekf"),
    (hf.MixtureKalmanFilter, False, "unscented", "ukf"),
)
def test_one_mode_is_its_kalman_filter_to_the_last_bit(filter_class, rule, alone, jump):
    model = hf.models.CoordinatedTurn()
    _, z = hf.simulate(model, 4, rng=1)
    z[2] = np.nan
    given = hf.models.JumpMarkov([model], [[1.0]]) if jump else model
    ours = filter_class(given, rule=rule).run(z)
    theirs = hf.make_filter(alone, model).run(z)
    assert_same(ours, theirs)
    assert_array_equal(ours.mode_probabilities, np.ones((4, 1)))


def test_interacting_models_are_those_of_filterpy(linear_modes):
    kalman = pytest.importorskip("filterpy.kalman", reason="filterpy is not installed")
    model = linear_modes(11, count=3)
    _, z = hf.simulate(model, 12, rng=2)
    filters = []
    for one in model.models:
        kf = kalman.KalmanFilter(dim_x=2, dim_z=1)
        kf.x = np.zeros(2)
        kf.P = one.initial_covariance
        kf.F = one.F
        kf.H = one.H
        kf.Q = one.Q
        kf.R = one.R
        filters.append(kf)
    theirs = kalman.IMMEstimator(filters, model.initial_modes, model.transition_matrix)
    ours = hf.InteractingMultipleModel(model)
    for value in z:
        theirs.predict()
        theirs.update(value)
        ours.predict()
        ours.update(value)
        assert_allclose(ours.mode_probabilities, theirs.mu, rtol=1e-10)
        assert_allclose(ours.mean, theirs.x, rtol=1e-10, atol=1e-12)
        assert_allclose(ours.covariance, theirs.P, rtol=1e-10, atol=1e-12)


@cases("sensors", 1, 2)
def test_histories_are_exact_while_there_is_room(linear_modes, enumerated, sensors):
    model = linear_modes(12, sensors=sensors)
    _, z = hf.simulate(model, 7, rng=3)
    means, covariances, modes, log_densities = enumerated(model, z)
    result = hf.MixtureKalmanFilter(model, 2**7).run(z)
    assert_allclose(result.means, means, rtol=1e-9, atol=1e-12)
    assert_allclose(result.covariances, covariances, rtol=1e-9, atol=1e-12)
    assert_allclose(result.mode_probabilities, modes, rtol=1e-9)
    assert_allclose(result.log_likelihoods, log_densities, rtol=1e-9)


def test_selected_histories_keep_their_weights_or_share_those_of_the_rest():
    rng = np.random.default_rng(5)
    for room in (1, 7, 30):
        weights = rng.dirichlet(np.full(40, 0.3))
        chosen, kept = select_histories(weights, room)
        assert len(chosen) == room == len(np.unique(chosen))
        assert kept.sum() == pytest.approx(1.0)
        level = kept.min()
        assert np.minimum(weights / level, 1).sum() == pytest.approx(room)
        large = weights > level * (1 + 1e-9)
        assert_array_equal(kept[np.isin(chosen, np.flatnonzero(large))], weights[large])
        assert_allclose(kept[~np.isin(chosen, np.flatnonzero(large))], level)
        # of them those in the middles of as many equal shares of their sum
        rest = np.flatnonzero(~large)
        places = (np.arange(room - large.sum()) + 0.5) * level
        expected = rest[np.searchsorted(np.cumsum(weights[rest]), places)]
        assert_array_equal(np.setdiff1d(chosen, np.flatnonzero(large)), expected)
    assert_array_equal(select_histories(np.array([0.5, 0.0, 0.5]), 2)[0], [0, 2])


@cases("name", "imm", "mkf", "auto")
def test_angles_do_not_know_where_zero_is(name):
    def run(model, z):
        modes = [model, compass(model.initial.mean[1], rate=-0.1)]
        model = hf.models.JumpMarkov(modes, [[0.9, 0.1], [0.2, 0.8]])
        return hf.make_filter(name, model, 30).run(z)

    plain, turned = assert_turns(run, 2.5, 1e-9)
    assert_allclose(turned.mode_probabilities, plain.mode_probabilities, atol=1e-9)


@cases("name", "imm", "mkf")
def test_sensors_and_missing_observations(linear_modes, name):
    """A sensor does what the modes' own functions do; without an observation probabilities follow the chain."""
    model = linear_modes(14)
    sensor = hf.Sensor(lambda x: x @ model.models[0].H.T, model.models[0].R)
    own = hf.make_filter(name, model, 50)
    by_sensor = hf.make_filter(name, model, 50)
    for z in Z:
        before = own.mode_probabilities
        own.predict()
        by_sensor.predict()
        assert_allclose(own.mode_probabilities, before @ model.transition_matrix)
        expected = own.predicted_observation()
        for ours, theirs in zip(by_sensor.predicted_observation(sensor), expected, strict=True):
            # the first mean is 0 but for rounding
            assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        own.update(z)
        by_sensor.update(z, sensor=sensor)
        assert_same(own, by_sensor, "mean", "mode_probabilities", rtol=1e-9)


def test_a_scan_is_taken_up_by_interacting_models(linear_modes):
    model = linear_modes(15)
    z = [[0.3], [1.1]]
    sure = hf.make_filter("imm", hf.models.WithClutter(model, 1.0, 0.0)).run([[v] for v in z])
    assert_array_equal(sure.means, hf.make_filter("imm", model).run(z).means)
    far = hf.make_filter("imm", hf.models.WithClutter(model, 0.9, 0.1)).run([[[1e3]], []])
    assert_allclose(far.means, hf.make_filter("imm", model).run([None, None]).means, atol=1e-12)
