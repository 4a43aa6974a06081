"""What the tables of a comparison show: columns of the summary with headings, for the command line and the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter.study.columns import COLUMNS, digits, percent
from herdfilter.study.scenario import Scenario
from herdfilter.study.summary import error_measure, told

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Heading:
    """One column of a table.

    Attributes
    ----------
    name : str
        Of the column in the summary.
    label : str
    format : callable
        How its numbers are written.
    brief : bool
        Whether it stands in the narrow table, too.
    """

    name: str
    label: str
    format: Callable[[float], str] = digits
    brief: bool = False

    def value(self, row: pd.Series[Any]) -> str:
        """Write the number of a row of the summary."""
        return self.format(float(row[self.name]))

    def interval(self, row: pd.Series[Any]) -> tuple[str, str] | None:
        """Write both ends of its interval; None where there is none: too few runs, or a ratio to itself."""
        low, high = (float(row.get(f"{self.name}_{end}", np.nan)) for end in ("low", "high"))
        return (self.format(low), self.format(high)) if high > low else None


def headings(summary: pd.DataFrame, scenario: Scenario) -> list[Heading]:
    """Return the columns worth showing: the median error first, then what was measured.

    Parameters
    ----------
    summary : pandas.DataFrame
        What `summarise` returns.
    scenario : Scenario
        Names the unit of errors, and says whether runs diverge or localise.
    """
    unit = f" ({scenario.unit})" if scenario.unit else ""
    rank = error_measure(summary)
    shown = [Heading(f"{rank}_median", f"median {told(rank)}{unit}", brief=True)]
    if summary["filter"].nunique() > 1:
        shown.append(Heading("ratio", f"ratio to {summary['baseline'].iloc[0]}", brief=True))
    for column in COLUMNS:
        if column.name == "diverged" and scenario.targets is not None:
            continue  # runs that failed, which are counted by themselves
        if column.label and summary[column.name].notna().any():
            label = column.label.format(unit=unit)
            shown.append(Heading(column.name, label, column.format, column.brief))
    if localises(scenario):
        at_rest = Heading("diverged", "localised", lambda share: percent(1 - share), brief=True)
        shown = [at_rest if heading.name == "diverged" else heading for heading in shown]
    return [*shown, Heading("failures", "failed", lambda count: f"{count:.0f}")]


def headings_of_models(models: pd.DataFrame) -> list[Heading]:
    """Return the columns worth showing of what `over_models` returns; what no filter has is left out."""
    base = models["baseline"].iloc[0]
    every = [
        Heading("ratio", f"error over {base}'s", brief=True),
        Heading("ratio_10", "10 %"),
        Heading("ratio_50", "median"),
        Heading("ratio_90", "90 %", brief=True),
        Heading("above", "above 1", percent, brief=True),
        Heading("above_shown", "shown above 1", percent),
        Heading("variance_right", "variance right", percent, brief=True),
        Heading("variance_50", "ratio of variances"),
        Heading("log_likelihood", f"log-likelihood: distance over {base}'s"),
        Heading("lost", "lost", percent, brief=True),
        Heading("time", "time", brief=True),
        Heading("time_90", "time, 90 %"),
        Heading("time_worst", "time, worst"),
        Heading("exponent", "exponent in n"),
        Heading("exponent_worst", "exponent, worst"),
        Heading("uncertain", "reference uncertain", lambda count: f"{count:.0f}"),
        Heading("unknown", "no reference", lambda count: f"{count:.0f}"),
    ]
    return [one for one in every if models[one.name].notna().any()]


def localises(scenario: Scenario) -> bool:
    """Whether the good end of a run is counted, as with real data: that it localised."""
    return scenario.data is not None and scenario.divergence is not None
