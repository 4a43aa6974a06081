"""Compiled fits against the same rounds written out: what they do to points, not only where they end."""

import numpy as np
import pytest
import scipy.special
from scipy.stats import multivariate_normal

import herdfilter as hf
from herdfilter.fitting import EMFit, division, divisive
from herdfilter.fitting.division import (
    CHANCE,
    FINAL_ROUNDS,
    LEAST_VARIANCE,
    NEGLIGIBLE_PART,
    TRIAL_ROUNDS,
    _best_cut,
    _division,
    _misfit,
    _normalise,
    _price,
    _whiten,
    divide,
)
from herdfilter.fitting.em import PATIENCE, maximise_mixture, spread_seeds

# Expectation-maximisation


def regularised(covariance, floor):
    values, vectors = np.linalg.eigh(covariance)
    return covariance if values[0] > floor else (vectors * np.maximum(values, floor)) @ vectors.T


def rounds(z, w, seeds, widening, floor, least, shared, iterations):
    """Weights, means, covariances and the log-likelihoods since a component was dropped, by the formulas."""
    n = z.shape[1]
    nearest = ((z[None] - seeds[:, :, None]) ** 2).sum(axis=1).argmin(axis=0)
    shares = w * (nearest == np.arange(len(seeds))[:, None])
    history, first = [], True
    while len(history) < iterations:
        weights = shares.sum(axis=1)
        means = shares @ z.T / weights[:, None]
        scatter = [(s * (z.T - m).T) @ (z.T - m) for s, m in zip(shares, means, strict=True)]
        if shared or first:
            scatter = [sum(scatter)] * len(weights)
        else:
            scatter = [s / weight for s, weight in zip(scatter, weights, strict=True)]
        covariances = np.array([regularised(s + widening, floor) for s in scatter])
        effective = weights**2 / (shares**2).sum(axis=1)
        dropped = not first and len(weights) > 1 and effective.min() < least
        if dropped:
            kept = np.arange(len(weights)) != effective.argmin()
            weights, means, covariances = weights[kept], means[kept], covariances[kept]
        logs = np.array(
            [
                np.log(weight / weights.sum()) + multivariate_normal(m, C).logpdf(z.T).reshape(n)
                for weight, m, C in zip(weights, means, covariances, strict=True)
            ]
        )
        whole = scipy.special.logsumexp(logs, axis=0)
        shares = w * np.exp(logs - whole)
        history = [] if first or dropped else [*history, w @ whole]
        first = False
    return weights, means, covariances, history


def points(seed, d, n=60):
    """Three groups, one of them of five points, the last of which hardly count."""
    rng = np.random.default_rng(seed)
    place = np.where(np.arange(n) % 3, 1.0, -1.5) + 4.0 * (np.arange(n) < 5)
    z = rng.standard_normal((d, n)) + place
    return np.ascontiguousarray(z), rng.dirichlet(np.full(n, 2.0))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    ("floor", "widening", "least"), [(1e-6, 0.0, 1.0), (0.8, 0.0, 1.0), (1e-6, 0.3, 1.0), (1e-6, 0.0, 12.0)]
)
def test_every_round_is_the_formulas(d, shared, floor, widening, least):
    """Narrow groups that the floor widens, a widening of all, and a group of too few points, which is dropped."""
    z, w = points(d, d)
    given = (widening * np.eye(d), floor, least, shared)
    for places in ([0, 20, 40], [20, 40, 0], [40, 1, 20, 2], [0, 20]):
        seeds = np.ascontiguousarray(z[:, places].T)
        for iterations in (1, 4):
            found = maximise_mixture(z, w, seeds, *given[:3], shared, -np.inf, iterations, -np.inf)
            for one, other in zip(found, rounds(z, w, seeds, *given, iterations), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_rounds_end_where_the_likelihood_hardly_rises_or_will_not_reach_what_is_wanted():
    z, w = points(1, 2)
    seeds = np.ascontiguousarray(z[:, [0, 20]].T)
    given = (z, w, seeds, np.zeros((2, 2)), 1e-6, 1.0, False)
    history = maximise_mixture(*given, -np.inf, 40, -np.inf)[3]
    rises = np.diff(history)
    for tolerance in (1e-2, 1e-3, 1e-4):
        ends = 2 + np.flatnonzero(rises < tolerance)[0]
        assert len(maximise_mixture(*given, tolerance, 40, -np.inf)[3]) == ends
    hopes = history[1:] + PATIENCE * rises
    for wanted in (hopes[0] + 1e-9, hopes[:5].min() + 1e-9, hopes[:8].min() + 1e-9):
        ends = 2 + np.flatnonzero(hopes < wanted)[0]
        assert len(maximise_mixture(*given, -np.inf, 40, wanted)[3]) == ends


@pytest.mark.parametrize("d", [1, 3])
def test_every_seed_is_the_candidate_that_lowers_the_distance_most(d):
    z, w = points(7, d)
    candidates = np.arange(3, 60, 4)
    distances = ((z[:, candidates, None] - z[:, None]) ** 2).sum(axis=0)
    nearest, chosen = np.full(60, np.inf), []
    for _ in range(4):
        chosen.append((w * np.minimum(nearest, distances)).sum(axis=1).argmin())
        nearest = np.minimum(nearest, distances[chosen[-1]])
    np.testing.assert_allclose(spread_seeds(z, w, candidates, 4), z[:, candidates[chosen]].T, rtol=1e-15)
    assert len(spread_seeds(np.zeros((d, 60)), w, candidates, 3)) == 1
    two = np.repeat([[0.0, 1.0]], d, axis=0)[:, np.arange(60) % 2]
    assert len(spread_seeds(np.ascontiguousarray(two), w, candidates, 3)) <= 2


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_the_number_of_components_is_that_of_the_information_criterion(d, shared):
    """The first that has no better one after it: parameters are counted here, likelihoods those of the fits."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((80, d)) + rng.choice([-seed / 5, seed / 5, 7.0], (80, 1), p=[0.45, 0.45, 0.1])
        w = rng.dirichlet(np.full(80, 3.0))
        size, scores = 1 / (w @ w), []
        for count in range(1, 5):
            fit = EMFit(count, shared=shared).fit(x, w)
            k = len(fit)
            parameters = k - 1 + k * d + (1 if shared else k) * d * (d + 1) / 2
            scores.append(size * (w @ fit.log_density(x)) - 0.5 * parameters * np.log(size))
        best = next(c for c in range(4) if c == 3 or scores[c + 1] <= scores[c]) + 1
        found.append((len(EMFit("bic", shared=shared).fit(x, w)), len(EMFit(best, shared=shared).fit(x, w))))
    assert sum(one == other for one, other in found) >= 10  # some that rise slowly are given up early
    assert len({other for _, other in found}) > 1


# Division


def white(seed, d, n=80):
    """Points of mean 0 and covariance I by their weights, with a bend, tails or two modes of any strength."""
    rng = np.random.default_rng(seed)
    x, strength = rng.standard_normal((n, d)), rng.uniform(0, 1.2)
    kind = seed % 4
    if kind == 1:
        x[:, -1] += strength * (x[:, 0] ** 2 - 1)
    elif kind == 2:
        x *= np.exp(0.7 * strength * rng.standard_normal((n, 1)))
    elif kind == 3:
        x[:, 0] += 2 * strength * rng.choice([-1, 1], n)
    w = rng.dirichlet(np.full(n, 5.0))
    x -= w @ x
    return np.ascontiguousarray(np.linalg.solve(np.linalg.cholesky((w * x.T) @ x), x.T)), w


def room(d, n):
    return np.empty((2 * d + 7, n))


def statistics(y, w):
    """Mardia's skewness, unevenness and sum of the fourth moments, and Anderson and Darling's distance on the worst axis."""
    d, effective = len(y), 1 / (w @ w)
    q = w * (y**2).sum(axis=0)
    third, fourth = y @ q, (q * y) @ y.T
    excess = np.trace(fourth) - d * (d + 2) * (effective - 1) / (effective + 1)
    uneven = (fourth**2).sum() - np.trace(fourth) ** 2 / d
    edges, normal, distances = divisive.EDGES, divisive.NORMAL, []
    for axis in np.linalg.eigh(fourth)[1].T:
        below = np.array([w[axis @ y < edge].sum() for edge in edges])
        between = 0.5 * (normal[2:] - normal[:-2])
        terms = between * ((below - normal) ** 2 / (normal * (1 - normal)))[1:-1]
        distances.append(effective * terms.sum())
    moments = [third @ third / (2 * (d + 2)), uneven / (4 * (d + 4)), excess**2 / (8 * d * (d + 2))]
    return [*(effective * np.array(moments)), max(distances)], excess


@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_are_told_from_a_gaussian_by_the_statistics_written_out(d):
    """Each by itself: just above its bound they are, and just below it they are not."""
    edges, normal, signs = divisive.EDGES, divisive.NORMAL, set()
    for seed in range(24):
        y, w = white(seed, d)
        own, (values, excess) = room(d, y.shape[1]), statistics(y, w)
        lines, parts = own[d : 2 * d + 2], own[2 * d + 2 : 2 * d + 6]
        for i, value in enumerate(values):
            if value < 1e-9:  # nothing is uneven on a line
                continue
            answers = []
            for factor in (1 - 1e-6, 1 + 1e-6):
                limits = np.where(np.arange(4) == i, factor * value, np.inf)
                answers.append(_misfit(y, w, 80, 1 / (w @ w), lines, parts, np.empty(d), limits, edges, normal))
            assert answers == [int(excess > 0), -1]
            signs.add(answers[0])
        q = w * (y**2).sum(axis=0)
        _misfit(y, w, 80, 1 / (w @ w), lines, parts, np.empty(d), np.zeros(4), edges, normal)
        np.testing.assert_allclose(lines[d + 1], np.sqrt((y**2).sum(axis=0)))
        np.testing.assert_allclose(lines[d], (y @ q) @ y / np.linalg.norm(y @ q), rtol=1e-7, atol=1e-9)
        fourth = (q * y) @ y.T
        np.testing.assert_allclose((q * lines[:d]) @ lines[:d].T, np.diag(np.linalg.eigvalsh(fourth)), atol=1e-9)
    assert signs == {0, 1}


def price(effective, d):
    return 0.5 * effective * d * (d + 3) / (effective - d - 2) if effective > d + 2 else np.inf


def cut(line, w, d, radial):
    """Where the two sides have the least ``sum_k p_k log |covariance_k|``, a bin's width of variance added."""
    edges = divisive.EDGES
    step, places = edges[1] - edges[0], edges - (edges[0] if radial else 0.0)
    best, threshold = np.inf, np.inf
    bins = np.clip(np.trunc((line - places[0]) / step + 1), 0, len(edges))
    for b, place in enumerate(places):
        score = 0.0
        for side in (bins <= b, bins > b):
            part = w[side].sum()
            if part <= 0 or part**2 <= (d + 2) * (w[side] ** 2).sum():
                score = np.inf
                break
            square = w[side] @ line[side] ** 2 / part
            if radial:
                score += part * d * np.log(square / d + step**2)
            else:
                score += part * np.log(square - (w[side] @ line[side] / part) ** 2 + step**2)
        if score < best:
            best, threshold = score, place
    return threshold


def two_rounds(y, w, part, effective, count):
    """The part of each point that is the first of two Gaussians', after some rounds, and the rise over N(0, I)."""
    d, gain = len(y), -np.inf
    base = w @ multivariate_normal(np.zeros(d), np.eye(d)).logpdf(y.T).reshape(-1)
    for _ in range(count):
        last = gain
        if not LEAST_VARIANCE < w @ part < 1 - LEAST_VARIANCE:
            return part, -np.inf
        logs = []
        for share in (w * part, w * (1 - part)):
            mean = y @ share / share.sum()
            covariance = (share * (y.T - mean).T) @ (y.T - mean) / share.sum()
            if np.linalg.eigvalsh(covariance)[0] < LEAST_VARIANCE:
                covariance = covariance + LEAST_VARIANCE * np.eye(d)
            logs.append(np.log(share.sum()) + multivariate_normal(mean, covariance).logpdf(y.T).reshape(-1))
        whole = np.logaddexp(*logs)
        gain, part = w @ whole - base, np.exp(logs[0] - whole)
        if effective * (gain - last) < CHANCE:
            break
    return part, gain


@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_are_divided_as_written_out(d):
    """Every way to cut, one round each, the best of them for some more; then the price of a component more."""
    firsts = []
    for seed in range(60):
        y, w = white(seed, d, 150)
        own, effective = room(d, 150), 1 / (w @ w)
        lines, parts = own[d : 2 * d + 2], own[2 * d + 2 : 2 * d + 6]
        tails = _misfit(
            y, w, 150, effective, lines, parts, np.empty(d), divisive._critical_values(d, 0.5), divisive.EDGES,
            divisive.NORMAL,
        )  # fmt: skip
        if tails < 0:
            continue
        first = _division(y, w, 150, effective, False, tails, lines, parts, divisive.EDGES, NEGLIGIBLE_PART)
        ways = [c for c in range(d + 2) if not (c == d == 1 or (c == d + 1 and tails == 0))]
        tried = []
        for c in ways:
            part = (lines[c] < cut(lines[c], w, d, c == d + 1)).astype(float)
            tried.append(two_rounds(y, w, part, effective, TRIAL_ROUNDS))
        best, gain = max(tried, key=lambda one: one[1])
        if gain == -np.inf:
            assert first == 0
            continue
        best, gain = two_rounds(y, w, best, effective, FINAL_ROUNDS)
        best = np.where(best < NEGLIGIBLE_PART, 0.0, np.where(best >= 1 - NEGLIGIBLE_PART, 1.0, best))
        # two ways may end in the same parts, one with the names exchanged
        if np.abs(parts[0] - best).max() > 0.5:
            best = 1 - best
        np.testing.assert_allclose(parts[0], best, atol=1e-6)
        asked = 1 - price(effective, d)
        for share in (w * best, w * (1 - best)):
            asked += price(share.sum() ** 2 / (share @ share) if share.any() else 0.0, d)
        expected = w @ best if effective * gain > asked else 0.0
        assert first == pytest.approx(expected, abs=1e-6)
        firsts.append(first)
    assert 0 < np.count_nonzero(firsts) < len(firsts)


@pytest.mark.parametrize("d", [1, 2])
def test_the_price_of_a_component_is_what_its_own_points_flatter_it_by(d):
    """Log-likelihood of the points that a Gaussian was fitted to, less that of as many others, in the mean."""
    rng, n = np.random.default_rng(d), 15
    flattered = []
    for _ in range(4000):
        x = rng.standard_normal((n, d))
        C = np.cov(x.T, ddof=0).reshape(d, d)
        inverse, mean = np.linalg.inv(C), x.mean(axis=0)
        others = n * (np.trace(inverse) + mean @ inverse @ mean)
        flattered.append(0.5 * (others - n * d))
    assert np.mean(flattered) == pytest.approx(price(n, d), abs=4 * np.std(flattered) / np.sqrt(4000))


def test_a_fit_by_division_has_at_most_as_many_components_as_are_asked_for_and_as_many_points_allow():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(place, 0.1, (40, 1)) for place in range(8)])
    sizes = [len(hf.DivisiveFit(max_components=most).fit(x)) for most in range(1, 9)]
    assert sizes[:5] == [1, 2, 3, 4, 5]
    assert all(size <= most for most, size in enumerate(sizes, 1))
    assert sizes[-1] == len(hf.DivisiveFit().fit(x))


@pytest.fixture
def plain(monkeypatch):
    """Run the loops of this file as Python does, one part without the others."""
    for name, value in list(vars(division).items()):
        if hasattr(value, "py_func"):
            monkeypatch.setattr(division, name, value.py_func)
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("d", [1, 2, 3])
def test_each_side_of_a_cut_has_more_than_the_effective_points_that_a_gaussian_takes(d):
    """With so few points, of so uneven weights, that most of the places to cut are barred."""
    edges, found = divisive.EDGES, []
    for seed in range(12):
        y, w = white(4 * seed + 3, d, 8 + 3 * seed)
        rng = np.random.default_rng(seed)
        w = rng.dirichlet(np.full(len(w), rng.choice([1.0, 5.0, 50.0])))
        lines = np.vstack([y + 0.3 * seed, np.zeros_like(w), np.sqrt((y**2).sum(axis=0))])
        for c in (0, d + 1):
            inside = np.empty((len(edges) + 1, 4))
            found.append(_best_cut.py_func(lines, c, w, len(w), d, edges, inside))
            assert found[-1] == pytest.approx(cut(lines[c], w, d, c == d + 1))
    assert len(set(found)) > 3
    for effective in (d + 1.9, d + 2.0, d + 2.1, 10.0, 500.0):
        assert _price.py_func(effective, d) == pytest.approx(price(effective, d))
    p = np.empty_like(w)
    assert _normalise.py_func(3.0 * w, p) == pytest.approx((3.0, 1 / (w @ w)))
    np.testing.assert_allclose(p, w)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_two_gaussians_are_raised_as_written_out_from_parts_of_any_size(plain, d):
    for seed in range(6):
        y, w = white(seed, d, 24)
        parts, rng = np.empty((4, 24)), np.random.default_rng(seed)
        y[0] *= 1e-4 if seed == 5 else 1.0  # narrower than a component may be
        for start in (rng.uniform(0.3, 0.7, 24), (y[0] < 0.2).astype(float), 0.02 * rng.random(24)):
            for count in (1, 4):
                parts[1] = start
                gain = division.maximise_two(y, w, 24, parts, 1, (w * y) @ y.T, 200.0, count)
                part, expected = two_rounds(y, w, start, 200.0, count)
                assert gain == pytest.approx(expected, abs=5e-7)
                np.testing.assert_allclose(parts[1], part, atol=1e-6)
    for start in (0.0, 1.0, 1e-7):
        parts[1] = start
        assert division.maximise_two(y, w, 24, parts, 1, (w * y) @ y.T, 200.0, 4) == -np.inf
        assert (parts[1] == start).all()


def divided(z, w, limits, most, at_once):
    """Divide by hand: the list that came last is whitened and, if there is need, its halves take its place."""
    d, n = z.shape
    waiting, found = [(np.arange(n), w, min(most, n // (d + 2) + 1))], []
    while waiting:
        items, amounts, allowed = waiting.pop()
        held, m = sum(len(one[0]) for one in waiting), len(items)
        share, x = amounts / amounts.sum(), z[:, items]
        mean = x @ share
        covariance = (share * (x.T - mean).T) @ (x.T - mean)
        narrow = bool(np.linalg.eigvalsh(covariance)[0] < LEAST_VARIANCE)
        covariance += narrow * LEAST_VARIANCE * np.eye(d)
        own, first = room(d, n), 0.0
        y, lines, parts, p = own[:d], own[d : 2 * d + 2], own[2 * d + 2 : 2 * d + 6], own[2 * d + 6]
        mine = np.empty(d), np.empty((d, d)), np.zeros((d, d))  # in the bits that decide between equally good ways
        total, effective, changed = _whiten(z, items, amounts, y, p, parts, LEAST_VARIANCE, *mine)
        assert (total, effective, changed) == pytest.approx((amounts.sum(), 1 / (share @ share), narrow))
        np.testing.assert_allclose(p[:m], share)
        expected = np.linalg.solve(np.linalg.cholesky(covariance), x - mean[:, None])
        np.testing.assert_allclose(y[:, :m], expected, rtol=1e-5, atol=1e-5)
        if allowed > 1 and effective > 2 * (d + 2):
            tails = _misfit(y, p, m, effective, lines, parts, np.empty(d), limits, divisive.EDGES, divisive.NORMAL)
            least = NEGLIGIBLE_PART if held + 2 * m <= at_once * n else 0.5
            if tails >= 0:
                first = _division(y, p, m, effective, changed, tails, lines, parts, divisive.EDGES, least)
        if first == 0:
            found.append((amounts.sum(), mean, covariance))
            continue
        most = int(np.clip(np.floor(allowed * first + 0.5), 1, allowed - 1))
        for part, left in ((parts[0, :m], most), (1 - parts[0, :m], allowed - most)):
            waiting.append((items[part > 0], (part * amounts)[part > 0], left))
    return [np.array(one) for one in zip(*found, strict=True)]


@pytest.mark.parametrize("at_once", [1.5, 2.5, 16])
def test_lists_are_divided_on_until_none_is_to_be_as_by_hand(monkeypatch, at_once):
    """Points are torn in parts only as long as there is room for them: for few, few are."""
    monkeypatch.setattr(division, "PARTS_AT_ONCE", at_once)
    for d, n, most in ((1, 400, 400), (2, 500, 500), (2, 500, 5), (3, 200, 200)):
        rng = np.random.default_rng(d)
        z = rng.standard_normal((d, n)) + 3.0 * rng.integers(-1, 2, (1, n))
        z[0, : n // 4] *= 1e-5  # narrower than a component may be
        w, limits = rng.dirichlet(np.full(n, 5.0)), divisive._critical_values(d, 0.3)
        found = divide(z, w, LEAST_VARIANCE, limits, divisive.EDGES, divisive.NORMAL, most)
        expected = divided(z, w, limits, most, at_once)
        assert len(found[0]) == len(expected[0]) > 1
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_components_in_a_plane_are_as_wide_across_it_as_one_gaussian():
    rng = np.random.default_rng(10)
    angle = rng.uniform(0, 2 * np.pi, 400)
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    x = (3 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.standard_normal((400, 2))) @ basis[:2]
    whole, fit = hf.GaussianFit().fit(x).covariances[0], hf.DivisiveFit().fit(x)
    assert len(fit) > 3
    across = np.einsum("i,kij,j->k", basis[2], fit.covariances, basis[2])
    np.testing.assert_allclose(across, basis[2] @ whole @ basis[2], rtol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_two_components_come_from_the_distance_on_at_which_the_criterion_rises(d, shared):
    """Both by bisection: of the fits of either number, parameters counted here, and of the fit that chooses."""
    x, side = np.random.default_rng(d).standard_normal((60, d)), np.where(np.arange(60) % 3, 1.0, -1.0)[:, None]

    def rises(points):
        one, two = (60 * EMFit(k, shared=shared).fit(points).log_density(points).mean() for k in (1, 2))
        more = 1 + d + (0 if shared else d * (d + 1) / 2)
        return two - one > 0.5 * more * np.log(60)

    ends = []
    for both in (rises, lambda points: len(EMFit("bic", max_components=2, shared=shared).fit(points)) == 2):
        low, high = 0.2, 5.0
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if both(x + middle * side) else (middle, high)
        ends.append(low)
    assert ends[1] == pytest.approx(ends[0], abs=0.02)
