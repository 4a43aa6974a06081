"""Tables of the measured study (bench_study.py), from its files: one CSV a scenario, a row a run, as `herdfilter export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import show

from herdfilter.evaluation import summarise
from herdfilter.evaluation.statistics import median_interval

SCENARIOS = ("ungm", "lorenz63", "bearings", *(f"linear-d{d}" for d in range(1, 7)))
BASELINE, RIVAL = "bootstrap", "sqmc"
TARGET_N = 100
TARGETS = {BASELINE: 0.5, RIVAL: 0.7}  # best herded filter over each
WORST = 1.0  # no herded filter worse than the baseline
TEXTS = ("reference", "error", "traceback")  # columns that may be empty
WIDTH = 220


def report(scenarios: Sequence[str], folder: Path) -> None:
    """Print all tables of the scenarios that were measured."""
    summaries = {name: summary_of(name, folder) for name in scenarios}
    summaries = {name: summary for name, summary in summaries.items() if len(summary)}
    for name, summary in summaries.items():
        report_scenario(name, summary, folder)
    report_targets(summaries)
    report_break_even(summaries)


def herded(name: str) -> bool:
    """Whether a filter of the catalogue draws its points by herding."""
    return bool({"kh", "chg"} & set(name.split("-")))


def read(path: Path) -> pd.DataFrame:
    """Return the table in a file; an empty one if there is no file."""
    if not path.is_file():
        return pd.DataFrame()
    table = pd.read_csv(path, dtype=dict.fromkeys(TEXTS, str))
    texts = [name for name in TEXTS if name in table]
    return table.assign(**{name: table[name].fillna("") for name in texts})


def skip_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.skipped.csv")


def summary_of(name: str, folder: Path) -> pd.DataFrame:
    """Summarise a scenario's file, with ratios to baseline and rival, and the quiet times if there are any."""
    table = read(folder / f"{name}.csv")
    if table.empty:
        return table
    if not (table["filter"] == BASELINE).any():
        print(f"{name}: no tables, as {BASELINE} is not measured")
        return pd.DataFrame()
    summary = summarise(table, BASELINE)
    for base in (BASELINE, RIVAL):
        errors = table.pivot(index="run", columns=["filter", "n_particles"], values="reference_error")
        cells = list(zip(summary["filter"], summary["n_particles"], strict=True))
        ratios = [paired(errors, cell, (base, cell[1])) for cell in cells]
        for k, column in enumerate(("paired", "paired_low", "paired_high", "of_medians", "of_rms")):
            summary[f"{base}_{column}"] = [ratio[k] for ratio in ratios]
    timing = read(folder / "timing.csv")
    if len(timing):
        quiet = timing[timing["scenario"] == name].set_index(["filter", "n_particles"])["ms_per_step"]
        summary["ms_per_step"] = [
            quiet.get(cell, t) for cell, t in zip(cells, summary["ms_per_step"], strict=True)
        ]
    return summary


def paired(errors: pd.DataFrame, cell: tuple[str, int], base: tuple[str, int]) -> tuple[float, ...]:
    """Median of the ratios run by run with its interval, ratio of the medians, ratio of the root mean squares.

    All over the runs in which neither failed.
    """
    if base not in errors.columns:
        return (np.nan,) * 5
    both = errors[[cell, base]].dropna() if cell != base else None
    if both is None or both.empty:
        return (
            1.0 if cell == base else np.nan,
            np.nan,
            np.nan,
            *((1.0,) * 2 if cell == base else (np.nan,) * 2),
        )
    a, b = both[cell].to_numpy(), both[base].to_numpy()
    ratio = a / b
    rms = np.sqrt(np.mean(a**2) / np.mean(b**2))
    return (np.median(ratio), *median_interval(ratio), np.median(a) / np.median(b), rms)


def report_scenario(name: str, summary: pd.DataFrame, folder: Path) -> None:
    """Print a table for each particle count of a scenario, and what was left out."""
    columns = [
        "filter",
        "RMS error",
        "median",
        *(f"/ {b}, {w}" for b in (BASELINE, RIVAL) for w in ("paired", "medians")),
    ]
    columns += ["diverged", "failed", "log-lik.", "ms a step"]
    left_out = read(skip_path(folder / f"{name}.csv"))
    for n in sorted(summary["n_particles"].unique()):
        here = summary[summary["n_particles"] == n].sort_values("reference_error_median")
        rows = [
            [
                row["filter"],
                bracketed(row, "reference_error"),
                bracketed(row, "reference_error_median"),
                *(
                    text
                    for b in (BASELINE, RIVAL)
                    for text in (bracketed(row, f"{b}_paired"), f"{row[f'{b}_of_medians']:.2f}")
                ),
                f"{100 * row['diverged']:.0f} %",
                row["failures"],
                float(row["log_likelihood_error"]),
                float(row["ms_per_step"]),
            ]
            for _, row in here.iterrows()
        ]
        runs, sd = here["runs"].max(), here["reference_sd"].max()
        show(f"{name}, n = {n}, {runs} runs; error of the reference itself {sd:.2g}", columns, rows, WIDTH)
    for row in left_out.itertuples():
        print(f"left out at n = {row.n_particles}, {row.filter}: {row.reason}")


def bracketed(row: pd.Series, name: str) -> str:
    """Write a value and its interval."""
    text, low, high = f"{row[name]:.3g}", row[f"{name}_low"], row[f"{name}_high"]
    return f"{text} ({low:.2g}, {high:.2g})" if np.isfinite(low) else text


def report_targets(summaries: dict[str, pd.DataFrame]) -> None:
    """Print whether the targets are reached at `TARGET_N`, by the median of the paired ratios."""
    best_rows, worst_rows, failing = [], [], []
    for name, summary in summaries.items():
        here = summary[summary["n_particles"] == TARGET_N]
        ours = here[here["filter"].map(herded).astype(bool) & here["reference_error_median"].notna()]
        if ours.empty:
            continue
        best = ours.loc[ours["reference_error_median"].idxmin()]
        for base, target in TARGETS.items():
            if np.isfinite(best[f"{base}_paired"]):
                best_rows.append(
                    [name, best["filter"], base, *ratios(best, base), target, judged(best, base, target)]
                )
        worst = ours.sort_values(f"{BASELINE}_paired").iloc[-1]
        worst_rows.append(
            [name, worst["filter"], BASELINE, *ratios(worst, BASELINE), WORST, judged(worst, BASELINE, WORST)]
        )
        for _, row in ours.iterrows():
            if not row[f"{BASELINE}_paired"] <= WORST or row["failures"]:
                failing.append(
                    [
                        name,
                        row["filter"],
                        *ratios(row, BASELINE),
                        int(row["failures"]),
                        f"{100 * row['diverged']:.0f} %",
                    ]
                )
    columns = ["scenario", "filter", "over", "paired", "medians", "RMS", "target", "reached"]
    show(f"Best herded filter at n = {TARGET_N}", columns, best_rows)
    show(f"Worst herded filter at n = {TARGET_N}", columns, worst_rows)
    show(
        f"Herded filters not better than {BASELINE}, or that failed, at n = {TARGET_N}",
        ["scenario", "filter", "paired", "medians", "RMS", "failed", "diverged"],
        failing,
    )


def ratios(row: pd.Series, base: str) -> list[object]:
    return [
        bracketed(row, f"{base}_paired"),
        f"{row[f'{base}_of_medians']:.2f}",
        f"{row[f'{base}_of_rms']:.2f}",
    ]


def judged(row: pd.Series, base: str, target: float) -> str:
    """Whether a target is reached; surely so, or surely not, if the whole interval says it."""
    if row[f"{base}_paired"] <= target:
        return "yes" if row[f"{base}_paired_high"] <= target else "yes, not surely"
    return "NO" if row[f"{base}_paired_low"] > target else "NO, not surely"


def report_break_even(summaries: dict[str, pd.DataFrame]) -> None:
    """Print from which cost of the model on each herded filter gains at equal time."""
    rows = []
    for name, summary in summaries.items():
        curves = {
            f: curve(rows_of)
            for f, rows_of in summary.groupby("filter", sort=False)
            if f == BASELINE or herded(f)
        }
        if len(curves.get(BASELINE, ())) < 2:
            continue
        for f, points in curves.items():
            if f != BASELINE and len(points):
                cost, n, n_b, beyond = break_even(points, curves[BASELINE])
                text = "zero" if cost == 0 else "never" if np.isinf(cost) else f"{cost:.3g}"
                rows.append(
                    [name, f, text, n, "-" if np.isinf(cost) else f"{n_b:.0f}{'*' if beyond else ''}"]
                )
    show(
        f"Microseconds a particle, beyond the model's own, from which on the error is below {BASELINE}'s at equal time",
        ["scenario", "filter", "cost", "n", f"n of {BASELINE} with that error"],
        rows,
    )
    print("*: extrapolated. Errors are medians over runs.")


def curve(rows: pd.DataFrame) -> np.ndarray:
    """Particle count, median error and ms a step of one filter, (k, 3), by particle count."""
    table = rows.sort_values("n_particles")[["n_particles", "reference_error_median", "ms_per_step"]].dropna()
    return table.to_numpy(dtype=float)


def break_even(ours: np.ndarray, base: np.ndarray) -> tuple[float, int, float, bool]:
    """Return the least cost of the model from which on a filter gains over another at equal time.

    With a cost c a particle, n particles take ``t(n) + c n``. The other filter needs n_b particles for the error that ours
    has with n; so ours gains from ``c = (t(n) - t_b(n_b)) / (n_b - n)`` on.

    Parameters
    ----------
    ours, base : ndarray, shape (k, 3)
        Particle counts, errors, ms a step.

    Returns
    -------
    tuple
        The cost in microseconds, 0 if ours gains already, infinite if never; our particle count; the other's for the same
        error; whether that lies beyond those measured.
    """
    log_n, log_error, log_t = np.log(base).T
    log_error = np.minimum.accumulate(log_error)  # an error that grows with n is noise
    distinct = np.append(True, np.diff(log_error) < 0)
    best = (np.inf, int(ours[0, 0]), np.inf, False)
    for n, error, ms in ours:
        needed = float(np.exp(_line(np.log(error), log_error[distinct][::-1], log_n[distinct][::-1])))
        theirs = float(np.exp(_line(np.log(needed), log_n, log_t)))
        if needed <= n:
            continue
        cost = max(0.0, 1e3 * (ms - theirs) / (needed - n))
        if cost < best[0]:
            best = (cost, int(n), needed, not base[0, 0] <= needed <= base[-1, 0])
    return best


def _line(x: float, xs: np.ndarray, ys: np.ndarray) -> float:
    """Interpolate linearly, beyond the ends along the last piece; `xs` ascend."""
    if len(xs) < 2:
        return float(ys[0])
    k = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    return float(ys[k] + (ys[k + 1] - ys[k]) * (x - xs[k]) / (xs[k + 1] - xs[k]))
