"""Bandwidths as numbers, widths, matrices and rules."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import EYE, TILTED, cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter import bandwidths
from herdfilter.bandwidths import check_bandwidth, kernel_covariance, scale_rule
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, Polished

KERNEL = np.array([[0.7, 0.3], [0.3, 0.5]])
SHARED = GaussianMixture([0.6, 0.4], [[0.0, 1.0], [2.0, -1.0]], [[1.0, 0.6], [0.6, 0.8]])
RULES = [
    bandwidths.Whitened(),
    bandwidths.Whitened(constant=1.4, offset=4.0),
    bandwidths.Whitened(metric="diagonal"),
    bandwidths.Whitened(metric="components"),
    bandwidths.Scott(),
    bandwidths.Silverman(),
]


def test_whitened_widths_follow_their_formulas():
    assert bandwidths.Whitened().width(70, 3) == scale_rule(70, 3)
    assert bandwidths.Whitened(1.4, 4).width(32, 1) == pytest.approx(1.4 / 2)
    h = (4 / (100 * 4)) ** (1 / 6)
    assert_allclose(bandwidths.Silverman().covariance(TILTED, 100), h**2 * TILTED.covariance)
    assert_allclose(bandwidths.Scott().covariance(TILTED, 64), TILTED.covariance / 4)


@cases("mixture", TILTED, SHARED)
def test_whitened_metrics(mixture):
    width = scale_rule(30, 2) ** 2
    components = np.tensordot(mixture.weights, mixture.covariances, axes=1)
    for metric, expected in (
        ("diagonal", np.diag(np.diag(mixture.covariance))),
        ("components", components),
    ):
        found = bandwidths.Whitened(metric=metric).covariance(mixture, 30)
        assert_allclose(found, width * expected, rtol=1e-12)


@cases("rule", *RULES, ids=repr)
def test_rules_give_positive_definite_matrices_even_for_flat_mixtures(rule):
    flat = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]], np.diag([1.0, 0.0]))
    for mixture in (TILTED, flat):
        cov = kernel_covariance(rule, mixture, 20)
        np.linalg.cholesky(cov)
        assert_array_equal(cov, cov.T)


@cases("rule", *RULES, ids=repr)
@cases("kind", KernelHerding, ContinuousHerdedGibbs)
def test_samplers_take_rules_and_widths(kind, rule):
    by_rule = kind(bandwidth=rule).sample(TILTED, 12)
    by_matrix = kind(bandwidth=kernel_covariance(rule, TILTED, 12)).sample(TILTED, 12)
    assert_allclose(by_rule.x, by_matrix.x, atol=1e-6)
    assert kind(bandwidth=rule) == kind(bandwidth=rule)


def test_one_width_for_each_dimension():
    assert check_bandwidth("bandwidth", np.array([0.5, 2.0])) == (0.5, 2.0)
    assert KernelHerding(bandwidth=[0.5, 2.0]) == KernelHerding(bandwidth=(0.5, 2.0))
    with refusal(r"bandwidth: expected shape \(2,\) or \(2, 2\) .* got \(3,\)"):
        KernelHerding(bandwidth=[1.0, 1.0, 1.0]).sample(TILTED, 3)


@dataclass(frozen=True)
class Broken:
    matrix: tuple

    def covariance(self, mixture, n):
        return np.array(self.matrix)


test_what_a_rule_gives_is_checked = refuses(
    lambda matrix: Polished(KernelHerding(), bandwidth=Broken(matrix)).sample(TILTED, 5),
    (((1.0,),), r"bandwidth: Broken.*: expected shape \(2, 2\)"),
    (((1.0, 0.0), (0.0, 0.0)), "bandwidth: Broken.*: expected a positive definite"),
    (((1.0, 0.0), (0.0, np.nan)), "expected finite numbers"),
)


test_bad_arguments_of_rules_are_named = refuses(
    lambda arguments: bandwidths.Whitened(**arguments),
    ({"constant": 0.0}, "constant: expected a positive finite number, got 0.0"),
    ({"offset": np.nan}, "offset: expected a positive finite number, got nan"),
    ({"metric": "mixtur"}, "metric: unknown 'mixtur'; did you mean 'mixture'"),
)


@cases("d", 1, 2, 3, 4, 8, 20)
def test_rule_shrinks_a_little_slower_than_the_distance_between_points(d):
    """That distance falls as n^(-1/d), the rule as n^(-1/(d + 1)); it starts between one and three deviations."""
    assert scale_rule(2 ** (d + 1), d) == pytest.approx(0.5 * scale_rule(1, d), rel=1e-12)
    assert 1 < scale_rule(1, d) < 3


@cases("singular", False, True)
def test_auto_follows_a_change_of_units(singular):
    units = np.diag([1e-6, 3.0, 1e5])
    root = np.random.default_rng(0).standard_normal((3, 2 if singular else 3))
    means = np.zeros((1, 3))
    before = kernel_covariance("auto", GaussianMixture([1.0], means, root @ root.T), 100)
    scaled = units @ root
    after = kernel_covariance("auto", GaussianMixture([1.0], means, scaled @ scaled.T), 100)
    assert_allclose(after, units @ before @ units, rtol=1e-6)
    assert np.linalg.eigvalsh(before)[0] > 0


@cases(
    "bandwidth expected",
    (0.5, 0.25 * EYE),
    ([0.5, 2.0], np.diag([0.25, 4.0])),
    (KERNEL.tolist(), KERNEL),
)
def test_numbers_and_matrices_are_taken_as_they_are(bandwidth, expected):
    for value in (bandwidth, np.array(bandwidth)):
        assert_array_equal(kernel_covariance(value, TILTED, 7), expected)


test_bad_bandwidths_are_named = refuses(
    lambda value: check_bandwidth("bandwidth", value),
    ("wide", "expected \"auto\", a rule, a number, .* got 'wide'"),
    (0, "expected a positive finite number, got 0"),
    (np.nan, "expected a positive finite number, got nan"),
    (True, "expected a positive finite number, got True"),
    ([0.1, 0.0], "expected a positive finite number, got 0.0"),
    ([[1.0, 0.0]], r"expected square matrices.* got shape \(1, 2\)"),
    ([[1.0, 0.5], [0.4, 1.0]], "expected symmetric matrices, got an asymmetry of 0.1"),
    ([[1.0, 2.0], [2.0, 1.0]], "expected positive semi-definite matrices, got an eigenvalue of -1"),
    ([[1.0, 1.0], [1.0, 1.0]], "expected a positive definite"),
    words="bandwidth: {}",
)
