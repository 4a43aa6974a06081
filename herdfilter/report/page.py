"""The page: the template, filled with the results of a study."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from herdfilter.plotting import drawings, over_time
from herdfilter.plotting.drawing import Drawing
from herdfilter.plotting.style import styles
from herdfilter.report import parts, wording
from herdfilter.report.animation import animation, rounded_lists
from herdfilter.study.columns import error_measure
from herdfilter.study.machine import written_at_once
from herdfilter.study.results import StudyResult

REPORT_FILE = "report.html"
"""Name of the page in an output folder."""


def write_report(
    result: StudyResult, folder: Path, plans: dict[str, Drawing] | None = None
) -> Path:
    """Write the report of a study into a folder, as `REPORT_FILE`, and return its path; OSError if that fails.

    The page needs no other file and no network; a `folder` that ends in ``.html`` is the page itself. Folders are made. The
    same result gives the same page. The figures are `plans`, by default all of `herdfilter.plotting.drawings`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from herdfilter.report import write_report
    >>> from herdfilter.study.engine import run_study
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1)
    >>> result = run_study(study)
    >>> write_report(result, Path("."), plans={}).name
    'report.html'
    """
    # A folder may not exist yet, so the ending decides.
    is_page = folder.suffix.lower() == ".html" and not folder.is_dir()
    path = folder if is_page else folder / REPORT_FILE
    text = render(result, plans).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_at_once(path) as file:
        file.write(text)
    os.chmod(path, 0o644)  # a temporary file, as this was, is for its owner alone
    return path


def render(result: StudyResult, plans: dict[str, Drawing] | None = None) -> str:
    """Return the report of a study as HTML."""
    summary = result.summary
    largest_count = summary.query("n_particles == n_particles.max()").set_index("filter")
    singular_steps = largest_count["nees_singular"]
    options: Any = {
        "autoescape": True,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    # A name that the template misspells is an error, and text of the user is escaped.
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), **options)
    # `default` is called for what JSON lacks, which is arrays.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "default": rounded_lists}
    return environment.get_template("page.html").render(
        result=result,
        wording=wording,
        parts=parts,
        looks=styles(result.study.filters),
        figures={
            name: [
                (panel, parts.inline(figure, f"{name}-{i}", plan.description(panel)))
                for i, (panel, figure) in enumerate(plan.parts())
            ]
            for name, plan in (drawings(result) if plans is None else plans).items()
        },
        referenced=error_measure(summary).startswith("reference"),
        sensor=(over_time.scenario_sensors(result.study.scenario) or [""])[0],
        window=over_time.is_over_time(result)
        and min(over_time.LONGEST_WINDOW, len(result.trajectory.recording)),
        singular=singular_steps[singular_steps > 0].astype(int).to_dict(),
        animation=animation(result),
    )
