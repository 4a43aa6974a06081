"""Filters on scenarios: a cell (scenario, filter, particle count) is a study with a store of its own, which is resumed.

Seeds hang on the names of filters, so that the cells together are the same as one large study. Kill a script and start it
anew: what was finished is not measured again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from common import parser, stores_of
from joblib import cpu_count
from peers import FILTERS

import herdfilter as hf
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.study import summarise
from herdfilter.study.scenario import Scenario, load_scenario
from herdfilter.study.store import open_for_reading
from herdfilter.study.tables import Divergence

BASELINE, RIVAL, COMPILED = "bootstrap", "sqmc", "compiled-bootstrap"
# the fewest of whose median there is a 95 % interval, from the least to the largest
TIMING_RUNS = 6
# growth of a step's time with n; what measures as more is another program's disturbance
STEEPEST = 3.0
REFERENCES = {
    "plaza": {"type": "large", "n": 30_000, "repeats": 4},
    "uav": {"type": "large", "n": 50_000, "repeats": 4},
}
"""Of scenarios that come without, since it takes minutes."""


def study_parser(text: str | None, stores: str) -> argparse.ArgumentParser:
    """Return a parser with the options of all scripts that run filters."""
    made = parser(text)
    made.add_argument("--stores", type=Path, default=stores_of(stores), help="folder of the stores")
    made.add_argument("--workers", type=int, default=cpu_count())
    made.add_argument("--data", type=Path, help="folder of the real data")
    made.add_argument("--timing", action="store_true", help="measure only times, with one worker")
    made.add_argument(
        "--report", action="store_true", help="only print and write what was measured"
    )
    return made


VARIATIONS: dict[str, dict[str, str]] = {
    "bootstrap-multinomial": {"resampling": "MultinomialResampling()"},
    "bootstrap-stratified": {"resampling": "StratifiedResampling()"},
    "bootstrap-residual": {"resampling": "ResidualResampling()"},
    "bootstrap-ssp": {"resampling": "SSPResampling()"},
    "bootstrap-transport": {"resampling": "OptimalTransportResampling()"},
    "herded-kh-line-search": {"proposal": "HerdedProposal(KernelHerding(weights='line-search'))"},
    "herded-kh-corrective": {
        "proposal": "HerdedProposal(KernelHerding(weights='fully-corrective'))"
    },
    "mixture-em-kh": {"resampling": "MixtureResampling(EMFit(3), KernelHerding())"},
    "augmented-em-kh": {"proposal": "AugmentedProposal(EMFit(3), MappedSampling(KernelHerding()))"},
    "guided-augmented-em-kh": {
        "proposal": "GuidedAugmentedProposal(EMFit(3), MappedSampling(KernelHerding()))"
    },
}
"""Filters that are measured beside those of the catalogue, name -> table of keywords."""


def compiled_bootstrap(model: Any, n: int, rng: np.random.Generator) -> Any:
    """Return the bootstrap filter of a model's compiled form, which `compare` does not look into: else it goes in steps."""
    pf = hf.make_filter("bootstrap", model.compiled(), n, rng)
    return SimpleNamespace(run=lambda observations, **options: pf.run(observations, **options))


def filter_tables(*names: str, known: str = "all") -> dict[str, Any]:
    """Return filters of the catalogue, of `VARIATIONS` or of other libraries as `compare` takes them."""
    ours = {COMPILED: compiled_bootstrap, **VARIATIONS, **FILTERS}
    return {name: ours.get(name, name) if known == "all" else Told(name, known) for name in names}


@dataclass(frozen=True)
class Told:
    """A filter that is told less of a model than there is: data, and the reference, are those of the whole model."""

    name: str
    known: str

    def __call__(self, model: Any, n: int, rng: np.random.Generator) -> Any:
        """Return the filter."""
        return resolve_filters(filter_tables(self.name))[self.name](
            part_of(model, self.known), n, rng
        )


def part_of(model: Any, known: str) -> Any:
    """Return a model without mean and covariance of its observation, or without all but a simulation of its transition.

    Of the first, `known` is "likelihood"; of the second, "simulation".
    """
    kept = {"dim", "circular", "initial", "noise_dim", *contract.TRANSITION, *contract.OBSERVATION}
    if known == "likelihood":
        kept -= {*contract.OBSERVED, "observation_jacobian", "observation_circular"}
        own = {"log_likelihood": lambda z, x, step: Measurement(model).log_likelihood(z, x, step)}
        own["partial_observations"] = Measurement(model).takes_partial
    else:
        kept -= {*contract.TRANSITION, *contract.FROM_NOISE} - {"control"}
        own = {"sample_transition": lambda x, rng, *way: Transition(model, *way).sample(x, rng)}
    return SimpleNamespace(
        **{name: getattr(model, name) for name in kept if hasattr(model, name)} | own
    )


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


def measured(
    name: str,
    cells: Iterable[tuple[str, int]],
    runs: int,
    budget: float,
    args,
    base: Scenario | None = None,
) -> pd.DataFrame:
    """Return the runs of all cells of a scenario; what is missing is measured, unless only a report is asked for.

    Cells of one filter come by growing particle count. One that is expected to take more than `budget` milliseconds per
    step is left out, and so is a filter that the model does not serve. `base` replaces the scenario of that name.
    """
    base, tables = scenario(name) if base is None else base, []
    for filter_name, n in cells:
        rows = [t for t in tables if t["filter"].iloc[0] == filter_name]
        reason = too_dear(
            {int(t["n_particles"].iloc[0]): t["ms_per_step"].min() for t in rows}, n, budget
        )
        path = args.stores / name / f"{filter_name}-{n}.sqlite"
        if not reason and (path.is_file() or not (args.report or args.timing)):
            try:
                tables.append(_cell(base, filter_name, n, runs, args.workers, path, args))
            except (TypeError, ValueError) as error:
                if not str(error).startswith("filter"):  # as that of a store with more runs
                    raise
                reason = " ".join(str(error).split())
        if reason:
            print(f"{name}: {filter_name} left out at n = {n}: {reason}", flush=True)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _cell(
    base: Scenario, filter_name: str, n: int, runs: int, workers: int, path: Path, args
) -> pd.DataFrame:
    path.parent.mkdir(parents=True, exist_ok=True)
    start, data = time.perf_counter(), args.data if base.data else None
    table = hf.compare(
        base,
        filter_tables(filter_name),
        [n],
        runs,
        args.seed,
        workers,
        data,
        store=path,
        resume=True,
    )
    seconds = time.perf_counter() - start
    if seconds > 2:
        print(f"{base.name} {filter_name} {n}: {seconds:.0f} s", flush=True)
    return table


def too_dear(times: dict[int, float], n: int, budget: float) -> str:
    """Say why a particle count is left out, by extrapolating the times per step of the smaller ones; else nothing."""
    known = [(m, t) for m, t in sorted(times.items()) if m < n and t > 0]
    if not known:
        return ""
    (m, t), growth = known[-1], 1.0
    if len(known) > 1:
        growth = float(np.clip(np.log(t / known[-2][1]) / np.log(m / known[-2][0]), 1.0, STEEPEST))
    expected = t * (n / m) ** growth
    return f"{expected:.3g} ms per step expected, budget {budget:g}" if expected > budget else ""


def of_models(cells: Iterable[tuple[str, int]], models: int, args) -> pd.DataFrame:
    """Return the runs of all cells on as many random models, `args.runs` of each, from `args.first_model` on.

    A store may hold more models than are asked for, so that what is measured for one question serves the next. A report
    tells of the runs that all cells have, of those that were begun.
    """
    base = family(args)
    folder, tables = models_folder(args), []
    for name, n in cells:
        measure = not (args.report or args.timing)
        table = models_cell(
            base, [name], n, args.first_model, models, args, folder / f"{name}-{n}.sqlite", measure
        )
        if len(table) < models * args.runs:
            print(
                f"{name}, n = {n}: {len(table)} of {models * args.runs} runs are there", flush=True
            )
        tables += [] if table.empty else [table]
    if not tables:
        raise SystemExit(f"nothing is in {folder}; measure first, without --report and --timing")
    made = pd.concat(tables, ignore_index=True)
    everywhere = made.groupby(["model", "run"])["filter"].transform("size") == len(tables)
    return made[everywhere].reset_index(drop=True)


def family(args) -> Scenario:
    """Return the scenario of the random models: of a kind, with data that depart from them or not."""
    base = load_scenario("random" if args.kind == "general" else f"random_{args.kind}")
    base = replace(
        base, divergence=base.divergence or load_scenario("random_misspecified").divergence
    )
    if args.departure:
        base = replace(base, truth={"model": {"departure": args.departure.replace("-", " ")}})
    return replace(base, reference={**(base.reference or {}), "n": args.reference})


def models_folder(args) -> Path:
    """Return the folder of the stores of random models: of another seed, reference or kind, or less known, it is another."""
    names = (
        args.kind.replace("general", ""),
        args.departure.replace(" ", "-"),
        args.known.replace("all", ""),
    )
    other = "".join(f"-{name}" for name in names if name)
    return args.stores / f"random-{args.first_model}-{args.reference}{other}"


def models_cell(
    base: Scenario,
    filters: list[str],
    n: int,
    first: int,
    models: int,
    args,
    path: Path,
    measure: bool = True,
    quiet: bool = False,
    **changes: int,
) -> pd.DataFrame:
    """Return the runs of filters on models, from a store; what is missing there is measured if that is wanted.

    The `changes` replace `runs`, `seed` and `workers` of the arguments. Unless `quiet`, it prints how long it took.
    """
    use = {"runs": args.runs, "seed": args.seed, "workers": args.workers} | changes
    known = pd.DataFrame(columns=["model", "run", "filter", "n_particles", "ms_per_step"])
    if path.is_file():
        with open_for_reading(path, empty=True) as store:
            known = store.table() if store.begun() else known
    wanted = known[known["model"] < first + models]
    if not measure or len(wanted) == len(filters) * models * use["runs"]:
        return wanted.reset_index(drop=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    start, begun = time.perf_counter(), 0 if known.empty else int(known["model"].max()) - first + 1
    table = hf.compare(
        base,
        filter_tables(*filters, known=args.known),
        n,
        **use,
        store=path,
        resume=True,
        models=max(models, begun),
        first_model=first,
    )
    if not quiet:
        print(f"random {', '.join(filters)} {n}: {time.perf_counter() - start:.0f} s", flush=True)
    return table[table["model"] < first + models].reset_index(drop=True)


def summary(name: str, table: pd.DataFrame, args) -> pd.DataFrame:
    """Summarise a scenario, a row for each filter and particle count: errors, ratios to baseline and rival, times.

    The times are those of `--timing` where that was run: six runs with one worker, without any reference.
    """
    made = summarise(table, BASELINE)
    for base in (BASELINE, RIVAL):
        counts = table.loc[table["filter"] == base, "n_particles"].unique()
        ratios = summarise(table[table["n_particles"].isin(counts)], base)
        columns = {f"ratio{end}": f"to_{base}{end}" for end in ("", "_low", "_high")}
        keys = ["filter", "n_particles"]
        made = made.merge(ratios[[*keys, *columns]].rename(columns=columns), "left", keys)
    made["ms_low"] = made["ms_high"] = np.nan
    bare = replace(scenario(name), reference=None)
    for k, row in made.iterrows():
        path = args.stores / name / f"{row['filter']}-{row['n_particles']}.timing.sqlite"
        if args.timing or path.is_file():
            ms = _cell(bare, row["filter"], row["n_particles"], TIMING_RUNS, 1, path, args)[
                "ms_per_step"
            ]
            made.loc[k, ["ms_per_step", "ms_low", "ms_high"]] = ms.median(), ms.min(), ms.max()
    return made


def curve(rows: pd.DataFrame, error: str = "reference_error_median") -> np.ndarray:
    """Particle count, median error and milliseconds per step of one filter, (k, 3), by particle count."""
    table = rows.sort_values("n_particles")[["n_particles", error, "ms_per_step"]].dropna()
    return table.to_numpy(dtype=float)


def error_column(table: pd.DataFrame) -> str:
    """Name the column of errors: to the posterior where it is known, else to the truth."""
    return "reference_error" if table["reference_error"].notna().any() else "rmse"
