"""Simulated targets and scans have the distributions of the model."""

import numpy as np
import pytest
from helpers import EYE, cases, position_and_speed, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.tracking.simulation import simulate_path, simulate_scans

LINE = position_and_speed([[0.3, 0.1], [0.1, 0.2]], 1e-12)


def cluttered(detection_probability=1.0, clutter_density=0.0):
    return hf.models.WithClutter(
        LINE, detection_probability, clutter_density, region=[[-50.0, 150.0]]
    )


def test_a_scan_is_of_its_step_which_count_from_one():
    drifting = hf.models.from_functions(
        lambda x: x, lambda x, step: x + 10 * step, [[1.0]], [[1e-12]], [0.0], [[1.0]]
    )
    scans = simulate_scans(
        hf.models.WithClutter(drifting, 1.0, 0.0, region=[[-50, 150]]), np.zeros((3, 1, 1)), 1
    )
    assert_allclose(np.concatenate(scans)[:, 0], [10, 20, 30], atol=1e-4)


def test_misses_and_false_alarms_are_as_many_as_the_model_says_and_in_the_region():
    T = 1000
    rate = 3.0
    truth = np.full((T, 3, 2), 1000.0)  # outside of the region
    truth[:, 2] = np.nan
    scans = simulate_scans(
        cluttered(lambda x: np.where(x[:, 0] > 500, 0.8, 1.0), rate / 200), truth, 2
    )
    seen = np.array([(scan > 150).sum() for scan in scans])
    false = np.array([(scan < 150).sum() for scan in scans])
    assert seen.mean() == pytest.approx(1.6, abs=4 * np.sqrt(2 * 0.16 / T))
    assert false.mean() == pytest.approx(rate, abs=4 * np.sqrt(rate / T))
    assert false.var() == pytest.approx(rate, abs=6 * rate * np.sqrt(2 / T))
    places = np.concatenate([scan[scan < 150] for scan in scans])
    assert -50 <= places.min() < -49 < 149 < places.max() <= 150
    assert places.mean() == pytest.approx(50, abs=4 * 200 / np.sqrt(12 * len(places)))


@cases("at", 0, 400)
def test_a_path_has_the_noise_of_the_model_forward_and_back(at):
    path = simulate_path(LINE, np.zeros(2), at, range(1, 401), default_rng(3))
    noise = path[1:] - path[:-1] @ LINE.F.T
    assert_allclose(np.cov(noise.T), LINE.Q, atol=0.08)  # four standard errors
    assert np.abs(noise.mean(axis=0)).max() < 4 * np.sqrt(0.3 / 400)


def test_a_path_asks_the_model_for_its_own_steps_only():
    """Forward to each step from the one before it, back from each to that before: a model may have no others."""
    asked = []

    class Known(hf.models.LinearGaussian):
        def transition_mean(self, x, dt, control, step):
            asked.append(step)
            return super().transition_mean(x, dt, control, step)

    model = Known(LINE.F, LINE.H, LINE.Q, [[1.0]], [0.0, 0.0], EYE)
    assert len(simulate_path(model, np.zeros(2), 4, range(2, 8), default_rng(0))) == 6
    assert set(asked) == {3, 4, 5, 6, 7}


def test_what_cannot_be_simulated_is_named():
    with refusal(r"model: expected a herdfilter.models.WithClutter, got LinearGaussian", TypeError):
        simulate_scans(LINE, np.zeros((1, 1, 2)), 0)
    with refusal(r"truth: expected shape \(\*, \*, 2\)"):
        simulate_scans(cluttered(), np.zeros((1, 2)), 0)
    with refusal("back in time needs a linear transition, UNGM has none"):
        simulate_path(hf.models.UNGM(), np.zeros(1), 3, range(1, 4), default_rng(0))


def map_of(matrix, offset):
    """Return the model of an affine transition that all entries of the state show."""
    eye = np.eye(len(offset))
    return hf.models.from_functions(
        lambda x: x @ matrix.T + offset,
        lambda x: x,
        Q=LINE.Q,
        R=eye,
        initial_mean=offset,
        initial_covariance=eye,
    )


@cases("noise", False, True)
def test_a_path_follows_a_transition_with_an_offset_back(noise):
    matrix = np.array([[0.9, 0.5], [-0.2, 0.8]])
    offset = np.array([3.0, -7.0])
    model = map_of(matrix, offset)
    rng = default_rng(5)
    path = simulate_path(model, np.array([2.0, 0.5]), 200, range(1, 206), rng, noise=noise)
    assert_allclose(path[199], [2.0, 0.5])
    rest = path[1:] - path[:-1] @ matrix.T - offset
    size = np.abs(path).max(axis=1)[1:, None]
    assert (np.abs(rest) < 1e-9 * (1 + size) + (6 * noise)).all()
    assert (np.ptp(rest[-30:], axis=0) > 0.5).all() == noise


def test_a_path_far_away_is_followed_back_though_an_entry_is_nought():
    """What cancels is rounded in proportion to the states, not to the entry."""
    for angle in np.linspace(0.1, 3.0, 5):
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        model = map_of(matrix, np.zeros(2))
        rng = default_rng(0)
        path = simulate_path(model, np.array([1e9, 0.0]), 2, [1, 2], rng, noise=False)
        assert_allclose(path[0], 1e9 * matrix[0], atol=1.0)
