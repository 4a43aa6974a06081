"""Transition noise of random models, in the three forms of the model contract, and its distribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models.random import drifts
from herdfilter.models.resolved import Transition

# Kind of transition noise -> probability; in one dimension, noise of deficient rank is additive
NOISES = {"additive": 0.6, "rank-deficient": 0.12, "multiplicative": 0.2, "only simulable": 0.08}
CHAINS = 400  # independent trajectories of a simulation
LONG_RUN_STEPS = 10  # number of final steps of a simulation that represent the long run


class NoisyDrift:
    """A drift f with its noise: an object with the functions of the model contract that this `kind` of noise allows."""

    def __init__(self, drift: drifts.Drift, kind: str, words: str, **functions: Any) -> None:
        self.drift = drift
        self.dim = drift.dim
        self.kind = kind
        self.words = words
        self.functions = functions
        vars(self).update(functions)


def spread_words(factor: Array) -> str:
    """Write the standard deviations of noise ``factor e``, and the largest correlation of its entries."""
    sd = np.linalg.norm(factor, axis=1)
    scaled = factor / np.where(sd > 0, sd, 1.0)[:, None]
    correlation = np.abs(scaled @ scaled.T - np.diag(sd > 0)).max()
    correlated = f", correlated up to {correlation:.2f}" if correlation > 1e-9 else ""
    return f"standard deviation {drifts.listed(sd)}{correlated}"


def additive(drift: drifts.Drift, factor: Array) -> NoisyDrift:
    """Return ``f(x) + L e`` with e standard normal."""
    dim, rank = factor.shape
    words = f"additive Gaussian, {spread_words(factor)}"
    words += f", of rank {rank} in {dim} dimensions" if rank < dim else ""
    return NoisyDrift(
        drift,
        "rank-deficient" if rank < dim else "additive",
        words,
        transition_mean=lambda x, dt, control, step: drift.f(x),
        transition_covariance=lambda dt, step: factor @ factor.T,
    )


def draw_multiplicative(rng: Generator, drift: drifts.Drift, factor: Array) -> NoisyDrift:
    """Draw ``f(x) + exp(s) L e``, in which s is drawn at every step, or larger on one side of the state space."""
    dim = drift.dim
    by_step = rng.random() < 0.4
    if by_step:
        strength = drifts.draw_number(rng, 0.3, 0.8)
        law = f"exp({strength:.3g} e), e standard normal and drawn anew for each step"
    else:
        direction: Array = rng.standard_normal(dim)
        direction = drifts.rounded(
            direction * (rng.uniform(0.7, 1.5) / np.linalg.norm(direction) / drift.scale)
        )
        strength, offset = drifts.rounded(
            [rng.uniform(0.4, 1.2), 0.5 * rng.standard_normal()]
        ).tolist()
        law = f"exp({strength:.3g} tanh(w x + b)), w = {drifts.listed(direction)}, b = {offset:.3g}, x before the step"

    def transition(x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        # the first entry of the noise is that of the scale, if that is drawn
        s = noise[:, 0] if by_step else np.tanh(x @ direction + offset)
        return drift.f(x) + np.exp(strength * s)[:, None] * (noise[:, -dim:] @ factor.T)

    words = f"multiplicative, Gaussian, {spread_words(factor)}, times {law}"
    return NoisyDrift(
        drift, "multiplicative", words, transition=transition, noise_dim=dim + by_step
    )


def only_simulable(
    drift: drifts.Drift,
    factor: Array,
    freedom: float = 0.0,
    jumps: tuple[float, float] | None = None,
) -> NoisyDrift:
    """Return ``f(x) + s L e``: s makes the noise Student's t with `freedom` degrees, or is 1 but in jumps (share, size)."""

    def sample_transition(x: Array, rng: Generator, dt: float, control: Any, step: int) -> Array:
        n = len(x)
        gaussian = rng.standard_normal(x.shape) @ factor.T
        if jumps:
            scale = np.where(rng.random(n) < jumps[0], jumps[1], 1.0)
        else:
            # Student's t is Gaussian noise over the root of a chi-squared variable per degree of freedom
            scale = 1 / np.sqrt(rng.chisquare(freedom, n) / freedom)
        return drift.f(x) + scale[:, None] * gaussian

    law = f"a factor that makes it Student's t with {freedom:.3g} degrees of freedom"
    law = f"{jumps[1]:.3g} in {100 * jumps[0]:.3g} % of the steps" if jumps else law
    words = f"only simulable, Gaussian, {spread_words(factor)}, times {law}"
    return NoisyDrift(drift, "only simulable", words, sample_transition=sample_transition)


def draw_noise(rng: Generator, drift: drifts.Drift) -> NoisyDrift:
    """Draw the noise of a drift and return the transition."""
    dim = drift.dim
    kind = drifts.draw_key(rng, NOISES)
    size = float(drifts.log_uniform(rng, *drifts.DRIFTS[drift.kind].noise_range)) * drift.scale
    if kind == "rank-deficient" and dim > 1:
        rank = drifts.draw_count(rng, 1, dim - 1)
        # the factor keeps the average variance of a coordinate
        shape = drifts.rotation(rng, dim)[:, :rank] * np.sqrt(dim / rank)
    elif rng.random() < 0.5:
        shape = np.eye(dim)
    else:  # the identity in the covariance keeps correlations away from one
        loadings = rng.standard_normal((dim, dim)) * 0.7 / np.sqrt(dim)
        covariance = loadings @ loadings.T + 0.5 * np.eye(dim)
        sd = np.sqrt(np.diagonal(covariance))
        shape = np.linalg.cholesky(covariance / np.outer(sd, sd))
    factor = drifts.rounded(size[:, None] * shape)
    if kind == "multiplicative":
        return draw_multiplicative(rng, drift, factor)
    if kind == "only simulable":
        if rng.random() < 0.5:
            return only_simulable(drift, factor, freedom=drifts.draw_number(rng, 3.0, 6.0))
        share, times = drifts.rounded([rng.uniform(0.02, 0.1), rng.uniform(3.0, 8.0)]).tolist()
        return only_simulable(drift, factor, jumps=(share, times))
    return additive(drift, factor)


class LongRun(NamedTuple):
    """A simulation of a system in the long run.

    A chaotic system doubles a difference in the last bit at about every step: the run is short enough for three digits of
    its moments to be the same on every machine.
    """

    states: Array  # (n, d), of the last steps
    successors: Array  # (2, m, d), two draws of the next state of each of the m chains
    lowest: Array  # (d,), extremes since the start
    highest: Array

    @property
    def spread(self) -> Array:
        """Standard deviation of each coordinate."""
        return self.states.std(axis=0)


def simulate_long_run(motion: NoisyDrift, initial: GaussianMixture) -> LongRun:
    """Simulate a transition from an initial distribution until its drift has settled."""
    # fixed: a system has one spread, whatever the seed of its model
    rng = Generator(PCG64(0))
    transition = Transition(motion)
    states = [initial.sample(CHAINS, rng)]
    for _ in range(motion.drift.settled + LONG_RUN_STEPS):
        states.append(transition.sample(states[-1], rng))
    successors = np.array([transition.sample(states[-1], rng) for _ in range(2)])
    last = np.concatenate(states[-LONG_RUN_STEPS:])
    return LongRun(last, successors, np.min(states, axis=(0, 1)), np.max(states, axis=(0, 1)))
