"""What the particle filter does with its parts: order of steps, records, missing data, randomness."""

import copy

import numpy as np
import pytest
from helpers import assert_same

from herdfilter.filters import AugmentedProposal, BootstrapProposal, HerdedProposal, Outcome, ParticleFilter
from herdfilter.fitting import GaussianFit
from herdfilter.samplers import RandomSampling

OBSERVATIONS = [[0.3], [1.1], None, [0.2], [np.nan], [-1.5], [-0.7]]


def same_run(a, b):
    assert_same(a, b, "means", "covariances", "ess", "resampled", "log_likelihoods")
    assert a.outcomes == b.outcomes


def herded_random():
    return HerdedProposal(RandomSampling())


def augmented_random():
    return AugmentedProposal(GaussianFit(), RandomSampling())


# Steps and records


def test_a_result_has_one_row_a_step(walk, proposal):
    result = ParticleFilter(walk, 20, proposal, rng=0).run(OBSERVATIONS, keep_particles=True)
    T = len(OBSERVATIONS)
    assert len(result) == T
    assert result.means.shape == (T, 1)
    assert result.covariances.shape == (T, 1, 1)
    assert result.ess.shape == result.resampled.shape == result.log_likelihoods.shape == (T,)
    assert result.particles.shape == (T, 20, 1)
    assert result.weights.shape == (T, 20)
    assert result.log_likelihood == pytest.approx(result.log_likelihoods.sum(), rel=1e-14)


def test_an_empty_series_gives_an_empty_result(walk):
    result = ParticleFilter(walk, 5, rng=0).run([])
    assert len(result) == 0
    assert result.means.shape == (0, 1)
    assert result.log_likelihood == 0


def test_estimates_are_those_of_the_weighted_particles_before_resampling(walk, proposal, promised):
    result = ParticleFilter(walk, 20, proposal, resample_below=1.0, rng=3).run(OBSERVATIONS, keep_particles=True)
    for x, w, mean, covariance, ess in zip(
        result.particles, result.weights, result.means, result.covariances, result.ess, strict=True
    ):
        assert w.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(mean, w @ x, rtol=1e-12)
        np.testing.assert_allclose(covariance, np.cov(x.T, aweights=w, bias=True).reshape(1, 1), rtol=1e-12)
        assert ess == pytest.approx(1 / (w @ w), rel=1e-12)
    if not promised.observes:  # a look at the observation may leave the weights even
        assert result.ess[0] < 19.5


def test_weights_after_one_update_are_the_likelihoods(walk, blind):
    pf = ParticleFilter(walk, 15, blind, rng=4)
    pf.predict()
    prior, x = pf.weights, pf.particles
    pf.update([1.3])
    joint = prior * np.exp(walk.log_likelihood([1.3], x, 1))
    np.testing.assert_allclose(pf.weights, joint / joint.sum(), rtol=1e-12)
    assert pf.log_likelihood == pytest.approx(np.log(joint.sum()), rel=1e-12)
    np.testing.assert_array_equal(pf.particles, x)


def test_resampling_happens_below_the_threshold_and_before_the_next_prediction(walk):
    counts = []
    for threshold in (0.0, 0.6, 1.0):
        result = ParticleFilter(walk, 100, resample_below=threshold, rng=5).run(OBSERVATIONS)
        uneven = result.ess[:-1] < threshold * 100 - 1e-9
        np.testing.assert_array_equal(result.resampled, np.append(False, uneven))
        counts.append(result.resampled.sum())
    assert counts[0] == 0 < counts[1] < counts[2]


@pytest.mark.parametrize("n", [3, 7, 49, 100])
def test_equal_weights_are_never_resampled(walk, n):
    result = ParticleFilter(walk, n, resample_below=1.0, rng=6).run([None] * 3)
    assert not result.resampled.any()


@pytest.mark.parametrize("make", [herded_random, augmented_random])
def test_proposals_that_draw_from_the_whole_set_need_no_resampling(walk, make):
    class Refuses:
        def resample(self, particles, rng, circular=()):
            raise AssertionError("not asked for")

    result = ParticleFilter(walk, 20, make(), Refuses(), resample_below=1.0, rng=7).run(OBSERVATIONS)
    assert not result.resampled.any()


# The observation that a filter predicts


class Watched:
    def __init__(self):
        self.predictions = []

    def predicted(self, online, z):
        self.predictions.append((z, online.predicted_observation()))

    def updated(self, online):
        assert online.record.step == len(self.predictions)


def test_the_predicted_observation_has_the_moments_of_the_particles_and_the_noise(walk_class, proposal):
    class Seen(walk_class):
        def observation_covariance(self, step):
            return np.array([[0.7]])

        def observation_mean(self, x, step):
            return 2 * x

    pf = ParticleFilter(Seen(), 20, copy.deepcopy(proposal), rng=5)
    for predict in (lambda: None, pf.predict):
        predict()
        mean, covariance = pf.predicted_observation()
        np.testing.assert_allclose(mean, 2 * pf.mean, rtol=1e-12)
        np.testing.assert_allclose(covariance, 4 * pf.covariance + 0.7, rtol=1e-12)
    watched = Watched()
    looked_at = ParticleFilter(Seen(), 20, copy.deepcopy(proposal), rng=5).run(OBSERVATIONS, watcher=watched)
    same_run(looked_at, ParticleFilter(Seen(), 20, proposal, rng=5).run(OBSERVATIONS))
    assert [z for z, _ in watched.predictions] == OBSERVATIONS
    np.testing.assert_allclose(watched.predictions[0][1][0], mean, rtol=1e-12)


def test_no_observation_is_predicted_without_its_mean(unseen, blind):
    pf = ParticleFilter(unseen, 20, blind, rng=5)
    pf.predict()
    assert pf.predicted_observation() is None


# The start


def test_nothing_is_drawn_before_it_is_needed(walk, proposal):
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    pf = ParticleFilter(walk, 20, copy.deepcopy(proposal), rng=rng)
    assert rng.bit_generator.state == before
    asked, mean = ParticleFilter(walk, 20, proposal, rng=3), pf.mean
    np.testing.assert_array_equal(pf.mean, mean)
    same_run(pf.run(OBSERVATIONS), asked.run(OBSERVATIONS))


# Missing observations


def test_a_missing_observation_is_a_pure_prediction(walk, proposal):
    start = ParticleFilter(walk, 20, copy.deepcopy(proposal), rng=8)
    start.run(OBSERVATIONS[:2])
    predicted = copy.deepcopy(start)
    predicted.predict()
    for missing in (None, [np.nan], np.nan):
        updated = copy.deepcopy(start)
        updated.predict()
        record = updated.update(missing)
        np.testing.assert_array_equal(updated.particles, predicted.particles, str(missing))
        np.testing.assert_array_equal(updated.weights, predicted.weights, str(missing))
        assert updated.log_likelihood == predicted.log_likelihood
        assert record.log_likelihood == 0
        assert record.outcome is Outcome.MISSING


def test_one_nan_among_the_numbers_makes_an_observation_missing(walk):
    walk.log_likelihood = lambda z, x, step: pytest.fail("not asked for")
    assert ParticleFilter(walk, 5, rng=9).run([[1.0, np.nan]]).outcomes == (Outcome.MISSING,)


# What reaches the model


def test_time_steps_controls_and_the_step_count_reach_the_model(walk_class, proposal, promised):
    seen = []

    class Watched(walk_class):
        def transition_mean(self, x, dt, control, step):
            seen.append(("mean", dt, control, step))
            return x

        def transition_covariance(self, dt, step):
            seen.append(("covariance", dt, step))
            return np.array([[dt]])

        def log_likelihood(self, z, x, step):
            seen.append(("likelihood", float(z[0]), step))
            return super().log_likelihood(z, x, step)

    def of(what):
        return [call[1:] for call in seen if call[0] == what]

    ParticleFilter(Watched(), 10, proposal, rng=13).run([[5.0], None, [7.0]], dt=[0.5, 1.0, 0.25], controls=["a", "b", "c"])
    assert list(dict.fromkeys(of("mean"))) == [(0.5, "a", 1), (1.0, "b", 2), (0.25, "c", 3)]
    assert set(of("covariance")) >= {(0.5, 1), (1.0, 2), (0.25, 3)}
    assert list(dict.fromkeys(of("likelihood"))) == [(5.0, 1), (7.0, 3)]
    assert promised.observes or (len(of("mean")), len(of("likelihood"))) == (3, 2)


def test_time_step_and_control_default_to_one_and_none(walk, proposal):
    def still(x, dt, control, step):
        assert (dt, control) == (1.0, None)
        return x

    walk.transition_mean = still
    assert len(ParticleFilter(walk, 5, proposal, rng=14).run([[0.0], [0.0]])) == 2


def test_variable_time_steps_act_like_their_sum(walk, proposal, promised):
    for dts in ([4.0], [3.0, 1.0]):
        n = 150 if promised.deterministic else 2000
        pf = ParticleFilter(walk, n, copy.deepcopy(proposal), rng=15)
        variance = pf.run([None] * len(dts), dt=dts, controls=[[2.0]] * len(dts)).covariances[-1, 0, 0]
        assert variance == pytest.approx(2 + 0.5 * 4, rel=0.25)
        assert pf.mean[0] == pytest.approx(0.5 + 2 * 4, abs=0.7)


# Randomness


@pytest.mark.parametrize("make", [BootstrapProposal, herded_random, augmented_random])
def test_random_filters_depend_on_the_seed(walk, make):
    first, second = (ParticleFilter(walk, 20, make(), rng=rng).run(OBSERVATIONS) for rng in (0, 1))
    assert (first.means != second.means).all()


def test_deterministic_filters_do_not_depend_on_the_seed(walk, deterministic):
    rng = np.random.default_rng(1)
    state = rng.bit_generator.state
    runs = [ParticleFilter(walk, 20, copy.deepcopy(deterministic), rng=r).run(OBSERVATIONS) for r in (0, rng, None)]
    same_run(runs[0], runs[1])
    same_run(runs[0], runs[2])
    assert rng.bit_generator.state == state


def test_a_used_proposal_is_as_good_as_a_new_one(walk, deterministic):
    fresh = ParticleFilter(walk, 20, copy.deepcopy(deterministic), rng=0).run(OBSERVATIONS)
    ParticleFilter(walk, 33, deterministic, rng=0).run(OBSERVATIONS)
    ParticleFilter(walk, 20, deterministic, rng=0).run(OBSERVATIONS[::-1])
    same_run(ParticleFilter(walk, 20, deterministic, rng=0).run(OBSERVATIONS), fresh)


def test_kept_particles_are_not_overwritten_by_later_steps(walk, proposal):
    long = ParticleFilter(walk, 20, copy.deepcopy(proposal), rng=19).run(OBSERVATIONS, keep_particles=True)
    short = ParticleFilter(walk, 20, proposal, rng=19).run(OBSERVATIONS[:2], keep_particles=True)
    np.testing.assert_array_equal(long.particles[:2], short.particles)
    np.testing.assert_array_equal(long.weights[:2], short.weights)


def test_a_result_prints_as_one_line(walk):
    result = ParticleFilter(walk, 50, rng=5).run([[0.5], None, [1.0]], keep_particles=True)
    text = repr(result)
    assert text == (
        f"FilterResult(steps=3, dim=1, log_likelihood={result.log_likelihood:.6g}, "
        "unused_observations=1, particles=array(3, 50, 1))"
    )
    assert "unused" not in repr(ParticleFilter(walk, 50, rng=5).run([[0.5]]))
