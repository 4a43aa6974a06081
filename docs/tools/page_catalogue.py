"""The catalogue of filters as a table, from its TOML file and the study."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from page_format import Table, number, read

CATALOGUE = Path(__file__).parents[2] / "herdfilter" / "catalogue" / "filters.toml"
TITLES = {"ungm": "UNGM", "lorenz63": "Lorenz-63", "bearings": "bearings"}
TITLES |= {f"linear-d{d}": f"linear, d = {d}" for d in range(1, 7)}


def catalogue_entries() -> dict[str, dict[str, object]]:
    """Return the catalogue of filters."""
    return tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))


def catalogue(
    n: int = 100, scenarios: Iterable[str] = ("ungm", "lorenz63", "bearings", "linear-d4")
) -> Table:
    """Every filter of one target in the catalogue with its parts and its error over that of bootstrap."""
    table = read("study")
    at_n = table[table["n"] == n].set_index(["filter", "scenario"])
    rows: list[list[object]] = []
    for name, parts in catalogue_entries().items():
        if "tracker" in parts:
            continue
        built = [str(parts[key]) for key in ("filter", "proposal", "resampling") if key in parts]
        cells = [
            number(at_n.loc[(name, s), "to_bootstrap"]) if (name, s) in at_n.index else "" for s in scenarios
        ]
        rows.append([f"`{name}`", ", ".join(f"`{part}`" for part in built), *cells])
    return ["name", "parts", *(TITLES[s] for s in scenarios)], rows
