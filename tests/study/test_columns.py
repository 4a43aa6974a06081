"""A column is declared once, and everything follows."""

import numpy as np
import pytest
from helpers import result_of, table_of

from herdfilter.report.parts import results_table
from herdfilter.report.wording import findings_text
from herdfilter.study import columns, store, summary
from herdfilter.study.columns import COLUMNS, MEASURED, Column, digits, headings
from herdfilter.study.statistics import median_with_interval


def test_one_declaration_brings_a_new_number_everywhere(scenario, monkeypatch):
    worst = Column(
        "worst",
        "largest error",
        median_with_interval,
        "worst error{unit}",
        measure=lambda run: run.truth.max(),
    )
    for module in (columns, summary):
        monkeypatch.setattr(module, "COLUMNS", (*COLUMNS, worst))
    monkeypatch.setattr(store, "MEASURED", (*MEASURED, "worst"))
    result = result_of(scenario, ["bootstrap"], [10], 6)
    expected = result.series["bootstrap", 10]["truth"].max(axis=1)
    np.testing.assert_allclose(result.runs["worst"], expected)
    assert result.summary["worst"][0] == pytest.approx(np.median(expected))
    assert "worst error" in " ".join(findings_text(result, wide=True).split())
    assert "worst error" in results_table(result)["heads"]


def test_numbers_are_written_with_three_digits():
    assert [digits(x) for x in (0.0123456, 1.0, 12345.0, -2.5, float("nan"))] == [
        "0.0123",
        "1.00",
        "1.23e4",
        "-2.50",
        "-",
    ]


def test_numbers_of_a_lost_filter_are_cut_off_beyond_ten_thousand(scenario):
    values = dict.fromkeys(MEASURED, (2.0, 3.0, 4.0, 5e7, 6e7, 7e7))
    values["rmse"] = [2e4, 3e4, 4e4, 5e7, 6e9, 7e9]
    table = table_of({"bootstrap": np.ones(3), "lost": np.ones(3)}, **values)
    lines = summary.summarise(table).set_index("filter", drop=False)
    found = {one.name: one for one in headings(lines, scenario)}
    assert found["anees"].value(lines.loc["lost"]) == "> 1e4"
    assert found["anees"].value(lines.loc["bootstrap"]) == "3.00"
    assert found["anees"].interval(lines.loc["lost"]) is None
    # metres, say: the best has as many
    assert found["rmse"].value(lines.loc["bootstrap"]) == "3.11e4"
    assert found["rmse"].value(lines.loc["lost"]) == "> 1e8"
