"""The results of a study in words, for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import pandas as pd

from herdfilter import _repr
from herdfilter.plotting.style import dimension_label
from herdfilter.study import families
from herdfilter.study.columns import (
    COLUMNS,
    RATIO,
    Heading,
    error_measure,
    error_phrase,
    headings,
    headings_of_models,
    localises,
)
from herdfilter.study.plan import Study
from herdfilter.study.results import StudyResult
from herdfilter.study.scenario import Scenario
from herdfilter.study.statistics import LEAST_RUNS
from herdfilter.study.summary import claims

SUPERSCRIPTS = str.maketrans(
    "0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def typeset(text: str) -> str:
    """Return the text of a number in the typography of a page: en dash if missing, minus, infinity, power of ten."""
    if text.startswith("> 1e"):
        # As `Heading.written` abbreviates large numbers.
        return "> 10" + text[4:].translate(SUPERSCRIPTS)
    signs = {"-": "\u2013", "inf": "\u221e"}
    # In 1.2e-4 the hyphen stays.
    return signs.get(text, text if "e" in text else text.replace("-", "\u2212"))


def cell(row: Any, heading: Heading) -> dict[str, Any]:
    """Return value and interval of a row's column as texts; `bad` marks a number of failed runs above 0."""
    ends = heading.interval(row)
    return {
        "value": typeset(heading.value(row)),
        "interval": "" if ends is None else " to ".join(map(typeset, ends)),
        "bad": heading.name == "failures" and row[heading.name] > 0,
    }


def extent(study: Study, planned: int) -> str:
    """Return the number of runs, and for a family of models, in words."""
    runs = f"{study.runs} run{'s' * (study.runs != 1)}"
    if study.runs != planned:
        runs = f"{study.runs} of {planned} runs"
    family = study.family
    if family is None:
        return runs
    return f"{runs} of {family.models(study.runs)} models, seeds {family.first} to {family.seed(planned - 1)}"


def table_and_headings(result: StudyResult) -> tuple[pd.DataFrame, list[Heading]]:
    """Return the summary over runs, or for a family over its models, and the columns worth showing."""
    if result.models is None:
        return result.summary, headings(result.summary, result.study.scenario)
    return result.models, headings_of_models(result.models)


def findings(
    result: StudyResult, wide: bool = False
) -> tuple[list[str], list[str], list[list[str]], list[str]]:
    """Return title lines, heads and rows of the table, and sentences: failures, definitions, and last the verdict."""
    study = result.study
    units = "runs" if result.models is None else "models"
    title = f"{study.scenario.title}: {extent(study, result.description.get('runs', study.runs))}"
    table, columns = table_and_headings(result)
    columns = [heading for heading in columns if wide or heading.brief]
    rows = []
    for _, row in table.iterrows():
        texts = [row["filter"], str(row["n_particles"])]
        for heading in columns:
            ends = heading.interval(row)
            interval = "" if ends is None else f" ({ends[0]}, {ends[1]})"
            texts.append(heading.value(row) + interval)
        rows.append(texts)
    sentences = []
    for name, runs in result.runs.groupby("filter", sort=False):
        errors = runs["error"][runs["error"] != ""].tolist()
        # The first error stands for all: `--verbose` lists them.
        if errors:
            sentences.append(
                f"{name} failed in {len(errors)} of {len(runs)} runs; the first: {errors[0]}"
            )
    sentences += [f"{outcome(study.scenario)}: {line}" for line in definition(study.scenario)]
    sentences += floor(result.summary) if result.models is None else of_models(result.models)
    explanation = f"95 % intervals over {units} in brackets, from six {units} on"
    heads = ["filter", "n", *(heading.label for heading in columns)]
    return [title, explanation], heads, rows, [*sentences, result.verdict]


def findings_text(result: StudyResult, wide: bool = False) -> str:
    """Return the text of the findings for the terminal: all columns side by side if `wide`, else within `LINE_WIDTH`."""
    title, heads, rows, words = findings(result, wide)
    # The first two columns, filter and n, are repeated in every block of columns.
    table = _repr.in_blocks(heads, rows, keys=2, width=None if wide else _repr.LINE_WIDTH)
    lines = [line for text in words for line in wrap(text, _repr.LINE_WIDTH)]
    return "\n".join([*title, "", *table, "", *lines, ""])


def of_models(models: pd.DataFrame) -> list[str]:
    """Explain the table over models, and name the worst models and the number of uncertain references."""
    base = models["baseline"].iloc[0]
    low, high = families.RIGHT_VARIANCE
    lines = [
        f"error: error to the reference in posterior standard deviations, divided by {base}'s. Each model counts with the "
        "median over its runs; the table has geometric mean and quantiles over models, and the share of models above 1",
        f"variance right: share of models with a posterior variance {low:g} to {high:g} times the reference's",
        f"lost: share of models with a run that failed or diverged though {base}'s did not; time: per step, over {base}'s",
    ]
    # The worst models are named at the largest particle count only.
    named = "n_particles == n_particles.max() and filter != @base and worst != ''"
    for row in models.query(named).to_dict("records"):
        lines.append(f"worst of {row['filter']} at n = {row['n_particles']}: {row['worst']}")
    for n, rows in models.groupby("n_particles"):
        if rows["uncertain"].max() > 0:
            lines.append(
                f"reference uncertain for {rows['uncertain'].max()} of {rows['models'].max()} models at n = {n}: its own "
                f"error exceeds {families.UNCERTAIN:.2g} of the best filter's, which draws ratios towards 1"
            )
    if models["unknown"].max() > 0:
        lines.append(
            f"without a reference: {models['unknown'].max()} of {models['models'].max()} models"
        )
    return lines


def outcome(scenario: Scenario) -> str:
    """Return the outcome that tables count: ``localised`` with real data, else ``diverged``."""
    return "localised" if localises(scenario) else "diverged"


def definition(scenario: Scenario) -> list[str]:
    """Return the definition of the `outcome` as a list of one line, empty without a bound."""
    bound = scenario.divergence
    if bound is None:
        return []
    # The bound separates both outcomes, so that one sentence serves either.
    unit = f" {scenario.unit}" if scenario.unit else ""
    side = "of at most" if localises(scenario) else "above"
    last = f"the last {100 * bound.final_part:.0f} % of the steps"
    return [f"RMSE to the truth {side} {bound.rmse_above:g}{unit} in {last}"]


def floor(summary: pd.DataFrame) -> list[str]:
    """Return a line on the standard error of the reference in a list, which is empty if the reference is exact."""
    sd = summary["reference_sd"].max()
    # NaN without a reference is not above 0.
    text = f"standard error of the reference itself: {sd:.2g} (root mean square over runs)"
    return [text] if sd > 0 else []


def reference(scenario: Scenario) -> str:
    """Return a description of the reference with which estimates are compared besides the truth."""
    if scenario.reference is None:
        return "none: errors are against the truth"
    table = dict(scenario.reference)
    kind = table["type"]
    names = table.get("filter", "bootstrap")
    preferred, *alternatives = [names] if isinstance(names, str) else names
    filters = preferred + "".join(
        f" (or {name}, if that does not support the model)" for name in alternatives
    )
    # The defaults of `_large` and of the functions that call it.
    repeats = table.get("repeats", 4 if kind == "large" else 2)
    average = f"the average of {repeats} {filters} filters with {table.get('n')} particles each"
    descriptions = {
        "grid": "the exact posterior, computed on a grid",
        "kalman": "the Kalman filter, exact here",
        "large": average,
        "grid-or-large": f"the exact posterior if the model brings a sufficient grid, otherwise {average}",
    }
    return descriptions.get(kind) or ", ".join(f"{key} = {value}" for key, value in table.items())


def definitions(scenario: Scenario, summary: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the terms of the report with their definitions."""
    dims = scenario.error_dims
    over = "all dimensions"
    if dims is not None:
        over = ", ".join(dimension_label(scenario.labels, i) for i in dims)
    unit = f", in {scenario.unit}" if scenario.unit else ""
    measured = f"distance of the posterior mean, root mean square over the steps of a run, over {over}{unit}"
    if (targets := scenario.targets) is not None:
        measured = (
            f"GOSPA of order {targets.gospa_order:g}, and OSPA of order {targets.ospa_order:g}, of estimates and targets "
            f"over {over}{unit}; cutoff {targets.cutoff:g}; mean over the steps of a run"
        )
    intervals = (
        "at 95 % over runs, from six runs on: order statistics for medians and ratios, the bootstrap (BCa) for root mean "
        "squares, Student's t for slopes and for ratios over models"
    )
    compared = [reference(scenario), *(floor(summary) if scenario.models is None else [])]
    lines = [("error", measured), ("reference", "; ".join(compared)), ("intervals", intervals)]
    # Such a run has no error to compare with the bound.
    failed = "not localised" if localises(scenario) else "diverged"
    for line in definition(scenario):
        lines.append((outcome(scenario), f"{line}; a run that failed counts as {failed}"))
    if scenario.divergence is None and scenario.targets is None:
        lines.append(("diverged", "the scenario has no bound: only runs that failed count"))
    for column in COLUMNS:
        if column.label and column.name != "diverged" and summary[column.name].notna().any():
            lines.append((column.label.format(unit=""), column.meaning))
    return lines


def claimed(runs: pd.DataFrame, summary: pd.DataFrame) -> dict[str, Any] | None:
    """Return the claims about every filter against the baseline at every particle count; None with one filter.

    `better` is -1 for filters shown to be better, 1 for worse ones; claims about those in `together` hold simultaneously.
    """
    base = summary["baseline"].iloc[0]
    compared = summary.query("filter != @base").sort_values("ratio")
    if compared.empty:
        return None
    # These intervals hold for all comparisons at once (Bonferroni), those of the summary one by one.
    together = claims(runs, base).query("better != ''")
    rows = []
    for n, group in compared.groupby("n_particles"):
        filters = [
            {"name": row["filter"], "better": row["better"], **cell(row, RATIO)}
            for row in group.to_dict("records")
        ]
        jointly = together["a"][together["n_particles"] == n].tolist()
        rows.append({"n": n, "filters": filters, "together": jointly})
    family = "model" in runs
    units = "models" if family else "runs"
    # The widest interval between order statistics misses the median with probability 2 / 2^runs, for each comparison.
    needed = LEAST_RUNS if family else math.floor(math.log2(2 * len(compared) / 0.05)) + 1
    available = int(summary[units].max())
    too_few = f"takes {needed} {units} at least, there are {available}"
    return {
        "baseline": base,
        "errors": error_phrase(error_measure(runs)).replace("error", "Errors"),
        "family": family,
        "comparisons": len(compared),
        "rows": rows,
        "too_few": too_few if available < needed else "",
    }


def built(described: Any) -> str:
    """Return the call that builds a filter, from its description in a store."""
    if not isinstance(described, Mapping) or "options" not in described:
        # A caller's own function, described by its name and digest.
        return "" if described is None else _brief(described)
    options = described["options"]
    inside = ", ".join(f"{key}={_brief(value)}" for key, value in options.items())
    return f"{described.get('filter', '')}({inside})"


def _brief(value: Any) -> str:
    """Return an object of a description in one line."""
    if isinstance(value, Mapping):
        name = str(value.get("type", "")).rpartition(".")[2]
        inside = ", ".join(f"{key}={_brief(item)}" for key, item in value.items() if key != "type")
        return f"{name}({inside})" if name else f"{{{inside}}}"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(_brief, value[:6]))
        return f"[{text}{', ...' if len(value) > 6 else ''}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def configuration(result: StudyResult) -> list[tuple[str, str]]:
    """Return all settings that are needed to repeat the study, as they were stored."""
    study = result.study
    scenario = study.scenario
    described = result.description
    # `study.runs` counts the runs that all filters have finished.
    planned = described.get("runs", study.runs)
    model = ", ".join(
        f"{key} = {_brief(value)}" for key, value in scenario.model.items() if key != "type"
    )
    lines = [
        ("scenario", scenario.name),
        ("source", " ".join(scenario.source.split())),
        ("model", f"{scenario.model['type']}: {model}" if model else str(scenario.model["type"])),
        ("length", f"{len(result.trajectory.recording)} steps"),
        (
            "runs",
            f"{study.runs}" if planned == study.runs else f"{study.runs} of {planned} planned",
        ),
        ("particle counts", ", ".join(map(str, study.particles))),
        ("seed", str(study.seed)),
    ]
    if described.get("data"):
        lines.append(("data", f"digest {described['data']}"))
    for session in result.sessions:
        versions = ", ".join(f"{name} {version}" for name, version in session["versions"].items())
        machine = session["machine"]
        host = f"{machine.get('processor', '')}, {machine.get('cores', '?')} cores, {machine.get('system', '')}"
        lines.append(
            ("computed", f"from {session['started']} ({session['executor']}) on {host}; {versions}")
        )
    return [(name, text) for name, text in lines if text]
