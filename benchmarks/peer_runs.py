"""What runs the filters of one library: takes turns, times every run, writes what the filters found. It needs NumPy alone.

``PYTHON peers_NAME.py IN OUT [FILTERS]`` reads recordings, an npz file of `model`, `dt`, `n` (k,), `seconds` and
`observations` (runs, T, m). It writes for each filter: `counts` (c,), `means` (c, runs, T, d), `log_likelihoods` and `ms`
(c, runs), `compile_seconds` (c,), and one line for each count that is left out. `ms` are CPU milliseconds of the process for
each step, of a whole run. The first run of a count is run twice: what the first time takes longer is compilation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

import numpy as np

Run = Callable[[np.ndarray, int], tuple[np.ndarray, object]]
"""Takes observations (T, m) and a seed, returns means (T, d) and a log-likelihood, or a function that returns it."""
Build = Callable[[str, float, int], Run]
"""Takes the model's name, dt and the number of particles."""
SENSORS, BEARING_SD, DENSITY = np.array([[-1.0, -2.0], [1.0, 1.0]]), 0.05, 0.1
PRIOR = {"ungm": [5.0], "bearings": [0.1, 0.1, 0.5, 0.5], "linear_chain": [1.0] * 4}
"""Variances of the state before the first step, whose mean is 0; the state of `bearings` is x, y and their velocities."""
CHAIN = 0.42 ** (np.abs(np.subtract.outer(np.arange(4), np.arange(4))) + 1.0)


def velocity(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Transition matrix and noise covariance of nearly constant velocity in the plane, both (4, 4)."""
    noise = DENSITY * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    return np.kron([[1.0, dt], [0.0, 1.0]], np.eye(2)), np.kron(noise, np.eye(2))


def power_of_two(n: int) -> int:
    """Return the nearest one, which Sobol points ask for."""
    return int(2 ** round(np.log2(n)))


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Angles between -pi and pi."""
    return angle - 2 * np.pi * np.rint(angle / (2 * np.pi))


def main(filters: Mapping[str, Build], single: Mapping[str, Build]) -> None:
    """Run filters at every count, and those of `single` without one."""
    given, found, told = np.load(sys.argv[1]), {}, []
    wanted = set(sys.argv[3:]) or {*filters, *single}
    z = given["observations"]
    last: dict[str, tuple[int, float]] = {}  # count, and the seconds of a run
    for n in (0, *map(int, given["n"])):
        runs = {}
        for name, build in (filters if n else single).items():
            m, expected = last.get(name, (n, 0.0))
            if name not in wanted:
                continue
            if n and expected * n / m > given["seconds"]:
                told.append(f"{name} at n = {n:,}: {expected * n / m:.0f} s a run expected")
                continue
            run = build(str(given["model"]), float(given["dt"]), n)
            first, _ = timed(run, z[0], 0)
            runs[name] = (run, first, [])
        for k, observations in enumerate(z):
            for run, _, results in runs.values():
                results.append(timed(run, observations, k))
        for name, (_, first, results) in runs.items():
            seconds = [one for one, _ in results]
            last[name] = (n, min(seconds))
            row = {
                "counts": n,
                "means": [means for _, (means, _) in results],
                "compile_seconds": first - seconds[0],
            }
            row |= {"log_likelihoods": [float(log) for _, (_, log) in results]}
            row |= {"ms": 1e3 * np.array(seconds) / z.shape[1]}
            for key, value in row.items():
                found.setdefault(f"{name}/{key}", []).append(value)
    np.savez(sys.argv[2], left_out=told, **found)


def timed(run: Run, observations: np.ndarray, seed: int) -> tuple[float, tuple[np.ndarray, object]]:
    """CPU seconds of the process, and what the run returns; a log-likelihood that is a function is taken off the clock."""
    start = time.process_time()
    means, log_likelihood = run(observations, seed)
    seconds = time.process_time() - start
    return seconds, (
        np.asarray(means, dtype=float),
        log_likelihood() if callable(log_likelihood) else log_likelihood,
    )
