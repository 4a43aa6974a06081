"""What compare returns is a table of runs that also answers: verdict, summary, figures and report."""

import copy
import dataclasses
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.report import page
from tests.helpers import command, quick_family, result_of, same_runs

FILTERS = ["bootstrap", "guided"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "study.sqlite"


@pytest.fixture(scope="module")
def study(scenario, store):
    return hf.compare(scenario, FILTERS, store=store)


@pytest.fixture(scope="module")
def result(scenario):
    """The result of the same study, as the command has it."""
    return result_of(scenario, FILTERS)


@pytest.fixture
def no_figures(monkeypatch):
    """Pages without figures, which take most of their time."""
    monkeypatch.setattr(page, "drawings", lambda result: {})


def test_it_is_the_table_of_runs_with_verdict_and_summary_of_the_command(study, result):
    assert isinstance(study, pd.DataFrame)
    same_runs(study, result.runs)
    ours, theirs = (
        re.sub(r"at [\d.]+ times its time", "at ... its time", one.verdict)
        for one in (study, result)
    )
    assert ours == theirs
    pd.testing.assert_frame_equal(study.summary, hf.study.summarise(study))
    same = [name for name in study.summary if not name.startswith(("ms_per_step", "seconds"))]
    pd.testing.assert_frame_equal(study.summary[same], result.summary[same])


def test_the_summary_of_a_family_is_over_models():
    family = hf.compare(quick_family(), ["bootstrap", "ranked"], particles=[10], runs=1, models=2)
    pd.testing.assert_frame_equal(family.summary, hf.study.over_models(pd.DataFrame(family)))
    assert "geometric mean of 2 models" in family.verdict
    assert family.plot().axes[0].has_data()
    with pytest.raises(ValueError, match="figure: unknown 'error_over_time'"):
        family.plot("error_over_time")


def test_it_prints_what_the_command_prints(study, store):
    assert repr(study).strip() == command("show", store).output.strip()
    assert " ".join(study.verdict.split()) in " ".join(repr(study).split())


def test_a_notebook_shows_summary_and_verdict_and_trusts_no_name(scenario, constant):
    evil = "<script>"
    study = hf.compare(
        dataclasses.replace(scenario, title=evil), {evil: constant, "bootstrap": "bootstrap"}, [10]
    )
    shown = study._repr_html_()
    assert evil not in shown
    assert shown.count("<tr") == 1 + len(study.summary)
    assert study.verdict.replace("<", "&lt;").replace(">", "&gt;") in shown


def test_what_pandas_makes_of_it_is_a_plain_table(study):
    """A verdict about all runs says nothing about some of them."""
    selected, whole = study[study["filter"] == "bootstrap"], study.copy()
    for made in (
        selected,
        whole,
        study.assign(more=1),
        pd.concat([study, study]),
        study.merge(study, on="run"),
    ):
        assert type(made) is pd.DataFrame
        assert not hasattr(made, "verdict")


def pickled(one):
    return pickle.loads(pickle.dumps(one))


def test_a_copy_is_the_same_comparison(study, scenario, no_figures):
    """Also of one that has no store."""
    alone = hf.compare(scenario, FILTERS, [10], runs=2)
    for one, ways in ((study, (pickled,)), (alone, (copy.copy, copy.deepcopy, pickled))):
        for again in (way(one) for way in ways):
            assert type(again) is hf.Comparison
            pd.testing.assert_frame_equal(one, again)
            assert repr(again) == repr(one)
            np.testing.assert_equal(dict(again._result.series), dict(one._result.series))
            again["more"] = 1
            assert "more" not in one
    assert page.render(again._result) == page.render(alone._result)


def test_changes_of_the_table_leave_what_was_found(study):
    changed = copy.copy(study)
    changed.loc[:, "rmse"] = 1e9
    del changed["reference_error"]
    summary = changed.summary
    summary["rmse"] = 0.0
    assert changed.summary["rmse"].between(0.01, 100).all()
    assert "error to the reference" in changed.verdict


def test_its_figures_are_those_of_the_command(study, result):
    plans = drawings(result)
    for name in ("error_over_particles", "trajectory"):
        figure, plan = study.plot(name), plans[name]
        assert len(figure.axes) == len(plan.figure.axes)
        assert all(ax.has_data() for ax in figure.axes[: len(plan.panels)])
    assert study.plot().get_suptitle() == plans["ratios"].figure.get_suptitle() != ""
    with pytest.raises(ValueError, match=r"^figure: unknown 'ratio'; did you mean 'ratios'"):
        study.plot("ratio")


def test_without_a_finished_run_there_is_a_verdict_but_no_figure(scenario):
    def never(model, n, rng):
        return SimpleNamespace(run=None)

    study = hf.compare(scenario, {"never": never}, [10], runs=2)
    assert study.verdict == "With 10 particles no filter finished a run."
    assert "never failed in 2 of 2 runs" in repr(study)
    with pytest.raises(ValueError, match="figure: expected a run that was finished, got none"):
        study.plot()


def test_the_report_is_the_page_of_the_command(study, tmp_path, no_figures):
    text = page.render(study._result)
    wanted = {
        "new/folder": "new/folder/report.html",
        "pages/Mine.HTML": "pages/Mine.HTML",
        "": "report.html",
    }
    for given, path in wanted.items():
        assert study.report(tmp_path / given) == tmp_path / path
        assert (tmp_path / path).read_text(encoding="utf-8") == text
    with pytest.raises(
        OSError, match=r"path: cannot write into .*report.html/below \(.*\); choose another place"
    ):
        study.report(tmp_path / "report.html" / "below")


def test_a_store_is_read_as_the_comparison_that_it_keeps(study, store, tmp_path, no_figures):
    for place in (store.parent, str(store)):
        again = hf.Comparison.read(place)
        assert type(again) is hf.Comparison
        pd.testing.assert_frame_equal(again, study)
        assert (repr(again), page.render(again._result)) == (
            repr(study),
            page.render(study._result),
        )
    with pytest.raises(FileNotFoundError, match="no file"):
        hf.Comparison.read(tmp_path / "elsewhere")
