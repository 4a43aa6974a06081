"""The tables of the pages, from the files in benchmarks/results: a function for each, which returns Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path

import page_adapters
import page_association
import page_board
import page_choices
import page_clutter
import page_default
import page_determinism
import page_first
import page_guide
import page_harbour
import page_limits
import page_peers
import page_published
import page_trackers
import page_views
from page_catalogue import TITLES, catalogue_entries
from page_format import RESULTS, interval, markdown, number, percent, read
from page_samplers import (
    hostile,
    mixtures,
    peers,
    quality,
    repairs,
    thinning,
)

ROOT = Path(__file__).parents[2]
YES_NO = {"True": "yes", "False": "no"}
FOUR = ("bootstrap", "herded-kh", "herded-chg", "auto")
"""Filters of the README."""


def demo() -> str:
    """Excerpt of the demo's table."""
    return f"```text\n{(RESULTS / 'demo.txt').read_text(encoding='utf-8')}```\n"


def excerpt(text: str, filters: Iterable[str] = FOUR) -> str:
    """Keep headings, the rows of the filters at the largest particle count, and what stands below the table."""
    names = "|".join(catalogue_entries())
    lines = [
        (re.match(rf"\W*({names})\s+(\d+)\s", line), line.rstrip()) for line in text.splitlines()
    ]
    largest = max(int(row[2]) for row, _ in lines if row)
    kept, before_row = [], False
    for row, line in reversed(lines):
        if (row[1] in filters and int(row[2]) == largest) if row else (line or not before_row):
            kept.insert(0, line)
        before_row = bool(row) if line else before_row
    return "\n".join(kept).strip("\n") + "\n"


def plain(source: str, digits: int = 3) -> str:
    """Write a results file as it is."""
    table = read(source)
    rows = [
        [number(v, digits) if isinstance(v, float) else YES_NO.get(str(v), v) for v in row]
        for row in table.to_numpy(dtype=object)
    ]
    return markdown(
        [name if "$" in name else name.replace("_", " ") for name in table], rows, source
    )


def noise() -> str:
    """Coverage of the intervals of fitted noise, by model, and the time of usual methods over ours."""
    rows = []
    for _, row in read("noise").iterrows():
        shares = [percent(row[f"covered{end}"]) for end in ("", "_low", "_high")]
        cells = [f"{shares[0]} ({shares[1]}, {shares[2]})"]
        cells += [number(row[f"{key}_off"]) for key in "QR"]
        cells += [f"{row['Q_untold'] + row['R_untold']:.0f}", number(row["seconds"])]
        cells += [number(row["hand_time"]), number(row["em_time"])]
        rows.append([row["model"], *cells])
    heads = ["model", "covered", "Q off", "R off", "unidentified", "seconds", "by hand", "EM"]
    return markdown(heads, rows, "noise")


def likelihood() -> str:
    """How far the maximum of each filter is from the exact one, and whether it is smooth and the only one."""
    rows = []
    for _, row in read("likelihood").iterrows():
        within, smooth = (f"{row[name]} of {row['series']}" for name in ("within", "smooth"))
        single = f"{row['one_maximum']} of {row['counted']}" if row["counted"] else ""
        off, errors, runs = (number(row[k]) for k in ("median_off", "errors", "evaluations"))
        rows.append([f"`{row['filter']}`", row["n"], off, within, errors, runs, smooth, single])
    heads = ["filter", "n", "median off", "within", "errors", "evaluations", "smooth"]
    return markdown([*heads, "one maximum"], rows, "likelihood")


def chains() -> str:
    """How often chains move, and how many independent draws that gives."""
    rows = [
        [row.filter, percent(row.accepted), *map(number, row[3:6])]
        for row in read("chains").drop(columns="moves").itertuples()
    ]
    return markdown(["likelihood", "accepted", "draws", "ms", "draws per second"], rows, "chains")


def smoothers() -> str:
    """Errors of smoothed means over those of trajectories from bootstrap particles, and times."""
    table = read("smoothers").query("n == 100 and filter != 'sqmc'")
    models = list(dict.fromkeys(table["model"]))
    cells = table.set_index(["filter", "smoother", "model"])
    rivals, rows = {m: cells.loc[("bootstrap", "trajectories", m), "median"] for m in models}, []
    for name, smoother in dict.fromkeys(zip(table["filter"], table["smoother"], strict=True)):
        own = {model: cells.loc[(name, smoother, model)] for model in models}
        shares = [
            f"{interval(row, 'ratio')}; {number(row['median'] / rivals[m])}"
            for m, row in own.items()
        ]
        cost = "" if smoother == "none" else number(own["ungm"]["ms"])
        rows.append([f"`{name}`", smoother, *shares, cost])
    heads = ["filter", "smoother", *(TITLES.get(m, m.replace("_", " ")) for m in models)]
    return markdown([*heads, "ms"], rows, "smoothers")


def paper(name: str) -> str:
    """Write a table of a figure of the paper, without columns that say nothing."""
    table = read(f"paper_{name}")
    kept = table.loc[:, (table.nunique() > 1) | (table.iloc[0] != "not stated")]
    rows = [
        [number(v, 3) if isinstance(v, float) else v for v in row]
        for row in kept.to_numpy(dtype=object)
    ]
    heads = {"sigma_k": r"$\sigma_k$", "E falls as t^-": "E falls as $t^{-x}$, x"}
    return markdown(kept.rename(columns=heads), rows, f"paper_{name}")


def rays(n: int = 100) -> str:
    """Write errors of filters of a robot that casts rays over those of bootstrap, at equal evaluations and in equal time."""
    table = read("dear_model").query("n == @n and filter != 'bootstrap'")
    kinds = {"at_poses": "equal evaluations", "at_time": "equal time"}
    cells = table.set_index(["filter", "beams"])
    pairs = list(product(dict.fromkeys(table["beams"]), kinds))
    rows = [
        [f"`{name}`", *(interval(cells.loc[name, beams], kind) for beams, kind in pairs)]
        for name in dict.fromkeys(table["filter"])
    ]
    heads = [f"{beams} rays, {kinds[kind]}" for beams, kind in pairs]
    return markdown([f"n = {n}", *heads], rows, "dear_model")


TABLES: dict[str, Callable[[], str]] = {
    "rays": rays,
    "demo": demo,
    "quality": quality,
    "mixtures": mixtures,
    "repairs": repairs,
    "hostile": hostile,
    "noise": noise,
    "chains": chains,
    "smoothers": smoothers,
    "likelihood": likelihood,
    "peers": peers,
    "thinning": thinning,
    **page_adapters.TABLES,
    **page_association.TABLES,
    **page_board.TABLES,
    **page_choices.TABLES,
    **page_clutter.TABLES,
    **page_default.TABLES,
    **page_first.TABLES,
    **page_guide.TABLES,
    **page_harbour.TABLES,
    **page_limits.TABLES,
    **page_determinism.TABLES,
    **page_published.TABLES,
    **page_peers.TABLES,
    **page_trackers.TABLES,
    **page_views.TABLES,
    **{f"paper_{k}": partial(paper, k) for k in ("fig1", "fig3", "fig4")},
}
