"""Particle filters on a linear Gaussian model against the Kalman filter of filterpy: errors and their rates."""

from __future__ import annotations

import os

import numpy as np
from common import show
from filterpy.kalman import KalmanFilter
from joblib import Parallel, delayed

import herdfilter as hf
from herdfilter.evaluation.scenario import load_scenario
from herdfilter.models.contract import simulate

PARTICLES = (50, 100, 200, 400, 800, 1600)
RUNS = 20
FILTERS = {
    "bootstrap": {},
    "herded-kh": {"proposal": hf.HerdedProposal(hf.KernelHerding())},
    "augmented-kh": {
        "proposal": hf.AugmentedProposal(hf.GaussianFit(), hf.MappedSampling(hf.KernelHerding()))
    },
}
LARGEST = {"herded-kh": 400}


def kalman(model: hf.models.LinearGaussian, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Exact means, covariances and log-likelihood."""
    kf = KalmanFilter(dim_x=model.dim, dim_z=len(model.R))
    kf.F, kf.H, kf.Q, kf.R = (np.asarray(m) for m in (model.F, model.H, model.Q, model.R))
    kf.x, kf.P = model.initial.mean.copy(), model.initial.covariance.copy()
    means, covariances, log_likelihood = [], [], 0.0
    for z in observations:
        kf.predict()
        kf.update(z)
        means.append(kf.x.copy())
        covariances.append(kf.P.copy())
        log_likelihood += kf.log_likelihood
    return np.array(means), np.array(covariances), log_likelihood


def errors(name: str, n: int, run: int) -> tuple[float, float, float]:
    """RMS error of the mean, relative RMS error of the covariance, squared error of the log-likelihood."""
    model = load_scenario("linear_gaussian").build_model()
    _, observations = simulate(model, 100, np.random.default_rng(run))
    means, covariances, log_likelihood = kalman(model, observations)
    result = hf.ParticleFilter(model, n, rng=run, **FILTERS[name]).run(observations)
    gap = ((result.covariances - covariances) ** 2).sum((1, 2)) / (covariances**2).sum((1, 2))
    return (
        float(np.sqrt(((result.means - means) ** 2).sum(1).mean())),
        float(np.sqrt(gap.mean())),
        abs(result.log_likelihood - log_likelihood),
    )


if __name__ == "__main__":
    rows = []
    for name in FILTERS:
        sizes = [n for n in PARTICLES if n <= LARGEST.get(name, max(PARTICLES))]
        medians = []
        for n in sizes:
            jobs = (delayed(errors)(name, n, run) for run in range(RUNS))
            medians.append(np.median(Parallel(os.cpu_count() or 1)(jobs), axis=0))
            rows.append([name, n, *map(float, medians[-1])])
        slopes = np.polyfit(np.log(sizes), np.log(medians), 1)[0]
        rows.append([name, "slope", *map(float, slopes)])
    columns = ["filter", "n", "mean", "covariance (relative)", "log-likelihood"]
    show(f"Median errors against the Kalman filter, {RUNS} runs of 100 steps", columns, rows)
