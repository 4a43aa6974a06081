"""What is no mixture is named by every sampler."""

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
