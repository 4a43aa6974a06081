"""The measured study: every filter of the catalogue, scenarios of one to six dimensions, 20 to 500 particles.

The rows of a finished filter and particle count go to `<out>/<scenario>.csv`, and what is there is not measured again:
kill it and start it anew. Seeds hang on the names of filters, so that the parts are the same as a study in one go. A
filter that by its growth so far would take more than `--budget-ms` a step is left out, and the report says so.

python benchmarks/bench_study.py [--scenarios ungm linear-d3 ...] [--filters NAMES] [--particles 20 50 100 200 500]
                                 [--runs 50] [--workers W] [--budget-ms 100] [--out results/study]
python benchmarks/bench_study.py --timing    the times of what was measured, anew, for a quiet machine
python benchmarks/bench_study.py --report    only the tables, targets at n = 100 and break-even costs, from the files
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from common import announce
from study_report import BASELINE, RIVAL, SCENARIOS, read, report, skip_path

import herdfilter as hf
from herdfilter.evaluation import Scenario
from herdfilter.evaluation.filters import catalogue
from herdfilter.evaluation.scenario import Divergence, load_scenario
from herdfilter.evaluation.statistics import median_interval

PARTICLES = (20, 50, 100, 200, 500)
MORE_PARTICLES = (1000, 2000, 5000)  # of the baseline, for the break-even cost
STEEPEST = 3.0  # growth of a step's time with n; what measures as more is another program's disturbance
TIMING_RUNS = 6  # the fewest of whose median there is a 95 % interval, from the least to the largest
TIMING = ["scenario", "filter", "n_particles", "ms_per_step", "ms_low", "ms_high"]
REFERENCES = {
    "plaza": {"type": "large", "n": 30_000, "repeats": 4},
    "uav": {"type": "large", "n": 50_000, "repeats": 4},
}
"""Of scenarios that come without, since it takes minutes."""


def scenario(name: str) -> Scenario:
    """Return a scenario by name; `linear-d3` is the linear chain of dimension 3."""
    base, _, dim = name.partition("-d")
    if base != "linear" or not dim.isdigit():
        found = load_scenario(name)
        return replace(found, reference=found.reference or REFERENCES.get(name))
    chain = load_scenario("linear_chain")
    model = hf.models.linear_chain(int(dim))
    spread = np.eye(model.dim)  # of the state itself, beyond which a filter is worse than none
    for _ in range(200):
        spread = model.F @ spread @ model.F.T + model.Q
    bound = Divergence(float(np.sqrt(np.trace(spread))), 0.25)
    return replace(chain, name=name, model={**chain.model, "dim": int(dim)}, divergence=bound)


def cells_of(args: argparse.Namespace) -> list[tuple[str, int]]:
    """List filters and particle counts, the baseline and its rival first."""
    first = [f for f in (BASELINE, RIVAL) if f in args.filters]
    filters = [*first, *(f for f in args.filters if f not in first)]
    more = {BASELINE: args.more}
    return [(f, n) for f in filters for n in sorted({*args.particles, *more.get(f, ())})]


def measure(name: str, cells: Sequence[tuple[str, int]], args: argparse.Namespace) -> None:
    """Measure what is missing of one scenario."""
    base = scenario(name)
    folder = args.data if base.data else None
    path = args.out / f"{name}.csv"
    done = finished(read(path), args.runs)
    if len(done) and set(done["seed"]) != {args.seed}:
        raise SystemExit(
            f"{path}: measured with seed {done['seed'].iloc[0]}, not {args.seed}; give another --out"
        )
    skipped = {(row.filter, row.n_particles): row.reason for row in read(skip_path(path)).itertuples()}
    for filter_name, n in cells:
        rows = done[done["filter"] == filter_name] if len(done) else done
        if len(rows) and (rows["n_particles"] == n).any():
            continue
        reason = too_dear(rows, n, args.budget_ms)
        if not reason:
            try:
                start = time.perf_counter()
                table = hf.compare(base, [filter_name], [n], args.runs, args.seed, args.workers, data=folder)
                done = pd.concat([done, table], ignore_index=True) if len(done) else table
                write(done, path)
                print(f"{name} {filter_name} {n}: {time.perf_counter() - start:.0f} s", flush=True)
            except (TypeError, ValueError) as error:
                reason = " ".join(str(error).split())
        if reason:
            print(f"{name} {filter_name} {n}: {reason}", flush=True)
            skipped[filter_name, n] = reason
        else:
            skipped.pop((filter_name, n), None)
        write(
            pd.DataFrame(
                [(*key, text) for key, text in skipped.items()],
                columns=["filter", "n_particles", "reason"],
            ),
            skip_path(path),
        )


def finished(table: pd.DataFrame, runs: int) -> pd.DataFrame:
    """Keep the rows of filters and particle counts that have all runs."""
    if table.empty:
        return table
    count = table.groupby(["filter", "n_particles"])["run"].transform("nunique")
    return table[count >= runs].reset_index(drop=True)


def too_dear(rows: pd.DataFrame, n: int, budget_ms: float) -> str:
    """Say why a particle count is left out, by extrapolating the times a step of the smaller ones; else nothing."""
    times = rows[rows["n_particles"] < n].groupby("n_particles")["ms_per_step"].median() if len(rows) else []
    known = [(m, t) for m, t in dict(times).items() if t > 0]
    if not known:
        return ""
    (m, t), growth = known[-1], 1.0
    if len(known) > 1:
        measured = np.log(t / known[-2][1]) / np.log(m / known[-2][0])
        growth = min(max(growth, measured), STEEPEST)
    expected = t * (n / m) ** growth
    return f"{expected:.3g} ms a step expected, budget {budget_ms:g}" if expected > budget_ms else ""


def write(table: pd.DataFrame, path: Path) -> None:
    """Replace a file in one go, so that it is whole whenever the study is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    table.to_csv(part, index=False)
    part.replace(path)


def measure_times(name: str, cells: Sequence[tuple[str, int]], args: argparse.Namespace) -> None:
    """Measure the time a step of those cells that stand in a scenario's file, without any reference."""
    table, path = read(args.out / f"{name}.csv"), args.out / "timing.csv"
    if table.empty:
        return
    base = replace(scenario(name), reference=None)
    measured = set(zip(table["filter"], table["n_particles"], strict=True))
    for f, n in [cell for cell in cells if cell in measured]:
        runs = hf.compare(base, [f], [n], TIMING_RUNS, args.seed, data=args.data if base.data else None)
        ms = runs["ms_per_step"].to_numpy()
        fresh = pd.DataFrame([(name, f, n, np.median(ms), *median_interval(ms))], columns=TIMING)
        kept = read(path)
        if len(kept):
            again = (kept["scenario"] == name) & (kept["filter"] == f) & (kept["n_particles"] == n)
            fresh = pd.concat([kept[~again], fresh], ignore_index=True)
        write(fresh, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", nargs="+", default=SCENARIOS)
    parser.add_argument("--filters", nargs="+", default=list(catalogue()))
    parser.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    parser.add_argument(
        "--more", type=int, nargs="*", default=MORE_PARTICLES, help=f"further counts of {BASELINE}"
    )
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--budget-ms", type=float, default=100.0, help="longest time a step")
    parser.add_argument("--out", type=Path, default=Path("results/study"))
    parser.add_argument("--data", type=Path, help="folder of real data, where a scenario needs some")
    parser.add_argument("--timing", action="store_true", help="measure only times, with one worker")
    parser.add_argument("--report", action="store_true", help="print what was measured")
    args = parser.parse_args(arguments)
    announce(args.seed)
    if not args.report:
        for name in args.scenarios:
            (measure_times if args.timing else measure)(name, cells_of(args), args)
    report(args.scenarios, args.out)


if __name__ == "__main__":
    main()
