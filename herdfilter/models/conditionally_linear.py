"""Models in which a part of the state is linear and Gaussian once the rest is known."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import as_dims
from herdfilter._repr import fields_in_line
from herdfilter.models import contract
from herdfilter.models.parts import assign

PROBES = 5  # states at which linearity is looked at
ROUNDING = 1e-6  # departure from linearity that is taken for rounding, relative to the values


@dataclass(frozen=True, eq=False, repr=False)
class ConditionallyLinear:
    r"""A model some dimensions of which enter transition and observation linearly, given the others.

    With a nonlinear part :math:`x^n` and a linear part :math:`x^l` (Schön, Gustafsson and Nordlund 2005, model 3)

    .. math::
        x^n_{k+1} &= f^n(x^n_k) + A^n(x^n_k)\, x^l_k + w^n_k, \qquad
        x^l_{k+1} = f^l(x^n_k) + A^l(x^n_k)\, x^l_k + w^l_k, \\
        z_k &= h(x^n_k) + C(x^n_k)\, x^l_k + e_k,

    with Gaussian noises; :math:`w^n` and :math:`w^l` may be correlated. The functions of `model` are those of the whole
    state, as ever, and the matrices are read off them. This declares which dimensions are linear, so that
    `RaoBlackwellisedProposal` can carry them by Kalman filters; all other filters and proposals see `model`.

    Parameters
    ----------
    model : object
        A model with additive transition noise, and a mean and covariance of the observation. Jacobians save time.
    linear : sequence of int
        The linear dimensions; not all of them, and none that is an angle.

    Raises
    ------
    TypeError, ValueError
        If `model` lacks a function, or one is not linear in these dimensions at a few random states.

    Examples
    --------
    A target whose speed drifts is observed by the squared distance: only the position enters that nonlinearly.

    >>> plain = hf.models.from_functions(
    ...     lambda x: x @ [[1, 0], [1, 1]], lambda x: x[:, :1] ** 2, 0.01 * np.eye(2), [[1.0]], [3, 0], np.eye(2)
    ... )
    >>> hf.models.ConditionallyLinear(plain, linear=[1]).linear
    (1,)
    >>> try:
    ...     hf.models.ConditionallyLinear(plain, linear=[0])
    ... except ValueError as error:
    ...     print(error)
    ...
    linear: expected dimensions in which observation_mean is linear given the others, got [0]; leave out those that are not
    """

    model: contract.Model
    linear: Sequence[int]

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        contract.require(self.model, "ConditionallyLinear", contract.ADDITIVE)
        contract.check_state(self.model, "ConditionallyLinear", "sample")
        linear = as_dims("linear", self.linear, self.model.dim)
        if not 0 < len(linear) < self.model.dim or set(linear) & set(contract.circular_dims(self.model)):
            raise ValueError(
                f"linear: expected some of {self.model.dim} dimensions, not all and no angle, got {list(linear)}; a model that "
                "is linear altogether needs no particles: take ExtendedKalmanFilter"
            )
        assign(self, linear=tuple(sorted(linear)))
        rng = np.random.default_rng(0)
        x = np.repeat(contract.sample_initial(self.model, PROBES, rng)[None], 3, axis=0)
        step = rng.standard_normal((PROBES, len(linear)))
        x[1:, :, self.linear] += [step, 2 * step]
        for name, arguments in (("transition_mean", (1.0, None, 1)), ("observation_mean", (1,))):
            values = None
            with suppress(Exception):  # an error of a function is raised where it is used
                values = getattr(self.model, name)(x.reshape(-1, x.shape[2]), *arguments).reshape(3, PROBES, -1)
            if values is None:
                continue
            angles = contract.circular_dims(self.model)
            if name == "observation_mean":
                angles = contract.observation_circular(self.model, values.shape[2])
            bend = contract.wrap_angles(values[0] - 2 * values[1] + values[2], angles)
            if (np.abs(bend) > ROUNDING * (1 + np.abs(values).max(axis=0))).any():
                raise ValueError(
                    f"linear: expected dimensions in which {name} is linear given the others, got {list(linear)}; leave out "
                    "those that are not"
                )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":  # while it is copied or unpickled
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)
