"""A filter is the same under observation, and its innovations are what theory says."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import UNGM, BearingsTracking, linear_chain
from herdfilter.models.simulation import simulate
from herdfilter.study.recording import Recording
from herdfilter.study.run_record import watch
from herdfilter.study.statistics import chi_square_band

CHAIN = linear_chain(2)
FILTERS = {
    "bootstrap": lambda model: hf.ParticleFilter(model, 60, rng=1),
    "herded": lambda model: hf.ParticleFilter(model, 15, hf.HerdedProposal(hf.KernelHerding()), rng=1),
    "guided": lambda model: hf.ParticleFilter(model, 40, hf.GuidedProposal(), rng=1),
    "ensemble": lambda model: hf.EnsembleKalmanFilter(model, 40, rng=1),
    "kalman": hf.UnscentedKalmanFilter,
}


def recorded(model, steps=20, seed=0, **options):
    truth, observations = simulate(model, steps, seed, **options)
    return Recording(truth, observations, **options)


@pytest.mark.parametrize("build", FILTERS.values(), ids=FILTERS)
def test_watching_changes_nothing(build):
    model = BearingsTracking(initial_covariance=0.1 * np.eye(4))
    recording = recorded(model, dt=0.1)
    recording.observations[[4, 9], [0, 1]] = np.nan
    recording.observations[12] = np.nan
    watched = watch(build(model), recording, steps=[3, 19])
    plain = build(model).run(recording.observations, dt=0.1)
    np.testing.assert_array_equal(watched.result.means, plain.means)
    np.testing.assert_array_equal(watched.result.covariances, plain.covariances)
    assert watched.result.log_likelihood == plain.log_likelihood
    degrees = np.full(20, 2)
    degrees[[4, 9, 12]] = 1, 1, 0
    np.testing.assert_array_equal(watched.nis_degrees, degrees)
    assert np.isfinite(watched.nis).tolist() == (degrees > 0).tolist()


def test_particles_are_those_after_the_update():
    recording = recorded(CHAIN)
    watched = watch(hf.ParticleFilter(CHAIN, 30, rng=3), recording, steps=[0, 7])
    kept = hf.ParticleFilter(CHAIN, 30, rng=3).run(recording.observations, keep_particles=True)
    assert list(watched.particles) == [0, 7]
    for k, (x, weights) in watched.particles.items():
        np.testing.assert_array_equal(x, kept.particles[k])
        np.testing.assert_array_equal(weights, kept.weights[k])


def test_nis_of_the_kalman_filter_is_white_and_chi_square():
    runs = [watch(hf.ExtendedKalmanFilter(CHAIN), recorded(CHAIN, 40, seed)) for seed in range(25)]
    nis = np.array([watched.nis for watched in runs])
    low, high = chi_square_band(sum(watched.nis_degrees.sum() for watched in runs), 0.99)
    assert low < nis.mean() / 2 < high
    centred = nis - nis.mean()
    correlation = (centred[:, 1:] * centred[:, :-1]).mean() / centred.var()
    assert abs(correlation) < 3 / np.sqrt(nis.size)


def test_nis_of_an_overconfident_filter_leaves_the_band():
    sure = dataclasses.replace(CHAIN, Q=0.1 * CHAIN.Q, R=0.5 * CHAIN.R)
    nis = [watch(hf.ExtendedKalmanFilter(sure), recorded(CHAIN, 40, seed)).nis for seed in range(5)]
    assert np.mean(nis) / 2 > 1.5 > chi_square_band(2 * 5 * 40)[1]


@pytest.mark.parametrize("name", ["bootstrap", "guided", "ensemble"])
def test_nis_of_many_particles_is_kalmans(name):
    recording = recorded(CHAIN)
    filters = {
        "bootstrap": lambda: hf.ParticleFilter(CHAIN, 6000, rng=0),
        "guided": lambda: hf.ParticleFilter(CHAIN, 6000, hf.GuidedProposal(), rng=0),
        "ensemble": lambda: hf.EnsembleKalmanFilter(CHAIN, 6000, rng=0),
    }
    exact = watch(hf.ExtendedKalmanFilter(CHAIN), recording).nis
    np.testing.assert_allclose(watch(filters[name](), recording).nis, exact, atol=0.2, rtol=0.15)


def test_an_observation_with_a_missing_entry_is_skipped_where_the_filter_skips_it():
    recording = recorded(UNGM())
    recording.observations[5] = np.nan
    watched = watch(hf.ParticleFilter(UNGM(), 50, rng=0), recording)
    assert np.flatnonzero(watched.nis_degrees == 0).tolist() == [5]


def test_what_the_model_or_the_filter_does_not_tell_is_left_out(constant):
    recording = recorded(UNGM())
    silent = SimpleNamespace(
        dim=1,
        initial=UNGM().initial,
        transition_mean=UNGM().transition_mean,
        transition_covariance=UNGM().transition_covariance,
        log_likelihood=UNGM().log_likelihood,
    )
    wrong = SimpleNamespace(
        **vars(silent), observation_mean=lambda x, step: x[:3], observation_covariance=lambda step: np.eye(2)
    )
    for estimator in (hf.ParticleFilter(silent, 20, rng=0), hf.ParticleFilter(wrong, 20, rng=0), constant(UNGM(), 20, None)):
        watched = watch(estimator, recording, steps=[2])
        assert np.isnan(watched.nis).all()
        assert (watched.nis_degrees == 0).all()
        assert watched.result.means.shape == (20, 1)


def test_a_run_of_ones_own_is_used():
    class Mine(hf.ParticleFilter):
        def run(self, observations, **options):
            return "mine"

    assert watch(Mine(UNGM(), 5), recorded(UNGM())).result == "mine"


def test_errors_of_the_filter_come_through():
    recording = recorded(UNGM())
    recording.observations[3] = np.inf
    with pytest.raises(ValueError, match="z: expected finite numbers") as caught:
        watch(hf.ParticleFilter(UNGM(), 20, rng=0), recording)
    assert len(caught.value.result) == 3
