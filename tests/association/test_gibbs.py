"""Association by random and by herded Gibbs sampling."""

import numpy as np
import pytest
from helpers import EYE, cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from herdfilter import association
from herdfilter.association import HerdedGibbs, RandomGibbs, gibbs
from herdfilter.association.gibbs import gibbs_moves

PUBLISHED = {"key": "assignment", "first_visit": "argmax", "pairs": False}


def shares(ratios):
    """Each row divided by its sum."""
    return ratios / ratios.sum(axis=1, keepdims=True)


def distance(p, q):
    return 0.5 * np.abs(p - q).sum(axis=1).mean()


AUTHORS = [  # what their program (Fusion-Goettingen/MFI_2020_Wolf_HerdedGibbs) gives after 30 sweeps if all tracks exist
    [0.0, 0.819689, 0.157233, 0.023078, 0.0],
    [0.177339, 0.053474, 0.610006, 0.159181, 0.0],
    [0.208606, 0.0, 0.0, 0.427639, 0.363755],
    [0.33282, 0.0, 0.0, 0.049363, 0.617817],
]


def example_of_the_paper(existence):
    """Four tracks, four measurements of Wolf and Baum (2020)."""
    means = np.array([(1.5, 2), (3.5, 1), (5.5, 3), (6, 2)])
    measurements = np.array([(1.25, 2.4), (1.65, 1.3), (3.2, 3.4), (5.4, 2.5)])
    squared = ((measurements - means[:, None]) ** 2).sum(axis=-1) / 1.25  # P + R = I + 0.25 I
    likelihoods = np.exp(-0.5 * squared) / (2 * np.pi * 1.25)
    return association.ratios(likelihoods, 0.95, 4 / 28, existence)


@pytest.fixture(scope="module")
def example():
    return example_of_the_paper([1, 0.6, 1, 0.9])


def test_published_options_repeat_the_program_of_the_authors():
    found = HerdedGibbs(30, estimate="joint", **PUBLISHED).marginals(example_of_the_paper(1.0))
    assert_allclose(found, AUTHORS, rtol=0, atol=1e-6)


def test_the_published_example_converges(brute, example):
    exact = brute.marginals(example)
    assert_allclose(association.marginals(example), exact, rtol=0, atol=1e-12)
    for estimate in ("conditionals", "counts", "joint"):
        for options in ({}, PUBLISHED):
            found = HerdedGibbs(10_000, estimate=estimate, **options).marginals(example)
            assert distance(found, exact) < 0.001


def test_the_evidence_of_collected_assignments_is_a_lower_bound(example):
    exact = association.associate(example).log_evidence
    bounds = [
        association.associate(example, HerdedGibbs(n, estimate="joint")).log_evidence
        for n in (10, 100, 10_000)
    ]
    assert bounds == sorted(bounds)
    assert exact - 2e-3 < bounds[-1] < exact
    assert np.isnan(association.associate(example, HerdedGibbs(10)).log_evidence)


def test_a_track_that_cannot_be_missed_is_refused():
    with refusal(r"ratios: expected a positive first column for Gibbs .* take Exact"):
        HerdedGibbs().marginals([[0, 1, 1], [1, 1, 1]])
    assert_array_equal(HerdedGibbs().marginals([[0, 1, 0], [1, 0, 1]]), [[0, 1, 0], [0.5, 0, 0.5]])


def conditional(rows, t, s, state):
    """Distribution of track t given all others but s: the joint table of both, with s summed out."""
    used = {a for r, a in enumerate(state) if r not in (t, s) and a}
    p = np.zeros(rows.shape[1])
    for a in range(len(p)):
        for b in range(len(p)) if s is not None else [0]:
            if a not in used and b not in used and (a != b or a == 0):
                p[a] += rows[t, a] * (rows[s, b] if s is not None else 1)
    return p / p.sum()


def herded(ratios, moves, n_sweeps, by_set, neglect, irrational, patience=100):
    """Marginals of herded Gibbs sampling written out: the weights of each draw in a dictionary of what the others have."""
    rows = shares(ratios)
    tracks, columns = rows.shape
    steps = np.sqrt([2, 3, 5, 7, 11, 13, 17, 19][:tracks]) % 1
    weights = {}
    met = {}
    at = np.zeros(tracks)
    state = [0] * tracks
    sums = np.zeros(rows.shape)
    draws = [
        (move, *draw)
        for move in moves
        for draw in ([(move[0], None)] if move[1] < 0 else [move, (move[1], None)])
    ]
    for _ in range(n_sweeps):
        for move, t, s in draws:
            p = conditional(rows, t, s, state)
            sums[t] += p
            others = {r: state[r] for r in range(tracks) if r not in (t, s) and state[r]}
            whole = (move, t, "whole", *others.items())
            counting = frozenset(
                a
                for a in others.values()
                if max(rows[r, a] for r in (t, s) if r is not None) > neglect
            )
            key = (move, t, counting) if by_set else whole
            new = key not in weights
            w = weights.setdefault(key, np.zeros(columns))
            met[whole] = met.get(whole, 0) + 1
            if by_set and met[whole] > patience:
                w = weights.setdefault(whole, w.copy())
            w += p
            if new and irrational:
                at[t] = (at[t] + steps[t]) % 1
                value = int(np.searchsorted(np.cumsum(p), at[t], "right"))
            else:
                value = max(
                    (a for a in range(columns) if a == 0 or p[a] > 0), key=lambda a: (w[a], -a)
                )
            w[value] -= 1
            state[t] = value
    return shares(sums)


@cases(
    "size missed neglect",
    ((2, 3), 1e-3, "auto"),
    ((4, 5), 1, "auto"),
    ((4, 5), 1e-3, 0.2),
    ((7, 6), 1e-3, 0),
)
def test_herding_is_that_of_the_rule_written_out(size, missed, neglect):
    ratios = default_rng(size[0]).exponential(size=size)
    ratios[:, 0] *= missed
    alone = [(t, -1) for t in range(len(ratios))]
    moves = [tuple(move) for move in gibbs_moves(shares(ratios), True).tolist()]
    assert (len(moves) > len(alone)) == (missed < 1 or size[0] == 7)
    for n_sweeps in (1, 7, 200):
        bound = 3 / np.sqrt(n_sweeps) if neglect == "auto" else neglect
        found = HerdedGibbs(n_sweeps, neglect=neglect).marginals(ratios)
        assert_allclose(found, herded(ratios, moves, n_sweeps, True, bound, True), atol=1e-9)
        found = HerdedGibbs(n_sweeps, **PUBLISHED).marginals(ratios)
        assert_allclose(found, herded(ratios, alone, n_sweeps, False, 0, False), atol=1e-9)


def close_tracks(seed, tracks, clutter):
    """Tracks in a row 2.5 m apart, detected with 0.95, their detections with standard deviation 2 m."""
    rng = default_rng([seed, tracks])
    truth = 2.5 * np.arange(tracks)[:, None] * [1, 0]
    seen = rng.random(tracks) < 0.95
    detections = truth[seen] + 2 * rng.standard_normal((seen.sum(), 2))
    squared = ((detections - truth[:, None] - rng.standard_normal((tracks, 1, 2))) ** 2).sum(
        axis=-1
    )
    return association.ratios(np.exp(-squared / 10) / (10 * np.pi), 0.95, clutter)


@cases("tracks clutter", (3, 1e-8), (12, 1e-3), (12, 1e-8))
def test_close_tracks_exchange_their_detections(tracks, clutter):
    errors = {"herded": [], "random": [], "alone": []}
    for seed in range(5):
        ratios = close_tracks(seed, tracks, clutter)
        exact = association.marginals(ratios)
        errors["herded"].append(distance(HerdedGibbs(300).marginals(ratios), exact))
        errors["random"].append(distance(RandomGibbs(300).marginals(ratios, seed), exact))
        errors["alone"].append(distance(HerdedGibbs(300, pairs=False).marginals(ratios), exact))
    assert max(errors["herded"]) < 0.1
    assert np.mean(errors["herded"]) < 0.02
    assert np.mean(errors["herded"]) < 0.7 * np.mean(errors["random"])
    assert np.mean(errors["herded"]) < 0.5 * np.mean(errors["alone"])


def test_tracks_that_are_hardly_ever_missed_share_all_detections():
    for method, most in (
        (HerdedGibbs(300), 0.005),
        (RandomGibbs(3000), 0.05),
        (HerdedGibbs(300, **PUBLISHED), None),
    ):
        found = association.marginals([[1e-12, 1, 1, 1]] * 3, method, rng=1)
        if most:
            assert distance(found[:, 1:], np.full((3, 3), 1 / 3)) < most
        else:
            # which single moves alone miss
            assert distance(found[:, 1:], np.full((3, 3), 1 / 3)) > 0.3


def test_the_moves_of_a_sweep_connect_close_tracks_and_stay_few():
    for tracks in (12, 100):
        ratios = close_tracks(0, tracks, 1e-6)
        moves = gibbs_moves(shares(ratios), True)
        pairs = moves[moves[:, 1] >= 0]
        assert (
            connected_components(
                coo_array((np.ones(len(pairs)), pairs.T), (tracks, tracks)), False
            )[0]
            == 1
        )
        assert len(pairs) < tracks * (2 + np.ceil(np.log2(tracks)))
        assert (gibbs_moves(np.eye(tracks) + 1.0, False)[:, 1] == -1).all()
    # two groups, whose tracks have the nearest among themselves
    apart = np.kron(EYE, np.ones((6, 6))) + 1e-9
    moves = gibbs_moves(np.column_stack([np.full(12, 1e-9), apart]), True)
    assert ((moves[:, 0] < 6) & (moves[:, 1] >= 6)).any()


def test_the_vectors_of_a_run_take_bounded_memory(monkeypatch):
    """A run whose table of weights is full goes on with one vector for each draw of a sweep."""
    ratios = default_rng(2).exponential(size=(6, 7))
    table = []
    monkeypatch.setattr(gibbs, "sweep_tracks", lambda *arguments: table.append(arguments[3][4:]))
    with np.errstate(invalid="ignore"):
        for n_sweeps in (10, 10**5, 10**9):
            HerdedGibbs(n_sweeps).marginals(ratios)
    sizes = [sum(array.nbytes for array in arrays) for arrays in table]
    assert sizes[0] < 50_000 < sizes[1] <= sizes[2] <= gibbs.MOST_BYTES + 10_000
    monkeypatch.undo()
    exact = association.marginals(ratios)
    monkeypatch.setattr(gibbs, "MOST_BYTES", 2000)
    assert distance(HerdedGibbs(3000).marginals(ratios), exact) < 0.01


def test_random_sweeps_invert_the_distribution_of_each_track_in_turn():
    ratios = default_rng(5).exponential(size=(4, 5))
    n_sweeps = 50
    ratios[:, 0] += 1  # no pairs
    rows = shares(ratios)
    state = np.zeros(4, dtype=int)
    sums = np.zeros((4, 5))
    counts = np.zeros((4, 5))
    for uniforms in default_rng(3).random((n_sweeps, 4)):
        for t, u in enumerate(uniforms):
            others = np.delete(state, t)
            p = np.where(np.isin(np.arange(5), others[others > 0]), 0.0, rows[t])
            p /= p.sum()
            sums[t] += p
            state[t] = np.searchsorted(np.cumsum(p), u, "right")
        counts[np.arange(4), state] += 1
    assert_allclose(RandomGibbs(n_sweeps).marginals(ratios, 3), sums / n_sweeps, atol=1e-12)
    assert_allclose(RandomGibbs(n_sweeps, "counts").marginals(ratios, 3), counts / n_sweeps)
