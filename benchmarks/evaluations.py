"""Errors over evaluations of the model, for `bench_default.py --part evaluations`.

An evaluation is one state at which a function of the model is asked (`hf.models.count_evaluations`). A bootstrap filter has
two for each particle in a step: one of the transition, f, and one of the likelihood, h. Between two particle counts the
logarithm of bootstrap's error is linear in that of its evaluations, and its error does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from over_random import SOLVED, median_errors, medians, named
from studies import BASELINE, filter_tables

import herdfilter as hf
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.filters.results import DegenerateWeightsError, hold_warnings
from herdfilter.models.resolved import Motion
from herdfilter.study.families import kind_of
from herdfilter.study.statistics import geometric_mean, paired_ratios

REPEATS = 2000


class Case(NamedTuple):
    """A model, and the steps of a run."""

    model: Callable[[], Any]
    dt: float
    steps: int


def pendulum() -> Any:
    """Return the model at the top of the README: angle and rate of a pendulum whose horizontal deflection is seen."""
    return hf.models.from_functions(
        f=lambda x, dt: x + dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])]),
        h=lambda x: np.sin(x[:, 0]),
        Q=lambda dt: dt * np.diag([1e-3, 0.2]),
        R=[[0.01]],
        initial_mean=[1.5, 0.0],
        initial_covariance=0.1 * np.eye(2),
    )


def lorenz() -> Any:
    """Return Lorenz' system of 1963 whose first coordinate alone is seen, every 25 steps of 0.01."""
    flow = hf.models.Lorenz63()
    return hf.models.from_functions(
        f=lambda x, dt: flow.transition_mean(x, dt, None, 0),
        h=lambda x: x[:, 0],
        Q=lambda dt: dt * np.eye(3),
        R=[[2.0]],
        initial_mean=flow.initial_mean,
        initial_covariance=2.0 * np.eye(3),
    )


def range_and_bearing() -> Any:
    """Return a target of nearly constant velocity in the plane, seen from the origin: x, y, and their rates."""
    transition = np.eye(4) + np.eye(4, k=2)
    noise = np.kron([[1 / 3, 1 / 2], [1 / 2, 1.0]], 0.1 * np.eye(2))
    return hf.models.from_functions(
        f=lambda x: x @ transition.T,
        h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
        Q=noise,
        R=np.diag([0.5, 0.05]) ** 2,
        initial_mean=[10.0, 5.0, -0.5, 0.5],
        initial_covariance=np.diag([4.0, 4.0, 1.0, 1.0]),
        observation_circular=[1],
    )


def squares() -> Any:
    """Return two coupled states of which only the squares are seen: up to four modes."""
    return hf.models.from_functions(
        f=lambda x: 0.8 * x + 1.5 * np.sin(x[:, ::-1]),
        h=lambda x: x**2 / 2,
        Q=0.5 * np.eye(2),
        R=0.5 * np.eye(2),
        initial_mean=[0.5, 1.0],
        initial_covariance=np.eye(2),
    )


CASES = {
    "pendulum": Case(pendulum, 0.05, 60),
    "Lorenz-63": Case(lorenz, 0.25, 60),
    "range and bearing": Case(range_and_bearing, 1.0, 60),
    "squares": Case(squares, 1.0, 60),
}


def each(function: Callable[[Any], list[dict]], tasks: Iterable[Any], workers: int) -> pd.DataFrame:
    """Call a function for every task, in processes if there are several workers, and join the rows that it returns."""
    if workers == 1:
        rows = list(map(function, tasks))
    else:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            rows = list(pool.map(function, tasks))
    return pd.DataFrame([row for part in rows for row in part])


def counted(estimator: Any, z: Any, n: int, dt: float = 1.0) -> tuple[Any, dict[str, float]]:
    """Run a filter; return its result, None if it lost the state, and the evaluations of a step for each particle."""
    with hf.models.count_evaluations() as spent, hold_warnings():
        try:
            result = estimator.run(z, dt=dt)
        except DegenerateWeightsError:
            result = None
    steps = n * len(z)
    return result, {"f": spent.transition / steps, "h": spent.observation / steps}


def of_case(
    cells: Sequence[tuple[str, int]], reference: int, seed: int, task: tuple[str, int]
) -> list[dict[str, Any]]:
    """Return a row for each filter and particle count in one run of a case: evaluations, and the square of the error.

    The square is the mean over time and dimensions of (m - r1)(m - r2) in posterior variances, which is unbiased: r1 and r2
    are the means of two bootstrap filters of `reference` particles.
    """
    name, run = task
    case = CASES[name]
    model = case.model()
    numbers = [seed, list(CASES).index(name), run]
    _, z = hf.simulate(model, case.steps, np.random.default_rng(numbers), dt=case.dt)
    build = resolve_filters(filter_tables(BASELINE, *(name for name, _ in cells)))
    streams = (np.random.default_rng([*numbers, k]) for k in (1, 2))
    references = [
        counted(build[BASELINE](model, reference, rng), z, reference, case.dt)[0] for rng in streams
    ]
    variances = np.diagonal(references[0].covariances, axis1=1, axis2=2)
    rows = []
    for filter_name, n in cells:
        rng = np.random.default_rng([*numbers, 3, n])
        result, spent = counted(build[filter_name](model, n, rng), z, n, case.dt)
        square = np.inf
        if result is not None:
            first, second = (result.means - other.means for other in references)
            square = np.mean(first * second / variances)
        rows.append(
            {"case": name, "run": run, "filter": filter_name, "n": n, **spent, "square": square}
        )
    return rows


def as_many(table: pd.DataFrame) -> pd.DataFrame:
    """Say how many times as many evaluations bootstrap needs for the same error, with 95 % intervals over runs.

    Errors are medians over runs. Runs are drawn with replacement, all filters of a run together. Where `beyond` is true, not
    even bootstrap's largest particle count reaches the error: the number is a lower bound.
    """
    rows = []
    for case, runs in table.groupby("case", sort=False):
        squares = runs.pivot(index="run", columns=["filter", "n"], values="square")
        spent = runs.assign(spent=(runs["f"] + runs["h"]) * runs["n"])
        spent = spent.groupby(["filter", "n"])["spent"].mean()
        counts = sorted(squares[BASELINE])
        rng = np.random.default_rng(0)
        logs = 0.5 * np.log(np.maximum(squares, SOLVED**2))
        draws = rng.integers(len(logs), size=(REPEATS, len(logs)))
        draws = np.vstack([np.arange(len(logs)), draws])  # the runs themselves come first

        def error(key: Any, logs: pd.DataFrame = logs, draws: np.ndarray = draws) -> np.ndarray:
            return np.exp(np.median(logs[key].to_numpy()[draws], axis=1))

        base = np.stack([error((BASELINE, n)) for n in counts], axis=1)
        base_spent = spent[BASELINE][counts].to_numpy()
        for key in squares:
            if key[0] == BASELINE:
                continue
            errors = error(key)
            needed = [needed_for(e, base_spent, b) for e, b in zip(errors, base, strict=True)]
            ratio = np.array(needed) / spent[key]
            low, high = np.quantile(ratio[1:], (0.025, 0.975))
            of_filter = runs[(runs["filter"] == key[0]) & (runs["n"] == key[1])]
            row = {"case": case, "filter": key[0], "n": key[1], "f": of_filter["f"].mean()}
            row |= {"h": of_filter["h"].mean(), "error": errors[0], "times": ratio[0]}
            row |= {"low": low, "high": high, "beyond": bool(errors[0] < base[0].min())}
            rows.append(row)
    return pd.DataFrame(rows)


def needed_for(error: float, evaluations: np.ndarray, errors: np.ndarray) -> float:
    """Return the evaluations with which a filter of these errors, (K,), has this one; at the ends those of the ends."""
    finite = np.isfinite(errors)
    falling = np.log(np.minimum.accumulate(errors[finite]))
    if not len(falling) or not np.isfinite(error):
        return np.nan
    return float(np.exp(np.interp(-np.log(error), -falling, np.log(evaluations[finite]))))


def error_with(spent: float, evaluations: np.ndarray, errors: np.ndarray) -> float:
    """Return the error of a filter of these errors, (K,), with so many evaluations; at the ends those of the ends."""
    finite = np.isfinite(errors)
    falling = np.log(np.minimum.accumulate(errors[finite]))
    if not len(falling):
        return np.inf
    return float(np.exp(np.interp(np.log(spent), np.log(evaluations[finite]), falling)))


def over_models(table: pd.DataFrame) -> pd.DataFrame:
    """Compare errors on random models with bootstrap's at equal evaluations; a row for each filter and particle count.

    `ratio` is the geometric mean over models of the error over bootstrap's, `below` the share of models below 1, and `times`
    the median of how many times as many evaluations bootstrap needs; on the share `beyond` that is a lower bound.
    """
    errors = median_errors(table)
    spent = medians(table, "evaluations")
    counts = sorted(errors[BASELINE])
    refused = table.assign(served=~table["error"].fillna("").str.startswith("TypeError"))
    served = refused.groupby(["filter", "n_particles", "model"])["served"].any().unstack("model").T
    rows = []
    for name, n in errors:
        if name == BASELINE:
            continue
        found = pd.DataFrame(
            [
                (
                    error_with(own, base_spent, base),
                    needed_for(error, base_spent, base) / own,
                    error < base.min(),
                )
                for error, own, base, base_spent in zip(
                    errors[name, n],
                    spent[name, n],
                    errors[BASELINE][counts].to_numpy(),
                    spent[BASELINE][counts].to_numpy(),
                    strict=True,
                )
            ],
            index=errors.index,
            columns=["base", "times", "beyond"],
        )
        ratios = pd.Series(paired_ratios(errors[name, n], found["base"]), errors.index)
        # lost in every run; a model that the filter does not serve has no ratio
        ratios[np.isinf(errors[name, n]) & served[name, n]] = np.inf
        ratios = ratios.dropna()
        worst = ratios.sort_values(ascending=False)
        row = {"filter": name, "n": n, "models": len(ratios)}
        row |= {f"evaluations_{q}": (spent[name, n] / n).quantile(q / 100) for q in (50, 100)}
        row |= geometric_mean("ratio", ratios.to_numpy())
        row |= {"below": float((ratios < 1).mean()), "times": found["times"].median()}
        rows.append(row | {"beyond": found["beyond"].mean(), "worst": named(worst, table, 3)})
    return pd.DataFrame(rows).sort_values(["n", "filter"], ignore_index=True)


def of_model(cells: Sequence[tuple[str, int]], seed: int, number: int) -> list[dict[str, Any]]:
    """Return where the evaluations on one random model go: those of the transition, f, and of the observation, h."""
    model = hf.models.random_model(number)
    _, z = hf.simulate(model, model.steps, np.random.default_rng([seed, number]))
    build = resolve_filters(filter_tables(*(name for name, _ in cells)))
    shared = {"model": number, "kind": kind_of(model), "d": Motion(model).dim}
    rows = []
    for name, n in cells:
        try:
            _, spent = counted(build[name](model, n, np.random.default_rng(0)), z, n)
        except TypeError:  # the model does not serve the filter
            continue
        rows.append({**shared, "filter": name, "n": n, **spent})
    return rows


def where(cells: Iterable[tuple[str, int]], models: Iterable[int], args: Any) -> pd.DataFrame:
    """Return the evaluations of a step for each particle, on every random model."""
    return each(partial(of_model, list(cells), args.seed), models, args.workers)


def on_cases(cells: Iterable[tuple[str, int]], args: Any) -> pd.DataFrame:
    """Return the runs of all cells on the four cases."""
    measure = partial(of_case, list(cells), args.case_reference, args.seed)
    return each(measure, product(CASES, range(args.case_runs)), args.workers)
