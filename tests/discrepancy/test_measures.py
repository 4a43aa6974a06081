"""Measures of how well points represent a mixture, against quadrature, Monte Carlo and closed forms."""

import numpy as np
import pytest
from helpers import TILTED, cases, normal
from scipy.special import gammaln
from scipy.stats import ortho_group

from herdfilter.discrepancy import (
    energy_distance,
    expected_energy_distance,
    herding_error,
    normalised_l2,
)
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

SPACE = GaussianMixture(
    [0.7, 0.3], [[0.0, 0.0, 0.0], [3.0, 1.0, -1.0]], [np.diag([1.0, 0.2, 2.0]), np.eye(3) + 0.5]
)
QUADRATURE = 1e-9  # relative error that energy_distance states for its expected distances
MEASURES = {
    "herding error": lambda points, mixture: herding_error(points, mixture, 0.6),
    "normalised L2": lambda points, mixture: normalised_l2(points, mixture, 0.6),
    "energy distance": energy_distance,
}


def some_points(d, n=7, seed=0):
    rng = np.random.default_rng(seed)
    return Points(2 * rng.standard_normal((n, d)), rng.dirichlet(np.ones(n)))


def moved(points, mixture, rotation, shift, scale):
    A = scale * rotation
    return (
        Points(points.x @ A.T + shift, points.weights),
        GaussianMixture(
            mixture.weights, mixture.means @ A.T + shift, A @ mixture.covariances @ A.T
        ),
    )


# Energy distance


@cases("d scale", (1, 1.0), (2, 1e30), (3, 1e6), (200, 1e-30))
def test_energy_distance_of_a_gaussian_and_its_mean(d, scale):
    """2 E|Z| - E|Z - Z'| = (2 - sqrt 2) E|Z|, with E|Z| the mean of a chi distribution."""
    length = scale * np.sqrt(2) * np.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    gaussian = normal(np.zeros(d), scale**2)
    measured = energy_distance(Points(np.zeros((1, d))), gaussian)
    assert measured == pytest.approx((2 - np.sqrt(2)) * length, rel=10 * QUADRATURE, abs=0)


@cases("scale", 1e149, 1e100, 1e-100)
@cases("shared", True, False)
def test_the_energy_distance_keeps_its_digits_in_any_unit(scale, shared):
    points = some_points(3)
    covariances = SPACE.covariances[0] if shared else SPACE.covariances
    plain, large = (
        GaussianMixture(SPACE.weights, s * SPACE.means, s**2 * covariances) for s in (1.0, scale)
    )
    measured = energy_distance(Points(scale * points.x, points.weights), large)
    assert measured / scale == pytest.approx(energy_distance(points, plain), rel=1e-12)


def test_a_point_far_from_a_narrow_gaussian_has_its_own_norm():
    """2 E|x - X| - E|X - X'| of x at 1e149, in one dimension and in two."""
    for d in (1, 2):
        narrow = normal(np.zeros(d), 1e-20)
        measured = energy_distance(Points(np.full((1, d), 1e149)), narrow)
        assert measured == pytest.approx(2 * d**0.5 * 1e149, rel=1e-9)


# All three


def test_moving_and_turning_both_changes_nothing_and_units_change_what_they_measure():
    points = some_points(3)
    s = 1e3
    both = moved(points, SPACE, ortho_group.rvs(3, random_state=7), [1e4, -2e4, 5e3], s)
    assert energy_distance(*both) == pytest.approx(s * energy_distance(points, SPACE), rel=1e-8)
    assert herding_error(*both, 0.6 * s) == pytest.approx(
        s**-1.5 * herding_error(points, SPACE, 0.6), rel=1e-8
    )
    assert normalised_l2(*both, 0.6 * s) == pytest.approx(
        normalised_l2(points, SPACE, 0.6), rel=1e-8
    )


@cases("measure", *MEASURES.values(), ids=MEASURES)
def test_weights_are_multiplicities(measure):
    """Three thousand points in one go, and the same as seven weighted ones."""
    x = some_points(2).x
    counts = np.array([1000, 3, 7, 500, 490, 600, 400])
    many = Points(np.repeat(x, counts, axis=0))
    assert measure(many, TILTED) == pytest.approx(measure(Points(x, counts), TILTED), rel=1e-8)


def test_independent_draws_have_the_energy_distance_expected_of_them():
    dim = 3
    mixture = GaussianMixture(
        [0.3, 0.7], [np.zeros(dim), np.full(dim, 2.0)], [np.eye(dim), 0.2 * np.eye(dim)]
    )
    drawn = [energy_distance(Points(mixture.sample(10, seed)), mixture) for seed in range(240)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert np.mean(drawn) == pytest.approx(expected_energy_distance(mixture, 10), abs=4 * error)
    assert error < 0.05 * np.mean(drawn)


def test_energy_distance_to_a_sample_is_that_to_a_mixture_without_width():
    points = some_points(2, 5)
    sample = some_points(2, 9, seed=1)
    narrow = GaussianMixture(sample.weights, sample.x, np.zeros((2, 2)))
    assert energy_distance(points, sample) == pytest.approx(
        energy_distance(points, narrow), rel=1e-7
    )
    assert energy_distance(points, sample) == pytest.approx(energy_distance(sample, points))
    assert energy_distance(sample, sample) < 1e-14
