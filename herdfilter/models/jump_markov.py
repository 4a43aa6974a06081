"""Models that jump between modes, such as the manoeuvres of a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Motion
from herdfilter.models.trial import PROBES, check_state
from herdfilter.models.with_clutter import WithClutter

# Largest deviation of a row of probabilities from a sum of 1, and of the functions of two modes from each other
PROBABILITY_ROUNDING = 1e-9


class JumpMarkov:
    r"""A state with a discrete mode: each step follows the model of the present mode, and the modes are a Markov chain.

    .. math::
        r_k \mid r_{k-1} \sim T_{r_{k-1}, \cdot}, \qquad x_k \mid x_{k-1} \sim p_{r_k}(x_k \mid x_{k-1}), \qquad
        z_k \mid x_k \sim g_{r_k}(z_k \mid x_k),

    with the transition density p and the likelihood g of the model of the mode at step k. At step 0 the mode has the
    probabilities `initial_modes`, and the state the initial distribution of its model.

    Particle filters carry the mode of each particle, `InteractingMultipleModel` and `MixtureKalmanFilter` its probabilities.
    With one mode every filter does the same as with that model, to the last bit.

    Parameters
    ----------
    models : sequence of J models
        Each follows `herdfilter.models.contract`. Dimensions, angles and the entries of an observation must be the same in
        all of them; the observation functions may differ.
    transition_matrix : array_like, shape (J, J)
        Row i, column j: the probability that mode j follows mode i at the next step, whatever the time between them.
    initial_modes : array_like, shape (J,), optional
        Probabilities of the modes at step 0; equal by default.

    Notes
    -----
    Blom and Bar-Shalom (1988), "The interacting multiple model algorithm for systems with Markovian switching coefficients",
    IEEE Transactions on Automatic Control 33.

    Examples
    --------
    A target that goes straight or manoeuvres; filters estimate the probability of either mode.

    >>> steady, lively = (hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0))
    >>> model = hf.models.JumpMarkov([steady, lively], [[0.95, 0.05], [0.1, 0.9]])
    >>> z = [1.1, 1.9, 3.0, 4.1, 5.0, 9.0, 16.0]
    >>> np.round(hf.MixtureKalmanFilter(model, n_particles=2**8).run(z).mode_probabilities[:, 1], 2).tolist()
    [0.24, 0.09, 0.04, 0.03, 0.02, 0.96, 0.9]
    """

    def __init__(
        self,
        models: Sequence[contract.Model],
        transition_matrix: ArrayLike,
        initial_modes: ArrayLike | None = None,
    ) -> None:
        self.models = tuple(_checks.as_list("models", models, "a sequence of models"))
        count = len(self.models)
        if not count:
            raise ValueError("models: expected at least one, got none")
        for model in self.models:
            contract.require(model, "JumpMarkov", ("dim", "initial"))
        self.dim = _the_same("dim", [model.dim for model in self.models])
        self.circular = _the_same("circular", map(contract.circular_dims, self.models))
        measurements = [Measurement(model) for model in self.models]
        angles = [tuple(m.entries_circular) for m in measurements if contract.is_observed(m.model)]
        # if only sensors observe the state, the modes say nothing of angles
        if angles:
            self.observation_circular = _the_same("observation_circular", angles)
        self.partial_observations = all(m.takes_partial for m in measurements)
        self.transition_matrix = _checks.as_array(
            "transition_matrix", transition_matrix, (count, count), largest=_checks.LARGEST
        ).copy()
        for i, row in enumerate(self.transition_matrix):
            if row.min() < 0 or abs(row.sum() - 1) > PROBABILITY_ROUNDING:
                raise ValueError(
                    f"transition_matrix: expected rows of probabilities that sum to 1, got {row.tolist()} in row {i}"
                )
        self.initial_modes = _checks.as_weights("initial_modes", initial_modes, count)

    @cached_property
    def initial(self) -> Any:
        """Distribution of the state at step 0."""
        # The state at step 0 is drawn from the distribution of a random mode: a mixture over the modes.
        parts = [model.initial for model in self.models]
        if len(parts) == 1:
            return parts[0]
        if not all(isinstance(part, GaussianMixture) for part in parts):
            return SimpleNamespace(dim=self.dim, sample=partial(_sample_initial, self))
        modes = zip(self.initial_modes, parts, strict=True)
        weights = np.concatenate([probability * part.weights for probability, part in modes])
        means = np.concatenate([part.means for part in parts])
        covariances = np.concatenate([part.covariances for part in parts])
        return GaussianMixture(weights, unwrap_angles(means, weights, self.circular), covariances)

    def __getattr__(self, name: str) -> Any:
        """Return an observation function if it is the same in all modes; a simulation has one control input for all."""
        shared = name in ("control", "position_dims")
        if shared or (name in contract.OBSERVATION and self._observed_alike):
            return getattr(self.models[0], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @cached_property
    def _observed_alike(self) -> bool:
        """True if all modes have the same observation functions at a few states."""
        if len(self.models) == 1:
            return True
        # Functions cannot be compared, but their values at random states can.
        rng = np.random.default_rng(0)
        measurements = [Measurement(model) for model in self.models]
        moments = any(measurement.has_moments for measurement in measurements)
        try:
            x = Motion(self.models[0]).sample_initial(PROBES, rng)
            z = measurements[0].sample(x, rng, 1)[0]
            values = []  # one row for each model
            for measurement in measurements:
                arrays = [measurement.log_likelihood(z, x, 1)]
                if moments:
                    arrays += measurement.moments(x, 1)
                values.append(np.concatenate([*map(np.ravel, arrays)]))
            return np.allclose(values, values[0], rtol=PROBABILITY_ROUNDING)
        except Exception:  # errors of a user's function come up where it is used
            return False

    def __repr__(self) -> str:
        return summary_repr(self, modes=len(self.models), dim=self.dim, models=self.models)


def with_modes(model: contract.Model, user: str) -> contract.Model:
    """Return a model with modes: a model that does not jump becomes the only mode of one that does."""
    if contract.jumps(model):
        return model
    check_state(model, user)
    # the modes belong inside the wrapper of clutter
    if isinstance(model, WithClutter):
        return replace(model, model=JumpMarkov([model.model], [[1.0]]))
    return JumpMarkov([model], [[1.0]])


def _sample_initial(model: JumpMarkov, n: int, rng: _checks.SeedLike = None) -> Array:
    """Draw n initial states (n, d) over all modes, of which one has no Gaussian mixture."""
    rng = _checks.as_generator(rng)
    counts = rng.multinomial(n, model.initial_modes).tolist()
    modes = zip(model.models, counts, strict=True)
    states = [Motion(mode).sample_initial(count, rng) for mode, count in modes if count]
    return rng.permutation(np.concatenate(states))


def _the_same(name: str, values: Iterable[Any]) -> Any:
    """Return the value that all models share; raise ValueError if one of them differs."""
    by_model = list(values)
    for k, value in enumerate(by_model):
        if value != by_model[0]:
            raise ValueError(
                f"models: expected the same {name} for all, {by_model[0]} as in models[0], got {value} in models[{k}]"
            )
    return by_model[0]
