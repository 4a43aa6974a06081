"""Errors over time where the model costs nothing to call: for `bench_default.py --part compiled`.

The models of compiled_models.py are written twice, in NumPy and compiled; a test says that the two agree. The errors of
a filter are those of its compiled runs, to the mean of two references. The times of a step are CPU times of whole runs, of
both forms. Between two particle counts of bootstrap the logarithm of its error is linear in that of its time; beyond the
largest count nothing is assumed, and its error is the least so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from common import timed
from compiled_models import CASES, forms
from evaluations import each, error_with
from studies import BASELINE, RIVAL, filter_tables

import herdfilter as hf
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.filters.results import DegenerateWeightsError, hold_warnings
from herdfilter.study.statistics import geometric_mean

SMALLEST_SQUARE = 1e-8  # of an error in posterior deviations
LONGEST_NUMPY = 20_000  # particles of which the time of a NumPy model is measured
REPEATS = 3


def of_run(
    cells: Sequence[tuple[str, int]], reference: int, seed: int, task: tuple[str, int]
) -> list[dict[str, Any]]:
    """Return a row for each filter and particle count in one run: squared error, and microseconds of a step of both forms.

    The square is the mean over time and dimensions of (m - r1)(m - r2) in posterior variances, which is unbiased: r1 and r2
    are the means of two references of `reference` particles, by `sqmc`.
    """
    name, run = task
    case = CASES[name]
    model, compiled = forms(name)
    numbers = [seed, list(CASES).index(name), run]
    _, z = hf.simulate(model, case.steps, np.random.default_rng(numbers), dt=case.dt)
    build = resolve_filters(filter_tables(RIVAL, *(name for name, _ in cells)))
    references = [
        build[RIVAL](compiled, reference, np.random.default_rng([*numbers, k])).run(z, dt=case.dt)
        for k in (1, 2)
    ]
    variances = np.diagonal(references[0].covariances, axis1=1, axis2=2)
    rows = []
    for filter_name, n in cells:
        row = {"case": name, "run": run, "filter": filter_name, "n": n, "square": np.inf}
        for form, used in (("compiled", compiled), ("numpy", model)):
            repeats = REPEATS if n <= 1000 else 1
            if form == "numpy" and (n > LONGEST_NUMPY or run > 0):
                continue
            result, seconds = least_time(build[filter_name], used, n, z, case.dt, numbers, repeats)
            row[f"us_{form}"] = 1e6 * seconds / case.steps
            if form == "compiled" and result is not None:
                first_error, second_error = (result.means - r.means for r in references)
                row["square"] = np.mean(first_error * second_error / variances)
        rows.append(row)
    return rows


def least_time(
    build: Any, model: Any, n: int, z: Any, dt: float, numbers: list[int], repeats: int
) -> tuple[Any, float]:
    """Return the result of a filter, None if it lost the state, and the least CPU time of some runs, after a short one."""
    seconds = []
    for k in range(repeats + 1):
        estimator = build(model, n, np.random.default_rng([*numbers, 3, n]))
        part = z if k else z[:5]  # the first run may compile
        with hold_warnings():
            try:
                spent, result = timed(partial(estimator.run, part, dt=dt))
            except DegenerateWeightsError:
                return None, np.nan
        seconds.append(spent)
    return result, min(seconds[1:])


def measured(cells: Iterable[tuple[str, int]], args: Any) -> pd.DataFrame:
    """Return the runs of all cells on the cases."""
    measure = partial(of_run, list(cells), args.compiled_reference, args.seed)
    return each(measure, product(args.compiled_cases, range(args.compiled_runs)), args.workers)


def compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return errors of filters over bootstrap's with as many particles, and with as much time of both forms, by case.

    Errors are root mean squares over runs, times medians.
    """
    squares = runs.groupby(["case", "filter", "n"], sort=False)["square"].mean()
    errors = np.sqrt(np.maximum(squares, SMALLEST_SQUARE))
    times = runs.groupby(["case", "filter", "n"], sort=False)[["us_compiled", "us_numpy"]].median()
    table = times.assign(error=errors).reset_index()
    rows = []
    for case, part in table.groupby("case", sort=False):
        base = part[part["filter"] == BASELINE].sort_values("n")
        known = base.set_index("n")
        for row in part[part["filter"] != BASELINE].itertuples(index=False):
            found = {"case": case, "filter": row.filter, "n": row.n, "error": row.error}
            found["equal_n"] = row.error / known["error"].get(row.n, np.nan)
            for form in ("compiled", "numpy"):
                microseconds = getattr(row, f"us_{form}")
                timed_base = base[base[f"us_{form}"].notna()]
                spent = timed_base[f"us_{form}"].to_numpy()
                same_time = error_with(microseconds, spent, timed_base["error"].to_numpy())
                found[f"us_{form}"] = microseconds
                found[f"steps_{form}"] = microseconds / known[f"us_{form}"].get(row.n, np.nan)
                found[f"equal_{form}"] = row.error / same_time
            rows.append(found)
    return pd.DataFrame(rows)


def summarised(table: pd.DataFrame) -> pd.DataFrame:
    """Geometric means over cases, and the largest of the ratios at equal time of compiled code."""
    rows = []
    for (name, n), part in table.groupby(["filter", "n"], sort=False):
        row = {"filter": name, "n": n, "cases": len(part)}
        for column in ("equal_n", "steps_numpy", "steps_compiled", "equal_numpy", "equal_compiled"):
            row |= geometric_mean(column, part[column].to_numpy())
        worst = part.loc[part["equal_compiled"].idxmax()]
        rows.append(row | {"largest": worst["equal_compiled"], "of": worst["case"]})
    return pd.DataFrame(rows)
