"""Expectation-maximisation as it is fitted against the same written out in NumPy: seeds, rounds, ends, the number by BIC."""

import numpy as np
from helpers import cases
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from herdfilter._covariances import plain_and_regular, regularised
from herdfilter.fitting import EMFit
from herdfilter.fitting.em import FEWEST_RISES, SEED_CANDIDATES


def spread_seeds(z, w, count):
    """Of candidates evenly spaced in weight, each that lowers the distances of all points to the nearest one most."""
    candidates = np.unique(
        np.searchsorted(np.cumsum(w), (np.arange(SEED_CANDIDATES) + 0.5) / SEED_CANDIDATES)
    )
    distances = ((z[candidates, None] - z) ** 2).sum(axis=2)
    nearest = np.full(len(z), np.inf)
    chosen = []
    for _ in range(count):
        chosen.append((np.minimum(nearest, distances) @ w).argmin())
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return z[candidates[chosen]]


def raised(covariance, floor):
    values, vectors = np.linalg.eigh(covariance)
    return covariance if values[0] > floor else (vectors * np.maximum(values, floor)) @ vectors.T


def rounds(z, w, seeds, widening, options, wanted=-np.inf):
    """Weights, means, covariances and the log-likelihoods since a component was dropped, by the formulas."""
    shares = np.where(
        ((z - seeds[:, None]) ** 2).sum(axis=2).argmin(axis=0) == np.arange(len(seeds))[:, None],
        w,
        0.0,
    )
    history = []
    first = True
    while len(history) < options.max_iterations:
        weights = shares.sum(axis=1)
        means = shares @ z / weights[:, None]
        scatter = [(s * (z - m).T) @ (z - m) for s, m in zip(shares, means, strict=True)]
        if options.shared or first:
            scatter = [sum(scatter)] * len(weights)
        else:
            scatter = [s / weight for s, weight in zip(scatter, weights, strict=True)]
        covariances = np.array([raised(s + widening, options.floor) for s in scatter])
        effective = weights**2 / (shares**2).sum(axis=1)
        dropped = (
            not first and len(weights) > 1 and effective.min() < (options.least or z.shape[1] + 1)
        )
        if dropped:
            kept = np.arange(len(weights)) != effective.argmin()
            weights = weights[kept]
            means = means[kept]
            covariances = covariances[kept]
        normals = [
            multivariate_normal(m, C).logpdf(z).reshape(-1)
            for m, C in zip(means, covariances, strict=True)
        ]
        logs = np.log(weights / weights.sum())[:, None] + normals
        whole = logsumexp(logs, axis=0)
        shares = w * np.exp(logs - whole)
        history = [] if first or dropped else [*history, w @ whole]
        first = False
        if len(history) > 1:
            rise = history[-1] - history[-2]
            if rise < options.tolerance or history[-1] + FEWEST_RISES * rise < wanted:
                break
    return weights, means, covariances, history


def written_out(options, x, w):
    """Weights, means and covariances of a fit, in coordinates in which all particles have covariance I."""
    order = np.lexsort((w, *x.T[::-1]))
    x = x[order]
    w = w[order]
    plain, regular = plain_and_regular(x, w, x - w @ x)
    factor = np.linalg.cholesky(regular)
    inverse = np.linalg.inv(factor)
    z = (x - w @ x) @ inverse.T
    widening = inverse @ (regular - plain) @ inverse.T
    if options.n_components == "bic":
        best = None
        highest = -np.inf
        effective = 1 / (w @ w)
        seeds = spread_seeds(z, w, options.max_components)
        d = x.shape[1]

        def penalty(k):
            parameters = k - 1 + k * d + (1 if options.shared else k) * d * (d + 1) / 2
            return 0.5 * parameters * np.log(effective) / effective

        for count in range(1, options.max_components + 1):
            fit = rounds(z, w, seeds[:count], widening, options, highest + penalty(count))
            score = fit[3][-1] - penalty(len(fit[0]))
            if score <= highest:
                break
            best = fit
            highest = score
    else:
        best = rounds(z, w, spread_seeds(z, w, options.n_components), widening, options)
    weights, means, covariances, _ = best
    return (
        weights,
        w @ x + means @ factor.T,
        np.array([regularised(factor @ C @ factor.T) for C in covariances]),
    )


def same_fits(options, x, w):
    fit = options.fit(x, w)
    (weights, means, covariances) = written_out(options, x, w)
    assert_allclose(fit.weights, weights, rtol=1e-6)
    assert_allclose(fit.means, means, rtol=1e-6, atol=1e-8)
    assert_allclose(fit.covariances, covariances, rtol=1e-6, atol=1e-8)
    return len(weights)


def groups(seed, d, n=90):
    """Three groups, one of them of five particles, and their uneven weights."""
    rng = np.random.default_rng(seed)
    place = np.where(np.arange(n) % 3, 1.0, -1.5) + 4.0 * (np.arange(n) < 5)
    return rng.standard_normal((n, d)) + place[:, None], rng.dirichlet(np.full(n, 2.0))


@cases(
    "d count options",
    (1, 3, {}),
    (2, 2, {"shared": True}),
    (3, 3, {}),
    (2, 4, {"least": 20.0}),
    (2, 3, {"floor": 0.3}),
    (3, 2, {"tolerance": 1e-9, "max_iterations": 5}),
    (2, 3, {"shared": True, "tolerance": 1e-6, "least": 1.0}),
)
def test_a_fit_is_that_of_the_formulas(d, count, options):
    """Groups of few particles are dropped, narrow ones widened by the floor; a second time one state is known exactly."""
    sizes = set()
    for seed in range(4):
        x, w = groups(seed, d)
        sizes.add(same_fits(EMFit(count, **options), x, w))
        if d > 1:
            same_fits(EMFit(count, **options), np.column_stack([x[:, 1:], np.full(len(x), 3.0)]), w)
    assert (min(sizes) < count) == (options.get("least", d + 1.0) > d + 1)


@cases("d shared", (1, False), (2, True), (3, False))
def test_the_number_of_components_is_that_of_the_information_criterion(d, shared):
    """Trials that rise too slowly are given up, as they are by hand."""
    sizes = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((80, d)) + rng.choice(
            [-seed / 5, seed / 5, 7.0], (80, 1), p=[0.45, 0.45, 0.1]
        )
        sizes.add(same_fits(EMFit("bic", shared=shared), x, rng.dirichlet(np.full(80, 3.0))))
    assert len(sizes) > 1
