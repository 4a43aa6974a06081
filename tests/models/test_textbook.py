"""The systems after textbooks: what their equations keep, and densities that fit their simulations."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.models.contract import log_likelihood, sample_initial, sample_transition
from herdfilter.study import data
from herdfilter.study.data import textbook
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario, scenario_files

MODELS = {cls.__name__: cls for cls in map(vars(textbook).get, textbook.__all__)}


def scenarios():
    """Names of the scenarios of these models."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in scenario_files().items()}
    return [name for name, text in texts.items() if "herdfilter.study.data.textbook:" in text]


def states(model, n, steps=3):
    """States at random, some steps after the first."""
    rng = np.random.default_rng(5)
    x = sample_initial(model, n, rng)
    for step in range(1, steps + 1):
        x = sample_transition(model, x, rng, 1.0, None, step)
    return x


def test_each_model_has_a_scenario_whose_numbers_are_the_defaults():
    assert data.SCENARIOS.joinpath("textbook.py").is_file()
    found = {load_scenario(name).model["type"].partition(":")[2]: load_scenario(name).build_model() for name in scenarios()}
    assert set(found) == set(MODELS)
    for name, model in found.items():
        for one in dataclasses.fields(model):
            np.testing.assert_array_equal(getattr(model, one.name), getattr(MODELS[name](), one.name), err_msg=one.name)


@pytest.mark.parametrize("name", scenarios())
def test_a_run_is_simulated_and_filtered_to_the_end(name):
    scenario = load_scenario(name)
    model = scenario.build_model()
    made = record(scenario, scenario.simulated.build_model(), None, np.random.default_rng(1))
    result = hf.make_filter("bootstrap", model, 200, rng=0).run(made.observations, dt=made.dt, controls=made.controls)
    assert np.isfinite(made.truth).all()
    assert np.isfinite(result.means).all()


def test_a_pendulum_swings_as_one_of_small_angle_and_keeps_its_energy_over_the_top():
    model, dt = textbook.Pendulum(), 0.002
    small, fast = np.array([[1e-3, 0.0]]), np.array([[0.0, 7.0]])
    angles = []
    for step in range(1, 1001):
        small, fast = (model.transition_mean(x, dt, None, step) for x in (small, fast))
        angles.append(fast[0, 0])
    assert small[0, 0] == pytest.approx(1e-3 * np.cos(2 * np.sqrt(9.81)), abs=1e-5)
    assert max(angles) > np.pi  # 49 / 2 exceeds 2 g
    energy = fast[0, 1] ** 2 / 2 + 9.81 * (1 - np.cos(fast[0, 0]))
    assert energy == pytest.approx(24.5, rel=0.01)


def test_an_epidemic_moves_whole_people_between_compartments():
    model = textbook.Epidemic()
    rng = np.random.default_rng(2)
    x = sample_initial(model, 50, rng)
    removed = np.zeros(50)
    for step in range(1, 60):
        after = sample_transition(model, x, rng, 1.0, None, step)
        np.testing.assert_array_equal(after[:, :4], np.rint(after[:, :4]))
        left = model.population - after[:, :3].sum(axis=1)
        assert (after[:, 0] <= x[:, 0]).all()
        assert (left >= removed).all()
        np.testing.assert_array_equal(after[:, 1], x[:, 1] + x[:, 0] - after[:, 0] - after[:, 3])
        x, removed = after, left
    assert np.median(removed) > 100


def test_reports_are_negative_binomial():
    model, x = textbook.Epidemic(), np.array([[0.0, 0, 0, 40.0, 0.0]])
    counts = np.arange(400)
    log = [model.log_likelihood([y], x, 1)[0] for y in counts]
    mean = 0.3 * 40 + 0.2
    np.testing.assert_allclose(log, stats.nbinom.logpmf(counts, 10, 10 / (10 + mean)), rtol=1e-9)
    drawn = model.sample_observation(np.repeat(x, 20_000, axis=0), np.random.default_rng(0), 1)
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.var() == pytest.approx(mean + mean**2 / 10, rel=0.05)


def test_range_and_bearing_of_some_landmark_are_a_density_and_drawn_from_it():
    model = textbook.AlikeLandmarks(landmarks=[[3.0, 0.0], [0.0, 4.0]])
    x = np.array([[0.5, 0.5, 0.3]])

    ranges, bearings = np.linspace(0, 8, 33), np.linspace(-np.pi, np.pi, 91)
    density = [[np.exp(model.log_likelihood([r, b], x, 1)[0]) for b in bearings] for r in ranges]
    assert trapezoid(trapezoid(density, bearings), ranges) == pytest.approx(1, abs=1e-3)
    drawn = model.sample_observation(np.repeat(x, 20_000, axis=0), np.random.default_rng(0), 1)
    ranges = np.hypot(*(model.landmarks - x[0, :2]).T)
    assert drawn[:, 0].mean() == pytest.approx(ranges.mean(), abs=0.02)
    near = drawn[:, 1] < 0.5  # the first landmark is seen to the right
    assert near.mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[near, 0].mean() == pytest.approx(ranges[0], abs=0.02)


def test_one_bearing_of_twenty_is_an_outlier_that_the_likelihood_does_not_know():
    scenario = load_scenario("cross_bearings")
    believed, true = scenario.build_model(), scenario.simulated.build_model()
    x = np.zeros((20_000, 5))
    residuals = wrap_angles(true.sample_observation(x, np.random.default_rng(0), 1) - true.observation_mean(x, 1), [0, 1, 2])
    scaled = np.abs(residuals / true.bearing_sd)
    beyond = 0.95 * 2 * stats.norm.sf(3) + 0.05 * 2 * stats.norm.sf(3 / 4)
    assert (scaled > 3).mean() == pytest.approx(beyond, rel=0.1)
    expected = stats.norm.logpdf(wrap_angles(np.array([0.9, 0.3, -0.4]) - true.observation_mean(x[:1], 1), [0]), scale=0.03)
    np.testing.assert_allclose(log_likelihood(believed, np.array([0.9, 0.3, -0.4]), x[:1], 1), expected.sum(), rtol=1e-9)


def test_returns_and_next_log_variances_have_the_correlations_that_are_stated():
    model, rng = textbook.Leverage(), np.random.default_rng(3)
    x = states(model, 60_000)
    now, later = x[:, :2], x[:, 2:]
    z = model.sample_observation(x, rng, 1)
    np.testing.assert_array_equal(sample_transition(model, x, rng, 1.0, None, 4)[:, :2], later)
    epsilon = z * np.exp(-now / 2)
    eta = (later - model.mu - model.phi * (now - model.mu)) / model.sigma
    expected = [[1, 0.5, -0.5, 0], [0.5, 1, 0, -0.5], [-0.5, 0, 1, 0.4], [0, -0.5, 0.4, 1]]
    np.testing.assert_allclose(np.cov(np.hstack([epsilon, eta]).T), expected, atol=0.02)
    np.testing.assert_allclose(now.std(axis=0), model.sigma / np.sqrt(1 - model.phi**2), rtol=0.1)
    np.testing.assert_allclose(model.initial.sample(60_000, 1).std(axis=0)[2:], now.std(axis=0), rtol=0.1)


def test_the_likelihood_of_returns_is_that_of_the_joint_noise_given_the_step():
    """The density of the returns and the noise together, over that of the noise."""
    model, z = textbook.Leverage(), np.array([0.3, -0.8])
    x = states(model, 20)
    joint = np.array([[1, 0.5, -0.5, 0], [0.5, 1, 0, -0.5], [-0.5, 0, 1, 0.4], [0, -0.5, 0.4, 1]])
    eta = (x[:, 2:] - model.mu - model.phi * (x[:, :2] - model.mu)) / model.sigma
    both = np.hstack([z * np.exp(-x[:, :2] / 2), eta])
    expected = stats.multivariate_normal(cov=joint).logpdf(both) - stats.multivariate_normal(cov=joint[2:, 2:]).logpdf(eta)
    np.testing.assert_allclose(model.log_likelihood(z, x, 1), expected - x[:, :2].sum(axis=1) / 2, rtol=1e-9)


def test_predators_and_prey_keep_volterras_constant_without_noise():
    model = textbook.PredatorsAndPrey()
    x = np.array([[30.0, 10.0, np.log(model.growth)]])

    def constant(x):
        u, v = x[0, :2]
        return model.conversion * u - model.death * np.log(u) + model.predation * v - model.growth * np.log(v)

    path = [x := model.transition(x, np.zeros((1, 3)), 0.5, None, step) for step in range(1, 60)]
    np.testing.assert_allclose([constant(one) for one in path], constant(path[0]), rtol=2e-3)
    assert np.ptp([one[0, 0] for one in path]) > 10


def test_counts_of_prey_are_lognormal():
    model, x = textbook.PredatorsAndPrey(), np.array([[20.0, 5.0, 0.0], [40.0, 5.0, 0.0]])
    expected = stats.lognorm.logpdf(25.0, 0.25, scale=x[:, 0])
    np.testing.assert_allclose(model.log_likelihood([25.0], x, 1), expected, rtol=1e-9)
    law = stats.lognorm(0.25, scale=x[:, 0])
    np.testing.assert_allclose(model.observation_mean(x, 1)[:, 0], law.mean(), rtol=1e-9)
    np.testing.assert_allclose(model.observation_covariance(1, x)[:, 0, 0], law.var(), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("Pendulum", {"gravity": -1.0}, "gravity: expected a positive"),
        ("AlikeLandmarks", {"landmarks": np.empty((0, 2))}, "landmarks: expected at least one"),
        ("CrossBearings", {"outlier_share": 1.5}, "outlier_share: expected a share from 0 to 1"),
        ("Leverage", {"leverage": -0.99}, "leverage: expected less"),
        ("PredatorsAndPrey", {"persistence": 1.0}, "persistence: expected a number from 0 to below 1"),
    ],
)
def test_a_number_that_does_not_fit_is_named(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name](**wrong)
