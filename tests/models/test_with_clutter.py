"""Missed detections and clutter: what a scan may be, how it is simulated, and what is refused."""

import copy

import numpy as np
import pytest
from helpers import EYE, cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.models import WithClutter

PLANE = hf.models.LinearGaussian(EYE, EYE, EYE, EYE, [0.0, 1.0], EYE)
X = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])


@cases(
    "z message",
    (
        [[1.0, 2.0], [3.0]],
        r"z: expected a scan, detections \(k, 2\), got \[\[1.0, 2.0\], \[3.0\]\] at step 1",
    ),
    ([[1.0, np.nan]], r"z: expected a scan.* of finite numbers, got \[1.0, nan\] at step 1; leave"),
    ([[1.0, 2.0, 3.0]] * 2, r"z: expected .*2 numbers each, got shape \(2, 3\) at step 1"),
    ([1.0, 2.0], r"z: expected a scan.* of 2 numbers each, got shape \(2,\) at step 1"),
)
def test_scans_that_are_none_are_named_and_leave_the_filter_as_it_was(z, message):
    jumping = hf.models.JumpMarkov([PLANE] * 2, EYE)
    for name, model in (("bootstrap", PLANE), ("bootstrap", jumping), ("ukf", PLANE)):
        pf = hf.make_filter(name, WithClutter(model, 0.9, 0.1), 20, rng=1)
        pf.predict()
        other = copy.deepcopy(pf)
        with refusal(message):
            pf.update(z)
        pf.update(X[:, :2])
        other.update(X[:, :2])
        assert_array_equal(pf.mean, other.mean)


@cases(
    "arguments message",
    ((0.0, 0.1), "detection_probability: expected a number above 0, up to 1, or a function, got 0"),
    ((0.9, -1.0), "clutter_density: expected a finite number of at least 0, or a function, got -1"),
    ((0.9, 0.1, [[0.0, 1.0]]), r"^region: expected bounds of shape \(2, 2\), got"),
)
def test_numbers_out_of_range_are_named(arguments, message):
    with refusal(message):
        WithClutter(PLANE, *arguments)
    with refusal(message):
        hf.Sensor(lambda x: x, EYE, (), None, None, *arguments)


def test_a_region_does_not_call_functions_of_the_state_before_a_filter_does():
    def unready(self, x, step):
        raise RuntimeError("no data yet")

    def of_state(self, step, x):
        return np.broadcast_to(EYE, (len(x), 2, 2))

    functions = {"observation_mean": unready, "observation_covariance": of_state}
    model = type("Unready", (type(PLANE),), functions).__new__(type(PLANE))
    vars(model).update(vars(PLANE))
    assert WithClutter(model, 0.9, 0.1, [[0.0, 1.0]] * 2).region.shape == (2, 2)


def near(x):
    """Detection probability of a sensor at the origin that sees up to a distance of 2."""
    return 0.9 * (np.hypot(*x.T) < 2)


def rising(z):
    """Clutter density that rises along the first entry."""
    return 0.01 * (1 + np.abs(z[:, 0] - 100))


SCAN = np.array([[0.2, 0.9], [103.0, 3.0], [104.0, 0.0]])


@cases(
    "p clutter chances density",
    (0.9, 0.1, np.full(3, 0.9), np.full(3, 0.1)),
    (near, rising, near(X), rising(SCAN)),
)
def test_the_likelihood_is_a_sum_over_what_may_be_of_the_state(p, clutter, chances, density):
    g = np.array([np.exp(-0.5 * ((z - X) ** 2).sum(axis=1)) / (2 * np.pi) for z in SCAN])
    model = WithClutter(PLANE, p, clutter)
    expected = 1 - chances + chances * (g / density[:, None]).sum(axis=0)
    assert_allclose(np.exp(model.log_likelihood(SCAN, X, 1)), expected)
    assert_allclose(np.exp(model.log_likelihood(np.empty((0, 2)), X, 1)), 1 - chances)
    alone = WithClutter(PLANE, p, 0.0)
    assert_allclose(np.exp(alone.log_likelihood(SCAN[:1], X, 1)), chances * g[0])


def test_simulation_thins_detections_by_the_state_and_clutter_by_the_place():
    model = WithClutter(PLANE, near, rising, region=[[100, 120], [100, 120]])
    x = np.repeat(X, 400, axis=0)
    scans = model.sample_observation(x, np.random.default_rng(1), 1)
    seen = np.array([(scan < 100).any(axis=1).sum() for scan in scans]).reshape(3, -1).mean(axis=1)
    assert_allclose(seen, near(X), atol=4 * np.sqrt(0.09 / 400))
    assert seen[1] == 0
    places = np.concatenate([scan[(scan > 100).all(axis=1)] for scan in scans])[:, 0] - 100
    expected = 20 * (0.01 * (20 + 200))  # the integral over the region
    assert len(places) / len(x) == pytest.approx(expected, abs=5 * np.sqrt(expected / len(x)))
    assert places.mean() == pytest.approx((200 + 8000 / 3) / 220, abs=5 * 6 / np.sqrt(len(places)))


test_clutter_without_a_region_or_between_the_points_of_a_grid_is_named = refuses(
    lambda *clutter: hf.simulate(WithClutter(PLANE, 0.9, *clutter), 1000, rng=1),
    (0.1, None, "region: expected bounds"),
    (
        lambda z: 1e-3 + 1e3 * (np.abs(z[:, 0] - 0.5101) < 0.004),
        [[0, 1], [0, 1000]],
        r"^clutter_density: expected up to 0.002, twice the largest on a grid .*, got 1000.001 at \[0.5.* at step",
    ),
)


@cases(
    "p density message",
    (
        lambda x: 1.5 + 0 * x[:, 0],
        0.1,
        "detection_probability: expected probabilities from 0 to 1, got 1.5",
    ),
    (
        lambda x: 1 + 1e-12 + 0 * x[:, 0],
        0.1,
        "detection_probability: .* from 0 to 1, got 1.000000000001 at step 1",
    ),
    (
        lambda x: x[:, 7],
        0.1,
        r"detection_probability: expected probabilities .* rows \(20, 2\), got IndexError\(",
    ),
    (
        0.9,
        lambda z: -1.0 + 0 * z[:, 0],
        "clutter_density: expected finite densities above 0, got -1",
    ),
    (0.9, 0.0, ".*at most one detection, as clutter_density is 0, got 2"),
)
def test_values_of_functions_out_of_range_are_named(p, density, message):
    scan = [[1.0, 2.0], [0.3, 0.1]]
    sensor = hf.Sensor(lambda x: x, EYE, (), None, None, p, density)
    for model, used in ((WithClutter(PLANE, p, density), None), (PLANE, sensor)):
        pf = hf.make_filter("bootstrap", model, 20, rng=1)
        pf.predict()
        before = pf.mean
        with refusal(f"^{message}") as caught:
            pf.update(scan, sensor=used)
        assert "at step 1" in str(caught.value)
        assert_array_equal(pf.mean, before)
