"""What estimates are compared with beside the truth: the posterior, exact or from very many particles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.angles import moments
from herdfilter.catalogue.specifications import FilterFactory, resolve_filters
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import ADDITIVE, OBSERVED, circular_dims, require, require_constant_noise
from herdfilter.study import cache
from herdfilter.study.posterior import LineDensity, Reference, from_arrays, snapshot_steps, to_arrays
from herdfilter.study.recording import Recording
from herdfilter.study.scenario import Scenario


def _exact(
    means: Array,
    log_likelihood: float,
    covariances: Array,
    posteriors: Mapping[int, GaussianMixture | LineDensity],
) -> Reference:
    return Reference(means, float(log_likelihood), np.zeros_like(means), covariances, posteriors)


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
    from herdfilter.filters.exact import GridFilter

    grid = GridFilter(model, lower, upper, points)
    result = grid.run(recording.observations, recording.dt, recording.controls, keep_masses=len(grid.shape) == 1)
    posteriors = {}
    if result.masses is not None:
        h = grid.spacing[0]
        edges = np.append(grid.x[:, 0] - h / 2, grid.x[-1, 0] + h / 2)
        posteriors = {k: LineDensity(edges, result.masses[k].copy()) for k in snapshot_steps(len(recording))}
    return _exact(result.means, result.log_likelihood, result.covariances, posteriors)


def _large(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    n: int,
    repeats: int = 4,
    filter: str | Sequence[str] = "bootstrap",  # noqa: A002
) -> Reference:
    """Average of `repeats` filters of the catalogue with `n` particles, independent of each other and of those compared.

    Their filter must draw at random, or the error comes out too small; of a list it is the first that serves the model.
    Likelihoods are averaged, not their logs: each filter's is unbiased (Del Moral 2004, "Feynman-Kac formulae").
    """
    build = serving(filter, model)
    observations, told = recording.input
    results = [build(model, n, seeded).run(observations, **told) for seeded in rng.spawn(repeats)]
    means, spread = _averaged(np.array([result.means for result in results]), circular_dims(model))
    error = np.sqrt(np.diagonal(spread, axis1=1, axis2=2) / repeats)
    # A filter's covariance is about its own mean, and too small by the variance of that, which the spread gives back.
    inside = np.mean([result.covariances for result in results], axis=0)
    covariances = inside + (0.0 if repeats == 1 else spread)
    logs = np.array([result.log_likelihood for result in results])
    level = float(np.log(np.exp(logs - logs.max()).mean()) + logs.max())
    return Reference(means, level, error, covariances)


def serving(names: str | Sequence[str], model: Any) -> FilterFactory:
    """Return the filter of the catalogue of that name, or the first of several that can be built for the model.

    Raises
    ------
    TypeError, ValueError
        Those of the last one, if there is none.
    """
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        build = resolve_filters(name)[name]
        try:
            build(model, 2, np.random.default_rng(0))
        except (TypeError, ValueError):
            if name == names[-1]:
                raise
        else:
            break
    return build


def _averaged(estimates: Array, circular: Sequence[int]) -> tuple[Array, Array]:
    """Mean of independent estimates (m, T, d), circular for angles, (T, d), and their sample covariance (T, d, d)."""
    m = len(estimates)
    steps = [moments(x, np.full(m, 1 / m), circular) for x in estimates.swapaxes(0, 1)]
    spread = np.array([covariance for _, covariance in steps])
    return np.array([mean for mean, _ in steps]), spread * (m / (m - 1) if m > 1 else np.nan)


def _grid_or_large(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    n: int,
    repeats: int = 2,
    filter: str | Sequence[str] = "bootstrap",  # noqa: A002
) -> Reference:
    """Exact on the grid that the model brings along as `grid`, keys of type ``grid``; large without one that holds it."""
    grid = getattr(model, "grid", None)
    if grid is not None:
        with suppress(ValueError):  # too coarse for the noise, or left by the state
            return _grid(model, recording, rng, **grid)
    return _large(model, recording, rng, n=n, repeats=repeats, filter=filter)


def _kalman(model: Any, recording: Recording, rng: np.random.Generator) -> Reference:
    """Kalman filter, exact for a linear Gaussian model; the matrices are read off its mean functions."""
    require(model, "the Kalman reference", (*ADDITIVE, *OBSERVED))
    require_constant_noise(model, "the Kalman reference")
    x, P = model.initial.mean, model.initial.covariance
    dts = np.broadcast_to(recording.dt, len(recording))
    controls = [None] * len(recording) if recording.controls is None else recording.controls
    means, covariances, log_likelihood = [], [], 0.0
    for step, (z, dt, control) in enumerate(zip(recording.observations, dts, controls, strict=True), start=1):
        F, shift = _affine(model.dim, model.transition_mean, dt, control, step)
        x, P = F @ x + shift, F @ P @ F.T + model.transition_covariance(dt, step)
        seen = np.flatnonzero(np.isfinite(z))
        if len(seen):
            H, offset = _affine(model.dim, model.observation_mean, step)
            R = np.asarray(model.observation_covariance(step))[np.ix_(seen, seen)]
            residual, H = (z - offset)[seen] - H[seen] @ x, H[seen]
            S = H @ P @ H.T + R
            gain = np.linalg.solve(S, H @ P).T
            quadratic = residual @ np.linalg.solve(S, residual)
            kept = np.eye(model.dim) - gain @ H  # the form of Joseph, which stays positive definite
            x, P = x + gain @ residual, kept @ P @ kept.T + gain @ R @ gain.T
            log_likelihood -= 0.5 * float(quadratic + np.linalg.slogdet(2 * np.pi * S)[1])
        means.append(x)
        covariances.append(0.5 * (P + P.T))
    posteriors = {
        k: GaussianMixture.unchecked(np.ones(1), means[k][None], covariances[k]) for k in snapshot_steps(len(means))
    }
    return _exact(np.array(means), log_likelihood, np.array(covariances), posteriors)


def _affine(dim: int, function: Callable[..., Array], *arguments: Any) -> tuple[Array, Array]:
    """Matrix and offset of a function of states (n, dim) that is affine in them."""
    probes = np.vstack([np.zeros(dim), np.eye(dim), np.full(dim, -2.0)])
    values = np.asarray(function(probes, *arguments), dtype=float)
    offset, matrix = values[0], (values[1:-1] - values[0]).T
    gap = np.abs(offset - 2 * matrix.sum(axis=1) - values[-1])
    if not (gap <= 1e-9 * (1 + np.abs(values).max()) + 1e-5 * np.abs(values[-1])).all():
        raise ValueError("reference: expected a linear model for type 'kalman', got a nonlinear one")
    return matrix, offset


REFERENCES: dict[str, Callable[..., Reference]] = {
    "grid": _grid,
    "large": _large,
    "grid-or-large": _grid_or_large,
    "kalman": _kalman,
}
"""Type of reference -> function of model, recording, generator and the keys of ``[reference]``."""

KEPT = ("grid", "large", "grid-or-large")  # the Kalman filter takes less time than the disk
_FORM = 4  # of what is kept; to be raised when `to_arrays` changes


def compute_reference(scenario: Scenario, model: Any, recording: Recording, rng: np.random.Generator) -> Reference | None:
    """Compute the reference of one run, or take it from the cache; None if the scenario has none."""
    if scenario.reference is None:
        return None
    function, keywords = reference_function(scenario)

    def compute() -> Reference:
        return function(model, recording, rng, **keywords)

    if scenario.reference["type"] not in KEPT:
        return compute()
    try:
        model_key = (cache.bare(model), cache.sources(model))
    except Exception:  # typed in at a prompt, or an object that cannot be copied
        return compute()
    seen: tuple[Any, ...] = (recording.observations, recording.dt, recording.controls)
    if recording.sensors is not None:
        seen += ([cache.bare(sensor) for sensor in recording.sensors],)
    decided_by = (_FORM, model_key, seen, dict(scenario.reference), cache.generator_state(rng))
    read = partial(from_arrays, steps=len(recording), dim=model.dim)
    return cache.remembered(compute, to_arrays, read, *decided_by)


def reference_function(scenario: Scenario) -> tuple[Callable[..., Reference], dict[str, Any]]:
    """Return the function that computes a scenario's reference, and the keys of ``[reference]`` that it takes."""
    table = dict(scenario.reference or {})
    return REFERENCES[one_of("reference type", table.pop("type"), REFERENCES)], table
