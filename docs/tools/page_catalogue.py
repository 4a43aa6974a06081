"""The catalogue of filters as a table, from its TOML file and the study."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from page_format import Table, number, percent, read

CATALOGUE = Path(__file__).parents[2] / "herdfilter" / "catalogue" / "filters.toml"
TITLES = {"ungm": "UNGM", "lorenz63": "Lorenz-63", "bearings": "bearings"}
TITLES |= {f"linear-d{d}": f"linear, d = {d}" for d in range(1, 7)}
STUDIED = ("ungm", "lorenz63", "bearings", "linear-d1", "linear-d4")
"""Scenarios of the study of filters of one target."""
OWN = {
    "manoeuvre": "manoeuvres in clutter",
    "inertial_terrain": "linear parts",
    "crossing": "twelve targets",
}
"""Scenarios of the study of filters that need modes, linear parts or many targets."""
ROBOT = 300
"""Particles of the filters that a robot is to be found with."""


def catalogue_entries() -> dict[str, dict[str, object]]:
    """Return the catalogue of filters."""
    return tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))


def catalogue(
    n: int = 100, scenarios: Iterable[str] = ("ungm", "lorenz63", "bearings", "linear-d4", *OWN)
) -> Table:
    """Every filter in the catalogue with its parts and its error over that of bootstrap, of targets over lmb-bootstrap's."""
    table = read("study")
    at_n = table[table["n"] == n].set_index(["filter", "scenario"])["to_bootstrap"].to_dict()
    robot = read("default_scenarios").set_index(["scenario", "n"]).loc[("plaza", ROBOT)]
    rows: list[list[object]] = []
    for name, parts in catalogue_entries().items():
        built = [
            str(parts[key])
            for key in ("tracker", "filter", "proposal", "resampling", "association")
            if key in parts
        ]
        cells = [number(at_n[name, s]) if (name, s) in at_n else "" for s in scenarios]
        found = percent(1 - robot.get("lost" if name == "auto" else f"lost_{name}", np.nan))
        rows.append([f"`{name}`", ", ".join(f"`{part}`" for part in built), *cells, found])
    return ["name", "parts", *((TITLES | OWN)[s] for s in scenarios), "robot found"], rows
