"""Long tables: data files that a page shows in a box that can be sorted and searched.

A page shows a results file as it is by the directive ``data-table``. A view is a file in docs/tables that is made of one and
is easier to read (``MADE``): ``python docs/make_pages.py`` writes it, and puts the box and the link to the results file
where a page says ``<!-- table: view_NAME -->``.
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
import page_modes
import page_need
import page_published
import page_random
import page_samplers
import page_trackers
from page_format import PARTS, RESULTS, Table, kept, read

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


def forecasts() -> Table:
    """Return the coverage of forecasts, in percent, at each horizon."""
    table = read("forecasts")
    cells = table.set_index(["model", "filter", "of", "horizon", "mass"])["share"]
    horizons, masses = sorted(table["horizon"].unique()), sorted(table["mass"].unique())
    rows: list[list[object]] = [
        [
            page_catalogue.TITLES.get(model, model.replace("_", " ")),
            f"`{name}`",
            n,
            *(
                ", ".join(f"{100 * cells[model, name, of, h, mass]:.0f}" for mass in masses)
                for of in ("state", "observation")
                for h in horizons
            ),
        ]
        for model, name, n in dict.fromkeys(
            zip(table["model"], table["filter"], table["n"], strict=True)
        )
    ]
    heads = [f"{of}, {h} ahead" for of in ("state", "observation") for h in horizons]
    return ["model", "filter", "n", *heads], rows


MADE: dict[str, tuple[str, Callable[[], Table]]] = {
    "files": ("measured", files),
    "columns": ("measured", columns),
    "random_draws": ("measured", page_random.random_draws),
    "random_drifts": ("measured", page_random.random_drifts),
    "catalogue": ("study", page_catalogue.catalogue),
    "forecasts": ("forecasts", forecasts),
    "linear_parts": ("linear_parts", page_modes.linear_parts),
    "random_filters": ("default", page_default.default_all),
    "random_kinds": ("default_models", page_default.kinds),
    "compiled_models": ("compiled_cases", page_default.compiled_cases),
    "hard_radar": ("hard_radar", page_clutter.hard),
    "trackers_compared": ("trackers", page_trackers.trackers),
    "published_pairs": ("as_published", page_published.pairs),
    "features": ("measured", partial(page_need.who, "filters", "inference", "practice")),
    "features_points": ("measured", partial(page_need.who, "points")),
    "peers": ("measured", page_need.seen),
    "named_scenarios": ("default_scenarios", page_default.scenarios_all),
    "mixtures": ("mixtures", page_samplers.mixtures_all),
}
"""Name of a view -> the results file it is made of, and what makes it."""
AS_THEY_ARE = (
    "adapters",
    "association_times",
    "thinning_large",
    "roughness",
    "settling",
    "randomised",
    "speed_together",
    "dear_model",
    "evaluations_cases",
    "harbour_delays",
    "harbour_two",
    "kernels",
    "speed_tracks",
)
"""Results files that are views themselves."""


def link(name: str) -> str:
    """Write a link that downloads a results file."""
    return f"{{download}}`{name}.csv <{RAW}/{name}.csv>`"


def view(name: str) -> str:
    """Write the box of a view, and below it where its numbers are from."""
    if name not in MADE:  # the directive adds the link
        return f"```{{data-table}} {RAW}/{name}.csv\n```\n"
    source, _ = MADE[name]
    box = f"```{{csv-table}}\n:file: tables/{name}.csv\n:header-rows: 1\n:class: sortable\n```\n"
    if source == "measured":  # no numbers
        return box
    dagger = "†" * bool(kept(source))
    return f"{box}\n{link(source)}, {len(read(source)):,} rows, [measured{dagger}](data.md#provenance)\n"


def written() -> dict[Path, str]:
    """Return the text of every file in this folder that is made of a results file."""
    return {FOLDER / f"{name}.csv": _csv(*make()) for name, (_, make) in MADE.items()}


def _csv(heads: list[str], rows: list[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    return text.getvalue()


TABLES = {f"view_{name}": partial(view, name) for name in (*MADE, *AS_THEY_ARE)}
assert all((RESULTS / f"{name}.csv").is_file() for name in AS_THEY_ARE)
