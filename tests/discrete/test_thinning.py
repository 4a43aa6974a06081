"""Thinning: what its members represent, what must not change the choice, and bad input."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from helpers import cases, refuses
from numpy.random import default_rng

import herdfilter as hf
from herdfilter.discrete import thinning


def samples(n, d, seed):
    """Samples by name: independent draws, draws with heavy tails, a bent one and two modes."""
    rng = default_rng(seed)
    normal = rng.standard_normal((n, d))
    bent = normal * [3.0, *[1.0] * (d - 1)]
    bent[:, 1] += 0.3 * bent[:, 0] ** 2
    return {
        "normal": normal,
        "t, 3 degrees": normal / np.sqrt(rng.chisquare(3, (n, 1)) / 3),
        "bent": bent,
        "two modes": normal + 8.0 * (rng.random((n, 1)) < 0.3),
    }


def distance(x, chosen):
    return hf.energy_distance(hf.Points(x[chosen]), hf.Points(x))


def every(n, m, first=0):
    return np.arange(m) * (n // m) + first


def of_every(x, m):
    """Energy distance of every k-th point: the median over nine choices of the first, as one may be lucky."""
    firsts = np.linspace(0, len(x) // m - 1, 9).astype(int)
    return np.median([distance(x, every(len(x), m, first)) for first in firsts])


@cases("d m", (2, 10), (5, 40))
def test_energy_distance_is_at_most_four_tenths_of_that_of_every_kth_point(d, m):
    """Measured 0.19 to 0.32; of four samples together random members pass with none."""
    for name, x in samples(1000, d, seed=d).items():
        assert distance(x, hf.thin(x, m)) < 0.4 * of_every(x, m), name


@cases("name", "t, 3 degrees", "two modes")
def test_candidates_of_a_large_sample_serve_as_well_as_all_points(name, monkeypatch):
    """In coordinates of unit scatter, for which `thin` chooses; 400 members are chosen in two blocks."""
    x = samples(4000, 8, seed=3)[name]
    z = thinning._metric(x, np.full(4000, 1 / 4000), [])
    for m in (60, 400):
        monkeypatch.setattr(thinning, "CELLS", 2**11)
        chosen = hf.thin(x, m)
        assert len(set(chosen.tolist())) == m
        monkeypatch.setattr(thinning, "CELLS", len(x))
        ratio = distance(z, chosen) / distance(z, hf.thin(x, m))
        assert ratio < 1.1, (m, ratio)


def test_candidates_follow_weights_and_angles(monkeypatch):
    """Few points have most of the weight, and come up as often as it calls for; the other dimension is an angle."""
    monkeypatch.setattr(thinning, "CELLS", 512)
    m = 400
    rng = default_rng(6)
    x = np.column_stack([rng.standard_normal(4000), rng.normal(np.pi, 0.5, 4000)])
    weights = rng.pareto(0.9, 4000)
    points = hf.Points(x, weights)
    chosen = hf.thin(x, m, weights, circular=[1])
    assert len(chosen) == m
    assert (np.bincount(chosen, minlength=4000) <= np.ceil(m * points.weights)).all()
    systematic = np.searchsorted(np.cumsum(points.weights), (np.arange(m) + 0.5) / m)
    thinned, drawn = (hf.energy_distance(hf.Points(x[i]), points) for i in (chosen, systematic))
    assert thinned < 0.25 * drawn
    order = rng.permutation(4000)
    assert sorted(order[hf.thin(x[order], m, weights[order], circular=[1])]) == chosen.tolist()


def test_many_points_take_memory_for_a_few_copies(monkeypatch):
    monkeypatch.setattr(thinning, "CELLS", 2**11)
    x = default_rng(7).standard_normal((40_000, 5))
    tracemalloc.start()
    chosen = hf.thin(x, 100)
    assert tracemalloc.get_traced_memory()[1] < 10 * x.nbytes
    tracemalloc.stop()
    assert abs(x[chosen].mean(axis=0) - x.mean(axis=0)).max() < 0.03


def test_copies_of_one_point_fill_all_cells(monkeypatch):
    monkeypatch.setattr(thinning, "CELLS", 64)
    assert len(set(hf.thin(np.full((1000, 2), 0.1), 8).tolist())) == 8


def test_few_members_are_near_the_best_of_all_subsets():
    """On a line the metric is no choice, and all subsets can be tried."""
    for seed in range(5):
        x = default_rng(seed).exponential(size=(14, 1))
        best = min(distance(x, list(chosen)) for chosen in combinations(range(14), 3))
        assert distance(x, hf.thin(x, 3)) < 1.1 * best


def test_members_of_a_grid_are_the_middles_of_equal_parts():
    assert hf.thin(np.arange(45.0), 9).tolist() == list(range(2, 45, 5))
    assert hf.thin(np.arange(7.0), 7).tolist() == list(range(7))


def test_more_than_half_leave_what_is_best_left_out():
    """The distance of members from the whole is that of the rest, in proportion to their numbers, squared."""
    x = samples(200, 2, 0)["two modes"]
    kept = hf.thin(x, 150)
    left = np.setdiff1d(np.arange(200), kept)
    assert left.tolist() == hf.thin(x, 50).tolist()
    assert distance(x, kept) == pytest.approx(distance(x, left) / 9, rel=1e-6)


def test_weights_are_followed_and_points_without_weight_left_out():
    x = np.array([[9.0, 9.0], [0.0, 0.0], [1.0, 3.0], [2.0, -1.0], [9.0, 0.0]])
    assert hf.thin(x, 4, weights=[0, 2, 1, 1, 0]).tolist() == [1, 1, 2, 3]
    x = default_rng(0).standard_normal((500, 2))
    assert hf.thin(x, 50, np.ones(500)).tolist() == hf.thin(x, 50).tolist()


def test_order_and_units_do_not_matter():
    rng = default_rng(1)
    x = samples(300, 3, 1)["t, 3 degrees"]
    chosen = hf.thin(x, 20)
    assert chosen.tolist() == sorted(set(chosen.tolist())) == hf.thin(x, 20).tolist()
    order = rng.permutation(300)
    assert sorted(order[hf.thin(x[order], 20)]) == chosen.tolist()
    mapped = x @ (rng.standard_normal((3, 3)) * [1e-6, 1.0, 1e8]) + [3.0, 5.0, 7e9]
    assert hf.thin(mapped, 20).tolist() == chosen.tolist()


def test_one_outlier_does_not_hide_the_rest():
    x = samples(1000, 2, 2)["normal"]
    spoilt = np.vstack([x, [[1e6, -2e6]]])
    chosen = np.setdiff1d(hf.thin(spoilt, 30), 1000)
    assert distance(x, chosen) < 0.25 * of_every(x, 30)


def test_angles_have_no_end():
    """A turn of the circle changes nothing, and what lies on both sides of its end is one crowd."""
    rng = default_rng(4)
    x = np.column_stack([rng.standard_normal(500), rng.normal(0.0, 0.5, 500)])
    turned = np.column_stack([x[:, 0], (x[:, 1] + np.pi) % (2 * np.pi)])
    across = np.column_stack([x[:, 0], turned[:, 1] - 2 * np.pi * (turned[:, 1] > np.pi)])
    chosen = hf.thin(x, 20, circular=[1])
    assert hf.thin(turned, 20, circular=[1]).tolist() == chosen.tolist()
    assert hf.thin(across, 20, circular=[1]).tolist() == chosen.tolist()
    assert distance(x, chosen) < 0.35 * of_every(x, 20)


X = default_rng(5).standard_normal((6, 2))


test_bad_input_is_named = refuses(
    hf.thin,
    (X, 7, r"m: expected at most 6, the number of points in x, got 7"),
    (X * 1e200, 2, r"x: expected numbers up to 1e.150, got .*; choose larger units"),
    (X.reshape(3, 2, 2), 2, r"x: expected shape \(n, d\), got \(3, 2, 2\); x\.reshape\(-1, 2\) joins chains"),
    (X, 2, None, [2], r"circular: expected a sequence of indices from 0 to 1, such as \[0\], got \[2\]"),
    words="^{}"
)  # fmt: skip
