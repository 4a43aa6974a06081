"""The tables of the page on many targets: trackers of ours and of other libraries on the same scans."""

from __future__ import annotations

from collections.abc import Callable

from page_format import Table, interval, markdown, number, read


def trackers() -> Table:
    """Return how far each tracker's estimates are from the targets of two scenarios, in the order of the second."""
    table = read("trackers").set_index(["tracker", "scenario"])
    scenarios = ("crossing", "meeting")
    names = table.xs("meeting", level="scenario")["gospa"].sort_values().index
    rows: list[list[object]] = []
    for name in names:
        found = [table.loc[(name, scenario)] for scenario in scenarios]
        cells = [
            (interval(row, "gospa", 3), number(row.label_switches), number(row.ms_per_scan))
            for row in found
        ]
        rows.append([f"`{name}`" if name.startswith("lmb-") else name, *cells[0], *cells[1]])
    parts = ("GOSPA", "label switches", "ms per scan")
    heads = [f"{scenario}: {part}" for scenario in scenarios for part in parts]
    return ["tracker", *heads], rows


def speed() -> str:
    """Write the time of a scan for few and many tracks, and its ratio to single filters for many."""
    table = read("speed_tracker").set_index(["filter", "association", "tracks"])
    counts = sorted(set(table.index.get_level_values("tracks")))
    rows = []
    for name, association in dict.fromkeys(key[:2] for key in table.index):
        found = [table.loc[(name, association, count)] for count in counts]
        times = [number(row["ms"], 3) for row in found]
        rows.append([f"`{name}`", association, *times, number(found[-1]["ratio"], 3)])
    heads = [*(f"{count} tracks, ms" for count in counts), "ratio"]
    return markdown(["filter", "association", *heads], rows, "speed_tracker")


TABLES: dict[str, Callable[[], str]] = {"speed_tracker": speed}
