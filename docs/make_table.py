"""Print the table of filters of README.md, measured afresh: ``python docs/make_table.py`` (some minutes).

Beside the ratios to the bootstrap filter it prints those of herded points to random ones in the same place.
"""

from __future__ import annotations

import herdfilter as hf
from herdfilter.evaluation import summarise
from herdfilter.evaluation.filters import catalogue

SCENARIOS = ["ungm", "lorenz63", "bearings"]


def main(n: int = 100, runs: int = 20) -> None:
    """Compare the catalogue on three scenarios and print Markdown."""
    tables = {name: hf.compare(name, list(catalogue()), [n], runs, workers=2) for name in SCENARIOS}
    _print({name: summarise(table) for name, table in tables.items()})
    for place in ("herded", "mixture", "augmented"):
        _print(
            {
                name: summarise(table[table["filter"].str.startswith(place)], f"{place}-random")
                for name, table in tables.items()
            }
        )


def _print(summaries: dict) -> None:
    first = next(iter(summaries.values()))
    print(f"\nratio to {first['baseline'].iloc[0]}; median error, ms a step, diverged")
    for i, name in enumerate(first["filter"]):
        rows = [summary.iloc[i] for summary in summaries.values()]
        cells = [f"{r.ratio:.2f} ({r.ratio_low:.2f}, {r.ratio_high:.2f})" for r in rows]
        more = [f"{r.reference_error_median:.3g} {r.ms_per_step:.2g} {r.diverged:.0%}" for r in rows]
        print("|", " | ".join([f"`{name}`", *cells]), "|  ", "; ".join(more))


if __name__ == "__main__":
    main()
