"""Stone Soup's particle, extended and unscented Kalman filters, with its own models where it has them.

Two sensors are two detections of one time, which update one after the other. The estimate is taken before resampling, so the
resampler stands beside the updater. Stone Soup has no growth model; the classes of it are ours. See peer_runs.py.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from peer_runs import BEARING_SD, CHAIN, DENSITY, PRIOR, SENSORS, main
from scipy.stats import multivariate_normal
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.measurement.nonlinear import (
    Cartesian2DToBearing,
    NonLinearGaussianMeasurement,
)
from stonesoup.models.transition.linear import (
    CombinedLinearGaussianTransitionModel,
    ConstantVelocity,
    LinearGaussianTimeInvariantTransitionModel,
)
from stonesoup.models.transition.nonlinear import GaussianTransitionModel
from stonesoup.predictor.kalman import ExtendedKalmanPredictor, UnscentedKalmanPredictor
from stonesoup.predictor.particle import ParticlePredictor
from stonesoup.resampler.particle import ESSResampler
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.detection import Detection
from stonesoup.types.hypothesis import SingleHypothesis
from stonesoup.types.state import GaussianState, ParticleState
from stonesoup.updater.kalman import ExtendedKalmanUpdater, UnscentedKalmanUpdater
from stonesoup.updater.particle import ParticleUpdater

START = datetime(2030, 1, 1)
ORDER = [0, 2, 1, 3]
"""Of its state of `bearings`, x and its velocity, y and its velocity, in ours; and the reverse."""


class Growth(GaussianTransitionModel):
    """Transition of the univariate growth model."""

    ndim_state = 1

    def covar(self, **kwargs):
        return np.array([[10.0]])

    def function(self, state, noise=False, **kwargs):
        x, step = state.state_vector, 1 + round((state.timestamp - START).total_seconds())
        moved = 0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * step)
        return moved + self.rvs(num_samples=x.shape[1], **kwargs) if noise else moved


class Square(NonLinearGaussianMeasurement):
    """Its observation."""

    ndim_meas = 1

    def function(self, state, noise=False, **kwargs):
        x = state.state_vector
        return x**2 / 20 + self.rvs(num_samples=x.shape[1], **kwargs) if noise else x**2 / 20


def parts(model: str):
    """Transition, a measurement model for each detection of a time, and the rows of an observation that it has."""
    if model == "ungm":
        return Growth(), [(Square(1, (0,), np.eye(1)), [0])]
    if model == "bearings":
        motion = CombinedLinearGaussianTransitionModel(
            [ConstantVelocity(DENSITY), ConstantVelocity(DENSITY)]
        )
        noise = np.array([[BEARING_SD**2]])
        places = [StateVector(place) for place in SENSORS]
        return motion, [
            (Cartesian2DToBearing(4, (0, 2), noise, translation_offset=p), [i])
            for i, p in enumerate(places)
        ]
    motion = LinearGaussianTimeInvariantTransitionModel(
        transition_matrix=CHAIN, covariance_matrix=np.eye(4)
    )
    return motion, [(LinearGaussian(4, (0, 1, 2, 3), np.eye(4)), [0, 1, 2, 3])]


def detections(sensors, z, dt):
    """Time -> the detections of it."""
    times = [START + (k + 1) * timedelta(seconds=dt) for k in range(len(z))]
    return [
        (
            time,
            [
                Detection(StateVector(seen[rows]), time, measurement_model=sensor)
                for sensor, rows in sensors
            ],
        )
        for time, seen in zip(times, z, strict=True)
    ]


def ours(model, means):
    """Means (T, d) in the order of our states."""
    means = np.array([np.ravel(mean) for mean in means], dtype=float)
    return means[:, ORDER] if model == "bearings" else means


def bootstrap(model, dt, n):
    motion, sensors = parts(model)
    sd = np.sqrt(PRIOR[model])[:, None]

    def run(z, seed):
        np.random.seed(seed)  # noqa: NPY002  its generator
        x = sd * np.random.standard_normal((len(sd), n))  # noqa: NPY002
        state = ParticleState(
            StateVectors(x[ORDER] if model == "bearings" else x),
            weight=np.full(n, 1 / n),
            timestamp=START,
        )
        predictor, updater, resampler = (
            ParticlePredictor(motion),
            ParticleUpdater(None),
            ESSResampler(),
        )
        means, weighed = [], []
        for time, found in detections(sensors, z, dt):
            state = predictor.predict(state, timestamp=time)
            for detection in found:
                before, state = state, updater.update(SingleHypothesis(state, detection))
                best = int(np.argmax(state.log_weight))
                weighed.append(
                    (
                        before.log_weight[best],
                        state[best : best + 1],
                        state.log_weight[best],
                        detection,
                    )
                )
            means.append(state.mean)
            state = resampler.resample(state)

        def log_likelihood():
            """Sum of the logarithms by which its updater divides the weights, each told by one particle."""
            return sum(
                w + one.measurement_model.logpdf(one, at) - after for w, at, after, one in weighed
            )

        return ours(model, means), log_likelihood

    return run


def kalman(model, dt, predictor, updater):
    motion, sensors = parts(model)
    spread = np.diag(PRIOR[model])

    def run(z, seed):
        P0 = spread[np.ix_(ORDER, ORDER)] if model == "bearings" else spread
        state, predict, update = (
            GaussianState(np.zeros((len(P0), 1)), P0, START),
            predictor(motion),
            updater(None),
        )
        means, log_likelihood = [], 0.0
        for time, found in detections(sensors, z, dt):
            state = predict.predict(state, timestamp=time)
            for detection in found:
                hypothesis = SingleHypothesis(state, detection)
                state = update.update(hypothesis)
                seen = hypothesis.measurement_prediction
                away = np.asarray(detection.state_vector - seen.state_vector, dtype=float)[:, 0]
                log_likelihood += multivariate_normal.logpdf(
                    away, cov=np.asarray(seen.covar, dtype=float)
                )
            means.append(state.mean)
        return ours(model, means), log_likelihood

    return run


if __name__ == "__main__":
    main(
        {"stonesoup-bootstrap": bootstrap},
        {
            "stonesoup-ekf": lambda model, dt, n: kalman(
                model, dt, ExtendedKalmanPredictor, ExtendedKalmanUpdater
            ),
            "stonesoup-ukf": lambda model, dt, n: kalman(
                model, dt, UnscentedKalmanPredictor, UnscentedKalmanUpdater
            ),
        },
    )
