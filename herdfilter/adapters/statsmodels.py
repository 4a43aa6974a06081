"""Models from the state-space models of statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.adapters._matrices import matrix_model
from herdfilter.models.from_functions import FunctionModel

__all__ = ["from_statsmodels"]

MATRICES = ("transition", "state_intercept", "state_cov", "design", "obs_intercept", "obs_cov")
"""Names of the system's matrices and intercepts in statsmodels, without that of its selection matrix."""


def from_statsmodels(results: Any) -> tuple[FunctionModel, Array]:
    """Convert a state-space model of statsmodels with its parameters, and return it with its observations.

    Matrices, constant or varying in time, intercepts, and mean and covariance of the first state are copied. Our Kalman
    filters have the filtered states of statsmodels, and its ``llf_obs``. Its ``llf`` is the sum of these after the first
    ``loglikelihood_burn`` steps.

    Parameters
    ----------
    results : statsmodels.tsa.statespace.mlemodel.MLEResults
        Results of ``fit()``, or of ``filter(params)`` with parameters that you know, of a ``SARIMAX``,
        ``UnobservedComponents``, ``VARMAX``, ``DynamicFactor`` or another ``MLEModel``.

    Returns
    -------
    FunctionModel
        Its step 1 is the first observation.
    numpy.ndarray, shape (T, k)
        Observations, NaN where they are missing.

    Raises
    ------
    TypeError
        If there are no such results, as for a model without parameters.
    ValueError
        If a matrix is not finite, or if the initial distribution is exact diffuse, which no filter of this package can start
        from; within a filter, at a step for which there are no matrices.

    Examples
    --------
    >>> from statsmodels.tsa.api import UnobservedComponents
    >>> from herdfilter.adapters.statsmodels import from_statsmodels
    >>> results = UnobservedComponents([1.2, 0.7, np.nan, 1.9, 2.2], "local level").filter([0.5, 0.1])
    >>> model, observations = from_statsmodels(results)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(observations)
    >>> print(np.allclose(kalman.means.T, results.filtered_state))
    True
    """
    system = getattr(results, "filter_results", None)
    if system is None:
        raise TypeError(
            "results: expected those of fit() or filter(params) of an MLEModel of statsmodels, such as SARIMAX, got "
            f"{_checks.short_repr(results)}"
        )
    if system.nobs_diffuse or system.filter_timing:
        raise ValueError(
            "initialization: expected the distribution of the state at the first observation, got "
            f"{'that of the state before' if system.filter_timing else 'an exact diffuse one'}; leave out "
            "use_exact_diffuse and timing_init_filtered, or call model.ssm.initialize_approximate_diffuse()"
        )
    # statsmodels has time last
    parts = {name: np.moveaxis(getattr(system, name), -1, 0) for name in MATRICES}
    selection = np.moveaxis(system.selection, -1, 0)
    parts["state_cov"] = selection @ parts["state_cov"] @ selection.transpose(0, 2, 1)
    parts["initial_state"] = system.initial_state[None]
    parts["initial_state_cov"] = system.initial_state_cov[None]
    return matrix_model(parts, system.nobs), system.endog.T.copy()
