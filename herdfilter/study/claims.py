"""Filters compared pair by pair: which is better, where the paired interval shows it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import as_number, check_flags, one_of
from herdfilter.study.summary import Pairs, check_table

if TYPE_CHECKING:
    import pandas as pd


def claims(table: pd.DataFrame, baseline: str | None = None, level: float = 0.95, simultaneous: bool = True) -> pd.DataFrame:
    """Compare filters pair by pair, and say which is better where the paired interval shows it.

    The median over runs of the ratio of two errors in the same run has an exact interval between order statistics (Thompson
    1936). A claim says that in more than half of all runs one filter has the smaller error; of a family, that its error is
    smaller in the geometric mean over models (`over_models`).

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns. Errors are against the reference if there is one, else against the truth.
    baseline : str, optional
        Compare with this filter only; else every filter with every other.
    level : float
        Probability that no claim is false: of all those in the result together if `simultaneous`, else of each by itself.
    simultaneous : bool
        Raise the level of each interval so that `level` holds for the whole result (Bonferroni). Without it, of many
        comparisons of equal filters up to one in ``1 / (1 - level)`` ends in a claim.

    Returns
    -------
    pandas.DataFrame
        One row per particle count and pair of filters.

        ``n_particles``, ``a``, ``b``
            Who is compared.
        ``runs``, ``failures_a``, ``failures_b``
            Number of runs compared (of a family, of models, each by the median over its runs), and of those in which either
            failed. A failed run loses to one that did not; where both
            failed, or there is no error, the run is left out.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``difference``, ``difference_low``, ``difference_high``
            The error of `a` divided by, and minus, that of `b`, as in `summarise`; ends are NaN where there are too few
            runs, and may be infinite where runs failed.
        ``better``
            The filter claimed to be better; empty where the interval of the ratio holds 1, or there is none.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "filter": 6 * ["a"] + 6 * ["b"], "n_particles": 100, "run": 2 * list(range(6)),
    ...     "reference_error": [1.0, 1.1, 0.9, 1.2, 1.0, 0.8, 2.0, 2.4, 1.9, 2.5, 2.2, 1.7],
    ...     "rmse": 3.0, "error": "",
    ... })
    >>> print(hf.study.claims(table)[["a", "b", "ratio", "better"]].round(2).to_string(index=False))
    a b  ratio better
    a b   0.47      a
    """
    import pandas as pd

    check_table(table)
    errors = Pairs(table)
    names = list(dict.fromkeys(table["filter"]))
    if baseline is not None:
        one_of("baseline", baseline, names)
    level = as_number("level", level, "a probability between 0 and 1", lambda level: 1e-9 < level < 1)
    check_flags(simultaneous=simultaneous)
    pairs = [
        (n, pair[0], pair[1])
        for n in dict.fromkeys(table["n_particles"])
        for pair in (
            combinations(names, 2) if baseline is None else [(name, baseline) for name in names if name != baseline]
        )
        if all((name, n) in errors.errors for name in pair)
    ]
    each = 1 - (1 - level) / max(1, len(pairs)) if simultaneous else level
    return pd.DataFrame([_claim(n, a, b, errors, each) for n, a, b in pairs], columns=_CLAIM)


_CLAIM = [
    *("n_particles", "a", "b", "runs", "failures_a", "failures_b"),
    *("ratio", "ratio_low", "ratio_high", "difference", "difference_low", "difference_high", "better"),
]


def _claim(n: Any, a: str, b: str, pairs: Pairs, level: float) -> dict[str, Any]:
    first, second = pairs.errors[a, n], pairs.errors[b, n]
    both = first.notna() & second.notna() & ~(np.isinf(first) & np.isinf(second))
    row = {"n_particles": n, "a": a, "b": b, "runs": int(both.sum())}
    row |= {"failures_a": int(np.isinf(first[both]).sum()), "failures_b": int(np.isinf(second[both]).sum())}
    row |= pairs.compare((a, n), (b, n), level)
    return row | {"better": {-1: a, 0: "", 1: b}[row["better"]]}
