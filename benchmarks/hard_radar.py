"""Clutter and manoeuvres on scenes drawn at random: the default beside the mixture Kalman filter and others.

Every run draws a scene of its own: how lively the target is, how sharp its sensor, how far away and how fast it starts.
The sensor gives positions ("linear"), or range and bearing ("radar"). P_D is 0.85 in clutter. A gate of probability
0.99 about the prediction of a Kalman filter holds `in_gate` false detections in the mean, drawn in a window of 24
standard deviations. A manoeuvring target ("turns") goes straight or turns left or right at a known rate. A target that
turns at an unknown rate ("rates") has two modes, one of them with a turn rate in its state.

A track is lost if the RMSE of its position over the last quarter exceeds five standard deviations of a predicted position,
without clutter. The error of a filter over that of mkf is a geometric mean over the runs that neither has lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest

import herdfilter as hf
from herdfilter.study.statistics import bootstrap_interval

STEPS, DETECTED, GATE, LOST = 40, 0.85, 9.21, 5.0
SCENES = [
    ("linear", 0.3),
    ("linear", 1.0),
    ("linear", 3.0),
    ("radar", 0.3),
    ("radar", 1.0),
    ("radar", 3.0),
]
SCENES += [
    ("turns", 0.0),
    ("turns of radar", 0.0),
    ("rates", 0.0),
    ("turns", 1.0),
    ("turns of radar", 1.0),
]
FILTERS = [("mkf", 100), ("auto", 100), ("bootstrap", 1000), ("imm", 1)]
POSITION = [0, 2]


@dataclass(frozen=True)
class Scene:
    """The model without clutter, the truth, detections of all steps, and the Kalman filter's standard deviations."""

    model: Any
    truth: np.ndarray
    detections: np.ndarray
    spread: np.ndarray  # (m, m), covariance of a predicted detection without clutter
    sd: float  # of a predicted position


def drawn(kind: str, rng: np.random.Generator) -> Scene:
    """Draw a scene: a speed of 5 to 40 m/s, and accelerations from a fortieth to a half of it in a second."""
    speed, course = rng.uniform(5, 40), rng.uniform(-np.pi, np.pi)
    jolt, sight = (
        speed * np.exp(rng.uniform(np.log(1 / 40), np.log(1 / 2))),
        speed * rng.uniform(0.1, 1.5),
    )
    place = (
        rng.uniform(15, 60)
        * speed
        * np.array([np.cos(towards := rng.uniform(-np.pi, np.pi)), np.sin(towards)])
    )
    start = np.array([place[0], speed * np.cos(course), place[1], speed * np.sin(course)])
    wide = np.diag([2 * sight, speed / 2, 2 * sight, speed / 2]) ** 2
    noise = np.kron(np.eye(2), [[1 / 3, 1 / 2], [1 / 2, 1.0]])
    sharp = np.array([rng.uniform(0.1, 1.0) * sight, np.deg2rad(rng.uniform(0.3, 3.0))])
    rate = np.deg2rad(rng.uniform(3, 20))
    radar = "radar" in kind or kind == "rates"

    def seen(x):
        return (
            np.column_stack([np.hypot(x[:, 0], x[:, 2]), np.arctan2(x[:, 2], x[:, 0])])
            if radar
            else x[:, POSITION]
        )

    R = np.diag(sharp**2) if radar else sight**2 * np.eye(2)
    more = {"observation_circular": [1]} if radar else {}

    def moving(F, Q, mean=start, covariance=wide):
        return hf.models.from_functions(lambda x: x @ F.T, seen, Q, R, mean, covariance, **more)

    def turn(w):
        s, c = (np.sin(w) / w, (1 - np.cos(w)) / w) if w else (1.0, 0.0)
        return np.array(
            [
                [1, s, 0, -c],
                [0, np.cos(w), 0, -np.sin(w)],
                [0, c, 1, s],
                [0, np.sin(w), 0, np.cos(w)],
            ]
        )

    if kind in ("linear", "radar"):
        model = moving(turn(0.0), jolt**2 * noise)
    elif kind == "rates":
        model = unknown_rate(start, wide, seen, R, rate, speed, more)
    else:
        chain = np.full((3, 3), 0.05) + np.diag([0.85, 0.85, 0.85])
        modes = [moving(turn(w), (speed / 50) ** 2 * noise) for w in (0.0, rate, -rate)]
        model = hf.models.JumpMarkov(modes, chain)
    truth, detections = hf.simulate(model, STEPS, rng)
    kf = (hf.InteractingMultipleModel if hasattr(model, "models") else hf.UnscentedKalmanFilter)(
        model
    )
    spreads, sds = [], []
    for z in detections:
        kf.predict()
        spreads.append(kf.predicted_observation()[1])
        sds.append(np.sqrt(np.trace(kf.covariance[np.ix_(POSITION, POSITION)]) / 2))
        kf.update(z)
    return Scene(model, truth, detections, np.median(spreads, axis=0), float(np.median(sds)))


def unknown_rate(start, wide, seen, R, rate, speed, more):
    """Two modes: straight on, and a turn whose rate is a part of the state."""
    noise = (speed / 50) ** 2 * np.kron(np.eye(2), [[1 / 3, 1 / 2], [1 / 2, 1.0]])

    def turned(x, scale):
        w = np.where(np.abs(x[:, 4]) < 1e-9, 1e-9, x[:, 4]) * scale + 1e-12
        s, c, cos, sin = np.sin(w) / w, (1 - np.cos(w)) / w, np.cos(w), np.sin(w)
        moved = [x[:, 0] + s * x[:, 1] - c * x[:, 3], cos * x[:, 1] - sin * x[:, 3]]
        return np.column_stack(
            [*moved, x[:, 2] + c * x[:, 1] + s * x[:, 3], sin * x[:, 1] + cos * x[:, 3], x[:, 4]]
        )

    def mode(scale, keep, spread):
        Q = np.zeros((5, 5))
        Q[:4, :4], Q[4, 4] = noise, spread**2
        covariance = np.zeros((5, 5))
        covariance[:4, :4], covariance[4, 4] = wide, rate**2
        step = lambda x: turned(x, scale) * [1, 1, 1, 1, keep]  # noqa: E731
        return hf.models.from_functions(step, seen, Q, R, [*start, 0.0], covariance, **more)

    chain = [[0.95, 0.05], [0.1, 0.9]]
    return hf.models.JumpMarkov([mode(0.0, 0.0, rate), mode(1.0, 1.0, rate / 20)], chain)


def run(
    seed: int, kind: str, in_gate: float, filters: list[tuple[str, int]]
) -> list[tuple[float, bool]]:
    """RMSE of the position by each filter, and whether it lost the track."""
    rng = np.random.default_rng(seed)
    scene = drawn(kind, rng)
    scans: Any = scene.detections
    model = scene.model
    if in_gate:
        sd = np.sqrt(np.diagonal(scene.spread))
        density = in_gate / (np.pi * GATE * np.sqrt(np.linalg.det(scene.spread)))
        expected = density * np.prod(24 * sd)
        bare = hf.models.WithClutter(model, DETECTED, density)
        scans = []
        for z in scene.detections:
            clutter = z + rng.uniform(-12 * sd, 12 * sd, (rng.poisson(expected), 2))
            scans.append(np.vstack([clutter, z[None][: int(rng.random() < DETECTED)]]))
        model = bare
    found = []
    for name, n in filters:
        if name == "imm" and not hasattr(scene.model, "models"):
            name = "ukf"
        means = hf.make_filter(name, model, n, rng=seed).run(scans).means
        squared = ((means - scene.truth)[:, POSITION] ** 2).sum(axis=1)
        gone = np.sqrt(squared[-(STEPS // 4) :].mean() / 2) > LOST * scene.sd
        found.append((float(np.sqrt(squared.mean())), bool(gone)))
    return found


def compared(kind: str, in_gate: float, runs: int, seed: int, workers: int) -> pd.DataFrame:
    """One row per filter: tracks lost, and its error over that of mkf."""
    one = delayed(partial(run, kind=kind, in_gate=in_gate, filters=FILTERS))
    out = Parallel(n_jobs=workers)(one(seed + k) for k in range(runs))
    errors, gone = (
        np.array([[e for e, _ in row] for row in out]),
        np.array([[g for _, g in row] for row in out]),
    )
    rows = []
    for k, (name, n) in enumerate(FILTERS):
        lost = int(gone[:, k].sum())
        interval = binomtest(lost, runs).proportion_ci(method="wilson")
        both = ~(gone[:, 0] | gone[:, k])
        ratios = np.log(errors[both, k] / errors[both, 0])
        low, high = (
            np.exp(bootstrap_interval(ratios, np.mean)) if both.sum() > 1 else (np.nan, np.nan)
        )
        row = {
            "scene": kind,
            "in_gate": in_gate,
            "filter": name,
            "n": n,
            "runs": runs,
            "lost": lost,
        }
        row |= {"lost_low": runs * interval.low, "lost_high": runs * interval.high}
        row |= {
            "over_mkf": float(np.exp(ratios.mean())),
            "over_mkf_low": low,
            "over_mkf_high": high,
        }
        rows.append(row | {"error": float(np.sqrt(np.mean(errors[:, k] ** 2)))})
    return pd.DataFrame(rows)
