"""The page: what a study has to say, in the order in which it is asked, put into the template."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter.evaluation.report import wording
from herdfilter.evaluation.report.animation import animation
from herdfilter.evaluation.report.equations import equations
from herdfilter.evaluation.report.svg import colour, inline
from herdfilter.evaluation.slopes import fitted_slopes
from herdfilter.evaluation.study import StudyResult
from herdfilter.evaluation.summary import error_measure, summarise, verdict
from herdfilter.plotting import drawings
from herdfilter.plotting.drawing import Drawing
from herdfilter.plotting.errors import measures
from herdfilter.plotting.style import styles
from herdfilter.plotting.trajectories import LONGEST_WINDOW, first_and_best, over_time

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

FILE_NAME = "report.html"
"""Name of the page in an output folder."""

MOST_TRACEBACKS = 20


def write_report(result: StudyResult, folder: Path, plans: dict[str, Drawing] | None = None) -> Path:
    """Write the report of a study, and return its path.

    The page needs no other file and no network. The same result gives the same page.

    Parameters
    ----------
    result : StudyResult
    folder : Path
        Takes `FILE_NAME`; there is no half-written page under that name.
    plans : dict, optional
        What `herdfilter.plotting.drawings` makes of the result, if it is at hand.

    Raises
    ------
    OSError
        If the folder takes no files.
    """
    path = Path(folder) / FILE_NAME
    text = render(result, plans).encode()
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".report-", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise
    return path


def render(result: StudyResult, plans: dict[str, Drawing] | None = None) -> str:
    """Return the report of a study as HTML."""
    from jinja2 import Environment, StrictUndefined

    summary = summarise(result.runs)
    plans = drawings(result, summary) if plans is None else plans
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["digits"] = wording.digits
    return environment.from_string(_text("page.html")).render(
        css=_markup(_text("page.css")),
        script=_markup(_text("animation.js")),
        scenario=result.study.scenario,
        study=result.study,
        planned=result.description.get("runs", result.study.runs),
        verdict=verdict(summary),
        claims=wording.claimed(result.runs, summary),
        definitions=wording.definitions(result.study.scenario, summary),
        equations=_markup(equations(result.study.scenario)),
        legend=_legend(result),
        table=_table(result, summary),
        slopes=_slopes(result, summary),
        figures={name: list(_figures(name, plan)) for name, plan in plans.items()},
        descriptions=_descriptions(result, summary),
        animation=_animation(result),
        failures=_failures(result.runs),
        configuration=wording.configuration(result),
        version=result.description.get("herdfilter", ""),
    )


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _markup(text: str) -> Markup:
    """Mark as HTML what this package has written."""
    from markupsafe import Markup

    return Markup(text)


def _figures(name: str, plan: Drawing) -> Iterator[dict[str, Any]]:
    """Give the panels of a figure as SVG, with what is written beside them."""
    for i, (panel, figure) in enumerate(plan.parts()):
        told = (
            f"{panel.title}: {plan.ylabel or 'filters'} against {plan.xlabel}" if panel.title else plan.title
        )
        svg = inline(figure, f"{name.replace('_', '-')}-{i}", told)
        color = None if panel.color is None else colour(panel.color)
        yield {"title": panel.title, "color": color, "svg": _markup(svg)}


def _legend(result: StudyResult) -> list[dict[str, Any]]:
    """Give the filters with their colours and markers, and how they are built."""
    described = result.description.get("filters", {})
    return [
        {
            "name": name,
            "color": colour(style.color),
            "marker": _markup(_marker(style.marker)),
            "built": wording.built(described.get(name)),
        }
        for name, style in styles(result.study.filters).items()
    ]


def _marker(name: str) -> str:
    """Return the outline of a marker of matplotlib as data of an SVG path, about 10 units wide."""
    from matplotlib.markers import MarkerStyle

    marker = MarkerStyle(name)
    path = marker.get_path().transformed(marker.get_transform())
    scale = 4.4 / np.abs(path.vertices).max()
    parts = []
    for vertices, code in path.iter_segments(curves=False):
        if code == path.CLOSEPOLY:
            parts.append("Z")
        else:
            x, y = scale * vertices[-2:]
            parts.append(f"{'M' if code == path.MOVETO else 'L'}{x:.2f} {-y:.2f}")
    return "".join(parts)


def _table(result: StudyResult, summary: pd.DataFrame) -> dict[str, Any]:
    """Give the table: a group a particle count, the largest first, in each the smallest median error first."""
    scenario, rank = result.study.scenario, error_measure(summary)
    unit = f" ({scenario.unit})" if scenario.unit else ""
    base = summary["baseline"].iloc[0]
    columns = [(f"{rank}_median", f"median error to the {'reference' if rank != 'rmse' else 'truth'}{unit}")]
    columns += [
        (name, f"RMS error to the {'truth' if name == 'rmse' else 'reference'}{unit}")
        for name in measures(summary)
    ]
    if len(result.study.filters) > 1:
        columns.append(("ratio", f"ratio to {base}, run by run"))
    columns += [
        (name, title)
        for name, title in (
            ("log_likelihood_error", "RMS error of the log-likelihood"),
            ("ess", "effective sample size"),
        )
        if summary[name].notna().any()
    ]
    groups = []
    for n in sorted(summary["n_particles"].unique(), reverse=True):
        rows = summary[summary["n_particles"] == n].sort_values(
            f"{rank}_median", na_position="last", kind="stable"
        )
        best = rows[f"{rank}_median"][2 * rows["failures"] <= rows["runs"]].min()
        groups.append(
            {
                "n": n,
                "rows": [
                    {
                        "filter": row["filter"],
                        "color": colour(styles(result.study.filters)[row["filter"]].color),
                        "best": len(rows) > 1 and row[f"{rank}_median"] == best,
                        "cells": [wording.cell(row, name) for name, _ in columns],
                        "outcome": wording.share(row["diverged"], scenario),
                        "failures": row["failures"],
                        "ms": wording.digits(row["ms_per_step"]),
                    }
                    for _, row in rows.iterrows()
                ],
            }
        )
    heads = [title for _, title in columns] + [wording.outcome(scenario), "failed", "ms a step"]
    return {"heads": heads, "groups": groups}


def _slopes(result: StudyResult, summary: pd.DataFrame) -> dict[str, Any] | None:
    """Give the fitted slopes; None with one particle count."""
    if len(result.study.particles) < 2:
        return None
    fits = {measure: fitted_slopes(result.runs, measure) for measure in measures(summary)}
    return {
        "heads": [f"to the {'truth' if name == 'rmse' else 'reference'}" for name in fits],
        "rows": [
            (
                rows[0]["filter"],
                [wording.cell(row, "slope") for row in rows],
                int(rows[0]["runs"]),
            )
            for rows in zip(*([row for _, row in fit.iterrows()] for fit in fits.values()), strict=True)
        ],
    }


def _descriptions(result: StudyResult, summary: pd.DataFrame) -> dict[str, Any]:
    """Give what the sections say of their figures."""
    steps = len(result.trajectory.recording)
    return {
        "largest": summary["n_particles"].max(),
        "baseline": summary["baseline"].iloc[0],
        "first": next(iter(result.study.filters)),
        "referenced": error_measure(summary) == "reference_error",
        "shown": result.trajectory.n_particles,
        "window": min(LONGEST_WINDOW, steps) if over_time(result) else None,
        "steps": steps,
        "weighted": bool(result.trajectory.weights),
        "dimension": result.trajectory.recording.truth.shape[1],
        "singular": {
            row["filter"]: int(row["nees_singular"])
            for _, row in summary[summary["n_particles"] == summary["n_particles"].max()].iterrows()
            if row["nees_singular"] > 0
        },
    }


def _animation(result: StudyResult) -> dict[str, Any] | None:
    data = animation(result, first_and_best(result)) if result.trajectory.estimates else None
    if data is None:
        return None
    for entry in data["filters"].values():
        entry["variable"] = f"--c{entry['color'][1:]}"
    text = (
        json.dumps(data, separators=(",", ":"), allow_nan=False)
        .replace("<", "\\u003c")
        .replace("&", "\\u0026")
    )
    return {"json": _markup(text), "data": data}


def _failures(runs: pd.DataFrame) -> dict[str, Any]:
    """Give the failed runs by filter and error, with the traceback of the first."""
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
