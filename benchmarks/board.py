"""The board: any filter on random models of the day, beside the bootstrap filter, in one row of ratios with intervals.

FILTER is a name that `herdfilter filters` lists, or file.py:name or module:name of a function or class (model, n_particles,
rng) that returns an object with run(observations). Its result has means (T, d), and may have covariances and log_likelihood.
The code of the file is run. The page "The board" has the definition, which only another version changes.

python benchmarks/board.py FILTER [--models 20] [--seed 2026-11-27] [--particles 50 500] [--workers 2] [--out DIR] [--resume]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from scipy.optimize import nnls

from herdfilter._checks import as_array, check_count, check_methods, one_of, short_repr
from herdfilter._repr import in_blocks
from herdfilter._version import __version__
from herdfilter.catalogue.expressions import Imports, prefix_errors
from herdfilter.catalogue.specifications import FilterFactory, resolve_filters, takes_keyword
from herdfilter.filters.progress import say
from herdfilter.models import linear_chain
from herdfilter.models.from_functions import cloudpickle
from herdfilter.models.simulation import simulate
from herdfilter.study.columns import digits
from herdfilter.study.engine import run_study
from herdfilter.study.machine import machine
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import geometric_mean, of, paired_ratios
from herdfilter.study.tables import Divergence

LINES = {
    "error": "error / bootstrap's",
    "equal_time": "error / bootstrap's, equal time",
    "log_likelihood": "log-likelihood error / bootstrap's",
    "time": "time per step / bootstrap's",
    "variance_right": "models: right variance",
    "lost": "models: lost, not by bootstrap",
    "uncertain": "models: uncertain reference",
    "compared": "models compared",
    "failures": "runs failed",
}
"""Number of the row -> what the printed table calls it."""


@dataclass(frozen=True)
class BoardDefinition:
    """All that decides a row beside the filter; a change needs another version."""

    version: int = 1
    models: int = 200  # of `RandomModel`; fewer are a trial
    runs: int = 2  # of each model
    particles: tuple[int, ...] = (50, 500)
    ladder: tuple[int, ...] = (
        10,
        20,
        50,
        100,
        200,
        500,
        1000,
        2000,
        5000,
    )  # of bootstrap, for equal times
    reference: Mapping[str, Any] = field(
        default_factory=lambda: {
            "type": "exact-or-guided",
            "n": 32768,
            "repeats": 2,
            "filter": ["sqmc", "bootstrap"],
        }
    )
    divergence: Divergence = field(
        default_factory=lambda: Divergence(2.0, final_part=0.25, in_spreads=True)
    )
    first_seed: int = 10_000_000
    seeds_per_day: int = 1000
    least_error: float = 1e-3  # posterior standard deviations, or units of log-likelihood; smaller errors count as this
    right_variance: tuple[float, float] = (
        0.8,
        1.25,
    )  # ratios of variances between these count as right


DEFINITION = BoardDefinition()
BASELINE = "bootstrap"
SECONDS = 6.0  # that a model takes a processor core, roughly


@dataclass(frozen=True)
class _Entrant:
    """A caller's filter, whose ``run`` may take the observations alone: random models have neither dt nor controls."""

    build: FilterFactory

    def __call__(self, model: Any, n_particles: int, rng: np.random.Generator) -> Any:
        built = self.build(model, n_particles, rng)
        check_methods("returned", built, "run")
        known = [key for key in ("dt", "controls") if takes_keyword(built.run, key)]
        return SimpleNamespace(
            run=lambda z, **told: built.run(z, **{key: told[key] for key in known})
        )


def rows(
    entrants: Mapping[str, FilterFactory], models: int, seed: Any, particles: Any, **run: Any
) -> list[pd.Series[Any]]:
    """Return the rows of filters that share one study, and so the runs of the baseline.

    `seed` is that of the first model, or a date, or None for today; `particles` 50, 500, or None for both; `run` what
    `run_study` takes: workers, progress, store and resume. Numbers with n particles end in n: ``error_n`` and
    ``equal_time_n`` are ratios to bootstrap, geometric means over models; ends of intervals at 95 % are in ``error_n_low``
    and so on.
    """
    models = check_count("models", models, most=DEFINITION.seeds_per_day)
    first = first_seed(seed)
    changes: Any = {
        key: getattr(DEFINITION, key) for key in ("runs", "particles", "reference", "divergence")
    }
    scenario = replace(load_scenario("random"), name="board", **changes)
    study = plan_study(
        scenario, {BASELINE: BASELINE, **entrants}, particles, models=models, first_model=first
    )
    for n in study.particles:
        one_of("particles", str(n), map(str, DEFINITION.particles))
    study = replace(
        study, more={BASELINE: [n for n in DEFINITION.ladder if n not in study.particles]}
    )
    if run["progress"]:
        workers = check_count("workers", run["workers"])
        time = f"about {max(1, models * SECONDS / workers / 60):.0f} min with {workers} workers"
        say(
            f"board {DEFINITION.version}: {DEFINITION.runs} runs of each of {models} models from seed {first}, {time}"
        )
    runs = run_study(study, **run).runs
    about = {
        "board": DEFINITION.version,
        "herdfilter": __version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seed": first,
    }
    about |= {"models": models, "trial": models < DEFINITION.models}
    about |= {"machine": f"{machine()['processor']}, {machine()['cores']} cores"}
    return [
        pd.Series({"filter": name} | about | numbers(runs, name, study.particles), name=name)
        for name in entrants
    ]


def entrant(filter: Any) -> tuple[str, FilterFactory]:  # noqa: A002
    """Return name and factory of a filter of the catalogue, of a file or in a mapping.

    It runs three steps on a linear model of one dimension first.
    """
    if isinstance(filter, str) and ":" in filter:
        place, _, part = filter.rpartition(":")
        found = Imports((place,)).resolve(filter)
        if place.endswith(".py"):  # no other process can import it by its name
            cloudpickle().register_pickle_by_value(sys.modules[found.__module__])
        filter = {f"{Path(place).name}:{part}": found}  # noqa: A001
    factories = resolve_filters(filter)
    ((name, factory),) = list(factories.items())[-1:]
    if len(factories) > 1 or (name == BASELINE and filter not in (name, {name: name})):
        expected = f"one, and no other called {BASELINE}, which all are measured by"
        raise ValueError(f"filter: expected {expected}, got {', '.join(factories)}")
    if isinstance(filter, Mapping) and callable(filter[name]):
        factory = _Entrant(factory)
    with prefix_errors(f"filter {name}: "):
        built = factory(linear_chain(1), DEFINITION.particles[0], np.random.default_rng(0))
        result = built.run(simulate(linear_chain(1), 3, rng=0)[1], dt=1.0, controls=None)
        if not hasattr(result, "means"):
            raise TypeError(f"run: expected a result with means (T, d), got {short_repr(result)}")
        as_array("means", result.means, (3, 1))
    return name, factory


def first_seed(seed: Any) -> int:
    """Return the seed of the first model: given, or of a day, before which nobody could tune on its models."""
    if isinstance(seed, str):
        try:
            seed = int(seed) if seed.isdecimal() else date.fromisoformat(seed)
        except ValueError:
            raise ValueError(
                f"seed: expected a date such as 2026-11-27, or an integer, got {short_repr(seed)}"
            ) from None
    if seed is None or isinstance(seed, date):
        return (
            DEFINITION.first_seed
            + DEFINITION.seeds_per_day * (seed or datetime.now(UTC)).toordinal()
        )
    return check_count("seed", seed, minimum=0, most=None)


def numbers(runs: pd.DataFrame, name: str, particles: Iterable[int]) -> dict[str, float]:
    """Return the numbers of a row, from the runs of a filter and of bootstrap.

    A model's error is the root mean square over its runs, less the reference's own. If less than half of the square is left,
    half stays, and the reference is too uncertain. A failed run has an infinite error.
    """
    failed = runs["error"].fillna("") != ""
    runs = runs.assign(
        failed=failed,
        lost=failed | runs["diverged"].astype(bool),
        raw=(runs["reference_error_sd"] ** 2).mask(
            failed & runs["reference_uncertainty"].notna(), np.inf
        ),
        reference=runs["reference_uncertainty"] ** 2,
        log_likelihood=runs["log_likelihood_error"] ** 2,
        time=runs["ms_per_step"],
    )
    kinds = dict.fromkeys(("raw", "reference", "log_likelihood"), "mean") | {
        "variance_ratio": "median",
        "failed": "sum",
    }
    kinds["time"] = "min"  # what else the machine does only adds to it
    models: Any = runs.groupby(["filter", "n_particles", "model"]).agg(kinds)
    models["uncertain"] = ~(models["reference"] <= models["raw"] / 2)
    models["error"] = np.maximum(models["raw"] - models["reference"], models["raw"] / 2)
    for column in ("raw", "log_likelihood", "error"):
        models[column] = np.sqrt(models[column]).clip(lower=DEFINITION.least_error)
    lost = runs.pivot(
        index=["model", "run"], columns=["filter", "n_particles"], values="lost"
    ).astype(bool)
    row, (low, high) = dict[str, float](), DEFINITION.right_variance
    for n in particles:
        own, base = models.loc[name, n], models.loc[BASELINE, n]
        row |= {
            f"compared_{n}": int(np.isfinite(own["error"]).sum()),
            f"failures_{n}": int(own["failed"].sum()),
        }
        own, base = (one[np.isfinite(base["error"])] for one in (own, base))
        equal = [
            in_time(ms, models.loc[BASELINE].xs(model, level="model"))
            for model, ms in own["time"].items()
        ]
        own, base = (
            own.assign(equal_time=own["error"]),
            base.assign(equal_time=[error for _, error in equal]),
        )
        for key in ("error", "equal_time", "raw", "time", "log_likelihood"):
            ratios = paired_ratios(own[key].to_numpy(), base[key].to_numpy())
            row |= geometric_mean(f"{key}_{n}", ratios[~np.isnan(ratios)])
        row[f"beyond_{n}"] = of(
            np.mean, np.array([count > DEFINITION.ladder[-1] for count, _ in equal])
        )
        row[f"variance_right_{n}"] = of(
            np.mean, own["variance_ratio"].dropna().between(low, high).to_numpy()
        )
        row[f"lost_{n}"] = float(
            (lost[name, n] & ~lost[BASELINE, n]).groupby(level="model").any().mean()
        )
        row[f"uncertain_{n}"] = float((own["uncertain"] | base["uncertain"]).mean())
    return row


def in_time(time: float, ladder: pd.DataFrame) -> tuple[float, float]:
    """Return the number of bootstrap particles that take a time, and their error, from those of growing particle counts.

    The time is a line over the count, fitted with relative residuals; the number is not below the smallest count. Between
    two counts log error is linear in log n, and beyond the largest it falls with the root of n.
    """
    counts, times, errors = (
        ladder.loc[np.isfinite(ladder["error"]), ["time", "error"]].reset_index().to_numpy(float).T
    )
    if not len(counts):
        return np.nan, np.nan
    overhead, each = nnls(np.column_stack([1 / times, counts / times]), np.ones(len(times)))[0]
    n = float(
        np.fmax((time - overhead) / max(each, 1e-6 * overhead), counts[0])
    )  # without a time, of a failed filter, too
    return n, float(
        np.exp(np.interp(np.log(n), np.log(counts), np.log(errors)))
        * min(1.0, np.sqrt(counts[-1] / n))
    )


def table_of(row: pd.Series[Any], counts: Sequence[int]) -> list[str]:
    """Return a row as a table with a column for each particle count, and what to do with it."""

    def cell(key: str) -> str:
        if isinstance(row[key], int):
            return str(row[key])
        low, high = (row.get(f"{key}_{end}", 0.0) for end in ("low", "high"))
        return digits(row[key]) + (f" ({digits(low)}, {digits(high)})" if high > low else "")

    title = f"{row['filter']} on the board, version {row['board']}: {row['models']} models from seed {row['seed']}"
    table = [[label, *(cell(f"{name}_{n}") for n in counts)] for name, label in LINES.items()]
    next_step = "To enter it, send row and code as a pull request: the page The board says how."
    end = (
        f"This is a trial; a row of the board has {DEFINITION.models} models."
        if row["trial"]
        else next_step
    )
    return [title, "", *in_blocks(["", *(f"n = {n}" for n in counts)], table), "", end]


def add_to(path: Path, row: pd.Series[Any]) -> None:
    """Add a row to a file."""
    rounded = pd.DataFrame([row]).map(
        lambda value: float(f"{value:.4g}") if isinstance(value, float) else value
    )
    pd.concat([pd.read_csv(path), rounded] if path.exists() else [rounded]).to_csv(
        path, index=False
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("filter")
    options.add_argument(
        "--models", type=int, default=DEFINITION.models, help="random models; fewer are a trial"
    )
    options.add_argument("--seed", help="a date, or the seed of the first model; by default today")
    options.add_argument("--particles", type=int, nargs="+", default=DEFINITION.particles)
    options.add_argument("--workers", type=int, default=cpu_count())
    options.add_argument(
        "--out", type=Path, help="folder for board.csv, and a store that keeps each run at once"
    )
    options.add_argument(
        "--resume",
        action="store_true",
        help="continue the row in --out, with more --models if you like",
    )
    args = options.parse_args(arguments)
    run = {"workers": args.workers, "progress": True, "resume": args.resume, "store": None}
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        run["store"] = args.out / f"{Path(args.filter).name.replace(':', '-')}.sqlite"
    (row,) = rows(dict([entrant(args.filter)]), args.models, args.seed, args.particles, **run)
    print("\n" + "\n".join(table_of(row, args.particles)))
    if args.out is not None:
        add_to(args.out / "board.csv", row)
        print(f"Wrote the row into {args.out / 'board.csv'}, and the runs into {run['store']}")


if __name__ == "__main__":
    main()
