"""The page: the template, filled with the results of a study."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter.plotting import drawings
from herdfilter.plotting.drawing import Drawing
from herdfilter.plotting.over_time import LONGEST_WINDOW, first_and_best, is_over_time, scenario_sensors
from herdfilter.plotting.style import styles
from herdfilter.report import parts, wording
from herdfilter.report.animation import animation
from herdfilter.report.parts import inline
from herdfilter.study.columns import error_measure
from herdfilter.study.machine import written_at_once
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

REPORT_FILE = "report.html"
"""Name of the page in an output folder."""


def write_report(result: StudyResult, folder: Path, plans: dict[str, Drawing] | None = None) -> Path:
    """Write the report of a study into a folder, as `REPORT_FILE`, and return its path; OSError if that fails.

    The page needs no other file and no network; a `folder` that ends in ``.html`` is the page itself. The same result gives
    the same page. The figures are `plans`, by default all of `herdfilter.plotting.drawings`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from herdfilter.report import write_report
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1)
    >>> result = hf.study.engine.run_study(study)
    >>> write_report(result, Path("."), plans={}).name
    'report.html'
    """
    path = Path(folder)
    path = path if path.suffix.lower() == ".html" and not path.is_dir() else path / REPORT_FILE
    text = render(result, plans).encode()
    with written_at_once(path) as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


def render(result: StudyResult, plans: dict[str, Drawing] | None = None) -> str:
    """Return the report of a study as HTML."""
    from jinja2 import Environment, StrictUndefined

    summary = result.summary
    plans = drawings(result) if plans is None else plans
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_text("page.html")).render(
        css=_markup(_text("page.css")),
        script=_markup(_text("animation.js")),
        scenario=result.study.scenario,
        study=result.study,
        extent=wording.extent(result.study, result.study.runs),
        planned=result.description.get("runs", result.study.runs),
        verdict=result.verdict,
        claims=wording.claimed(result.runs, summary),
        definitions=wording.definitions(result.study.scenario, summary),
        equations=_markup(parts.equations(result.study.scenario)),
        legend=[
            {
                "name": name,
                "color": style.color,
                "marker": _markup(_marker(style.marker)),
                "built": wording.built(result.description.get("filters", {}).get(name)),
            }
            for name, style in styles(result.study.filters).items()
        ],
        table=parts.results_table(result),
        slopes=parts.slopes_table(result),
        figures={name: list(_figures(name, plan)) for name, plan in plans.items()},
        descriptions=_descriptions(result, summary),
        animation=_animation(result),
        failures=parts.failures_table(result.runs),
        configuration=wording.configuration(result),
        version=result.description.get("herdfilter", ""),
    )


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _markup(text: str) -> Markup:
    """Mark a text of this package as HTML."""
    from markupsafe import Markup

    return Markup(text)


def _figures(name: str, plan: Drawing) -> Iterator[dict[str, Any]]:
    """Yield the panels of a figure as SVG, with title and colour."""
    for i, (panel, figure) in enumerate(plan.parts()):
        label = f"{panel.title}: {plan.ylabel or 'filters'} against {plan.xlabel}" if panel.title else plan.title
        svg = inline(figure, f"{name.replace('_', '-')}-{i}", label)
        yield {"title": panel.title, "color": panel.color, "svg": _markup(svg)}


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


def _descriptions(result: StudyResult, summary: pd.DataFrame) -> dict[str, Any]:
    """Return the facts that the template states about the figures."""
    steps, largest = len(result.trajectory.recording), summary["n_particles"].max()
    singular = summary[summary["n_particles"] == largest].set_index("filter")["nees_singular"]
    return {
        "largest": largest,
        "baseline": summary["baseline"].iloc[0],
        "first": next(iter(result.study.filters)),
        "referenced": error_measure(summary).startswith("reference"),
        "models": result.models is not None,
        "sensor": (scenario_sensors(result.study.scenario) or ("",))[0],
        "dotted": any(style.linestyle == ":" for style in styles(result.study.filters).values()),
        "shown": result.trajectory.n_particles,
        "window": min(LONGEST_WINDOW, steps) if is_over_time(result) else None,
        "steps": steps,
        "weighted": bool(result.trajectory.weights),
        "dimension": result.trajectory.recording.truth.shape[-1],
        "many": result.trajectory.recording.many,
        "detections": result.trajectory.positions is not None,
        "singular": singular[singular > 0].astype(int).to_dict(),
    }


def _animation(result: StudyResult) -> dict[str, Any] | None:
    """Return the animation as JSON and what the template asks of it, or None."""
    data = animation(result, first_and_best(result)) if result.trajectory.estimates else None
    if data is None:
        return None
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    particles = any(entry["drawn"] for entry in data["filters"].values())
    return {"json": _markup(text), "data": data, "particles": particles}
