"""Filters against the exact or reference posterior mean; see docs/benchmarks.md for the figures.

python benchmarks/bench_filters.py [ungm] [lorenz63] [bearings] [plaza], all unless named; plaza needs
HERDFILTER_DATA or a download.
"""

from __future__ import annotations

import os
import sys

from common import show

import herdfilter as hf
from herdfilter.evaluation import summarise

COLUMNS = [
    "filter",
    "n_particles",
    "rmse",
    "rmse_median",
    "reference_error",
    "reference_error_low",
    "reference_error_high",
    "reference_error_median",
    "ratio",
    "ratio_low",
    "ratio_high",
    "diverged",
    "failures",
    "ms_per_step",
]
STUDIES = {
    "ungm": {"particles": [20, 50, 100], "runs": 50},
    "lorenz63": {"particles": [100], "runs": 50},
    "bearings": {"particles": [100], "runs": 50},
    "plaza": {"particles": [300], "runs": 20},
}

if __name__ == "__main__":
    for name in sys.argv[1:] or STUDIES:
        table = hf.compare(name, workers=os.cpu_count() or 1, progress=True, **STUDIES[name])
        summary = summarise(table)
        show(
            f"{name}, {STUDIES[name]['runs']} runs, seed 0",
            [column.replace("reference_error", "error") for column in COLUMNS],
            summary[COLUMNS].astype(object).to_numpy().tolist(),
        )
