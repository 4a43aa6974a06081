"""The tables of the page on many targets: trackers of ours and of other libraries on the same scans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from page_format import interval, markdown, number, read


def trackers(scenario: str) -> str:
    """Write how far the estimates of each tracker are from the targets of a scenario, in the order of GOSPA."""
    table = read("trackers").query("scenario == @scenario").sort_values("gospa")
    rows = [
        [f"`{row.tracker}`" if row.tracker.startswith("lmb-") else row.tracker, row.runs]
        + [interval(row, name, 3) for name in ("gospa", "ospa")]
        + [
            number(value, 3)
            for value in (row.gospa_localisation, row.gospa_missed, row.gospa_false)
        ]
        + [number(row.label_switches), number(row.ms_per_scan)]
        for row in (one for _, one in table.iterrows())
    ]
    parts = ["localisation", "missed", "false", "label switches", "ms per scan"]
    return markdown(["tracker", "runs", "GOSPA", "OSPA", *parts], rows, "trackers")


TABLES: dict[str, Callable[[], str]] = {
    f"trackers_{name}": partial(trackers, name) for name in ("crossing", "meeting")
}
