"""Models that jump between modes, drawn at random, and filters of them against the exact posterior.

Linear: two or three linear Gaussian modes in two or four dimensions, 10 steps, the exact posterior from a Kalman filter for
each history of modes. Nonlinear: `hf.models.random_model`, whose modes move the state by its noise times a factor, shifted;
25 steps, and the mean of two runs of sequential quasi-Monte Carlo with many particles. A model whose two runs differ by more
than `AGREED` is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from common import timed

import herdfilter as hf
from herdfilter.models.resolved import Motion
from herdfilter.study.statistics import bootstrap_interval

CLAIMS = 1_000_000
"""Seeds from here on were not used while the filters were made."""

AGREED = 0.03
"""Root mean square difference of two references, in posterior standard deviations."""

REFERENCE = 2**15
PROPOSALS = {"auto": hf.AutomaticProposal(), "bootstrap": hf.BootstrapProposal()}
WITHOUT_PARTICLES = ("imm",)


class Manoeuvre:
    """A model whose transition noise v is ``scale * v + shift``; all else is the model's."""

    def __init__(self, model: Any, scale: float, shift: np.ndarray) -> None:
        self._model, self._scale, self._shift = model, scale, shift
        if hasattr(model, "transition"):
            self.transition = lambda x, noise, dt, control, step: model.transition(
                x, scale * noise + shift, dt, control, step
            )
        else:
            self.transition_mean = self._mean
            self.transition_covariance = lambda dt, step: (
                scale**2 * model.transition_covariance(dt, step)
            )

    def _mean(self, x: np.ndarray, dt: float, control: Any, step: int) -> np.ndarray:
        sd = np.sqrt(np.diagonal(self._model.transition_covariance(dt, step)))
        return self._model.transition_mean(x, dt, control, step) + sd * self._shift

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "transition")):
            raise AttributeError(name)
        return getattr(self._model, name)


def chain(count: int, rng: np.random.Generator) -> np.ndarray:
    """Transition matrix whose modes last 3 to 50 steps in the mean."""
    stay = rng.uniform(0.7, 0.98, count)
    others = rng.dirichlet(np.ones(count), count)
    np.fill_diagonal(others, 0.0)
    return np.diag(stay) + (1 - stay)[:, None] * others / others.sum(axis=1, keepdims=True)


def linear(seed: int) -> hf.models.JumpMarkov:
    """Return linear Gaussian modes that see the same entries."""
    rng = np.random.default_rng([seed, 17])
    count, d = int(rng.integers(2, 4)), int(rng.choice([2, 4]))
    k = int(rng.integers(1, d + 1))
    H, R, models = rng.standard_normal((k, d)), np.diag(rng.uniform(0.2, 2, k)), []
    for _ in range(count):
        F, root = rng.standard_normal((2, d, d))
        F *= rng.uniform(0.5, 1.05) / np.abs(np.linalg.eigvals(F)).max()
        Q = rng.uniform(0.02, 1) / d * root @ root.T
        models.append(hf.models.LinearGaussian(F, H, Q, R, np.zeros(d), np.eye(d)))
    return hf.models.JumpMarkov(models, chain(count, rng))


def nonlinear(seed: int) -> hf.models.JumpMarkov | None:
    """Return modes of a random model: its own, and manoeuvres; None where its transition can only be simulated."""
    rng, model = np.random.default_rng([seed, 18]), hf.models.random_model(seed)
    if Motion(model).simulated_only:
        return None
    q = model.noise_dim if hasattr(model, "transition") else model.dim
    others = [
        Manoeuvre(model, float(np.exp(rng.uniform(-1, 1))), 2 * rng.standard_normal(q))
        for _ in range(int(rng.integers(1, 3)))
    ]
    return hf.models.JumpMarkov([model, *others], chain(1 + len(others), rng))


def enumerated(model: hf.models.JumpMarkov, observations: np.ndarray) -> dict[str, np.ndarray]:
    """Exact means (T, d), standard deviations (T, d), probabilities (T, J) and log-likelihood, over all J^T histories."""
    modes = np.arange(len(model.models))
    means = np.array([one.initial_mean for one in model.models])
    P = np.array([one.initial_covariance for one in model.models])
    weights, total, steps = model.initial_modes, 0.0, []
    for z in observations:
        parts = []
        for j, one in enumerate(model.models):
            prior, ahead = means @ one.F.T, one.F @ P @ one.F.T + one.Q
            S = one.H @ ahead @ one.H.T + one.R
            gain = ahead @ one.H.T @ np.linalg.inv(S)
            v = z - prior @ one.H.T
            white = np.linalg.solve(np.linalg.cholesky(S), v[:, :, None])[:, :, 0]
            density = np.exp(-0.5 * (white**2).sum(axis=1)) / np.sqrt(np.linalg.det(2 * np.pi * S))
            after = prior + (gain @ v[:, :, None])[:, :, 0]
            chance = weights * model.transition_matrix[modes, j] * density
            parts.append((after, ahead - gain @ one.H @ ahead, chance, np.full(len(prior), j)))
        means, P, weights, modes = (np.concatenate(part) for part in zip(*parts, strict=True))
        total += np.log(weights.sum())
        weights = weights / weights.sum()
        mean = weights @ means
        variance = weights @ (np.diagonal(P, axis1=1, axis2=2) + (means - mean) ** 2)
        steps.append((mean, np.sqrt(variance), np.bincount(modes, weights, len(model.models))))
    found = (np.array(part) for part in zip(*steps, strict=True))
    return dict(zip(("means", "sd", "modes"), found, strict=True)) | {"log_likelihood": total}


def of_many(
    model: hf.models.JumpMarkov, observations: np.ndarray, seed: int
) -> dict[str, np.ndarray] | None:
    """Return the same of filters with many particles; None where two of them differ."""
    runs = [
        hf.make_filter("sqmc", model, REFERENCE, rng=[seed, 2 + k]).run(observations)
        for k in range(2)
    ]
    sd = np.sqrt(np.mean([np.diagonal(run.covariances, axis1=1, axis2=2) for run in runs], axis=0))
    sd[sd == 0] = 1.0
    if not of_means(runs[0].means, runs[1].means, sd) < AGREED:
        return None
    both = {"means": np.mean([run.means for run in runs], axis=0), "sd": sd}
    both["modes"] = np.mean([run.mode_probabilities for run in runs], axis=0)
    return both | {"log_likelihood": np.mean([run.log_likelihood for run in runs])}


def of_means(means: np.ndarray, exact: np.ndarray, sd: np.ndarray) -> float:
    """Root mean square error over steps and entries, in posterior standard deviations."""
    return float(np.sqrt(np.mean(((means - exact) / sd) ** 2)))


def built(name: str, model: hf.models.JumpMarkov, n: int, seed: int) -> Any:
    """Return a filter of the catalogue; "auto, random modes" draws its modes."""
    own, _, drawn = name.partition(", ")
    if not drawn:
        return hf.make_filter(name, model, n, rng=[seed, 1])
    return hf.ParticleFilter(model, n, hf.ModeProposal(PROPOSALS[own], "random"), rng=[seed, 1])


def errors(family: str, seed: int, particles: list[int]) -> list[dict[str, Any]]:
    """One row for each filter and number of particles; none where no reference is to be had."""
    model = linear(seed) if family == "linear" else nonlinear(seed)
    if model is None:
        return []
    steps = 10 if family == "linear" else 25
    try:
        _, z = hf.simulate(model, steps, rng=[seed, 0])
        exact = enumerated(model, z) if family == "linear" else of_many(model, z, seed)
    except hf.DegenerateWeightsError:
        return []
    if exact is None:
        return []
    names = [f"{name}{ending}" for name in PROPOSALS for ending in ("", ", random modes")]
    names += ["mkf", "imm"] if family == "linear" else []
    rows = []
    for n in particles:
        for name in names:
            if name in WITHOUT_PARTICLES and n != particles[0]:
                continue
            row = {
                "family": family,
                "filter": name,
                "n": 0 if name in WITHOUT_PARTICLES else n,
                "seed": seed,
            }
            try:
                seconds, result = timed(lambda name=name, n=n: built(name, model, n, seed).run(z))
                row["error"] = of_means(result.means, exact["means"], exact["sd"])
                row["modes"] = float(
                    np.abs(result.mode_probabilities - exact["modes"]).max(axis=1).mean()
                )
                row["log_likelihood"] = abs(result.log_likelihood / exact["log_likelihood"] - 1)
                row["ms"] = 1e3 * seconds / steps
            except hf.DegenerateWeightsError:
                row["error"] = np.inf
            rows.append(row)
    return rows


def overview(family: str, seeds: range, particles: list[int]) -> pd.DataFrame:
    """Medians over models; error over that of random modes: geometric mean over models with a 95 % interval."""
    table = pd.DataFrame([row for seed in seeds for row in errors(family, seed, particles)])
    made = []
    for (name, n), own in table.groupby(["filter", "n"], sort=False):
        row = {"family": family, "filter": name, "n": n, "models": len(own)}
        row |= {"error": own["error"].median(), "error_90": own["error"].quantile(0.9)}
        row |= {"modes": own["modes"].median(), "log_likelihood": own["log_likelihood"].median()}
        row["within"] = float(
            (own[["error", "modes", "log_likelihood"]] <= 0.01).all(axis=1).mean()
        )
        rival = table[(table["filter"] == f"{name}, random modes") & (table["n"] == n)]
        if len(rival):
            logs = np.log(own["error"].to_numpy()) - np.log(rival["error"].to_numpy())
            logs = logs[np.isfinite(logs)]
            low, high = bootstrap_interval(logs, np.mean)
            row |= {
                "ratio": np.exp(logs.mean()),
                "ratio_low": np.exp(low),
                "ratio_high": np.exp(high),
            }
        made.append(row | {"ms": own["ms"].median()})
    return pd.DataFrame(made)
