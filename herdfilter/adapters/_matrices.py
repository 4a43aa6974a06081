"""Linear Gaussian models of matrices that may vary in time, whose initial distribution is of the first observed state."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.models.from_functions import FunctionModel
from herdfilter.models.parts import repeated


def matrix_model(parts: Mapping[str, Array], steps: int) -> FunctionModel:
    r"""Return a linear Gaussian model for so many steps.

    .. math:: x_1 \sim N(m, P), \qquad x_k = F_k x_{k-1} + c_k + N(0, Q_k), \qquad z_k = H_k x_k + d_k + N(0, R_k)

    The parts, under the names that errors have for them, are F, c and Q from the transition to step 2 on; H, d and R from
    step 1 on; m and P. Their first axis is time; one entry stands for all steps.
    """
    *_, (mean,), (covariance,) = parts.values()
    # The first transition forgets the state, and its noise is the initial distribution: so proposals that look at the
    # observation do so at the first one, too.
    starts = (np.zeros_like(covariance),), (mean,), (covariance,), (), (), ()
    F, c, Q, H, d, R = (
        by_step(name, parts[name], steps, *start)
        for name, start in zip(parts, starts, strict=False)
    )
    return FunctionModel(
        lambda x, step: x @ F(step).T + c(step),
        lambda x, step: x @ H(step).T + d(step),
        Q,
        R,
        mean,
        covariance,
        transition_jacobian=lambda x, step: repeated(F(step), x),
        observation_jacobian=lambda x, step: repeated(H(step), x),
    )


def by_step(name: str, series: Array, steps: int, *start: Array) -> Callable[[int], Array]:
    """Return a function from steps, counted from 1, to `start` and then the entries of a series."""
    series = as_array(name, series, (None,) * series.ndim)
    # a copy: the library's own arrays may change later
    entries: list[Array] = list(np.array([*start, *series]))
    # a constant goes on after its last entry
    last = np.inf if (series == series[0]).all() else len(entries)

    def at(step: int) -> Array:
        if not 1 <= step <= last:
            raise ValueError(
                f"{name}: expected values for step {step}, got those for 1 to {last}; predict before the first update, and "
                "convert a model that is as long as the observations"
            )
        return entries[min(step, len(entries)) - 1]

    at(steps)  # an error now is better than one at the end of a run
    return at
