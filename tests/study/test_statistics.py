"""Intervals and summaries against formulas written out here, and at the edges of what has a value."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from helpers import cases
from numpy.random import default_rng

from herdfilter.study import statistics
from herdfilter.study.statistics import fitted_slopes


@cases("runs level", (6, 0.5), (20, 0.95))
def test_students_interval_is_the_textbooks(runs, level):
    values = default_rng(runs).normal(3.0, 2.0, runs)
    expected = scipy.stats.t.interval(
        level, runs - 1, values.mean(), values.std(ddof=1) / np.sqrt(runs)
    )
    assert statistics.mean_interval(values, level) == pytest.approx(expected)


def test_five_values_have_no_interval_and_equal_ones_have_no_width():
    intervals = (statistics.mean_interval, statistics.median_interval)
    for interval in (*intervals, lambda x: statistics.bootstrap_interval(x, np.mean)):
        for few in (0, 1, 5):
            assert np.isnan(interval(np.arange(few, dtype=float))).all()
        assert np.isfinite(interval(np.arange(6.0))).all()
        assert interval(np.full(6, 3.0)) == pytest.approx((3.0, 3.0))


@cases("n level", (5, 0.5), (6, 0.95), (6, 0.99), (51, 0.99))
def test_a_medians_interval_is_the_narrowest_pair_of_order_statistics_that_covers(n, level):
    """Ranks i and n - 1 - i: binomial probability of more than i values on either side of the median."""
    values = default_rng(n).permutation(n).astype(float)
    below = scipy.stats.binom(n, 0.5).cdf(np.arange(n))
    tails = [i for i in range((n + 1) // 2) if below[i] <= (1 - level) / 2 + 1e-12]
    low, high = statistics.median_interval(values, level)
    if tails and n >= 6:
        assert (low, high) == (max(tails), n - 1 - max(tails))
    else:
        assert np.isnan(low)
        assert np.isnan(high)


def test_ratios_of_errors_where_one_is_nought_infinite_or_missing():
    first = np.array([2.0, 1.0, 0.0, 0.0, np.inf, np.inf, 1.0, np.nan, 1.0])
    second = np.array([4.0, 0.0, 0.0, 1.0, 1.0, np.inf, np.inf, 1.0, np.nan])
    expected = [0.5, np.inf, 1.0, 0.0, np.inf, np.nan, 0.0, np.nan, np.nan]
    np.testing.assert_array_equal(statistics.paired_ratios(first, second), expected)


def test_summaries_of_a_column():
    """Of the finite values."""
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 100.0])
    runs = pd.DataFrame({"x": [*x, np.nan, np.inf], "degrees": 2.0})
    mean = x.mean()
    rms = np.sqrt((x**2).mean())
    with_band = statistics.mean_beside_band("degrees")
    for summary, expected in (
        (statistics.mean, mean),
        (statistics.median, 8.0),
        (statistics.total, x.sum()),
        (statistics.rms, rms),
        (with_band, mean),
    ):
        assert summary("x", runs)["x"] == pytest.approx(expected)
        assert np.isnan(summary("x", runs[7:])["x"])
    assert statistics.median_with_interval("x", runs) == {"x": 8.0, "x_low": 1.0, "x_high": 100.0}
    for summary, expected in ((statistics.mean_and_median, mean), (statistics.rms_and_median, rms)):
        found = summary("x", runs)
        assert found["x_low"] < found["x"] < found["x_high"]
        assert found["x"] == pytest.approx(expected)
        assert [found[f"x_median{end}"] for end in ("", "_low", "_high")] == [8.0, 1.0, 100.0]
    found = with_band("x", runs)
    band = statistics.chi_square_band(14)
    assert (found["x_band_low"], found["x_band_high"]) == pytest.approx(band)


@cases("degrees level", (0.5, 0.99), (30, 0.5))
def test_a_band_leaves_the_same_out_on_either_side(degrees, level):
    low, high = statistics.chi_square_band(degrees, level)
    inside = scipy.stats.chi2(degrees)
    assert inside.cdf(low * degrees) == pytest.approx((1 - level) / 2)
    assert inside.sf(high * degrees) == pytest.approx((1 - level) / 2)
    assert np.isnan(statistics.chi_square_band(-1.0)).all()


COUNTS = (10, 40, 160)


def table(slope, scatter=0.0, runs=200, seed=0):
    rng = default_rng(seed)
    rows = [
        (n, run, level * n**slope * np.exp(rng.normal(0, scatter)))
        for run, level in enumerate(rng.lognormal(size=runs))
        for n in COUNTS
    ]
    columns = ["n_particles", "run", "rmse"]
    return pd.DataFrame(rows, columns=columns).assign(filter="a", reference_error=np.nan)


def test_a_power_law_has_its_exponent_whatever_the_level_of_a_run():
    (fit,) = fitted_slopes(table(-0.75), "rmse").to_dict("records")
    assert fit["slope"] == pytest.approx(-0.75)
    assert fit["slope_high"] - fit["slope_low"] < 1e-9


def test_runs_that_failed_or_are_exact_are_left_out_and_one_count_has_no_slope():
    runs = table(-0.5, runs=5)
    runs.loc[(runs["run"] == 1) & (runs["n_particles"] == 40), "rmse"] = np.nan
    runs.loc[(runs["run"] == 2) & (runs["n_particles"] == 160), "rmse"] = 0.0
    runs.loc[(runs["run"] == 3) & (runs["n_particles"] == 10), "rmse"] = np.inf
    assert fitted_slopes(runs, "rmse")["runs"][0] == 2
    one = fitted_slopes(runs[runs["n_particles"] == 10], "rmse").iloc[0]
    assert np.isnan(one["slope"])
    assert one["runs"] == 4
    assert np.isnan(fitted_slopes(runs, "reference_error")["slope"][0])


def test_the_interval_of_a_slope_is_students_over_runs():
    runs = table(-0.5, 0.3, runs=12)
    wide = runs.pivot(index="run", columns="n_particles", values="rmse")
    slopes = np.polyfit(np.log(wide.columns.to_numpy(float)), np.log(wide.to_numpy()).T, 1)[0]
    fit = fitted_slopes(runs, "rmse").iloc[0]
    expected = statistics.mean_interval(slopes)
    assert (fit["slope_low"], fit["slope_high"]) == pytest.approx(expected)
    # The least squares line through the mean logarithms.
    assert fit["slope"] == pytest.approx(slopes.mean())


def test_two_counts_and_one_run_have_a_slope():
    runs = table(-0.5, runs=1)
    two = runs[runs["n_particles"] > 10]
    assert fitted_slopes(pd.concat([two.assign(filter="b"), two]), "rmse")["filter"].tolist() == [
        "b",
        "a",
    ]
    fit = fitted_slopes(two, "rmse").iloc[0]
    assert fit["slope"] == pytest.approx(-0.5)
    assert np.isnan(fit["slope_low"])
    assert fitted_slopes(runs.assign(rmse=np.nan), "rmse").iloc[0]["runs"] == 0


def test_geometric_means_leave_out_what_has_no_logarithm_and_infinite_ratios_raise_the_upper_end():
    ratios = np.array([0.5, 0.7, 0.9, 1.1, 0.6, 0.8, 1.3])
    logs = np.log(ratios)
    low, high = np.exp(scipy.stats.t.interval(0.9, 6, logs.mean(), logs.std(ddof=1) / np.sqrt(7)))
    for more, end in (([0.0, np.nan], high), ([np.inf, 0.0], np.inf)):
        found = statistics.geometric_mean("x", np.array([*more, *ratios]), 0.9)
        assert found == pytest.approx({"x": np.exp(logs.mean()), "x_low": low, "x_high": end})
    assert statistics.geometric_mean("x", ratios)["x_low"] < low  # at 95 %
    few = statistics.geometric_mean("x", np.array([2.0, 8.0, np.inf]))
    assert few["x"] == pytest.approx(4.0)
    assert np.isnan([few["x_low"], few["x_high"]]).all()
