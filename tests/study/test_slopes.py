"""Slopes of errors over particle counts."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from herdfilter.study.slopes import fitted_slopes

COUNTS = (10, 40, 160)


def table(slope, scatter=0.0, runs=200, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        {
            "filter": "a",
            "n_particles": n,
            "run": run,
            "rmse": level * n**slope * np.exp(rng.normal(0, scatter)),
        }
        for run, level in enumerate(rng.lognormal(size=runs))
        for n in COUNTS
    ]
    return pd.DataFrame(rows).assign(reference_error=np.nan)


def test_a_power_law_has_its_exponent_whatever_the_level_of_a_run():
    (fit,) = fitted_slopes(table(-0.75), "rmse").to_dict("records")
    assert fit["slope"] == pytest.approx(-0.75)
    assert fit["slope_high"] - fit["slope_low"] < 1e-9


def test_it_is_the_least_squares_line_through_the_mean_logarithms():
    runs = table(-0.5, 0.3)
    means = np.log(runs["rmse"]).groupby(runs["n_particles"]).mean()
    expected = np.polyfit(np.log(means.index), means, 1)[0]
    assert fitted_slopes(runs, "rmse")["slope"][0] == pytest.approx(expected)


def test_intervals_cover():
    fits = [fitted_slopes(table(-0.5, 0.3, 8, seed), "rmse").iloc[0] for seed in range(200)]
    covered = np.mean([fit["slope_low"] < -0.5 < fit["slope_high"] for fit in fits])
    assert 0.9 < covered < 0.99


def test_runs_that_failed_or_are_exact_are_left_out_and_one_count_has_no_slope():
    runs = table(-0.5, runs=5)
    runs.loc[(runs["run"] == 1) & (runs["n_particles"] == 40), "rmse"] = np.nan
    runs.loc[(runs["run"] == 2) & (runs["n_particles"] == 160), "rmse"] = 0.0
    assert fitted_slopes(runs, "rmse")["runs"][0] == 3
    assert np.isnan(fitted_slopes(runs[runs["n_particles"] == 10], "rmse")["slope"][0])
    assert np.isnan(fitted_slopes(runs, "reference_error")["slope"][0])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="measure"):
        fitted_slopes(table(-0.5), "rsme")
    with pytest.raises(ValueError, match="level"):
        fitted_slopes(table(-0.5), "rmse", level=95)


def test_the_interval_of_a_slope_is_students_over_runs_at_its_level():
    runs = table(-0.5, 0.3, runs=12)
    wide = runs.pivot(index="run", columns="n_particles", values="rmse")
    slopes = np.polyfit(np.log(wide.columns.to_numpy(float)), np.log(wide.to_numpy()).T, 1)[0]
    for level in (0.5, 0.95):
        expected = scipy.stats.t.interval(level, 11, slopes.mean(), slopes.std(ddof=1) / np.sqrt(12))
        fit = fitted_slopes(runs, "rmse", level).iloc[0]
        assert (fit["slope_low"], fit["slope_high"]) == pytest.approx(expected)
    default = fitted_slopes(runs, "rmse").iloc[0]
    assert default["slope_low"] == fit["slope_low"]


def test_two_counts_and_one_run_have_a_slope():
    runs = table(-0.5, runs=1)
    fit = fitted_slopes(runs[runs["n_particles"] > 10], "rmse").iloc[0]
    assert fit["slope"] == pytest.approx(-0.5)
    assert np.isnan(fit["slope_low"])
    assert fitted_slopes(runs.assign(rmse=np.nan), "rmse").iloc[0]["runs"] == 0
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level"):
            fitted_slopes(runs, "rmse", level)
