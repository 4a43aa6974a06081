"""Division: the whole fit and its statistics against the same written out, and what it leaves whole or divides."""

import numpy as np
import pytest
from helpers import in_python
from scipy.stats import chi2, multivariate_normal

import herdfilter as hf
from herdfilter.fitting import division, divisive, em
from herdfilter.fitting.division import CHANCE, FINAL_ROUNDS, LEAST_VARIANCE, NEGLIGIBLE_PART, TRIAL_ROUNDS

EDGES, NORMAL = divisive.EDGES, divisive.NORMAL


def points(seed, d, n):
    """Points with a bend, tails or two modes of any strength, or none; their weights."""
    rng = np.random.default_rng(seed)
    x, strength = rng.standard_normal((n, d)), rng.uniform(0, 1.2)
    kind = seed % 4
    if kind == 1:
        x[:, -1] += strength * (x[:, 0] ** 2 - 1)
    elif kind == 2:
        x *= np.exp(0.7 * strength * rng.standard_normal((n, 1)))
    elif kind == 3:
        x[:, 0] += 2 * strength * rng.choice([-1, 1], n)
    return x, rng.dirichlet(np.full(n, 5.0))


def white(x, w):
    """Points of mean 0 and covariance I, with their mean and covariance, and whether that had to be widened."""
    mean = w @ x
    covariance = (w * (x - mean).T) @ (x - mean)
    narrow = np.linalg.eigvalsh(covariance)[0] < LEAST_VARIANCE
    covariance = covariance + narrow * LEAST_VARIANCE * np.eye(len(mean))
    return np.linalg.solve(np.linalg.cholesky(covariance), (x - mean).T), mean, covariance


def statistics(y, w):
    """Mardia's skewness, unevenness and sum of the fourth moments, and Anderson and Darling's distance on the worst axis.

    Also the excess of the fourth moments, and the lines to cut: their axes, the third moments and the radius.
    """
    d, effective = len(y), 1 / (w @ w)
    q = w * (y**2).sum(axis=0)
    third, fourth = y @ q, (q * y) @ y.T
    excess = np.trace(fourth) - d * (d + 2) * (effective - 1) / (effective + 1)
    uneven = (fourth**2).sum() - np.trace(fourth) ** 2 / d
    lines, distances = np.linalg.eigh(fourth)[1].T @ y, []
    for line in lines:
        below = np.array([w[line < edge].sum() for edge in EDGES])
        terms = 0.5 * (NORMAL[2:] - NORMAL[:-2]) * ((below - NORMAL) ** 2 / (NORMAL * (1 - NORMAL)))[1:-1]
        distances.append(effective * terms.sum())
    moments = [third @ third / (2 * (d + 2)), uneven / (4 * (d + 4)), excess**2 / (8 * d * (d + 2))]
    lines = np.vstack([lines, third @ y / np.linalg.norm(third), np.sqrt((y**2).sum(axis=0))])
    return np.array([*(effective * np.array(moments)), max(distances)]), excess, lines


def test_points_are_told_from_a_gaussian_by_the_statistics_written_out():
    """Each by itself: just above its bound they are, and just below it they are not."""
    signs = set()
    for seed in range(30):
        d = 1 + seed % 3
        x, w = points(seed, d, 80)
        y = np.ascontiguousarray(white(x, w)[0])
        values, excess, _ = statistics(y, w)
        for i, value in enumerate(values):
            if value < 1e-9:  # nothing is uneven on a line
                continue
            answers = []
            for factor in (1 - 1e-6, 1 + 1e-6):
                limits, room = np.where(np.arange(4) == i, factor * value, np.inf), np.empty((d + 6, 80))
                given = (room[: d + 2], room[d + 2 :], np.empty(d), limits, EDGES, NORMAL)
                answers.append(division._misfit(y, w, 80, 1 / (w @ w), *given))
            assert answers == [int(excess > 0), -1]
            signs.add(answers[0])
    assert signs == {0, 1}


def cut(line, w, d, radial):
    """Where the two sides have the least ``sum_k p_k log |covariance_k|``, a bin's width of variance added."""
    step, places = EDGES[1] - EDGES[0], EDGES - (EDGES[0] if radial else 0.0)
    best, threshold = np.inf, np.inf
    bins = np.clip(np.trunc((line - places[0]) / step + 1), 0, len(EDGES))
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


def raise_two(y, w, part, effective, count):
    """The part of each point that is the first of two Gaussians', after some rounds, and the rise over N(0, I)."""
    d, gain = len(y), -np.inf
    base = w @ multivariate_normal(np.zeros(d), np.eye(d)).logpdf(y.T).reshape(-1)
    for _ in range(count):
        last = gain
        if not LEAST_VARIANCE < w @ part < 1 - LEAST_VARIANCE:
            return part, -np.inf
        logs = []
        for share in (w * part, w * (1 - part)):
            _, mean, covariance = white(y.T, share / share.sum())
            logs.append(np.log(share.sum()) + multivariate_normal(mean, covariance).logpdf(y.T).reshape(-1))
        whole = np.logaddexp(*logs)
        gain, part = w @ whole - base, np.exp(logs[0] - whole)
        if effective * (gain - last) < CHANCE:
            break
    return part, gain


def price(w, d):
    """How much better a Gaussian fits its own points than new ones: the corrected criterion of Akaike."""
    effective = w.sum() ** 2 / (w @ w) if w.any() else 0.0
    return 0.5 * effective * d * (d + 3) / (effective - d - 2) if effective > d + 2 else np.inf


def divided(x, w, limits, allowed):
    """Weights, means and covariances: the best of all ways to divide, one round each, as long as it pays."""
    d, share = x.shape[1], w / w.sum()
    y, mean, covariance = white(x, share)
    whole = [(w.sum(), mean, covariance)]
    effective = 1 / (share @ share)
    if allowed == 1 or effective <= 2 * (d + 2):
        return whole
    values, excess, lines = statistics(y, share)
    if (values <= limits).all():
        return whole
    ways = [c for c in range(d + 2) if not (c == d == 1 or (c == d + 1 and excess <= 0))]
    cuts = [(lines[c] < cut(lines[c], share, d, c == d + 1)).astype(float) for c in ways]
    part, gain = max((raise_two(y, share, one, effective, TRIAL_ROUNDS) for one in cuts), key=lambda tried: tried[1])
    if gain == -np.inf:
        return whole
    part, gain = raise_two(y, share, part, effective, FINAL_ROUNDS)
    part = np.where(part < NEGLIGIBLE_PART, 0.0, np.where(part >= 1 - NEGLIGIBLE_PART, 1.0, part))
    first, second = part > 0, part < 1
    asked = 1 - price(share, d) + price(share * part, d) + price(share * (1 - part), d)
    if effective * gain <= asked:
        return whole
    own = int(np.clip(np.floor(allowed * (share @ part) + 0.5), 1, allowed - 1))  # of the components that are allowed
    halves = (first, part, own), (second, 1 - part, allowed - own)
    return [one for side, part, left in halves for one in divided(x[side], (w * part)[side], limits, left)]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_whole_division_is_that_of_the_criteria_written_out(d):
    sizes = []
    for seed in range(16):
        x, w = points(seed, d, 200)
        narrow = seed % 5 == 4
        if narrow:
            x[:80] = x[:80] * ([1e-4] + [1.0] * (d - 1)) + 5.0  # narrower than a component may be
        level = (0.01, 0.3)[seed % 2]
        uneven = chi2.isf(level, d * (d + 1) / 2 - 1) if d > 1 else np.inf
        distance = np.roots([0.0186, -5.709, 1.2937 - np.log(level / d)]).min()
        y, mean, covariance = white(x, w)
        factor = np.linalg.cholesky(covariance)
        most = (200, 3, 200, 5, 4)[seed % 5]
        limits = np.array([chi2.isf(level, d), uneven, chi2.isf(level, 1), distance])
        parts = divided(y.T, w, limits, min(most, 200 // (d + 2) + 1))
        weights, means, covariances = (np.array(one) for one in zip(*parts, strict=True))
        expected = hf.GaussianMixture(weights, mean + means @ factor.T, factor @ covariances @ factor.T)
        fit = hf.DivisiveFit(level, most).fit(x, w)
        assert len(fit) == len(expected)
        np.testing.assert_allclose(fit.log_density(x), expected.log_density(x), rtol=1e-5, atol=1e-4)
        sizes.append(len(fit))
    assert len(set(sizes)) > 2


def test_a_gaussian_is_left_whole_and_two_far_modes_are_divided_at_the_gap():
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="significance: expected a number between 0 and 1, got 1"):
        hf.DivisiveFit(significance=1)
    for d in (1, 2, 4):
        assert [len(hf.DivisiveFit().fit(rng.standard_normal((300, d)))) for _ in range(20)].count(1) >= 19
        side = np.arange(200) < 60
        x = rng.standard_normal((200, d)) + 12.0 * side[:, None]
        mixture = hf.DivisiveFit().fit(x)
        order = np.argsort(-mixture.means[:, 0])
        np.testing.assert_allclose(mixture.weights[order], [0.3, 0.7], atol=1e-9)
        np.testing.assert_allclose(mixture.means[order], [x[side].mean(0), x[~side].mean(0)], atol=1e-9)
        assert len(hf.DivisiveFit(max_components=1).fit(x)) == 1


@pytest.mark.parametrize("d", [1, 2])
def test_compiled_code_stays_inside_its_arrays(d, monkeypatch):
    x, w = points(0, d, 40)
    x[:15] += 6.0
    compiled = hf.DivisiveFit().fit(x, w)
    in_python(monkeypatch, division, em)
    found = hf.DivisiveFit().fit(x, w)
    assert len(found) == len(compiled) > 1
    np.testing.assert_allclose(found.log_density(x), compiled.log_density(x), rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e5])
def test_points_on_a_line_in_the_plane_are_divided_as_on_the_line_in_any_unit(scale):
    """Along the line the components are those of its own; across they are narrow. The whole has the points' moments."""
    rng, unit = np.random.default_rng(2), np.array([1.0, scale])
    along = np.concatenate([rng.normal(-5.0, 1.0, 60), rng.normal(5.0, 0.5, 40)])[:, None]
    alone, mixture = hf.DivisiveFit().fit(along), hf.DivisiveFit().fit(along * [0.6, 0.8] * unit)
    assert len(mixture) == len(alone) == 2
    ours, theirs = (one.weights.argsort() for one in (mixture, alone))
    np.testing.assert_allclose(mixture.weights[ours], alone.weights[theirs], rtol=1e-6)
    np.testing.assert_allclose(mixture.means[ours] / unit, alone.means[theirs] * [0.6, 0.8], rtol=1e-6)
    expected = alone.covariances[theirs] * np.outer([0.6, 0.8], [0.6, 0.8])
    np.testing.assert_allclose(mixture.covariances[ours] / np.outer(unit, unit), expected, rtol=1e-4, atol=1e-6)


def test_lines_are_cut_where_the_criterion_written_out_is_least(monkeypatch):
    """Along an axis and along the radius, whose places go further than those of an axis; out of range is an error."""
    in_python(monkeypatch, division)
    rng, places = np.random.default_rng(6), []
    for d in (1, 2, 20):
        core = rng.random(200) < 0.7
        y = np.where(core, 0.8, 1.5) * rng.standard_normal((d, 200))  # with heavy tails
        w = rng.dirichlet(np.full(200, 5.0))
        lines = np.vstack([y, y[:1], np.sqrt((y**2).sum(axis=0))])
        lines[0, :20] -= 9.0  # beyond the first place of an axis
        for c in (0, d + 1):
            inside = np.empty((len(EDGES) + 1, 4))
            place = division._best_cut(lines, c, w, 200, d, EDGES, inside)
            assert place == pytest.approx(cut(lines[c], w, d, c == d + 1), abs=1e-12)
            places.append(place)
    assert min(places) == EDGES[0]
    assert max(places) > EDGES[-1]


def test_two_components_have_the_likelihood_and_the_parts_written_out(monkeypatch):
    """Exponentials and logarithms by powers are good to six digits, also where the parts are all but certain."""
    in_python(monkeypatch, division, em)
    for d, apart in ((1, 0.3), (1, 8.0), (2, 1.5)):
        x, w = points(0, d, 60)
        x[:25, 0] += apart
        y = np.ascontiguousarray(white(x, w)[0])
        part, effective = np.where(y[0] < 0, 0.9, 0.2), 1 / (w @ w)
        for count in (1, 3):
            parts = np.zeros((4, 60))
            parts[1] = part
            rise = division.maximise_two(y, w, 60, parts, 1, np.eye(d), effective, count)
            expected, gain = raise_two(y, w, part, effective, count)
            assert rise == pytest.approx(gain, abs=1e-6)
            np.testing.assert_allclose(parts[1], expected, atol=1e-5)
