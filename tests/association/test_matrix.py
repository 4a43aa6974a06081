"""The matrix of ratios."""

import numpy as np
import pytest
from helpers import refuses
from numpy.testing import assert_allclose

from herdfilter import association


def test_ratios_of_one_track_give_its_posterior():
    """One track, one measurement: dead and clutter; missed and clutter; detected."""
    r = 0.7
    detected = 0.9
    clutter = 0.2
    likelihood = 0.5
    found = association.marginals(association.ratios([[likelihood]], detected, clutter, r))[0]
    dead = (1 - r) * clutter
    missed = r * (1 - detected) * clutter
    own = r * detected * likelihood
    assert_allclose(found, np.array([dead + missed, own]) / (dead + missed + own))
    assert found[0] * r * (1 - detected) / (1 - r * detected) == pytest.approx(
        missed / (dead + missed + own)
    )


def test_every_argument_may_differ_between_tracks_or_measurements():
    g = np.random.default_rng(0).exponential(size=(2, 3))
    found = association.ratios(g, [0.5, 1.0], [1.0, 2.0, 4.0], existence=[1.0, 0.25])
    assert_allclose(found[0], [0.5, *(0.5 * g[0] / [1, 2, 4])])
    assert_allclose(found[1], [0.75, *(0.25 * g[1] / [1, 2, 4])])
    assert association.ratios(np.empty((2, 0)), 0.9, 1.0).shape == (2, 1)
    assert association.ratios(np.empty((0, 3)), 0.9, 1.0).shape == (0, 4)


test_wrong_arguments_are_named = refuses(
    association.ratios,
    ([1.0], 0.9, 1.0, r"likelihoods: expected shape \(\*, \*\), got \(1,\)"),
    ([[-1.0]], 0.9, 1.0, "likelihoods: expected no negative entry, got -1"),
    ([[1.0], [1.0]], [0.5, 1.1], 1.0, "detection_probability: expected probabilities .*, got 1.1"),
    ([[1.0]], 0.9, 1.0, [-0.1], "existence: expected probabilities from 0 to 1, got -0.1"),
    (
        [[1.0]],
        1 + 1e-12,
        1.0,
        "detection_probability: expected probabilities from 0 to 1, got 1.000000000001",
    ),
    ([[1.0]], [0.9, 0.9], 1.0, r"detection_probability: expected shape \(1,\), got \(2,\)"),
    ([[1.0]], 0.9, 0.0, "clutter_density: expected positive densities, got 0"),
    ([[1e200]], 0.9, 1e-200, "clutter_density: expected finite ratios"),
    ([[1.0]], 0.9, 1.0, np.nan, "existence: expected finite numbers"),
)
