"""What a Gaussian mixture is made of in other people's arrays and objects: arrays out, no library is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_covariance, as_numbers, shown

TYPES = ("full", "tied", "diag", "spherical")


def component_covariances(value: ArrayLike, m: int, d: int) -> Array:
    """Return covariances of m components, full, shared, diagonal or spherical by their shape, as (m, d, d) or (1, d, d).

    Raises
    ------
    ValueError
        If the shape is none of these, or a matrix is no covariance.
    """
    array = as_numbers("covariances", value, (d, d))
    if array.shape in ((m, d, d), (d, d)):
        try:
            return as_covariance("covariances", value, d).reshape(-1, d, d)
        except ValueError as error:
            if array.shape != (m, d) or d == 1 or not np.isfinite(array).all():
                raise
            raise ValueError(
                f"{error}; as there are as many components as dimensions, shape ({d}, {d}) is one matrix shared by all: for "
                f"diagonal ones, with the variances of a component in each row, pass covariances[:, None] * np.eye({d})"
            ) from None
    if array.shape not in ((m, d), (m,)):
        by_axis = f", ({m}, {d}) for diagonal" if m != d else ""
        raise ValueError(
            f"covariances: expected shape ({m}, {d}, {d}) or ({d}, {d}){by_axis} or ({m},) for spherical ones, "
            f"got {array.shape}"
        )
    return as_covariance("covariances", diagonal(array, d), d)


def diagonal(variances: Array, d: int) -> Array:
    """Covariances (m, d, d) with the variances (m, d), or (m,) for all dimensions of a component alike."""
    return variances.reshape(len(variances), 1, -1) * np.eye(d)


def parts_of_sklearn(gmm: Any) -> tuple[Array, Array, Array]:
    """Weights, means and covariances of a mixture of scikit-learn."""
    if isinstance(gmm, type) or not hasattr(gmm, "covariance_type"):
        raise TypeError(
            f"gmm: expected a fitted GaussianMixture or BayesianGaussianMixture of scikit-learn, got {_kind(gmm)}"
        )
    missing = [name for name in ("weights_", "means_", "covariances_") if not hasattr(gmm, name)]
    if missing:
        raise ValueError(
            f"gmm: expected a fitted mixture, got {shown(gmm)} without {', '.join(missing)}; call its fit(x) first"
        )
    if gmm.covariance_type not in TYPES:
        raise ValueError(f"gmm.covariance_type: expected one of {', '.join(TYPES)}, got {shown(gmm.covariance_type)}")
    covariances = np.asarray(gmm.covariances_)
    if gmm.covariance_type in ("diag", "spherical"):
        covariances = diagonal(covariances, np.shape(gmm.means_)[1])
    return gmm.weights_, gmm.means_, covariances


def parts_of_kde(kde: Any) -> tuple[Array, Array, Array]:
    """Weights, means and the one covariance of a kernel density estimate of SciPy."""
    missing = [name for name in ("weights", "dataset", "covariance") if not hasattr(kde, name)]
    if isinstance(kde, type) or missing:
        raise TypeError(f"kde: expected a scipy.stats.gaussian_kde, got {_kind(kde)}")
    return kde.weights, kde.dataset.T, kde.covariance


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object {type(value).__name__}"
