"""Forecasts say what the filter would say without observations, hold the truth as often as they claim, change nothing."""

import threading
from datetime import timedelta

import numpy as np
from helpers import CHAIN, EYE, JUMPING, SERIES, cases, on_a_line, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

import herdfilter as hf

MODELS = {"plain": CHAIN, "jumping": JUMPING}
CASES = [
    ("bootstrap", "jumping"),
    ("sqmc", "plain"),
    ("auto", "plain"),
    ("auto", "jumping"),
    ("herded-kh", "plain"),
]
CASES += [
    ("enkf", "plain"),
    ("imm", "jumping"),
    ("mkf", "jumping"),
    ("ledh", "plain"),
    ("ukf", "plain"),
]


def followed(model, n=100, name="auto", steps=10, seed=0):
    _, z = hf.simulate(model, steps, rng=seed)
    pf = hf.make_filter(name, model, n_particles=n, rng=seed)
    pf.run(z)
    return pf


@cases("name kind", *CASES)
def test_a_filter_that_is_asked_goes_on_with_equal_bits_and_says_what_was_forecast(name, kind):
    asked, other = (hf.make_filter(name, MODELS[kind], n_particles=12, rng=1) for _ in range(2))
    for k, z in enumerate(SERIES):
        for one in (asked, other):
            one.predict(0.5)
        if k != 1:
            asked.forecast(3)
            asked.forecast(2, rng=7)
        records = [one.update(z) for one in (asked, other)]
        if k != 2:
            asked.forecast(times=[asked.time + 0.5, asked.time + 2.0])
        for field in ("mean", "covariance", "log_likelihood", "ess"):
            assert_array_equal(*(getattr(record, field) for record in records), err_msg=field)
    asked.predict()  # a prediction that waits for its observation
    ahead = asked.forecast(3, dt=[0.5, 1.0, 2.0])
    assert ahead.steps.tolist() == [6, 7, 8]
    for k, dt in enumerate([0.5, 1.0, 2.0]):
        asked.predict(dt)
        assert_array_equal(ahead.means[k], asked.mean)
        assert_array_equal(ahead.covariances[k], asked.covariance)
        mean, covariance = asked.predicted_observation()
        assert_array_equal(ahead.observation_means[k], mean)
        assert_array_equal(ahead.observation_covariances[k], covariance)
        if ahead.particles is not None:
            assert_array_equal(ahead.particles[k], asked.particles)


@cases("name", "ukf", "auto", "bootstrap")
def test_a_linear_gaussian_forecast_is_kalmans(name):
    """Kalman filters are exact, particles right to a tenth of a standard deviation, and in the tails no worse than draws."""
    F = np.array([[1.0, 1.0], [0.0, 0.95]])
    H = np.array([[1.0, 0.5]])
    Q = np.diag([0.1, 0.2])
    R = np.array([[0.5]])
    online = followed(
        hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0], EYE),
        100 if name == "auto" else 10_000,
        name,
    )
    mean = online.mean
    covariance = online.covariance
    ahead = online.forecast(12)
    off = 1e-9 if name == "ukf" else 0.1
    levels = np.array([0.9, 0.025, 0.5])
    normal = norm.ppf(levels)[:, None]
    chance = np.sqrt(levels * (1 - levels) / getattr(online, "n_particles", np.inf)) / norm.pdf(
        normal[:, 0]
    )
    for k in range(12):
        mean = F @ mean
        covariance = F @ covariance @ F.T + Q
        seen = ahead.observation_means, ahead.observation_covariances, ahead.observation_quantiles
        for exact, spread, (means, covariances, quantiles) in (
            (mean, covariance, (ahead.means, ahead.covariances, ahead.quantiles)),
            (H @ mean, H @ covariance @ H.T + R, seen),
        ):
            sd = np.sqrt(np.diag(spread))
            assert_allclose((means[k] - exact) / sd, 0, atol=off)
            assert_allclose(np.sqrt(np.diag(covariances[k])) / sd, 1, atol=off)
            assert (
                np.abs(quantiles(levels)[k] - exact - normal * sd) / sd < 4 * chance[:, None] + 1e-9
            ).all()


@cases(
    "model name n",
    (hf.models.UNGM(), "auto", 60),
    (hf.models.StochasticVolatility(), "bootstrap", 300),
    ids=["ungm", "volatility"],
)
def test_intervals_hold_the_truth_as_often_as_they_say(model, name, n):
    runs = 40
    horizons = np.array([1, 5, 20])
    inside = np.zeros((2, 2, 3))
    for run in range(runs):
        truth, z = hf.simulate(model, 10 + 20, rng=run)
        pf = hf.make_filter(name, model, n_particles=n, rng=run)
        pf.run(z[:10])
        ahead = pf.forecast(20)
        for i, (ask, came) in enumerate(
            [(ahead.quantiles, truth), (ahead.observation_quantiles, z)]
        ):
            bounds = ask([0.25, 0.75, 0.025, 0.975])[horizons - 1, :, 0]
            came = came[9 + horizons, 0]
            inside[i] += [(bounds[:, j] <= came) & (came <= bounds[:, j + 1]) for j in (0, 2)]
    # of twelve counts one in 8,000 is outside by chance
    low, high = binom.ppf([[5e-6], [1 - 5e-6]], runs, [0.5, 0.95])
    assert ((low[:, None] <= inside) & (inside <= high[:, None])).all()


def test_quantiles_of_observations_are_those_of_the_mixture():
    pf = followed(hf.models.UNGM(), 50, "bootstrap")
    levels = np.array([0.95, 0.05, 0.3])
    ahead = pf.forecast(4)
    bounds = ahead.observation_quantiles(levels)[:, :, 0]
    drawn = ahead.observations[:, :, 0]
    for k in range(4):
        centres = pf.model.observation_mean(ahead.particles[k], ahead.steps[k])[:, 0]
        assert_allclose(
            norm.cdf(bounds[k][:, None] - centres) @ ahead.weights[k], levels, atol=1e-9
        )
    assert drawn.shape == (4, 1000)
    assert (
        np.abs(np.quantile(drawn, levels, axis=1).T - bounds)
        < 0.2 * np.sqrt(ahead.observation_covariances[:, 0])
    ).all()


def test_quantiles_of_a_gaussian_are_right_far_into_its_tails():
    gaussian = hf.ExtendedKalmanFilter(on_a_line(R=4.0, mean=3.0, variance=8.0)).forecast(1)
    levels = np.array([1e-300, 1e-15, 1e-9, 0.5, 1 - 2.0**-30, 1 - 2.0**-53])
    exact = [-37.0470963, -7.94134533, -5.99780702, 0.0, 6.00935357, 8.20953615]
    assert_allclose((gaussian.quantiles(levels)[0, :, 0] - 3) / 3, exact, rtol=1e-8, atol=1e-12)


@cases("name", "auto", "ekf")
def test_quantiles_of_angles_lie_about_their_mean(name):
    model = hf.models.from_functions(
        lambda x: x,
        lambda x: x,
        [[0.01]],
        [[0.04]],
        [np.pi - 0.01],
        [[0.01]],
        circular=[0],
        observation_circular=[0],
    )
    ahead = hf.make_filter(name, model, 100).forecast(3)
    assert_allclose(np.abs(ahead.means), np.pi, atol=0.05)
    for bounds in (ahead.quantiles([0.025, 0.975]), ahead.observation_quantiles([0.025, 0.975])):
        low, high = bounds[:, :, 0].T
        assert ((high - low > 0.4) & (high - low < 1.3)).all()
        assert (high > np.pi).all() or (low < -np.pi).all()


def test_times_steps_and_controls_lead_there():
    model = hf.models.from_functions(
        lambda x, dt, control: x + dt * np.asarray(control)[0],
        lambda x: x,
        [[1e-12]],
        [[1.0]],
        [0.0],
        [[1e-12]],
    )
    kf = hf.ExtendedKalmanFilter(model)
    controls = [[1.0], [2.0], [-1.0]]
    by_times = kf.forecast(times=[0.5, 1.5, 4.0], controls=controls)
    assert_allclose(by_times.means[:, 0], [0.5, 2.5, 0.0], atol=1e-9)
    by_steps = kf.forecast(3, dt=[0.5, 1.0, timedelta(seconds=2.5)], controls=controls)
    assert_array_equal(by_steps.means, by_times.means)
    assert_allclose(by_steps.times, by_times.times)
    assert list(by_steps.to_dataframe()) == ["step", "time", "x0_mean", "x0_sd"]


def test_a_sensor_takes_the_place_of_what_the_model_observes():
    sum_of_both = hf.Sensor(lambda x: x.sum(axis=1, keepdims=True), [[0.25]])
    blind = hf.ParticleFilter(
        hf.models.from_functions(lambda x: 0.5 * x, None, EYE, None, np.zeros(2), EYE), 500, rng=0
    )
    ahead = blind.forecast(2, sensor=sum_of_both)
    assert_allclose(ahead.observation_means[:, 0], ahead.means.sum(axis=1), atol=1e-12)
    assert_allclose(
        ahead.observation_covariances[:, 0, 0], ahead.covariances.sum(axis=(1, 2)) + 0.25
    )
    with refusal(r"observations: expected a model with .* give forecast a sensor"):
        blind.forecast(2).observation_quantiles(0.5)


class Locked(hf.models.UNGM):
    """A model that cannot be copied in depth."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "lock", threading.Lock())


def test_models_are_not_copied():
    pf = hf.make_filter("auto", Locked(), 20, rng=0)
    pf.predict()
    assert len(pf.forecast(2, rng=1)) == 2


class Counting(hf.BootstrapProposal):
    """A proposal with a state of its own."""

    def __init__(self):
        object.__setattr__(self, "steps", [])

    def propose(self, transition, particles, rng, observation=None):
        self.steps.append(transition.step)
        return super().propose(transition, particles, rng, observation)


class Watched(hf.ParticleFilter):
    """A filter that notes every state it is put into."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "step" and hasattr(self, "seen"):
            self.seen.append(value)


def test_neither_parts_with_a_state_nor_other_threads_see_a_forecast():
    pf = Watched(hf.models.UNGM(), 20, Counting(), rng=0)
    pf.seen = []
    pf.run([1.0, 2.0])
    pf.forecast(3)
    assert pf.proposal.steps == [1, 2]
    assert pf.seen == [1, 2]


def test_draws_are_the_callers_or_the_same_again():
    pf = followed(CHAIN, 50, "bootstrap")
    rng = np.random.default_rng(5)
    one = pf.forecast(3)
    again = pf.forecast(3)
    first = pf.forecast(3, rng=rng)
    second = pf.forecast(3, rng=rng)
    seeded = pf.forecast(3, rng=5)
    for name in ("particles", "observations"):
        a, b, c = (getattr(ahead, name) for ahead in (one, first, second))
        assert_array_equal(a, getattr(again, name))
        assert_array_equal(b, getattr(seeded, name))
        assert not np.array_equal(a, b)
        assert not np.array_equal(b, c)


test_what_does_not_fit_is_named = refuses(
    lambda ask: ask(hf.ParticleFilter(CHAIN, 10, rng=0)),
    (
        lambda pf: pf.forecast(),
        "steps: expected a number of steps, or times without it, got None and None",
    ),
    (lambda pf: pf.forecast(0), "steps: expected an integer of at least 1, got 0"),
    (lambda pf: pf.forecast(times=[]), r"len\(times\): expected an integer of at least 1, got 0"),
    (
        lambda pf: pf.forecast(10**9),
        "steps: expected an integer up to 10000000, as memory is limited, got 1000000000",
    ),
    (
        lambda pf: hf.simulate(pf.model, 10**9),
        "steps: expected an integer up to 10000000, as memory is limited",
    ),
    (
        lambda pf: pf.forecast(3).quantiles([0.5, 95]),
        "probabilities: expected numbers between 0 and 1",
    ),
    (lambda pf: pf.forecast(3).plot(quantiles=[95]), "quantiles: expected a probability"),
)
