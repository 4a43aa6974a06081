"""Models in which a part of the state is linear and Gaussian given the other part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from herdfilter._checks import as_dims
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.models import contract, parts, trial
from herdfilter.models.resolved import Motion

# departure from linearity that rounding may cause, relative to the values
CURVATURE_ROUNDING = 1e-6


@parts.frozen
class ConditionallyLinear(contract.Wrapper):
    r"""A model some dimensions of which, the linear part :math:`x^l`, are linear given the others, :math:`x^n`.

    .. math::
        x^n_{k+1} &= f^n(x^n_k) + A^n(x^n_k)\, x^l_k + w^n_k, \qquad
        x^l_{k+1} = f^l(x^n_k) + A^l(x^n_k)\, x^l_k + w^l_k, \\
        z_k &= h(x^n_k) + C(x^n_k)\, x^l_k + e_k,

    with Gaussian noises, of which :math:`w^n` and :math:`w^l` may be correlated (Schön, Gustafsson and Nordlund 2005,
    "Marginalized particle filters for mixed linear/nonlinear state-space models", IEEE Transactions on Signal Processing 53,
    model 3). The functions are still those of the whole state; the matrices are derived from them.
    `RaoBlackwellisedProposal` carries the linear part by Kalman filters; all other filters and proposals use `model`.

    Parameters
    ----------
    model : object
        A model with additive transition noise. Jacobians save time.
    linear : sequence of int
        The linear dimensions; not all of them, and none that is an angle.

    Raises
    ------
    TypeError, ValueError
        If `model` lacks a function, or one is not linear in these dimensions at a few random states.

    Examples
    --------
    The square of a position is observed. The speed is linear given the position, but not the other way round.

    >>> plain = hf.models.from_functions(
    ...     lambda x: x @ [[1, 0], [1, 1]], lambda x: x[:, :1] ** 2, 0.01 * np.eye(2), [[1.0]], [3, 0], np.eye(2)
    ... )
    >>> hf.models.ConditionallyLinear(plain, linear=[1]).linear
    (1,)
    """

    model: contract.Model
    linear: Sequence[int]

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        contract.require(self.model, "ConditionallyLinear", contract.ADDITIVE)
        trial.check_state(self.model, "ConditionallyLinear", "sample")
        d = self.model.dim
        linear = sorted(as_dims("linear", self.linear, d))
        circular = contract.circular_dims(self.model)
        # an angle wraps, so nothing is linear in it
        if not 0 < len(linear) < d or set(linear) & set(circular):
            raise ValueError(
                f"linear: expected some of {d} dimensions, not all and no angle, got {linear}; take others"
            )
        parts.assign(self, linear=tuple(linear))
        # Three states that differ by v and 2 v in the linear dimensions: the second difference of a linear function is 0.
        rng = np.random.default_rng(0)
        x = np.repeat(Motion(self.model).sample_initial(trial.PROBES, rng)[None], 3, axis=0)
        v = rng.standard_normal((trial.PROBES, len(linear)))
        x[:, :, linear] += np.arange(3)[:, None, None] * v
        for name, arguments, angles in (
            ("transition_mean", (1.0, None, 1), circular),
            ("observation_mean", (1,), getattr(self.model, "observation_circular", None) or ()),
        ):
            try:
                values = np.asarray(getattr(self.model, name)(x.reshape(-1, d), *arguments))
                values = values.reshape(3, trial.PROBES, -1)
                bend = wrap_angles(values[0] - 2 * values[1] + values[2], angles)
            except Exception:  # errors of a user's function come up where it is used
                continue
            if (np.abs(bend) > CURVATURE_ROUNDING * (1 + np.abs(values).max(axis=0))).any():
                raise ValueError(
                    f"linear: expected dimensions in which {name} is linear given the others, got {linear}; leave out those "
                    "that are not"
                )
