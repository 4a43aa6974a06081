"""What `bench_default.py` makes of runs over random models: ratios by model, exponents, and errors by budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from herdfilter.study import over_models
from herdfilter.study.statistics import mean_interval, median_interval, paired_ratios

SOLVED = 1e-3
"""Error in posterior standard deviations below which nothing is gained: a smaller one counts as so much."""

UNIT = 100
"""Number of particles of the step that budgets are multiples of."""

UNCERTAIN = 1.0
"""A reference is too uncertain if its standard error exceeds this multiple of the debiased error, half of the square."""


def debiased(table: pd.DataFrame, least: float = SOLVED) -> pd.DataFrame:
    """Take the reference's own error out of the errors of filters: squared error minus squared standard error, run by run.

    The two are independent, so that the difference is an unbiased estimate of the squared error to the true posterior mean.
    Of a reference that is the mean r of two independent ones r1 and r2 it is exactly the mean of (m - r1)(m - r2), m being
    the filter's estimate. It is not taken below half of the square: there the reference is too uncertain. An error below
    `least` counts as so much: of an exact filter the logarithm of a ratio has no bound, and one model would decide a mean.
    """
    raw, own = table["reference_error_sd"], table["reference_uncertainty"]
    squares = np.maximum(raw**2 - own.fillna(np.inf) ** 2, raw**2 / 2)
    return table.assign(reference_error_sd=np.maximum(np.sqrt(squares), least))


def biased(table: pd.DataFrame) -> pd.DataFrame:
    """Leave the reference's own error in the errors of filters, for the raw ratios; none counts as less than `SOLVED`."""
    return table.assign(reference_error_sd=np.maximum(table["reference_error_sd"], SOLVED))


def uncertain(table: pd.DataFrame) -> pd.DataFrame:
    """Say of which models the reference is too uncertain, for each filter and particle count."""
    errors, own = median_errors(table), medians(table, "reference_uncertainty")
    return ~own.le(UNCERTAIN * errors).reindex(table["model"].unique(), fill_value=False)


def with_loss(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `loss`: the error in posterior standard deviations, infinite where a run failed."""
    return table.assign(
        loss=table["reference_error_sd"].mask(table["error"].fillna("") != "", np.inf)
    )


def medians(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Median over the runs of a model: a row for each model, a column for each filter and particle count."""
    return table.pivot_table(column, "model", ["filter", "n_particles"], "median", observed=True)


def median_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Median over runs of the errors, infinite where a run failed; of two runs the geometric mean, as in `over_models`."""
    with np.errstate(divide="ignore"):
        logs = np.log(with_loss(table)["loss"])
    return np.exp(medians(table.assign(loss=logs), "loss"))


def judged(raw: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return what `over_models` does of the debiased errors, and more columns.

    `raw` is the ratio of the errors as they are, `diverged` the share of runs that failed or diverged, and `better` the
    number of models with another reference than the first. `uncertain` counts the models at which the reference is too
    uncertain for the filter or the baseline.
    """
    table = debiased(raw)
    made, doubtful = over_models(table, baseline), uncertain(table)
    keys = list(zip(made["filter"], made["n_particles"], strict=True))
    either = [doubtful[key] | doubtful[baseline, key[1]] for key in keys]
    lost = (table["error"].fillna("") != "") | (table["diverged"].fillna(0) > 0)
    lost = lost.groupby([table["filter"], table["n_particles"]]).mean()
    return made.assign(
        uncertain=[int(models.sum()) for models in either],
        uncertain_share=[float(models.mean()) for models in either],
        better=raw.loc[raw["better"] > 0, "model"].nunique(),
        raw=over_models(biased(raw), baseline)["ratio"],
        diverged=[lost[key] for key in keys],
    )


def ratios(table: pd.DataFrame, own: str, base: str) -> pd.DataFrame:
    """Ratio of errors by model, of a table with one particle count: median over runs, and its 95 % interval."""
    losses = with_loss(table).pivot(index=["model", "run"], columns="filter", values="loss")
    values = pd.Series(
        paired_ratios(losses[own].to_numpy(), losses[base].to_numpy()), losses.index
    ).dropna()
    rows = {}
    for model, runs in values.groupby(level="model"):
        with np.errstate(divide="ignore"):
            rows[model] = (np.exp(np.log(runs).median()), *median_interval(runs.to_numpy()))
    return pd.DataFrame.from_dict(rows, "index", columns=["ratio", "low", "high"]).rename_axis(
        "model"
    )


def named(values: pd.Series, table: pd.DataFrame, most: int = 5) -> str:
    """Name models with their values and kinds."""
    kinds = table.groupby("model")["kind"].max()
    return "; ".join(
        f"{model}: {value:.3g} ({kinds[model]})" for model, value in values[:most].items()
    )


def exponents(table: pd.DataFrame) -> pd.DataFrame:
    """Slope of log error over log n by model: median over models with its interval, and slowest, a row for each filter.

    Left out and counted are the models at which the reference is too uncertain for the smallest error of the filter, and
    those that the filter solves with the smallest count already. Those at which it fails, or that have no reference, are the
    rest of the models that are not used.
    """
    errors, own = median_errors(table), medians(table, "reference_uncertainty")
    rows = []
    for name in dict.fromkeys(table["filter"]):
        values = errors[name].dropna()
        known = values[np.isfinite(values).all(axis=1) & (values > 0).all(axis=1)]
        solved = known[known.columns.min()] <= SOLVED
        reference = own[name].reindex(known.index).max(axis=1)
        uncertain = ~solved & ~(reference <= UNCERTAIN * known.min(axis=1))
        used = known[~solved & ~uncertain]
        x = np.log(used.columns.to_numpy(dtype=float))
        x -= x.mean()
        slopes = pd.Series(np.log(used.to_numpy()) @ x / (x @ x), used.index)
        slowest = slopes.sort_values(ascending=False)
        row = {"filter": name, "models": table["model"].nunique(), "used": len(used)}
        row |= {"uncertain": int(uncertain.sum()), "solved": int(solved.sum())}
        row |= {f"exponent_{q}": slopes.quantile(q / 100) for q in (10, 50, 90)}
        row |= dict(
            zip(
                ("exponent_50_low", "exponent_50_high"),
                median_interval(slopes.to_numpy()),
                strict=True,
            )
        )
        row |= {
            "slowest": slowest.iloc[0] if len(slowest) else np.nan,
            "worst": named(slowest, table, 3),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def least_error(
    n: Iterable[float], error: Iterable[float], ms: Iterable[float], budget: float
) -> float:
    """Least error of a filter whose step may take so many milliseconds; NaN if even the smallest count takes more.

    Counts ascend. Between two counts the logarithms of error and time are linear in that of n. Beyond the largest count
    nothing is assumed.
    """
    n, error, ms = (np.asarray(list(a), dtype=float) for a in (n, error, ms))
    ms = np.maximum.accumulate(ms)
    fits = int(np.sum(ms <= budget))
    if fits == 0:
        return np.nan
    within = [float(error[:fits].min())]
    if fits < len(n) and np.isfinite(error[fits - 1 : fits + 1]).all():
        last = np.interp(
            np.log(budget), np.log(ms[fits - 1 : fits + 1]), np.log(n[fits - 1 : fits + 1])
        )
        log_error = np.log(np.maximum(error[fits - 1 : fits + 1], 1e-12))
        within.append(float(np.exp(np.interp(last, np.log(n[fits - 1 : fits + 1]), log_error))))
    return min(within)


def by_budget(
    table: pd.DataFrame, budgets: Sequence[float], dearer: float, rivals: Sequence[str]
) -> pd.DataFrame:
    """Least error of each filter over that of the best rival within a budget; a row for each budget and filter.

    A budget is so many times the step of the first rival with `UNIT` particles.

    The model costs `dearer` microseconds per particle more than it does. `none` counts the models at which no count of the
    filter fits while one of a rival does: the mean leaves them out, but they are among those `above` 1. `to_spare` counts
    those at which the filter's largest count takes less than the budget, and `uncertain` those whose reference is too
    uncertain for the best of all filters; these count.
    """
    errors, times = median_errors(table), medians(table, "ms_per_step")
    own = table.groupby("model")["reference_uncertainty"].median()
    unit = times[rivals[0], UNIT] + 1e-3 * dearer * UNIT
    rows = []
    for budget in budgets:
        least, spare = {}, {}
        for name in dict.fromkeys(table["filter"]):
            counts = np.array(sorted(errors[name].columns))
            ms = times[name][counts].reindex(errors.index) + 1e-3 * dearer * counts
            ms = ms.div(unit.reindex(errors.index), axis=0)
            both = (errors[name][counts].notna() & ms.notna()).all(axis=1)
            least[name] = pd.Series(
                {
                    m: least_error(counts, errors[name].loc[m, counts], ms.loc[m], budget)
                    for m in errors.index[both]
                },
                dtype=float,
            )
            spare[name] = int((ms[both].max(axis=1) < budget).sum())
        found = pd.DataFrame(least)
        best = found[list(rivals)].min(axis=1)
        best = best[np.isfinite(best)]
        doubtful = ~(own.reindex(best.index) <= UNCERTAIN * found.loc[best.index].min(axis=1))
        for name in found:
            ratio = (found.loc[best.index, name] / best).sort_values(ascending=False)
            compared = ratio.dropna()
            logs = np.log(compared[np.isfinite(compared) & (compared > 0)].to_numpy())
            low, high = mean_interval(logs)
            row = {
                "budget": budget,
                "us_per_particle": dearer,
                "filter": name,
                "models": len(ratio),
            }
            row |= {"ratio": np.exp(logs.mean()) if len(logs) else np.nan}
            row |= {
                "ratio_low": np.exp(low),
                "ratio_high": np.exp(high),
                "ratio_90": compared.quantile(0.9),
            }
            row |= {
                "above": float((ratio.fillna(np.inf) > 1).mean()),
                "none": int(ratio.isna().sum()),
            }
            row |= {
                "to_spare": spare[name],
                "uncertain": int(doubtful.sum()),
                "worst": named(compared, table, 3),
            }
            rows.append(row)
    return pd.DataFrame(rows)
