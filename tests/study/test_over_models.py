"""Every model counts once, in units of its own."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import herdfilter as hf
from herdfilter.study import over_models
from herdfilter.study.over_models import verdict_over_models


def table_of(errors, n=100, **columns):
    """A table of errors, filter -> (models, runs); NaN stands for a failed run."""
    rows = [
        {
            "scenario": "s",
            "filter": name,
            "n_particles": n,
            "model": m,
            "run": 10 * m + r,
            "kind": f"kind {m}",
        }
        | {"reference_error_sd": e, "rmse": 1.0, "reference_uncertainty": 0.0, "variance_ratio": 1.0}
        | {"log_likelihood_error": -3 * e, "ms_per_step": 1.0, "diverged": bool(np.isnan(e))}
        | {"error": "ValueError: no" if np.isnan(e) else ""}
        for name, values in errors.items()
        for m, runs in enumerate(np.atleast_2d(values))
        for r, e in enumerate(runs)
    ]
    return pd.DataFrame(rows).assign(**columns)


def row_of(table, name="b"):
    return over_models(table).set_index("filter").loc[name]


def column(*values):
    return np.array(values)[:, None]


def test_ratios_are_averaged_as_ratios_are():
    row = row_of(table_of({"bootstrap": column(1.0, 10.0, 1.0), "b": column(2.0, 5.0, 1.0)}))
    assert row["ratio"] == pytest.approx(1.0)
    assert row[["ratio_low", "ratio_high"]].isna().all()  # from six models on
    six = row_of(table_of({"bootstrap": np.ones((6, 1)), "b": column(2.0, 0.5, 1.0, 2.0, 0.5, 1.0)}))
    assert six["ratio_low"] < 1 < six["ratio_high"]
    assert (row["models"], row["compared"], row["above"]) == (3, 3, pytest.approx(1 / 3))
    assert (row["ratio_10"], row["ratio_50"], row["ratio_90"]) == (0.5, 1.0, 2.0)
    assert row["worst"] == "0: 2.00 (kind 0); 2: 1.00 (kind 2); 1: 0.500 (kind 1)"
    assert row["log_likelihood"] == pytest.approx(1.0)


def test_the_unit_of_a_model_does_not_matter():
    rng = np.random.default_rng(0)
    errors = {name: np.exp(rng.standard_normal((4, 3))) for name in ("bootstrap", "b")}
    scale = np.array([1e-5, 1.0, 3.0, 1e7])[:, None]
    pd.testing.assert_frame_equal(
        over_models(table_of(errors)), over_models(table_of({k: v * scale for k, v in errors.items()}))
    )


def test_a_model_counts_once_however_many_runs_it_has():
    base, own = np.ones((6, 7)), column(2.0, 0.5, 3.0, 0.7, 0.5, 0.6)
    row = row_of(table_of({"bootstrap": base, "b": base * own}))
    again = row_of(table_of({"bootstrap": base[:, :1], "b": own}))
    for name in ("ratio", "ratio_low", "ratio_high", "above"):
        assert row[name] == again[name]


def test_a_model_is_shown_to_be_worse_only_where_its_runs_agree():
    agree, differ = np.full(8, 2.0), np.array([3.0, 3, 3, 3, 3, 0.5, 0.5, 0.5])
    row = row_of(table_of({"bootstrap": np.ones((2, 8)), "b": [agree, differ]}))
    assert (row["above"], row["above_shown"]) == (1.0, 0.5)
    few = row_of(table_of({"bootstrap": np.ones((2, 5)), "b": [agree[:5], differ[:5]]}))
    assert np.isnan(few["above_shown"])


def test_a_filter_that_fails_has_lost():
    row = row_of(table_of({"bootstrap": column(1.0, 1.0, np.nan, 1.0), "b": column(0.5, np.nan, 1.0, 0.5)}))
    assert row["compared"] == 3  # the baseline has nothing to compare with at one
    assert row["above"] == pytest.approx(1 / 3)
    assert row["lost"] == pytest.approx(1 / 4)
    assert row["ratio"] == pytest.approx(0.5)
    assert row["worst"].startswith("1: inf")
    good = row_of(table_of({"bootstrap": np.ones((8, 1)), "b": column(*[0.5, 0.4] * 4)}))
    assert good["better"] == -1
    lost = row_of(table_of({"bootstrap": np.ones((8, 1)), "b": column(*[0.5, 0.4] * 3, 0.5, np.nan)}))
    assert (lost["ratio_high"], lost["better"]) == (np.inf, 0)  # no gain is claimed where it fails at a model


def test_an_uncertain_reference_is_counted():
    errors = {"bootstrap": column(1.0, 1.0, 1.0), "b": column(0.5, 0.1, 0.1)}
    table = table_of(errors)
    table["reference_uncertainty"] = table["model"].map({0: 0.1, 1: 0.1, 2: np.nan})
    assert over_models(table)["uncertain"].tolist() == [2, 2]
    assert row_of(table[table["filter"] == "bootstrap"], "bootstrap")["uncertain"] == 1


def test_a_model_without_a_reference_is_counted():
    table = table_of({"bootstrap": column(1.0, 2.0), "b": column(1.0, 2.0)})
    table.loc[table["model"] == 1, ["reference_error_sd", "reference_uncertainty"]] = np.nan
    row = row_of(table)
    assert (row["models"], row["compared"], row["unknown"]) == (2, 1, 1)


def test_exponents_are_those_of_the_errors_from_a_hundred_particles_on():
    rates = column(0.5, 0.7, 1.0)
    table = pd.concat([table_of({"bootstrap": 3 * n**-rates if n > 50 else 0 * rates}, n) for n in (50, 100, 300, 1000)])
    row = over_models(table).iloc[0]
    assert row["exponent"] == pytest.approx(-0.7)
    assert row["exponent_worst"] == pytest.approx(-0.5)


def test_variances_and_times_are_summarised():
    table = table_of({"bootstrap": np.ones((4, 1)), "b": np.ones((4, 1))})
    of_b = table["filter"] == "b"
    table.loc[of_b, "variance_ratio"] = [0.5, 0.9, 1.2, 1.3]
    table.loc[of_b, "ms_per_step"] = [2.0, 3.0, 4.0, 50.0]
    row = row_of(table)
    assert (row["variance_right"], row["variance_50"]) == (0.5, pytest.approx(1.05))
    assert (row["time"], row["time_90"], row["time_worst"]) == (3.5, 50.0, 50.0)


def test_the_verdict_claims_a_gain_only_where_it_is_shown():
    base = np.ones((6, 1))
    sure = over_models(table_of({"bootstrap": base, "b": column(0.4, 0.5, 0.6, 0.5, 0.4, 0.6)}))
    assert "the error of b is 0.493 of that of bootstrap" in verdict_over_models(sure)
    unsure = over_models(table_of({"bootstrap": base, "b": column(0.1, 5.0, 0.6, 2.0, 0.4, 0.6)}))
    assert "a gain over bootstrap is not shown" in verdict_over_models(unsure)
    assert "no other filter" in verdict_over_models(over_models(table_of({"bootstrap": base})))


def test_claims_are_about_models_not_about_their_runs():
    base = np.ones((3, 20))
    table = table_of({"bootstrap": base, "b": 0.5 * base})
    assert hf.study.claims(table)["runs"].tolist() == [3]  # too few for a claim, though there are 60 runs
    assert hf.study.claims(table)["better"].tolist() == [""]


def test_a_table_of_one_model_is_refused():
    table = table_of({"bootstrap": column(1.0)}).drop(columns="model")
    with pytest.raises(ValueError, match="table: expected a column 'model'"):
        over_models(table)


def test_the_interval_is_students_of_logarithms_over_models():
    ratios = np.array([0.5, 0.8, 1.5, 0.7, 1.0, 0.9])
    row = row_of(table_of({"bootstrap": np.full((6, 1), 2.0), "b": column(*(2 * ratios))}))
    logs = np.log(ratios)
    expected = scipy.stats.t.interval(0.95, 5, logs.mean(), logs.std(ddof=1) / np.sqrt(6))
    assert row["ratio"] == pytest.approx(np.exp(logs.mean()))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(np.exp(expected))
    assert row["above"] == pytest.approx(1 / 6)  # a ratio of 1 is not above it


def test_a_ratio_of_nought_and_an_infinite_one_are_left_out_of_the_geometric_mean_alone():
    row = row_of(table_of({"bootstrap": np.ones((4, 1)), "b": column(0.0, np.nan, 0.5, 0.5)}))
    assert (row["compared"], row["ratio"]) == (4, pytest.approx(0.5))
    assert (row["ratio_10"], row["ratio_90"]) == (0.0, np.inf)
    assert row["worst"].count(";") == 2


def test_a_variance_is_right_to_a_quarter_and_a_reference_certain_to_a_third_of_the_smallest_error():
    table = table_of({"bootstrap": np.ones((6, 1)), "b": column(0.6, 0.6, 0.6, 2.0, 2.0, 2.0)})
    table.loc[table["filter"] == "b", "variance_ratio"] = [0.79, 0.8, 1.0, 1.25, 1.26, np.nan]
    limits = {0: 0.0, 1: 0.199, 2: 0.201, 3: 0.33, 4: 0.334, 5: 0.0}
    table["reference_uncertainty"] = table["model"].map(limits)
    row = row_of(table)
    assert row["variance_right"] == pytest.approx(3 / 5)
    assert row["variance_50"] == 1.0
    assert row["uncertain"] == 2
    assert row["unknown"] == 0


def test_what_a_filter_loses_and_the_baseline_keeps_counts_once_for_each_model():
    table = table_of({"bootstrap": np.ones((4, 2)), "b": np.ones((4, 2))})
    lost = np.zeros(8, dtype=bool)
    lost[[0, 1, 2]] = True  # both runs of the first model, one of the second
    table.loc[table["filter"] == "b", "diverged"] = lost
    assert row_of(table)["lost"] == 0.5
    table.loc[table["filter"] == "bootstrap", "diverged"] = lost
    assert row_of(table)["lost"] == 0.0
    table = table.drop(columns="diverged")
    table.loc[table.index[-1], "error"] = "ValueError: no"
    assert row_of(table)["lost"] == 0.25


def test_log_likelihoods_and_times_are_those_of_the_median_run_over_the_baselines():
    table = table_of({"bootstrap": np.ones((2, 3)), "b": np.ones((2, 3))})
    table["log_likelihood_error"] = [-2.0, 2.0, 9.0, 1.0, 1.0, 1.0, -1.0, 1.0, 50.0, 3.0, -3.0, 3.0]
    table["ms_per_step"] = [2.0, 2.0, 7.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 4.0, 4.0, 4.0]
    row = row_of(table)
    assert row["log_likelihood"] == pytest.approx((0.5 + 3) / 2)
    assert (row["time"], row["time_worst"]) == (pytest.approx((0.5 + 4) / 2), 4.0)


def test_exponents_need_two_counts_from_a_hundred_on_and_errors_above_nought():
    rates = column(0.5, 0.9)
    tables = {n: table_of({"bootstrap": 3 * n**-rates}, n) for n in (99, 100, 101)}
    both = over_models(pd.concat([tables[100], tables[101]])).iloc[0]
    assert (both["exponent"], both["exponent_worst"]) == pytest.approx((-0.7, -0.5))
    assert np.isnan(over_models(pd.concat([tables[99], tables[100]])).iloc[0]["exponent"])
    failed = pd.concat([tables[100], table_of({"bootstrap": column(np.nan, 3 * 101**-0.9)}, 101)])
    assert over_models(failed).iloc[0]["exponent"] == pytest.approx(-0.9)


def test_the_verdict_names_the_best_filter_with_its_numbers():
    base = np.ones((6, 1))
    errors = {"bootstrap": base, "b": np.full((6, 1), 0.5), "c": column(0.4, 0.4, 1.2, 0.4, 1.2, 1.2)}
    told = verdict_over_models(over_models(table_of(errors)))
    assert told == (
        "At n = 100 the error of b is 0.500 of that of bootstrap in the geometric mean of 6 models "
        "(95 % interval 0.500 to 0.500), above it in 0 % of them."
    )
    small = pd.concat([table_of(errors, 10), table_of({"bootstrap": base, "b": 2 * base}, 100)])
    assert "the error of b is 2.00 of that" in verdict_over_models(over_models(small))
    assert "above it in 100 % of them" in verdict_over_models(over_models(small))
    one = {name: values[:1] for name, values in errors.items()}
    assert "too few models for an interval" in verdict_over_models(over_models(table_of(one)))


def test_a_model_of_which_either_number_is_known_is_not_unknown():
    table = table_of({"bootstrap": column(1.0, 2.0, 1.0), "b": column(1.0, 2.0, 1.0)})
    table.loc[table["model"] == 1, "reference_uncertainty"] = np.nan
    table.loc[table["model"] == 2, "reference_error_sd"] = np.nan
    assert row_of(table)["unknown"] == 0
