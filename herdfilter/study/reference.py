"""References: the posterior of a run, exact or from very many particles, with which estimates are compared."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from herdfilter._checks import Array, check_count, one_of, short_repr
from herdfilter._repr import fields_in_line
from herdfilter._version import __version__
from herdfilter.angles import moments, wrap_angles
from herdfilter.catalogue.expressions import check_keywords, prefix_errors
from herdfilter.catalogue.specifications import FilterFactory, as_entries, resolve_filters
from herdfilter.discrepancy import energy_distance
from herdfilter.filters.filter import ParticleFilter
from herdfilter.filters.kalman import ExtendedKalmanFilter
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.mixture import GaussianMixture
from herdfilter.models import ConditionallyLinear, contract, linear_chain
from herdfilter.models.contract import (
    ADDITIVE,
    OBSERVED,
    circular_dims,
    require,
    require_constant_noise,
)
from herdfilter.models.resolved import Measurement
from herdfilter.points import Points
from herdfilter.study import machine
from herdfilter.study.metrics import energy_distance_on_line
from herdfilter.study.recording import Recording, feed
from herdfilter.study.scenario import Scenario

_log = logging.getLogger(__name__)

SNAPSHOTS = 10  # number of steps of a run at which an exact posterior is kept

AGREEMENT = 2.0
"""Two references agree if their distance, RMS over time and dimensions, is at most this multiple of its standard error."""


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Posterior of one run, as arrays of numbers, which is how it is cached.

    `error` is the standard error of the means: zero if they are exact, NaN if it is unknown. At the `steps`, indices from 0,
    the exact posterior is kept: a density on the line, constant between `edges`, with `masses`; or without these a Gaussian.
    """

    means: Array  # (T, d)
    log_likelihood: float
    error: Array  # (T, d)
    covariances: Array | None = None  # (T, d, d)
    steps: np.ndarray = field(default_factory=partial(np.empty, 0, int))  # (K,)
    edges: Array = field(default_factory=partial(np.empty, 0))  # (N + 1,)
    masses: Array = field(default_factory=partial(np.empty, (0, 0)))  # (K, N)

    __repr__ = fields_in_line

    def energy_distance(self, k: int, x: Array, weights: Array) -> float:
        """Return the energy distance of particles (n, d) to the exact posterior at index `k`, one of the `steps`.

        Both are in units of the posterior's standard deviation in each dimension.
        """
        if len(self.edges):
            masses = self.masses[self.steps == k][0]
            centres = 0.5 * (self.edges[1:] + self.edges[:-1])
            sd = np.sqrt((centres - centres @ masses) ** 2 @ masses)
            return energy_distance_on_line(x[:, 0], weights, self.edges, masses) / float(sd)
        covariance = np.asarray(self.covariances)[k]
        sd = np.sqrt(np.diagonal(covariance))
        sd = np.where(sd > 0, sd, 1.0)
        # Standardised, a Gaussian has mean 0.
        standardised = Points.unchecked((x - self.means[k]) / sd, weights)
        normal = GaussianMixture.unchecked(
            np.ones(1), np.zeros((1, len(sd))), covariance / np.outer(sd, sd)
        )
        return energy_distance(standardised, normal)


def snapshot_steps(steps: int) -> np.ndarray:
    """Return indices, from 0, of up to `SNAPSHOTS` evenly spaced steps, the last among them."""
    # Rounded up; a run with fewer steps than snapshots gives some of them twice.
    ends = -(-steps * np.arange(1, SNAPSHOTS + 1) // SNAPSHOTS)
    return np.unique(ends[: SNAPSHOTS * steps]) - 1


def _grid(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    lower: float | Sequence[float],
    upper: float | Sequence[float],
    points: int | Sequence[int],
) -> Reference:
    """Compute the posterior on a grid of `points` from `lower` to `upper`, exact up to its resolution."""
    from herdfilter.filters.grid import GridFilter

    grid = GridFilter(model, lower, upper, points)
    on_line = len(grid.shape) == 1
    result = grid.run(recording.observations, recording.dt, recording.controls, keep_masses=on_line)
    exact = np.zeros_like(result.means)
    reference = Reference(result.means, float(result.log_likelihood), exact, result.covariances)
    if not on_line:
        return reference
    steps = snapshot_steps(len(recording))
    # A grid point is the centre of its cell.
    h = grid.spacing[0]
    edges = np.append(grid.x[:, 0] - h / 2, grid.x[-1, 0] + h / 2)
    return replace(reference, steps=steps, edges=edges, masses=np.asarray(result.masses)[steps])


def _large(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    n: int,
    repeats: int = 4,
    filter: Any = "bootstrap",  # noqa: A002
) -> Reference:
    """Average `repeats` filters of the catalogue with `n` particles, independent of each other and of those compared.

    A filter (name or table) must draw at random, or the error comes out too small; of a list, the first that supports the
    model is used.
    Likelihoods are averaged, not their logs: each filter's is unbiased (Del Moral 2004, "Feynman-Kac formulae").
    """
    build = filter_for(filter, model)
    results = [feed(build(model, n, seeded), recording) for seeded in rng.spawn(repeats)]
    means, spread = _averaged(np.array([result.means for result in results]), circular_dims(model))
    error = np.sqrt(np.diagonal(spread, axis1=1, axis2=2) / repeats)
    # A filter's covariance is about its own mean, and too small by the variance of that mean, which the spread estimates.
    within = np.mean([result.covariances for result in results], axis=0)
    covariances = within + (0.0 if repeats == 1 else spread)
    logs = np.array([result.log_likelihood for result in results])
    log_likelihood = float(np.log(np.exp(logs - logs.max()).mean()) + logs.max())
    return Reference(means, log_likelihood, error, covariances)


def filter_for(names: Any, model: Any) -> FilterFactory:
    """Return the factory of the first of these filters, names or tables, that supports the model; else raise its error."""
    for name in as_entries(names):
        build = resolve_filters({"reference": name})["reference"]
        try:  # building is the test: a filter checks the model it gets
            build(model, 2, np.random.default_rng(0))
        except (TypeError, ValueError) as error:
            unsupported = error
        else:
            return build
    raise unsupported


def _averaged(estimates: Array, circular: Sequence[int]) -> tuple[Array, Array]:
    """Return mean (T, d), circular for angles, and sample covariance (T, d, d) of independent estimates (m, T, d)."""
    m = len(estimates)
    steps = [moments(x, np.full(m, 1 / m), circular) for x in estimates.swapaxes(0, 1)]
    means, spread = (np.array(values) for values in zip(*steps, strict=True))
    # `moments` divides by m, not m - 1; one estimate has no spread.
    return means, spread * (m / (m - 1) if m > 1 else np.nan)


def _exact_or_large(
    model: Any,
    recording: Recording,
    rng: np.random.Generator,
    *,
    n: int,
    repeats: int = 2,
    filter: Any = "bootstrap",  # noqa: A002
    guided: Any = None,
) -> Reference:
    """Compute the posterior on the grid that the model names in `grid`; with many particles if there is none or it fails.

    With `guided` try a Kalman filter first, and take the better of two large references. The second one uses `guided`, a
    filter whose proposal looks at the observation: it mostly has less spread than `filter`, but may miss a part of the
    posterior. It is taken if its standard error is smaller and the two agree.
    """
    if guided:
        with suppress(TypeError, ValueError):
            return _kalman(model, recording, rng)
    grid = getattr(model, "grid", None)
    if grid is not None:
        with suppress(ValueError):
            # The grid is too coarse for the noise, or the state leaves it.
            return _grid(model, recording, rng, **grid)
    large = partial(_large, model, recording, rng, n=n, repeats=repeats)
    blind = large(filter=filter)
    if not guided:
        return blind
    with suppress(TypeError, ValueError, DegenerateWeightsError):
        informed = large(filter=guided)
        # Squares are summed in units of the variance, averaged over time, so that dimensions of any unit count alike.
        variances = np.diagonal(np.asarray(blind.covariances), axis1=1, axis2=2).mean(axis=0)
        distances = wrap_angles(informed.means - blind.means, circular_dims(model))
        informed_error, blind_error, distance = (
            np.divide(x**2, variances, out=np.zeros_like(x), where=variances > 0).sum()
            for x in (informed.error, blind.error, distances)
        )
        agree = distance <= AGREEMENT**2 * (informed_error + blind_error)
        if informed_error < blind_error and agree:
            return informed
    return blind


def _kalman(model: Any, recording: Recording, rng: np.random.Generator) -> Reference:
    """Compute the posterior of a linear Gaussian model by a Kalman filter; ValueError for any other model."""
    require(model, "the Kalman reference", (*ADDITIVE, *OBSERVED))
    require_constant_noise(model, "the Kalman reference")
    if not isinstance(model.initial, GaussianMixture) or len(model.initial) > 1:
        raise ValueError(
            f"initial: expected one Gaussian for the Kalman reference, got {short_repr(model.initial)}"
        )
    measurement = Measurement(model)
    contract.refuse_limits(model, "the Kalman reference")
    # Exact for a linear model, which is checked at every step.
    kf = ExtendedKalmanFilter(_WithSlopes(model))
    dts = np.broadcast_to(recording.dt, len(recording))
    controls = [None] * len(recording) if recording.controls is None else recording.controls
    means = []
    covariances = []
    for step, (z, dt, control) in enumerate(
        zip(recording.observations, dts, controls, strict=True), start=1
    ):
        kf.predict(dt, control)
        observed = np.flatnonzero(np.isfinite(z))
        # A likelihood of the model's own must be Gaussian up to a constant, as a few states around the mean tell.
        if len(observed) and measurement.has_likelihood:
            states = kf.mean + np.sqrt(np.diagonal(kf.covariance)) * [[0.0], [1.0], [-2.0]]
            residuals = (z - model.observation_mean(states, step))[:, observed]
            R = np.asarray(model.observation_covariance(step))[np.ix_(observed, observed)]
            gaussian = contract.gaussian_log_density(residuals, R[None], step)
            stated = measurement.log_likelihood(z, states, step)
            if not (
                np.isfinite(stated).all()
                and np.ptp(stated - gaussian) <= 1e-6 * (1 + np.ptp(gaussian))
            ):
                raise ValueError(
                    f"log_likelihood: expected a Gaussian's for the Kalman reference, got another, {step=}"
                )
        record = kf.update(z)
        means.append(record.mean)
        covariances.append(record.covariance)
    return Reference(
        np.array(means),
        float(kf.log_likelihood),
        np.zeros_like(means),
        np.array(covariances),
        snapshot_steps(len(means)),
    )


class _WithSlopes:
    """A model with linear mean functions, and their own slopes as Jacobians: those of a user's model may be wrong."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # of a copy that is not made yet
            raise AttributeError(name)
        return getattr(self._model, name)

    def transition_jacobian(self, x: Array, *arguments: Any) -> Array:
        return _affine_slopes(self._model.transition_mean, x, *arguments)

    def observation_jacobian(self, x: Array, step: int) -> Array:
        return _affine_slopes(self._model.observation_mean, x, step)


def _affine_slopes(function: Callable[..., Array], x: Array, *arguments: Any) -> Array:
    """Return the matrix of an affine function of states (n, d), for each of them; ValueError for any other function."""
    dim = x.shape[1]
    # Its values at 0 and the unit vectors determine an affine function; one further state tells whether it is one.
    probes = np.vstack([np.zeros(dim), np.eye(dim), np.full(dim, -2.0)])
    values = np.asarray(function(probes, *arguments), dtype=float)
    slopes = values[1:-1] - values[0]
    expected = values[0] - 2 * slopes.sum(axis=0)
    gap = np.abs(expected - values[-1])
    if not (gap <= 1e-9 * (1 + np.abs(values).max()) + 1e-5 * np.abs(values[-1])).all():
        raise ValueError(
            "reference: expected a linear model for type 'kalman', got a nonlinear one"
        )
    return np.broadcast_to(slopes.T, (len(x), *slopes.T.shape))


REFERENCES: dict[str, Callable[..., Reference]] = {
    "grid": _grid,
    "large": _large,
    "grid-or-large": _exact_or_large,
    "exact-or-guided": partial(
        _exact_or_large, guided={"proposal": "RankedProposal(randomised=True)"}
    ),
    "kalman": _kalman,
}
"""Type of reference -> function of model, recording, generator and the keys of ``[reference]``."""

CACHE_VERSION = 6  # raise this when the arrays of a `Reference` change


def compute_reference(
    scenario: Scenario, model: Any, recording: Recording, rng: np.random.Generator
) -> Reference | None:
    """Compute the reference of one run, or read it from the cache; None if the scenario does not ask for one.

    It is computed if no folder can be written, if what it depends on cannot be pickled, or if the file is damaged.
    """
    if scenario.reference is None:
        return None
    import joblib

    function, keywords = reference_function(scenario)
    compute = partial(function, model, recording, rng, **keywords)
    folder, _ = machine.reference_folder()
    # The Kalman filter is faster than the disk.
    if function is _kalman or folder is None:
        return compute()
    try:
        decisive = [
            __version__,
            CACHE_VERSION,
            machine.bare(model),
            machine.sources(model),
            recording.observations,
            recording.dt,
            recording.controls,
            [machine.bare(sensor) for sensor in recording.sensors or ()],
            scenario.reference,
            rng.bit_generator.state,
            # It decides the generators that a reference spawns.
            getattr(rng.bit_generator.seed_seq, "state", None),
        ]
        # The pickle is only hashed.
        file = folder / f"{joblib.hash(decisive)}.npz"
    except Exception:
        # A user's class may raise anything when it is pickled; one typed in at a prompt has no source.
        return compute()
    # An absent or damaged file is ignored. Files hold numbers alone: loading one runs no code.
    with suppress(Exception), np.load(file, allow_pickle=False) as arrays:
        return Reference(**{**arrays, "log_likelihood": float(arrays["log_likelihood"])})
    begin = time.perf_counter()
    reference = compute()
    _log.info("a reference was computed in %.1f s: %s", time.perf_counter() - begin, file)
    # The disk may be full, or the folder removed in the meantime.
    with suppress(OSError), machine.written_at_once(file) as part:
        np.savez(part, **vars(reference))
    return reference


def reference_function(scenario: Scenario) -> tuple[Callable[..., Reference], dict[str, Any]]:
    """Return the function that computes a scenario's reference, and its keyword arguments."""
    table = dict(scenario.reference or {})
    return REFERENCES[one_of("reference type", table.pop("type"), REFERENCES)], table


def check_reference(scenario: Scenario) -> None:
    """Raise ValueError if ``[reference]`` has an unknown type or key, or a wrong value."""
    if scenario.reference is None:
        return
    function, keywords = reference_function(scenario)
    # Without a guided filter that is no key.
    guided = ("guided",) * (function is _exact_or_large)
    check_keywords("[reference]", function, keywords, ("model", "recording", "rng", *guided))
    for name in ("n", "repeats"):
        if name in keywords:
            check_count(f"[reference] {name}", keywords[name])
    for key in {"filter", "guided"} & set(keywords):
        names = as_entries(keywords[key])
        if not names or {} in names:
            raise ValueError(f"[reference] {key}: expected at least one name, got none")
        for name in names:
            with prefix_errors(f"[reference] {key}: "):
                if not _draws_at_random(name):
                    raise ValueError(
                        "expected a particle filter that draws at random, without which the error is unknown, "
                        f"got {name!r}"
                    )


def try_reference(scenario: Scenario, model: Any, first: Recording) -> None:
    """Raise the errors that the reference of every run would raise, with the `first` step of a recording.

    A filter with many particles is built but not run: losing the target in one run does not mean losing it in all.
    """
    if scenario.reference is None:
        return
    function, keywords = reference_function(scenario)
    with prefix_errors("[reference]: "):
        if "n" in keywords:
            filter_for(keywords.get("filter", "bootstrap"), model)
        else:
            function(model, first, np.random.default_rng(0), **keywords)
    if function is not _kalman:
        machine.warn_if_unusable()


def _draws_at_random(name: Any) -> bool:
    """Return True if a name or table is of a particle filter whose second step, on a linear model, uses its generator."""
    rng = np.random.default_rng(0)
    states = []
    build = resolve_filters({"reference": name})["reference"]
    try:
        particle_filter = build(linear_chain(1), 8, rng)
    except TypeError:  # a Rao-Blackwellised filter needs conditionally linear dimensions
        particle_filter = build(ConditionallyLinear(linear_chain(2), [1]), 8, rng)
    if not isinstance(particle_filter, ParticleFilter):
        return False
    for _ in range(2):
        particle_filter.predict()
        with suppress(DegenerateWeightsError):
            particle_filter.update(np.zeros(particle_filter.model.dim))
        states.append(rng.bit_generator.state["state"])
    # The first step may draw initial particles at random even where later steps do not.
    return bool(states[0] != states[1])
