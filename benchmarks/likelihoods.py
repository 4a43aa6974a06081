"""Log-likelihoods as functions of a parameter: how rough they are, and where their maxima lie, against the exact ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import herdfilter as hf
from herdfilter.catalogue import resolve_filters

ROUGH_FILTERS = ["ekf", "ukf", "augmented-gauss-kh", "guided-augmented-gauss-kh", "herded-quantile"]
ROUGH_FILTERS += [
    "kalman-mixture-quantile",
    "auto",
    "ranked",
    "sqmc",
    "augmented-kh",
    "herded-kh",
    "bootstrap",
]
CLAIMS = 1_000_100  # the first of the seeds that nothing was tuned on, nor chosen after a look at them
STEPS = 300
NAMES = ["mu", "rho", "sigma"]
BOUNDS = np.array([[-5.0, 3.0], [0.0, 0.999], [0.02, 1.0]])
POINTS = 11


class Curve(NamedTuple):
    """A model with one free parameter, its value, the step of the grid about it, and an exact filter."""

    title: str
    model: Callable[[float], object]
    value: float
    step: float
    exact: Callable[[object], object]


def volatility_grid(model: hf.models.StochasticVolatility) -> hf.GridFilter:
    """Return a grid whose corners and points follow the parameters."""
    spread = model.sigma / np.sqrt(1 - model.rho**2)
    points = int(np.ceil(14 * spread / (model.sigma / 6))) + 1
    return hf.GridFilter(model, model.mu - 7 * spread, model.mu + 7 * spread, max(points, 101))


def autoregression(q: float) -> hf.models.LinearGaussian:
    one = [[1.0]]
    return hf.models.LinearGaussian([[0.9]], one, [[q]], one, initial_mean=[0.0], initial_covariance=one)


CURVES = (
    Curve("linear Gaussian", autoregression, 1.0, 0.02, hf.UnscentedKalmanFilter),
    Curve(
        "stochastic volatility",
        lambda sigma: hf.models.StochasticVolatility(sigma=sigma),
        0.178,
        0.005,
        volatility_grid,
    ),
    Curve(
        "UNGM",
        lambda q: hf.models.UNGM(process_variance=q),
        10.0,
        0.1,
        lambda model: hf.GridFilter(model, -90.0, 90.0, 1601),
    ),
)


def roughness(n: int, steps: int, seed: int, workers: int) -> pd.DataFrame:
    """Return the standard deviation of the second differences of (estimate - exact), at a step and at a tenth of it."""
    cells = [(k, name) for k in range(len(CURVES)) for name in ROUGH_FILTERS]
    found = Parallel(workers)(delayed(_rough)(k, name, n, steps, seed) for k, name in cells)
    return pd.DataFrame([row for row in found if row])


def _rough(k: int, name: str, n: int, steps: int, seed: int) -> dict[str, object] | None:
    curve = CURVES[k]
    z = hf.simulate(curve.model(curve.value), steps, np.random.default_rng([seed, k]))[1]
    factory = resolve_filters(name)[name]
    row: dict[str, object] = {"model": curve.title, "filter": name, "n": n, "steps": steps}
    for column, step in (("rough", curve.step), ("rough_tenth", curve.step / 10)):
        errors = []
        for value in curve.value + step * (np.arange(POINTS) - POINTS // 2):
            model = curve.model(value)
            exact = curve.exact(model).run(z).log_likelihood
            try:
                run = factory(model, n, np.random.default_rng(seed)).run(z)
            except TypeError:  # the model has no mean of the observation
                return None
            errors.append(run.log_likelihood - exact)
        row[column] = float(np.std(np.diff(errors, 2)))
    return row


def maxima(name: str, n: int, seeds: Sequence[int], workers: int, starts: int = 2) -> pd.DataFrame:
    """Estimate three parameters of stochastic volatility from series that were simulated, exactly and with a filter."""
    rows = Parallel(workers)(delayed(_maximum)(name, n, seed, starts) for seed in seeds)
    return pd.DataFrame(rows)


def _maximum(name: str, n: int, seed: int, starts: int) -> dict[str, object]:
    warnings.simplefilter("ignore", hf.RoughLikelihoodWarning)
    z = hf.simulate(hf.models.StochasticVolatility(), STEPS, np.random.default_rng(seed))[1]
    factory = resolve_filters(name)[name]

    def build(theta: np.ndarray) -> object:
        return factory(hf.models.StochasticVolatility(*theta), n, np.random.default_rng(0))

    def exact(theta: np.ndarray) -> object:
        return volatility_grid(hf.models.StochasticVolatility(*theta))

    near, far = [float(np.log(np.mean(z**2))), 0.95, 0.2], [-2.0, 0.9, 0.3]
    best = hf.maximise_likelihood(exact, z, near, BOUNDS, NAMES)
    found = [hf.maximise_likelihood(build, z, start, BOUNDS, NAMES) for start in [near, far][:starts]]
    own = found[0]
    errors = best.standard_errors
    off = {f"off_{name}": v for name, v in zip(NAMES, (own.theta - best.theta) / errors, strict=True)}
    ratio = float(np.max(np.abs(own.standard_errors / errors - 1)))
    apart = float(np.max(np.abs(found[-1].theta - own.theta) / errors)) if starts > 1 else np.nan
    tops = _tops(build, z, own.theta, errors) if starts > 1 else np.nan
    return (
        {"filter": name, "n": n, "seed": seed, **off, "farthest": float(np.max(np.abs(list(off.values()))))}
        | {"errors": ratio, "evaluations": own.evaluations, "exact_evaluations": best.evaluations}
        | {
            "starts": starts,
            "apart": apart,
            "evaluations_far": found[-1].evaluations if starts > 1 else np.nan,
            "maxima": tops,
        }
        | {"roughness": float(np.nanmax(own.roughness)), "smooth": own.smooth}
    )


def _tops(build: Callable, z: np.ndarray, theta: np.ndarray, errors: np.ndarray) -> int:
    """Return the largest number of local maxima on the lines through theta, to 2.5 standard errors at both sides."""
    most = 0
    for i, error in enumerate(errors):
        line = theta[i] + error * np.linspace(-2.5, 2.5, 11)
        values = []
        for value in line[(line >= BOUNDS[i, 0]) & (line <= BOUNDS[i, 1])]:
            place = theta.copy()
            place[i] = value
            values.append(build(place).run(z).log_likelihood)
        rises = np.concatenate([[True], np.diff(values) > 0])
        falls = np.concatenate([np.diff(values) < 0, [True]])
        most = max(most, int((rises & falls).sum()))
    return most


def overview(table: pd.DataFrame, names: Sequence[str] = ("filter", "n")) -> pd.DataFrame:
    """Return a row for each filter: what its series have in common."""
    rows = []
    for key, part in table.groupby(list(names), sort=False):
        counted = part[part["apart"].notna()]
        one = (counted["maxima"] == 1) & (counted["apart"] < 0.1)
        rows.append(
            dict(zip(names, key, strict=True))
            | {
                "series": len(part),
                "median_off": part["farthest"].median(),
                "largest_off": part["farthest"].max(),
            }
            | {"within": int((part["farthest"] <= 0.1).sum()), "errors": part["errors"].median()}
            | {"evaluations": part["evaluations"].median(), "most": int(part["evaluations"].max())}
            | {"smooth": int(part["smooth"].sum()), "counted": len(counted), "one_maximum": int(one.sum())}
        )
    return pd.DataFrame(rows)
