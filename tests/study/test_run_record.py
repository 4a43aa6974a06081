"""A filter runs alike under observation, innovations are those of theory, and numbers of a run have their definitions."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_same, cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy.special import gamma

import herdfilter as hf
from herdfilter.models import UNGM, BearingsTracking, count_evaluations, linear_chain
from herdfilter.study.columns import COLUMNS, SERIES, measured, series_of
from herdfilter.study.recording import Recording
from herdfilter.study.reference import Reference, compute_reference
from herdfilter.study.run_record import RunRecord, watch
from herdfilter.study.statistics import chi_square_band
from herdfilter.study.tables import Divergence

CHAIN = linear_chain(2)
FILTERS = {
    "guided": lambda model, n: hf.ParticleFilter(model, n, hf.GuidedProposal(), rng=1),
    "ensemble": lambda model, n: hf.EnsembleKalmanFilter(model, n, rng=1),
    "kalman": lambda model, n: hf.UnscentedKalmanFilter(model),
}


def recorded(model, steps=20, seed=0, **options):
    truth, observations = hf.simulate(model, steps, seed, **options)
    return Recording(truth, observations, **options)


def watched_run(estimator, recording, steps=()):
    """Watch a filter, and keep its particles at some steps, from 0."""
    known = SimpleNamespace(steps=np.array(steps))
    return watch(RunRecord(None, None, recording, known), estimator)


@cases("build", *FILTERS.values(), ids=FILTERS)
def test_watching_changes_nothing(build):
    model = BearingsTracking(initial_covariance=0.1 * np.eye(4))
    recording = recorded(model, dt=0.1)
    recording.observations[[4, 9], [0, 1]] = np.nan
    recording.observations[12] = np.nan
    watched = watched_run(build(model, 40), recording, steps=[3, 19])
    with count_evaluations() as evaluations:
        plain = build(model, 40).run(recording.observations, dt=0.1)
    assert watched.evaluations == evaluations.total
    assert_same(watched.result, plain, "means", "covariances")
    assert watched.result.log_likelihood == plain.log_likelihood
    degrees = np.full(20, 2)
    degrees[[4, 9, 12]] = 1, 1, 0
    assert_array_equal(watched.nis_degrees, degrees)
    assert np.isfinite(watched.nis).tolist() == (degrees > 0).tolist()


def test_particles_are_those_after_the_update():
    recording = recorded(CHAIN)
    watched = watched_run(hf.ParticleFilter(CHAIN, 30, rng=3), recording, steps=[0, 7])
    kept = hf.ParticleFilter(CHAIN, 30, rng=3).run(recording.observations, keep_particles=True)
    assert_equal(watched.particles, {k: (kept.particles[k], kept.weights[k]) for k in (0, 7)})


def test_nis_of_the_kalman_filter_is_white_and_chi_square():
    runs = [
        watched_run(hf.ExtendedKalmanFilter(CHAIN), recorded(CHAIN, 40, seed)) for seed in range(25)
    ]
    nis = np.array([watched.nis for watched in runs])
    low, high = chi_square_band(sum(watched.nis_degrees.sum() for watched in runs), 0.99)
    assert low < nis.mean() / 2 < high
    centred = nis - nis.mean()
    correlation = (centred[:, 1:] * centred[:, :-1]).mean() / centred.var()
    assert abs(correlation) < 3 / np.sqrt(nis.size)


@cases("name", "guided", "ensemble")
def test_nis_of_many_particles_is_kalmans(name):
    recording = recorded(CHAIN)
    exact = watched_run(hf.ExtendedKalmanFilter(CHAIN), recording).nis
    assert_allclose(
        watched_run(FILTERS[name](CHAIN, 6000), recording).nis, exact, atol=0.2, rtol=0.15
    )


def test_what_the_model_or_the_filter_does_not_tell_is_left_out(constant):
    recording = recorded(UNGM())
    told = ("initial", "transition_mean", "transition_covariance", "log_likelihood")
    silent = SimpleNamespace(dim=1, **{name: getattr(UNGM(), name) for name in told})
    for estimator in (hf.ParticleFilter(silent, 20, rng=0), constant(UNGM(), 20, None)):
        watched = watched_run(estimator, recording, steps=[2])
        assert np.isnan(watched.nis).all()
        assert (watched.nis_degrees == 0).all()


def test_errors_of_a_filter_come_through():
    recording = recorded(UNGM())
    recording.observations[3] = np.inf
    with refusal("z: expected finite numbers") as caught:
        watched_run(hf.ParticleFilter(UNGM(), 20, rng=0), recording)
    assert len(caught.value.result) == 3


OF_SETS = {"gospa", "gospa_localisation", "gospa_missed", "gospa_false", "ospa", "cardinality"}
OF_SETS |= {"label_switches", "cardinality_error"}
NAMES = {column.name for column in COLUMNS} - OF_SETS


def record_of(scenario, result, innovations=None):
    truth = np.zeros((len(result.means), 1))
    return RunRecord(
        scenario,
        scenario.build_model(),
        Recording(truth, truth),
        None,
        result,
        0.002 * len(truth),
        innovations,
    )


def test_numbers_are_means_of_the_series(scenario):
    T = 8
    errors = np.array([1.0, 2, 2, 1, 1, 1, 3, 4])
    result = SimpleNamespace(
        means=errors[:, None],
        covariances=np.full((T, 1, 1), 4.0),
        ess=np.arange(T),
        log_likelihood=-3.0,
    )
    result.covariances[2] = 0.0
    nis = np.array([2.0, np.nan, 1, 1, 5, 1, 1, 1])
    degrees = np.array([2.0, 0, 1, 1, 1, 1, 1, 1])
    bounded = dataclasses.replace(scenario, divergence=Divergence(rmse_above=3.6, final_part=0.125))
    known = record_of(bounded, result, innovations=(nis, degrees))
    numbers = measured(known)
    series = series_of(known)
    assert set(series) == {one.name for one in SERIES} - OF_SETS - {"reference", "energy_distance"}
    assert_array_equal(series["truth"], errors**2)
    kept = np.delete(errors**2 / 4, 2)
    expected = {
        "rmse": np.sqrt((errors**2).mean()),
        "final_rmse": 4.0,
        "diverged": 1.0,
        "ess": 3.5,
        "log_likelihood": -3.0,
        "anees": kept.mean(),
        "nees_inside": 6 / 7,  # 4 lies beyond 1.96 standard deviations of 2, 3 does not
        "nees_singular": 1,
        "nees_degrees": 1,
        "nis": 12 / 8,
        "nis_inside": 6 / 7,
        "nis_degrees": 8,
        "ms_per_step": 2.0,
        "seconds": 0.016,
    }
    assert {name: numbers[name] for name in expected} == pytest.approx(expected)
    missing = {
        "evaluations",
        "reference_sd",
        "reference_error",
        "log_likelihood_error",
        "energy_distance",
    }
    missing |= {"reference_uncertainty", "reference_error_sd", "variance_ratio", *OF_SETS} - {
        "cardinality"
    }
    assert {name for name, value in numbers.items() if np.isnan(value)} == missing


def test_a_result_of_means_alone_is_enough(scenario):
    known = record_of(scenario, SimpleNamespace(means=np.ones((4, 1))))
    numbers = measured(known)
    had = {"rmse", "nees_degrees", "nis_degrees", "ms_per_step", "seconds", "diverged"}
    assert {name for name, value in numbers.items() if np.isfinite(value)} == had
    assert list(series_of(known)) == ["truth"]


def test_angles_are_wrapped_in_nees(scenario):
    result = SimpleNamespace(means=np.array([[np.pi - 0.1]]), covariances=np.full((1, 1, 1), 0.01))
    recording = Recording(np.array([[-np.pi + 0.1]]), np.zeros((1, 1)))
    turning = SimpleNamespace(dim=1, circular=(0,))
    known = RunRecord(scenario, turning, recording, result=result)
    assert (known.nees, known.truth) == (pytest.approx(4.0), pytest.approx(0.04))


def gaussian(mean, covariance):
    """A reference of one step."""
    means = mean[None]
    return Reference(means, 0.0, 0 * means, covariance[None], np.arange(1))


@cases("d", 1, 3)
def test_energy_distance_of_exact_draws_falls_as_one_over_n(d):
    """In units of the posterior's standard deviations, independent draws have E|X - X'| / n."""
    rng = default_rng(d)
    scale = 10.0 ** np.arange(d)
    posterior = hf.GaussianMixture([1.0], [np.ones(d)], np.diag(scale**2))
    exact = gaussian(posterior.mean, posterior.covariance)
    expected = 2 * gamma((d + 1) / 2) / gamma(d / 2)
    for n in (10, 80):
        equal = np.full(n, 1 / n)
        draws = [exact.energy_distance(0, posterior.sample(n, rng), equal) for _ in range(60)]
        assert np.mean(draws) * n == pytest.approx(expected, rel=0.3 if d == 1 else 0.15)


def test_energy_distance_ignores_units_and_takes_a_flat_posterior():
    rng = default_rng(0)
    x = rng.standard_normal((20, 2))
    weights = np.full(20, 0.05)
    covariance = np.array([[1.0, 0.5], [0.5, 2.0]])
    units = np.diag([1e3, 1e-2])
    distance = gaussian(np.zeros(2), covariance).energy_distance(0, x, weights)
    wide = gaussian(np.zeros(2), units @ covariance @ units)
    assert wide.energy_distance(0, x @ units, weights) == pytest.approx(distance)
    flat = gaussian(np.zeros(2), np.diag([1.0, 0.0]))
    assert np.isfinite(flat.energy_distance(0, x, weights))


def test_references_know_their_posteriors(scenario):
    """Of a linear Gaussian model the grid and the Kalman filter have the same, and particles the same distance to it."""
    grid = dataclasses.replace(
        scenario, reference={"type": "grid", "lower": -15.0, "upper": 15.0, "points": 3001}
    )
    model = scenario.build_model()
    truth, observations = hf.simulate(model, 25, 3)
    exact, gridded = (
        compute_reference(s, model, Recording(truth, observations), default_rng(0))
        for s in (scenario, grid)
    )
    assert_allclose(gridded.covariances, exact.covariances, atol=1e-6)
    rng = default_rng(0)
    assert_array_equal(gridded.steps, exact.steps)
    for k in exact.steps:
        x = rng.multivariate_normal(exact.means[k], 4 * exact.covariances[k], 20)
        weights = rng.dirichlet(np.ones(20))
        distances = [known.energy_distance(k, x, weights) for known in (exact, gridded)]
        assert distances[0] == pytest.approx(distances[1], rel=1e-3)


def test_the_table_has_it_all(scenario):
    filters = {"few": "bootstrap", "kalman": {"filter": "ExtendedKalmanFilter"}}
    table = hf.compare(scenario, filters, particles=[10, 500], runs=4)
    assert set(table) > NAMES
    particles = table[table["filter"] == "few"]
    assert np.isfinite(particles[list(NAMES - {"final_rmse"})].astype(float)).all(axis=None)
    distances = particles.groupby("n_particles")["energy_distance"].mean()
    assert distances[10] > 10 * distances[500] > 0
    assert table.loc[table["filter"] == "kalman", "energy_distance"].isna().all()


def test_a_filter_that_is_watched_needs_no_model():
    recording = recorded(UNGM())
    recording.observations[3] = np.nan

    class OwnFilter:
        step = 0

        def predicted_observation(self):
            return np.zeros(1), np.eye(1)

        def run(self, observations, watcher, **_):
            for z in observations:
                self.step += 1
                watcher.predicted(self, z)
            return SimpleNamespace(means=np.zeros((len(observations), 1)))

    expected = recording.observations[:, 0] ** 2
    assert watched_run(OwnFilter(), recording).nis == pytest.approx(expected, nan_ok=True)
