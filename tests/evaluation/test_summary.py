import numpy as np
import pandas as pd
import pytest

import herdfilter as hf
from herdfilter.evaluation.metrics import bootstrap_interval, median_interval
from herdfilter.evaluation.summary import verdict


def table_of(errors, n=50):
    """A table of runs with the errors given, filter -> one a run; NaN stands for a failed run."""
    rows = [
        {"scenario": "s", "filter": name, "n_particles": n, "run": run, "rmse": 2 * e, "reference_error": e}
        | {"reference_sd": 0.1}
        | {"log_likelihood_error": -e, "ess": 10.0, "ms_per_step": 1.0, "diverged": bool(np.isnan(e))}
        | {"error": "ValueError: no" if np.isnan(e) else ""}
        for name, values in errors.items()
        for run, e in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_statistics_are_over_runs_that_did_not_fail():
    row = hf.evaluation.summarise(table_of({"a": [3.0, 4.0, np.nan, 5.0]})).iloc[0]
    assert row["reference_error"] == pytest.approx(np.sqrt(50 / 3))
    assert row["rmse"] == pytest.approx(2 * np.sqrt(50 / 3))
    assert row["reference_error_median"] == 4.0
    assert (row["runs"], row["failures"], row["diverged"]) == (4, 1, 0.25)
    assert row["reference_error_low"] <= row["reference_error"] <= row["reference_error_high"]


def test_ratios_are_paired_run_by_run():
    rng = np.random.default_rng(0)
    difficulty = np.exp(3 * rng.standard_normal(30))  # runs differ far more than filters
    summary = hf.evaluation.summarise(
        table_of({"bootstrap": difficulty, "b": 0.8 * difficulty * np.exp(0.05 * rng.standard_normal(30))})
    )
    row = summary.set_index("filter").loc["b"]
    assert row["ratio"] == pytest.approx(0.8, rel=0.03)
    assert row["ratio_high"] < 0.9
    assert row["baseline"] == "bootstrap"


def test_a_run_that_failed_in_one_filter_enters_no_ratio():
    summary = hf.evaluation.summarise(table_of({"bootstrap": [1.0, np.nan, 4.0], "b": [2.0, 2.0, np.nan]}))
    assert summary.set_index("filter").loc["b", "ratio"] == 2.0


def test_the_baseline_can_be_chosen():
    table = table_of({"a": [1.0] * 8, "b": [2.0] * 8})
    assert hf.evaluation.summarise(table)["ratio"].tolist() == [1.0, 2.0]
    assert hf.evaluation.summarise(table, baseline="b")["ratio"].tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="baseline: unknown 'c'"):
        hf.evaluation.summarise(table, baseline="c")


@pytest.mark.parametrize("statistic", ["rms", "median"])
def test_intervals_cover_the_true_value(statistic):
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        values = rng.exponential(size=40)
        if statistic == "rms":
            low, high = bootstrap_interval(values, lambda x, axis: np.sqrt((x**2).mean(axis=axis)))
            hits += low <= np.sqrt(2.0) <= high  # E X^2 = 2
        else:
            low, high = median_interval(values)
            hits += low <= np.log(2.0) <= high
    # nominal 380; the percentile bootstrap of so skewed a law falls a little short, order statistics do not
    assert hits >= (340 if statistic == "rms" else 368)
    assert hits < 400


def test_too_few_runs_have_no_interval():
    assert np.isnan(median_interval(np.arange(5.0))).all()
    assert median_interval(np.arange(6.0)) == (0.0, 5.0)  # 1 - 2 / 2^6 = 97 %
    assert np.isnan(bootstrap_interval(np.ones(1), np.mean)).all()


def test_the_verdict_claims_only_what_the_paired_interval_shows():
    rng = np.random.default_rng(2)
    noise = np.exp(rng.standard_normal((2, 20)))
    clear = hf.evaluation.summarise(table_of({"bootstrap": noise[0], "b": 0.5 * noise[0]}))
    assert verdict(clear).startswith(
        "At n = 50 b has the smallest median error against the reference: 0.5 of"
    )
    unclear = hf.evaluation.summarise(
        table_of({"bootstrap": np.arange(1.0, 21.0), "b": np.arange(1.0, 21.0) * ([0.5, 1.4] * 10)})
    )
    assert "b has the smallest median error against the reference, but a gain" in verdict(unclear)
    assert "is not shown: ratio 0.95" in verdict(unclear)
    few = hf.evaluation.summarise(table_of({"bootstrap": [2.0, 3.0], "b": [1.0, 1.5]}))
    assert "not shown" in verdict(few)
    assert "too few runs" in verdict(few)
    worse = hf.evaluation.summarise(table_of({"bootstrap": noise[0], "b": 2 * noise[0]}))
    assert "no filter has a smaller median error" in verdict(worse)
    failed = hf.evaluation.summarise(table_of({"bootstrap": [np.nan] * 3}))
    assert "no filter finished" in verdict(failed)


def test_without_a_reference_the_truth_decides():
    table = table_of({"bootstrap": [2.0] * 8, "b": [1.0] * 8})
    table["reference_error"] = np.nan
    summary = hf.evaluation.summarise(table)
    assert summary["ratio"].tolist() == [1.0, 0.5]
    assert "against the truth" in verdict(summary)
