"""Errors over time where the model costs nothing to call: for `bench_default.py --part compiled`.

Twelve models are written twice, in NumPy and as compiled functions of one state; a test says that they agree. The errors of
a filter are those of its compiled runs, to the mean of two references. The times of a step are CPU times of whole runs, of
both forms. Between two particle counts of bootstrap the logarithm of its error is linear in that of its time; beyond the
largest count nothing is assumed, and its error is the least so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import timed
from evaluations import CASES as FOUR
from evaluations import each, error_with
from studies import BASELINE, RIVAL, filter_tables

import herdfilter as hf
from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.filters.results import DegenerateWeightsError, hold_warnings
from herdfilter.models.compiled import CompiledModel
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import geometric_mean

SMALLEST_SQUARE = 1e-8  # of an error in posterior deviations
LONGEST_NUMPY = 20_000  # particles of which the time of a NumPy model is measured
REPEATS = 3


class Case(NamedTuple):
    """A model in NumPy, its compiled functions and what they are told, and the steps of a run."""

    model: Callable[[], Any]
    f: Callable[..., Any]
    h: Callable[..., Any]
    parameters: Callable[[Any], Any]
    dt: float = 1.0
    steps: int = 60

    def compiled(self) -> CompiledModel:
        """Return the model of compiled functions."""
        model = self.model()
        prior = model.initial
        return CompiledModel(
            self.f,
            self.h,
            lambda dt: model.transition_covariance(dt, 1),
            model.observation_covariance(1),
            prior.means[0],
            prior.covariances[0],
            observation_circular=getattr(model, "observation_circular", ()),
            parameters=self.parameters(model),
        )


def nothing(model: Any) -> Sequence[float]:
    """Tell the functions nothing."""
    return ()


def matrix(dt: float, model: Any) -> np.ndarray:
    """Tell the matrix of a linear motion."""
    return np.asarray(model.transition_mean(np.eye(model.dim), dt, None, 1)).T.ravel()


def of_lorenz(model: Any) -> Sequence[float]:
    """Tell the number of substeps; the rates are the usual ones."""
    return (0.25 / 0.01,)


def swinging(x, dt, out):
    """Do as `evaluations.pendulum`."""
    out[0] = x[0] + dt * x[1]
    out[1] = x[1] - dt * 9.81 * np.sin(x[0])


def deflection(x):
    """Do as `evaluations.pendulum`."""
    return np.sin(x[0])


def convection(x, dt, parameters, out):
    """Do as `models.Lorenz63`, by the same Runge-Kutta steps."""
    count = int(parameters[0] + 0.5)
    h = dt / count
    a = x[0]
    b = x[1]
    c = x[2]
    for _ in range(count):
        ax = 10.0 * (b - a)
        ay = a * (28.0 - c) - b
        az = a * b - 8.0 / 3.0 * c
        u = a + 0.5 * h * ax
        v = b + 0.5 * h * ay
        w = c + 0.5 * h * az
        bx = 10.0 * (v - u)
        by = u * (28.0 - w) - v
        bz = u * v - 8.0 / 3.0 * w
        u = a + 0.5 * h * bx
        v = b + 0.5 * h * by
        w = c + 0.5 * h * bz
        cx = 10.0 * (v - u)
        cy = u * (28.0 - w) - v
        cz = u * v - 8.0 / 3.0 * w
        u = a + h * cx
        v = b + h * cy
        w = c + h * cz
        a += h / 6.0 * (ax + 2.0 * (bx + cx) + 10.0 * (v - u))
        b += h / 6.0 * (ay + 2.0 * (by + cy) + u * (28.0 - w) - v)
        c += h / 6.0 * (az + 2.0 * (bz + cz) + u * v - 8.0 / 3.0 * w)
    out[0] = a
    out[1] = b
    out[2] = c


def first(x):
    """See the first coordinate."""
    return x[0]


def all_three(x, out):
    """See all coordinates."""
    for a in range(3):
        out[a] = x[a]


def linear(x, parameters, out):
    """Multiply by the matrix among the parameters."""
    d = out.size
    for a in range(d):
        out[a] = 0.0
        for b in range(d):
            out[a] += parameters[a * d + b] * x[b]


def polar(x, out):
    """See range and bearing of the first two coordinates."""
    out[0] = np.hypot(x[0], x[1])
    out[1] = np.arctan2(x[1], x[0])


def turned_polar(x, out):
    """See range and bearing of the first and third coordinate."""
    out[0] = np.hypot(x[0], x[2])
    out[1] = np.arctan2(x[2], x[0])


def bearing(x):
    """See the bearing of the first and third coordinate."""
    return np.arctan2(x[2], x[0])


def coupled(x, out):
    """Do as `evaluations.squares`."""
    out[0] = 0.8 * x[0] + 1.5 * np.sin(x[1])
    out[1] = 0.8 * x[1] + 1.5 * np.sin(x[0])


def half_squares(x, out):
    """Do as `evaluations.squares`."""
    out[0] = 0.5 * x[0] ** 2
    out[1] = 0.5 * x[1] ** 2


def turn(x, dt, out):
    """Do as `models.CoordinatedTurn`."""
    half = 0.5 * x[4] * dt
    chord = np.sin(half) / half if abs(half) > 1e-9 else 1.0
    along = dt * np.cos(half) * chord
    across = dt * np.sin(half) * chord
    sin = np.sin(2.0 * half)
    cos = np.cos(2.0 * half)
    out[0] = x[0] + along * x[1] - across * x[3]
    out[1] = cos * x[1] - sin * x[3]
    out[2] = x[2] + across * x[1] + along * x[3]
    out[3] = sin * x[1] + cos * x[3]
    out[4] = x[4]


def from_the_right(x):
    """See the distance from (2, 0)."""
    return np.hypot(x[0] - 2.0, x[1])


def from_both_sides(x, out):
    """See the distances from (-1, 0) and (1, 0)."""
    out[0] = np.hypot(x[0] + 1.0, x[1])
    out[1] = np.hypot(x[0] - 1.0, x[1])


def well(x, dt):
    """Do as `models.DoubleWell`."""
    decay = np.exp(-8.0 * dt)
    return x[0] / np.sqrt(decay + (1.0 - decay) * x[0] ** 2)


def of_scenario(name: str) -> Callable[[], Any]:
    """Return a function that makes the model of a named scenario."""
    return lambda: load_scenario(name).build_model()


def own_form(model: Any) -> CompiledModel:
    """Return the compiled form that a model of the package has."""
    compiled: CompiledModel = model.compiled()
    return compiled


CASES = {
    "pendulum": Case(FOUR["pendulum"].model, swinging, deflection, nothing, 0.05),
    "Lorenz-63, one seen": Case(FOUR["Lorenz-63"].model, convection, first, of_lorenz, 0.25),
    "range and bearing": Case(FOUR["range and bearing"].model, linear, polar, partial(matrix, 1.0)),
    "squares": Case(FOUR["squares"].model, coupled, half_squares, nothing),
    "bearings_only": Case(
        of_scenario("bearings_only"), linear, bearing, partial(matrix, 1.0), steps=24
    ),
    "coordinated_turn": Case(of_scenario("coordinated_turn"), turn, turned_polar, nothing),
    "sharp_range": Case(of_scenario("sharp_range"), linear, from_the_right, partial(matrix, 1.0)),
    "mirror_ranges": Case(
        of_scenario("mirror_ranges"), linear, from_both_sides, partial(matrix, 1.0), steps=30
    ),
    "lorenz63": Case(of_scenario("lorenz63"), convection, all_three, of_lorenz, 0.25),
    "double_well": Case(of_scenario("double_well"), well, first, nothing, 0.2),
    "ungm": Case(hf.models.UNGM, None, None, nothing),
    "bearings": Case(hf.models.BearingsTracking, None, None, nothing, 0.1),
}
"""Name -> case; of the last two the package has the compiled form."""


def forms(name: str) -> tuple[Any, CompiledModel]:
    """Return the model of a case in NumPy and compiled."""
    case = CASES[name]
    model = case.model()
    return model, own_form(model) if case.f is None else case.compiled()


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
