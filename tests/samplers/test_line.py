"""A mixture on a line: log-densities by cells against sums over all pairs, and few components that stand for many."""

import numpy as np
from helpers import cases
from numpy.random import default_rng
from scipy.special import logsumexp, softmax

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.line import log_densities
from herdfilter.samplers.quantile import quantiles


def over_all_pairs(mixture, x):
    deviations = np.sqrt(mixture.covariances[:, 0, 0])
    terms = -0.5 * ((x - mixture.means[:, 0]) / deviations) ** 2 - np.log(
        np.sqrt(2 * np.pi) * deviations
    )
    return logsumexp(terms, axis=1, b=mixture.weights)


def expect_same(mixture, x, slopes=0.0):
    expected = over_all_pairs(mixture, x)
    error = np.abs(log_densities(mixture, x) - expected)
    assert (error <= 1e-12 + 1e-12 * np.abs(expected) + slopes).all()


def of_one_unit(mixture, x):
    """Change of the terms by one unit in the last place of the points and of the means, in the mean over their shares."""
    deviations = np.sqrt(mixture.covariances[:, 0, 0])
    u = (x - mixture.means[:, 0]) / deviations
    with np.errstate(divide="ignore"):
        terms = -0.5 * u**2 + np.log(mixture.weights / deviations)
    unit = np.spacing(np.abs(x)) + np.spacing(np.abs(mixture.means[:, 0]))
    return np.sum(softmax(terms, axis=1) * np.abs(u) / deviations * unit, axis=1)


def crowd(spread, weights="even", widths=(1.0, 1.0), size=600):
    """Many components, some standard deviations of one of them apart."""
    rng = default_rng(3)
    means = spread * rng.standard_normal((size, 1))
    covariances = rng.uniform(*widths, (size, 1, 1)) if widths[0] < widths[1] else np.eye(1)
    share = {
        "even": np.ones(size),
        "of one place": np.exp(-0.5 * (11 * means[:, 0] / spread) ** 2),
    }[weights]
    return GaussianMixture(share, means, covariances)


@cases(
    "mixture",
    crowd(5.0),
    crowd(300.0),
    crowd(5.0, widths=(0.01, 3.0)),
    crowd(200.0, "of one place"),
    ids=["crowded", "spread", "of many widths", "nearly all weights next to nothing"],
)
def test_many_components(mixture):
    expect_same(mixture, np.concatenate([mixture.means[:300], mixture.means[:100] * 1.7 + 3]))
    assert log_densities(mixture, np.array([[1e200]]))[0] == -np.inf


def test_hostile_mixtures_near_and_far(hostile_mixture):
    """At the components, nine of their deviations away, and between them; places are known to one unit in the last place."""
    rng = default_rng(0)
    seen = 0
    for seed in range(200):
        mixture = hostile_mixture(seed)
        if mixture.dim == 1 and mixture.covariances.min() > 0:
            wide = mixture.mean + 5 * np.sqrt(mixture.covariance) * rng.standard_normal((20, 1))
            away = mixture.means + 9 * np.sqrt(mixture.covariances[:, :, 0])
            x = np.concatenate([mixture.means, away, wide])
            expect_same(mixture, x, of_one_unit(mixture, x))
            seen += 1
    assert seen > 15


def test_the_same_mixture_has_the_same_bits_wherever_its_arrays_lie():
    rng = default_rng(0)
    weights = rng.dirichlet(np.ones(20))
    means = rng.normal(size=(20, 1))
    x = rng.normal(size=(20, 1))
    levels = (np.arange(20) + 0.5) / 20
    held = []
    found = set()
    for k in range(64):
        held = [*held[-40:], np.empty(rng.integers(1, 2000))]
        places = [np.empty(36)[k % 8 :][:20] for _ in range(3)]
        for place, values in zip(places, (weights, means, x), strict=True):
            place[:] = values.ravel()
        mixture = GaussianMixture.unchecked(places[0], places[1][:, None], np.full((1, 1, 1), 0.3))
        points, log_ratios = quantiles(mixture, levels, np.sort(weights))
        found.add(
            points.tobytes()
            + log_ratios.tobytes()
            + log_densities(mixture, places[2][:, None]).tobytes()
        )
    assert len(found) == 1


def test_a_weight_that_underflows_over_its_width_keeps_its_logarithm():
    mixture = GaussianMixture([1.0, 1e-200], [[0.0], [0.0]], [[[1.0]], [[1e290]]])
    x = np.array([[0.0], [100.0]])
    expected = [-0.5 * np.log(2 * np.pi), np.log(1e-200) - 0.5 * np.log(2 * np.pi * 1e290)]
    np.testing.assert_allclose(log_densities(mixture, x), expected, rtol=1e-12)
