"""What the particle filter does with its parts: order of steps, records, missing data, randomness."""

import copy

import numpy as np
import pytest
from helpers import assert_same
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters import Outcome, ParticleFilter

OBSERVATIONS = [[0.3], [1.1], None, [0.2], [np.nan], [-1.5], [-0.7]]


def same_run(a, b):
    assert_same(a, b, "means", "covariances", "ess", "resampled", "log_likelihoods")
    assert a.outcomes == b.outcomes


# Steps and records


def test_an_empty_series_gives_an_empty_result(walk):
    result = ParticleFilter(walk, 5, rng=0).run([])
    assert len(result) == 0
    assert result.means.shape == (0, 1)
    assert result.log_likelihood == 0


def test_estimates_are_those_of_the_weighted_particles_before_resampling(walk, typical):
    """In a row for each step; kept particles are not overwritten by later steps."""
    result = ParticleFilter(walk, 20, typical.make(), resample_below=1.0, rng=3).run(
        OBSERVATIONS, keep_particles=True
    )
    T = len(OBSERVATIONS)
    assert len(result) == len(result.resampled) == T
    assert (result.particles.shape, result.weights.shape) == ((T, 20, 1), (T, 20))
    assert result.log_likelihood == pytest.approx(result.log_likelihoods.sum(), rel=1e-14)
    for x, w, mean, covariance, ess in zip(
        result.particles, result.weights, result.means, result.covariances, result.ess, strict=True
    ):
        assert w.sum() == pytest.approx(1, abs=1e-12)
        assert_allclose(mean, w @ x, rtol=1e-12)
        assert_allclose(covariance, np.cov(x.T, aweights=w, bias=True).reshape(1, 1), rtol=1e-12)
        assert ess == pytest.approx(1 / (w @ w), rel=1e-12)
    if not typical.observes:  # a look at the observation may leave the weights even
        assert result.ess[0] < 19.5


def test_weights_after_one_update_are_the_likelihoods(walk, blind):
    pf = ParticleFilter(walk, 15, blind, rng=4)
    pf.predict()
    prior = pf.weights
    x = pf.particles
    pf.update([1.3])
    joint = prior * np.exp(walk.log_likelihood([1.3], x, 1))
    assert_allclose(pf.weights, joint / joint.sum(), rtol=1e-12)
    assert pf.log_likelihood == pytest.approx(np.log(joint.sum()), rel=1e-12)
    assert_array_equal(pf.particles, x)


def test_resampling_happens_below_the_threshold_and_before_the_next_prediction(walk):
    counts = []
    for threshold in (0.0, 0.6, 1.0):
        result = ParticleFilter(walk, 100, resample_below=threshold, rng=5).run(OBSERVATIONS)
        uneven = result.ess[:-1] < threshold * 100 - 1e-9
        assert_array_equal(result.resampled, np.append(False, uneven))
        counts.append(result.resampled.sum())
    assert counts[0] == 0 < counts[1] < counts[2]


def test_equal_weights_are_never_resampled(walk):
    for n in (3, 7, 49, 100):
        assert (
            not ParticleFilter(walk, n, resample_below=1.0, rng=6).run([None] * 3).resampled.any()
        )


# The observation that a filter predicts


class Watched:
    def __init__(self):
        self.predictions = []

    def predicted(self, online, z):
        self.predictions.append((z, online.predicted_observation()))

    def updated(self, online):
        assert online.record.step == len(self.predictions)


def test_the_predicted_observation_has_the_moments_of_the_particles_and_the_noise(
    walk_class, typical
):
    class Seen(walk_class):
        def observation_covariance(self, step):
            return np.array([[0.7]])

        def observation_mean(self, x, step):
            return 2 * x

    pf = ParticleFilter(Seen(), 20, typical.make(), rng=5)
    for predict in (lambda: None, pf.predict):
        predict()
        mean, covariance = pf.predicted_observation()
        assert_allclose(mean, 2 * pf.mean, rtol=1e-12)
        assert_allclose(covariance, 4 * pf.covariance + 0.7, rtol=1e-12)
    watched = Watched()
    looked_at = ParticleFilter(Seen(), 20, typical.make(), rng=5).run(OBSERVATIONS, watcher=watched)
    same_run(looked_at, ParticleFilter(Seen(), 20, typical.make(), rng=5).run(OBSERVATIONS))
    assert [z for z, _ in watched.predictions] == OBSERVATIONS
    assert_allclose(watched.predictions[0][1][0], mean, rtol=1e-12)


# The start


def test_nothing_is_drawn_before_it_is_needed(walk, typical):
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    pf = ParticleFilter(walk, 20, typical.make(), rng=rng)
    assert rng.bit_generator.state == before
    asked = ParticleFilter(walk, 20, typical.make(), rng=3)
    mean = pf.mean
    assert_array_equal(pf.mean, mean)
    same_run(pf.run(OBSERVATIONS), asked.run(OBSERVATIONS))


# Missing observations


def test_a_missing_observation_is_a_pure_prediction(walk, typical):
    start = ParticleFilter(walk, 20, typical.make(), rng=8)
    start.run(OBSERVATIONS[:2])
    predicted = copy.deepcopy(start)
    predicted.predict()
    for missing in (None, [np.nan], np.nan):
        updated = copy.deepcopy(start)
        updated.predict()
        record = updated.update(missing)
        assert_array_equal(updated.particles, predicted.particles, str(missing))
        assert_array_equal(updated.weights, predicted.weights, str(missing))
        assert updated.log_likelihood == predicted.log_likelihood
        assert record.log_likelihood == 0
        assert record.outcome is Outcome.MISSING


# What reaches the model


def test_time_steps_controls_and_the_step_count_reach_the_model(walk_class, promised):
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

    pf = ParticleFilter(Watched(), 10, promised.make(), rng=13)
    seen.clear()
    pf.run([[5.0], None, [7.0]], dt=[0.5, 1.0, 0.25], controls=["a", "b", "c"])
    assert list(dict.fromkeys(of("mean"))) == [(0.5, "a", 1), (1.0, "b", 2), (0.25, "c", 3)]
    assert set(of("covariance")) >= {(0.5, 1), (1.0, 2), (0.25, 3)}
    assert list(dict.fromkeys(of("likelihood"))) == [(5.0, 1), (7.0, 3)]
    assert promised.observes or (len(of("mean")), len(of("likelihood"))) == (3, 2)


# Randomness


def test_deterministic_filters_do_not_depend_on_the_seed_nor_on_what_the_proposal_has_done(
    walk, deterministic
):
    rng = np.random.default_rng(1)
    state = rng.bit_generator.state
    fresh = ParticleFilter(walk, 20, copy.deepcopy(deterministic), rng=0).run(OBSERVATIONS)
    same_run(
        ParticleFilter(walk, 20, copy.deepcopy(deterministic), rng=rng).run(OBSERVATIONS), fresh
    )
    assert rng.bit_generator.state == state
    ParticleFilter(walk, 33, deterministic, rng=0).run(OBSERVATIONS)
    ParticleFilter(walk, 20, deterministic, rng=0).run(OBSERVATIONS[::-1])
    same_run(ParticleFilter(walk, 20, deterministic, rng=0).run(OBSERVATIONS), fresh)
