"""A state that moves in one of several ways, and jumps between them: manoeuvres."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, as_generator, as_weights, check_count, short_repr
from herdfilter._repr import summary_repr
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract

PROBES = 5
"""States at which the observation functions of two modes are compared."""

ROUNDING = 1e-9
"""By how much a row of probabilities may miss 1."""


class JumpMarkov:
    r"""A discrete mode beside the state: each step is one of the models', which one is a Markov chain.

    .. math::
        r_k \mid r_{k-1} \sim T_{r_{k-1}, \cdot}, \qquad x_k \mid x_{k-1} \sim p_{r_k}(x_k \mid x_{k-1}), \qquad
        z_k \mid x_k \sim g_{r_k}(z_k \mid x_k),

    with the transition density p and the likelihood g of the model of the mode that holds at step k. At step 0 the mode has
    the probabilities `initial_modes`, and the state the initial distribution of its model.

    Particle filters carry the mode of each particle, `InteractingMultipleModel` and `MixtureKalmanFilter` its probabilities.
    With one mode every filter does what it does with that model, to the last bit.

    Parameters
    ----------
    models : sequence of J models
        Each follows `herdfilter.models.contract`, in the same dimensions, of which the same are angles. Observations have
        the same entries, but each may see them in a way of its own.
    transition_matrix : array_like, shape (J, J)
        In row i and column j the probability that mode i is followed by mode j at the next step, however far away in time;
        rows sum to 1.
    initial_modes : array_like, shape (J,), optional
        Probabilities of the modes at step 0; all the same unless given.

    Attributes
    ----------
    initial : GaussianMixture, or object with ``sample(n, rng)``
        Distribution of the state at step 0, whatever the mode.

    Raises
    ------
    TypeError, ValueError
        If there is no model, models differ in dimension or angles, a shape does not fit, or numbers are no probabilities.

    Notes
    -----
    Blom and Bar-Shalom (1988), "The interacting multiple model algorithm for systems with Markovian switching coefficients",
    IEEE Transactions on Automatic Control 33.

    Examples
    --------
    A target that goes straight or manoeuvres. Filters tell its state, and the probability of either mode.

    >>> steady, lively = (hf.models.ConstantVelocity(q, 0.5, [0, 1], 0.1 * np.eye(2)) for q in (1e-3, 10.0))
    >>> model = hf.models.JumpMarkov([steady, lively], [[0.95, 0.05], [0.1, 0.9]])
    >>> z = [1.1, 1.9, 3.0, 4.1, 5.0, 9.0, 16.0]
    >>> exact = hf.MixtureKalmanFilter(model, n_particles=2**8).run(z)
    >>> np.round(exact.mode_probabilities[:, 1], 2).tolist()
    [0.24, 0.09, 0.04, 0.03, 0.02, 0.96, 0.9]
    >>> result = hf.make_filter("auto", model, n_particles=100).run(z)
    >>> np.allclose(result.mode_probabilities, exact.mode_probabilities, atol=0.15)
    True
    """

    def __init__(
        self,
        models: Sequence[contract.Model],
        transition_matrix: ArrayLike,
        initial_modes: ArrayLike | None = None,
    ) -> None:
        try:
            self.models = tuple(models)
        except TypeError:
            raise TypeError(f"models: expected a sequence of models, got {short_repr(models)}") from None
        count = len(self.models)
        if not count:
            raise ValueError("models: expected at least one, got none")
        for model in self.models:
            contract.require(model, "JumpMarkov", ("dim", "initial"))
        self.dim, self.circular = self.models[0].dim, contract.circular_dims(self.models[0])
        self._check_alike("dim", [model.dim for model in self.models])
        self._check_alike("circular", [contract.circular_dims(model) for model in self.models])
        angles = [
            tuple(getattr(model, "observation_circular", None) or ())
            for model in self.models
            if any(hasattr(model, name) for names in contract.LIKELIHOODS for name in names)
        ]
        if angles:
            self._check_alike("observation_circular", angles)
            self.observation_circular = angles[0]
        self.partial_observations = all(contract.takes_partial(model) for model in self.models)
        self.transition_matrix = as_array("transition_matrix", transition_matrix, (count, count)).copy()
        for i, row in enumerate(self.transition_matrix):
            if (row < 0).any() or abs(row.sum() - 1) > ROUNDING:
                raise ValueError(
                    f"transition_matrix: expected rows of probabilities that sum to 1, got {row.tolist()} in row {i}"
                )
        if initial_modes is None:
            self.initial_modes: Array = np.full(count, 1 / count)
        else:
            self.initial_modes = as_weights("initial_modes", initial_modes, count)
        if hasattr(self.models[0], "control"):
            self.control = self.models[0].control

    def in_mode(self, mode: int) -> contract.Model:
        """Return the model of a mode."""
        return self.models[check_count("mode", mode, 0, len(self.models) - 1)]

    @cached_property
    def initial(self) -> Any:
        """Distribution of the state at step 0."""
        parts = [model.initial for model in self.models]
        if len(parts) == 1:
            return parts[0]
        if not all(isinstance(part, GaussianMixture) for part in parts):
            return _Initial(self)
        weights = np.concatenate([p * part.weights for p, part in zip(self.initial_modes, parts, strict=True)])
        means = unwrap_angles(np.concatenate([part.means for part in parts]), weights, self.circular)
        return GaussianMixture(weights, means, np.concatenate([part.covariances for part in parts]))

    def __getattr__(self, name: str) -> Any:
        """Return an observation function that all modes have in common; there is none where they differ."""
        if name in contract.OBSERVATION and self._seen_alike:
            return getattr(self.models[0], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @cached_property
    def _seen_alike(self) -> bool:
        """Whether a few states are seen alike in all modes."""
        first, *others = self.models
        if not others:
            return True
        rng = np.random.default_rng(0)
        try:
            x = contract.sample_initial(first, PROBES, rng)
            z = contract.sample_observation(first, x, rng, 1)[0]
            return all(_seen_alike(first, other, z, x) for other in others)
        except Exception:  # what is wrong with a function is told where it is used
            return False

    @staticmethod
    def _check_alike(name: str, values: Sequence[Any]) -> None:
        for k, value in enumerate(values):
            if value != values[0]:
                raise ValueError(
                    f"models: expected the same {name} of all, {values[0]} as of the first, got {value} of models[{k}]"
                )

    def __repr__(self) -> str:
        return summary_repr(self, modes=len(self.models), dim=self.dim, models=self.models)


def with_modes(model: contract.Model, user: str) -> contract.Model:
    """Return a model that jumps; one that does not becomes the only mode."""
    if contract.jumps(model):
        return model
    contract.check_state(model, user)
    if contract.has_scans(model) and dataclasses.is_dataclass(model):  # of the only mode, as of several
        wrapper: Any = model
        return dataclasses.replace(wrapper, model=JumpMarkov([wrapper.model], [[1.0]]))
    return JumpMarkov([model], [[1.0]])


class _Initial:
    """Initial states of any mode, drawn."""

    def __init__(self, model: JumpMarkov) -> None:
        self._model = model
        self.dim = model.dim

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw n states (n, d)."""
        rng = as_generator(rng)
        counts = rng.multinomial(n, self._model.initial_modes)
        drawn = [
            contract.sample_initial(model, int(count), rng)
            for model, count in zip(self._model.models, counts, strict=True)
            if count
        ]
        return rng.permutation(np.concatenate(drawn))


def _seen_alike(first: contract.Model, other: contract.Model, z: Array, x: Array) -> bool:
    """Whether two models have the same likelihood, and the same moments of observations, at states (n, d)."""
    functions = [lambda model: contract.log_likelihood(model, z, x, 1)]
    if contract.has(first, contract.OBSERVED) or contract.has(other, contract.OBSERVED):
        functions.append(lambda model: contract.observation_mean(model, x, 1))
        functions.append(lambda model: contract.observation_covariances(model, x, len(z), 1))
    return all(np.allclose(function(first), function(other), rtol=ROUNDING) for function in functions)
