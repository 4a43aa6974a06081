"""Print the tables of filters of README.md and docs/benchmarks.md from the files that bench_study.py leaves.

python benchmarks/study_markdown.py [FOLDER] [--particles 100] [--filters NAMES]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from study_report import BASELINE, RIVAL, SCENARIOS, read

from herdfilter.evaluation import summarise


def main() -> None:
    """Print ratios to the bootstrap filter and to SQMC, then the errors themselves, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/study"))
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--filters", nargs="+", default=None)
    parser.add_argument("--scenarios", nargs="+", default=SCENARIOS)
    args = parser.parse_args()
    tables = {}
    for name in args.scenarios:
        table = read(args.folder / f"{name}.csv")
        if len(table):
            table = table[table["n_particles"] == args.particles]
            if {BASELINE, RIVAL} <= set(table["filter"]):
                tables[name] = table
    names = args.filters or list(dict.fromkeys(f for table in tables.values() for f in table["filter"]))
    for baseline in (BASELINE, RIVAL):
        show(f"ratio to {baseline}", names, tables, baseline, ratio)
    show("RMS, median, diverged", names, tables, BASELINE, errors)


def show(title, names, tables, baseline, cell) -> None:
    """Print one table, a row a filter, a column a scenario."""
    summaries = {name: summarise(table, baseline).set_index("filter") for name, table in tables.items()}
    print(f"\n| {title} | {' | '.join(summaries)} |\n|{'---|' * (len(summaries) + 1)}")
    for name in names:
        cells = [cell(s.loc[name]) if name in s.index else "" for s in summaries.values()]
        print(f"| `{name}` | {' | '.join(cells)} |")


def ratio(row) -> str:
    """Median of the ratios run by run and its interval."""
    if not np.isfinite(row.ratio):
        return ""
    if row.ratio < 1e-6:
        return "0"
    return f"{row.ratio:.2g} ({row.ratio_low:.2g}, {row.ratio_high:.2g})"


def errors(row) -> str:
    """Root mean square, median, share of runs that diverged."""
    return f"{row.reference_error:.2g}, {row.reference_error_median:.2g}, {row.diverged:.0%}"


if __name__ == "__main__":
    main()
