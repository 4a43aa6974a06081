"""filterpy's Kalman filters, and the particle filter that the book of its author makes of its resampling.

The book: Labbe, "Kalman and Bayesian Filters in Python", on particle filters. Weights are multiplied, and particles
resampled by `systematic_resample` below an effective sample size of n / 2. The estimate is taken before resampling. See
peer_runs.py.
"""

from __future__ import annotations

import numpy as np
from filterpy.kalman import ExtendedKalmanFilter, MerweScaledSigmaPoints, UnscentedKalmanFilter
from filterpy.monte_carlo import systematic_resample
from peer_runs import BEARING_SD, CHAIN, PRIOR, SENSORS, main, velocity, wrapped


class Model:
    """Functions of states with the entries last: (d,) or (n, d)."""

    def __init__(self, name: str, dt: float) -> None:
        self.name, self.P0 = name, np.diag(PRIOR[name])
        if name == "ungm":
            self.Q, self.R = np.array([[10.0]]), np.array([[1.0]])
        elif name == "bearings":
            (self.F, self.Q), self.R = velocity(dt), BEARING_SD**2 * np.eye(2)
        else:
            self.F, self.Q, self.R = CHAIN, np.eye(4), np.eye(4)

    def move(self, x, k):
        return (
            0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * k)
            if self.name == "ungm"
            else x @ self.F.T
        )

    def move_jacobian(self, x):
        return (
            np.array([0.5 + 25 * (1 - x**2) / (1 + x**2) ** 2]) if self.name == "ungm" else self.F
        )

    def observe(self, x):
        if self.name == "ungm":
            return x**2 / 20
        if self.name == "bearings":
            return np.arctan2(x[..., 1, None] - SENSORS[:, 1], x[..., 0, None] - SENSORS[:, 0])
        return x

    def observe_jacobian(self, x):
        if self.name == "ungm":
            return np.array([x / 10])
        if self.name == "bearings":
            away = x[:2] - SENSORS
            turned = np.stack([-away[:, 1], away[:, 0]], axis=1) / (away**2).sum(
                axis=1, keepdims=True
            )
            return np.hstack([turned, np.zeros((2, 2))])
        return np.eye(4)

    def residual(self, a, b):
        return wrapped(a - b) if self.name == "bearings" else a - b

    def mean_of_angles(self, points, weights):
        return np.arctan2(weights @ np.sin(points), weights @ np.cos(points))


def bootstrap(name, dt, n):
    model = Model(name, dt)
    d, m = len(model.Q), len(model.R)
    noise, start, sd = (
        np.linalg.cholesky(model.Q).T,
        np.sqrt(np.diag(model.P0)),
        np.sqrt(np.diag(model.R)),
    )
    peak = np.log(sd).sum() + 0.5 * m * np.log(2 * np.pi)

    def run(z, seed):
        np.random.seed(seed)  # noqa: NPY002  its generator
        particles, weights = start * np.random.randn(n, d), np.full(n, 1 / n)  # noqa: NPY002
        means, log_likelihood = [], 0.0
        for k, seen in enumerate(z, start=1):
            particles = model.move(particles, k) + np.random.randn(n, d) @ noise  # noqa: NPY002
            logs = -0.5 * ((model.residual(seen, model.observe(particles)) / sd) ** 2).sum(axis=1)
            highest = logs.max()  # in place of the book's 1e-300, which leaves weights of no meaning far from all particles
            weights *= np.exp(logs - highest)
            total = weights.sum()
            weights /= total
            log_likelihood += np.log(total) + highest - peak
            means.append(weights @ particles)
            if 1 / np.sum(np.square(weights)) < n / 2:
                particles = particles[systematic_resample(weights)]
                weights.fill(1 / n)
        return means, log_likelihood

    return run


def ukf(name, dt, n):
    model = Model(name, dt)
    d, m = len(model.Q), len(model.R)

    def run(z, seed):
        points = MerweScaledSigmaPoints(d, alpha=0.1, beta=2.0, kappa=3.0 - d)
        circular = (
            {"residual_z": model.residual, "z_mean_fn": model.mean_of_angles}
            if name == "bearings"
            else {}
        )
        kf = UnscentedKalmanFilter(
            d, m, dt, model.observe, lambda x, dt, k: model.move(x, k), points, **circular
        )
        kf.x, kf.P, kf.Q, kf.R = np.zeros(d), model.P0.copy(), model.Q, model.R
        means, log_likelihood = [], 0.0
        for k, seen in enumerate(z, start=1):
            kf.predict(k=k)
            kf.update(seen)
            means.append(kf.x)
            log_likelihood += kf.log_likelihood
        return means, log_likelihood

    return run


class Extended(ExtendedKalmanFilter):
    """Its filter with a transition that is not linear, as its documentation says."""

    def predict_x(self, u=0):
        self.x = self.model.move(self.x, u)


def ekf(name, dt, n):
    model = Model(name, dt)
    d, m = len(model.Q), len(model.R)

    def run(z, seed):
        kf = Extended(d, m)
        kf.model, kf.x, kf.P, kf.Q, kf.R = model, np.zeros(d), model.P0.copy(), model.Q, model.R
        means, log_likelihood = [], 0.0
        for k, seen in enumerate(z, start=1):
            kf.F = model.move_jacobian(kf.x)
            kf.predict(u=k)
            kf.update(seen, model.observe_jacobian, model.observe, residual=model.residual)
            means.append(kf.x)
            log_likelihood += kf.log_likelihood
        return means, log_likelihood

    return run


if __name__ == "__main__":
    main({"filterpy-bootstrap": bootstrap}, {"filterpy-ekf": ekf, "filterpy-ukf": ukf})
