"""What compare returns is a table of runs that also answers: verdict, summary, figures and report."""

import copy
import dataclasses
import pickle
import re

import numpy as np
import pandas as pd
import pytest

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.report.page import render
from herdfilter.report.wording import findings_text
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import load_scenario
from tests.helpers import command, same_runs

FILTERS = ["bootstrap", "herded-kh"]
AGAIN = {
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": lambda study: pickle.loads(pickle.dumps(study)),
}


@pytest.fixture(scope="module")
def result(scenario):
    """The result of the same study, as the command has it."""
    return run_study(plan_study(scenario, FILTERS))


@pytest.fixture(scope="module")
def study(scenario):
    return hf.compare(scenario, FILTERS)


@pytest.fixture(scope="module")
def page(study):
    return render(study._result)


@pytest.fixture(scope="module")
def family():
    random = load_scenario("random")
    quick = dataclasses.replace(random, reference={**random.reference, "n": 64})
    return hf.compare(quick, ["bootstrap", "ranked"], particles=[10], runs=1, models=6)


def test_it_is_the_table_of_runs(study, result):
    assert isinstance(study, pd.DataFrame)
    same_runs(study, result.runs)
    medians = study.groupby(["filter", "n_particles"])["rmse"].median()
    assert medians.index.tolist() == [(name, n) for name in FILTERS for n in (10, 30)]
    assert pd.read_csv(pd.io.common.StringIO(study.to_csv(index=False)))["run"].tolist() == study["run"].tolist()


def test_verdict_and_summary_are_those_of_the_command(study, result):
    ours, theirs = (re.sub(r"at [\d.]+ times its time", "at ... its time", one.verdict) for one in (study, result))
    assert ours == theirs
    pd.testing.assert_frame_equal(study.summary, hf.study.summarise(study))
    same = [name for name in study.summary if not name.startswith(("ms_per_step", "seconds"))]
    pd.testing.assert_frame_equal(study.summary[same], result.summary[same])


def test_the_summary_of_a_family_is_over_models(family):
    pd.testing.assert_frame_equal(family.summary, hf.study.over_models(pd.DataFrame(family)))
    assert "geometric mean of 6 models" in family.verdict
    assert family.plot().axes[0].has_data()
    with pytest.raises(ValueError, match="figure: unknown 'error_over_time'"):
        family.plot("error_over_time")


def test_it_prints_what_the_command_prints(scenario, tmp_path):
    study = hf.compare(scenario, FILTERS, store=tmp_path / "study.sqlite")
    shown = command("show", tmp_path)
    assert repr(study).strip() == shown.output.strip()
    assert repr(study) == findings_text(study._result).rstrip()
    assert " ".join(study.verdict.split()) in " ".join(repr(study).split())
    assert max(map(len, repr(study).splitlines())) <= 80


def test_a_notebook_shows_summary_and_verdict_and_trusts_no_name(scenario, constant):
    evil = "<script>"
    study = hf.compare(dataclasses.replace(scenario, title=evil), {evil: constant, "bootstrap": "bootstrap"}, [10])
    page = study._repr_html_()
    assert evil not in page
    assert page.count("<tr") == 1 + len(study.summary)
    assert study.verdict.replace("<", "&lt;").replace(">", "&gt;") in page
    for _, row in study.summary.iterrows():
        assert f"<td>{row['reference_error_median']:#.3g}" in page


@pytest.mark.parametrize(
    "make",
    [
        lambda study: study.head(),
        lambda study: study[study["filter"] == "bootstrap"],
        lambda study: study.copy(),
        lambda study: study.assign(more=1),
        lambda study: study.set_index("run"),
        lambda study: study.sort_values("rmse"),
        lambda study: pd.concat([study, study]),
        lambda study: study.merge(study, on="run"),
        lambda study: pd.DataFrame(study),
    ],
)
def test_what_pandas_makes_of_it_is_a_plain_table(study, make):
    """A verdict about all runs says nothing about some of them."""
    assert type(make(study)) is pd.DataFrame
    assert not hasattr(make(study), "verdict")


@pytest.mark.parametrize("how", AGAIN)
def test_a_copy_is_the_same_comparison(study, page, how):
    again = AGAIN[how](study)
    assert type(again) is hf.Comparison
    pd.testing.assert_frame_equal(study, again)
    assert (again.verdict, repr(again), again._repr_html_()) == (study.verdict, repr(study), study._repr_html_())
    assert render(again._result) == page  # with the series of all steps
    again["more"] = 1
    assert "more" not in study


def test_a_pickle_of_a_stored_comparison_reads_its_store(scenario, tmp_path):
    study = hf.compare(scenario, FILTERS, runs=2, store=tmp_path / "study.sqlite")
    again = pickle.loads(pickle.dumps(study))
    for key, series in study._result.series.items():
        np.testing.assert_equal(again._result.series[key], series)


def test_changes_of_the_table_leave_what_was_found(scenario):
    study = hf.compare(scenario, FILTERS, runs=2)
    study.loc[:, "rmse"] = 1e9
    del study["reference_error"]
    summary = study.summary
    summary["rmse"] = 0.0
    assert study.summary["runs"].tolist() == [2, 2, 2, 2]
    assert study.summary["rmse"].between(0.01, 100).all()
    assert "error to the reference" in study.verdict


def test_its_figures_are_those_of_the_command(study, result):
    plans = drawings(result)
    for name, plan in plans.items():
        figure = study.plot(name)
        assert len(figure.axes) == len(plan.whole.axes)
        assert all(ax.has_data() for ax in figure.axes[: len(plan.panels)])
    first = study.plot()
    assert first.get_suptitle() == plans["ratios"].whole.get_suptitle() != ""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ratio", "did you mean 'ratios'?"),
        ("Trajectory", "did you mean 'trajectory'?"),
        (3, "expected one of ratios, error_"),
    ],
)
def test_an_unknown_figure_is_refused_in_one_line(study, name, told):
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        study.plot(name)
    assert str(caught.value).startswith(f"figure: unknown {name!r}; ")
    assert "\n" not in str(caught.value)


def test_without_a_finished_run_there_is_a_verdict_but_no_figure(scenario, failing):
    class Never(failing):
        def run(self, observations, dt=1.0, controls=None):
            raise ArithmeticError("lost")

    study = hf.compare(scenario, {"never": Never}, [10], runs=2)
    assert study.verdict == "With 10 particles no filter finished a run."
    assert "never failed in 2 of 2 runs" in repr(study)
    with pytest.raises(ValueError, match="figure: expected a run that was finished, got none"):
        study.plot()


def test_the_report_is_the_page_of_the_command(study, tmp_path):
    page = render(study._result)
    wanted = {"new/folder": "new/folder/report.html", "pages/Mine.HTML": "pages/Mine.HTML", "": "report.html"}
    for given, path in wanted.items():
        assert study.report(tmp_path / given) == tmp_path / path
        assert (tmp_path / path).read_text(encoding="utf-8") == page
    (tmp_path / "old.html").mkdir()
    assert study.report(str(tmp_path / "old.html")).name == "report.html"


@pytest.mark.parametrize(
    ("path", "error", "told"),
    [
        ("file/below", OSError, r"path: cannot write into .*file/below \(.*\); choose another place"),
        ("", ValueError, "path: expected a path, got ''"),
        (3, ValueError, "path: expected a path, got 3"),
        (None, ValueError, "path: expected a path, got None"),
    ],
)
def test_a_place_that_takes_no_report_is_refused_in_one_line(study, tmp_path, monkeypatch, path, error, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(error, match=told) as caught:
        study.report(path)
    assert "\n" not in str(caught.value)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_store_is_read_as_the_comparison_that_it_keeps(scenario, tmp_path):
    study = hf.compare(scenario, FILTERS, store=tmp_path / "study.sqlite")
    for place in (tmp_path, str(tmp_path / "study.sqlite")):
        again = hf.Comparison.read(place)
        assert type(again) is hf.Comparison
        pd.testing.assert_frame_equal(again, study)
        assert (repr(again), again.report(tmp_path).read_bytes()) == (repr(study), study.report(tmp_path).read_bytes())
    with pytest.raises(FileNotFoundError, match="no file"):
        hf.Comparison.read(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="path: expected a path, got 3"):
        hf.Comparison.read(3)
