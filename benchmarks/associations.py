"""Marginals of association by every method, beside the exact ones.

Three families of random matrices. `scan`: the setting of the example of Wolf and Baum (2020), tracks of covariance I uniform
on 7 units of area each, existing with probability 0.5 to 1, P_D = 0.95, R = I / 4, one false alarm a track; nothing is gated
out. `dense`: T tracks and T measurements whose ratios, that of none included, are independent exponential numbers: all
compete for all. `close`: tracks 2.5 m apart, in a row or in a square, their detections with standard deviation 2 m, P_D from
0.9 to 0.98, existence from 0.9 to 0.9999, gated as the tracker gates; one family for each clutter density. The error is the
total variation of a track's marginals, in the mean over tracks. Seeds of claims start at four million.

The times are of other matrices: `gated` scans as a tracker makes them, `dense` ones, and `band`s, in which each track
competes for the measurements near its place in a row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from common import cpu_seconds, timed
from scipy.stats import bootstrap

from herdfilter import association
from herdfilter.association import BeliefPropagation, Exact, HerdedGibbs, KBest, RandomGibbs
from herdfilter.study.statistics import bootstrap_interval
from herdfilter.tracking.track import SMALLEST_GATED_RATIO

CLAIMS = 4_000_000
TRACKS = (2, 4, 6, 12)
CLOSE_TRACKS = (2, 3, 6, 12)
SWEEPS = (100, 300, 1000)
BASE = "random Gibbs"
EXACT = Exact(max_ways=10**8)
ONCE: dict[str, object] = {
    "exact": EXACT,
    "belief propagation": BeliefPropagation(),
    "100 best": KBest(100),
}
SWEPT: dict[str, Callable[[int], object]] = {
    BASE: RandomGibbs,
    "herded Gibbs": HerdedGibbs,
    "herded Gibbs, whole sets": lambda n: HerdedGibbs(n, neglect=0),
    "random Gibbs, counted": lambda n: RandomGibbs(n, estimate="counts"),
    "herded Gibbs, counted": lambda n: HerdedGibbs(n, estimate="counts"),
    "herded Gibbs, published key, counted": lambda n: HerdedGibbs(
        n, key="assignment", first_visit="argmax", estimate="counts", pairs=False
    ),
    "herded Gibbs, as published": lambda n: HerdedGibbs(
        n, key="assignment", first_visit="argmax", estimate="joint", pairs=False
    ),
}
SWEPT_CLOSE: dict[str, Callable[[int], object]] = {
    "random Gibbs, no pairs": lambda n: RandomGibbs(n, pairs=False),
    "herded Gibbs, no pairs": lambda n: HerdedGibbs(n, pairs=False),
    BASE: RandomGibbs,
    "herded Gibbs": HerdedGibbs,
}


def scan(seed: int, tracks: int) -> np.ndarray:
    """Ratios of predicted tracks and a scan, nothing gated out."""
    rng = np.random.default_rng([seed, tracks])
    side, clutter, noise = np.sqrt(7.0 * tracks), 1 / 7, 0.25
    means, existence = rng.uniform(0, side, (tracks, 2)), rng.uniform(0.5, 1, tracks)
    seen = (rng.random(tracks) < existence) & (rng.random(tracks) < 0.95)
    detections = means[seen] + np.sqrt(1 + noise) * rng.standard_normal((np.count_nonzero(seen), 2))
    measured = np.concatenate([detections, rng.uniform(0, side, (rng.poisson(tracks), 2))])
    squared = ((measured - means[:, None]) ** 2).sum(axis=-1) / (1 + noise)
    return association.ratios(
        np.exp(-squared / 2) / (2 * np.pi * (1 + noise)), 0.95, clutter, existence
    )


def dense(seed: int, tracks: int) -> np.ndarray:
    """Ratios of tracks that all compete for all measurements."""
    return np.random.default_rng([seed, tracks]).exponential(size=(tracks, 1 + tracks))


def close(seed: int, tracks: int, clutter: float) -> np.ndarray:
    """Ratios of close tracks, hardly ever missed, and a scan with little clutter."""
    rng = np.random.default_rng([seed, tracks])
    width = tracks if seed % 2 else int(np.ceil(np.sqrt(tracks)))
    truth = 2.5 * np.column_stack(np.divmod(np.arange(tracks), width))
    spread, detected = rng.uniform(0.5, 2.0), rng.uniform(0.9, 0.98)
    means = truth + spread * rng.standard_normal((tracks, 2))
    existence = 1 - 10.0 ** rng.uniform(-4, -1, tracks)
    seen = rng.random(tracks) < detected
    detections = truth[seen] + 2 * rng.standard_normal((np.count_nonzero(seen), 2))
    low, high = truth.min(axis=0) - 15, truth.max(axis=0) + 15
    false = rng.uniform(low, high, (rng.poisson(clutter * np.prod(high - low)), 2))
    variance = spread**2 + 4
    squared = ((np.concatenate([detections, false]) - means[:, None]) ** 2).sum(axis=-1) / variance
    matrix = association.ratios(
        np.exp(-squared / 2) / (2 * np.pi * variance), detected, clutter, existence
    )
    matrix[:, 1:][matrix[:, 1:] < SMALLEST_GATED_RATIO * matrix[:, :1]] = 0.0
    return matrix


FAMILIES = {"scan": scan, "dense": dense}
CLOSE = {
    f"close, clutter {clutter:.0e}": partial(close, clutter=clutter)
    for clutter in 10.0 ** np.arange(-3, -9, -1)
}


def gated(seed: int, tracks: int, detections: int, area: float) -> np.ndarray:
    """Ratios of tracks and detections uniform on `area` units a track, P_D = 0.98; 0 below 1e-4 of a miss."""
    rng = np.random.default_rng([seed, tracks])
    side, variance = np.sqrt(area * tracks), 2.0
    means = rng.uniform(0, side, (tracks, 2))
    seen = means[rng.random(tracks) < 0.98]
    seen = seen + np.sqrt(variance) * rng.standard_normal(seen.shape)
    measured = np.concatenate([seen, rng.uniform(0, side, (detections - len(seen), 2))])
    squared = ((measured - means[:, None]) ** 2).sum(axis=-1) / variance
    matrix = association.ratios(
        np.exp(-squared / 2) / (2 * np.pi * variance), 0.98, tracks / side**2
    )
    return np.where(matrix < 1e-4 * matrix[:, :1], 0.0, matrix)


def banded(seed: int, tracks: int, width: int) -> np.ndarray:
    """Ratios of as many tracks as measurements, a track's less than `width` places from its own; exponential numbers."""
    place = np.arange(tracks)
    return np.column_stack([np.ones(tracks), np.abs(place[:, None] - place) < width]) * dense(
        seed, tracks
    )


TIMED: dict[str, Callable[[int], np.ndarray]] = {
    "gated 20 x 50, far apart": lambda seed: gated(seed, 20, 50, 3600.0),
    "gated 100 x 200, far apart": lambda seed: gated(seed, 100, 200, 3600.0),
    "gated 20 x 50, close": lambda seed: gated(seed, 20, 50, 100.0),
    "gated 100 x 200, close": lambda seed: gated(seed, 100, 200, 100.0),
    "gated 100 x 200, crowded": lambda seed: gated(seed, 100, 200, 25.0),
    "band of 60, 3 wide": lambda seed: banded(seed, 60, 3),
    "band of 60, 10 wide": lambda seed: banded(seed, 60, 10),
    "dense 6 x 6": lambda seed: dense(seed, 6),
    "dense 12 x 12": lambda seed: dense(seed, 12),
    "dense 16 x 16": lambda seed: dense(seed, 16),
    "dense 100 x 100": lambda seed: dense(seed, 100),
}


def times(seeds: range) -> pd.DataFrame:
    """Milliseconds of exact, automatic and propagated marginals, medians over matrices, and auto over what it ends with.

    Exact is given as many ways as auto: where it refuses a matrix, auto ends with belief propagation and exact has no time.
    """
    exact, propagation = Exact(association.calls.METHODS["auto"]().max_ways), BeliefPropagation()
    rows = []
    for shape, make in TIMED.items():
        found = []
        for seed in seeds:
            matrix = make(seed)
            calls = [
                partial(association.marginals, matrix, method)
                for method in ("auto", propagation, exact)
            ]
            try:
                calls[-1]()
            except ValueError:
                calls.pop()
            found.append(np.append(cpu_seconds(calls, 7), [np.nan] * (3 - len(calls))))
        auto, propagated, exactly = 1e3 * np.array(found).T
        over = auto / np.where(np.isnan(exactly), propagated, exactly)
        row = {
            "matrices": shape,
            "exactly": int(np.count_nonzero(~np.isnan(exactly))),
            "of": len(seeds),
        }
        row |= {"exact_ms": np.nan if np.isnan(exactly).all() else np.nanmedian(exactly)}
        row |= {"propagation_ms": np.median(propagated), "auto_ms": np.median(auto)}
        rows.append(row | {"ratio": np.median(over), "ratio_most": over.max()})
    return pd.DataFrame(rows)


def measured(
    family: str, tracks: int, seeds: range, sweeps: tuple[int, ...] = SWEEPS
) -> pd.DataFrame:
    """Mean and worst total variation, its ratio to that of random Gibbs sampling, and milliseconds, by method."""
    made, swept = ({**FAMILIES, **CLOSE}[family], SWEPT_CLOSE if family in CLOSE else SWEPT)
    matrices = [made(seed, tracks) for seed in seeds]
    exact = [association.marginals(matrix, EXACT) for matrix in matrices]

    def errors(method: object) -> tuple[np.ndarray, float]:
        found, seconds = [], []
        for seed, matrix, right in zip(seeds, matrices, exact, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", association.AssociationWarning
                )  # belief propagation of close tracks
                spent, marginals = timed(
                    lambda m=matrix, s=seed: association.marginals(m, method, rng=s)
                )
            found.append(0.5 * np.abs(marginals - right).sum(axis=1).mean())
            seconds.append(spent)
        return np.array(found), 1e3 * float(np.median(seconds))

    methods = [(name, 0, method) for name, method in ONCE.items()]
    methods += [(name, n, make(n)) for n in sweeps for name, make in swept.items()]
    rows, base = [], {}
    for name, n, method in methods:
        values, ms = errors(method)
        base |= {n: values} if name == BASE else {}
        row = {
            "family": family,
            "tracks": tracks,
            "method": name,
            "sweeps": n,
            "matrices": len(matrices),
        }
        low, high = bootstrap_interval(values, np.mean)
        row |= {
            "variation": values.mean(),
            "variation_low": low,
            "variation_high": high,
            "worst": values.max(),
        }
        rows.append(
            row | (ratio(values, base[n]) if n in base and name != BASE else {}) | {"ms": ms}
        )
    return pd.DataFrame(rows)


def ratio(values: np.ndarray, base: np.ndarray) -> dict[str, float]:
    """Ratio of the means over the same matrices, and its 95 % bootstrap interval."""
    interval = bootstrap(
        (values, base),
        lambda x, y, axis: x.mean(axis=axis) / y.mean(axis=axis),
        paired=True,
        n_resamples=2000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return {
        "ratio": values.mean() / base.mean(),
        "ratio_low": float(interval.low),
        "ratio_high": float(interval.high),
    }
