"""Every filter of the catalogue, and variations, on scenarios that it is made for, with 20 to 500 particles.

Filters of one target run on scenarios of one to four dimensions. What needs modes, linear parts or many targets runs on a
scenario that has them, beside the filters that the scenario names.

Errors are to the exact or a reference posterior mean; ratios are medians over runs of the ratio to another filter with as
many particles in the same run. From the times it follows how much a model must cost for a herded filter to gain at equal
time. A filter that by its growth so far would take more than `--budget-ms` per step is left out.

python benchmarks/bench_study.py [--scenarios ungm linear-d3 ...] [--filters NAMES] [--particles 20 100 500]
python benchmarks/bench_study.py --timing    the times of what was measured, for a quiet machine
python benchmarks/bench_study.py --report    only the results files, from the stores
python benchmarks/bench_study.py --board auto ranked    rows of the board
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from board import entrant
from board import rows as board_rows
from common import announce, save, show
from scipy.interpolate import make_interp_spline
from studies import (
    BASELINE,
    RIVAL,
    VARIATIONS,
    curve,
    filter_tables,
    measured,
    scenario,
    study_parser,
    summary,
)

from herdfilter.catalogue.specifications import catalogue
from herdfilter.study import summarise

SCENARIOS = ("ungm", "lorenz63", "bearings", "linear-d1", "linear-d4")
OWN = {"manoeuvre": "bootstrap", "inertial_terrain": "bootstrap", "crossing": "lmb-bootstrap"}
"""Scenarios of which the filters are those that they name, and the filter that these are compared with there."""
PARTICLES = (20, 100, 500)
FEW = 100
"""Most particles of the filters that are not in `CURVES`."""
CURVES = (
    BASELINE,
    RIVAL,
    "auto",
    "herded-kh",
    "herded-chg",
    "kalman-mixture-kh",
    "augmented-kh",
    "augmented-gauss-kh",
)
CURVES += ("guided-augmented-gauss-kh", "herded-quantile")
"""Filters whose errors pages and pictures show at every count, or the cost of a model from which on they gain."""
OWN_PARTICLES = (100,)
MORE_PARTICLES = (1000, 2000, 5000)  # of the baseline, for the break-even cost
COLUMNS = {
    "scenario": "scenario",
    "n_particles": "n",
    "filter": "filter",
    **{
        f"to_{base}{end}": f"to_{base}{end}"
        for base in (BASELINE, RIVAL)
        for end in ("", "_low", "_high")
    },
    "rms": "rms",
    "median": "median",
    "diverged": "diverged",
    "failures": "failed",
    "ms_per_step": "ms",
    "ms_low": "ms_low",
    "ms_high": "ms_high",
}
"""Columns of a summary, and what they are called in the results file."""


def herded(name: str) -> bool:
    """Whether a filter of the catalogue draws its points by herding."""
    return bool({"kh", "chg"} & set(name.split("-")))


def cells(
    filters: Sequence[str],
    particles: Sequence[int],
    more: Sequence[int],
    curves: Sequence[str] = CURVES,
) -> list[tuple[str, int]]:
    """List filters and particle counts, the baseline and its rival first; `curves` are the filters with more than `FEW`."""
    first = [f for f in (BASELINE, RIVAL) if f in filters]
    ordered = [*first, *(f for f in filters if f not in first)]
    counts = {f: {n for n in particles if n <= FEW or f in curves} for f in ordered} | {
        BASELINE: {*particles, *more}
    }
    return [(f, n) for f in ordered for n in sorted(counts[f])]


def break_even(ours: np.ndarray, base: np.ndarray) -> tuple[float, int, float, bool]:
    """Return the least cost of the model from which on a filter gains over another at equal time.

    With a cost c per particle, n particles take ``t(n) + c n``. The other filter needs n_b particles for the error that ours
    has with n; so ours gains from ``c = (t(n) - t_b(n_b)) / (n_b - n)`` on.

    Parameters
    ----------
    ours, base : ndarray, shape (k, 3)
        Particle counts, errors, milliseconds per step.

    Returns
    -------
    tuple
        The cost in microseconds, 0 if ours gains already, infinite if never; our particle count; the other's for the same
        error; whether that lies beyond those measured.
    """
    log_n, log_error, log_t = np.log(base).T
    log_error = np.minimum.accumulate(log_error)  # an error that grows with n is noise
    distinct = np.append(True, np.diff(log_error) < 0)
    best = (np.inf, int(ours[0, 0]), np.inf, False)
    if distinct.sum() < 2:
        return best
    # lines through the points, continued beyond the ends along the last piece
    count = make_interp_spline(log_error[distinct][::-1], log_n[distinct][::-1], k=1)
    time = make_interp_spline(log_n, log_t, k=1)
    for n, error, ms in ours:
        needed = float(np.exp(count(np.log(error))))
        if needed <= n:
            continue
        cost = max(0.0, 1e3 * (ms - float(np.exp(time(np.log(needed))))) / (needed - n))
        if cost < best[0]:
            best = (cost, int(n), needed, not base[0, 0] <= needed <= base[-1, 0])
    return best


def break_even_costs(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Tell for every herded filter of a scenario from which cost of the model on it gains at equal time."""
    curves = {
        f: curve(rows)
        for f, rows in table.groupby("filter", sort=False)
        if f == BASELINE or herded(f)
    }
    base, rows = curves.pop(BASELINE), []
    for f, points in curves.items():
        if len(points) and len(base) > 1:
            cost, n, needed, beyond = break_even(points, base)
            row = {"scenario": name, "filter": f, "us_per_particle": cost, "n": n}
            rows.append(row | {"n_of_bootstrap": needed, "extrapolated": beyond})
    return pd.DataFrame(rows)


def own_filters(name: str, args) -> pd.DataFrame:
    """Summarise the filters that a scenario names: the errors are to its reference, to the truth, or GOSPA."""
    shown, base = scenario(name), OWN[name]
    names = [base, *(f for f in shown.filters if f != base)]
    runs = max(6, args.runs // 2 if shown.targets is not None else args.runs)
    table = measured(name, [(f, n) for f in names for n in args.own_particles], runs, np.inf, args)
    made = summarise(table, base)
    return made.rename(
        columns={f"ratio{end}": f"to_{BASELINE}{end}" for end in ("", "_low", "_high")}
    )


def with_errors(made: pd.DataFrame) -> pd.DataFrame:
    """Add the columns `rms` and `median` of the error that a scenario is judged by."""
    error = next(
        e
        for e in ("gospa", "reference_error", "rmse")
        if f"{e}_median" in made and made[f"{e}_median"].notna().any()
    )
    return made.assign(rms=made[error], median=made[f"{error}_median"])


def board(args) -> None:
    """Measure filters on the random models of a day, and the baseline against itself, with other random numbers."""
    tables = {f"{BASELINE} again": {"proposal": "BootstrapProposal()"}} | filter_tables(*args.board)
    entrants = dict(entrant({name: table}) for name, table in tables.items())
    store = args.stores / f"board-{args.board_date}.sqlite"
    store.parent.mkdir(parents=True, exist_ok=True)
    run = {"workers": args.workers, "progress": True, "store": store, "resume": True}
    rows = board_rows(entrants, args.board_models, args.board_date, None, **run)
    found = save("board", pd.DataFrame(rows), args.results, ["filter", "board", "seed", "models"])
    show("Rows of the board", found.T.reset_index(), 240)


def main(arguments: Sequence[str] | None = None) -> None:
    options = study_parser(__doc__, "study")
    options.add_argument("--scenarios", nargs="+", default=[*SCENARIOS, *OWN])
    one_target = [name for name, table in catalogue().items() if "tracker" not in table]
    options.add_argument("--filters", nargs="+", default=[*one_target, *VARIATIONS])
    options.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    options.add_argument(
        "--more", type=int, nargs="*", default=MORE_PARTICLES, help=f"counts of {BASELINE}"
    )
    options.add_argument(
        "--curves",
        nargs="*",
        default=CURVES,
        help=f"filters that get more than {FEW} particles, too",
    )
    options.add_argument(
        "--own-particles", type=int, nargs="+", default=OWN_PARTICLES, help=f"on {', '.join(OWN)}"
    )
    options.add_argument("--runs", type=int, default=12)
    options.add_argument("--budget-ms", type=float, default=25.0, help="longest time per step")
    options.add_argument(
        "--board", nargs="+", metavar="FILTER", help="make only rows of the board, of these filters"
    )
    options.add_argument(
        "--board-date",
        default=f"{datetime.now(UTC):%Y-%m-%d}",
        help="date, or seed of the first model",
    )
    options.add_argument("--board-models", type=int, default=200)
    args = options.parse_args(arguments)
    announce(args.seed)
    if args.board:
        board(args)
        return
    summaries, costs = [], []
    for name in args.scenarios:
        if name in OWN:
            summaries.append(with_errors(own_filters(name, args)).assign(scenario=name))
            continue
        wanted = cells(args.filters, args.particles, args.more, args.curves)
        table = measured(name, wanted, args.runs, args.budget_ms, args)
        if table.empty or not {BASELINE, RIVAL} <= set(table["filter"]):
            print(f"{name}: no table, as {BASELINE} and {RIVAL} are not both measured")
            continue
        made = summary(name, table, args)
        summaries.append(with_errors(made).assign(scenario=name))
        costs.append(break_even_costs(name, made))
    if summaries:
        found = pd.concat(summaries).reindex(columns=list(COLUMNS)).rename(columns=COLUMNS)
        save("study", found, args.results, ["scenario", "n", "filter"])
        show("Errors, ratios and times; all of them in study.csv", found.sort_values("n"), 240)
        gains = pd.concat(costs) if costs else pd.DataFrame()
        if len(gains):
            save("break_even", gains, args.results, ["scenario", "filter"])
            show(
                f"Cost of a model from which on the error is below {BASELINE}'s at equal time",
                gains,
            )


if __name__ == "__main__":
    main()
