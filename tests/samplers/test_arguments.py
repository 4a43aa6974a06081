"""What is no mixture, no number of points or no source of random numbers is named by every sampler."""

import numpy as np
import pytest

import herdfilter as hf


def test_what_is_no_mixture_is_named(sampler):
    for given, found in (
        (np.zeros((5, 2)), r"numbers of shape \(5, 2\); GaussianFit\(\).fit\(points, weights\) makes"),
        (hf.Points(np.zeros((5, 2))), "an object Points"),
        (hf.GaussianMixture, "the class GaussianMixture"),
        (None, "an object NoneType"),
    ):
        with pytest.raises(TypeError, match=f"^mixture: expected a GaussianMixture, got {found}"):
            sampler.sample(given, 5)


def test_what_is_no_source_of_random_numbers_is_named_where_none_are_drawn(sampler):
    mixture = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    for rng in ("abc", 1.5, -1):
        with pytest.raises(ValueError, match=r"^rng: expected a numpy Generator, a seed or None, got"):
            sampler.sample(mixture, 3, rng)


def test_what_is_no_number_of_points_is_named(sampler):
    mixture = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    for n in (0, -1, -(10**30), 2.5, "3", None, np.nan):
        with pytest.raises(ValueError, match=r"^n: expected an integer of at least 1, got"):
            sampler.sample(mixture, n)
