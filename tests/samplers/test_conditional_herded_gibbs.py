"""Herded Gibbs from conditional densities alone: the same points as with the mixture, other joint densities, bad input."""

import pickle

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs
from herdfilter.samplers.conditional_herded_gibbs import ConditionalError, ConditionalHerdedGibbs
from herdfilter.testing import random_mixture


def conditionals_of(mixture):
    def of(i):
        rest = [j for j in range(mixture.dim) if j != i]
        return lambda v, x: np.exp(
            (mixture.conditional(rest, x[rest]) if rest else mixture).log_density(v[:, None])
        )

    return [of(i) for i in range(mixture.dim)]


def wide_bounds(mixture):
    reach = 8 * np.sqrt(mixture.covariances.diagonal(axis1=1, axis2=2).max(axis=0))
    return np.column_stack((mixture.means.min(axis=0) - reach, mixture.means.max(axis=0) + reach))


def herd(mixture, n, start, bandwidth, **options):
    sampler = ConditionalHerdedGibbs(bandwidth, **options)
    points = sampler.herd(conditionals_of(mixture), n, start, wide_bounds(mixture))
    assert_array_equal(points.weights, 1 / n)
    return points.x


# The published recursion, by the sampler that knows the mixture


@cases("d options", (1, {}), (2, {"sweeps": 2}), (3, {"effective_count": False}), (5, {}))
def test_a_mixture_s_own_conditionals_give_the_points_of_the_mixture(d, options):
    mixture = random_mixture(d, d, n_components=3)
    reference = ContinuousHerdedGibbs("paper", 0.6, **{"effective_count": True} | options)
    expected = reference.sample(mixture, 30, start=mixture.mean)
    assert_allclose(herd(mixture, 30, mixture.mean, 0.6, **options), expected.x, atol=1e-4)


def test_conditionals_narrower_than_the_search_grid_are_resolved():
    """Few points: the published recursion magnifies rounding where the target is narrow next to the kernel."""
    mixture = random_mixture(3, 2, n_components=3)
    narrow = GaussianMixture(mixture.weights, mixture.means, 2e-3 * mixture.covariances)
    assert np.sqrt(narrow.covariances.diagonal(axis1=1, axis2=2)).min() < 0.2 * 0.5 / 4
    start = narrow.means[narrow.weights.argmax()] + [0.03, -0.05]
    reference = ContinuousHerdedGibbs("paper", 0.5, effective_count=True)
    expected = reference.sample(narrow, 12, start=start)
    assert_allclose(herd(narrow, 12, start, 0.5), expected.x, atol=1e-4)


def test_a_kernel_width_for_each_coordinate_is_a_change_of_units():
    mixture = random_mixture(4, 3)
    units = np.array([1e-3, 1.0, 50.0])
    scaled = GaussianMixture(
        mixture.weights, mixture.means * units, mixture.covariances * np.outer(units, units)
    )
    points = herd(mixture, 30, mixture.mean, 0.7)
    other = herd(scaled, 30, scaled.mean, 0.7 * units)
    assert_allclose(other / units, points, atol=1e-4)


def test_unnormalised_conditionals_give_the_same_points():
    mixture = random_mixture(5, 2)
    exact = conditionals_of(mixture)
    scaled = [
        lambda v, x, f=f: 1e-30 * (1 + x[0] ** 2 + x[1] ** 2) * f(v, x) for f in exact[:1]
    ] + [lambda v, x: 1e30 * exact[1](v, x)]
    bounds = wide_bounds(mixture)
    points = ConditionalHerdedGibbs(0.5).herd(exact, 30, mixture.mean, bounds)
    other = ConditionalHerdedGibbs(0.5, normalised=False).herd(scaled, 30, mixture.mean, bounds)
    assert_allclose(other.x, points.x, atol=1e-6)


def test_rounding_moves_no_point_where_the_objective_is_flat():
    """Between the first few points of a uniform density the objective is the same for many kernel widths."""
    # uniform on a triangle
    conditionals = [lambda v, x: 1.0 * (v + x[1] <= 1), lambda v, x: 1.0 * (v + x[0] <= 1)]
    bounds = [[0, 1], [0, 1]]
    points = ConditionalHerdedGibbs(0.024, normalised=False).herd(
        conditionals, 40, [0.31, 0.27], bounds
    )
    for change in (-1e-14, -2.5e-16, 2.5e-16, 1e-14):
        other = ConditionalHerdedGibbs(0.024 * (1 + change), normalised=False)
        moved = other.herd(conditionals, 40, [0.31, 0.27], bounds)
        assert_allclose(moved.x, points.x, atol=1e-4 * 0.024)


def test_of_a_flat_objective_the_middle_of_the_longest_stretch_is_taken():
    uniform = [lambda v, x: np.ones(len(v))]
    x = ConditionalHerdedGibbs(0.01).herd(uniform, 4, [0.2], [[0, 1]]).x[:, 0]
    assert_allclose(x[1], 0.6, atol=0.01)
    assert sorted(x[2:].round(1)) == [0.4, 0.8]


def test_of_equally_high_peaks_the_last_is_taken():
    for width in np.linspace(0.4, 0.6, 9):
        assert sample(bandwidth=width, n=2).x[1].min() > 0.2


# The contract


def test_points_are_bit_identical_and_arguments_untouched():
    mixture = random_mixture(6, 2)
    start = mixture.mean.copy()
    bounds = wide_bounds(mixture)

    def meddling(i):
        def density(v, x):
            p = conditionals_of(mixture)[i](v, x)
            x[:] = np.nan
            return p

        return density

    sampler = ConditionalHerdedGibbs([0.4, 0.5])
    points = sampler.herd(conditionals_of(mixture), 20, start, bounds).x
    assert_array_equal(
        sampler.herd([meddling(0), meddling(1)], 20, start, bounds.tolist()).x, points
    )
    assert_array_equal(start, mixture.mean)
    assert_array_equal(points[0], start)


# Bad input


def normal(v, x):
    return np.exp(-0.5 * v * v) / np.sqrt(2 * np.pi)


BOX = [[-8, 8], [-8, 8]]


def sample(second=normal, n=5, start=(0, 0), bounds=BOX, **options):
    return ConditionalHerdedGibbs(**{"bandwidth": 0.5} | options).herd(
        [normal, second], n, start, bounds
    )


@cases(
    "density message",
    (lambda v, x: normal(v[:-1], x), r"expected shape \(129,\), got \(128,\)"),
    (lambda v, x: normal(v, x) - 0.1, "expected non-negative numbers, got -0.1 at -8"),
    (
        lambda v, x: 2 * normal(v, x),
        r"expected an integral of 1 over the bounds \[-8, 8\], got 2; widen",
    ),
)
def test_a_bad_conditional_is_named_before_sampling_starts(density, message):
    calls = []

    def first(v, x):
        calls.append(1)
        return normal(v, x)

    with refusal(message, ConditionalError) as caught:
        ConditionalHerdedGibbs(0.5).herd([first, density], 5, [0, 0], BOX)
    error = caught.value
    assert str(error).startswith("conditionals[1] at x = [0., 0.]: ")
    assert error.coordinate == 1
    assert len(calls) == 1
    assert error.x.tolist() == [0, 0]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.coordinate, again.integral) == (str(error), 1, error.integral)


def test_a_conditional_that_goes_wrong_on_the_way_is_named_with_its_place():
    def leaking(v, x):
        return normal(v, x) * (1.0 if abs(x[0]) < 0.5 else 0.8)

    with refusal(
        r"conditionals\[1\] at x = \[.*\]: expected an integral of 1", ConditionalError
    ) as caught:
        sample(leaking, n=50)
    assert abs(caught.value.x[0]) >= 0.5
    assert caught.value.integral == pytest.approx(0.8, abs=1e-6)
    assert len(sample(leaking, n=50, normalised=False)) == 50


def test_a_conditional_that_vanishes_cannot_be_normalised():
    with refusal("expected a positive integral over the bounds", ConditionalError):
        sample(lambda v, x: 0 * v, normalised=False)


test_bad_arguments_are_named = refuses(
    lambda arguments: sample(**arguments),
    (
        {"bandwidth": "auto"},
        "bandwidth: expected a positive number .* got 'auto'; there is no mixture",
    ),
    (
        {"bandwidth": [0.5, 0.5, 0.5]},
        "bandwidth: expected a number or 2 of them, one per coordinate, got 3",
    ),
    (
        {"start": [0, 9]},
        r"start: expected coordinate 1 to be within its bounds \[-8.0, 8.0\], got 9.0",
    ),
    ({"bounds": [[-8, 8], [8, -8]]}, "bounds: expected low < high for coordinate 1"),
    (
        {"bandwidth": [0.5, 1e-5]},
        r"bounds: expected \[-8, 8\] of coordinate 1 to hold at most 1,048,576 .* got 6,400,000",
    ),
)
