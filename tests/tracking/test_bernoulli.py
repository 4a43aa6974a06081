"""The weights of a miss and of detections in the association, by the formulas and at their limits."""

import numpy as np
from helpers import cases
from numpy.testing import assert_allclose

from herdfilter.tracking.track import CLUTTER_WEIGHT, association_matrix

R = np.array([0.2, 0.9, 1.0])
P = 0.7
DENSITIES = np.array([[0.3, 2.0], [1.5, 0.0], [0.01, 0.2]])


@cases("shift", 0.0, 2000.0, -2000.0)
def test_rows_are_in_proportion_to_a_miss_and_to_detections_over_clutter(shift):
    """Whatever the unit of the observation is; each track has its detection probability, each detection its clutter."""
    p = np.array([0.0, 0.5, 0.9])
    clutter = np.array([0.4, 0.01])
    with np.errstate(divide="ignore"):
        found = association_matrix(R, p, np.log(DENSITIES) + shift, np.log(clutter) + shift)
    expected = np.column_stack([1 - R * p, (R * p)[:, None] * DENSITIES / clutter])
    assert_allclose(found / found[:, :1], expected / expected[:, :1], rtol=1e-9)
    assert found.max() <= 1


def test_a_detection_that_is_all_but_impossible_or_certain_leaves_finite_rows():
    """One beside the other: e^3000 times likelier than a miss, and as much less likely."""
    found = association_matrix(R, P, np.array([[3000.0, -3000.0]] * 3), 0.0)
    assert_allclose(found, [[0.0, 1.0, 0.0]] * 3)
    assert_allclose(association_matrix(R, P, np.full((3, 1), -np.inf), 0.0)[:, 1], 0.0)
    assert_allclose(association_matrix(np.zeros(1), P, np.zeros((1, 1)), 0.0), [[1.0, 0.0]])
    # no way is left
    assert association_matrix(np.ones(1), 1.0, np.empty((1, 0)), 0.0).tolist() == [[0.0]]


def test_without_clutter_a_detection_is_of_some_target_whatever_its_density():
    """In the limit: its likeliest target has it with a weight of 1 over next to nothing, the others in proportion."""
    with np.errstate(divide="ignore"):
        found = association_matrix(R, P, np.log(DENSITIES) - 50.0, -np.inf)
    weights = (R * P)[:, None] * DENSITIES
    expected = np.column_stack([1 - R * P, weights / weights.max(axis=0) / CLUTTER_WEIGHT])
    assert_allclose(found, expected / expected.max(axis=1, keepdims=True), rtol=1e-9)
    assert CLUTTER_WEIGHT <= 1e-9
