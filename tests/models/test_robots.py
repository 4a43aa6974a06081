"""Robots located by landmarks and by ranges to beacons."""

import numpy as np
import pytest
from scipy.stats import t as student

from herdfilter.models import LandmarkLocalisation, RangeOnly
from herdfilter.models.contract import wrap_angles
from herdfilter.models.resolved import Measurement
from herdfilter.models.simulation import simulate
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario


def test_simulated_robot_drives_a_figure_of_eight():
    """Without noise it is back where it began after one turn each way, and its heading has taken all values."""
    model = LandmarkLocalisation(
        position_noise=1e-9,
        heading_noise=1e-9,
        initial_covariance=1e-18 * np.eye(3),
        speed=2.0,
        turn_rate=2 * np.pi / 25,
        reverse_every=50,
    )
    truth, _ = simulate(model, 100, 0, dt=0.5)
    np.testing.assert_allclose(truth[[49, 99], :2], 0, atol=1e-6)
    side = 2 * 2.0 / model.turn_rate
    assert truth[:50, 1].max() == pytest.approx(side, rel=0.01)
    assert truth[50:, 1].min() == pytest.approx(-side, rel=0.01)
    assert np.ptp(wrap_angles(truth, [2])[:, 2]) > 6


def test_a_recording_has_the_controls_that_the_truth_was_simulated_with():
    scenario = load_scenario("landmarks")
    recording = record(scenario, scenario.build_model(), None, np.random.default_rng(0))
    assert set(recording.controls[:, 1]) == {0.25, -0.25}


BEACONS = [[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]]


def test_likelihood_is_students_t_about_the_scaled_distance():
    beacon = 1
    model = RangeOnly(BEACONS, range_scale=1.1, range_spread=0.5, degrees_of_freedom=3)
    x = np.array([[3.0, 4.0, 0.0], [10.0, 10.0, 1.0], [-5.0, 20.0, 2.0]])
    distance = np.linalg.norm(x[:, :2] - BEACONS[beacon], axis=1)
    expected = student.logpdf(25.0, 3, loc=1.1 * distance, scale=0.5)
    np.testing.assert_allclose(model.log_likelihood([beacon, 25.0], x, 1), expected, rtol=1e-12)


def test_simulated_beacons_take_turns_and_ranges_follow_the_likelihood():
    model = RangeOnly(BEACONS)
    np.testing.assert_array_equal(
        simulate(model, 7, np.random.default_rng(0))[1][:, 0], [0, 1, 2, 0, 1, 2, 0]
    )
    z = Measurement(model).sample(
        np.tile([3.0, 4.0, 0.0], (20_000, 1)), np.random.default_rng(0), 1
    )
    scaled = (z[:, 1] - 1.07 * 5.0) / model.range_spread
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(
        (scaled[:, None] < student.ppf(levels, 5)).mean(axis=0), levels, atol=0.015
    )
