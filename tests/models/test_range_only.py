"""Range-only localisation."""

import numpy as np
import pytest
from scipy.stats import t as student

from herdfilter.models import RangeOnly
from herdfilter.models.contract import sample_observation
from herdfilter.models.simulation import simulate

BEACONS = [[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]]


def transition(pose, control):
    return RangeOnly(BEACONS).transition_mean(np.atleast_2d(np.asarray(pose, float)), 1.0, control, 1)[0]


def test_forward_is_where_the_robot_looks_and_lateral_is_to_its_left():
    np.testing.assert_allclose(transition([1, 2, np.pi / 2], [3.0, 0.5, 0.1]), [0.5, 5.0, np.pi / 2 + 0.1])
    np.testing.assert_allclose(transition([1, 2, np.pi], [3.0, 0.5, -0.1]), [-2.0, 1.5, np.pi - 0.1])


def test_motions_compose_as_rigid_motions():
    """Homogeneous matrices multiply: the pose after a motion is the pose times the motion."""

    def matrix(x, y, h):
        return np.array([[np.cos(h), -np.sin(h), x], [np.sin(h), np.cos(h), y], [0, 0, 1]])

    pose, control = [3.0, -2.0, 0.8], [1.2, -0.4, 2.0]
    moved = matrix(*transition(pose, control))
    np.testing.assert_allclose(moved, matrix(*pose) @ matrix(*control), atol=1e-14)


def test_no_control_means_no_motion():
    np.testing.assert_array_equal(transition([1.0, 2.0, 3.0], None), [1.0, 2.0, 3.0])


def test_noise_grows_with_time():
    model = RangeOnly(BEACONS, position_noise=0.2, heading_noise=0.03)
    np.testing.assert_allclose(model.transition_covariance(4.0, 1), np.diag([0.16, 0.16, 0.0036]))


@pytest.mark.parametrize("beacon", [0, 1, 2])
def test_likelihood_is_students_t_about_the_scaled_distance(beacon):
    model = RangeOnly(BEACONS, range_scale=1.1, range_spread=0.5, degrees_of_freedom=4)
    x = np.array([[3.0, 4.0, 0.0], [10.0, 10.0, 1.0], [-5.0, 20.0, 2.0]])
    distance = np.linalg.norm(x[:, :2] - BEACONS[beacon], axis=1)
    expected = student.logpdf(25.0, 4, loc=1.1 * distance, scale=0.5)
    np.testing.assert_allclose(model.log_likelihood([beacon, 25.0], x, 1), expected, rtol=1e-12)


def test_heading_is_invisible_to_a_single_range():
    x = np.column_stack([np.full(9, 3.0), np.full(9, 7.0), np.linspace(-3, 3, 9)])
    assert np.ptp(RangeOnly(BEACONS).log_likelihood([1, 20.0], x, 1)) == 0


def test_an_outlier_costs_little_more_than_a_larger_one():
    """Robustness: the log-likelihood falls like a logarithm, so no single range can rule a place out."""
    model = RangeOnly([[0.0, 0.0]])
    near, far = model.log_likelihood([0, 10.0], np.array([[100.0, 0, 0], [1000.0, 0, 0]]), 1)
    power = (model.degrees_of_freedom + 1) * np.log(1060.0 / 97.0)
    assert near - far == pytest.approx(power, rel=1e-2)


def test_prior_is_flat_over_field_and_headings():
    model = RangeOnly(BEACONS, margin=5.0)
    x = model.initial.sample(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(x.min(axis=0), [-5, -5, -np.pi], atol=0.05)
    np.testing.assert_allclose(x.max(axis=0), [35, 45, np.pi], atol=0.05)
    np.testing.assert_allclose(x.mean(axis=0), [15, 20, 0], atol=0.5)


def test_simulated_beacons_take_turns():
    _, observations = simulate(RangeOnly(BEACONS), 7, np.random.default_rng(0))
    np.testing.assert_array_equal(observations[:, 0], [0, 1, 2, 0, 1, 2, 0])


def test_simulated_ranges_follow_the_likelihood():
    model = RangeOnly(BEACONS)
    z = sample_observation(model, np.tile([3.0, 4.0, 0.0], (20_000, 1)), np.random.default_rng(0), 1)
    scaled = (z[:, 1] - 1.07 * 5.0) / model.range_spread
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose((scaled[:, None] < student.ppf(levels, 5)).mean(axis=0), levels, atol=0.015)


@pytest.mark.parametrize("beacon", [-1, 3, 0.5])
def test_unknown_beacon_is_refused(beacon):
    with pytest.raises(ValueError, match=f"z: expected a beacon index from 0 to 2, got {beacon}"):
        RangeOnly(BEACONS).log_likelihood([beacon, 10.0], np.zeros((1, 3)), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beacons": [[1.0, 2.0, 3.0]]}, "beacons: expected shape"),
        ({"beacons": np.empty((0, 2))}, "beacons: expected at least one position, got none"),
        ({"margin": -1}, "margin: expected a positive"),
        ({"range_scale": 0.0}, "range_scale: expected a positive"),
        ({"range_spread": np.inf}, "range_spread: expected a positive"),
        ({"degrees_of_freedom": 0}, "degrees_of_freedom: expected a positive"),
        ({"position_noise": -0.1}, "position_noise: expected a positive"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RangeOnly(**{"beacons": BEACONS} | arguments)


def test_control_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"control: expected shape \(3,\), got \(2,\)"):
        transition([0.0, 0.0, 0.0], [1.0, 2.0])
