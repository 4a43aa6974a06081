"""Models drawn from a stated distribution, to tune filters on and to make claims about models in general."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import assign
from herdfilter.models.random import drifts, noises, observations
from herdfilter.models.random.localisation import draw_localisation
from herdfilter.models.resolved import Transition

# kind of model -> unknown drift per step, in spreads
UNKNOWN_DRIFTS = {"general": 0.05, "localisation": 0.001}
NOISE_FACTORS = {"half noise": 0.5, "double noise": 2.0}
DEPARTURES = ("outliers", *NOISE_FACTORS, "unknown drift")
OUTLIER_SHARE = 0.05  # share of observations that are outliers
MULTIMODAL_SHARE = 0.15  # probability of a prior of several Gaussians far apart
MOST_POINTS = {1: 3000, 2: 250}  # dimension -> largest number of grid points in each dimension
NOISE_CELLS = 4.2  # grid cells per standard deviation of the transition noise
LIKELIHOOD_CELLS = 2.0  # per standard deviation of an observation's noise, in state units
PRIOR_CELLS = 2.0  # per standard deviation of the prior
# cells per standard deviation of the transition noise, after the drift has stretched them
STRETCH_CELLS = 0.8


@dataclass(frozen=True)
class RandomModel:
    r"""A state-space model drawn at random; its equations are printed by ``print(model)``.

    .. math:: x_k = f(x_{k-1}) + \text{noise}, \qquad y_k = h(x_k) + \text{noise}, \qquad k = 1, 2, \dots

    The same seed gives the same model on every machine: all of its numbers have three significant digits. Time is discrete:
    `dt` and `control` have no meaning and are not used.

    Parameters
    ----------
    seed : int
        Not negative. By convention seeds below 10,000 are for tuning, and seeds from 1,000,000 on for claims: whoever makes
        a claim has not looked at them before.
    kind : {"general", "localisation"}
        The distribution: models in general, or localisation of a target, whose prior is 50 to 1,000 times as wide as the
        posterior. The page "Models drawn at random" states both. The same seed gives another model in each.
    departure : str, optional
        A property of the data that filters do not know: "outliers", "half noise", "double noise", "unknown drift", or "any"
        of these, drawn by the seed. Such a model serves to simulate; filters get the model without departure.

    Attributes
    ----------
    dim : int
        Dimension of the state.
    initial : GaussianMixture
        Distribution of the state at step 0.
    steps : int
        Recommended length of a run.
    spread : ndarray, shape (d,)
        Long-run standard deviation of each coordinate, from chains started all over the system; for localisation, that of
        the prior.
    labels : tuple of str
        The kinds of drift, of transition noise and of observation, and then any of "heavy-tailed", "sharp",
        "missing" and "multimodal prior".
    motion, sensing : object
        The parts of the model: the transition with its ``drift``, and the observation with its ``view``.

    Notes
    -----
    Beside these, a model has the functions of the model contract that its noise allows, and no others: with additive noise
    ``transition_mean`` and ``transition_covariance``, with multiplicative noise ``transition`` and ``noise_dim``, and else
    ``sample_transition`` only; always ``log_likelihood`` and ``sample_observation``; ``observation_mean`` and
    ``observation_covariance`` except of counts; ``observation_circular`` of bearings. ``hf.models.random_model`` is another
    name of this class.

    Examples
    --------
    >>> model = hf.models.RandomModel(seed=3)
    >>> print(model)
    Random model 3: dimension 1, 78 steps
    drift: linear, A x with eigenvalues of size 0.363; rows of A: 0.363
    noise: additive Gaussian, standard deviation 0.0301
    observed: squares of - 30.6 x1 - 0.0955; at every step
    its noise: Gaussian, standard deviation 0.16
    start: Gaussian, mean -0.00572, standard deviation 0.0107
    long-run spread: 0.0327
    """

    seed: int
    kind: str = "general"
    departure: str = ""

    def __post_init__(self) -> None:
        assign(self, seed=_checks.check_count("seed", self.seed, minimum=0, most=None))
        parts = _draw_model(self.seed, _checks.one_of("kind", self.kind, UNKNOWN_DRIFTS))
        functions = parts.motion.functions | parts.sensing.functions
        if _checks.one_of("departure", self.departure, ("", *DEPARTURES, "any")):
            departure, functions = _departing(self, parts)
            parts = parts._replace(labels=(*parts.labels, departure))
        assign(self, **parts._asdict(), **functions)

    def __repr__(self) -> str:
        kind = None if self.kind == "general" else self.kind
        return summary_repr(self, seed=self.seed, kind=kind, departure=self.departure or None)

    def __reduce__(self) -> tuple[Any, ...]:  # these arguments determine the whole model
        return RandomModel, (self.seed, self.kind, self.departure)

    def __str__(self) -> str:
        parts = _draw_model(self.seed, self.kind)
        general = self.kind == "general"
        prior = parts.initial
        sd = np.sqrt(np.diagonal(prior.distinct_covariances[0]))
        several = f"{len(prior)} Gaussians of weights {drifts.listed(prior.weights)}, means"
        return f"""\
Random model {self.seed}{"" if general else f" ({self.kind})"}: dimension {parts.dim}, {parts.steps} steps
drift: {parts.motion.drift.words}
noise: {parts.motion.words}
observed: {parts.sensing.words}
its noise: {parts.sensing.noise_words}
start: {several if len(prior) > 1 else "Gaussian, mean"} {drifts.listed(prior.means)}, standard deviation {drifts.listed(sd)}
{"long-run" if general else "prior"} spread: {drifts.listed(parts.spread)}"""

    @cached_property
    def grid(self) -> dict[str, Any] | None:
        """Arguments `lower`, `upper` and `points` of a `GridFilter` that is exact; None if that needs too many points.

        At most it has 3000 points in one dimension, 250 in each of two. It reaches three spreads beyond the states of two
        simulations, and at least to six standard deviations of the prior. One simulation starts from the prior; the other is
        the long run from all over the system, for regions that states of the prior rarely reach. The largest slopes of drift
        and observation are found at these states and along their range.
        """
        parts = _draw_model(self.seed, self.kind)
        motion = parts.motion
        sensing = parts.sensing
        prior = parts.initial
        # the slope of a bearing is unbounded at its sensor, so that no grid is fine enough
        if (
            self.kind == "localisation"
            or parts.dim not in MOST_POINTS
            or motion.kind != "additive"
            or sensing.view.kind == "bearing"
        ):
            return None
        system = _at_large(motion)
        run = noises.simulate_long_run(motion, prior)
        lowest = np.minimum(run.lowest, system.states.min(axis=0))
        highest = np.maximum(run.highest, system.states.max(axis=0))
        prior_sd = np.sqrt(np.diagonal(prior.distinct_covariances[0]))
        noise = motion.functions["transition_covariance"](1.0, 1)
        noise_sd = np.sqrt(np.diagonal(noise))
        beyond = 3 * np.maximum(run.spread, noise_sd)
        lower = np.minimum(lowest - beyond, prior.means.min(axis=0) - 6 * prior_sd)
        upper = np.maximum(highest + beyond, prior.means.max(axis=0) + 6 * prior_sd)
        probes = np.concatenate([run.states, system.states, np.linspace(lowest, highest, 200)])
        correlation = noise / np.outer(noise_sd, noise_sd)
        # the narrowest direction of correlated noise decides
        spacing = noise_sd * np.sqrt(np.linalg.eigvalsh(correlation)[0]) / NOISE_CELLS
        spacing = np.minimum(spacing, prior_sd / PRIOR_CELLS)
        whiten = np.linalg.inv(np.linalg.cholesky(noise))
        # the grid resolves drift and view, each in units of its noise, wherever they are steep
        whitened = (
            (STRETCH_CELLS, lambda x: motion.drift.f(x) @ whiten.T),
            (LIKELIHOOD_CELLS, sensing.scaled),
        )
        for i, aside in enumerate(np.diag(1e-4 * (upper - lower))):
            for cells, function in whitened:
                rise = function(probes + aside) - function(probes - aside)
                slopes = np.linalg.norm(rise, axis=1) / (2 * aside[i])
                spacing[i] = min(spacing[i], 1 / (cells * max(slopes.max(), 1e-300)))
        points = np.ceil((upper - lower) / spacing).astype(int) + 1
        if (points > MOST_POINTS[parts.dim]).any():
            return None
        return {"lower": lower.tolist(), "upper": upper.tolist(), "points": points.tolist()}


random_model = RandomModel


def _at_large(motion: noises.NoisyDrift) -> noises.LongRun:
    """Simulate a system from states all over its natural scale."""
    wide = GaussianMixture([1.0], np.zeros((1, motion.dim)), np.diag(motion.drift.scale**2))
    return noises.simulate_long_run(motion, wide)


@lru_cache(maxsize=256)
def _draw_model(seed: int, kind: str) -> observations.Parts:
    if kind == "localisation":
        # another stream than that of the general model with this seed
        return draw_localisation(Generator(PCG64(SeedSequence(seed, spawn_key=(1,)))))
    rng = Generator(PCG64(seed))
    drift = drifts.draw_drift(rng)
    motion = noises.draw_noise(rng, drift)
    system = _at_large(motion)
    initial = _draw_prior(rng, system)
    sensing, special = observations.draw_observation(rng, system)
    labels = (drift.kind, motion.kind, sensing.view.kind, *special)
    if len(initial) > 1:
        labels += ("multimodal prior",)
    spread = drifts.rounded(system.spread)
    # the order of draws is part of the definition of a model
    return observations.Parts(
        drift.dim, initial, drifts.draw_count(rng, 40, 80), spread, labels, motion, sensing
    )


def _departing(model: RandomModel, parts: observations.Parts) -> tuple[str, dict[str, Any]]:
    """Return the departure of a model, and the functions that simulate it; outliers are readings of independent states."""
    rng = Generator(PCG64(SeedSequence(model.seed, spawn_key=(0,))))
    # drawn also for a departure that was named, so that "any" and the name give the same data
    drawn_departure = DEPARTURES[rng.integers(len(DEPARTURES))]
    direction = rng.standard_normal(parts.dim)
    departure = drawn_departure if model.departure == "any" else model.departure
    factor = NOISE_FACTORS.get(departure, 1.0)
    sensing = parts.sensing
    general = model.kind == "general"
    independent_states = (
        _at_large(parts.motion).states if general else parts.initial.sample(1000, rng)
    )
    drift = UNKNOWN_DRIFTS[model.kind] * parts.spread * direction / np.sqrt(np.mean(direction**2))

    def sample_transition(x: Array, rng: Generator, dt: float, control: Any, step: int) -> Array:
        next_x = Transition(parts.motion, dt, control, step).sample(x, rng)
        if factor != 1:
            mean = parts.motion.drift.f(x)
            return mean + factor * (next_x - mean)
        return next_x + drift if departure == "unknown drift" else next_x

    def sample_observation(x: Array, rng: Generator, step: int) -> Array:
        z: Array = sensing.sample_observation(x, rng, step)
        if departure == "outliers":
            elsewhere = independent_states[rng.integers(len(independent_states), size=len(x))]
            outliers = sensing.sample_observation(elsewhere, rng, step)
            return np.where(rng.random((len(x), 1)) < OUTLIER_SHARE, outliers, z)
        if factor != 1 and sensing.view.kind != "counts":
            mean = sensing.observation_mean(x, step)
            circular = getattr(sensing, "observation_circular", ())
            return wrap_angles(mean + factor * wrap_angles(z - mean, circular), circular)
        return z

    return departure, {
        "sample_transition": sample_transition,
        "sample_observation": sample_observation,
    }


def _draw_prior(rng: Generator, system: noises.LongRun) -> GaussianMixture:
    """Draw the distribution of the state at step 0: one Gaussian among the states of the system, or several far apart."""
    dim = system.states.shape[1]
    if rng.random() < MULTIMODAL_SHARE:
        count = drifts.draw_count(rng, 2, 4)
        width = drifts.log_uniform(rng, 0.1, 0.3)
        offsets = drifts.draw_vectors(rng, count, dim, 1.5, 3.0)
    else:
        width = drifts.log_uniform(rng, 0.1, 1.0)
        offsets = 0.7 * rng.standard_normal((1, dim))
    means = system.states.mean(axis=0) + offsets * system.spread
    return drifts.draw_weights(rng, means, width * system.spread)
