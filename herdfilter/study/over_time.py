"""Errors and consistency of every filter from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.study.columns import SERIES
from herdfilter.study.steps import AllRuns

if TYPE_CHECKING:
    import pandas as pd


def over_time(
    series: Mapping[tuple[str, int], Mapping[str, Array]],
    quantiles: tuple[float, float] = (0.25, 0.75),
    level: float = 0.95,
) -> pd.DataFrame:
    """Summarise series over the runs, step by step.

    Parameters
    ----------
    series : mapping
        (filter, n) -> name -> (runs, T) array, of the names `columns.SERIES`; runs that failed are left out or NaN.
    quantiles : tuple of float
        Ends of the bands over runs.
    level : float
        Probability of the chi-square bands.

    Returns
    -------
    pandas.DataFrame
        One row per filter, particle count and step.

        ``filter``, ``n_particles``, ``step``, ``runs``
            Where, and the number of runs that got there.
        ``rmse``, ``rmse_median``, ``rmse_low``, ``rmse_high``
            Distance to the truth: root mean square over runs, median, and ends of the band between quantiles.
        ``reference_error``, ...
            Likewise to the reference.
        ``gospa``, ``gospa_median``, ``gospa_low``, ``gospa_high``
            Of many targets the GOSPA distance: mean over runs, median, and ends of the band between quantiles; likewise
            ``ospa``, and ``cardinality``, the number of estimates minus that of targets.
        ``ess_median``, ``ess_low``, ``ess_high``
            Effective sample size.
        ``nees``, ``nees_median``, ``nees_low``, ``nees_high``, ``nees_band_low``, ``nees_band_high``
            Normalised estimation error squared over its degrees of freedom: mean over runs, median, ends of the band between
            quantiles, and the chi-square band of the mean of a consistent Gaussian filter; runs are independent, so that
            this has runs times d degrees of freedom.
        ``nis``, ...
            Likewise the normalised innovation squared.
        ``energy_distance_median``, ``energy_distance_low``, ``energy_distance_high``
            At the steps that have it.

        NaN where no run has a value.

    Examples
    --------
    >>> squared = np.array([[1.0, 4.0], [9.0, 4.0]])  # two runs of two steps
    >>> frame = hf.study.over_time({("bootstrap", 100): {"truth": squared}})
    >>> print(frame[["step", "runs", "rmse"]].round(3).to_string(index=False))
     step  runs  rmse
        1     2 2.236
        2     2 2.000
    """
    import pandas as pd

    frames = []
    for (name, n), named in series.items():
        main = AllRuns(named, quantiles, level).main
        steps = np.shape(main)[1]
        columns: dict[str, Any] = {"filter": name, "n_particles": n, "step": np.arange(1, steps + 1)}
        columns["runs"] = np.isfinite(main).sum(axis=0)
        for one in SERIES:
            if one.over_time is not None:
                columns |= one.over_time(one.name, AllRuns(named, quantiles, level))
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
