"""A family of models, drawn by the seeds of the runs of a study, and the summary over its models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.study.columns import digits, error_measure, percent
from herdfilter.study.statistics import finite, log_slopes, median_interval, of
from herdfilter.study.summary import Pairs, baseline_of, comparison, median_by_model

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Family:
    """The models of a study's runs, one seed after the other."""

    first: int = 0  # seed of the first model; the next ones have the next seeds
    runs: int = 1  # of each model, one after the other

    def seed(self, run: int) -> int:
        """Return the seed of the model of a run."""
        return self.first + run // self.runs

    def models(self, runs: int) -> int:
        """Return the number of models that `runs` runs have altogether."""
        return -(-runs // self.runs)  # rounded up


def kind_of(model: Any) -> str:
    """Return the kind of a family's model: its `labels`, joined by commas; empty without labels."""
    return ", ".join(map(str, getattr(model, "labels", None) or ()))


# Ratios of a filter's posterior variance to the true one between these count as right.
RIGHT_VARIANCE = (0.8, 1.25)
# Smallest particle count that enters an exponent: below, errors do not follow a power of n yet.
FITTED_FROM = 100

UNCERTAIN = 1 / 3
"""A reference is uncertain if its standard error exceeds this share of the smallest error of a filter to it.

An uncertainty of a third adds one ninth to the square of that error, 5 % to the error itself.
"""


def over_models(table: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Summarise the runs of a family of models: every model counts once, however many runs it has.

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns for a scenario that is a family; of several such tables, one below the other, it needs the
        columns ``filter``, ``n_particles``, ``model``, ``run`` and ``error``, and those measured.
    baseline : str, optional
        The filter that ratios refer to; ``bootstrap`` if it is there, else the first.

    Returns
    -------
    pandas.DataFrame
        One row per filter and particle count; see the page "Comparing filters" for failed runs.

        ``models``, ``compared``, ``uncertain``, ``unknown``
            Number of models; of those with a ratio, with an uncertain reference, and without any.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``better``
            Geometric mean over models of the error divided by the baseline's, its 95 % interval, and whether that lies
            below 1 (-1), above it (1) or neither (0). A model's ratio is the median over its runs (geometric mean of two).
        ``ratio_10``, ``ratio_50``, ``ratio_90``, ``worst``
            Quantiles over models, and the three models of the largest ratios: seed, ratio, kind.
        ``above``, ``above_shown``
            Share of models whose ratio exceeds 1, and of those where the interval of the median over runs lies above it.
        ``variance_right``, ``variance_50``
            Share of models whose variance is 0.8 to 1.25 times the reference's, and the median of this ratio.
        ``log_likelihood``
            Median over models of the distance of the log-likelihood from the reference's over the baseline's.
        ``lost``
            Share of models in which a run failed or diverged that the baseline kept.
        ``time``, ``time_90``, ``time_worst``, ``evaluations``
            Time of a step over the baseline's: median, quantile and maximum over models. Evaluations likewise: median.
        ``exponent``, ``exponent_worst``
            Slope of the log error over the log particle count: median over models, and the slowest.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "filter": 4 * ["bootstrap"] + 4 * ["auto"], "n_particles": 100, "model": 2 * [0, 1, 2, 3],
    ...     "run": 2 * [0, 1, 2, 3], "error": "", "reference_error_sd": 4 * [0.2] + 4 * [0.1],
    ...     "reference_uncertainty": 0.0, "variance_ratio": 1.0, "log_likelihood_error": 0.0, "ms_per_step": 1.0,
    ... })
    >>> print(hf.study.over_models(table)[["filter", "models", "ratio"]].to_string(index=False))
       filter  models  ratio
    bootstrap       4    1.0
      auto       4    0.5
    """
    import pandas as pd

    if "model" not in table:
        raise ValueError("table: expected a column 'model', which a family of models has, got none")
    baseline = baseline_of(table, baseline)
    pairs = Pairs(table)
    errors: Any = pairs.errors  # a row for each model
    failed = table["error"].fillna("") != ""
    # Tables of other sources need not have evaluations.
    runs = table.reindex(columns=list(dict.fromkeys([*table, "evaluations"]))).assign(
        lost=failed | table["diverged"].astype(bool) if "diverged" in table else failed,
        distance=table["log_likelihood_error"].abs(),
    )
    groups = {
        key: group.set_index(["model", "run"])
        for key, group in runs.groupby(["filter", "n_particles"], sort=False)
    }
    uncertainty = table.groupby("model")["reference_uncertainty"].median()
    # A model has a reference if any of its runs has its uncertainty, or an error to it.
    is_known = (
        table[["reference_uncertainty", error_measure(table)]]
        .notna()
        .any(axis=1)
        .groupby(table["model"])
        .any()
    )
    kinds: Any = (
        table.groupby("model")["kind"].max() if "kind" in table else pd.Series("", is_known.index)
    )
    rows = []
    for (name, n), filter_runs in groups.items():
        smallest = errors.xs(n, axis="columns", level="n_particles").min(axis=1)
        # Negated, because the uncertainty may be NaN, which counts as uncertain.
        uncertain = np.isfinite(smallest) & ~(UNCERTAIN * smallest >= uncertainty)
        by_count = errors[name]
        slopes = log_slopes(by_count.loc[:, by_count.columns >= FITTED_FROM])
        rows.append(
            {
                "scenario": table["scenario"].iloc[0] if "scenario" in table else "",
                "filter": name,
                "n_particles": n,
                "baseline": baseline,
                "models": len(is_known),
                **_ratios(pairs, (name, n), (baseline, n), kinds),
                "uncertain": int(uncertain.sum()),
                "unknown": int((~is_known).sum()),
                **_beside(filter_runs, groups[baseline, n]),
                "exponent": of(np.median, slopes),
                "exponent_worst": of(np.max, slopes),
            }
        )
    return pd.DataFrame(rows)


def _ratios(pairs: Pairs, key: Any, base: Any, kinds: Any) -> dict[str, Any]:
    """Summarise the ratios of a filter's errors to the baseline's; keys are filter and particle count."""
    ratios = pairs.ratios(key, base)
    values = ratios.to_numpy()
    # A model is shown to be above 1 if the interval of the median over its own runs is.
    by_model = pairs.by_run(key, base).groupby(level="model")
    lows = np.array([median_interval(runs.to_numpy())[0] for _, runs in by_model])
    row = {"compared": len(ratios)} | pairs.compare(key, base)
    row |= {f"ratio_{q}": _quantile(values, q) for q in (10, 50, 90)}
    row |= {"above": of(np.mean, values > 1), "above_shown": of(np.mean, lows[~np.isnan(lows)] > 1)}
    worst = ratios.sort_values(ascending=False, kind="stable")[:3]
    named = [
        f"{model}: {digits(ratio)}" + (f" ({kinds[model]})" if kinds[model] else "")
        for model, ratio in worst.items()
    ]
    return row | {"worst": "; ".join(named)}


def _beside(runs: pd.DataFrame, base: pd.DataFrame) -> dict[str, float]:
    """Compare variance, log-likelihood, lost runs and costs with the baseline's; tables are indexed by model and run."""
    measures = ["variance_ratio", "distance", "ms_per_step", "evaluations"]
    medians = median_by_model(runs[measures])
    base_medians = median_by_model(base[measures])
    variances = finite(medians["variance_ratio"])
    distances, times, evaluations = (
        finite(medians[name] / base_medians[name]) for name in measures[1:]
    )
    # Runs that the baseline lost, too, or lacks, are not held against the filter.
    lost = runs["lost"] & ~base["lost"].reindex(runs.index, fill_value=True)
    low, high = RIGHT_VARIANCE
    return {
        "variance_right": of(np.mean, (variances >= low) & (variances <= high)),
        "variance_50": of(np.median, variances),
        "log_likelihood": of(np.median, distances),
        "lost": float(lost.groupby(level="model").any().mean()),
        "time": of(np.median, times),
        "time_90": _quantile(times, 90),
        "time_worst": of(np.max, times),
        "evaluations": of(np.median, evaluations),
    }


def _quantile(values: Array, percent: int) -> float:
    """Return the quantile that is one of the values: between two models it could be infinity minus infinity."""
    return float(np.percentile(values, percent, method="inverted_cdf")) if len(values) else np.nan


def verdict_over_models(models: pd.DataFrame) -> str:
    """Name, in one sentence, the best filter over the models at the largest particle count, as `verdict` does."""
    n = models["n_particles"].max()
    rows = models[models["n_particles"] == n].set_index("filter")
    base = rows["baseline"].iloc[0]
    ratios = rows["ratio"].drop(index=base).dropna()
    if ratios.empty:
        return f"With {n} particles there is no other filter to compare with {base}."
    best = rows.loc[ratios.idxmin()]
    claim = comparison(
        best,
        "error",
        "models",
        best["time"],
        f" in the geometric mean of {best['compared']} models",
    )
    return f"With {n} particles {claim}; it is larger on {percent(best['above'])} of them."
