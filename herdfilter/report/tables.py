"""The tables of the page: results, fitted slopes, failed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herdfilter.plotting.style import styles
from herdfilter.report.svg import colour
from herdfilter.report.wording import cell
from herdfilter.study.columns import Heading, error_measure, error_text, headings, headings_of_models
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd

MOST_TRACEBACKS = 20


def results(result: StudyResult) -> dict[str, Any]:
    """Return the table of results: one group per particle count, the largest first, the smallest median error first.

    Of a family, the table over its models, the smallest ratio first.
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
        group = [
            {
                "filter": row["filter"],
                "color": colour(look[row["filter"]].color),
                "best": len(rows) > 1 and row[rank] == best,
                "cells": [cell(row, heading) for heading in shown],
            }
            for _, row in rows.iterrows()
        ]
        groups.append({"n": n, "rows": group})
    return {"heads": [heading.label for heading in shown], "groups": groups}


def slopes(result: StudyResult) -> dict[str, Any] | None:
    """Return the table of fitted slopes; None with one particle count."""
    if len(result.study.particles) < 2:
        return None
    fits = result.slopes
    return {
        "heads": [error_text(name).removeprefix("error ") for name in fits],
        "rows": [
            (
                rows[0]["filter"],
                [cell(row, Heading("slope", "slope")) for row in rows],
                int(rows[0]["runs"]),
            )
            for rows in zip(*([row for _, row in fit.iterrows()] for fit in fits.values()), strict=True)
        ],
    }


def failures(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the failed runs by filter and error, with the traceback of the first."""
    failed = runs[runs["error"].fillna("") != ""]
    groups = []
    for (name, error), rows in failed.groupby(["filter", "error"], sort=False):
        total = int((runs["filter"] == name).sum())
        counts = rows.groupby("n_particles").size()
        groups.append(
            {
                "filter": name,
                "error": error,
                "count": len(rows),
                "total": total,
                "where": ", ".join(f"{count} at n = {n}" for n, count in counts.items()),
                "first": f"run {rows['run'].iloc[0]}, n = {rows['n_particles'].iloc[0]}",
                "traceback": rows["traceback"].iloc[0],
            }
        )
    groups.sort(key=lambda group: -group["count"])
    return {
        "count": len(failed),
        "total": len(runs),
        "groups": groups[:MOST_TRACEBACKS],
        "more": len(groups[MOST_TRACEBACKS:]),
    }
