"""The log-likelihood that filters estimate against the exact one: bias, spread, and bias of the likelihood itself.

One series of observations a scenario, the same for all filters, and a fresh filter seed a run. Linear Gaussian scenarios
have the Kalman filter as their reference, UNGM a grid. A filter whose first runs agree to the last bit has no random number
in it and is run no further: its error is that of one series, and has no spread. Where the spread exceeds 1, the mean of
exp(error) hangs on a few runs, and its interval is too short.

python benchmarks/bench_evidence.py [--scenarios ungm ...] [--filters bootstrap ...] [--particles 50 ...] [--runs 50]
"""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Sequence

import numpy as np
from common import announce, show
from joblib import Parallel, delayed

import herdfilter as hf
from herdfilter.evaluation.filters import catalogue, resolve_filters

CHECKS = 3
"""Runs after which a filter that repeats itself is taken to be deterministic."""

LARGEST = {"bootstrap-transport": 100}
"""Most particles where d > 1, for filters whose time grows faster than the square of their number."""

COLUMNS = ["filter", "n", "runs", "mean error", "sd", "log mean exp(error)", "95 % interval"]


def linear(d: int) -> hf.models.LinearGaussian:
    """Return a damped chain of d states, each drawn along by the next and all observed."""
    F = 0.7 * np.eye(d) + 0.2 * np.eye(d, k=1)
    return hf.models.LinearGaussian(F, np.eye(d), np.eye(d), 2.0 * np.eye(d), np.zeros(d), np.eye(d))


SCENARIOS = {
    "linear-1": linear(1),
    "linear-2": linear(2),
    "linear-4": linear(4),
    "ungm": hf.models.UNGM(),
}


def exact(model: object, observations: np.ndarray) -> float:
    """Return the log-likelihood of the observations."""
    if isinstance(model, hf.models.LinearGaussian):
        from bench_kalman import kalman

        return float(kalman(model, observations)[2])
    return hf.GridFilter(model, -60.0, 60.0, 2401).run(observations).log_likelihood


def estimate(scenario: str, name: str, n: int, observations: np.ndarray, seed: int, run: int) -> float:
    """Log-likelihood by one filter run."""
    rng = np.random.default_rng([seed, 1, run])
    return resolve_filters(name)[name](SCENARIOS[scenario], n, rng).run(observations).log_likelihood


def likelihood_ratio(errors: np.ndarray) -> tuple[float, str]:
    """Log of the mean of exp(error), 0 where the likelihood is unbiased, and its 95 % interval by the delta method."""
    peak = errors.max()
    ratios = np.exp(errors - peak)
    centre = float(peak + np.log(ratios.mean()))
    if len(errors) < 2:
        return centre, ""
    half = 1.96 * ratios.std(ddof=1) / np.sqrt(len(ratios)) / ratios.mean()
    return centre, f"{centre - half:.3g}, {centre + half:.3g}"


def row(name: str, n: int | str, errors: np.ndarray, seeds: int) -> list[object]:
    """Table row of one filter; `seeds` is the number of runs asked for."""
    if seeds > 1 and np.ptp(errors[:CHECKS]) == 0:
        return [name, n, "same for every seed", float(errors[0]), 0.0, float(errors[0]), ""]
    spread = float(errors.std(ddof=1)) if len(errors) > 1 else float("nan")
    return [name, n, len(errors), float(errors.mean()), spread, *likelihood_ratio(errors)]


def main(arguments: Sequence[str] | None = None) -> None:
    known = {name: table.get("filter", "ParticleFilter") for name, table in catalogue().items()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--filters", nargs="*", choices=known, default=list(known))
    parser.add_argument("--particles", nargs="*", type=int, default=[50, 100, 500])
    parser.add_argument("--runs", type=int, default=50, help="filter seeds")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(arguments)
    announce(args.seed)
    with Parallel(args.workers) as parallel:
        for scenario in args.scenarios:
            model = SCENARIOS[scenario]
            observations = hf.simulate(model, args.steps, np.random.default_rng([args.seed, 0]))[1]
            reference = exact(model, observations)
            tables: dict[bool, list[list[object]]] = {True: [], False: []}
            for name in args.filters:
                takes_particles = "n_particles" in inspect.signature(getattr(hf, known[name])).parameters
                for n in args.particles if takes_particles else [None]:
                    if model.dim > 1 and n is not None and n > LARGEST.get(name, n):
                        continue
                    job = (scenario, name, n or 1, observations, args.seed)
                    first = parallel(delayed(estimate)(*job, k) for k in range(min(CHECKS, args.runs)))
                    if np.ptp(first) > 0:
                        first += parallel(delayed(estimate)(*job, k) for k in range(CHECKS, args.runs))
                    errors = np.array(first) - reference
                    tables[known[name] == "ParticleFilter"].append(row(name, n or "", errors, args.runs))
            title = f"{scenario}: log-likelihood of {args.steps} steps, exactly {reference:.5g}"
            approximation = (
                "exact but for ensembles"
                if isinstance(model, hf.models.LinearGaussian)
                else "Gaussian approximations"
            )
            for of_particles, kind in (
                (True, "particle filters"),
                (False, f"filters without weights, {approximation}"),
            ):
                if tables[of_particles]:
                    show(f"{title}; {kind}", COLUMNS, tables[of_particles])


if __name__ == "__main__":
    main()
