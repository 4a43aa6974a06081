"""Distances between sets: their definitions by brute force, another library, and the axioms of a metric."""

import operator
from itertools import permutations

import numpy as np
import pytest
from helpers import cases, refuses

from herdfilter.tracking import gospa, label_switches, ospa

RNG = np.random.default_rng(17)
SETS = [
    (RNG.normal(size=(n, 2)) * 3, RNG.normal(size=(m, 2)) * 3) for n in range(5) for m in range(5)
]
# the order decides who is whose
BY_ORDER = (np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.7, 0.9]]))
CUTOFF = 2.5


def cheapest(truth, estimates, p):
    """Least sum of cut-off p-th powers over all ways to assign the smaller set, by trying each."""
    smaller, larger = sorted((truth, estimates), key=len)
    return min(
        sum(
            min(np.linalg.norm(a - larger[j]), CUTOFF) ** p
            for a, j in zip(smaller, order, strict=True)
        )
        for order in permutations(range(len(larger)), len(smaller))
    )


@cases("p", 1.0, 2.0)
def test_gospa_and_ospa_are_the_least_over_all_assignments(p):
    for truth, estimates in [*SETS, BY_ORDER]:
        n = len(truth)
        m = len(estimates)
        least = cheapest(truth, estimates, p)
        for alpha in (0.5, 1.0, 2.0):
            expected = (least + abs(n - m) * CUTOFF**p / alpha) ** (1 / p)
            assert gospa(truth, estimates, CUTOFF, p, alpha).distance == pytest.approx(
                expected, abs=1e-12
            )
        expected = ((least + abs(n - m) * CUTOFF**p) / max(n, m, 1)) ** (1 / p)
        assert ospa(truth, estimates, CUTOFF, p) == pytest.approx(expected, abs=1e-12)


def test_parts_of_gospa_sum_to_its_power_and_count_the_missed_and_the_false():
    for truth, estimates in SETS:
        whole = gospa(truth, estimates, CUTOFF)
        assert whole.distance**2 == pytest.approx(sum(whole[1:]), abs=1e-12)
        missed, false = (part / (CUTOFF**2 / 2) for part in whole[2:])
        assert len(truth) - missed == pytest.approx(len(estimates) - false)  # the pairs
    nothing = np.empty((0, 2))
    assert gospa([[1.0, 2.0]], nothing, CUTOFF) == pytest.approx(
        (CUTOFF / 2**0.5, 0, CUTOFF**2 / 2, 0)
    )
    far = gospa([[1.0, 2.0]], [[9.0, 9.0]], CUTOFF)  # out of reach, they are no pair
    assert far == pytest.approx((CUTOFF, 0, CUTOFF**2 / 2, CUTOFF**2 / 2))
    assert np.isnan(gospa([[1.0]], [[1.0]], CUTOFF, alpha=1)[1:]).all()


def test_absent_targets_are_no_members():
    truth = np.array([[np.nan, np.nan], [1.0, 2.0]])
    assert gospa(truth, [[1.0, 2.0]], CUTOFF) == (0, 0, 0, 0)


test_what_does_not_fit_is_named = refuses(
    operator.call,
    (lambda: gospa([[1.0, 2.0]], [[1.0]], 1), r"estimates: expected shape \(\*, 2\), as truth has"),
    (
        lambda: ospa([[1.0, np.nan]], [[1.0, 2.0]], 1),
        "truth: expected finite positions, or rows of NaN",
    ),
    (
        lambda: gospa([[np.nan], [1e200]], [[0.0]], 1),
        r"truth: expected numbers up to 1e\+150, got 1e\+200; choose larger units",
    ),
    (
        lambda: gospa([[0.0]], [[1.0]], 1e150, p=3),
        r"cutoff: expected a number from .* to 1e\+100, got 1e\+150",
    ),
    (
        lambda: ospa([[0.0]], [[1.0]], 1e-140, p=4),
        r"cutoff: expected a number from 1e-70 to .*, got 1e-140",
    ),
    (
        lambda: label_switches([[[1.0]]], [[[1.0], [2.0]]], ["aa"], 1),
        "labels: expected 2 different ones",
    ),
)


def switches(truth, estimates, labels, cutoff):
    """Switches by the rule in words: who had a label last keeps it in reach; of the rest as many pairs as can be."""
    last = {}
    since = {}
    count = 0
    for step, (states, points, names) in enumerate(zip(truth, estimates, labels, strict=True)):
        gaps = np.linalg.norm(states[:, None] - points, axis=2)
        reach = {(t, names[j]): gaps[t, j] for t, j in np.argwhere(gaps < cutoff)}
        now = {}
        for t in sorted(last, key=lambda t: -since[t]):
            if (t, last[t]) in reach and last[t] not in now.values():
                now[t] = last[t]
        left = [t for t in range(len(states)) if t not in now]
        free = [*(name for name in names if name not in now.values()), *[None] * len(left)]
        ways = [
            [pair for pair in zip(left, way, strict=True) if pair in reach]
            for way in permutations(free, len(left))
        ]
        now |= dict(min(ways, key=lambda way: (-len(way), sum(reach[pair] for pair in way))))
        for t, name in now.items():
            count += last.get(t, name) != name
            last[t] = name
            since[t] = step
    return count


def test_switches_are_those_of_the_rule_written_out():
    """Three targets that walk about each other, absent now and then, under labels that are exchanged and lost."""
    counts = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(1, 3, 2)) + 0.7 * rng.normal(size=(8, 3, 2)).cumsum(axis=0)
        truth[rng.random((8, 3)) < 0.15] = np.nan
        estimates = [
            np.nan_to_num(x[rng.permutation(3)], nan=9.0) + 0.4 * rng.normal(size=(3, 2))
            for x in truth
        ]
        labels = [rng.permutation(list("abcd"))[:3].tolist() for _ in truth]
        counts.append(switches(truth, estimates, labels, 1.5))
        assert label_switches(truth, estimates, labels, 1.5) == counts[-1], seed
    assert len(set(counts)) > 3
