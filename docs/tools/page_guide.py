"""The guide's trees of questions, and its tables that say what to take for which problem; page_limits.py has the others.

A filter is chosen as the candidate with the smallest error in its results file. The tree names what the tables choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd
from page_format import interval, markdown, read

from herdfilter.study.statistics import geometric_mean

RANDOM_DRAWS = "bootstrap"
N = 100
"""Number of particles, and of points, that the tables tell of."""
SHOWN = ("auto", "ranked", "sqmc")
"""Filters whose errors stand in the table, over that of `bootstrap`."""
HERDED = ("`KernelHerding()`", "`ContinuousHerdedGibbs()`")
Row = list[object]
Answers = dict[str, str]
"""The answer on a branch -> where it leads."""

PROBLEMS: dict[str, tuple[str, set[str], set[str], int]] = {
    "a model you know little of": ("claims.md", set(), set(), 0),
    "one mode, linear sensor": (
        "claims.md#where-it-loses",
        {"linear sensor"},
        {"multimodal prior"},
        0,
    ),
    "a state of one dimension": ("samplers.md#one-dimension", set(), set(), 1),
    "several far modes": ("filters.md#fits", {"wells", "multimodal prior"}, set(), 0),
    "counts, or heavy tails": (
        "model.md#noise-that-depends-on-the-state",
        {"counts", "heavy-tailed"},
        set(),
        0,
    ),
    "only simulation possible": ("model.md#the-contract", {"only simulable"}, set(), 0),
}
"""Problem -> its page; the random models that stand for it: kinds, kinds left out, and dimension."""


def models_of(problem: str) -> pd.DataFrame:
    """Return the random models that stand for a problem, with the ratio of each filter's error to that of bootstrap."""
    _, kinds, without, dims = PROBLEMS[problem]
    table = read("default_models")
    labels = [set(one.split(", ")) for one in table["kind"]]
    wanted = [(not kinds or bool(one & kinds)) and not one & without for one in labels]
    return table[np.array(wanted) & ((table["d"] == dims) | (dims == 0))]


def over_bootstrap(problem: str) -> dict[str, dict[str, float]]:
    """Return each filter's error over that of bootstrap, with its interval; without filters that serve few of the models."""
    table = models_of(problem)
    serving = [name for name in SHOWN if np.isfinite(table[name]).mean() > 0.5]
    return {name: geometric_mean("ratio", table[name].to_numpy()) for name in serving}


def on_one_line(row: Mapping[str, float] | pd.Series, name: str, digits: int = 2) -> str:
    """Write a value with its interval, which no narrow column breaks."""
    return interval(pd.Series(row), name, digits).replace(" ", "\N{NO-BREAK SPACE}")


def least(ratios: dict[str, dict[str, float]]) -> str:
    """Return the filter with the least error."""
    return min(ratios, key=lambda name: ratios[name]["ratio"])


def filters() -> str:
    """Write which filter to take by the errors on random models."""
    rows = []
    for problem, (page, *_) in PROBLEMS.items():
        ratios = over_bootstrap(problem)
        cells = [on_one_line(ratios[name], "ratio") if name in ratios else "" for name in SHOWN]
        rows.append([f"[{problem}]({page})", f"`{least(ratios)}`", *cells, len(models_of(problem))])
    return markdown(["your problem", "take", *_code(SHOWN), "models"], rows)


def within(steps: float, us: float) -> pd.DataFrame:
    """Return the errors in the time of steps of bootstrap, if a particle costs so many microseconds more."""
    table = read("default_budget").query("budget == @steps and us_per_particle == @us")
    return table.set_index("filter")


def jumps(family: str, n: int = 50) -> pd.Series:
    """Return the error of each filter on models that jump between motions of a family."""
    table = read("modes").query("family == @family and n in (0, @n)")
    return table[~table["filter"].str.contains("random")].set_index("filter")["error"]


def in_clutter() -> str:
    """Return the filter that loses fewest tracks in clutter."""
    return str(read("clutter").query("n <= @N").groupby("filter")["lost"].sum().idxmin())


def tracker(scenario: str = "meeting") -> str:
    """Choose among the trackers that cannot be told from the best one: the first that needs no random number."""
    table = read("trackers").query("scenario == @scenario").set_index("tracker")
    ours = table[table.index.str.startswith("lmb-")].sort_values("gospa")
    equal = ours[ours["gospa_low"] <= ours["gospa_high"].iloc[0]]
    return str(next((name for name in equal.index if "random" not in name), equal.index[0]))


def filter_tree() -> str:
    """Write the questions that lead to a filter."""
    unknown, simulated = (
        least(over_bootstrap(p)) for p in ("a model you know little of", "only simulation possible")
    )
    # the cheapest filter pays where it is shown to beat the best random one
    many = within(36.0, 0.0).loc["ranked-unguided"]
    jumping = dict.fromkeys(
        (in_clutter(), *(jumps(family).idxmin() for family in ("linear", "nonlinear")))
    )
    questions: dict[str, Answers] = {
        "[Several targets?](tracking.md)": {
            "yes": f"[`{tracker()}`](tracking.md#measured); for your own scans [`LMBTracker`](tracking.md)"
        },
        "[A likelihood for parameters?](parameters.md#maximum-likelihood)": {
            "smooth": "[`augmented-gauss-kh`](parameters.md#which-filters-are-smooth); "
            "[one dimension](samplers.md#one-dimension): `herded-quantile`",
            "unbiased": "[randomised `ranked`](parameters.md#randomised-ranked-particles)",
        },
        "Jumps between [motions](one_target.md#manoeuvres), or [clutter](one_target.md)?": {
            "yes": f"[{_either(jumping)}](one_target.md#what-it-is-worth)",
        },
        "[Linear, or nearly so?](kalman.md)": {"yes": "[`ukf`](kalman.md#kalman-filters)"},
        "[Only simulation possible?](model.md#the-contract)": {
            "yes": f"[`{simulated}`](filters.md#proposals-that-look-at-the-observation)"
        },
    }
    if many["ratio_high"] < 1:
        questions["[A cheap model, and time for thousands of particles?](#with-equal-time)"] = {
            "yes": "[`ranked-unguided`](filters.md#proposals-that-look-at-the-observation)",
        }
    return tree(questions, f"take [`{unknown}`](filters.md#how-the-rule-decides)")


def sampler_tree() -> str:
    """Write the questions that lead to a sampler."""
    questions: dict[str, Answers] = {
        "[Points at hand already?](thinning.md)": {"yes": "[`hf.thin`](thinning.md)"},
        "[Conditional densities](without_mixture.md), or [a finite set](without_mixture.md#herding)?": {
            "densities": "[`ConditionalHerdedGibbs`](without_mixture.md#conditional-densities)",
            "set": "[herding on it](without_mixture.md#herding)",
        },
        "[One dimension?](samplers.md#one-dimension)": {
            "yes": "[`QuantileSampling()`](samplers.md#one-dimension)"
        },
        "[One Gaussian?](samplers.md#optimal-gaussian-points)": {
            "yes": "[`LCDSampling()`](samplers.md#optimal-gaussian-points)"
        },
        "[A few Gaussians, again and again?](samplers.md#mapped-sampling)": {
            "yes": "[`MappedSampling(KernelHerding())`](samplers.md#mapped-sampling)"
        },
        "[Points cost you nothing?](data.md#samples)": {
            "yes": "[`RandomSampling()`](samplers.md), more of them"
        },
    }
    first, second = HERDED
    return tree(
        questions,
        f"take [{first}](samplers.md#kernel-herding) or [{second}](samplers.md#continuous-herded-gibbs-sampling)",
    )


def tree(questions: dict[str, Answers], otherwise: str) -> str:
    """Write questions as a nested list, which page.css draws as a tree: the first yes decides."""
    lines = []
    for i, (question, answers) in enumerate(questions.items()):
        lines.append(f"- *no:* {question}" if i else f"- {question}")
        lines += [f"  - *{answer}:* {end}" for answer, end in answers.items()]
    return "\n".join(['<div class="tree">', "", *lines, f"- *no:* {otherwise}", "", "</div>", ""])


def _either(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _code(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


TABLES: dict[str, Callable[[], str]] = {
    "guide_tree": filter_tree,
    "guide_filters": filters,
    "guide_sampler_tree": sampler_tree,
}
