"""Herded Gibbs sampling: total variation to the exact joint distribution, the dictionary's bound, bad conditionals."""

import itertools
import pickle

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.discrete import DictionaryFullError, HerdedGibbs


def total_variation(states, table, lengths):
    flat = np.ravel_multi_index(states.T, table.shape)
    share = [np.bincount(flat[:n], minlength=table.size) / n for n in lengths]
    return np.array([0.5 * np.abs(s - table.ravel()).sum() for s in share])


def random_table(seed, shape):
    return np.random.default_rng(seed).dirichlet(np.ones(np.prod(shape))).reshape(shape)


EDGES = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]  # a grid of two rows
AROUND = [[b if a == i else a for a, b in EDGES if i in (a, b)] for i in range(6)]


@pytest.fixture(scope="module")
def ising():
    rng = np.random.default_rng(0)
    spins = np.array(list(itertools.product([-1, 1], repeat=6)))
    energy = spins @ rng.normal(0, 0.3, 6)
    energy += sum(rng.normal(0, 0.6) * spins[:, a] * spins[:, b] for a, b in EDGES)
    p = np.exp(energy)
    return (p / p.sum()).reshape((2,) * 6)


# The distribution


def test_the_joint_distribution_is_met_at_the_rate_of_one_over_the_length():
    lengths = 2 ** np.arange(6, 12)
    shape = (3, 2, 4)
    herded = []
    for seed in range(3):
        table = random_table(seed, shape)
        herded.append(
            total_variation(HerdedGibbs.from_joint(table).sample(lengths[-1]), table, lengths)
        )
    herded = np.mean(herded, axis=0)
    exponent = np.polyfit(np.log(lengths), np.log(herded), 1)[0]
    assert -1.15 < exponent < -0.85
    assert (herded * lengths < 6).all()  # random chains: from 17 to 93


def test_an_ising_grid_keyed_by_neighbours_gets_the_spins_right_with_few_vectors(ising):
    sampler = HerdedGibbs.from_joint(ising, neighbours=AROUND)
    assert (sampler.possible_vectors, HerdedGibbs.from_joint(ising).possible_vectors) == (
        4 * 4 + 2 * 8,
        6 * 32,
    )
    states = sampler.sample(8000)
    exact = [ising.sum(axis=tuple(j for j in range(6) if j != i))[1] for i in range(6)]
    assert_allclose(states.mean(axis=0), exact, atol=2e-3)
    assert total_variation(states, ising, [8000]) < 0.0163  # random chains: from 0.027 to 0.041


def test_an_impossible_start_leads_into_the_support():
    table = np.diag([0.0, 0.5, 0.5]) + np.diag([0.0, 0.25], 1)
    table /= table.sum()
    states = HerdedGibbs.from_joint(table).sample(2000, start=[0, 0], burn_in=5)
    assert (table[tuple(states.T)] > 0).all()
    assert total_variation(states, table, [2000]) < 0.01


# Options


def test_the_same_call_gives_the_same_states_and_leaves_its_arguments_alone():
    sampler = HerdedGibbs.from_joint(random_table(2, (2, 2, 3)))
    start = np.array([1, 0, 2])
    first = sampler.sample(100, start)
    assert (first != sampler.sample(100)).any()
    assert_array_equal(sampler.sample(80, start, burn_in=20), first[20:])
    assert_array_equal(sampler.sample(100, start), first)
    assert_array_equal(pickle.loads(pickle.dumps(sampler)).sample(100, start), first)
    assert start.tolist() == [1, 0, 2]


def test_conditionals_are_asked_once_for_a_configuration_unless_told_not_to_be_remembered():
    table = random_table(3, (2, 2, 2))
    calls = []

    def conditional(i, x):
        calls.append((i, *np.delete(x, i)))
        x[:] = -1  # a copy: nothing the function does to it matters
        return HerdedGibbs.from_joint(table).conditional(i, np.insert(calls[-1][1:], i, 0))

    remembered = HerdedGibbs(conditional, table.shape).sample(300)
    assert len(calls) == len(set(calls)) == 12
    asked = HerdedGibbs(conditional, table.shape, remember=False).sample(300)
    assert len(calls) == 12 + 900
    assert_array_equal(asked, remembered)


# The bound on the dictionary


def test_a_full_dictionary_is_an_error_that_keeps_the_states_so_far():
    table = random_table(4, (2,) * 6)
    free = HerdedGibbs.from_joint(table).sample(400)
    with refusal(
        r"max_vectors: expected at most 100 weight vectors.* pass `neighbours`", DictionaryFullError
    ) as caught:
        HerdedGibbs.from_joint(table, max_vectors=100).sample(400)
    error = caught.value
    assert 0 < len(error.states) < 400
    assert_array_equal(error.states, free[: len(error.states)])
    assert error.vectors == 100
    assert_array_equal(pickle.loads(pickle.dumps(error)).states, error.states)


def test_a_bound_that_is_certain_to_be_hit_is_refused_before_the_start():
    def never(i, x):
        raise AssertionError("asked for a conditional")

    with refusal(r"max_vectors: .* of 5 sweeps, at least 30 and up to 150 of .*, got 29;"):
        HerdedGibbs(never, [2] * 30, max_vectors=29).sample(5)
    strict = HerdedGibbs(never, [2] * 30, max_vectors=1000, strict=True)
    with refusal(r"max_vectors: .* at least 30 and up to 3,000 of 1.61061e\+10 that are possible"):
        strict.sample(80, burn_in=20)


# Bad input


@cases(
    "came message",
    ([0.5, 0.6], r"expected 2 non-negative numbers with a sum of 1, got \[0.5, 0.6\]"),
    ([0.2, 0.3, 0.5], r"expected 2 non-negative numbers .*, got \[0.2, 0.3, 0.5\]"),
)
def test_a_bad_conditional_is_named_with_its_variable_and_state(came, message):
    sampler = HerdedGibbs(lambda i, x: [0.25, 0.75] if i == 0 else came, [2, 2])
    with refusal(message) as caught:
        sampler.sample(10)
    assert str(caught.value).startswith("conditional of variable 1 at x = [1, 0]")


def test_a_conditional_that_depends_on_more_than_the_neighbours_is_found_out():
    table = random_table(6, (2, 2, 2))
    with refusal(r"neighbours: expected variable 0 to depend on its neighbours .* only"):
        HerdedGibbs.from_joint(table, neighbours=[[1], [0, 2], [0, 1]]).sample(100)
    approximate = HerdedGibbs.from_joint(
        table, neighbours=[[1], [0, 2], [0, 1]], remember=False
    ).sample(2000)
    assert total_variation(approximate, table, [2000]) < 0.1


test_bad_options_are_named = refuses(
    lambda options: HerdedGibbs(
        **{"conditional": lambda i, x: [0.5, 0.5], "cardinalities": [2, 2]} | options
    ),
    ({"conditional": 3}, "conditional: expected a function"),
    ({"neighbours": [[1]]}, "neighbours: expected 2 lists, one per variable, got 1"),
)
