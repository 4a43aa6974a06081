"""Association by random and by herded Gibbs sampling."""

import numpy as np
import pytest

from herdfilter import association
from herdfilter.association import HerdedGibbs, RandomGibbs

PUBLISHED = {"key": "assignment", "first_visit": "argmax", "pairs": False}


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
    np.testing.assert_allclose(found, AUTHORS, rtol=0, atol=1e-6)


def test_the_published_example_converges(brute, example):
    exact = brute.marginals(example)
    np.testing.assert_allclose(association.marginals(example), exact, rtol=0, atol=1e-12)
    for estimate in ("conditionals", "counts", "joint"):
        for options in ({}, PUBLISHED):
            found = HerdedGibbs(10_000, estimate=estimate, **options).marginals(example)
            assert distance(found, exact) < 0.001


def test_two_tracks_by_hand():
    """Herding with the published key: conditionals 1/2, 1/2 alone, and 1, 0 where the other has the measurement."""
    ratios = [[1.0, 1.0], [1.0, 1.0]]
    # Sweeps: (0, 0): ties go to the lowest; (1, 0): the first now has more weight on 1, the second no choice; (0, 1); ...
    np.testing.assert_allclose(HerdedGibbs(1, **PUBLISHED).marginals(ratios), [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(HerdedGibbs(2, **PUBLISHED).marginals(ratios), [[0.5, 0.5], [0.75, 0.25]])
    np.testing.assert_allclose(HerdedGibbs(2, estimate="counts", **PUBLISHED).marginals(ratios), [[0.5, 0.5], [1, 0]])


def test_herding_needs_no_random_number(example):
    one = association.marginals(example, HerdedGibbs(50), rng=3)
    np.testing.assert_array_equal(one, association.marginals(example, HerdedGibbs(50), rng=4))


def test_the_evidence_of_collected_assignments_is_a_lower_bound(example):
    exact = association.associate(example).log_evidence
    bounds = [association.associate(example, HerdedGibbs(n, estimate="joint")).log_evidence for n in (10, 100, 10_000)]
    assert bounds == sorted(bounds)
    assert exact - 2e-3 < bounds[-1] < exact
    assert np.isnan(association.associate(example, HerdedGibbs(10)).log_evidence)


def test_a_track_that_cannot_be_missed_is_refused():
    with pytest.raises(ValueError, match=r"ratios: expected a positive first column for Gibbs .* take Exact"):
        HerdedGibbs().marginals([[0, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(HerdedGibbs().marginals([[0, 1, 0], [1, 0, 1]]), [[0, 1, 0], [0.5, 0, 0.5]])


def herded(ratios, n_sweeps, by_set, neglect, irrational):
    """Marginals of herded Gibbs sampling written out: the weights of each track in a dictionary of what the others have."""
    rows = ratios / ratios.sum(axis=1, keepdims=True)
    tracks, columns = rows.shape
    steps = np.sqrt([2, 3, 5, 7, 11, 13, 17, 19][:tracks]) % 1
    weights, at, state, sums = {}, np.zeros(tracks), [0] * tracks, np.zeros(rows.shape)
    for _ in range(n_sweeps):
        for t in range(tracks):
            others = [state[s] if s != t else 0 for s in range(tracks)]
            p = np.where(np.isin(np.arange(columns), [j for j in others if j]), 0.0, rows[t])
            p /= p.sum()
            sums[t] += p
            what = [frozenset(j for j in others if j and rows[t, j] > neglect)] if by_set else others
            key = (t, *what)
            u = None
            if key not in weights:
                weights[key] = np.zeros(columns)
                if irrational:
                    at[t] = (at[t] + steps[t]) % 1
                    u = at[t]
            w = weights[key]
            w += p
            if u is None:
                value = max((j for j in range(columns) if j == 0 or p[j] > 0), key=lambda j: (w[j], -j))
            else:
                value = int(np.searchsorted(np.cumsum(p), u, "right"))
            w[value] -= 1
            state[t] = value
    return sums / n_sweeps


@pytest.mark.parametrize("size", [(2, 3), (4, 5), (7, 6)])
@pytest.mark.parametrize("neglect", ["auto", 0.2, 0])
def test_herding_is_that_of_the_rule_written_out(size, neglect):
    ratios = np.random.default_rng(size[0]).exponential(size=size)
    for n_sweeps in (1, 7, 60, 400):
        bound = 3 / np.sqrt(n_sweeps) if neglect == "auto" else neglect
        found = HerdedGibbs(n_sweeps, neglect=neglect).marginals(ratios)
        np.testing.assert_allclose(found, herded(ratios, n_sweeps, True, bound, True), atol=1e-9)
        found = HerdedGibbs(n_sweeps, **PUBLISHED).marginals(ratios)
        np.testing.assert_allclose(found, herded(ratios, n_sweeps, False, 0, False), atol=1e-9)


def test_random_sweeps_invert_the_distribution_of_each_track_in_turn():
    ratios, n_sweeps = np.random.default_rng(5).exponential(size=(4, 5)), 50
    rows, state = ratios / ratios.sum(axis=1, keepdims=True), np.zeros(4, dtype=int)
    sums, counts = np.zeros((4, 5)), np.zeros((4, 5))
    for uniforms in np.random.default_rng(3).random((n_sweeps, 4)):
        for t, u in enumerate(uniforms):
            others = np.delete(state, t)
            p = np.where(np.isin(np.arange(5), others[others > 0]), 0.0, rows[t])
            p /= p.sum()
            sums[t] += p
            state[t] = np.searchsorted(np.cumsum(p), u, "right")
        counts[np.arange(4), state] += 1
    np.testing.assert_allclose(RandomGibbs(n_sweeps).marginals(ratios, 3), sums / n_sweeps, atol=1e-12)
    np.testing.assert_allclose(RandomGibbs(n_sweeps, "counts").marginals(ratios, 3), counts / n_sweeps)
