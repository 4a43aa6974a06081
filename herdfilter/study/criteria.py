"""What a run is judged by: when it diverged, and figures from the literature that filters should reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from herdfilter._checks import as_number, as_positive, check_count, one_of


@dataclass(frozen=True)
class Divergence:
    """When a run counts as diverged: RMSE against the truth over the final part of the steps above a bound.

    Parameters
    ----------
    rmse_above : float
        Bound, in the unit of the error.
    final_part : float
        Fraction of the steps looked at, in (0, 1].
    """

    rmse_above: float
    final_part: float = 0.25

    def __post_init__(self) -> None:
        as_positive("divergence rmse_above", self.rmse_above)
        as_number("divergence final_part", self.final_part, "above 0 and up to 1", lambda part: 0 < part <= 1)


PUBLISHED_MEASURES = ("rmse", "mean_component_rmse")
"""The column ``rmse``; or the root mean square over the error dimensions at every step, averaged over the steps."""

STATISTICS = ("mean", "median", "rms")
"""What is taken over the runs."""


@dataclass(frozen=True)
class Published:
    """A figure from the literature that a filter should reproduce.

    Parameters
    ----------
    filter : str
        Name of the filter, or ``"reference"`` for the scenario's reference.
    n_particles : int
        Particle count; of no meaning for the reference.
    value, tolerance : float
        The figure, and how far from it ours may be.
    source : str
        Where it stands.
    measure : str
        One of `PUBLISHED_MEASURES`.
    statistic : str
        One of `STATISTICS`.
    runs : int
        Number of runs.
    steps : int, optional
        Number of steps; the scenario's unless given.
    skip : int
        Steps at the start that do not count.
    model : mapping
        Keys of ``[model]`` that differ from the scenario's.
    """

    filter: str
    n_particles: int
    value: float
    tolerance: float
    source: str
    measure: str = "rmse"
    statistic: str = "mean"
    runs: int = 20
    steps: int | None = None
    skip: int = 0
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.filter, str):
            raise ValueError(f"published filter: expected a name, got {self.filter!r}")
        check_count("published n_particles", self.n_particles)
        as_positive("published value", self.value)
        as_positive("published tolerance", self.tolerance)
        if not isinstance(self.source, str) or not self.source:
            raise ValueError(f"published source: expected where the figure stands, got {self.source!r}")
        one_of("published measure", self.measure, PUBLISHED_MEASURES)
        one_of("published statistic", self.statistic, STATISTICS)
        check_count("published runs", self.runs)
        if self.steps is not None:
            check_count("published steps", self.steps)
        check_count("published skip", self.skip, minimum=0)
        if not isinstance(self.model, Mapping):
            raise ValueError(f"published model: expected a table of keys of [model], got {self.model!r}")
