"""Models drawn at random: what every one of them is, over many seeds."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from helpers import EYE, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import herdfilter as hf
from herdfilter.models import RandomModel, random_model
from herdfilter.models.random import drifts, noises, observations
from herdfilter.models.random.model import DEPARTURES, NOISE_FACTORS, OUTLIER_SHARE, UNKNOWN_DRIFTS
from herdfilter.models.resolved import Motion, Transition

SEEDS = range(24)


@cache
def models():
    return [random_model(seed) for seed in SEEDS]


def states(model, n=5, seed=0):
    return model.initial.sample(n, default_rng(seed))


def observed_step(model):
    return model.sensing.schedule.first


def test_a_drift_leads_back_from_far_away():
    for name, kind in drifts.DRIFTS.items():
        rng = default_rng(0)
        for dim in kind.dims:
            drift = kind.draw(rng, dim)
            x = 1e3 * drift.scale * rng.standard_normal((20, dim))
            for _ in range(200):
                x = drift.f(x)
            assert drift.dim == dim
            assert np.abs(x / drift.scale).max() < 60, name


def test_each_state_is_treated_alone_and_left_as_it_is():
    for model in [*models(), random_model(0, "localisation")]:
        x = states(model, 20)
        rng = default_rng(2)
        before = x.copy()
        step = observed_step(model)
        z = model.sample_observation(x[:1], rng, step)[0]
        likelihoods = model.log_likelihood(z, x, step)
        assert likelihoods.shape == (20,)
        assert_allclose(model.log_likelihood(z, x[7:8], step), likelihoods[7:8], rtol=1e-9)
        if model.labels[1] != "only simulable":
            noise = rng.standard_normal((20, Motion(model).noise_dim))
            moved = Transition(model).propagate(x, noise)
            again = Transition(model).propagate(x[7:8], noise[7:8])
            assert_allclose(again, moved[7:8], rtol=1e-9, atol=1e-9)
        assert_array_equal(x, before)


def test_likelihoods_are_densities_of_the_simulated_observations():
    """E[p(z | x') / p(z | x)] = 1 for z simulated at x, since p(. | x') integrates to 1."""
    kinds = {(model.sensing.noise_words[0], model.labels[2]): model for model in models()}
    assert len(kinds) > 6
    for model in kinds.values():
        step = observed_step(model)
        n = 500
        pair = states(model, 2, seed=3)
        view = model.sensing.scaled(pair)
        # near enough for a ratio of little variance
        step_size = 0.3 / max(0.3, np.abs(view[1] - view[0]).max())
        pair[1] = pair[0] + step_size * (pair[1] - pair[0])
        z = model.sample_observation(np.repeat(pair[:1], n, axis=0), default_rng(4), step)
        ratio = np.exp([np.diff(model.log_likelihood(row, pair, step))[0] for row in z])
        assert ratio.std() > 1e-4
        assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / np.sqrt(n), model


def test_a_grid_of_twice_the_points_gives_the_same():
    found = [model for model in models() if model.dim == 1 and model.grid is not None]
    model = min(found, key=lambda model: np.prod(model.grid["points"]))
    _, z = hf.simulate(model, model.steps, 0)
    twice = model.grid | {"points": [2 * p for p in model.grid["points"]]}
    result, fine = (hf.GridFilter(model, **grid).run(z) for grid in (model.grid, twice))
    assert np.abs((result.means - fine.means) / np.sqrt(fine.covariances[:, 0])).max() < 0.005
    assert result.log_likelihood == pytest.approx(fine.log_likelihood, abs=0.02)


def test_a_grid_holds_the_parts_that_hardly_a_state_of_the_prior_comes_to():
    """This network has two resting places; the prior is at one, from which one in a million crosses over at a step."""
    model = random_model(383)
    _, z = hf.simulate(model, 20, 0)
    assert np.isfinite(hf.GridFilter(model, **model.grid).run(z).log_likelihood)


PINNED = """\
Random model 3: dimension 1, 78 steps
drift: linear, A x with eigenvalues of size 0.363; rows of A: 0.363
noise: additive Gaussian, standard deviation 0.0301
observed: squares of - 30.6 x1 - 0.0955; at every step
its noise: Gaussian, standard deviation 0.16
start: Gaussian, mean -0.00572, standard deviation 0.0107
long-run spread: 0.0327"""


def test_a_seed_stays_the_same_model_and_prints_what_it_is():
    """Claims name seeds: a change of these texts makes earlier claims void."""
    assert str(random_model(3)) == PINNED
    assert str(random_model(18, kind="localisation")) == FOUND
    assert random_model(3) == RandomModel(3) != random_model(3, "localisation")
    model = random_model(3, departure="any")
    assert model.labels[-1] in DEPARTURES
    assert pickle.loads(pickle.dumps(model)) == copy.copy(model) == model


test_what_is_no_kind_or_departure_is_named = refuses(
    random_model,
    (0, "localization", "did you mean 'localisation'"),
    (4, "general", "outlier", "did you mean 'outliers'"),
)


FOUND = """\
Random model 18 (localisation): dimension 1, 40 steps
drift: still, place x1
noise: additive Gaussian, standard deviation 0.000912
observed: the distance of the place (x1) from sensors at -5.44; 1.93; one of them at every step, in turn
its noise: Gaussian, standard deviation (0.00258, 0.00249)
start: 4 Gaussians of weights (0.343, 0.277, 0.176, 0.204), means -2.15; -2.19; 1.88; -1.77, standard deviation 0.207
prior spread: 1.53"""


def test_departures_are_as_stated():
    """Noise about the model's own means has half or twice the deviation; a drift shifts each next state by the same."""
    model = random_model(4)
    n = 4000  # additive noise, Gaussian observations
    assert {"additive", "sharp", "missing", "heavy-tailed"}.isdisjoint(
        set(model.labels) - {"additive"}
    )
    x = np.repeat(states(model, 1), n, axis=0)
    rng = default_rng(1)
    mean = model.transition_mean(x, 1.0, None, 1)
    view = model.observation_mean(x, 1)
    own = (
        np.sqrt(np.diagonal(model.transition_covariance(1.0, 1))),
        np.sqrt(np.diagonal(model.observation_covariance(1))),
    )
    for name, factor in NOISE_FACTORS.items():
        other = random_model(4, departure=name)
        moved = other.sample_transition(x, rng, 1.0, None, 1)
        seen = other.sample_observation(x, rng, 1)
        assert_allclose((moved - mean).std(axis=0), factor * own[0], rtol=0.06)
        assert_allclose((seen - view).std(axis=0), factor * own[1], rtol=0.06)
    other = random_model(4, departure="unknown drift")
    shift = (other.sample_transition(x, rng, 1.0, None, 1) - mean).mean(axis=0) / model.spread
    assert np.sqrt(np.mean(shift**2)) == pytest.approx(UNKNOWN_DRIFTS["general"], rel=0.25)
    assert not hasattr(other, "log_likelihood")  # no filter takes it for the model
    off = np.abs(random_model(4, departure="outliers").sample_observation(x, rng, 1) - view)
    assert 0.2 * OUTLIER_SHARE < (off > 4.5 * own[1]).any(axis=1).mean() < 1.2 * OUTLIER_SHARE


# parts of random models, against formulas written out


def test_maps_by_hand():
    assert_allclose(
        drifts.henon(1.4, 0.3).f(np.array([[0.5, 0.2]])), [[1 - 1.4 * 0.25 + 0.2, 0.15]]
    )
    z = 0.5 + 0.2j
    z = 1 + 0.8 * z * np.exp(1j * (0.4 - 6 / (1 + abs(z) ** 2)))
    assert_allclose(drifts.ikeda(0.8).f(np.array([[0.5, 0.2]])), [[z.real, z.imag]])


def test_simulated_noise_is_students_t_or_jumps():
    drift = drifts.linear(np.zeros((1, 1)))
    n = 20_000
    x = np.zeros((n, 1))
    rng = default_rng(0)
    heavy = noises.only_simulable(drift, np.array([[2.0]]), freedom=3.0)
    drawn = heavy.sample_transition(x, rng, 1.0, None, 1)[:, 0]
    assert stats.kstest(drawn / 2, stats.t(3).cdf).pvalue > 1e-4
    jumps = noises.only_simulable(drift, np.array([[1.0]]), jumps=(0.1, 5.0))
    drawn = jumps.sample_transition(x, rng, 1.0, None, 1)[:, 0]
    assert np.var(drawn) == pytest.approx(0.9 + 0.1 * 25, rel=0.08)


X = np.array([[0.3, -1.0], [1.2, 0.4]])
ALWAYS = observations.ObservedSteps()
SENSORS = EYE, np.zeros(2), np.array([[3.0, 3.0], [0.0, -2.0]])
COUNTS = observations.linear_view("counts", EYE, np.zeros(2))


def test_likelihoods_by_scipy():
    sd = np.array([0.5, 0.2])
    z = np.array([1.4, 2.0])
    ranges = observations.sensor_view("range", *SENSORS)
    assert_allclose(ranges.h(X)[:, 0], np.hypot(X[:, 0] - 3, X[:, 1] - 3))
    heavy = observations.gaussian_noise(ranges, sd, ALWAYS, freedom=3.0)
    law = stats.t(3.0, ranges.h(X), sd)
    assert_allclose(heavy.log_likelihood(z, X, 1), law.logpdf(z).sum(axis=1))
    assert_allclose(heavy.observation_covariance(1), np.diag(law.var()[0]))
    assert_allclose(
        observations.counts(COUNTS, ALWAYS).log_likelihood([2.0, 0.0], X, 1),
        stats.poisson.logpmf([2, 0], np.exp(X)).sum(axis=1),
    )
