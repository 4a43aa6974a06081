"""The bootstrap interval against SciPy's, which takes longer to import than the rest of a study."""

import numpy as np
import pytest
import scipy.stats

from herdfilter.study.statistics import bootstrap_interval, median_interval, root_mean_square


@pytest.mark.parametrize("statistic", [np.mean, root_mean_square])
@pytest.mark.parametrize("n", [6, 20, 70])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_that_of_scipy(statistic, n, level):
    """Bias and acceleration count: errors are skewed, one of them is far off, and all of a common size."""
    values = np.append(np.random.default_rng(n).exponential(size=n - 1) / 30, 1.0)
    low, high = scipy.stats.bootstrap(
        (values,), statistic, n_resamples=2000, vectorized=True, confidence_level=level, rng=np.random.default_rng(0)
    ).confidence_interval
    assert bootstrap_interval(1e200 * values, statistic, level) == pytest.approx((1e200 * low, 1e200 * high), rel=1e-12)


def test_a_statistic_that_no_resample_changes_has_no_width():
    assert bootstrap_interval(np.array([-3.0, 3.0] * 4), root_mean_square) == pytest.approx((3.0, 3.0))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
def test_the_ranks_around_a_median_are_those_of_scipys_test(level):
    for n in range(6, 400, 7):
        values = np.arange(n, dtype=np.float64)
        assert (
            median_interval(values, level)
            == pytest.approx(tuple(scipy.stats.quantile_test(values).confidence_interval(level)), nan_ok=True)
            or n < 12
        )
