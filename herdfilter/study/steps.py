"""Series over time summarised over the runs, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.study.statistics import chi_square_band


@dataclass(frozen=True, eq=False)
class AllRuns:
    """The series of all runs of one filter at one particle count.

    Attributes
    ----------
    named : mapping
        Name -> values (runs, T), NaN where there is none.
    quantiles : tuple of float
        Ends of the bands over runs.
    level : float
        Probability of the chi-square bands.
    """

    named: Mapping[str, Array]
    quantiles: tuple[float, float]
    level: float

    def values(self, name: str) -> Array:
        """Values of a series (runs, T); NaN throughout where it was not kept."""
        return np.asarray(self.named.get(name, np.full(np.shape(self.main), np.nan)))

    @property
    def main(self) -> Array:
        """The series that every run has that did not fail: the error to the truth, of many targets GOSPA."""
        return self.named["truth" if "truth" in self.named else "gospa"]


Steps = Callable[[str, AllRuns], dict[str, Array]]
"""``(name of a series, all runs)`` -> columns over time, each (T,)."""


def band(name: str, runs: AllRuns) -> dict[str, Array]:
    """Median and quantiles over runs."""
    return _band(name, runs.values(name), runs.quantiles)


def mean_and_band(name: str, runs: AllRuns) -> dict[str, Array]:
    """Mean over runs, median and quantiles."""
    values = runs.values(name)
    return {name: _mean_over_runs(values)} | _band(name, values, runs.quantiles)


def errors(column: str) -> Steps:
    """Return the summary of squared errors: root mean square over runs, median and quantiles of their roots."""

    def summary(name: str, runs: AllRuns) -> dict[str, Array]:
        squared = runs.values(name)
        return {column: np.sqrt(_mean_over_runs(squared))} | _band(column, np.sqrt(squared), runs.quantiles)

    return summary


def over_degrees(name: str, runs: AllRuns) -> dict[str, Array]:
    """Normalised squares over their degrees of freedom: mean over runs, median, quantiles, and the chi-square band."""
    squares, degrees = runs.values(name), runs.values(f"{name}_degrees")
    total = np.nansum(degrees, axis=0)
    low, high = chi_square_band(total, runs.level)
    return {
        name: np.nansum(squares, axis=0) / np.where(total > 0, total, np.nan),
        **_band(name, squares / np.where(degrees > 0, degrees, np.nan), runs.quantiles),
        f"{name}_band_low": low,
        f"{name}_band_high": high,
    }


def _band(name: str, values: Array, quantiles: tuple[float, float]) -> dict[str, Array]:
    """Median and quantiles over runs (runs, T) of the values that are not NaN."""
    result = np.full((3, values.shape[1]), np.nan)
    some = np.isfinite(values).any(axis=0)
    if some.any():
        result[:, some] = np.nanquantile(values[:, some], (0.5, *quantiles), axis=0)
    return {f"{name}_median": result[0], f"{name}_low": result[1], f"{name}_high": result[2]}


def _mean_over_runs(values: Array) -> Array:
    count = np.isfinite(values).sum(axis=0)
    return np.nansum(values, axis=0) / np.where(count > 0, count, np.nan)
