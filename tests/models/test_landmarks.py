"""Localisation by landmarks."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import LandmarkLocalisation
from herdfilter.models.contract import wrap_angles
from herdfilter.models.simulation import simulate, simulated_controls
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario


def drive(pose, control, dt=1.0):
    return LandmarkLocalisation().transition_mean(np.atleast_2d(np.asarray(pose, float)), dt, control, 1)[0]


def test_motion_is_that_of_the_book():
    """Thrun, Burgard and Fox, eq. 5.9, with its division by the turn rate."""
    x, y, h, v, w, dt = 1.0, -2.0, 0.7, 1.5, 0.4, 0.8
    expected = [
        x - v / w * np.sin(h) + v / w * np.sin(h + w * dt),
        y + v / w * np.cos(h) - v / w * np.cos(h + w * dt),
        h + w * dt,
    ]
    np.testing.assert_allclose(drive([x, y, h], [v, w], dt), expected, rtol=1e-13)


def test_straight_on_is_the_limit_of_a_slow_turn():
    np.testing.assert_allclose(drive([1, 2, np.pi / 2], [3.0, 0.0], 2.0), [1, 8, np.pi / 2], atol=1e-12)
    slow = drive([1.0, 2.0, 0.3], [3.0, 1e-9])
    np.testing.assert_allclose(slow, drive([1.0, 2.0, 0.3], [3.0, 0.0]), atol=1e-8)


def test_half_a_circle_ends_a_diameter_to_the_side():
    np.testing.assert_allclose(drive([0, 0, 0], [2.0, 0.5], 2 * np.pi), [0, 8, np.pi], atol=1e-12)


def test_two_halves_of_a_drive_make_the_whole():
    half = drive([1.0, 2.0, 0.4], [1.0, 0.3], 0.5)
    np.testing.assert_allclose(drive(half, [1.0, 0.3], 0.5), drive([1.0, 2.0, 0.4], [1.0, 0.3]), rtol=1e-13)


def test_no_control_means_no_motion():
    np.testing.assert_array_equal(drive([1.0, 2.0, 3.0], None), [1.0, 2.0, 3.0])


def test_bearings_are_relative_to_the_heading_and_wrap():
    model = LandmarkLocalisation([[3.0, 4.0], [-5.0, 0.0]])
    np.testing.assert_allclose(
        model.observation_mean(np.array([[0.0, 0.0, np.pi / 2]]), 1)[0], [5.0, np.arctan2(4, 3) - np.pi / 2, 5.0, np.pi / 2]
    )
    across = model.observation_mean(np.array([[0.0, 0.0, -3.0]]), 1)[0, 3]
    assert across == pytest.approx(3.0 + np.pi - 2 * np.pi)


def test_likelihood_knows_no_seam():
    """Headings and bearings a full turn apart are the same."""
    model = LandmarkLocalisation()
    x = np.array([[0.5, -0.3, 3.1]])
    z = model.observation_mean(x, 1)[0] + 0.05
    turned = z + 2 * np.pi * np.array([0, 1, 0, -1, 0, 2])
    expected = model.log_likelihood(z, x, 1)
    np.testing.assert_allclose(model.log_likelihood(turned, x, 1), expected, rtol=1e-9)
    np.testing.assert_allclose(model.log_likelihood(z, x - [0, 0, 2 * np.pi], 1), expected, rtol=1e-9)


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


def test_filters_are_told_the_controls_that_the_truth_was_simulated_with():
    scenario = load_scenario("landmarks")
    model = scenario.build_model()
    recording = record(scenario, model, None, np.random.default_rng(0))
    np.testing.assert_array_equal(recording.controls, simulated_controls(model, scenario.steps))
    assert set(recording.controls[:, 1]) == {0.25, -0.25}
    told = hf.ParticleFilter(model, n_particles=300, rng=0)
    kept = hf.ParticleFilter(model, n_particles=300, rng=0)
    error = [
        np.linalg.norm(result.means[:, :2] - recording.truth[:, :2], axis=1)[20:].mean()
        for result in (
            told.run(recording.observations, dt=recording.dt, controls=recording.controls),
            kept.run(recording.observations, dt=recording.dt),
        )
    ]
    assert error[0] < 0.4 < error[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"landmarks": [[1.0, 2.0, 3.0]]}, "landmarks: expected shape"),
        ({"landmarks": np.empty((0, 2))}, "landmarks: expected at least one position, got none"),
        ({"range_sd": 0.0}, "range_sd: expected a positive"),
        ({"bearing_sd": -1.0}, "bearing_sd: expected a positive"),
        ({"reverse_every": 0}, "reverse_every: expected an integer of at least 1, got 0"),
        ({"initial_covariance": np.eye(2)}, r"initial_covariance: expected shape \(3, 3\), got \(2, 2\)"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LandmarkLocalisation(**arguments)


def test_control_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"control: expected shape \(2,\), got \(3,\)"):
        drive([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
