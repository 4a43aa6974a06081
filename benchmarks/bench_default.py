"""The yardstick of filters: the herded default beside bootstrap and SQMC on every scenario of the registry.

At equal particle counts, and at equal time: the random filters get up to 5000 particles for that. Errors are to the exact
or reference posterior mean, to the truth where a scenario has none.

python benchmarks/bench_default.py [--scenarios NAMES] [--default auto-kh] [--particles 20 50 100 200 500] [--runs 30]
                                   [--random 20 ... 5000] [--data FOLDER]
python benchmarks/bench_default.py --timing    the times of what was measured, for a quiet machine
python benchmarks/bench_default.py --report    only the results files, from the stores
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from common import announce, save, show
from scipy.stats import gmean
from studies import BASELINE, RIVAL, curve, error_column, measured, study_parser, summary

from herdfilter.evaluation.scenario import scenario_files

DEFAULT = "auto-kh"
PARTICLES = (20, 50, 100, 200, 500)
MANY = (20, 50, 100, 200, 500, 1000, 2000, 5000)
SLOW = {"reentry": 0.2}
"""Share of the runs that a scenario gets."""
LINEAR = ("linear_gaussian", "linear_chain")
"""Scenarios that the default solves exactly: left out of the geometric mean, which would be near 0."""
CHEAP = ("ungm", "plaza", "stochastic_volatility")
"""Scenarios whose model costs nanoseconds: at equal time they are looked at with a dearer model, too."""
DEAR = 2.0  # microseconds per particle
ENDS = ("", "_low", "_high")


def ratios(made: pd.DataFrame, name: str, default: str) -> pd.DataFrame:
    """Return the default's error over those of `BASELINE` and `RIVAL` with as many particles, a row for each count."""
    base = made[made["filter"] == BASELINE].set_index("n_particles")
    ours = made[made["filter"] == default].sort_values("n_particles")
    found = ours[[f"to_{b}{end}" for b in (BASELINE, RIVAL) for end in ENDS]]
    found = found.assign(
        diverged=ours["diverged"], diverged_bootstrap=base["diverged"].reindex(ours["n_particles"]).to_numpy()
    )
    found.insert(0, "n", ours["n_particles"])
    found.insert(0, "scenario", name)
    return found


def geometric_means(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each particle count: geometric means over scenarios; ratios below 1e-6 count as 1e-6."""
    kept = table[~table["scenario"].isin(LINEAR)]
    columns = [f"to_{BASELINE}", f"to_{RIVAL}"]
    return kept.groupby("n")[columns].agg(lambda r: float(gmean(np.maximum(r, 1e-6)))).reset_index()


def at_equal_time(made: pd.DataFrame, default: str, cost: float, error: str) -> pd.DataFrame:
    """Error of the default over that of the baseline in the same time, and whether any random filter beats both.

    `cost` microseconds per particle are added to every filter's time. Between its particle counts the baseline's error is
    interpolated in logarithms; beyond the last, that of the last is taken, to the baseline's favour before the first.
    """
    dearer = made.assign(ms_per_step=made["ms_per_step"] + 1e-3 * cost * made["n_particles"])
    curves = {name: curve(rows, error) for name, rows in dearer.groupby("filter", sort=False)}
    _, errors, times = curves[BASELINE].T
    log_times, log_errors = np.log(np.maximum.accumulate(times)), np.log(np.minimum.accumulate(errors))
    rows = []
    for n, ours, ms in curves[default]:
        theirs = float(np.exp(np.interp(np.log(ms), log_times, log_errors)))
        better = [
            f"{name} {int(m)}"
            for name, points in curves.items()
            for m, e, t in points
            if name != default and t <= ms and e <= ours
        ]
        rows.append({"n": int(n), "ms": ms, "ratio": ours / theirs, "better": ", ".join(better[:1])})
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    options = study_parser(__doc__, "default")
    options.add_argument("--scenarios", nargs="+", default=sorted(scenario_files()))
    options.add_argument("--default", default=DEFAULT)
    options.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    options.add_argument("--random", type=int, nargs="+", default=MANY, help="counts of the random filters")
    options.add_argument("--runs", type=int, default=30)
    args = options.parse_args(arguments)
    announce(args.seed)
    cells = [(name, n) for name in (BASELINE, RIVAL) for n in args.random]
    cells += [(args.default, n) for n in args.particles]
    equal_n, equal_time = [], []
    for name in args.scenarios:
        runs = max(2, round(args.runs * SLOW.get(name, 1.0)))
        table = measured(name, cells, runs, np.inf, args)
        if table.empty or not {BASELINE, RIVAL, args.default} <= set(table["filter"]):
            continue
        made, error = summary(name, table, args), f"{error_column(table)}_median"
        equal_n.append(ratios(made, name, args.default))
        for cost in (0.0, DEAR) if name in CHEAP else (0.0,):
            found = at_equal_time(made, args.default, cost, error)
            equal_time.append(found.assign(scenario=name, us_per_particle=cost))
    if equal_n:
        counts, times = pd.concat(equal_n), pd.concat(equal_time)
        times = times[["scenario", "us_per_particle", "n", "ms", "ratio", "better"]]
        counts = save("default", counts, args.results, ["scenario", "n"])
        save("default_means", geometric_means(counts), args.results)
        save("default_time", times, args.results, ["scenario", "us_per_particle", "n"])
        show(f"{args.default}, medians of paired ratios", counts, 200)
        show(f"{args.default} at equal time; random filters with up to {max(args.random)} particles", times)


if __name__ == "__main__":
    main()
