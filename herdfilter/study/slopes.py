"""How fast errors fall with the number of particles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.study.statistics import mean_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fitted_slopes"]

MEASURES = ("reference_error", "reference_error_sd", "rmse", "gospa")


def fitted_slopes(table: pd.DataFrame, measure: str = "reference_error", level: float = 0.95) -> pd.DataFrame:
    """Fit the logarithm of the error over the logarithm of the particle count, by least squares in every run.

    Runs are independent, the particle counts of one run are not: they share its truth and observations. So each run
    gives one slope, and the interval is Student's over runs. The mean of these slopes is the least-squares slope
    through the geometric means of the errors.

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns.
    measure : str
        One of `MEASURES`.
    level : float
        Coverage of the intervals, as far as slopes of runs are normal.

    Returns
    -------
    pandas.DataFrame
        One row per filter: ``filter``, ``runs`` (those with an error above 0 at every particle count), ``slope``,
        ``slope_low``, ``slope_high``; NaN with fewer than two particle counts; no interval with fewer than six runs.
        Independent draws have a slope of -0.5 once there are many.

    Raises
    ------
    ValueError
        If the measure is unknown or the level is no probability.

    Examples
    --------
    >>> import pandas as pd
    >>> from herdfilter.study.slopes import fitted_slopes
    >>> table = pd.DataFrame([
    ...     {"filter": "random", "n_particles": n, "run": run, "reference_error": (1 + run) / n**0.5}
    ...     for n in (10, 100, 1000) for run in range(3)
    ... ])
    >>> print(fitted_slopes(table)[["filter", "runs", "slope"]].round(3).to_string(index=False))
    filter  runs  slope
    random     3   -0.5
    """
    import pandas as pd

    one_of("measure", measure, MEASURES)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a probability between 0 and 1, got {level!r}")
    return pd.DataFrame(
        [
            {"filter": name, **_fit(rows.pivot(index="run", columns="n_particles", values=measure), level)}
            for name, rows in table.groupby("filter", sort=False)
        ]
    )


def _fit(errors: pd.DataFrame, level: float) -> dict[str, Any]:
    """Slope of every run (a row) over the particle counts (the columns): mean over runs, and interval."""
    values: Array = errors.to_numpy(dtype=np.float64)
    values = values[np.isfinite(values).all(axis=1) & (values > 0).all(axis=1)]
    runs, counts = values.shape
    fit: dict[str, Any] = {"runs": runs, "slope": np.nan, "slope_low": np.nan, "slope_high": np.nan}
    if counts < 2 or runs < 1:
        return fit
    x = np.log(errors.columns.to_numpy(dtype=np.float64))
    x -= x.mean()
    slopes = np.log(values) @ x / (x @ x)
    fit["slope"] = float(slopes.mean())
    fit["slope_low"], fit["slope_high"] = mean_interval(slopes, level)
    return fit
