"""Filters that begin in the midst of a run: the state that they start from is that of some step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import OBSERVATION, Model, jumps, only_mode
from herdfilter.models.jump_markov import JumpMarkov, with_modes

Make = Callable[[Model], Any]
"""A filter for a model."""


def standing(make: Make, model: Model, initial: Any, step: int) -> Any:
    """Return a filter whose state at `step`, before any transition, is distributed as `initial`."""
    online = make(started_from(model, initial))
    _ = online.mean  # particles are drawn when they are first needed
    online.model, online.step = _as_held(online, model), step
    return online


def appearing(make: Make, model: Model, initial: GaussianMixture, step: int) -> Any:
    """Return a filter that stands at a prediction for `step`, by which the state is distributed as `initial`.

    It has got there by a move of its own, so that a proposal which looks at the observation places particles with the
    detection in view: a birth may be anywhere in a wide area, a detection tells where.
    """
    online = make(_appearing(model, initial))
    online.step = step - 1
    online.predict()
    online.model = _as_held(online, model)
    return online


def check_filter(make: Make, model: Model, places: Sequence[GaussianMixture]) -> None:
    """Build one filter, which names what the model lacks, or what is no filter for tracks that start at these places."""
    for place in places:
        if place.dim != model.dim:
            raise ValueError(f"birth: expected states of {model.dim} dimensions, as of the model, got {place.dim}")
    if not places:
        return
    online = make(started_from(model, places[0]))
    missing = [name for name in ("predicted_observation", "combined") if not hasattr(online, name)]
    if missing:
        raise TypeError(
            f"filter: expected one that can stand for several hypotheses, got {type(online).__name__}, which has no "
            f"{' and no '.join(missing)}"
        )


def started_from(model: Model, initial: Any) -> Model:
    """Return a model that starts from another initial distribution, in whatever mode."""
    if not jumps(model):
        return StartedFrom(model, initial)
    modes = [StartedFrom(one, initial) for one in model.models]
    return JumpMarkov(modes, model.transition_matrix, model.initial_modes)


def _appearing(model: Model, initial: GaussianMixture) -> Model:
    """Return the model of a state that appears, in a mode that it keeps meanwhile."""
    if not jumps(model):
        return Appearing(model, initial)
    modes = [Appearing(one, initial) for one in model.models]
    return JumpMarkov(modes, np.eye(len(modes)), model.initial_modes)


def _as_held(online: Any, model: Model) -> Model:
    """Return the model in the form in which a filter holds it: with modes, or as one mode alone."""
    return with_modes(model, type(online).__name__) if jumps(online.model) else only_mode(model)


class StartedFrom:
    """A model whose initial distribution is another."""

    def __init__(self, model: Model, initial: Any) -> None:
        self._model, self.initial = model, initial

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)


class Appearing:
    """A state that appears, distributed as a mixture: half of the spread is there at first, noise adds the other half.

    With components of different covariances the noise is half of what all have in common.
    """

    def __init__(self, model: Model, mixture: GaussianMixture) -> None:
        self._model, self._mixture = model, mixture

    @cached_property
    def _noise(self) -> Array:
        covariances = self._mixture.distinct_covariances
        if len(covariances) == 1:
            return 0.5 * covariances[0]
        whole = covariances.mean(axis=0)
        scale = np.sqrt(np.where(np.diagonal(whole) > 0, np.diagonal(whole), 1.0))
        values, vectors = np.linalg.eigh(whole / np.outer(scale, scale))
        kept = values > 1e-12 * values[-1]
        white = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
        least = np.linalg.eigvalsh(white @ covariances @ white.T)[:, 0].min()
        return 0.5 * max(least, 0.0) * whole

    @cached_property
    def initial(self) -> GaussianMixture:
        """The components, less the noise."""
        rest = self._mixture.distinct_covariances - self._noise
        return GaussianMixture.unchecked(self._mixture.weights, self._mixture.means, rest)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Return states as they are."""
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Return the noise."""
        return self._noise

    def __getattr__(self, name: str) -> Any:
        if name not in ("dim", "circular", *OBSERVATION):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)
