"""Models from the filters of pykalman."""

from __future__ import annotations

from typing import Any

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.adapters._matrices import matrix_model
from herdfilter.models.from_functions import FunctionModel

__all__ = ["from_pykalman"]

PARAMETERS = {
    "transition_matrices": 2,
    "transition_offsets": 1,
    "transition_covariance": 2,
    "observation_matrices": 2,
    "observation_offsets": 1,
    "observation_covariance": 2,
    "initial_state_mean": 1,
    "initial_state_covariance": 2,
}
"""Parameter of pykalman's KalmanFilter -> number of its axes without that of time."""


def from_pykalman(kf: Any, observations: Any) -> tuple[FunctionModel, Array]:
    """Convert a filter of pykalman, and return it with its observations.

    The initial distribution is that of the state at the first observation, as in pykalman: step 1 here.

    Parameters
    ----------
    kf : object
        A ``KalmanFilter``, whose matrices, offsets and covariances may vary in time; or an
        ``AdditiveUnscentedKalmanFilter`` with one transition and one observation function.
    observations : array_like, shape (T, k) or (T,)
        What ``kf.filter`` takes; masked entries are missing.

    Returns
    -------
    FunctionModel
        Functions of an unscented filter are called for one state at a time.
    numpy.ndarray, shape (T, k)
        Observations, NaN where they are masked. pykalman leaves out a whole row if one of its entries is masked; our
        filters use the others.

    Raises
    ------
    TypeError
        If `kf` is none of these filters. The noise of an ``UnscentedKalmanFilter`` may enter its functions in any way.
    ValueError
        If a parameter is not finite, or varies in time and is shorter than `observations`.

    Examples
    --------
    >>> from pykalman import KalmanFilter
    >>> from herdfilter.adapters.pykalman import from_pykalman
    >>> kf = KalmanFilter([[1, 1], [0, 1]], [[1, 0]], transition_offsets=[0.0, 0.1])
    >>> z = np.ma.masked_invalid([0.1, 1.2, np.nan, 4.1])
    >>> model, observations = from_pykalman(kf, z)
    >>> print(np.allclose(hf.ExtendedKalmanFilter(model).run(observations).means, kf.filter(z)[0]))
    True
    """
    from pykalman import AdditiveUnscentedKalmanFilter, KalmanFilter

    if not isinstance(kf, KalmanFilter | AdditiveUnscentedKalmanFilter):
        raise TypeError(
            "kf: expected a KalmanFilter or an AdditiveUnscentedKalmanFilter of pykalman, got "
            f"{_checks.short_repr(kf)}; write other models by herdfilter.models.contract"
        )
    z = _checks.with_nan(kf._parse_observations(observations))
    z = _checks.as_array("observations", z, (None, kf.n_dim_obs), finite=False)
    # with pykalman's defaults for what the user has not set
    values = kf._initialize_parameters()
    if isinstance(kf, KalmanFilter):
        parts = {
            name: value if value.ndim > axes else value[None]
            for (name, axes), value in zip(PARAMETERS.items(), values, strict=True)
        }
        return matrix_model(parts, len(z)), z
    fs, hs, Q, R, mean, covariance = values
    if len(fs) > 1 or len(hs) > 1:
        raise ValueError(
            f"transition_functions, observation_functions: expected one each, got {len(fs)} and {len(hs)}; write "
            "those that vary in time by from_functions, whose functions may name step"
        )
    model = FunctionModel(
        # as in `matrix_model`, the first transition forgets the state
        lambda x, step: mean if step == 1 else fs[0](x),
        hs[0],
        lambda step: covariance if step == 1 else Q,
        R,
        mean,
        covariance,
        vectorised=False,
    )
    return model, z
