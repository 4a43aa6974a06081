"""CPU times of filters on random models, and over bootstrap's: filters take turns on the same data, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd
from common import timed
from studies import BASELINE, filter_tables

import herdfilter as hf
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.study.families import kind_of

REPEATS = 3


def measured(
    filters: Sequence[str],
    counts: Sequence[int],
    models: Iterable[int],
    seed: int = 0,
    workers: int = 1,
) -> pd.DataFrame:
    """Return the least times of a step and their ratios to bootstrap's: a row for each model, filter and particle count.

    They are NaN where the model does not serve the filter, or all its runs failed.
    """
    run = partial(of_model, tuple(filters), tuple(counts), seed)
    if workers == 1:
        tables = list(map(run, models))
    else:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            tables = list(pool.map(run, models))
    return pd.concat(tables, ignore_index=True)


def of_model(filters: Sequence[str], counts: Sequence[int], seed: int, number: int) -> pd.DataFrame:
    """Return the rows of a model; the first 20 steps of every filter, which may compile, are not counted."""
    from threadpoolctl import threadpool_limits

    model, build = hf.models.random_model(number), resolve_filters(filter_tables(*filters))
    _, z = hf.simulate(model, model.steps, np.random.default_rng([seed, number]))
    rows = []
    with threadpool_limits(1):
        for n in counts:
            rounds = [
                [_seconds(build[name], model, n, z[:20] if k == 0 else z, k) for name in filters]
                for k in range(REPEATS + 1)
            ]
            least = np.fmin.reduce(rounds[1:])
            base = least[list(filters).index(BASELINE)]
            kind = kind_of(model)
            rows += [
                {
                    "model": number,
                    "kind": kind,
                    "filter": name,
                    "n": n,
                    "ratio": t / base,
                    "ms": 1e3 * t / len(z),
                }
                for name, t in zip(filters, least, strict=True)
            ]
    return pd.DataFrame(rows)


def _seconds(build, model, n: int, z: np.ndarray, seed: int) -> float:
    try:
        return timed(partial(build(model, n, np.random.default_rng(seed)).run, z))[0]
    except (TypeError, DegenerateWeightsError):
        return np.nan


def summarised(table: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean, median and largest of the ratios over models; a row for each filter and particle count."""
    rows = []
    for (name, n), part in table.groupby(["filter", "n"], sort=False):
        ratios = part.set_index("model")["ratio"].dropna()
        if ratios.empty:
            continue
        row = {"filter": name, "n": n, "models": len(ratios), "mean": np.exp(np.log(ratios).mean())}
        slowest = part.loc[part["ratio"].idxmax()]
        rows.append(
            row
            | {
                "median": ratios.median(),
                "largest": ratios.max(),
                "slowest": f"{slowest['model']} ({slowest['kind']})",
            }
        )
    return pd.DataFrame(rows)
