"""Models drawn at random: what every one of them is, over many seeds."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import RandomModel, contract, random_model
from herdfilter.models.random import drifts, noises
from herdfilter.models.random.model import DEPARTURES, NOISE_FACTORS, OUTLIER_SHARE, UNKNOWN_DRIFTS

SEEDS = range(40)


@cache
def models():
    return [random_model(seed) for seed in SEEDS]


def one_of_each():
    """Of each kind of drift, noise and observation one model."""
    return list({label: model for model in reversed(models()) for label in model.labels}.values())


def states(model, n=5, seed=0):
    return model.initial.sample(n, np.random.default_rng(seed))


def observed_step(model):
    return model.sensing.schedule.first


def test_states_stay_bounded_under_their_noise():
    """Over some hundreds of steps no chain leaves the surroundings of the system."""
    for model in models():
        rng, x, largest = np.random.default_rng(1), states(model), np.zeros(model.dim)
        for step in range(1, 251):
            x = contract.sample_transition(model, x, rng, 1.0, None, step)
            largest = np.maximum(largest, np.abs(x).max(axis=0))
        home = np.abs(model.initial.means).max(axis=0) + model.spread
        assert (largest < 60 * home).all(), model


@pytest.mark.parametrize("name", drifts.DRIFTS)
def test_a_drift_leads_back_from_far_away(name):
    rng, kind = np.random.default_rng(0), drifts.DRIFTS[name]
    for dim in kind.dims:
        drift = kind.draw(rng, dim)
        x = 1e3 * drift.scale * rng.standard_normal((20, dim))
        for _ in range(200):
            x = drift.f(x)
        assert drift.dim == dim
        assert np.abs(x / drift.scale).max() < 60


def test_a_model_has_the_functions_of_its_kind_and_no_others():
    expected = {
        "additive": {"transition_mean", "transition_covariance"},
        "rank-deficient": {"transition_mean", "transition_covariance"},
        "multiplicative": {"transition", "noise_dim"},
        "only simulable": {"sample_transition"},
    }
    seen = set()
    for model in models():
        kind = model.labels[1]
        seen.add(kind)
        names = {name for names in expected.values() for name in names if hasattr(model, name)}
        assert names == expected[kind]
        assert hasattr(model, "observation_circular") == (model.labels[2] == "bearing")
        assert hasattr(model, "observation_mean") or model.labels[2] == "counts"
        contract.check_state(model, "a filter", "sample", "log_density")
        contract.require(model, "a filter", ("log_likelihood", "sample_observation", *names))
    assert seen == set(expected)


def test_each_state_is_treated_alone_and_left_as_it_is():
    for model in one_of_each():
        x, rng = states(model, 20), np.random.default_rng(2)
        before, step = x.copy(), observed_step(model)
        z = model.sample_observation(x[:1], rng, step)[0]
        noise = rng.standard_normal((20, contract.noise_dim(model)))
        likelihoods = model.log_likelihood(z, x, step)
        moved = None
        if model.labels[1] != "only simulable":
            moved = contract.propagate(model, x, noise, 1.0, None, 1)
        assert likelihoods.shape == (20,)
        for i in (0, 7):
            one = slice(i, i + 1)
            np.testing.assert_allclose(model.log_likelihood(z, x[one], step), likelihoods[one], rtol=1e-9)
            if moved is not None:
                again = contract.propagate(model, x[one], noise[one], 1.0, None, 1)
                np.testing.assert_allclose(again, moved[one], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(x, before)


def test_likelihoods_are_densities_of_the_simulated_observations():
    """E[p(z | x') / p(z | x)] = 1 for z simulated at x, since p(. | x') integrates to 1."""
    kinds = {(model.sensing.noise_words[0], model.labels[2]): model for model in models()}
    assert len(kinds) > 8
    for model in kinds.values():
        step, n = observed_step(model), 1500
        pair = states(model, 2, seed=3)
        view = model.sensing.scaled(pair)
        step_size = 0.3 / max(0.3, np.abs(view[1] - view[0]).max())  # near enough for a ratio of little variance
        pair[1] = pair[0] + step_size * (pair[1] - pair[0])
        z = model.sample_observation(np.repeat(pair[:1], n, axis=0), np.random.default_rng(4), step)
        ratio = np.exp([np.diff(model.log_likelihood(row, pair, step))[0] for row in z])
        assert ratio.std() > 1e-4
        assert abs(ratio.mean() - 1) < 4.5 * ratio.std() / np.sqrt(n), model


def test_observations_have_the_stated_moments():
    """The mean exactly where the noise is Gaussian; the variance of heavy tails is slow to show."""
    for model in one_of_each():
        if not hasattr(model, "observation_mean") or "heavy-tailed" in model.labels:
            continue
        step, n, x = observed_step(model), 4000, states(model, 1)
        z = model.sample_observation(np.repeat(x, n, axis=0), np.random.default_rng(5), step)
        circular = contract.observation_circular(model, z.shape[1])
        off = contract.wrap_angles(z - model.observation_mean(x, step), circular)
        sd = np.sqrt(np.diagonal(model.observation_covariance(step)))
        assert (np.abs(off.mean(axis=0)) < 4.5 * sd / np.sqrt(n)).all()
        np.testing.assert_allclose(off.std(axis=0), sd, rtol=0.06)


def test_what_is_missing_follows_from_the_step():
    model = next(model for model in models() if "missing" in model.labels)
    gaps = [np.isnan(hf.simulate(model, 60, seed)[1]).all(axis=1) for seed in (0, 1)]
    np.testing.assert_array_equal(*gaps)
    assert 0.5 < gaps[0].mean() < 1
    assert not any(np.isnan(hf.simulate(m, 20, 0)[1]).any() for m in models()[:10] if "missing" not in m.labels)


def test_sharp_noise_is_far_below_the_spread_of_what_is_seen():
    for model in models():
        if not hasattr(model, "observation_mean") or model.labels[2] == "bearing":
            continue
        truth, _ = hf.simulate(model, 400, 0)
        ratio = np.sqrt(np.diagonal(model.observation_covariance(1))) / model.sensing.view.h(truth).std(axis=0)
        if "sharp" in model.labels:
            assert ratio[0] < 0.02
        else:
            assert np.minimum(ratio, 1).prod() > 0.01  # 0.03, but for the scatter of one run


def test_the_spread_is_that_of_a_long_run():
    for model in models()[:16]:
        if model.labels[0] == "wells":  # which are left too rarely
            continue
        rng, x, kept = np.random.default_rng(3), states(model, 60), []
        for step in range(1, 151):
            x = contract.sample_transition(model, x, rng, 1.0, None, step)
            if step > 100:
                kept.append(x)
        ratio = np.concatenate(kept).std(axis=0) / model.spread
        assert ((ratio > 0.6) & (ratio < 1.6)).all(), model


def test_filters_take_what_the_contract_lets_them():
    for model in one_of_each():
        _, z = hf.simulate(model, 4, 0)
        assert np.isfinite(hf.ParticleFilter(model, 200, rng=0).run(z).means).all()


@pytest.mark.parametrize("dim", [1, 2])
def test_a_grid_of_twice_the_points_gives_the_same(dim):
    found = [model for model in models() if model.dim == dim and model.grid is not None]
    model = min(found, key=lambda model: np.prod(model.grid["points"]))
    _, z = hf.simulate(model, 8 if dim == 2 else model.steps, 0)
    results = [
        hf.GridFilter(model, **{**model.grid, "points": [round(times * p) for p in model.grid["points"]]}).run(z)
        for times in ((1, 1.4) if dim == 2 else (1, 2))
    ]
    sd = np.sqrt(np.diagonal(results[1].covariances, axis1=1, axis2=2))
    assert np.abs((results[0].means - results[1].means) / sd).max() < 0.005
    assert results[0].log_likelihood == pytest.approx(results[1].log_likelihood, abs=0.02)


def test_a_grid_holds_the_parts_that_hardly_a_state_of_the_prior_comes_to():
    """This network has two resting places; the prior is at one, from which one in a million crosses over at a step."""
    model = random_model(383)
    _, z = hf.simulate(model, 20, 0)
    assert np.isfinite(hf.GridFilter(model, **model.grid).run(z).log_likelihood)


def test_only_what_a_grid_can_hold_has_one():
    for model in models():
        if model.dim > 2 or model.labels[1] != "additive" or model.labels[2] == "bearing":
            assert model.grid is None


def test_copies_are_the_same_model():
    for model in one_of_each():
        x, rng = states(model), np.random.default_rng(0)
        z = model.sample_observation(x[:1], rng, observed_step(model))[0]
        for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), RandomModel(seed=model.seed)):
            assert other == model
            assert str(other) == str(model)
            np.testing.assert_array_equal(other.log_likelihood(z, x, 1), model.log_likelihood(z, x, 1))


def test_what_is_printed_tells_drift_noise_observation_and_start():
    for model in models():
        lines = str(model).splitlines()
        assert [line.split(":")[0].split()[0] for line in lines] == [
            "Random",
            "drift",
            "noise",
            "observed",
            "its",
            "start",
            "long-run",
        ]
        assert repr(model) == f"RandomModel(seed={model.seed})"
        assert 40 <= model.steps <= 80


PINNED = {
    3: """\
Random model 3: dimension 1, 78 steps
drift: linear, A x with eigenvalues of size 0.363; rows of A: 0.363
noise: additive Gaussian, standard deviation 0.0301
observed: squares of - 30.6 x1 - 0.0955; at every step
its noise: Gaussian, standard deviation 0.16
start: Gaussian, mean -0.00572, standard deviation 0.0107
long-run spread: 0.0327""",
    8: """\
Random model 8: dimension 2, 64 steps
drift: population, x + r (1 - C exp x) with x between -4 and 1.5, r = (1.42, 1.28); rows of C: (1, 0.315); (0.348, 1)
noise: additive Gaussian, standard deviation (0.112, 0.112)
observed: the distance of the place (8.35 x2 + 2.66) from sensors at -3.67; -0.856; at every step
its noise: Student's t with 3.88 degrees of freedom, scale (0.117, 0.195)
start: Gaussian, mean (-0.141, -0.373), standard deviation (0.0185, 0.0183)
long-run spread: (0.121, 0.12)""",
}


@pytest.mark.parametrize("seed", PINNED)
def test_a_seed_stays_the_same_model(seed):
    """Claims name seeds: a change of these texts makes earlier claims void."""
    assert str(random_model(seed)) == PINNED[seed]


def test_kinds_come_with_the_stated_probabilities():
    rng, n = np.random.default_rng(0), 3000
    drawn = [drifts.draw_drift(rng) for _ in range(n)]
    for dim, share in drifts.DIMENSIONS.items():
        count = sum(drift.dim == dim for drift in drawn)
        assert abs(count - n * share) < 4.5 * np.sqrt(n * share * (1 - share))
    motions = [noises.draw_noise(rng, drift) for drift in drawn]
    deficient = sum(noise.kind == "rank-deficient" for noise in motions) / n
    assert abs(deficient - 0.85 * noises.NOISES["rank-deficient"]) < 0.03  # additive if d = 1
    simulable = sum(noise.kind == "only simulable" for noise in motions) / n
    assert abs(simulable - noises.NOISES["only simulable"]) < 0.03
    alone = [drift.kind for drift in drawn if drift.dim == 3]
    shares = {name: kind.share for name, kind in drifts.DRIFTS.items() if 3 in kind.dims}
    for name, share in shares.items():
        assert abs(alone.count(name) / len(alone) - share / sum(shares.values())) < 0.08


@pytest.mark.parametrize("seed", [-1, 1.5, "3", None, True, np.nan])
def test_a_seed_that_is_none_is_named(seed):
    with pytest.raises((TypeError, ValueError), match="seed: expected an integer of at least 0, got"):
        random_model(seed)


@cache
def found_models():
    return [random_model(seed, "localisation") for seed in SEEDS]


def test_a_kind_leaves_the_others_models_as_they_are():
    assert str(random_model(3, kind="general")) == PINNED[3]
    assert str(random_model(18, kind="localisation")) == FOUND
    assert random_model(3) == RandomModel(3) != random_model(3, "localisation")


FOUND = """\
Random model 18 (localisation): dimension 1, 40 steps
drift: still, place x1
noise: additive Gaussian, standard deviation 0.000912
observed: the distance of the place (x1) from sensors at -5.44; 1.93; one of them at every step, in turn
its noise: Gaussian, standard deviation (0.00258, 0.00249)
start: 4 Gaussians of weights (0.343, 0.277, 0.176, 0.204), means -2.15; -2.19; 1.88; -1.77, standard deviation 0.207
prior spread: 1.53"""


def test_models_of_localisation_are_treated_alone_and_observed_as_stated():
    for model in found_models():
        x, rng = states(model, 20), np.random.default_rng(2)
        z = model.sample_observation(x[:1], rng, 2)[0]
        noise = rng.standard_normal((20, contract.noise_dim(model)))
        values, moved = model.log_likelihood(z, x, 2), contract.propagate(model, x, noise, 1.0, None, 1)
        np.testing.assert_allclose(model.log_likelihood(z, x[7:8], 2), values[7:8], rtol=1e-9)
        np.testing.assert_allclose(contract.propagate(model, x[7:8], noise[7:8], 1.0, None, 1), moved[7:8], rtol=1e-9)
        assert hasattr(model, "observation_mean") == ("likelihood only" not in model.labels)
        assert model.grid is None
        for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
            assert other == model
            np.testing.assert_array_equal(other.log_likelihood(z, x, 2), values)


def test_sensors_in_turn_differ_from_step_to_step_and_return():
    model = next(model for model in found_models() if "in turn" in model.labels and hasattr(model, "observation_mean"))
    x = states(model, 1)
    means = np.array([model.observation_mean(x, step)[0, 0] for step in range(1, 20)])
    period = next(k for k in range(2, 10) if means[k] == means[0])
    assert len(set(means[:period])) == period
    np.testing.assert_array_equal(means[period:], means[:-period])


def test_constant_parts_stay_and_no_noise_is_none():
    for model in found_models():
        x = states(model, 6)
        moved = contract.sample_transition(model, x, np.random.default_rng(1), 1.0, None, 1)
        constant = np.diagonal(model.transition_covariance(1.0, 1)) == 0
        if "noise-free" in model.labels:
            assert constant.all()
            np.testing.assert_array_equal(moved, model.transition_mean(x, 1.0, None, 1))
        if "offset" in model.labels:
            assert constant[-1]
            np.testing.assert_array_equal(moved[:, -1], x[:, -1])
        if "circling" in model.labels:
            speeds = [np.hypot(*state[:, 2:4].T) for state in (x, model.transition_mean(x, 1.0, None, 1))]
            np.testing.assert_allclose(*speeds)
            assert constant[4]


def test_the_posterior_of_a_found_place_is_hundreds_of_times_as_narrow_as_the_prior():
    """Of targets that stand still, by a large filter with kernels, which keep its particles apart."""
    still = [model for model in found_models() if "still" in model.labels and model.dim <= 2][:4]
    assert len(still) == 4
    narrower = []
    for model in still:
        truth, z = hf.simulate(model, model.steps, 1)
        result = hf.ParticleFilter(model, 20_000, resampling=hf.RegularisedResampling(), rng=0).run(z)
        sd = np.sqrt(np.diagonal(result.covariances[-1]))
        narrower += list(model.spread / sd)
        assert (np.abs(result.means[-1] - truth[-1]) < 6 * sd).all()
    assert 100 < np.median(narrower) < 1000
    assert min(narrower) > 20


def test_departures_are_as_stated():
    """Noise about the model's own means has half or twice the deviation; a drift shifts each next state by the same."""
    model, n = random_model(4), 4000  # additive noise, Gaussian observations
    assert {"additive", "sharp", "missing", "heavy-tailed"}.isdisjoint(set(model.labels) - {"additive"})
    x, rng = np.repeat(states(model, 1), n, axis=0), np.random.default_rng(1)
    mean, view = model.transition_mean(x, 1.0, None, 1), model.observation_mean(x, 1)
    own = np.sqrt(np.diagonal(model.transition_covariance(1.0, 1))), np.sqrt(np.diagonal(model.observation_covariance(1)))
    for name, factor in NOISE_FACTORS.items():
        other = random_model(4, departure=name)
        moved, seen = other.sample_transition(x, rng, 1.0, None, 1), other.sample_observation(x, rng, 1)
        np.testing.assert_allclose((moved - mean).std(axis=0), factor * own[0], rtol=0.06)
        np.testing.assert_allclose((seen - view).std(axis=0), factor * own[1], rtol=0.06)
    other = random_model(4, departure="unknown drift")
    shift = (other.sample_transition(x, rng, 1.0, None, 1) - mean).mean(axis=0) / model.spread
    assert np.sqrt(np.mean(shift**2)) == pytest.approx(UNKNOWN_DRIFTS["general"], rel=0.25)
    assert not hasattr(other, "log_likelihood")  # no filter takes it for the model


def test_one_observation_of_twenty_is_an_outlier():
    model, other = random_model(4), random_model(4, departure="outliers")
    x, n = states(model, 1), 8000
    many = np.repeat(x, n, axis=0)
    off = np.abs(other.sample_observation(many, np.random.default_rng(0), 1) - model.observation_mean(many, 1))
    far = (off > 4.5 * np.sqrt(np.diagonal(model.observation_covariance(1)))).any(axis=1).mean()
    assert 0.2 * OUTLIER_SHARE < far < 1.2 * OUTLIER_SHARE


def test_any_departure_is_one_of_them_by_the_seed():
    drawn = [random_model(seed, departure="any").labels[-1] for seed in range(40)]
    assert set(drawn) == set(DEPARTURES)
    again = random_model(3, departure="any")
    assert again.labels[-1] == drawn[3]
    assert repr(again) == "RandomModel(seed=3, departure='any')"
    assert pickle.loads(pickle.dumps(again)) == again


@pytest.mark.parametrize("options", [{"kind": "localization"}, {"departure": "outlier"}])
def test_an_unknown_kind_or_departure_is_named_with_the_nearest(options):
    with pytest.raises(ValueError, match=r"did you mean '(localisation|outliers)'"):
        random_model(0, **options)


@pytest.mark.parametrize("departure", [[], np.empty(0), None, np.zeros(2)])
def test_what_is_no_name_of_a_departure_is_refused(departure):
    with pytest.raises(ValueError, match="departure: unknown"):
        random_model(4, departure=departure)
