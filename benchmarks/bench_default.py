"""The yardstick of filters: the herded default beside random filters on models that nobody tuned it on.

--part equal      random models, equal particle counts; where the default is above bootstrap, 8 new runs decide
--part kinds      other random models: targets to be found, data that depart from the model, less known of it
--part exponent   how errors and times grow with n
--part times      CPU times of a step, filters by turns in one process
--part budget     the least error within the time of so many steps of bootstrap with 100 particles
--part evaluations  errors over evaluations of the model: random models, and four cases
--part compiled   twelve models, also as compiled functions: errors at equal counts and at equal times
--part scenarios  every named scenario: the default beside the best of the other filters, or trackers

Errors are to the exact or reference posterior mean, in posterior standard deviations; every model counts once, with two runs
at least. The reference's own error is taken out of them: squared error minus the squared standard error that independent
repeats of the reference tell; ratios with it are beside, `raw`. Where that leaves less than half of the square for any
filter, the model gets a better reference for all (see references.py). Tables count the models for which none sufficed.

Filters of `particles` are in the budgets if it is there. Seeds of models below 10,000 are for tuning, from 1,000,000 on for
claims. Killed and started anew it goes on where it was.

python benchmarks/bench_default.py [--part NAMES] [--models 200] [--first-model 1000000] [--runs 2] [--filters NAMES]
python benchmarks/bench_default.py --timing    the times of what was measured, with one worker, for a quiet machine
python benchmarks/bench_default.py --report    only the results files, from the stores
"""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import compiled_models
import compiled_study
import evaluations as spending
import numpy as np
import pandas as pd
import step_times
from common import announce, save, show, write
from over_random import biased, by_budget, debiased, exponents, judged, named, ratios
from peers import FILTERS as PEERS
from references import BETTER, sufficient
from studies import BASELINE, RIVAL, family, measured, models_cell, models_folder, study_parser

from herdfilter.models import random_model
from herdfilter.models.random.model import DEPARTURES
from herdfilter.study import over_models
from herdfilter.study.scenario import load_scenario, scenario_files
from herdfilter.study.statistics import median_interval, paired_ratios

DEFAULT, COUNTERPART = "auto", "auto-random"
FILTERS = (BASELINE, RIVAL, "sqmc-guided", DEFAULT, COUNTERPART, "ranked", "ranked-unguided")
PARTICLES = (20, 50, 100, 500)
GROWING = (100, 1000, 10_000)
MANY = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
MORE = (20_000, 30_000)
"""Further counts of the cheap filters, which would else have time to spare."""
BUDGETS = (7.0, 14.0, 36.0)  # times of a step of bootstrap with 100 particles
DEARER = (0.0, 2.0)  # microseconds per particle
NEW_RUNS = 8
OTHERS = (BASELINE, "ranked", "mixture-kh", RIVAL)
"""Filters beside the default on named scenarios."""
FURTHER = {"lorenz96": ("ukf",), "stochastic_volatility": ("herded-quantile",)}
"""Further filters of a scenario, which are known to be good there."""
FEW = {"bearings_only": (50,)}
"""Further particle counts of a scenario, with which the default is known to fail."""
EVALUATED = ("herded-kh", "herded-chg", DEFAULT, "ranked", "ranked-unguided", RIVAL)
"""Filters whose errors over evaluations are compared with bootstrap's."""
COMPILED = (DEFAULT, "ranked", "ranked-unguided", RIVAL, "sqmc-guided")
"""Filters whose errors at equal times are compared with bootstrap's."""
FROM_50 = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000)
DOUBLED = tuple(25 * 2**k for k in range(11))
"""Particle counts of bootstrap between which its error over evaluations is interpolated."""
SLOW = dict.fromkeys(("reentry", "crossing", "meeting"), 6) | {"harbour_two": 2}
"""Most runs of a scenario: six are the fewest with an interval; the runs of `harbour_two` are of one recording."""
BEYOND = 900_000
"""Models of the scenario `random` come so far behind the first model: those before stay unseen for other parts."""
ENDS = ("", "_low", "_high")
REFERENCE = ["uncertain", "uncertain_share", "better", "unknown"]
BESIDE = ["above", "variance_right", "log_likelihood", "lost", "diverged"]
GENERAL = {"kind": "general", "departure": "", "known": "all"}
RATIOS = [f"raw_{BASELINE}", *(f"to_{BASELINE}{end}" for end in ENDS)]
KINDS = {
    "localisation": {"kind": "localisation"},
    **{departure.replace(" ", "-"): {"departure": departure} for departure in DEPARTURES},
    "likelihood-only": {"known": "likelihood"},
    "simulation-only": {"known": "simulation"},
}
"""Random models of the part `kinds`."""


def renamed(made: pd.DataFrame) -> pd.DataFrame:
    """Name the columns of `judged` as in the results files."""
    columns = dict(zip(("raw", *(f"ratio{end}" for end in ENDS)), RATIOS, strict=True))
    return made.rename(columns={"n_particles": "n", **columns})


def equal(args) -> None:
    """Compare filters with as many particles."""
    raw = sufficient(product(args.filters, args.particles), args.models, args)
    table, made = debiased(raw), judged(raw, BASELINE)
    ours = made[["filter", "n_particles", "models", "compared", *REFERENCE]].copy()
    for base in (BASELINE, RIVAL, COUNTERPART):
        if base in args.filters:
            found = over_models(table, base)
            for end in ENDS:
                ours[f"to_{base}{end}"] = found[f"ratio{end}"]
            ours[f"raw_{base}"] = over_models(biased(raw), base)["ratio"]
    kept = ours.join(made[["ratio_10", "ratio_50", "ratio_90", *BESIDE, "worst"]])
    kept = save("default", kept.rename(columns={"n_particles": "n"}), args.results)
    quiet = [c for c in kept if c.endswith(("_low", "_high"))]
    show("ratios over models", kept.drop(columns=[*quiet, "worst"]), 230)
    others = kept[kept["filter"] != BASELINE]
    show(f"largest ratios to {BASELINE}", others[["filter", "n", "worst"]], 230)
    middle = args.particles[len(args.particles) // 2]
    at_n = table[table["n_particles"] == middle]
    wide = pd.DataFrame({"n": middle, "kind": at_n.groupby("model")["kind"].max()})
    wide.insert(1, "d", [random_model(seed).dim for seed in wide.index])
    for name in args.filters:
        wide[name] = ratios(at_n, name, BASELINE)["ratio"].reindex(wide.index)
    wide["raw"] = ratios(biased(raw[raw["n_particles"] == middle]), args.default, BASELINE)[
        "ratio"
    ].reindex(wide.index)
    wide["from_n"] = smallest(
        {
            n: ratios(table[table["n_particles"] == n], args.default, BASELINE)["ratio"]
            for n in args.particles
        }
    )
    save("default_models", wide.reset_index(), args.results)
    rows = [again(table[table["n_particles"] == n], n, args) for n in args.particles]
    repeated = save("default_again", pd.DataFrame(rows), args.results)
    show(
        f"models where {args.default} was above {BASELINE}, {NEW_RUNS} new runs of each",
        repeated,
        230,
    )


def smallest(by_n: dict[int, pd.Series]) -> pd.Series:
    """Return the smallest count from which on a ratio stays at 1 or below, for each model; infinite if that of none does."""
    below = pd.DataFrame(by_n)[sorted(by_n)] <= 1
    # true where this count and all larger ones are
    stays = below.iloc[:, ::-1].cummin(axis=1).iloc[:, ::-1]
    return stays.idxmax(axis=1).where(stays.any(axis=1), np.inf)


def again(table: pd.DataFrame, n: int, args) -> dict[str, object]:
    """Measure the models at which the default's error exceeds the baseline's anew: in runs of another seed, all of them new.

    The first runs only choose the models. A model stays above where the 95 % interval of the median of the new ratios does.
    """
    first = ratios(table, args.default, BASELINE)["ratio"]
    base, runs = family(args), []
    for model in first.index[first > 1]:
        path = models_folder(args) / "again" / f"{args.default}-{n}-{model}.sqlite"
        both, new = (
            [BASELINE, args.default],
            {"runs": NEW_RUNS, "seed": args.seed + 1, "workers": 1},
        )
        measure = not (args.report or args.timing)
        runs.append(models_cell(base, both, n, int(model), 1, args, path, measure, **new))
    row = {"filter": args.default, "n": n, "models": len(first), "above": len(runs)}
    runs = [found for found in runs if not found.empty]
    if not runs:
        return row | {
            "repeated": 0,
            "stay": 0,
            "share": 0.0,
            "worst": np.nan,
            "largest": "",
            "staying": "",
        }
    both = debiased(pd.concat(runs, ignore_index=True))
    new = ratios(both, args.default, BASELINE).sort_values("ratio", ascending=False)
    stay = new[new["low"] > 1]
    row |= {"repeated": len(new), "stay": len(stay), "share": len(stay) / len(first)}
    row |= {"worst": new["ratio"].max()}
    return row | {
        "largest": named(new["ratio"], both, 3),
        "staying": named(stay["ratio"], both, len(stay)),
    }


def kinds(args) -> None:
    """Compare filters on random models of other kinds: errors to the posterior under the model, and targets lost."""
    tables = []
    for name in args.kinds:
        of_kind = Namespace(**vars(args) | GENERAL | KINDS[name])
        left_out = {COUNTERPART} if of_kind.known != "simulation" else {COUNTERPART, RIVAL}
        filters = [one for one in args.filters if one not in left_out]
        raw = sufficient(product(filters, args.kind_particles), args.kind_models, of_kind)
        made = renamed(judged(raw, BASELINE))
        made.insert(0, "kind", name)
        columns = [
            "n",
            "models",
            "compared",
            *REFERENCE,
            *RATIOS,
            "ratio_90",
            "above",
            "variance_right",
            "lost",
        ]
        tables.append(made[["kind", "filter", *columns, "diverged", "worst"]])
    found = save("default_other_kinds", pd.concat(tables), args.results, ["kind", "filter", "n"])
    show("ratios over models of other kinds", found.drop(columns="worst"), 230)


def exponent(args) -> None:
    """Compare how the errors of the default and the random filters fall with n, and what the steps take."""
    filters = [name for name in (BASELINE, RIVAL, args.default) if name in args.filters]
    raw = sufficient(product(filters, args.growing), args.exponent_models, args)
    found = save("default_exponent", exponents(debiased(raw, 0.0)), args.results)
    show("slope of log error in log n over models", found, 230)
    growth = renamed(judged(raw, BASELINE))[["filter", "n", "models", *REFERENCE, *RATIOS, *BESIDE]]
    growth = save("default_growth", growth, args.results)
    show("errors and times over those of bootstrap", growth, 230)


def times(args) -> None:
    """Compare CPU times of a step with bootstrap's."""
    filters = [name for name in args.filters if name != COUNTERPART]
    models = range(args.first_model, args.first_model + args.times_models)
    table = step_times.measured(filters, args.growing, models, args.seed, args.workers)
    found = save("default_times", step_times.summarised(table), args.results)
    show("CPU times over those of bootstrap", found, 200)


def budget(args) -> None:
    """Compare the least errors within a budget of time, also for a model that is dearer."""
    rivals = [name for name in (BASELINE, RIVAL) if name in args.filters]
    cheap = [name for name in (*rivals, "ranked-unguided") if name in args.filters]
    peers = [name for name in PEERS if name not in args.filters] if args.peers else []
    cells = [*product([*args.filters, *peers], args.many), *product(cheap, args.more)]
    raw = sufficient(cells, args.budget_models, args)
    times = budget_times([([*args.filters, *peers], args.many), (cheap, args.more)], args)
    raw = raw.drop(columns="ms_per_step").merge(times, "left", ["model", "filter", "n_particles"])
    found, as_measured = (
        pd.concat([by_budget(table, BUDGETS, cost, rivals) for cost in DEARER], ignore_index=True)
        for table in (debiased(raw), biased(raw))
    )
    found.insert(7, "raw", as_measured["ratio"])
    found = save("default_budget", found, args.results)
    show(f"least error over that of the best of {' and '.join(rivals)}", found, 230)


def budget_times(cells: Sequence[tuple[Sequence[str], Sequence[int]]], args) -> pd.DataFrame:
    """Return milliseconds of a step, of filters that take turns: the runs of the errors had other company."""
    path = models_folder(args) / f"times-{args.budget_models}.csv"
    if args.timing or not path.is_file():
        models = range(args.first_model, args.first_model + args.budget_models)
        found = [
            step_times.measured(names, counts, models, args.seed, args.workers)
            for names, counts in cells
            if counts
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, pd.concat(found)[["model", "filter", "n", "ms"]])
    return pd.read_csv(path).rename(columns={"n": "n_particles", "ms": "ms_per_step"})


def evaluations(args) -> None:
    """Compare errors with bootstrap's at equal evaluations of the model, and say where the evaluations go."""
    cells = list(product(args.evaluated, args.evaluated_particles))
    raw = sufficient([*cells, *product([BASELINE], args.doubled)], args.models, args)
    found = save("evaluations", spending.over_models(debiased(raw)), args.results)
    show("error over bootstrap's at equal evaluations", found.drop(columns="worst"), 230)
    show("largest ratios", found[["filter", "n", "worst"]], 230)
    models = range(args.first_model, args.first_model + args.models)
    spent = save("evaluations_spent", spending.where(cells, models, args), args.results)
    spent = spent.assign(total=spent["f"] + spent["h"])
    spent = spent.groupby(["filter", "n"], sort=False)[["f", "h", "total"]].agg(["median", "max"])
    spent.columns = [" ".join(column) for column in spent]
    show("evaluations of a step for each particle, over models", spent.reset_index(), 200)
    cells += product([BASELINE], args.doubled)
    cases = spending.as_many(spending.on_cases(cells, args))
    cases = save("evaluations_cases", cases, args.results)
    show("times as many evaluations bootstrap needs for the same error", cases, 200)
    times = np.log(cases["times"])
    means = np.exp(times.groupby([cases["filter"], cases["n"]], sort=False).mean())
    show("geometric mean of the cases", means.reset_index(), 100)
    best = np.exp(times.groupby(cases["case"]).max().mean())
    print(f"of the best filter of each case: {best:.3g}", flush=True)


def compiled(args) -> None:
    """Compare errors with bootstrap's at equal times, of NumPy models and of the same models compiled."""
    cells = [
        *product([BASELINE], args.compiled_many),
        *product(args.compiled_filters, args.compiled_many),
    ]
    runs = compiled_study.measured(cells, args)
    found = save("compiled_cases", compiled_study.compared(runs), args.results)
    shown = found[found["n"].isin(args.compiled_shown)]
    for n, part in shown.groupby("n"):
        table = part.pivot(index="case", columns="filter", values="equal_compiled")
        show(f"error over bootstrap's at equal time, compiled, n = {n}", table.reset_index(), 200)
    means = save("compiled", compiled_study.summarised(shown), args.results)
    show("geometric means over the models", means, 230)


def scenarios(args) -> None:
    """Compare the default with other filters on every named scenario, at equal counts; where targets are many, trackers."""
    rows = []
    for name in args.scenarios:
        base = load_scenario(name)
        name = base.name  # of a path, too
        own, names = args.default, [args.default, *OTHERS, *FURTHER.get(name, ())]
        if base.targets is not None:
            own, names = f"lmb-{own}", list(base.filters)
        runs = min(args.scenario_runs, SLOW.get(name, args.scenario_runs))
        if base.models is not None:
            first = args.first_model + BEYOND
            base = replace(base, models=runs, first_model=first)
            base, runs = replace(base, reference={**(base.reference or {}), "n": args.reference}), 1
        cells = product(names, (*FEW.get(name, ()), *args.scenario_particles))
        table = measured(name, cells, runs, np.inf, args, base)
        known = table.groupby("n_particles") if len(table) else ()
        rows += [beside(name, at_n, own) for _, at_n in known if own in set(at_n["filter"])]
        if name not in {row["scenario"] for row in rows}:
            print(f"{name}: not in the table", flush=True)
    if rows:
        keys = ["scenario", "n"]
        found = save("default_scenarios", pd.DataFrame(rows), args.results, keys)
        show(
            f"{args.default} on named scenarios, over the best other filter",
            found.iloc[:, :10],
            200,
        )
        if args.before is not None:
            then = pd.read_csv(args.before)[[*keys, "ratio", "to_bootstrap", "lost"]]
            both = found[[*keys, "ratio", "to_bootstrap", "lost"]].merge(
                then, "outer", keys, suffixes=("", "_before")
            )
            show("now and before", both, 200)


def beside(name: str, table: pd.DataFrame, own: str) -> dict[str, object]:
    """Ratios of a filter's error to those of the others in the same runs: medians with 95 % intervals.

    The best of the others is that with the smallest median error. A run that failed has an infinite error.
    """
    error = next(
        c for c in ("gospa", "reference_error", "rmse") if c in table and table[c].notna().any()
    )
    table = table.assign(loss=table[error].mask(table["error"].fillna("") != "", np.inf))
    runs = [c for c in ("model", "run") if c in table]
    losses = table.pivot(index=runs, columns="filter", values="loss")
    others = [filter_name for filter_name in losses if filter_name != own]
    best = losses[others].median().idxmin()
    row = {
        "scenario": name,
        "n": int(table["n_particles"].iloc[0]),
        "error": error,
        "runs": len(losses),
    }
    row |= {"best": best} | _over("ratio", losses[own], losses[best])
    diverged = table["diverged"] if "diverged" in table else pd.Series(np.nan, table.index)
    lost = diverged.groupby(table["filter"]).mean()
    row |= {"lost": lost[own], "lost_best": lost[best]}
    for other in [one for one in OTHERS if one in losses]:
        row |= _over(f"to_{other}", losses[own], losses[other])
        row |= {f"lost_{other}": lost[other]}
    return row


def _over(column: str, own: pd.Series, other: pd.Series) -> dict[str, float]:
    values = paired_ratios(own.to_numpy(), other.to_numpy())
    values = values[~np.isnan(values)]
    low, high = median_interval(values)
    return {column: float(np.median(values)), f"{column}_low": low, f"{column}_high": high}


PARTS = {
    part.__name__: part
    for part in (equal, kinds, exponent, times, budget, evaluations, compiled, scenarios)
}


def two_or_more(text: str) -> int:
    """Read a number of runs of a model."""
    if not text.isdigit() or int(text) < 2:
        raise ArgumentTypeError(f"expected two of each model at least, got {text}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    options = study_parser(__doc__, "default")
    options.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    options.add_argument("--filters", nargs="+", default=FILTERS)
    options.add_argument("--default", default=DEFAULT)
    options.add_argument("--models", type=int, default=200)
    options.add_argument("--first-model", type=int, default=0, help="1000000 for a claim")
    options.add_argument("--runs", type=two_or_more, default=2, help="of each model, two at least")
    options.add_argument(
        "--reference", type=int, default=32_768, help="particles of a first reference without grid"
    )
    told = "of its particles, as multiples, for models that it does not suffice for"
    options.add_argument("--better", type=int, nargs="*", default=BETTER, help=told)
    options.add_argument("--particles", type=int, nargs="+", default=PARTICLES)
    options.add_argument(
        "--growing", type=int, nargs="+", default=GROWING, help="counts for the exponents"
    )
    options.add_argument("--exponent-models", type=int, default=40)
    options.add_argument("--times-models", type=int, default=30)
    options.add_argument("--many", type=int, nargs="+", default=MANY, help="counts for the budgets")
    options.add_argument(
        "--more", type=int, nargs="*", default=MORE, help="more for the random filters"
    )
    options.add_argument("--budget-models", type=int, default=24)
    options.add_argument("--evaluated", nargs="+", default=EVALUATED, help="filters")
    options.add_argument("--evaluated-particles", type=int, nargs="+", default=(50, 100, 300))
    options.add_argument(
        "--doubled", type=int, nargs="+", default=DOUBLED, help="bootstrap's counts beside these"
    )
    options.add_argument("--case-runs", type=int, default=20, help="of each of the four cases")
    options.add_argument("--case-reference", type=int, default=60_000, help="particles")
    cases = compiled_models.CASES
    options.add_argument("--compiled-cases", nargs="+", choices=cases, default=list(cases))
    options.add_argument("--compiled-filters", nargs="+", default=COMPILED)
    options.add_argument("--compiled-many", type=int, nargs="+", default=FROM_50)
    options.add_argument("--compiled-shown", type=int, nargs="+", default=(50, 100, 500, 2000))
    options.add_argument("--compiled-runs", type=int, default=3)
    options.add_argument("--compiled-reference", type=int, default=2**18, help="particles")
    options.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options.add_argument("--kind-models", type=int, default=20, help="of each kind")
    options.add_argument("--kind-particles", type=int, nargs="+", default=(100, 300))
    options.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="in the budgets"
    )
    options.add_argument(
        "--before", type=Path, help="an earlier default_scenarios.csv, to be shown beside"
    )
    options.add_argument("--scenarios", nargs="+", default=sorted(scenario_files()))
    options.add_argument("--scenario-runs", type=int, default=12)
    options.add_argument("--scenario-particles", type=int, nargs="+", default=(100, 300))
    options.set_defaults(**GENERAL)
    args = options.parse_args(arguments)
    announce(args.seed)
    for part in args.part:
        PARTS[part](args)


if __name__ == "__main__":
    main()
