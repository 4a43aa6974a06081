"""Every column of the result table and every series over time, declared once, and the headings of the tables.

Store, summary, command line, report and figures read these lists. A new number takes one `Column` here, a test, and a
property of the record of a run (run_record.py) if it is more than one line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from herdfilter._checks import Array
from herdfilter.study import metrics, statistics
from herdfilter.study.run_record import RunRecord, normalised_mean
from herdfilter.study.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


def digits(number: float) -> str:
    """Write a number with three significant digits."""
    if math.isnan(number):
        return "-"
    # "#" keeps trailing zeros, so that 0.5 shows three digits, too; the point of "123." goes.
    text = f"{number:#.3g}".rstrip(".")
    if "e" not in text:
        return text
    # 1.23e+04 -> 1.23e4
    mantissa, exponent = text.split("e")
    return f"{mantissa.rstrip('.')}e{int(exponent)}"


def percent(share: float) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class Column:
    """A number measured in every run of every filter.

    Columns whose `figure` is ``"error"`` are drawn against particle count and time; ``"scaled"`` ones are drawn in place of
    these for a family of models, whose units differ; ``"consistency"`` ones are drawn beside their band, and 1 is right.
    """

    name: str  # in the table of runs, in the store and, with endings, in the summary
    meaning: str
    # Over the runs of a filter; None leaves the column out of the summary.
    summary: statistics.Summary | None = None
    # In tables of command line and report, with {unit} filled in; without a label only CSV files have the column.
    label: str = ""
    format: Callable[[float], str] = digits
    brief: bool = False  # also in the narrow table of the command line
    figure: Literal["", "error", "scaled", "consistency"] = ""
    title: str = ""  # of its panel in a figure
    of_reference: bool = False  # does not need the filter's result, so that a failed run has it
    # By default the record's attribute `name`.
    measure: Callable[[RunRecord], float | np.floating[Any]] | None = None


# The parts of GOSPA are p-th powers, whose mean over time comes before the root.
def _part_of_gospa(part: str, meaning: str) -> Column:
    def measure(run: RunRecord) -> float:
        targets = run.scenario.targets
        return np.nan if targets is None else run.of_sets(part).mean() ** (1 / targets.gospa_order)

    return Column(
        f"gospa_{part}",
        f"part of GOSPA by {meaning}",
        statistics.mean,
        f"GOSPA: {part}{{unit}}",
        measure=measure,
    )


COLUMNS = (
    Column(
        "reference_sd",
        "standard error of the reference's own posterior mean",
        statistics.rms,
        of_reference=True,
    ),
    Column(
        "reference_error",
        "root mean square over time of the distance to the reference's posterior mean",
        statistics.rms_and_median,
        "RMS error to the reference{unit}",
        figure="error",
        title="Error to the reference posterior mean",
        measure=lambda run: metrics.root_mean(run.against_reference),
    ),
    Column(
        "reference_uncertainty",
        "standard error of the reference's own posterior mean, in posterior standard deviations",
        statistics.rms,
        of_reference=True,
    ),
    Column(
        "reference_error_sd",
        "root mean square over time and dimensions of the error to the reference's posterior mean, each in its posterior "
        "standard deviation",
        statistics.rms_and_median,
        "RMS error to the reference (posterior sd)",
        figure="scaled",
        title="Error to the reference posterior mean, in posterior standard deviations",
    ),
    Column(
        "variance_ratio",
        "posterior variance over the reference's, geometric mean over time and dimensions: 1 where it is right",
        statistics.median,
        "posterior variance over the reference's",
    ),
    Column(
        "rmse",
        "root mean square over time of the distance to the truth",
        statistics.rms_and_median,
        "RMS error to the truth{unit}",
        figure="error",
        title="Error to the truth",
        measure=lambda run: metrics.root_mean(run.truth),
    ),
    Column(
        "gospa",
        "of many targets: GOSPA distance of the estimates to the targets, mean over time",
        statistics.mean_and_median,
        "GOSPA{unit}",
        figure="error",
        title="GOSPA",
        measure=lambda run: run.of_sets("gospa").mean(),
    ),
    _part_of_gospa(
        "localisation",
        "the distances of assigned estimates: p-th root of its mean over time; the p-th powers of the three parts sum to "
        "the mean p-th power of GOSPA",
    ),
    _part_of_gospa("missed", "targets without an estimate, likewise"),
    _part_of_gospa("false", "estimates without a target, likewise"),
    Column(
        "ospa",
        "of many targets: OSPA distance of the estimates to the targets, mean over time",
        statistics.mean_with_interval,
        "OSPA{unit}",
        brief=True,
        measure=lambda run: run.of_sets("ospa").mean(),
    ),
    Column(
        "label_switches",
        "number of times that a target got another label than it had last",
        statistics.mean,
        "label switches",
        brief=True,
        measure=lambda run: run.of_sets("label_switches").mean(),
    ),
    Column(
        "cardinality_error",
        "absolute difference of the numbers of estimates and of targets, mean over time",
        statistics.mean,
        "error of the number of targets",
        measure=lambda run: np.abs(run.of_sets("cardinality")).mean(),
    ),
    Column("final_rmse", "rmse over the final part of the run"),
    Column("log_likelihood", "log-likelihood of all observations"),
    Column(
        "log_likelihood_error",
        "log-likelihood minus the reference's",
        statistics.rms,
        "RMS error of the log-likelihood",
        measure=lambda run: run.log_likelihood - getattr(run.reference, "log_likelihood", np.nan),
    ),
    Column(
        "ess",
        "effective sample size, mean over time",
        statistics.mean,
        "effective sample size",
        measure=lambda run: run.ess.mean(),
    ),
    Column(
        "anees",
        "normalised estimation error squared over its degrees of freedom: 1 where covariances are right",
        statistics.mean_beside_band("nees_degrees"),
        "ANEES",
        figure="consistency",
        title="ANEES: covariance of the state",
        measure=lambda run: normalised_mean(run.nees, run.nees_degrees),
    ),
    Column(
        "nees_inside",
        "share of steps with the truth in the 95 % ellipsoid",
        statistics.mean,
        measure=lambda run: metrics.inside_ellipsoid(run.nees, run.nees_degrees),
    ),
    Column(
        "nees_singular",
        "number of steps whose covariance is singular",
        statistics.total,
        measure=lambda run: np.nan if run.covariances is None else np.isnan(run.nees).sum(),
    ),
    Column(
        "nees_degrees",
        "degrees of freedom of one step: the dimension of the state",
        measure=lambda run: np.nan if run.recording.many else run.model.dim,
    ),
    Column(
        "nis",
        "normalised innovation squared over its degrees of freedom: 1 where predictions are right",
        statistics.mean_beside_band("nis_degrees"),
        "NIS",
        figure="consistency",
        title="NIS: predicted observations",
        measure=lambda run: normalised_mean(run.nis, run.nis_degrees),
    ),
    Column(
        "nis_inside",
        "share of observations in the 95 % ellipsoid of their prediction",
        statistics.mean,
        measure=lambda run: metrics.inside_ellipsoid(run.nis, run.nis_degrees),
    ),
    Column(
        "nis_degrees",
        "number of entries observed",
        measure=lambda run: run.nis_degrees.sum() if run.recording.scans is None else np.nan,
    ),
    Column(
        "energy_distance",
        "energy distance of at most 5,000 particles to the exact posterior, in its standard deviations",
        statistics.median_with_interval,
        "energy distance to the posterior",
        measure=lambda run: statistics.of(np.mean, statistics.finite(run.energy_distances)),
    ),
    Column(
        "ms_per_step",
        "milliseconds per step, compilation excluded",
        statistics.median,
        "ms per step",
        brief=True,
        measure=lambda run: 1e3 * run.seconds / len(run.recording),
    ),
    Column("seconds", "seconds for the run", statistics.median),
    Column(
        "evaluations",
        "states per step at which the filter asks a function of the model: transition, observation or likelihood",
        statistics.median,
        "evaluations per step",
        brief=True,
        measure=lambda run: run.evaluations / len(run.recording),
    ),
    Column(
        "diverged",
        "true if the run failed, or final_rmse exceeds the scenario's bound",
        statistics.mean,
        "diverged",
        percent,
        brief=True,
    ),
)
"""The columns, in the order of the table."""

BY_NAME = {column.name: column for column in COLUMNS}

MEASURED = tuple(column.name for column in COLUMNS if column.name != "diverged")
"""Names of the measured numbers. Not ``diverged``: it is true or false, and a failed run has it, too."""


@dataclass(frozen=True)
class Series:
    """A value at every step, stored for every run of every filter; `over_time` summarises it over all runs."""

    name: str
    over_time: statistics.SeriesSummary | None = None
    column: str = ""  # of the summary, if it is not named as the series
    measure: Callable[[RunRecord], Array] | None = None  # default: the record's attribute `name`


SERIES = (
    Series("truth", statistics.rms_over_time, "rmse"),
    Series(
        "reference",
        statistics.rms_over_time,
        "reference_error",
        measure=lambda run: run.against_reference,
    ),
    *(
        Series(name, statistics.mean_over_time, measure=partial(RunRecord.of_sets, name=name))
        for name in ("gospa", "ospa", "cardinality")
    ),
    Series("ess", statistics.median_over_time),
    Series("nees", statistics.normalised_over_time),
    Series("nees_degrees"),
    Series("nis", statistics.normalised_over_time),
    Series("nis_degrees"),
    Series(
        "energy_distance", statistics.median_over_time, measure=lambda run: run.energy_distances
    ),
)
"""The series: squared errors, other curves over time, and degrees of freedom (name with ``_degrees``)."""


def measured(run: RunRecord, of_reference: bool = False) -> dict[str, float]:
    """Measure every column of a run, or only the `of_reference` ones, which a failed run has, too."""
    return {
        column.name: float(_measure(column, run))
        for column in COLUMNS
        if column.of_reference or not of_reference
    }


def _measure(entry: Column | Series, run: RunRecord) -> Any:
    return getattr(run, entry.name) if entry.measure is None else entry.measure(run)


def series_of(run: RunRecord) -> dict[str, Array]:
    """Return the series of a run that have a value at some step, each (T,)."""
    series = {entry.name: _measure(entry, run) for entry in SERIES}
    # Degrees of freedom are 0, not NaN, where nothing is known; they are left out with their squares.
    return {
        name: values
        for name, values in series.items()
        if np.isfinite(series[name.removesuffix("_degrees")]).any()
    }


def error_measures(table: pd.DataFrame) -> list[str]:
    """Return the columns of errors that have values, first the one that ranks filters; ``rmse`` if none has any.

    The models of a family differ in units, so their errors to the reference are in posterior standard deviations.
    """
    # Of a family only errors in posterior standard deviations are comparable.
    figure = "error" if {"model", "models"}.isdisjoint(table) else "scaled"
    errors = [column.name for column in COLUMNS if column.figure == figure]
    return [name for name in errors if name in table and table[name].notna().any()] or ["rmse"]


def error_measure(table: pd.DataFrame) -> str:
    """Return the column that ranks filters: the error to the reference, else the error to the truth, else GOSPA."""
    return error_measures(table)[0]


def error_phrase(measure: str) -> str:
    """Name a column of errors in words, as in ``error to the truth``."""
    if measure == "gospa":
        return "GOSPA"
    return f"error to the {'truth' if measure == 'rmse' else 'reference'}"


@dataclass(frozen=True)
class Heading:
    """A column of the summary as a table shows it; `brief` ones are in the narrow table, too."""

    name: str
    label: str
    format: Callable[[float], str] = digits
    brief: bool = False
    cap: float = math.inf

    def written(self, number: float) -> str:
        """Write a number of the column, or ``> 1e4`` if it is finite and larger than a `cap` of 10^4."""
        return (
            self.format(number)
            if not self.cap < number < math.inf
            else f"> 1e{math.log10(self.cap):.0f}"
        )

    def value(self, row: pd.Series[Any]) -> str:
        """Write the column's number in a row of the summary."""
        return self.written(float(row[self.name]))

    def interval(self, row: pd.Series[Any]) -> tuple[str, str] | None:
        """Write both ends of the interval; None with too few runs, for the baseline's own ratio, and beyond `cap`."""
        low, high = (float(row.get(f"{self.name}_{end}", np.nan)) for end in ("low", "high"))
        # False for NaN; and the baseline's ratio to itself is 1 in all runs, so that low = high.
        return (self.written(low), self.written(high)) if low < min(high, self.cap) else None


RATIO = Heading("ratio", "ratio", cap=1e4)
"""The ratio to the baseline, as it is written in sentences."""


def headings(summary: pd.DataFrame, scenario: Scenario) -> list[Heading]:
    """Return the columns of a summary worth showing: the brief ones first, then everything measured."""
    unit = f" ({scenario.unit})" if scenario.unit else ""
    # The narrow table begins with the number that ranks the filters, and its ratio.
    rank = error_measure(summary)
    columns = [Heading(f"{rank}_median", f"median {error_phrase(rank)}{unit}", brief=True)]
    if summary["filter"].nunique() > 1:
        columns.append(Heading("ratio", f"ratio to {summary['baseline'].iloc[0]}", brief=True))
    for column in COLUMNS:
        if column.name == "diverged" and scenario.targets is not None:
            # Of many targets only failed runs count as diverged, and these have a column of their own.
            continue
        if column.name == "diverged" and localises(scenario):
            columns.append(
                Heading("diverged", "localised", lambda share: percent(1 - share), brief=True)
            )
        elif column.label and summary[column.name].notna().any():
            columns.append(
                Heading(column.name, column.label.format(unit=unit), column.format, column.brief)
            )
    # `sorted` is stable: the columns keep their order within brief and other ones.
    failed = Heading("failures", "failed", "{:.0f}".format)
    return sorted([*_with_caps(columns, summary), failed], key=lambda heading: not heading.brief)


def _with_caps(columns: list[Heading], table: pd.DataFrame) -> list[Heading]:
    """Return the columns with a `cap`: 10^4, or 10^4 times the smallest value's power of ten if that is larger."""
    capped = []
    for heading in columns:
        values = table[heading.name]
        # Infinite ratios and zeros say nothing about the scale of the column.
        positive = values[(values > 0) & (values < math.inf)]
        if len(positive):
            exponent = 4 + max(0, math.floor(math.log10(positive.min())))
            heading = replace(heading, cap=10.0**exponent)
        capped.append(heading)
    return capped


def headings_of_models(models: pd.DataFrame) -> list[Heading]:
    """Return the columns of `over_models` that have a value for some filter."""
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
        Heading("evaluations", "evaluations", brief=True),
        Heading("exponent", "exponent in n"),
        Heading("exponent_worst", "exponent, worst"),
        Heading("uncertain", "reference uncertain", "{:.0f}".format),
        Heading("unknown", "no reference", "{:.0f}".format),
    ]
    return _with_caps([heading for heading in every if models[heading.name].notna().any()], models)


def localises(scenario: Scenario) -> bool:
    """Return True if tables count the runs that localised, as is usual with real data, not those that diverged."""
    return scenario.data is not None and scenario.divergence is not None
