"""The samplers' own arithmetic against numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from herdfilter.samplers import _fastmath


@njit
def exponentials(x):
    result = np.empty_like(x)
    for i in range(len(x)):
        result[i] = _fastmath.exp(x[i])
    return result


def test_exp_to_one_part_in_1e14_over_its_whole_range():
    edges = np.array([-700.0, -0.0, 0.0, 700.0])
    halves = (np.arange(-1000, 1001) + 0.5) * np.log(2) * 0.5  # where the reduced argument changes sign
    x = np.concatenate([np.linspace(-700, 700, 200_001), np.geomspace(1e-300, 1, 1000), edges, halves])
    np.testing.assert_allclose(exponentials(x), np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(exponentials(-x), np.exp(-x), rtol=1e-14)


@njit
def exponentials_of_negatives(x):
    result = np.empty_like(x)
    for i in range(len(x)):
        result[i] = _fastmath.exp_of_negative(x[i])
    return result


def test_exp_of_negative_to_one_part_in_1e14_and_next_to_nothing_below():
    x = np.concatenate([np.linspace(-700, 0, 100_001), -np.geomspace(1e-300, 1, 1000)])
    np.testing.assert_allclose(exponentials_of_negatives(x), np.exp(x), rtol=1e-14)
    below = exponentials_of_negatives(np.array([-701.0, -1e6, -1e300]))
    assert ((below >= 0) & (below < 1e-303)).all()


def test_exp_of_zero_is_one():
    np.testing.assert_array_equal(exponentials(np.array([0.0, -0.0])), [1.0, 1.0])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_small_systems_are_solved(seed, d):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d))
    matrix, vector = root @ root.T + 0.1 * np.eye(d), rng.standard_normal(d)
    expected = np.linalg.solve(matrix, vector)
    _fastmath.solve_in_place(matrix, vector)
    assert vector == pytest.approx(expected, rel=1e-9, abs=1e-12)
