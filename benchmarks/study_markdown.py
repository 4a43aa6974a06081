"""Print the tables of filters of README.md and docs/study.md from the files that bench_study.py leaves.

python benchmarks/study_markdown.py [FOLDER] [--particles 20 50 100 200 500] [--filters NAMES] [--scenarios NAMES]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from study_report import BASELINE, RIVAL, SCENARIOS, read

from herdfilter.evaluation import summarise
from herdfilter.evaluation.filters import catalogue

PARTICLES = (20, 50, 100, 200, 500)
TITLES = {"ungm": "UNGM", "lorenz63": "Lorenz-63"}


def main() -> None:
    """Print ratios to the bootstrap filter and to SQMC, the errors themselves and the quiet times, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/study"))
    parser.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    parser.add_argument("--filters", nargs="+", default=None)
    parser.add_argument("--scenarios", nargs="+", default=SCENARIOS)
    args = parser.parse_args()
    files = {name: read(args.folder / f"{name}.csv") for name in args.scenarios}
    timing = read(args.folder / "timing.csv")
    for n in args.particles:
        tables = {name: table[table["n_particles"] == n] for name, table in files.items() if len(table)}
        tables = {name: table for name, table in tables.items() if {BASELINE, RIVAL} <= set(table["filter"])}
        measured = {f for table in tables.values() for f in table["filter"]}
        names = [f for f in args.filters or catalogue() if f in measured]
        if names:
            print(f"\n## n = {n}")
            show(f"ratio to {BASELINE}", names, tables, BASELINE, ratio)
            show(f"ratio to {RIVAL}", names, tables, RIVAL, ratio)
            show("RMS, median, diverged", names, tables, BASELINE, errors)
            if len(timing):
                show_times(names, timing[timing["n_particles"] == n], args.scenarios)


def show(title, names, tables, baseline, cell) -> None:
    """Print one table, a row a filter, a column a scenario."""
    summaries = {name: summarise(table, baseline).set_index("filter") for name, table in tables.items()}
    print_table(title, names, summaries, cell)


def print_table(title, names, tables, cell) -> None:
    """Print one table of rows indexed by filter, one a scenario."""
    heads = [TITLES.get(name, name.replace("linear-d", "linear ")) for name in tables]
    print(f"\n| {title} | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    for name in names:
        cells = [cell(table.loc[name]) if name in table.index else "" for table in tables.values()]
        print(f"| `{name}` | {' | '.join(cells)} |")


def show_times(names, timing, scenarios) -> None:
    """Print the milliseconds a step that were measured on a quiet machine, with their intervals."""
    tables = {name: timing[timing["scenario"] == name].set_index("filter") for name in scenarios}
    tables = {name: table for name, table in tables.items() if len(table)}
    if tables:
        print_table(
            "milliseconds a step",
            [name for name in names if any(name in t.index for t in tables.values())],
            tables,
            milliseconds,
        )


def ratio(row) -> str:
    """Median of the ratios run by run and its interval."""
    if not np.isfinite(row.ratio):
        return ""
    if row.ratio < 1e-6:
        return "0"
    return f"{row.ratio:.2g} ({row.ratio_low:.2g}, {row.ratio_high:.2g})"


def errors(row) -> str:
    """Root mean square, median, share of runs that diverged."""
    if not np.isfinite(row.reference_error):
        return ""
    values = [f"{v:.2g}" if v > 1e-6 else "0" for v in (row.reference_error, row.reference_error_median)]
    return f"{', '.join(values)}, {row.diverged:.0%}"


def milliseconds(row) -> str:
    """Median of the runs and its interval."""
    return f"{row.ms_per_step:.2g} ({row.ms_low:.2g}, {row.ms_high:.2g})"


if __name__ == "__main__":
    main()
