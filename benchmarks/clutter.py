"""One target in clutter: lost tracks of filters beside bootstrap with ten times the particles.

A target of nearly constant velocity in the plane (sd of the acceleration 5 m/s^2, of a position 10 m, steps of 1 s), P_D =
0.9, and so much clutter that a gate of probability 0.99 about the prediction of a Kalman filter without clutter holds
--in-gate false detections in the mean, drawn in a window of 24 standard deviations about the target. A track is lost if the
RMSE of the position over the last quarter exceeds five of them. Seeds start at a million.

And a target that a shadow hides (`hidden`): it moves with an sd of the acceleration of 0.5 m/s^2, and for about ten steps
nothing detects it. Filters are given P_D as a function of the state, as the number that it is outside, or as its mean over
the states of 100 tracks.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest

import herdfilter as hf

CLAIMS, STEPS, DETECTED = 1_000_000, 30, 0.9
GATE = 9.21  # chi-square of two degrees of freedom at 0.99
LOST = 5.0  # standard deviations of a predicted detection
FILTERS = (
    ("bootstrap", 1000),
    ("mkf", 100),
    ("auto", 100),
    ("ukf", 1),
    ("bootstrap", 100),
    ("ranked", 100),
)

SHADOW = 100.0, 200.0  # metres in x between which nothing is detected
HIDDEN_FILTERS = FILTERS[3], FILTERS[1], FILTERS[2], FILTERS[0]

_BLOCK = np.array([[1.0, 1.0], [0.0, 1.0]])
MOVING = hf.models.LinearGaussian(
    F=np.kron(np.eye(2), _BLOCK),
    H=np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]]),
    Q=25.0 * np.kron(np.eye(2), [[0.25, 0.5], [0.5, 1.0]]),
    R=100.0 * np.eye(2),
    initial_mean=[0.0, 10.0, 0.0, 0.0],
    initial_covariance=np.diag([100.0, 25.0, 100.0, 25.0]),
)


STEADY = hf.models.LinearGaussian(
    MOVING.F, MOVING.H, MOVING.Q / 100, MOVING.R, MOVING.initial.mean, MOVING.initial.covariance
)


def outside_shadow(x: np.ndarray) -> np.ndarray:
    """Return the detection probability of states (n, 4), (n,)."""
    return np.where((x[:, 0] > SHADOW[0]) & (x[:, 0] < SHADOW[1]), 0.0, DETECTED)


def predicted_sd(model: hf.models.LinearGaussian = MOVING) -> float:
    """Return the standard deviation of an entry of a predicted detection, without clutter, once it has settled."""
    kf = hf.UnscentedKalmanFilter(model)
    for _ in range(20):
        kf.predict()
        covariance = kf.predicted_observation()[1]
        kf.update([0.0, 0.0])
    return float(np.sqrt(covariance[0, 0]))


def simulated(
    seed: int, in_gate: float, sd: float, motion: object = MOVING, detected: object = None
) -> tuple:
    """Truth, scans and the density of clutter of a run; P_D may be a function of states."""
    rng = np.random.default_rng(seed)
    truth, detections = hf.simulate(motion, STEPS, rng)
    chances = np.full(STEPS, DETECTED) if detected is None else detected(truth)
    density, half = in_gate / (np.pi * GATE * sd**2), 12 * sd
    scans = []
    for x, z, p in zip(truth, detections, chances, strict=True):
        clutter = x[[0, 2]] + rng.uniform(-half, half, (rng.poisson(density * 4 * half**2), 2))
        scans.append(np.vstack([clutter, z[None][: int(rng.random() < p)]]))
    return truth, scans, density


def run(seed: int, in_gate: float, name: str, n: int, sd: float) -> tuple[float, float]:
    """RMSE of the position over the last quarter, and the log-likelihood."""
    truth, scans, density = simulated(seed, in_gate, sd)
    return error(truth, scans, hf.models.WithClutter(MOVING, DETECTED, density), seed, name, n)


def error(
    truth: np.ndarray, scans: list[np.ndarray], model: object, seed: int, name: str, n: int
) -> tuple[float, float]:
    """RMSE of the position over the last quarter, and the log-likelihood."""
    result = hf.make_filter(name, model, n, rng=seed).run(scans)
    squared = ((result.means[:, [0, 2]] - truth[:, [0, 2]]) ** 2).sum(axis=1)
    return float(np.sqrt(squared[-(STEPS // 4) :].mean())), float(result.log_likelihood)


def hidden_run(
    seed: int, in_gate: float, name: str, n: int, sd: float, told: float | None
) -> tuple[float, float]:
    """RMSE and log-likelihood of a run behind the shadow, with P_D `told`; None for the function."""
    truth, scans, density = simulated(seed, in_gate, sd, STEADY, outside_shadow)
    model = hf.models.WithClutter(STEADY, outside_shadow if told is None else told, density)
    return error(truth, scans, model, seed, name, n)


def hidden(in_gate: float, name: str, n: int, runs: int, seed: int, workers: int) -> pd.DataFrame:
    """Three rows: how many tracks a filter loses in a shadow, given P_D as a function, as a number, and as its mean."""
    sd, rows, seeds = predicted_sd(STEADY), [], range(CLAIMS + seed, CLAIMS + seed + runs)
    share = float(
        np.mean([outside_shadow(hf.simulate(STEADY, STEPS, one)[0]) for one in range(100)])
    )
    for told, value in (("function", None), ("number", DETECTED), ("mean", share)):
        one = delayed(partial(hidden_run, in_gate=in_gate, name=name, n=n, sd=sd, told=value))
        out = np.array(Parallel(n_jobs=workers)(one(k) for k in seeds))
        fewer = int((out[:, 0] > LOST * sd).sum())
        interval = binomtest(fewer, runs).proportion_ci(method="wilson")
        row = {
            "in_gate": in_gate,
            "filter": name,
            "n": n,
            "detection": told,
            "runs": runs,
            "lost": fewer,
        }
        row |= {"lost_low": runs * interval.low, "lost_high": runs * interval.high}
        rows.append(row | {"rmse_median": np.median(out[:, 0]), "log_likelihood": out[:, 1].mean()})
    table = pd.DataFrame(rows)
    table["ratio"] = table["rmse_median"] / table["rmse_median"][0]
    return table


def lost(in_gate: float, name: str, n: int, runs: int, seed: int, workers: int) -> pd.DataFrame:
    """One row: how many tracks a filter loses."""
    sd = predicted_sd()
    one = delayed(partial(run, in_gate=in_gate, name=name, n=n, sd=sd))
    out = np.array(Parallel(n_jobs=workers)(one(CLAIMS + seed + k) for k in range(runs)))
    row = {
        "in_gate": in_gate,
        "filter": name,
        "n": n,
        "runs": runs,
        "lost": int((out[:, 0] > LOST * sd).sum()),
    }
    interval = binomtest(row["lost"], runs).proportion_ci(method="wilson")
    row |= {"lost_low": runs * interval.low, "lost_high": runs * interval.high}
    row |= {"rmse_median": np.median(out[:, 0]), "log_likelihood": out[:, 1].mean()}
    return pd.DataFrame([row])
