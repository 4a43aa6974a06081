"""Log-likelihoods as functions of a parameter: how rough they are, and where their maxima lie, against the exact ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import cpu_seconds, stored
from joblib import Parallel, delayed

import herdfilter as hf
from herdfilter.catalogue import resolve_filters
from herdfilter.study.scenario import load_scenario

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
# the first of the seeds that nothing was tuned on, nor chosen after a look at them
CLAIMS = 1_000_100
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
    return hf.models.LinearGaussian(
        [[0.9]], one, [[q]], one, initial_mean=[0.0], initial_covariance=one
    )


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


def maxima(
    name: str, n: int, seeds: Sequence[int], workers: int, starts: int, folder: Path
) -> pd.DataFrame:
    """Estimate three parameters of stochastic volatility from series that were simulated, exactly and with a filter.

    The exact estimates are kept in a folder: they are those of all filters.
    """
    rows = Parallel(workers)(delayed(_maximum)(name, n, seed, starts, folder) for seed in seeds)
    return pd.DataFrame(rows)


def _maximum(name: str, n: int, seed: int, starts: int, folder: Path) -> dict[str, object]:
    warnings.simplefilter("ignore", hf.RoughLikelihoodWarning)
    z = hf.simulate(hf.models.StochasticVolatility(), STEPS, np.random.default_rng(seed))[1]
    factory = resolve_filters(name)[name]

    def build(theta: np.ndarray) -> object:
        return factory(hf.models.StochasticVolatility(*theta), n, np.random.default_rng(0))

    def exact(theta: np.ndarray) -> object:
        return volatility_grid(hf.models.StochasticVolatility(*theta))

    near, far = [float(np.log(np.mean(z**2))), 0.95, 0.2], [-2.0, 0.9, 0.3]

    def exact_maximum() -> np.ndarray:
        best = hf.maximise_likelihood(exact, z, near, BOUNDS, NAMES)
        return np.array([best.theta, best.standard_errors, np.full(len(NAMES), best.evaluations)])

    best, errors, evaluations = stored(folder / f"volatility-{STEPS}-{seed}.npy", exact_maximum)
    found = [
        hf.maximise_likelihood(build, z, start, BOUNDS, NAMES) for start in [near, far][:starts]
    ]
    own = found[0]
    off = {f"off_{name}": v for name, v in zip(NAMES, (own.theta - best) / errors, strict=True)}
    ratio = float(np.max(np.abs(own.standard_errors / errors - 1)))
    apart = float(np.max(np.abs(found[-1].theta - own.theta) / errors)) if starts > 1 else np.nan
    tops = _tops(build, z, own.theta, errors) if starts > 1 else np.nan
    return (
        {
            "filter": name,
            "n": n,
            "seed": seed,
            **off,
            "farthest": float(np.max(np.abs(list(off.values())))),
        }
        | {
            "errors": ratio,
            "evaluations": own.evaluations,
            "exact_evaluations": int(evaluations[0]),
        }
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
            | {
                "smooth": int(part["smooth"].sum()),
                "counted": len(counted),
                "one_maximum": int(one.sum()),
            }
        )
    return pd.DataFrame(rows)


def chain(d: int) -> hf.models.LinearGaussian:
    """Return a damped chain of d states, each drawn along by the next and all observed."""
    one = np.eye(d)
    return hf.models.LinearGaussian(
        0.7 * one + 0.2 * np.eye(d, k=1), one, one, 2.0 * one, np.zeros(d), one
    )


KNOWN = {
    **{f"linear Gaussian, d = {d}": (chain(d), hf.ExtendedKalmanFilter) for d in (1, 2, 4)},
    "UNGM": (hf.models.UNGM(), CURVES[2].exact),
    "stochastic volatility": (hf.models.StochasticVolatility(), volatility_grid),
}
"""Models of known likelihood, each with its exact filter."""

RANDOMISED = {
    "guided": hf.RankedProposal(randomised=True),
    "unguided": hf.RankedProposal(guided=False, randomised=True),
    "sqmc": hf.SequentialQuasiMonteCarlo(),
}
FEW, SHORT, MANY = 20, 5, 6_000  # particles, steps and runs of the test for a bias


def randomised(
    counts: Sequence[int], steps: int, runs: int, seed: int, series: int = 4
) -> pd.DataFrame:
    """Variance of the log-likelihood over bootstrap's, with as many particles and in the same CPU time.

    Ratios are geometric means over series. Bootstrap's number of particles at equal time comes from its times at several
    numbers, all measured by turns in one process. Errors of filters without random numbers are root mean squares.
    """
    rows = []
    for k, (title, (model, exact)) in enumerate(KNOWN.items()):
        data = [
            hf.simulate(model, steps, np.random.default_rng([seed, k, s]))[1] for s in range(series)
        ]
        known = [exact(model).run(z).log_likelihood for z in data]
        for n in counts:
            fixed = {
                name: [_error(model, z, n, p, 0, e) for z, e in zip(data, known, strict=True)]
                for name, p in FIXED.items()
            }
            sizes = n * 2 ** np.arange(7)
            calls = [partial(_error, model, data[0], m, None, 0, 0.0) for m in sizes]
            calls += [partial(_error, model, data[0], n, p, 0, 0.0) for p in RANDOMISED.values()]
            times = np.log(cpu_seconds(calls, 15))
            alike = np.exp(
                np.interp(times[len(sizes) :], times[: len(sizes)], np.log(sizes))
            ).astype(int)
            plain = [_variance(model, z, n, None, runs) for z in data]
            for (name, proposal), most in zip(RANDOMISED.items(), alike, strict=True):
                own = [_variance(model, z, n, proposal, runs) for z in data]
                equal = [_variance(model, z, int(most), None, runs) for z in data]
                row = {
                    "model": title,
                    "filter": name,
                    "n": n,
                    "sd": np.sqrt(np.mean(own)),
                    "bootstrap_sd": np.sqrt(np.mean(plain)),
                }
                row |= {
                    "ratio": _geometric(own, plain),
                    "bootstrap_n": int(most),
                    "ratio_at_equal_time": _geometric(own, equal),
                }
                rows.append(
                    row
                    | {f"error_{key}": np.sqrt(np.mean(np.square(v))) for key, v in fixed.items()}
                )
                print(rows[-1], flush=True)
    return pd.DataFrame(rows)


FIXED = {"ranked": hf.RankedProposal(), "auto": hf.AutomaticProposal()}


def unbiased(seed: int) -> pd.DataFrame:
    """Mean of the estimated over the exact likelihood, and its standard error, of many short runs with few particles."""
    rows = []
    for k, (title, (model, exact)) in enumerate(KNOWN.items()):
        z = hf.simulate(model, SHORT, np.random.default_rng([seed, k]))[1]
        known = exact(model).run(z).log_likelihood
        for name, proposal in {"bootstrap": None, **RANDOMISED}.items():
            ratios = np.exp([_error(model, z, FEW, proposal, run, known) for run in range(MANY)])
            row = {"model": title, "filter": name, "n": FEW, "runs": MANY, "mean": ratios.mean()}
            rows.append(row | {"standard_error": ratios.std() / np.sqrt(MANY)})
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def _error(
    model: object, z: np.ndarray, n: int, proposal: object, seed: int, exact: float
) -> float:
    return hf.ParticleFilter(model, n, proposal, rng=seed).run(z).log_likelihood - exact


def _variance(model: object, z: np.ndarray, n: int, proposal: object, runs: int) -> float:
    return float(np.var([_error(model, z, n, proposal, run, 0.0) for run in range(runs)], ddof=1))


def _geometric(own: Sequence[float], other: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(own) - np.log(other))))


CHAINS = {
    "exact": None,
    **{f"`bootstrap`, n = {n:,}": (n, None) for n in (100, 400, 1600)},
    "unguided, n = 100": (100, hf.RankedProposal(guided=False, randomised=True)),
    **{f"guided, n = {n}": (n, hf.RankedProposal(randomised=True)) for n in (20, 50)},
    "`ranked`, n = 20": (20, hf.RankedProposal()),
}
LENGTH, SPREAD = 300, 0.1  # observations, and standard deviation of the random walk


def followed(phi: float) -> hf.models.LinearGaussian:
    """Return an autoregressive process with observations as exact as its noise is."""
    return hf.models.LinearGaussian([[phi]], [[1.0]], [[1.0]], [[0.5]], [0.0], [[1.0]])


def chains(seed: int, moves: int) -> pd.DataFrame:
    """Particle Metropolis-Hastings for one parameter: how often it moves, and how many independent draws a second gives."""
    z, rows = hf.simulate(followed(0.7), LENGTH, np.random.default_rng([seed, 99]))[1], []
    calls = [
        partial(_likelihood, z, given, np.random.default_rng(0), 0.7) for given in CHAINS.values()
    ]
    for (name, given), seconds in zip(CHAINS.items(), cpu_seconds(calls, 9), strict=True):
        rng = np.random.default_rng([seed, 1])
        chain = _chain(partial(_likelihood, z, given, rng), 0.7, moves, rng)
        effective = _effective(chain)
        row = {
            "filter": name,
            "moves": moves,
            "accepted": np.mean(np.diff(chain) != 0),
            "effective": effective,
        }
        row |= {"ms": 1000 * seconds, "effective_per_second": effective / (moves * seconds)}
        rows.append(row | {"mean": chain.mean(), "sd": chain.std()})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def _likelihood(z: np.ndarray, given: tuple | None, rng: np.random.Generator, phi: float) -> float:
    if abs(phi) >= 1:  # the prior is uniform from -1 to 1
        return -np.inf
    model = followed(phi)
    online = (
        hf.ExtendedKalmanFilter(model)
        if given is None
        else hf.ParticleFilter(model, *given, rng=rng)
    )
    return float(online.run(z).log_likelihood)


def _chain(
    log_likelihood: Callable, phi: float, moves: int, rng: np.random.Generator
) -> np.ndarray:
    current, chain = log_likelihood(phi), [phi]
    for _ in range(moves):
        ahead = phi + SPREAD * rng.standard_normal()
        value = log_likelihood(ahead)
        if np.log(rng.random()) < value - current:
            phi, current = ahead, value
        chain.append(phi)
    return np.array(chain)


def _effective(chain: np.ndarray) -> float:
    """Effective sample size by the initial positive sequence (Geyer 1992)."""
    n, x = len(chain), chain - chain.mean()
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[:n] / (x @ x)
    pairs = correlations[0 : n - 1 : 2] + correlations[1:n:2]
    kept = pairs[: int(np.argmax(pairs < 0))] if (pairs < 0).any() else pairs
    return float(n / (2 * kept.sum() - 1))


SETTLING = {
    "auto": hf.AutomaticProposal(),
    "ranked": hf.RankedProposal(),
    "randomised": hf.RankedProposal(randomised=True),
    "bootstrap": None,
}


def settling(
    counts: Sequence[int], series: int, seed: int, reference: int, folder: Path
) -> pd.DataFrame:
    """Errors of the log-likelihood of the scenario bearings as n grows, against a large bootstrap filter."""
    shown = load_scenario("bearings")
    model, errors = shown.build_model(), []
    for k in range(series):
        z = hf.simulate(model, shown.steps, np.random.default_rng([seed, k]), dt=shown.dt)[1]

        def log_likelihood(n: int, proposal: object, z: np.ndarray = z) -> float:
            return (
                hf.ParticleFilter(model.compiled(), n, proposal, rng=0)
                .run(z, dt=shown.dt)
                .log_likelihood
            )

        exact = float(
            stored(
                folder / f"bearings-{seed}-{k}-{reference}.npy",
                partial(log_likelihood, reference, None),
            )
        )
        errors.append([[log_likelihood(n, p) - exact for n in counts] for p in SETTLING.values()])
        print(k, exact, np.round(errors[-1][0], 2), flush=True)
    rows = []
    for name, of_filter in zip(SETTLING, np.moveaxis(errors, 0, -1), strict=True):
        for n, e in zip(counts, of_filter, strict=True):
            row = {
                "filter": name,
                "n": n,
                "series": series,
                "rms": np.sqrt(np.mean(e**2)),
                "median": np.median(np.abs(e)),
            }
            rows.append(
                row
                | {
                    "largest": np.abs(e).max(),
                    "mean": e.mean(),
                    "standard_error": e.std(ddof=1) / np.sqrt(series),
                }
            )
    return pd.DataFrame(rows)
