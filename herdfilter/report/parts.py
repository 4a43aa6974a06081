"""Parts of the page: figures and markers as SVG, tables, and the equations of the model."""

from __future__ import annotations

import html
import inspect
import io
import re
from contextlib import suppress
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from herdfilter.catalogue.expressions import Imports
from herdfilter.plotting.style import laid_out
from herdfilter.report.wording import cell, table_and_headings
from herdfilter.study import columns
from herdfilter.study.results import StudyResult
from herdfilter.study.scenario import Scenario


def inline(figure: Figure, key: str, label: str) -> str:
    """Return a figure as an SVG element for HTML, with the fonts of the page.

    Its ids are hashes salted with `key`, so that those of two figures differ; `label` is for screen readers.
    """
    file = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with laid_out(figure), mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(file, format="svg", dpi=160, transparent=True, metadata=metadata)
    head, _, body = file.getvalue().partition("<svg")[2].partition(">")
    # What the page does not need is removed, which halves its size: ids of groups, which nothing refers to, ...
    body = re.sub(r' id="[^"]*_\d{1,4}"', "", body)
    # ... fonts and spaces, ...
    body = re.sub(r" font-family: [^;\"]*;|\s+(?=[<\n])", "", body)
    # ... and coordinates beyond a hundredth of a point.
    hundredths = re.compile(r"(?<=\.\d\d)\d+")
    body = re.sub(
        r' (d|x|y|width|height|transform)="[^"]*"', lambda match: hundredths.sub("", match[0]), body
    )
    view = re.findall(r'viewBox="[^"]*"', head)[0]
    return f'<svg {view} role="img" aria-label="{html.escape(label)}">{body}'


def marker_outline(name: str) -> str:
    """Return the outline of a matplotlib marker as the data of an SVG path, about 10 units wide."""
    marker = MarkerStyle(name)
    polygons: Any = (
        marker.get_path().transformed(marker.get_transform()).to_polygons(closed_only=False)
    )
    scale = 4.4 / np.abs(np.concatenate(polygons)).max()
    # Each outline is a path M x y L x y ... Z; the y axis of SVG points down.
    lines = ("L".join(f"{scale * x:.2f} {-scale * y:.2f}" for x, y in part) for part in polygons)
    return "".join(f"M{line}Z" for line in lines)


def results_table(result: StudyResult) -> dict[str, Any]:
    """Return headings and rows of the results, with the smallest median error first.

    For a family, return the table over its models, the smallest ratio first.
    """
    table, headings = table_and_headings(result)
    rank = f"{columns.error_measure(result.summary)}_median"
    # The table over models lacks the numbers of runs and failures.
    if result.models is not None:
        table = table.merge(
            result.summary[["filter", "n_particles", "runs", "failures"]],
            on=["filter", "n_particles"],
        )
        rank = "ratio"
    rows: list[dict[str, Any]] = []
    for n, group in table.sort_values(rank, kind="stable").groupby("n_particles"):
        # A filter that failed in most runs may have been lucky in the others.
        smallest = group[rank][2 * group["failures"] <= group["runs"]].min()
        for _, row in group.iterrows():
            best = len(group) > 1 and row[rank] == smallest
            cells = [cell(row, heading) for heading in headings]
            rows.append({"n": n, "filter": row["filter"], "best": best, "cells": cells})
    return {"heads": [heading.label for heading in headings], "rows": rows}


def slopes_table(result: StudyResult) -> dict[str, Any] | None:
    """Return the fitted slopes, or None with too few particle counts."""
    fits = result.slopes
    heading = columns.Heading("slope", "slope")
    rows = []
    # Every measure has a row for each filter, in the same order.
    for fitted in zip(*(fit.to_dict("records") for fit in fits.values()), strict=True):
        cells = [cell(row, heading) for row in fitted]
        rows.append((fitted[0]["filter"], cells, int(fitted[0]["runs"])))
    heads = [columns.error_phrase(name).removeprefix("error ") for name in fits]
    return {"heads": heads, "rows": rows} if fits else None


def failures_by_error(runs: pd.DataFrame) -> list[tuple[Any, pd.DataFrame]]:
    """Return (filter, error) and the failed runs, the most frequent first."""
    failed = runs[runs["error"].fillna("") != ""]
    return sorted(failed.groupby(["filter", "error"], sort=False), key=lambda group: -len(group[1]))


def equations(scenario: Scenario) -> str:
    """Return the docstring of a model of this package, without its parameters, as HTML with MathML; empty for others."""
    name = str(scenario.model["type"])
    # A report runs no code that a scenario names, and the files of a stored one may be elsewhere.
    named = [name.rpartition(":")[0] or "herdfilter.models", *scenario.imports]
    own = [
        entry for entry in named if entry.startswith("herdfilter.") and not entry.endswith(".py")
    ]
    text = None
    if named[0] in own:
        with suppress(ValueError):  # a class of a user's module called `models`
            text = inspect.getdoc(Imports(own[1:]).resolve(name))
    if not text:
        return ""
    try:
        from docutils.core import publish_parts
    except ImportError:
        return "<p>The equations of the model are shown after <code>pip install 'herdfilter[equations]'</code>.</p>"
    settings = {"math_output": "MathML", "report_level": 5, "_disable_config": True}
    settings |= {"raw_enabled": False, "file_insertion_enabled": False}
    # docutils does not know \dots.
    text = text.partition("\nParameters\n")[0].replace(r"\dots", r"\ldots")
    return str(publish_parts(text, writer="html5", settings_overrides=settings)["body"])
