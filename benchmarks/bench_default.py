"""The yardstick of filters: the herded default beside bootstrap and SQMC on every scenario of the registry.

At equal particle counts, and at equal time: the random filters get up to 5000 particles for that. Errors are to the exact
or reference posterior mean, to the truth where a scenario has none. The rows of a finished filter and particle count go
to `<out>/<scenario>.csv`, and what is there is not measured again.

python benchmarks/bench_default.py [--scenarios NAMES] [--default auto-kh] [--particles 20 50 100 200 500] [--runs 30]
                                   [--random 20 ... 5000] [--data FOLDER] [--workers W] [--out results/default]
python benchmarks/bench_default.py --timing    the times of all that was measured, anew, for a quiet machine
python benchmarks/bench_default.py --report    only the tables
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from bench_study import measure, measure_times
from common import announce, show
from study_report import BASELINE, RIVAL, curve, read

from herdfilter.evaluation.scenario import scenario_files
from herdfilter.evaluation.statistics import median_interval

DEFAULT = "auto-kh"
PARTICLES = (20, 50, 100, 200, 500)
MANY = (20, 50, 100, 200, 500, 1000, 2000, 5000)
SLOW = {"reentry": 0.2}
"""Share of the runs that a scenario gets."""
TARGETS = {BASELINE: 0.5, RIVAL: 0.75}  # geometric mean over scenarios of the median ratio
MULTIMODAL = ("ungm", "plaza")
"""Scenarios whose posterior has several modes: the time target counts from a model cost of `DEAR` on."""
DEAR = 2.0  # microseconds a particle


def errors_of(table: pd.DataFrame) -> str:
    """Name the column of errors: to the posterior where it is known, else to the truth."""
    return "reference_error" if table["reference_error"].notna().any() else "rmse"


def ratios(table: pd.DataFrame, default: str) -> pd.DataFrame:
    """Paired ratios of the default's error to those of `BASELINE` and `RIVAL` with as many particles, a row a count."""
    column = errors_of(table)
    cells = table.pivot(index="run", columns=["filter", "n_particles"], values=column)
    diverged = table.groupby(["filter", "n_particles"])["diverged"].mean()
    rows = []
    for n in sorted(cells[default].columns):
        row: dict[str, object] = {"n": n, "runs": int(cells[default, n].notna().sum()), "error": column}
        for base in (BASELINE, RIVAL):
            both = cells[[(default, n), (base, n)]].dropna().to_numpy()
            ratio = both[:, 0] / both[:, 1]
            row[base], row[f"{base}_interval"] = np.median(ratio), median_interval(ratio)
            row[f"{base}_rms"] = np.sqrt((both[:, 0] ** 2).mean() / (both[:, 1] ** 2).mean())
        row["diverged"], row["base_diverged"] = diverged[default, n], diverged[BASELINE, n]
        row["failed"] = " and ".join(str(cells[f, n].isna().sum()) for f in (default, BASELINE))
        rows.append(row)
    return pd.DataFrame(rows)


def at_equal_time(table: pd.DataFrame, default: str, times: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Error of the default over that of the baseline in the same time, and whether any random filter beats both.

    `cost` microseconds a particle are added to every filter's time. Between its particle counts the baseline's error is
    interpolated in logarithms; beyond the last, that of the last is taken, to the baseline's favour before the first.
    """
    summary = with_times(table, times)
    summary["ms_per_step"] += 1e-3 * cost * summary["n_particles"]
    curves = {name: curve(rows) for name, rows in summary.groupby("filter", sort=False)}
    rows = []
    for n, error, ms in curves[default]:
        base = curves[BASELINE]
        order = np.maximum.accumulate(base[:, 2])
        theirs = float(
            np.exp(np.interp(np.log(ms), np.log(order), np.log(np.minimum.accumulate(base[:, 1]))))
        )
        better = [
            f"{name} {int(m)}"
            for name, points in curves.items()
            for m, e, t in points
            if name != default and t <= ms and e <= error
        ]
        rows.append({"n": int(n), "ms": ms, "ratio": error / theirs, "better": better})
    return pd.DataFrame(rows)


def with_times(table: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Median error and ms a step of every filter and count, the quiet times where there are any."""
    column = errors_of(table)
    known = table.groupby(["filter", "n_particles"], sort=False)
    summary = known.agg(reference_error_median=(column, "median"), ms_per_step=("ms_per_step", "median"))
    if len(times):
        quiet = times.set_index(["filter", "n_particles"])["ms_per_step"]
        summary["ms_per_step"] = quiet.reindex(summary.index).fillna(summary["ms_per_step"])
    return summary.reset_index()


def report(scenarios: Sequence[str], default: str, folder: Path) -> None:
    """Print the tables of what was measured, and whether the targets are met."""
    tables = {name: read(folder / f"{name}.csv") for name in scenarios}
    tables = {k: t for k, t in tables.items() if len(t) and {default, BASELINE, RIVAL} <= set(t["filter"])}
    found = {name: ratios(table, default) for name, table in tables.items()}
    rows = [
        [
            name,
            row.n,
            row.runs,
            "truth" if row.error == "rmse" else "posterior",
            *(f"{r:.3g} ({low:.2g}, {high:.2g})" for r, (low, high) in part),
            f"{row.bootstrap_rms:.2g}",
            f"{100 * row.diverged:.0f} %",
            f"{100 * row.base_diverged:.0f} %",
            row.failed,
        ]
        for name, table in found.items()
        for row in table.itertuples()
        for part in [[(row.bootstrap, row.bootstrap_interval), (row.sqmc, row.sqmc_interval)]]
    ]
    heads = ["scenario", "n", "runs", "error to", f"/ {BASELINE}", f"/ {RIVAL}", "RMS ratio", "diverged"]
    show(f"{default}, medians of paired ratios", [*heads, f"diverged, {BASELINE}", "failed"], rows, 200)
    every = pd.concat(found.values(), keys=found.keys(), names=["scenario"]).reset_index()
    rows = []
    for n, part in [*every.groupby("n"), ("all", every)]:
        means = {b: np.exp(np.log(np.maximum(part[b].astype(float), 1e-6)).mean()) for b in TARGETS}
        worst = part.loc[part[BASELINE].astype(float).idxmax()]
        more = part[part["diverged"] > part["base_diverged"]]
        rows.append(
            [
                n,
                len(part),
                *(f"{means[b]:.3g} ({'yes' if means[b] <= TARGETS[b] else 'NO'})" for b in TARGETS),
                f"{worst[BASELINE]:.2g} {worst['scenario']} {worst['n']}",
                ", ".join(f"{r.scenario} {r.n}" for r in more.itertuples()) or "none",
            ]
        )
    heads = [
        "n",
        "cells",
        *(f"/ {b} (<= {TARGETS[b]})" for b in TARGETS),
        "worst (<= 1)",
        "diverged more often",
    ]
    show("Geometric means over scenarios; ratios below 1e-6 count as 1e-6", heads, rows, 200)
    report_times(tables, default, folder)


def report_times(tables: dict[str, pd.DataFrame], default: str, folder: Path) -> None:
    """Print error against time."""
    times, rows = read(folder / "timing.csv"), []
    for name, table in tables.items():
        here = times[times["scenario"] == name] if len(times) else times
        for cost in (0.0, DEAR) if name in MULTIMODAL else (0.0,):
            for row in at_equal_time(table, default, here, cost).itertuples():
                judged = "yes" if row.ratio <= 0.5 else "NO"
                front = "yes" if not row.better else f"NO: {row.better[0]}"
                rows.append([name, cost, row.n, f"{row.ms:.3g}", f"{row.ratio:.3g}", judged, front])
    heads = ["scenario", "us a particle", "n", "ms a step", f"error / {BASELINE}'s", "<= 0.5", "on the front"]
    show(f"{default} at equal time; random filters with up to {MANY[-1]} particles", heads, rows, 160)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", nargs="+", default=sorted(scenario_files()))
    parser.add_argument("--default", default=DEFAULT)
    parser.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    parser.add_argument(
        "--random", type=int, nargs="+", default=MANY, help="particle counts of the random filters"
    )
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="folder of the real data")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("results/default"))
    parser.add_argument("--timing", action="store_true", help="measure only times, with one worker")
    parser.add_argument("--report", action="store_true", help="print what was measured")
    args = parser.parse_args(arguments)
    announce(args.seed)
    args.filters = [BASELINE, RIVAL, args.default]
    cells = [(name, n) for name in (BASELINE, RIVAL) for n in args.random]
    cells += [(args.default, n) for n in args.particles]
    for name in () if args.report else args.scenarios:
        if args.timing:
            measure_times(name, cells, args)
        else:
            fewer = argparse.Namespace(**vars(args))
            fewer.runs = max(2, round(args.runs * SLOW.get(name, 1.0)))
            fewer.budget_ms = np.inf
            measure(name, cells, fewer)
    report(args.scenarios, args.default, args.out)


if __name__ == "__main__":
    main()
