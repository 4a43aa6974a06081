"""Forecasts say what the filter would say without observations, hold the truth as often as they claim, change nothing."""

import threading
from datetime import datetime, timedelta

import numpy as np
import pytest
from helpers import cases
from matplotlib.dates import date2num
from scipy.stats import binom, norm

import herdfilter as hf
from herdfilter.catalogue import catalogue

EYE = np.eye(2)
PLAIN = hf.models.linear_chain(2)
LIVELY = hf.models.LinearGaussian(0.9 * EYE, EYE, 2.0 * EYE, EYE, np.zeros(2), EYE)
MODELS = {"plain": PLAIN, "jumping": hf.models.JumpMarkov([PLAIN, LIVELY], [[0.9, 0.1], [0.2, 0.8]])}
FILTERS = [name for name, table in catalogue().items() if "tracker" not in table]
Z = [[0.1, 0.2], [1.0, -0.3], [0.4, 0.6], [0.2, 0.1]]


def made(name, model, n=12):
    try:
        online = hf.make_filter(name, model, n_particles=n, rng=1)
    except (TypeError, ValueError) as error:
        pytest.skip(str(error))
    if not hasattr(online, "predict"):
        pytest.skip("a batch filter")
    return online


def followed(model, n=100, name="auto", steps=10, seed=0):
    _, z = hf.simulate(model, steps, rng=seed)
    pf = hf.make_filter(name, model, n_particles=n, rng=seed)
    pf.run(z)
    return pf


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_that_is_asked_goes_on_with_equal_bits(name, kind):
    asked, other = (made(name, MODELS[kind]) for _ in range(2))
    for k, z in enumerate(Z):
        for one in (asked, other):
            one.predict(0.5)
        try:
            if k != 1:
                asked.forecast(3)
                asked.forecast(2, rng=7)
            records = [one.update(z) for one in (asked, other)]
        except TypeError as error:
            pytest.skip(str(error))
        if k != 2:
            asked.forecast(times=[asked.time + 0.5, asked.time + 2.0])
        assert records[0].step == records[1].step == k + 1
        for field in ("mean", "covariance", "log_likelihood", "ess"):
            np.testing.assert_array_equal(*(getattr(record, field) for record in records), err_msg=field)
        if hasattr(asked, "particles"):
            np.testing.assert_array_equal(asked.particles, other.particles)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["bootstrap", "sqmc", "auto", "herded-kh", "enkf", "imm", "mkf", "edh"])
def test_it_is_what_the_filter_says_when_it_predicts_on(name, kind):
    online = made(name, MODELS[kind])
    for z in Z:
        online.predict()
        online.update(z)
    online.predict()  # a prediction that waits for its observation
    ahead = online.forecast(3, dt=[0.5, 1.0, 2.0])
    assert ahead.steps.tolist() == [6, 7, 8]
    for k, dt in enumerate([0.5, 1.0, 2.0]):
        online.predict(dt)
        np.testing.assert_array_equal(ahead.means[k], online.mean)
        np.testing.assert_array_equal(ahead.covariances[k], online.covariance)
        mean, covariance = online.predicted_observation()
        np.testing.assert_array_equal(ahead.observation_means[k], mean)
        np.testing.assert_array_equal(ahead.observation_covariances[k], covariance)
        if ahead.particles is not None:
            np.testing.assert_array_equal(ahead.particles[k], online.particles)


@pytest.mark.parametrize("name", ["ekf", "ukf", "ckf", "auto", "bootstrap"])
def test_a_linear_gaussian_forecast_is_kalmans(name):
    """Kalman filters are exact, particles right to a tenth of a standard deviation, and in the tails no worse than draws."""
    F, H, Q, R = np.array([[1.0, 1.0], [0.0, 0.95]]), np.array([[1.0, 0.5]]), np.diag([0.1, 0.2]), np.array([[0.5]])
    model = hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0], EYE)
    online = followed(model, 100 if name == "auto" else 20_000, name)
    mean, covariance = online.mean, online.covariance
    ahead = online.forecast(12)
    for k in range(12):
        mean, covariance = F @ mean, F @ covariance @ F.T + Q
        sd, seen, seen_sd = np.sqrt(np.diag(covariance)), H @ mean, np.sqrt((H @ covariance @ H.T + R)[0, 0])
        exact = name in ("ekf", "ukf", "ckf")
        off = 1e-9 if exact else 0.1
        np.testing.assert_allclose((ahead.means[k] - mean) / sd, 0, atol=off)
        np.testing.assert_allclose(np.sqrt(np.diagonal(ahead.covariances[k])) / sd, 1, atol=off)
        np.testing.assert_allclose((ahead.observation_means[k] - seen) / seen_sd, 0, atol=off)
        levels = np.array([0.9, 0.025, 0.5])
        bounds = mean + norm.ppf(levels)[:, None] * sd
        chance = np.sqrt(levels * (1 - levels) / getattr(online, "n_particles", np.inf)) / norm.pdf(norm.ppf(levels))
        assert (np.abs(ahead.quantiles(levels)[k] - bounds) / sd < 4 * chance[:, None] + 1e-9).all()
        bounds = seen + norm.ppf(levels)[:, None] * seen_sd
        assert (np.abs(ahead.observation_quantiles(levels)[k] - bounds) / seen_sd < 4 * chance[:, None] + 1e-9).all()


@pytest.mark.parametrize(("name", "n"), [("bootstrap", 500), ("auto", 100)])
@pytest.mark.parametrize("model", [hf.models.UNGM(), hf.models.StochasticVolatility()], ids=["ungm", "volatility"])
def test_intervals_hold_the_truth_as_often_as_they_say(model, name, n):
    runs, horizons = 120, np.array([1, 5, 20])
    inside = np.zeros((2, 2, 3))
    for run in range(runs):
        truth, z = hf.simulate(model, 15 + 20, rng=run)
        pf = hf.make_filter(name, model, n_particles=n, rng=run)
        pf.run(z[:15])
        ahead = pf.forecast(20)
        for i, (ask, came) in enumerate([(ahead.quantiles, truth), (ahead.observation_quantiles, z)]):
            bounds = ask([0.25, 0.75, 0.025, 0.975])[horizons - 1, :, 0]
            came = came[15 + horizons - 1, 0]
            inside[i] += [(bounds[:, j] <= came) & (came <= bounds[:, j + 1]) for j in (0, 2)]
    for j, mass in enumerate((0.5, 0.95)):  # twelve counts of each case: one in 8,000 would be outside by chance
        low, high = binom.ppf([5e-6, 1 - 5e-6], runs, mass)
        assert (low <= inside[:, j]).all()
        assert (inside[:, j] <= high).all()


def test_quantiles_of_observations_are_those_of_the_mixture():
    pf = followed(hf.models.UNGM(), 50, "bootstrap")
    ahead = pf.forecast(4)
    levels = np.array([0.95, 0.05, 0.3])
    for k, bounds in enumerate(ahead.observation_quantiles(levels)[:, :, 0]):
        centres = pf.model.observation_mean(ahead.particles[k], ahead.steps[k])[:, 0]
        sd = np.sqrt(pf.model.observation_covariance(1)[0, 0])
        np.testing.assert_allclose(norm.cdf((bounds[:, None] - centres) / sd) @ ahead.weights[k], levels, atol=1e-9)
    assert ahead.observations.shape == (4, 1000, 1)
    drawn = np.quantile(ahead.observations[:, :, 0], levels, axis=1).T
    spread = np.sqrt(ahead.observation_covariances[:, 0])
    assert (np.abs(drawn - ahead.observation_quantiles(levels)[:, :, 0]) < 0.2 * spread).all()


def test_quantiles_of_angles_lie_about_their_mean():
    model = hf.models.from_functions(
        lambda x: x, lambda x: x, [[0.01]], [[0.04]], [np.pi - 0.01], [[0.01]], circular=[0], observation_circular=[0]
    )
    for online in (hf.make_filter("auto", model, 100), hf.ExtendedKalmanFilter(model)):
        ahead = online.forecast(3)
        for bounds in (ahead.quantiles([0.025, 0.975]), ahead.observation_quantiles([0.025, 0.975])):
            widths = bounds[:, 1, 0] - bounds[:, 0, 0]
            assert ((widths > 0.4) & (widths < 1.3)).all()
            assert (bounds[:, 1, 0] > np.pi).all() or (bounds[:, 0, 0] < -np.pi).all()
        np.testing.assert_allclose(np.abs(ahead.means), np.pi, atol=0.05)


@pytest.mark.parametrize("start", [None, datetime(2026, 3, 1)], ids=["numbers", "dates"])
def test_a_forecast_goes_on_where_the_past_ends(start):
    """On the clock of the filter, so that the fan joins the past in one picture."""
    pf = hf.make_filter("auto", hf.models.linear_chain(1), 50)
    past, ahead = pf.run([[0.3], [0.2]], dt=60.0, start=start), pf.forecast(2, dt=60.0)
    times = np.array([*past.times, *ahead.times], dtype=float if start is None else "M8[us]")
    assert (np.diff(times) == (60.0 if start is None else np.timedelta64(60, "s"))).all()
    then = ahead.times[-1] if start is None else start + timedelta(seconds=240)
    np.testing.assert_array_equal(pf.forecast(times=[then]).times, [then])
    axes = ahead.plot(past.plot())
    assert axes.get_xlim()[1] >= (240.0 if start is None else date2num(then))


def test_times_steps_and_controls_lead_there():
    model = hf.models.from_functions(
        lambda x, dt, control: x + dt * np.asarray(control)[0], lambda x: x, [[1e-12]], [[1.0]], [0.0], [[1e-12]]
    )
    kf = hf.ExtendedKalmanFilter(model)
    by_times = kf.forecast(times=[0.5, 1.5, 4.0], controls=np.array([[1.0], [2.0], [-1.0]]))
    np.testing.assert_allclose(by_times.means[:, 0], [0.5, 2.5, 0.0], atol=1e-9)
    assert by_times.times.tolist() == [0.5, 1.5, 4.0]
    by_steps = kf.forecast(3, dt=[0.5, 1.0, timedelta(seconds=2.5)], controls=np.array([[1.0], [2.0], [-1.0]]))
    np.testing.assert_array_equal(by_steps.means, by_times.means)
    np.testing.assert_allclose(by_steps.times, by_times.times)
    assert list(by_steps.to_dataframe()) == ["step", "time", "x0_mean", "x0_sd"]


def test_a_sensor_takes_the_place_of_what_the_model_observes():
    sum_of_both = hf.Sensor(lambda x: x.sum(axis=1, keepdims=True), [[0.25]])
    blind = hf.models.from_functions(lambda x: 0.5 * x, None, EYE, None, np.zeros(2), EYE)
    for model in (PLAIN, blind):
        ahead = hf.ParticleFilter(model, 500, rng=0).forecast(2, sensor=sum_of_both)
        np.testing.assert_allclose(ahead.observation_means[:, 0], ahead.means.sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(ahead.observation_covariances[:, 0, 0], ahead.covariances.sum(axis=(1, 2)) + 0.25)
    ahead = hf.ParticleFilter(blind, 50, rng=0).forecast(2)
    assert ahead.observation_means is None
    assert ahead.observations is None
    with pytest.raises(ValueError, match=r"observations: expected a model with .* give forecast a sensor"):
        ahead.observation_quantiles(0.5)


def test_a_forecast_of_a_target_in_clutter_is_of_its_detection():
    model = hf.models.WithClutter(PLAIN, 0.9, 0.01)
    pf = hf.ParticleFilter(model, 300, rng=0)
    ahead, plain = pf.forecast(3), hf.ParticleFilter(PLAIN, 300, rng=0).forecast(3)
    np.testing.assert_array_equal(ahead.observations, plain.observations)
    np.testing.assert_array_equal(ahead.observation_quantiles([0.1, 0.9]), plain.observation_quantiles([0.1, 0.9]))


class Dropping(hf.models.UNGM):
    """Every other observation is missing."""

    def sample_observation(self, x, rng, step):
        z = self.observation_mean(x, step) + rng.standard_normal(x.shape)
        return np.where(rng.random(x.shape) < 0.5, np.nan, z)


def test_draws_with_missing_entries_have_the_quantiles_of_the_others():
    ahead = hf.ParticleFilter(Dropping(), 2000, rng=0).forecast(2)
    assert 0.4 < np.isnan(ahead.observations).mean() < 0.6
    whole = hf.ParticleFilter(hf.models.UNGM(), 2000, rng=0).forecast(2)
    gap = ahead.observation_quantiles([0.1, 0.5, 0.9]) - whole.observation_quantiles([0.1, 0.5, 0.9])
    assert (np.abs(gap) < 0.3 * np.sqrt(whole.observation_covariances)).all()


class Locked(hf.models.UNGM):
    """A model that cannot be copied in depth."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "lock", threading.Lock())


@pytest.mark.parametrize("name", ["bootstrap", "auto"])
def test_models_are_not_copied(name):
    pf = hf.make_filter(name, Locked(), 20, rng=0)
    pf.predict()
    assert len(pf.forecast(2, rng=1)) == 2


def test_draws_are_the_callers_or_the_same_again():
    pf = followed(PLAIN, 50, "bootstrap")
    one, again = pf.forecast(3), pf.forecast(3)
    np.testing.assert_array_equal(one.particles, again.particles)
    np.testing.assert_array_equal(one.observations, again.observations)
    rng = np.random.default_rng(5)
    first, second, seeded = pf.forecast(3, rng=rng), pf.forecast(3, rng=rng), pf.forecast(3, rng=5)
    np.testing.assert_array_equal(first.observations, seeded.observations)
    for name in ("particles", "observations"):
        assert not np.array_equal(getattr(first, name), getattr(second, name))
        assert not np.array_equal(getattr(first, name), getattr(one, name))


@cases(
    "ask message",
    (lambda pf: pf.forecast(), "steps: expected a number of steps, or times without it, got None and None"),
    (lambda pf: pf.forecast(2, times=[1.0, 2.0]), "steps: expected a number of steps, or times without it, got 2"),
    (lambda pf: pf.forecast(0), "steps: expected"),
    (lambda pf: pf.forecast(3, dt=[1.0, 2.0]), "dt: expected one per step, 3, got 2"),
    (lambda pf: pf.forecast(3, dt=-1.0), "dt: expected a positive"),
    (lambda pf: pf.forecast(times=[1.0, 1.0]), "times: expected increasing times"),
    (lambda pf: pf.forecast(3, controls=[1.0]), "controls: expected one per step, 3, got 1"),
    (lambda pf: pf.forecast(3, sensor="radar"), "sensor: expected a herdfilter.Sensor"),
    (lambda pf: pf.forecast(3).quantiles([0.5, 95]), "probabilities: expected numbers between 0 and 1"),
    (lambda pf: pf.forecast(3).plot(quantiles=[95]), "quantiles: expected a probability"),
)
def test_what_does_not_fit_is_named(ask, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ask(hf.ParticleFilter(PLAIN, 10, rng=0))


def test_a_forecast_has_one_short_line():
    assert repr(hf.ExtendedKalmanFilter(PLAIN).forecast(3)) == "Forecast(steps=3, dim=2, observations=array(3, 2))"
    assert "particles=array(2, 10, 2)" in repr(hf.ParticleFilter(PLAIN, 10, rng=0).forecast(2))
