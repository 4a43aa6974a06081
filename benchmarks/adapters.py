"""Filters side by side on the same data, for the adapters: errors to a reference in its standard deviations, and times.

A module for each library, `adapters_NAME.py`, has a function ``measured(args) -> list of rows``, made by `beside`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import timed

from herdfilter.study.statistics import median_interval

LIBRARIES = ("filterpy", "particles", "stonesoup")
KEYS = ["adapter", "model", "filter", "n"]
"""What a row is about; others are `runs`, `error`, `ratio`, `ratio_low`, `ratio_high`, `worst` (error), `ms_per_step`."""


class Reference(NamedTuple):
    """What the means of a run are measured against: posterior means and standard deviations, both (T, d)."""

    means: np.ndarray
    sds: np.ndarray


def beside(
    adapter: str,
    model: str,
    n: int | Mapping[str, int],
    filters: Mapping[str, Callable[[int], np.ndarray]],
    references: Sequence[Reference],
) -> list[dict[str, object]]:
    """Run filters in turn on every run, and return one row of each.

    Parameters
    ----------
    adapter, model : str
        What the rows are about.
    n : int or mapping
        Particles of all of them, or of each by name; 0 where there are none.
    filters : mapping
        Name -> a function that filters run k and returns its means (T, d). The first one is the library's own, over whose
        errors the ratios are: medians over runs, with their exact intervals.
    references : sequence of Reference
        One of each run.
    """
    errors = np.empty((len(filters), len(references)))
    seconds = np.empty_like(errors)
    for function in filters.values():
        function(0)  # compiles
    for k, reference in enumerate(references):
        for i, function in enumerate(filters.values()):
            seconds[i, k], means = timed(lambda function=function, k=k: function(k))
            away = (np.reshape(means, reference.means.shape) - reference.means) / reference.sds
            errors[i, k] = np.sqrt(np.mean(away**2))
    rows = []
    for name, own, time in zip(filters, errors, seconds, strict=True):
        ratios = own / errors[0]
        low, high = median_interval(ratios)
        row = {"adapter": adapter, "model": model, "filter": name}
        row |= {"n": n if isinstance(n, int) else n[name], "runs": len(references)}
        row |= {
            "error": np.median(own),
            "ratio": np.median(ratios),
            "ratio_low": low,
            "ratio_high": high,
        }
        row["worst"] = np.max(own)
        rows.append(row | {"ms_per_step": 1e3 * np.median(time) / len(references[0].means)})
    return rows


def measured(args) -> Iterator[pd.DataFrame]:
    """Yield the rows of each library that is installed; one that is not is named."""
    for library in args.libraries:
        try:
            part = import_module(f"adapters_{library}")
        except ImportError as error:
            print("left out,", f"{library}: {error}")
            continue
        yield pd.DataFrame(part.measured(args))
