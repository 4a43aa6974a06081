"""The tables of the pages, from the files in benchmarks/results: a function for each, which returns Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
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
import page_modes
import page_need
import page_peers
import page_published
import page_stonesoup
import page_trackers
import page_views
import pandas as pd
from page_catalogue import TITLES, catalogue_entries
from page_format import RESULTS, interval, markdown, number, percent, read
from page_random import random_localisation, random_models
from page_samplers import (
    hostile,
    mixtures,
    peers,
    quality,
    rates,
    repairs,
    thinning,
    thinning_large,
)

ROOT = Path(__file__).parents[2]
YES_NO = {"True": "yes", "False": "no"}
FOUR = ("bootstrap", "herded-kh", "herded-chg", "auto")
"""Filters of the README."""
WEIGHED = ("bootstrap", "sqmc")
"""Filters of the catalogue on the page whose likelihoods are compared."""


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


def wide(
    source: str,
    row: str,
    column: str,
    value: str,
    digits: int = 3,
    names: dict | None = None,
    leave_out: tuple[str, ...] = (),
) -> str:
    """Write a results file with one column spread out."""
    table = read(source)
    table = table[~table[row].isin(leave_out)]
    columns = list(dict.fromkeys(table[column]))
    cells = table.set_index([row, column])[value]
    rows = [
        [name, *(number(cells.get((name, c), np.nan), digits) for c in columns)]
        for name in dict.fromkeys(table[row])
    ]
    return markdown([row, *((names or {}).get(c, f"{c}") for c in columns)], rows, source)


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


def roughness() -> str:
    """Second differences on a grid, and on a finer one."""
    table = read("roughness").set_index(["filter", "model"])
    models = list(dict.fromkeys(model for _, model in table.index))

    def cell(key: tuple[str, str]) -> str:
        if key not in table.index:
            return ""
        row = table.loc[key]
        return f"{number(row['rough'])} ({number(row['rough_tenth'])})"

    names = dict.fromkeys(name for name, _ in table.index)
    return markdown(
        ["filter", *models],
        [[f"`{name}`", *(cell((name, m)) for m in models)] for name in names],
        "roughness",
    )


def randomised() -> str:
    """Variances of the log-likelihood over those of bootstrap, and errors without random numbers."""
    table = read("randomised").set_index(["model", "n", "filter"])
    rows = []
    for model, n in dict.fromkeys(key[:2] for key in table.index):
        own = [table.loc[(model, n, name)] for name in ("guided", "unguided", "sqmc")]
        ratios = [number(row[name]) for row in own for name in ("ratio", "ratio_at_equal_time")]
        errors = [
            number(own[0][name]) for name in ("bootstrap_sd", "sd", "error_ranked", "error_auto")
        ]
        rows.append([model, n, *errors[:2], *ratios, *errors[2:]])
    heads = ["model", "n", "`bootstrap`, sd", "guided, sd"]
    heads += [
        f"{name}, {kind}"
        for name in ("guided", "unguided", "`sqmc`")
        for kind in ("equal n", "equal time")
    ]
    return markdown([*heads, "`ranked`, error", "`auto`, error"], rows, "randomised")


def unbiased() -> str:
    """Mean of the estimated over the exact likelihood less 1, with its standard error, in thousandths."""
    table = read("unbiased").set_index(["model", "filter"])
    models, names = (list(dict.fromkeys(keys)) for keys in zip(*table.index, strict=True))

    def cell(row: pd.Series) -> str:
        return f"{1000 * (row['mean'] - 1):.1f} ({1000 * row['standard_error']:.1f})"

    rows = [[model, *(cell(table.loc[(model, name)]) for name in names)] for model in models]
    return markdown(
        ["model", *(n if n == "guided" else f"`{n}`" if n in WEIGHED else n for n in names)],
        rows,
        "unbiased",
    )


def noise() -> str:
    """Coverage of the intervals of fitted noise, by model, and the time of a search by hand."""
    rows = []
    for _, row in read("noise").iterrows():
        shares = [percent(row[f"covered{end}"]) for end in ("", "_low", "_high")]
        cells = [f"{row['intervals']:.0f}", f"{shares[0]} ({shares[1]}, {shares[2]})"]
        cells += [number(row[f"{key}_off"]) for key in "QR"]
        cells += [f"{row['Q_untold'] + row['R_untold']:.0f}", number(row["seconds"])]
        cells += [number(row["evaluations"]), number(row["hand_time"]), number(row["hand_off"])]
        rows.append([row["model"], *cells])
    heads = ["model", "intervals", "covered", "Q off", "R off", "untold", "seconds", "runs"]
    return markdown([*heads, "time over ours", "off"], rows, "noise")


def noise_em() -> str:
    """Write rounds and time of the EM of pykalman until it is as likely as our maximum."""
    row = read("noise").set_index("model").loc["linear chain"]
    heads = ["both covariances whole", "rounds", "time over ours"]
    cells = [number(row[name]) for name in ("em_rounds", "em_time")]
    return markdown(heads, [["EM of `pykalman`, linear chain", *cells]])


def settling() -> str:
    """Root mean square errors of the log-likelihood as n grows, the median and, after these, the mean."""
    table = read("settling").set_index(["filter", "n"])
    names, counts = (list(dict.fromkeys(keys)) for keys in zip(*table.index, strict=True))

    def cell(row: pd.Series) -> str:
        return f"{number(row['rms'])}; {number(row['median'])}; {number(row['mean'])} ({number(row['standard_error'])})"

    rows = [
        [
            f"`{name}`" if name != "randomised" else name,
            *(cell(table.loc[(name, n)]) for n in counts),
        ]
        for name in names
    ]
    return markdown(["filter", *(f"n = {n:,}" for n in counts)], rows, "settling")


def chains() -> str:
    """How often chains move, and what they say of the parameter."""
    table = read("chains").drop(columns="moves")
    rows = [
        [row.filter, percent(row.accepted), *map(number, row[3:6]), *(f"{v:.3f}" for v in row[6:])]
        for row in table.itertuples()
    ]
    return markdown(
        ["likelihood", "accepted", "draws", "ms", "per second", "mean of phi", "sd of phi"],
        rows,
        "chains",
    )


def smoothers() -> str:
    """Errors of smoothed means over those of trajectories from bootstrap particles, and times."""
    table = read("smoothers").query("n == 100")
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
        rows.append([f"`{name}`", smoother, *shares, number(own["ungm"]["filter_ms"]), cost])
    heads = ["filter", "smoother", *(TITLES.get(m, m.replace("_", " ")) for m in models)]
    return markdown([*heads, "filter, ms", "smoother, ms"], rows, "smoothers")


def paper(name: str) -> str:
    """Write a table of a figure of the paper, without columns that say nothing."""
    table = read(f"paper_{name}")
    kept = table.loc[:, (table.nunique() > 1) | (table.iloc[0] != "not stated")]
    if name == "fig5":
        kept = kept[~kept["d"].isin((4, 6, 15, 25))]  # they are in its data file
    rows = [
        [number(v, 3) if isinstance(v, float) else v for v in row]
        for row in kept.to_numpy(dtype=object)
    ]
    return markdown(kept, rows, f"paper_{name}")


def dear(kinds: dict[str, str], rays: Iterable[int], most: int = 800) -> str:
    """Write columns of the results on a dear model, filter by number of particles: column -> what it is called."""
    table = read("dear_model").query("n <= @most")
    counts = sorted(set(table["n"]))
    rows = []
    for beams, name, kind in product(rays, dict.fromkeys(table["filter"]), kinds):
        if name == "bootstrap" and kind.startswith("at_"):
            continue
        cells = table.query("filter == @name and beams == @beams").set_index("n").reindex(counts)
        values = [
            interval(row, kind) if kind.startswith("at_") else number(row[kind])
            for _, row in cells.iterrows()
        ]
        rows.append([f"`{name}`", beams, kinds[kind], *values])
    return markdown(["filter", "rays", "", *(f"n = {n}" for n in counts)], rows, "dear_model")


def forecasts() -> str:
    """Write the coverage of forecasts, in percent, at each horizon."""
    table = read("forecasts")
    cells = table.set_index(["model", "filter", "of", "horizon", "mass"])["share"]
    horizons, masses = sorted(table["horizon"].unique()), sorted(table["mass"].unique())
    rows = [
        [
            TITLES.get(model, model.replace("_", " ")),
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
    return markdown(["model", "filter", "n", *heads], rows, "forecasts")


TABLES: dict[str, Callable[[], str]] = {
    "dear_few": partial(dear, {"ms": "ms", "at_time": "error, equal time"}, [12]),
    "dear_poses": partial(dear, {"at_poses": "error, equal poses"}, [36, 12]),
    "demo": demo,
    "forecasts": forecasts,
    "quality": quality,
    "rates": rates,
    "mixtures": mixtures,
    "repairs": repairs,
    "hostile": hostile,
    "randomised": randomised,
    "unbiased": unbiased,
    "noise": noise,
    "noise_em": noise_em,
    "settling": settling,
    "chains": chains,
    "smoothers": smoothers,
    "likelihood": partial(plain, "likelihood", 2),
    "peers": peers,
    "thinning": thinning,
    "thinning_large": thinning_large,
    "roughness": roughness,
    "random_localisation": random_localisation,
    "random_models": random_models,
    "published": partial(plain, "published"),
    "speed_tracks": partial(wide, "speed_tracks", "filter", "model", "ms", 2),
    "speed_together": partial(plain, "speed_together"),
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
    **page_modes.TABLES,
    **page_need.TABLES,
    **page_determinism.TABLES,
    **page_published.TABLES,
    **page_peers.TABLES,
    **page_stonesoup.TABLES,
    **page_trackers.TABLES,
    **page_views.TABLES,
    **{f"paper_{k}": partial(paper, k) for k in ("fig1", "fig2", "fig3", "fig4", "fig5")},
}
