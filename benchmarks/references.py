"""References that suffice: a model whose reference is too uncertain for any filter gets a better one, for all filters.

First the exact posterior where the model is linear and Gaussian, and else the better of two large references that agree: a
filter that looks at the observation, and one that does not (type "exact-or-guided"). Models that are still too uncertain get
it with more particles, up to the last of `--better`. Every run of such a model is made anew with the same seeds, so that
only the errors change, and the errors of all filters alike; what it costs is kept from the first time.

The choice does not favour a filter: it is by model, whichever filter asks for it, and the new reference is the same for all.
What it leaves of chance is against the most accurate filter. Where the first reference's own error happens to make the
filter's error larger, it seems to suffice and stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import pandas as pd
from over_random import debiased, uncertain
from studies import family, models_cell, models_folder, of_models

BETTER = (1, 4)
"""Multiples of the particles of the first reference, for the models that it does not suffice for."""
KEYS = ["model", "run", "filter", "n_particles"]


def sufficient(cells: Iterable[tuple[str, int]], models: int, args: Any) -> pd.DataFrame:
    """Return what `of_models` does, with better references where they are needed.

    The column `better` has the multiple of `--better` that a run's reference is of, 0 for the first one. A report takes what
    is there, and leaves a model as it was if a cell is missing.
    """
    table = of_models(cells, models, args).assign(better=0)
    for times in args.better:
        doubtful = uncertain(debiased(table)).any(axis=1)
        chosen = [int(model) for model in doubtful.index[doubtful]]
        wanted = (
            table[["filter", "n_particles"]].drop_duplicates().itertuples(index=False, name=None)
        )
        measure = partial(of_model, [(name, int(n)) for name, n in wanted], times, args)
        start = time.perf_counter()
        if args.workers == 1 or args.report or args.timing:
            better = list(map(measure, chosen))
        else:
            with ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
                better = list(pool.map(measure, chosen))
        found = [
            replaced(table[table["model"] == model], new)
            for model, new in zip(chosen, better, strict=True)
        ]
        table = pd.concat([table[~table["model"].isin(chosen)], *found]).sort_index()
        seconds = time.perf_counter() - start
        print(
            f"{len(chosen)} of {models} references with {times} times as many particles: {seconds:.0f} s",
            flush=True,
        )
    return table


def of_model(cells: Iterable[tuple[str, int]], times: int, args: Any, model: int) -> pd.DataFrame:
    """Return the runs of all cells on one model, with a better reference of so many times the particles of the first."""
    base, measure, particles = (
        family(args),
        not (args.report or args.timing),
        times * args.reference,
    )
    base = replace(
        base, reference={**(base.reference or {}), "type": "exact-or-guided", "n": particles}
    )
    folder = models_folder(args) / f"better-{particles}" / str(model)
    runs = [
        models_cell(
            base,
            [name],
            n,
            model,
            1,
            args,
            folder / f"{name}-{n}.sqlite",
            measure,
            workers=1,
            quiet=True,
        )
        for name, n in cells
    ]
    table = pd.concat([table for table in runs if len(table)] or runs, ignore_index=True).assign(
        better=times
    )
    return table.assign(
        run=table["run"] + args.runs * (model - args.first_model)
    )  # its number among those of all models


def replaced(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a model with the errors to another reference, in their order; the old ones if a run is missing.

    The times are those of before.
    """
    if len(new) < len(old):
        return old
    return (
        old[KEYS]
        .merge(new, "left", KEYS)
        .set_index(old.index)
        .assign(ms_per_step=old["ms_per_step"])
    )
