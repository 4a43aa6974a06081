"""The page on `choose`: what it prints for the pendulum, and how good its choices are; see bench_known.py."""

from __future__ import annotations

from collections.abc import Callable

from page_format import RESULTS, interval, markdown, number, read


def choice() -> str:
    """Write what a choice prints."""
    text = (RESULTS / "choice.txt").read_text(encoding="utf-8")
    return f"```text\n{text}```\n"


def choices() -> str:
    """Write the error of each choice on fresh series, over those of the best filter, of the default and of bootstrap."""
    rows = []
    for row in read("choices").to_dict("records"):
        taken = f"`{row['chosen']}`" + (f" {row['n']:,}" if row["n"] else "")
        ratios = [number(row[f"over_{other}"]) for other in ("auto", "bootstrap")]
        best = interval(row, "over_best")
        rows.append([row["scenario"], taken, f"`{row['best']}`", best, *ratios])
    heads = ["scenario", "taken", "best on fresh series", "over the best", "over `auto`"]
    return markdown([*heads, "over `bootstrap`"], rows, "choices")


TABLES: dict[str, Callable[[], str]] = {"choice": choice, "choices": choices}
