"""Parts of the page: figures as SVG, tables, and the equations of the model."""

from __future__ import annotations

import inspect
import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from herdfilter.plotting.style import figures, laid_out, styles
from herdfilter.report.wording import cell
from herdfilter.study.columns import Heading, error_measure, error_phrase, headings, headings_of_models
from herdfilter.study.results import StudyResult
from herdfilter.study.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SVG_NAMESPACE, LINK_NAMESPACE = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

COORDINATES = ("d", "x", "y", "width", "height", "transform")  # attributes that are rounded down to hundredths of a point

MOST_TRACEBACKS = 20


def inline(figure: Figure, key: str, label: str) -> str:
    """Return a figure as an element of HTML, with the fonts of the page.

    All ids begin with `key` (letters, digits and hyphens), which differs between figures; `label` is for screen readers.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with figures(), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}), laid_out(figure):
        figure.savefig(file, format="svg", dpi=160, transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for child in root.findall(f"{{{SVG_NAMESPACE}}}metadata"):
        root.remove(child)
    used = set(re.findall(r"url\(#([^)]+)\)", file.getvalue())) | set(re.findall(r'xlink:href="#([^"]+)"', file.getvalue()))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG_NAMESPACE}}}")
        element.attrib = {
            name: value for pair in element.attrib.items() for name, value in _page_attributes(*pair, key, used)
        }
        for text in ("text", "tail"):
            if not (getattr(element, text) or "").strip():
                setattr(element, text, None)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def _page_attributes(name: str, value: str, key: str, used: set[str]) -> list[tuple[str, Any]]:
    """Return the attributes of the page for one of the figure's."""
    if name == "id":
        return [("id", f"{key}-{value}")] if value in used else []
    name = name.removeprefix(f"{{{LINK_NAMESPACE}}}")
    if name == "href" and value.startswith("#"):
        return [("href", f"#{key}-{value[1:]}")]
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", value)
    if name == "style":
        value = re.sub(r"font: ([\d.]+)px [^;]*", r"font-size: \1px", value)
    if name in COORDINATES:
        value = re.sub(r"(?<=\.\d\d)\d+", "", value)
    return [(name, value)]


def results_table(result: StudyResult) -> dict[str, Any]:
    """Return the results in a group for each particle count, the largest count and the smallest median error first.

    For a family, return the table over its models, the smallest ratio first.
    """
    summary, look = result.summary, styles(result.study.filters)
    shown, rank = headings(summary, result.study.scenario), f"{error_measure(summary)}_median"
    if result.models is not None:
        kept = summary[["filter", "n_particles", "runs", "failures"]]
        summary, rank = result.models.merge(kept, on=["filter", "n_particles"]), "ratio"
        shown = headings_of_models(summary)
    groups = []
    for n in sorted(summary["n_particles"].unique(), reverse=True):
        rows = summary[summary["n_particles"] == n].sort_values(rank, na_position="last", kind="stable")
        best = rows[rank][2 * rows["failures"] <= rows["runs"]].min()
        group = []
        for _, row in rows.iterrows():
            line = {"filter": row["filter"], "color": look[row["filter"]].color}
            line |= {"best": len(rows) > 1 and row[rank] == best, "cells": [cell(row, heading) for heading in shown]}
            group.append(line)
        groups.append({"n": n, "rows": group})
    return {"heads": [heading.label for heading in shown], "groups": groups}


def slopes_table(result: StudyResult) -> dict[str, Any] | None:
    """Return the fitted slopes, or None with too few particle counts."""
    fits = result.slopes
    return fits and {
        "heads": [error_phrase(name).removeprefix("error ") for name in fits],
        "rows": [
            (rows[0]["filter"], [cell(row, Heading("slope", "slope")) for row in rows], int(rows[0]["runs"]))
            for rows in zip(*([row for _, row in fit.iterrows()] for fit in fits.values()), strict=True)
        ],
    }


def failures_table(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the failed runs by filter and error, with the first traceback of each."""
    failed = runs[runs["error"].fillna("") != ""]
    groups: list[dict[str, Any]] = []
    for (name, error), rows in failed.groupby(["filter", "error"], sort=False):
        group = {"filter": name, "error": error, "count": len(rows), "total": int((runs["filter"] == name).sum())}
        counts = rows.groupby("n_particles").size()
        group["where"] = ", ".join(f"{count} at n = {n}" for n, count in counts.items())
        first = rows.iloc[0]
        group |= {"first": f"run {first['run']}, n = {first['n_particles']}", "traceback": first["traceback"]}
        groups.append(group)
    groups.sort(key=lambda group: -group["count"])
    shown, more = groups[:MOST_TRACEBACKS], len(groups[MOST_TRACEBACKS:])
    return {"count": len(failed), "total": len(runs), "groups": shown, "more": more}


def equations(scenario: Scenario) -> str:
    """Return the docstring of a model of this package down to its parameters, as HTML with MathML; empty for others."""
    name = str(scenario.model["type"])
    own = ":" in name and not name.startswith("herdfilter.")
    text = None if own else inspect.getdoc(scenario.modules.resolve(name))
    if not text:
        return ""
    try:
        from docutils.core import publish_parts
    except ImportError:
        return "<p>The equations of the model are shown after <code>pip install 'herdfilter[equations]'</code>.</p>"
    settings = {"math_output": "MathML", "report_level": 5, "_disable_config": True}
    settings |= {"raw_enabled": False, "file_insertion_enabled": False}
    text = text.partition("\nParameters\n")[0].replace(r"\dots", r"\ldots")
    return str(publish_parts(text, writer="html5", settings_overrides=settings)["body"])
