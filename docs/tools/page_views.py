"""Long tables: data files that a page shows in a box that can be sorted and searched.

A view is a results file as it is, or a file in this folder that is made of one and is easier to read (``MADE``).
``python docs/make_pages.py`` writes the latter, and puts the box, what made the results file, and the link to it where a
page says ``<!-- table: view_NAME -->``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import page_catalogue
import page_clutter
import page_default
import page_published
import page_trackers
from page_format import PARTS, RESULTS, Table, kept, measured, read

from herdfilter.study.columns import COLUMNS

FOLDER = Path(__file__).parents[1] / "tables"
RAW = "../benchmarks/results"
"""The folder of the results files, seen from a page."""


def files() -> Table:
    """Every results file: how it was made, and why it was kept if the code is newer."""
    log, took = read("measured"), read("figures").set_index("part")["minutes"]
    minutes = {table: took.get(name, "") for name, part in PARTS.items() for table in part.made}
    rows: list[list[object]] = [
        [
            f"{row.table}.txt" if row.table in ("choice", "demo") else link(row.table),
            "" if row.table in ("choice", "demo") else len(read(row.table)),
            row.date,
            row.version,
            row.machine,
            minutes.get(row.table, ""),
            f"`{row.command}`",
            f"† {why}" if (why := kept(row.table)) else "",
        ]
        for row in log.itertuples()
    ]
    heads = ["file", "rows", "measured on", "herdfilter", "machine", "minutes", "command"]
    return [*heads, "older than the code, and kept because"], rows


def columns() -> Table:
    """Return the columns of the table that `compare` returns."""
    return ["column", "meaning"], [[f"`{column.name}`", column.meaning] for column in COLUMNS]


MADE: dict[str, tuple[str, Callable[[], Table]]] = {
    "files": ("measured", files),
    "columns": ("measured", columns),
    "catalogue": ("study", page_catalogue.catalogue),
    "random_filters": ("default", page_default.default_all),
    "random_kinds": ("default_models", page_default.kinds),
    "compiled_models": ("compiled_cases", page_default.compiled_cases),
    "hard_radar": ("hard_radar", page_clutter.hard),
    "trackers_compared": ("trackers", page_trackers.trackers),
    "published_pairs": ("as_published", page_published.pairs),
    "named_scenarios": ("default_scenarios", page_default.scenarios_all),
}
"""Name of a view -> the results file it is made of, and what makes it."""
AS_THEY_ARE = (
    "default_models",
    "default_budget",
    "study",
    "quality",
    "far",
    "modes",
    "trackers",
    "association",
    "evidence",
    "smoothers",
    "thinning",
    "speed_step",
    "speed_compiled",
    "speed_samplers",
    "speed_growth",
    "speed_plain",
    "speed_sqmc",
    "startup",
    "break_even",
    "peers_filters",
    "peers_budget",
    "board",
    "dear_model",
)
"""Results files that are views themselves."""


def link(name: str) -> str:
    """Write a link that downloads a results file."""
    return f"{{download}}`{name}.csv <{RAW}/{name}.csv>`"


def view(name: str) -> str:
    """Write the box of a view, and below it where its numbers are from."""
    source = MADE[name][0] if name in MADE else name
    path = f"tables/{name}.csv" if name in MADE else f"{RAW}/{name}.csv"
    box = f"```{{data-table}} {path}\n```\n"
    if name in MADE:  # its cells have markup
        box = f"```{{csv-table}}\n:file: {path}\n:header-rows: 1\n:class: sortable\n```\n"
    if MADE.get(name, ("",))[0] == "measured":  # no numbers
        return box
    return f"{box}\nThe data: {link(source)}, {len(read(source)):,} rows. {measured(source)}\n"


def written() -> dict[Path, str]:
    """Return the text of every file in this folder that is made of a results file."""
    return {FOLDER / f"{name}.csv": _csv(*make()) for name, (_, make) in MADE.items()}


def _csv(heads: list[str], rows: list[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    return text.getvalue()


TABLES = {f"view_{name}": partial(view, name) for name in (*MADE, *AS_THEY_ARE)}
assert all((RESULTS / f"{name}.csv").is_file() for name in AS_THEY_ARE)
