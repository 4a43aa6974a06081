"""Which detections are compared with which tracks."""

import numpy as np
import pytest
import scipy.stats
from helpers import cases
from numpy.testing import assert_allclose

from herdfilter.tracking import Birth, LMBTracker
from herdfilter.tracking.track import SMALLEST_GATED_RATIO, gate_detections


@cases("size missed", (1, 0.1), (2, 1e-6), (3, 0.9))
def test_a_gate_is_the_ellipsoid_of_its_probability_or_what_weighs_a_millionth_of_a_miss(
    size, missed
):
    """Along a ray, the last detection inside is where the larger of the two ends."""
    rng = np.random.default_rng(size)
    roots = rng.standard_normal((2, size, size))
    means = rng.standard_normal((2, size))
    covariances = roots @ roots.mT + 0.1 * np.eye(size)
    ray = rng.standard_normal(size)
    for factor in (1e-12, 1.0, 1e6):
        log_odds = np.full(2, np.log(factor / missed))
        for index, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            z = mean + np.linspace(0, 60, 6001)[:, None] * ray
            inside, log_densities = gate_detections(z, means, covariances, (), log_odds, 0.99)
            squares = ((z - mean) @ np.linalg.inv(covariance) * (z - mean)).sum(axis=1)
            density = scipy.stats.multivariate_normal(mean, covariance).logpdf(z)
            assert_allclose(log_densities[index], density)
            expected = squares <= scipy.stats.chi2(size).ppf(0.99)
            expected |= density + log_odds[0] > np.log(SMALLEST_GATED_RATIO)
            assert (inside[index] == expected).mean() > 0.999
            assert expected[0]
            assert not expected[-1]


def test_a_gate_costs_no_accuracy_where_a_miss_is_all_but_excluded(walk, cluttered):
    """A detection far out is then still the likelier one, unless it weighs a millionth of so small a weight."""
    model = cluttered(walk, 0.9999, 1e-3)
    for distance in np.arange(3.0, 14.0, 1.0):
        found = []
        for probability in (0.9, 1):
            start = [Birth(0.9999, walk.initial)]
            tracker = LMBTracker(
                model, (), 1.0, filter="ekf", initial=start, gate_probability=probability, prune=0
            )
            tracker.predict()
            tracker.update([[distance, 0.0]])
            found.append(tracker.tracks[0])
        gated, whole = found
        assert gated.existence == pytest.approx(whole.existence, abs=2e-6)
        assert_allclose(gated.mean, whole.mean, atol=1e-4)
