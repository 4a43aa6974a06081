import numpy as np
import pandas as pd
import pytest
import scipy.stats
from helpers import cases, refusal, table_of
from numpy.random import default_rng
from numpy.testing import assert_allclose

from herdfilter.study import claims, over_time, summarise
from herdfilter.study.statistics import chi_square_band, median_interval
from herdfilter.study.summary import verdict


def test_statistics_are_over_runs_that_did_not_fail():
    row = summarise(table_of({"a": [3.0, 4.0, np.nan, 5.0, np.nan, 3.0, 4.0, 5.0]})).iloc[0]
    assert row["reference_error"] == pytest.approx(np.sqrt(50 / 3))
    assert row["rmse"] == pytest.approx(2 * np.sqrt(50 / 3))
    assert row["reference_error_median"] == 4.0
    assert (row["runs"], row["failures"], row["diverged"]) == (8, 2, 0.25)
    assert row[["anees", "nees_singular", "anees_band_low"]].isna().all()  # the table lacks them
    assert row["reference_error_low"] <= row["reference_error"] <= row["reference_error_high"]


def test_ratios_are_paired_run_by_run():
    rng = default_rng(0)
    difficulty = np.exp(3 * rng.standard_normal(30))  # runs differ far more than filters
    summary = summarise(
        table_of(
            {
                "bootstrap": difficulty,
                "b": 0.8 * difficulty * np.exp(0.05 * rng.standard_normal(30)),
            }
        )
    )
    row = summary.set_index("filter").loc["b"]
    assert row["ratio"] == pytest.approx(0.8, rel=0.03)
    assert row["ratio_high"] < 0.9
    assert row["baseline"] == "bootstrap"
    row = summarise(table_of({"bootstrap": difficulty, "b": difficulty - 0.5})).iloc[1]
    assert [row[f"difference{end}"] for end in ("", "_low", "_high")] == pytest.approx([-0.5] * 3)


def test_a_run_that_failed_loses_in_the_ratio_too():
    errors = {"bootstrap": [1.0, np.nan, 4.0, np.nan], "b": [2.0, 2.0, np.nan, np.nan]}
    ratio = summarise(table_of(errors)).set_index("filter").loc["b", "ratio"]
    assert ratio == 2.0  # the median of 2, 0 and infinity: where both failed nothing is compared
    errors["b"][0] = np.nan
    assert claims(table_of(errors), "bootstrap")["runs"].tolist() == [3]
    assert summarise(table_of(errors)).set_index("filter").loc["b", "ratio"] == np.inf


def test_the_baseline_can_be_chosen():
    table = table_of({"a": [1.0] * 8, "b": [2.0] * 8})
    assert summarise(table)["ratio"].tolist() == [1.0, 2.0]
    assert summarise(table, baseline="b")["ratio"].tolist() == [0.5, 1.0]
    with refusal("baseline: unknown 'c'"):
        summarise(table, baseline="c")


def test_the_verdict_claims_only_what_the_paired_interval_shows():
    rng = default_rng(2)
    noise = np.exp(rng.standard_normal(20))
    for base, own, words in (
        (
            noise,
            0.5 * noise,
            "b's error to the reference is 0.500 times bootstrap's (95 % interval",
        ),
        (
            range(1, 21),
            np.arange(1, 21) * ([0.5, 1.4] * 10),
            "no gain over bootstrap is shown: b's error to the reference is",
        ),
        ([2.0, 3.0], [1.0, 1.5], "too few runs"),
        (noise, 2 * noise, "no filter has a smaller median error"),
        ([np.nan] * 3, [np.nan] * 3, "no filter finished"),
    ):
        errors = {"bootstrap": base, "b": own}
        told = verdict(summarise(pd.concat([table_of(errors), table_of(errors, 20)])))
        assert told.startswith("With 100 particles ")
        assert words in told


def test_the_verdict_says_how_much_longer_a_step_takes_and_goes_by_the_truth_without_a_reference():
    table = table_of({"bootstrap": [2.0] * 8, "b": [1.0] * 8})
    table["ms_per_step"] = np.where(table["filter"] == "b", 5.2, 2.0)
    assert verdict(summarise(table)).endswith("at 2.6 times its time per step.")
    table["ms_per_step"] = np.nan
    assert "per step" not in verdict(summarise(table))
    table["reference_error"] = np.nan
    summary = summarise(table)
    assert summary["ratio"].tolist() == [1.0, 0.5]
    assert "error to the truth" in verdict(summary)


def test_consistency_stands_beside_its_band():
    for factor, inside in ((1.0, True), (2.0, False)):
        squares = factor * default_rng(0).chisquare(2, (40, 50))
        columns = {"anees": squares.mean(axis=1) / 2, "nees_degrees": 2.0, "nees_inside": 0.9}
        columns |= {
            "nis": squares.mean(axis=1) / 2,
            "nis_degrees": 100.0,
            "nees_singular": 1.0,
            "seconds": 2.0,
        }
        row = summarise(table_of({"a": np.ones(40)}).assign(**columns)).iloc[0]
        assert row["anees"] == pytest.approx(factor, rel=0.05)
        assert (row["anees_low"] < 1 < row["anees_high"]) == inside
        for name, degrees in (("anees", 80), ("nis", 4000)):
            band = chi_square_band(degrees)
            assert (row[f"{name}_band_low"], row[f"{name}_band_high"]) == pytest.approx(band)
            assert (row[f"{name}_band_low"] < row[name] < row[f"{name}_band_high"]) == inside
        assert (row["nees_singular"], row["nees_inside"], row["seconds"]) == (
            40,
            pytest.approx(0.9),
            2.0,
        )


def test_claims_are_made_where_the_interval_excludes_equality():
    rng = default_rng(0)
    difficulty = np.exp(2 * rng.standard_normal(30))
    table = table_of(
        {"a": difficulty, "b": 0.7 * difficulty, "c": difficulty * np.exp(rng.standard_normal(30))}
    )
    pairs = claims(table).set_index(["a", "b"])
    assert pairs["better"].tolist()[:2] == ["b", ""]
    row = pairs.loc["a", "b"]
    assert [row["ratio"], row["ratio_low"], row["ratio_high"]] == pytest.approx([1 / 0.7] * 3)
    against = claims(table, baseline="a")
    assert against[["a", "b"]].to_numpy().tolist() == [["b", "a"], ["c", "a"]]
    assert against["better"].tolist() == ["b", ""]


def test_a_failed_run_loses():
    errors = {"a": [np.nan] * 9 + [0.5], "b": [1.0] * 10, "c": [np.nan] * 10}
    pairs = claims(table_of(errors), simultaneous=False).set_index(["a", "b"])
    row = pairs.loc["a", "b"]
    assert (row["better"], row["runs"], row["failures_a"], row["failures_b"]) == ("b", 10, 9, 0)
    assert pairs.loc[("a", "c"), "runs"] == 1  # both failed in the others
    assert pairs.loc[("a", "c"), "better"] == ""
    assert pairs.loc[("b", "c"), "better"] == "b"


@cases("simultaneous", True, False)
def test_ends_of_claims_are_order_statistics_at_the_level_that_all_pairs_share(simultaneous):
    rng = default_rng(4)
    errors = {name: rng.exponential(size=41) for name in "abc"}
    options = {} if simultaneous else {"simultaneous": False}
    found = claims(table_of(errors), level=0.9, **options)
    each = 1 - 0.1 / 3 if simultaneous else 0.9
    for row in found.itertuples():
        differences = errors[row.a] - errors[row.b]
        assert (row.difference_low, row.difference_high) == median_interval(differences, each)
        assert row.difference == np.median(differences)
        assert (row.ratio_low, row.ratio_high) == median_interval(
            errors[row.a] / errors[row.b], each
        )
        assert (row.runs, row.failures_a, row.failures_b) == (41, 0, 0)
    # shared with no other
    pair = claims(table_of({name: errors[name] for name in "ab"}), level=0.9)
    assert pair["difference_low"][0] == median_interval(errors["a"] - errors["b"], 0.9)[0]
    both = pd.concat([table_of(errors), table_of({"a": errors["a"]}, 20)])
    assert claims(both)["n_particles"].tolist() == [100, 100, 100]


def test_claims_at_the_ends_of_levels_are_refused_and_few_runs_and_equal_filters_claim_nothing():
    few = claims(table_of({"a": np.ones(5), "b": 2 * np.ones(5)})).iloc[0]
    assert few["better"] == ""
    assert np.isnan(few["difference_low"])
    assert claims(table_of({"a": np.ones(5)})).empty
    table = table_of({"a": np.ones(9), "b": np.ones(9)})
    assert list(claims(table[:0])) == list(claims(table))
    row = claims(table).iloc[0]
    assert (row["better"], row["ratio"], row["difference"]) == ("", 1.0, 0.0)
    for level in (0, 1, 95):
        with refusal(f"level: expected a probability between 0 and 1, got {level}"):
            claims(table, level=level)


def test_columns_of_objects_are_numbers_too():
    """A user's own table may have None where nothing is known."""
    table = table_of({"a": np.arange(1.0, 10.0), "b": np.ones(9)})
    table["nees"] = np.arange(18.0)
    table["nees_degrees"] = 2.0
    table.loc[3, "nees"] = np.nan
    objects = table.astype({"rmse": object, "nees": object}).replace({np.nan: None})
    pd.testing.assert_frame_equal(summarise(objects), summarise(table))


def test_series_with_gaps_are_summarised_from_what_there_is():
    """One value, none, or some: means, quantiles and bands leave NaN out, as pandas does."""
    rng = default_rng(3)
    gaps = rng.random((9, 6)) < 0.4
    gaps[:, 2] = True
    gaps[:, 3] = np.arange(9) != 4
    degrees = np.where(gaps, 0.0, rng.integers(1, 4, (9, 6)))
    series = {
        name: np.where(gaps, np.nan, rng.chisquare(3, (9, 6)))
        for name in ("truth", "nees", "cardinality", "ess")
    }
    one = series | {"nees_degrees": degrees}
    lone = {"truth": series["truth"][:, :4]}
    both = over_time({("a", 10): one, ("b", 20): lone})
    assert both[["filter", "n_particles", "step"]].iloc[[0, -1]].to_numpy().tolist() == [
        ["a", 10, 1],
        ["b", 20, 4],
    ]
    assert (
        both.loc[both["filter"] == "b", ["reference_error", "ess_median", "nis", "nis_band_low"]]
        .isna()
        .all(axis=None)
    )
    assert over_time({}).empty
    frame = both[both["filter"] == "a"]
    tables = {name: pd.DataFrame(values) for name, values in series.items()}
    assert frame["runs"].tolist() == (~gaps).sum(axis=0).tolist()
    assert_allclose(frame["rmse"], np.sqrt(tables["truth"].mean()))
    assert_allclose(frame["cardinality"], tables["cardinality"].mean())
    whole = pd.Series(degrees.sum(axis=0)).where(lambda total: total > 0)
    assert_allclose(frame["nees"], tables["nees"].sum() / whole)
    for end, tail in (("low", 0.025), ("high", 0.975)):
        assert_allclose(frame[f"nees_band_{end}"], scipy.stats.chi2(whole).ppf(tail) / whole)
    parts = (
        ("rmse", np.sqrt(tables["truth"])),
        ("nees", tables["nees"] / np.where(gaps, 1, degrees)),
    )
    for name, values in (*parts, ("cardinality", tables["cardinality"]), ("ess", tables["ess"])):
        for end, q in (("median", 0.5), ("low", 0.25), ("high", 0.75)):
            assert_allclose(frame[f"{name}_{end}"], values.quantile(q))
