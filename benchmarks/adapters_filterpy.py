"""filterpy's unscented Kalman filter, and filters of ours on the model that `from_filterpy` makes of it."""

from __future__ import annotations

from functools import partial

import numpy as np
from adapters import Reference, beside
from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

import herdfilter as hf
from herdfilter.adapters.filterpy import from_filterpy

STEPS, N = 40, 100
SENSORS = np.array([[0.0, 0.0], [20.0, 0.0]])


def bearings() -> UnscentedKalmanFilter:
    """Two bearings of a target of nearly constant velocity, d = 4, by five functions as filterpy's users write them."""

    def fx(x, dt):
        return np.array([x[0] + dt * x[1], x[1], x[2] + dt * x[3], x[3]])

    def hx(x):
        return np.array([np.arctan2(x[2] - y, x[0] - s) for s, y in SENSORS])

    def residual(a, b):
        return (np.subtract(a, b) + np.pi) % (2 * np.pi) - np.pi

    def mean(points, weights):
        return np.arctan2(weights @ np.sin(points), weights @ np.cos(points))

    points = MerweScaledSigmaPoints(4, alpha=0.1, beta=2.0, kappa=-1.0)
    kf = UnscentedKalmanFilter(4, 2, 1.0, hx, fx, points, residual_z=residual, z_mean_fn=mean)
    kf.x, kf.P = np.array([8.0, 0.2, 12.0, -0.25]), np.diag([9.0, 0.09, 9.0, 0.09])
    block = 0.01 * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
    kf.Q, kf.R = np.kron(np.eye(2), block), np.diag([0.05, 0.05]) ** 2
    return kf


def pendulum() -> UnscentedKalmanFilter:
    """Deflection and rate of a pendulum that swings over the top now and then; only its horizontal deflection is seen."""

    def fx(x, dt):
        rate = x[1] - 9.81 * dt * np.sin(x[0])
        return np.array([x[0] + dt * rate, rate])

    def hx(x):
        return np.array([np.sin(x[0])])

    kf = UnscentedKalmanFilter(
        2, 1, 0.1, hx, fx, MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
    )
    kf.x, kf.P = np.array([1.2, 0.0]), np.diag([0.3, 1.0])
    kf.Q, kf.R = np.diag([0.001, 0.1]), np.diag([0.1])
    return kf


def beacon() -> UnscentedKalmanFilter:
    """Walk in the plane, of which the range to one beacon is seen: a ring, of which the walk cuts out an arc."""

    def fx(x, dt):
        return x + dt * np.array([0.3, 0.0]).reshape(2, *[1] * (x.ndim - 1))

    def hx(x):
        return np.array([np.hypot(x[0], x[1])])

    kf = UnscentedKalmanFilter(
        2, 1, 1.0, hx, fx, MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
    )
    kf.x, kf.P = np.array([-6.0, 1.0]), 4.0 * np.eye(2)
    kf.Q, kf.R = 0.1 * np.eye(2), np.diag([0.04])
    return kf


MODELS = {"two bearings, d = 4": bearings, "pendulum, d = 2": pendulum, "one range, d = 2": beacon}


def theirs(make, observations: list[np.ndarray], k: int) -> np.ndarray:
    """Means of filterpy's filter."""
    kf, means = make(), []
    for z in observations[k]:
        kf.predict()
        kf.update(z)
        means.append(kf.x)
    return np.array(means)


def ours(name: str, model, n: int, observations: list[np.ndarray], k: int) -> np.ndarray:
    """Means of a filter of the catalogue."""
    return hf.make_filter(name, model, n_particles=n, rng=k).run(observations[k]).means


def measured(args) -> list[dict[str, object]]:
    """Rows of all models."""
    rows: list[dict[str, object]] = []
    for label, make in MODELS.items():
        loop, columns = from_filterpy(make()), from_filterpy(make(), vectorised="columns")
        seeds = range(1_000_000 + args.seed, 1_000_000 + args.seed + args.runs)
        observations = [hf.simulate(columns, STEPS, rng=seed)[1] for seed in seeds]
        references = []
        for k, z in enumerate(observations):
            found = hf.make_filter("sqmc", columns, n_particles=args.many, rng=k).run(z)
            references.append(
                Reference(found.means, np.sqrt(np.diagonal(found.covariances, axis1=1, axis2=2)))
            )
        filters = {
            "filterpy UKF": partial(theirs, make, observations),
            "ukf": partial(ours, "ukf", loop, N, observations),
            "bootstrap, columns": partial(ours, "bootstrap", columns, N, observations),
            "auto": partial(ours, "auto", loop, N, observations),
            "auto, columns": partial(ours, "auto", columns, N, observations),
        }
        counts = {name: 0 if "ukf" in name.lower() else N for name in filters}
        rows += beside("filterpy", label, counts, filters, references)
    return rows
