"""One ratio, one interval and one gate: on the screen, on the page, in the tables and in the figure."""

import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import cases, quick_family, result_of

import herdfilter as hf
from herdfilter.plotting.drawing import HIGHEST_RATIO
from herdfilter.plotting.summaries import ratios_drawing
from herdfilter.report.page import render
from herdfilter.report.wording import findings_text
from herdfilter.study.columns import RATIO, digits

FAILED = "ValueError: no"


@pytest.fixture(scope="module")
def studies():
    """Results of one model and of a family, whose runs are to be replaced."""
    return {
        False: result_of("linear_gaussian", ["bootstrap"], particles=[20], runs=1),
        True: result_of(quick_family(), ["bootstrap"], particles=[20], runs=1, models=1),
    }


def results_of(studies, losses, models=None):
    """Put errors, (filter, particle count) -> one per run, into a result; NaN stands for a failed run."""
    result = studies[models is not None]
    rows = [(*key, run, e) for key, values in losses.items() for run, e in enumerate(values)]
    runs = pd.DataFrame(rows, columns=["filter", "n_particles", "run", "reference_error"])
    errors = runs["reference_error"]
    runs = runs.assign(
        scenario="s",
        ms_per_step=1.0,
        reference_error_sd=errors,
        rmse=2 * errors,
        reference_uncertainty=0.0,
        variance_ratio=1.0,
        log_likelihood_error=1.0,
        diverged=~(errors < 50),
        error=np.where(errors.isna(), FAILED, ""),
        traceback="",
        seed=0,
    )
    count = len(next(iter(losses.values())))
    if models is not None:
        runs = runs.assign(model=runs["run"] * models // count, kind="a")
    names = dict.fromkeys(name for name, _ in losses)
    particles = tuple(dict.fromkeys(n for _, n in losses))
    factories = dict.fromkeys(names, result.study.filters["bootstrap"])
    study = replace(result.study, filters=factories, particles=particles, runs=count)
    return replace(result, study=study, runs=runs, series={})


def drawn(rng, runs, failures=0, diverged=0, names=("bootstrap", "b", "c", "d"), counts=(20, 40)):
    losses = {}
    difficulty = np.exp(rng.standard_normal(runs))
    for i, name in enumerate(names):
        for n in counts:
            own = difficulty * np.exp(0.3 * rng.standard_normal(runs)) * (1.0, 0.4, 0.8, 2.0)[i]
            own[rng.permutation(runs)[:diverged]] *= 1e9
            if i:
                own[rng.permutation(runs)[:failures]] = np.nan
            losses[name, n] = own
    return losses


KINDS = {
    "6 runs": (6, {}),
    "20 runs": (20, {}),
    "failed runs": (20, {"failures": 7}),
    "diverged runs": (20, {"diverged": 9}),
    "most failed": (9, {"failures": 6}),
    "one filter": (8, {"names": ("bootstrap",)}),
    "2 runs": (2, {}),
    "two filters": (8, {"names": ("bootstrap", "b"), "counts": (20,)}),
}


@cases("kind models", *[(kind, (None, 1, 2)[i % 3]) for i, kind in enumerate(KINDS)])
def test_every_ratio_that_is_shown_is_the_same_number(studies, kind, models):
    """On one model, and on families with one or two runs of each."""
    runs, options = KINDS[kind]
    losses = drawn(np.random.default_rng(0), runs * (models or 1), **options)
    result = results_of(studies, losses, None if models is None else runs)
    base, largest = "bootstrap", max(n for _, n in losses)
    wanted = {}
    for _, row in (result.summary if models is None else result.models).iterrows():
        ends = (row["ratio_low"], row["ratio_high"])
        known = ends[1] > ends[0]
        assert not (known and runs < 6)
        wanted[row["filter"], row["n_particles"]] = (
            RATIO.written(row["ratio"]),
            tuple(map(RATIO.written, ends)) if known else None,
            row["better"],
        )
    _screen_agrees(result, wanted, base, largest, models)
    _page_agrees(result, wanted, base)
    _figure_agrees(result, wanted, base, largest, models)
    _claims_agree(result, wanted, base)
    if runs * (models or 1) < 6:
        _nothing_is_an_interval(result)


def _nothing_is_an_interval(result):
    ends = [c for c in result.summary if c.endswith(("_low", "_high")) and "band" not in c]
    assert result.summary[ends].isna().all(axis=None)
    assert not re.search(r"\(\S+, \S+\)", findings_text(result, wide=True))
    page = render(result, plans={})
    tables = page[page.index('id="claims"') : page.index("</main>")]
    assert not re.search(r"<small>[^<]* to ", tables)


def _screen_agrees(result, wanted, base, largest, models):
    text = findings_text(result, wide=True)
    lines = {tuple(line.split()[:2]): line for line in text.splitlines() if len(line.split()) > 2}
    for (name, n), (ratio, ends, _) in wanted.items():
        if name != base:
            cell = ratio + (f" ({ends[0]}, {ends[1]})" if ends else "")
            assert f"  {cell}  " in lines[name, str(n)]
    verdict = " ".join(result.verdict.split())
    found = re.search(r"(\w+)'s error (?:to the \w+ )?is (\S+) times", verdict)
    if found is None:
        assert "no filter" in verdict or "no other" in verdict or len(result.study.filters) == 1
        return
    best, told = found.groups()
    ratio, ends, better = wanted[best, largest]
    assert told == ratio
    if ends:
        assert f"(95 % interval {ends[0]} to {ends[1]})" in verdict
    assert ("no gain" in verdict) == (better >= 0)


def _page_agrees(result, wanted, base):
    page = render(result, plans={}).replace("&gt; 10\u2074", "> 1e4")
    assert " ".join(result.verdict.split()) in " ".join(html.unescape(page).split())
    section = page[page.index('id="claims"') : page.index('id="table"')]
    told = {}
    for n, claim in re.findall(r"<h3>n = (\d+)</h3>(.*?)</div>", section, re.DOTALL):
        for side, what in re.findall(r"<b>(Better|Worse):</b>(.*?)</p>", claim, re.DOTALL):
            for name, ratio, ends in re.findall(
                r"<code>(\w+)</code> ([^\s<,]+)(?: <small>\((.*?)\)</small>)?", what
            ):
                told[name, int(n)] = (side, ratio.replace("∞", "inf"), ends.replace("∞", "inf"))
        for name in re.findall(
            r"<code>(\w+)</code>", re.findall(r"All together:</b>(.*?)</p>|$", claim)[0]
        ):
            assert (name, int(n)) in told  # what holds among all holds by itself
    shown = {key for key, (_, _, better) in wanted.items() if better}
    assert told.keys() == shown
    for key, (side, ratio, ends) in told.items():
        assert (side == "Better") == (wanted[key][2] < 0)
        assert ratio == wanted[key][0]
        assert ends == ("" if wanted[key][1] is None else " to ".join(wanted[key][1]))
    table = page[page.index('id="table"') :]
    for (name, _), (ratio, ends, _) in wanted.items():
        if name != base:
            small = f"<small>{' to '.join(ends)}</small>" if ends else ""
            assert f"<td>{ratio}{small}</td>".replace("inf", "∞") in table.replace(
                "\u2212", "-"
            ).replace("<td>\u2013</td>", "<td>-</td>")


def _figure_agrees(result, wanted, base, largest, models):
    plan = ratios_drawing(result.summary if models is None else result.models)
    if plan is None:
        assert all(
            name == base or not float(ratio) > 0
            for (name, _), (ratio, _, _) in wanted.items()
            if ratio != "-"
        )
        return
    (ax,) = plan.figure.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    ends = {
        names[int(line.get_ydata()[0])]: tuple(digits(float(end)) for end in line.get_xdata())
        for line in ax.lines
        if len(line.get_xdata()) == 2 and line.get_ydata()[0] == line.get_ydata()[1]
    }
    for name, interval in ends.items():
        exact = wanted[name, largest][1]
        assert interval == tuple(
            digits(min(float(end.removeprefix("> ")), HIGHEST_RATIO)) for end in exact
        )


def _claims_agree(result, wanted, base):
    table = hf.study.claims(result.runs, base, simultaneous=False)
    for _, row in table.iterrows():
        ratio, _, better = wanted[row["a"], row["n_particles"]]
        assert RATIO.written(row["ratio"]) == ratio
        assert {row["a"]: -1, base: 1, "": 0}[row["better"]] == better
