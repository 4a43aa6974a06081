"""What estimates are compared with beside the truth: the posterior, exact or from very many particles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.evaluation.expressions import check_keywords
from herdfilter.evaluation.recording import Recording
from herdfilter.evaluation.scenario import Scenario
from herdfilter.models.contract import require


@dataclass(frozen=True, eq=False)
class Reference:
    """Posterior means (T, d) of one run, and the log-likelihood of its observations."""

    means: Array
    log_likelihood: float


def _grid(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    lower: float | Sequence[float],
    upper: float | Sequence[float],
    points: int | Sequence[int],
) -> Reference:
    """Exact up to the resolution of a grid of `points` from `lower` to `upper`."""
    from herdfilter.filters.grid import GridFilter

    result = GridFilter(model, lower, upper, points).run(
        recording.observations, recording.dt, recording.controls
    )
    return Reference(result.means, float(result.log_likelihood))


def _large(model: Any, recording: Recording, rng: np.random.Generator, *, n: int) -> Reference:
    """Bootstrap particle filter with `n` particles, seeded independently of the filters compared."""
    from herdfilter import ParticleFilter

    controls: Any = recording.controls
    result = ParticleFilter(model, n_particles=n, rng=rng).run(
        recording.observations, dt=recording.dt, controls=controls
    )
    return Reference(result.means, float(result.log_likelihood))


def _kalman(model: Any, recording: Recording, rng: np.random.Generator) -> Reference:
    """Kalman filter, exact for a linear Gaussian model; the matrices are read off its mean functions."""
    from filterpy.kalman import predict, update

    require(
        model,
        "the Kalman reference",
        ("transition_mean", "transition_covariance", "observation_mean", "observation_covariance"),
    )
    x, P = model.initial.mean, model.initial.covariance
    dts = np.broadcast_to(recording.dt, len(recording))
    controls = [None] * len(recording) if recording.controls is None else recording.controls
    means, log_likelihood = [], 0.0
    for step, (z, dt, control) in enumerate(zip(recording.observations, dts, controls, strict=True), start=1):
        F, shift = _affine(model.dim, model.transition_mean, dt, control, step)
        x, P = predict(x, P, F, model.transition_covariance(dt, step))
        x = x + shift
        if np.isfinite(z).all():
            H, offset = _affine(model.dim, model.observation_mean, step)
            R = np.asarray(model.observation_covariance(step))
            x, P, residual, _, S, _ = update(x, P, z - offset, R, H, return_all=True)
            # filterpy's own log-likelihood here is taken at the updated state, which is not the evidence of z
            quadratic = residual @ np.linalg.solve(S, residual)
            log_likelihood -= 0.5 * float(quadratic + np.linalg.slogdet(2 * np.pi * S)[1])
        means.append(x)
    return Reference(np.array(means), log_likelihood)


def _affine(dim: int, function: Callable[..., Array], *arguments: Any) -> tuple[Array, Array]:
    """Matrix and offset of a function of states (n, dim) that is affine in them."""
    probes = np.vstack([np.zeros(dim), np.eye(dim), np.full(dim, -2.0)])
    values = np.asarray(function(probes, *arguments), dtype=float)
    offset, matrix = values[0], (values[1:-1] - values[0]).T
    if not np.allclose(offset - 2 * matrix.sum(axis=1), values[-1], atol=1e-9 * (1 + np.abs(values).max())):
        raise ValueError("reference: expected a linear model for type 'kalman', got a nonlinear one")
    return matrix, offset


REFERENCES: dict[str, Callable[..., Reference]] = {"grid": _grid, "large": _large, "kalman": _kalman}
"""Type of reference -> function of model, recording, generator and the keys of ``[reference]``."""


def check_reference(scenario: Scenario) -> None:
    """Raise ValueError if the scenario's ``[reference]`` has an unknown type or key, or lacks one."""
    if scenario.reference is not None:
        function, keywords = _function(scenario)
        check_keywords("[reference]", function, keywords, taken=("model", "recording", "rng"))


def compute_reference(
    scenario: Scenario, model: Any, recording: Recording, rng: np.random.Generator
) -> Reference | None:
    """Compute the reference of one run; None if the scenario has none."""
    if scenario.reference is None:
        return None
    function, keywords = _function(scenario)
    return function(model, recording, rng, **keywords)


def _function(scenario: Scenario) -> tuple[Callable[..., Reference], dict[str, Any]]:
    table = dict(scenario.reference or {})
    return REFERENCES[one_of("reference type", table.pop("type"), REFERENCES)], table
