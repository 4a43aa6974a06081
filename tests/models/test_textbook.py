"""The systems after textbooks: what their equations keep, and densities that fit their simulations."""

import numpy as np
import pytest
from helpers import cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.study.data import lidar, textbook
from herdfilter.study.recording import feed, record
from herdfilter.study.scenario import load_scenario, scenario_files


def states(model, n, steps=3):
    """States at random, some steps after the first."""
    rng = default_rng(5)
    x = model.initial.sample(n, rng)
    for step in range(1, steps + 1):
        x = hf.Transition(model, 1.0, None, step).sample(x, rng)
    return x


@cases(
    "name",
    *[
        name
        for name, path in scenario_files().items()
        if b"herdfilter.study.data.textbook:" in path.read_bytes() or name == "lidar"
    ],
)
def test_a_run_is_simulated_and_filtered_to_the_end(name):
    scenario = load_scenario(name)
    model = scenario.build_model()
    made = record(scenario, scenario.simulated.build_model(), None, default_rng(1))
    result = feed(hf.make_filter("bootstrap", model, 200, rng=0), made)
    assert np.isfinite([made.truth, result.means]).all()


def test_a_pendulum_swings_as_one_of_small_angle_and_keeps_its_energy_over_the_top():
    model = textbook.Pendulum()
    dt = 0.002
    x = np.array([[1e-3, 0.0], [0.0, 7.0]])
    for step in range(1, 1001):
        x = model.transition_mean(x, dt, None, step)
    assert x[0, 0] == pytest.approx(1e-3 * np.cos(2 * np.sqrt(9.81)), abs=1e-5)
    energy = x[1, 1] ** 2 / 2 + 9.81 * (1 - np.cos(x[1, 0]))
    assert energy == pytest.approx(24.5, rel=0.01)  # 49 / 2 exceeds 2 g


def test_an_epidemic_moves_whole_people_between_compartments():
    model = textbook.Epidemic()
    rng = default_rng(2)
    x = model.sample(50, rng)
    removed = 0
    for step in range(1, 60):
        after = hf.Transition(model, 1.0, None, step).sample(x, rng)
        assert_array_equal(after[:, :4], np.rint(after[:, :4]))
        left = model.population - after[:, :3].sum(axis=1)
        assert (left >= removed).all()
        assert_array_equal(after[:, 1], x[:, 1] + x[:, 0] - after[:, 0] - after[:, 3])
        x = after
        removed = left
    assert np.median(removed) > 100


def observed(model, x):
    """Many draws of what is observed of one state."""
    return model.sample_observation(np.repeat(x, 20_000, axis=0), default_rng(0), 1)


def test_reports_are_negative_binomial():
    model = textbook.Epidemic()
    x = np.array([[0.0, 0, 0, 40.0, 0.0]])
    counts = np.arange(400)
    log = [model.log_likelihood([y], x, 1)[0] for y in counts]
    mean = 0.3 * 40 + 0.2
    assert_allclose(log, stats.nbinom.logpmf(counts, 10, 10 / (10 + mean)), rtol=1e-9)
    drawn = observed(model, x)
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.var() == pytest.approx(mean + mean**2 / 10, rel=0.05)


def test_range_and_bearing_of_some_landmark_are_a_density_and_drawn_from_it():
    model = textbook.AlikeLandmarks(landmarks=[[3.0, 0.0], [0.0, 4.0]])
    x = np.array([[0.5, 0.5, 0.3]])
    ranges = np.linspace(0, 8, 33)
    bearings = np.linspace(-np.pi, np.pi, 91)
    density = [[np.exp(model.log_likelihood([r, b], x, 1)[0]) for b in bearings] for r in ranges]
    assert trapezoid(trapezoid(density, bearings), ranges) == pytest.approx(1, abs=1e-3)
    drawn = observed(model, x)
    ranges = np.hypot(*(model.landmarks - x[0, :2]).T)
    near = drawn[:, 1] < 0.5  # the first landmark is seen to the right
    assert near.mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[near, 0].mean() == pytest.approx(ranges[0], abs=0.02)


def test_a_ray_is_free_up_to_the_first_occupied_cell():
    """Marched along in steps of a few millimetres, from poses in the hall; off the map it is blocked."""
    occupied = lidar.floor_plan()
    bearings = np.arange(240.0)
    x = np.array([[5.0, 5.0, 0.3], [-1.0, 30.0, 0.0]])
    ranges, blocked = lidar.cast_rays(occupied, x, bearings, 40.0)
    assert (blocked == 0).all()
    reach = np.maximum(ranges + np.append(-np.linspace(1e-9, 20, 5000), 1e-9)[:, None], 0)
    points = x[0, :2] + reach[..., None] * np.stack(
        [np.cos(bearings + 0.3), np.sin(bearings + 0.3)], -1
    )
    *before, after = occupied[tuple((points / lidar.CELL).astype(int).T)].T
    assert not np.any(before)
    assert after.all()


def test_one_bearing_of_twenty_is_an_outlier():
    true = load_scenario("cross_bearings").simulated.build_model()
    x = np.zeros((1, 5))
    residuals = wrap_angles(observed(true, x) - true.observation_mean(x, 1), [0, 1, 2])
    scaled = np.abs(residuals / true.bearing_sd)
    beyond = 0.95 * 2 * stats.norm.sf(3) + 0.05 * 2 * stats.norm.sf(3 / 4)
    assert (scaled > 3).mean() == pytest.approx(beyond, rel=0.1)


JOINT = np.array([[1, 0.5, -0.5, 0], [0.5, 1, 0, -0.5], [-0.5, 0, 1, 0.4], [0, -0.5, 0.4, 1]])


def test_returns_and_next_log_variances_have_the_correlations_that_are_stated():
    model = textbook.Leverage()
    rng = default_rng(3)
    x = states(model, 60_000)
    now = x[:, :2]
    later = x[:, 2:]
    z = model.sample_observation(x, rng, 1)
    assert_array_equal(hf.Transition(model, 1.0, None, 4).sample(x, rng)[:, :2], later)
    epsilon = z * np.exp(-now / 2)
    eta = (later - model.mu - model.phi * (now - model.mu)) / model.sigma
    assert_allclose(np.cov(np.hstack([epsilon, eta]).T), JOINT, atol=0.02)
    assert_allclose(now.std(axis=0), model.sigma / np.sqrt(1 - model.phi**2), rtol=0.1)


def test_the_likelihood_of_returns_is_that_of_the_joint_noise_given_the_step():
    """The density of the returns and the noise together, over that of the noise."""
    model = textbook.Leverage()
    z = np.array([0.3, -0.8])
    x = states(model, 20)
    eta = (x[:, 2:] - model.mu - model.phi * (x[:, :2] - model.mu)) / model.sigma
    both = np.hstack([z * np.exp(-x[:, :2] / 2), eta])
    expected = stats.multivariate_normal(cov=JOINT).logpdf(both) - stats.multivariate_normal(
        cov=JOINT[2:, 2:]
    ).logpdf(eta)
    assert_allclose(model.log_likelihood(z, x, 1), expected - x[:, :2].sum(axis=1) / 2, rtol=1e-9)


def test_predators_and_prey_keep_volterras_constant_without_noise():
    model = textbook.PredatorsAndPrey()
    x = np.array([[30.0, 10.0, np.log(model.growth)]])

    def constant(x):
        u, v = x[0, :2]
        return (
            model.conversion * u
            - model.death * np.log(u)
            + model.predation * v
            - model.growth * np.log(v)
        )

    path = [x := model.transition(x, np.zeros((1, 3)), 0.5, None, step) for step in range(1, 60)]
    assert_allclose([constant(one) for one in path], constant(path[0]), rtol=2e-3)
    assert np.ptp([one[0, 0] for one in path]) > 10


def test_counts_of_prey_are_lognormal():
    model = textbook.PredatorsAndPrey()
    x = np.array([[20.0, 5.0, 0.0], [40.0, 5.0, 0.0]])
    expected = stats.lognorm.logpdf(25.0, 0.25, scale=x[:, 0])
    assert_allclose(model.log_likelihood([25.0], x, 1), expected, rtol=1e-9)
    law = stats.lognorm(0.25, scale=x[:, 0])
    assert_allclose(model.observation_mean(x, 1)[:, 0], law.mean(), rtol=1e-9)
    assert_allclose(model.observation_covariance(1, x)[:, 0, 0], law.var(), rtol=1e-9)


def test_a_leverage_that_leaves_no_covariance_is_named():
    with refusal("leverage: expected less"):
        textbook.Leverage(leverage=-0.99)
