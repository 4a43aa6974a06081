"""The samplers' own exponential against numpy's."""

import numpy as np
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.samplers import compiled


@njit
def exponentials(x):
    result = np.empty_like(x)
    for i in range(len(x)):
        result[i] = compiled.exp(x[i])
    return result


def test_exp_to_one_part_in_1e14_over_its_whole_range_and_next_to_nothing_below():
    edges = np.array([-700.0, -0.0, 0.0, 700.0])
    # Where the reduced argument changes sign.
    halves = (np.arange(-1000, 1001) + 0.5) * np.log(2) * 0.5
    x = np.concatenate(
        [np.linspace(-700, 700, 200_001), np.geomspace(1e-300, 1, 1000), edges, halves]
    )
    assert_allclose(exponentials(x), np.exp(x), rtol=1e-14)
    assert_allclose(exponentials(-x), np.exp(-x), rtol=1e-14)
    below = exponentials(np.array([-701.0, -1e6, -1e300, -np.inf]))
    assert ((below >= 0) & (below < 1e-303)).all()
    assert_array_equal(exponentials(np.array([0.0, -0.0])), [1.0, 1.0])
