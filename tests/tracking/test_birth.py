"""Births: at known places, and where detections are."""

import numpy as np
import pytest
from helpers import assert_same, cases, normal, polar, refuses
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.tracking import Birth, BirthFromMeasurements, LMBTracker
from herdfilter.tracking.birth import UnexplainedDetections


@cases("name", "ekf", "auto")
@cases("certain", False, True)
def test_a_birth_stands_where_it_is_said_to_be(name, certain, walk, cluttered):
    """Components of different shapes, also certain of one entry; filters of one Gaussian have their moments."""
    covariances = np.array([[[4.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]])
    if certain:
        covariances[:, 1] = covariances[:, :, 1] = 0.0
    mixture = hf.GaussianMixture([0.3, 0.7], [[-3.0, 1.0], [3.0, 1.0]], covariances)
    births = [Birth(0.1, mixture)]
    tracker = LMBTracker(cluttered(walk), births, filter=name, n_particles=400, rng=1)
    tracker.predict()
    (born,) = tracker.tracks
    assert (born.label, born.existence) == ((1, 0), 0.1)
    # Means to 3, variances to 10; particles are about there.
    assert_same(born, mixture, "mean", "covariance", atol=1e-12 if name == "ekf" else 0.3)


def test_deterministic_particles_are_born_with_the_detection_in_view(walk, cluttered, gaussian):
    """A birth 1000 times as wide as the noise: 20 particles have the moments of the Kalman filter."""
    wide = Birth(0.1, gaussian(0, 0, variance=700.0**2))
    kalman, particles = (
        LMBTracker(cluttered(walk, 0.9, 1e-9), [wide], filter=name, n_particles=20)
        for name in ("ekf", "auto")
    )
    for tracker in (kalman, particles):
        tracker.predict()
        tracker.update([[900.0, -400.0]])
    for one, other in zip(kalman.tracks, particles.tracks, strict=True):
        assert one.existence == pytest.approx(other.existence, rel=1e-9)
        assert_same(one, other, "mean", "covariance", atol=1e-3)


SEEN = hf.Sensor(polar, np.diag([1.0, 0.01**2]), circular=[1])


def test_a_detection_of_radar_points_to_where_it_was_made(walk):
    """To mean and covariance of range and bearing, turned into the plane, with a prior as wide as the sea."""
    prior = normal([0.0, 0.0], 1e8)
    bearing = 3.14

    def state(z):
        return z[:, :1] * np.column_stack([np.cos(z[:, 1]), np.sin(z[:, 1])])

    means, covariances = BirthFromMeasurements(prior, state=state).locate(
        SEEN.on(walk), np.array([[500.0, bearing]]), 1
    )
    along = np.array([np.cos(bearing), np.sin(bearing)])
    across = np.array([-np.sin(bearing), np.cos(bearing)])
    assert_allclose(means[0], 500 * along, atol=0.01)
    assert_allclose(
        [along @ covariances[0] @ along, across @ covariances[0] @ across], [1, 25], rtol=0.01
    )


def test_a_scan_of_no_detection_leads_to_no_birth(walk, cluttered):
    anywhere = normal([0.0, 0.0], 1e4)
    tracker = LMBTracker(
        cluttered(walk, lambda x: np.full(len(x), 0.95), 1e-4),
        BirthFromMeasurements(anywhere),
        filter="ekf",
    )
    result = tracker.run([[], [[5.0, 1.0]], []])
    assert result.cardinality[:2].tolist() == [0, 0]
    assert [track.label for track in tracker.tracks] == [(3, 0)]


test_what_is_wrong_with_births_is_named = refuses(
    lambda build, *given: build(*given),
    (Birth, 1.5, normal([0.0, 0.0]), "probability: expected a fraction from 0 to 1, got 1.5"),
    (TypeError, Birth, 0.5, 3.0, "initial: expected a herdfilter.GaussianMixture, got 3.0"),
    (BirthFromMeasurements, normal([0.0], 0.0), "positive definite"),
)


def test_births_are_as_probable_as_detections_are_unexplained(walk, gaussian, cluttered):
    """The expected number is shared out over all scans of a step, up to the largest probability of one."""
    prior = gaussian(0, 0, variance=1e4)
    model = cluttered(walk)
    births = BirthFromMeasurements(prior, expected=0.3, most=0.2)
    z = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    scans = [
        UnexplainedDetections(model, z, np.array([0.5, 0.0, 1.0])),
        UnexplainedDetections(model, np.empty((0, 2)), np.empty(0)),
    ]
    scans.append(UnexplainedDetections(model, z[:1], np.array([0.25])))
    born = births.births_at(scans, 1, dt=0.5)
    assert [one.probability for one in born] == pytest.approx(
        0.15 * np.array([0.5, 1.0, 0.25]) / 1.75
    )
    assert_allclose([one.initial.means[0] for one in born], z[[0, 2, 0]], atol=0.01)
    most = [one.probability for one in births.births_at(scans, 1, dt=2.0)]
    assert most == pytest.approx([0.6 * 0.5 / 1.75, 0.2, 0.6 * 0.25 / 1.75])
    assert births.births_at([], 1, 1.0) == []
    assert births.births_at([UnexplainedDetections(model, z, np.zeros(3))], 1, 1.0) == []


def test_births_are_shared_out_by_what_is_detected_and_what_is_clutter_there(walk, gaussian):
    births = BirthFromMeasurements(gaussian(0, 0, variance=1e8), expected=0.3, most=1.0)
    z = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    u = np.array([0.5, 1.0, 1.0])
    p = np.array([0.9, 0.45, 0.0])
    density = np.array([1e-3, 2e-3, 1e-3])

    def at(values):
        return lambda x: values[np.rint(x[:, 0] / 2).astype(int)]

    def rates(*arguments):
        model = hf.models.WithClutter(walk, *arguments)
        return [
            one.probability
            for one in births.births_at([UnexplainedDetections(model, z, u)], 1, dt=1.0)
        ]

    for arguments, odds in (
        ((at(p), at(density)), u * p / density),
        ((at(p), 0.0), u * p),
        ((0.9, at(density)), u / density),
    ):
        assert rates(*arguments) == pytest.approx((0.3 * odds / odds.sum())[odds > 0])
    assert rates(lambda x: np.zeros(len(x)), 1e-3) == []


def test_the_posterior_of_a_bent_detection_is_a_stationary_point_with_the_curvature_of_gauss_and_newton(
    walk,
):
    prior = hf.GaussianMixture([1.0], [[30.0, 40.0]], [[[80.0, 20.0], [20.0, 60.0]]])
    z = np.array([[45.0, 0.8]])
    model = SEEN.on(walk)
    (mean,), (covariance,) = BirthFromMeasurements(prior).locate(model, z, 1)
    r2 = mean @ mean
    slope = np.array([mean / np.sqrt(r2), [-mean[1] / r2, mean[0] / r2]])
    weight = np.diag([1.0, 1e4])
    left = z[0] - [np.sqrt(r2), np.arctan2(mean[1], mean[0])]
    inverse = np.linalg.inv(prior.covariances[0])
    assert_allclose(slope.T @ weight @ left, inverse @ (mean - [30.0, 40.0]), atol=1e-5)
    assert_allclose(np.linalg.inv(covariance), inverse + slope.T @ weight @ slope, rtol=1e-5)


def test_detections_that_one_target_may_have_made_start_one_track(walk, gaussian):
    """No further apart than two of one target on average: the mean square of their difference, in their noise, is m."""
    births = BirthFromMeasurements(gaussian(0, 0, variance=100.0), expected=0.3, most=0.2)
    sd = np.sqrt(0.5)  # of a detection; 2 sd are as far as two of one target on average
    z = np.array([[0.0, 0.0], [1.9 * sd, 0.0], [9.0, 0.0], [9.0, 2.1 * sd]])
    model = hf.models.WithClutter(walk, 0.9, 1e-3)
    born = births.births_at([UnexplainedDetections(model, z, np.ones(4))], 1, 1.0)
    assert [one.probability for one in born] == pytest.approx([0.15, 0.075, 0.075])
    means, covariances = births.locate(walk, z, 1)
    pair = hf.GaussianMixture([0.5, 0.5], means[:2], covariances[:2])
    assert_same(born[0].initial, pair, "mean", "covariance", atol=1e-12)
    assert_allclose([one.initial.mean for one in born[1:]], means[2:])
