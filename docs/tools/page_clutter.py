"""The tables of the page on one target in clutter, from what `benchmarks/bench_known.py` leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from page_format import Table, markdown, number, read


def clutter() -> str:
    """Write how many tracks of one target each filter loses, in sparse and in dense clutter."""
    table = read("clutter").set_index(["filter", "n", "in_gate"])
    densities = sorted(set(table.index.get_level_values("in_gate")))
    rows = [
        [
            f"`{name}`",
            n if n > 1 else "",
            *(cell for d in densities for cell in _lost(table.loc[(name, n, d)])),
        ]
        for name, n in dict.fromkeys(key[:2] for key in table.index)
    ]
    rows.sort(key=lambda row: int(row[2].partition(" ")[0]))
    heads = [f"{d:g} false: {kind}" for d in densities for kind in ("lost", "RMSE (m)")]
    return markdown(["filter", "n", *heads], rows, "clutter")


def hidden() -> str:
    """Write how many tracks each filter loses behind a shadow, by what it is told of the detection probability."""
    told = {"function": "function", "number": "0.9", "mean": "mean"}
    table = read("hidden").set_index(["filter", "n", "detection"])
    rows = []
    for name, n in dict.fromkeys(key[:2] for key in table.index):
        found = {kind: table.loc[(name, n, kind)] for kind in told}
        lost, errors = zip(*(_lost(one) for one in found.values()), strict=True)
        ratios = [number(found[kind]["ratio"], 3) for kind in told if kind != "function"]
        rows.append([f"`{name}`", n if n > 1 else "", *lost, errors[0], *ratios])
    heads = [f"lost: {name}" for name in told.values()] + ["RMSE (m): function"]
    heads += [f"ratio: {name}" for kind, name in told.items() if kind != "function"]
    return markdown(["filter", "n", *heads], rows, "hidden")


def hard() -> Table:
    """Return how many tracks each filter loses in scenes drawn at random, and its error over that of mkf."""
    table = read("hard_radar")
    cells = table.set_index(["scene", "in_gate", "filter"])
    rows: list[list[object]] = []
    for scene, in_gate in dict.fromkeys(zip(table["scene"], table["in_gate"], strict=True)):
        found = {
            name: cells.loc[(scene, in_gate, name)] for name in ("auto", "mkf", "bootstrap", "imm")
        }
        auto = found["auto"]
        interval = (
            f" ({number(auto['over_mkf_low'], 3)}, {number(auto['over_mkf_high'], 3)})"
            if auto["over_mkf"] != 1
            else ""
        )
        errors = [
            f"{number(auto['over_mkf'], 3)}{interval}",
            *(number(found[k]["over_mkf"], 3) for k in ("bootstrap", "imm")),
        ]
        rows.append([scene, in_gate, *(int(one["lost"]) for one in found.values()), *errors])
    lost = [f"lost: {name}" for name in ("`auto`", "`mkf`", "`bootstrap`, 1000", "`imm`")]
    ratios = [f"error: {name}" for name in ("`auto`", "`bootstrap`", "`imm`")]
    return ["scene", "in gate", *lost, *ratios], rows


def _lost(row: Any) -> tuple[str, str]:
    return f"{row.lost:.0f} ({row.lost_low:.0f}, {row.lost_high:.0f})", number(row.rmse_median, 3)


TABLES: dict[str, Callable[[], str]] = {"clutter": clutter, "hidden": hidden}
