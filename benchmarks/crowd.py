"""A scan with many detections and many tracks: the time of a step, and the memory that it takes."""

from __future__ import annotations

import argparse
import time
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd

from herdfilter import GaussianMixture, UnscentedKalmanFilter
from herdfilter.models import LinearGaussian, WithClutter
from herdfilter.tracking import Birth, LMBTracker

SPACING = 600.0  # metres on each side of the square in which one target is expected
TRACKERS = [
    ("ukf", "exact"),
    ("ukf", "belief-propagation"),
    ("ukf", "herded-gibbs"),
    ("bootstrap", "exact"),
    ("auto", "exact"),
]


class OneByOne(UnscentedKalmanFilter):
    """A filter with a method of its own takes no part in a batch."""

    def predict(self, dt: float = 1.0, control: object = None) -> None:
        """Do as the class."""
        super().predict(dt, control)


ALONE = {"ukf": [{}, {"filter": lambda model, n_particles, rng: OneByOne(model)}]}


def measured(args: argparse.Namespace) -> pd.DataFrame:
    """Milliseconds and megabytes of a tracker's step, predict and update.

    As many tracks as targets, which move at about constant velocity and are seen with a standard deviation of 10; one half
    of the detections is clutter. Times are medians over the steps after the first; memory is the most that Python and numpy
    held during a run beyond what they held before. The ratio is to the time of the same tracks one by one.
    """
    rows = []
    for tracks in (5,) if args.quick else (25, 100):
        model, starts, scans = crowd(
            tracks, 3 if args.quick else 12, np.random.default_rng(args.seed)
        )
        for name, association in TRACKERS[: 2 if args.quick else None]:
            tracker = partial(
                LMBTracker,
                model,
                association=association,
                filter=name,
                n_particles=100,
                rng=1,
                initial=starts,
            )
            runs = [
                [stepped(tracker(**alone), scans)[1:] for alone in ALONE.get(name, [{}])]
                for _ in range(3)
            ]
            times, *listed = np.median(runs, axis=0)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            stepped(tracker(), scans)
            most = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
            row = {
                "filter": name,
                "association": association,
                "tracks": tracks,
                "detections": 2 * tracks,
            }
            ratio = {"ratio": np.median(times) / np.median(listed[0]) if listed else np.nan}
            rows.append(row | {"ms": 1e3 * np.median(times)} | ratio | {"MB": most / 1e6})
    return pd.DataFrame(rows)


def crowd(
    tracks: int, steps: int, rng: np.random.Generator
) -> tuple[WithClutter, list[Birth], list[np.ndarray]]:
    """Return a model, where its targets start, and scans of twice as many detections as there are targets."""
    one, none = np.eye(2), np.zeros((2, 2))
    push = np.vstack([0.5 * one, one])
    turn = np.block([[one, one], [none, one]])
    half = 0.5 * SPACING * np.sqrt(tracks)
    walk = LinearGaussian(
        turn, np.hstack([one, none]), 25 * push @ push.T, 100 * one, np.zeros(4), 100 * np.eye(4)
    )
    x = np.hstack([rng.uniform(-half, half, (tracks, 2)), rng.normal(0, 10, (tracks, 2))])
    starts = [Birth(0.99, GaussianMixture([1.0], [mean], 100 * np.eye(4))) for mean in x]
    scans = []
    for _ in range(steps):
        x = x @ turn.T + 5 * rng.normal(size=(tracks, 2)) @ push.T
        seen = x[rng.random(tracks) < 0.98, :2]
        clutter = rng.uniform(-half, half, (2 * tracks - len(seen), 2))
        scans.append(rng.permutation(np.vstack([seen + 10 * rng.normal(size=seen.shape), clutter])))
    return WithClutter(walk, 0.98, tracks / (2 * half) ** 2), starts, scans


def stepped(tracker: LMBTracker, scans: list[np.ndarray]) -> list[float]:
    """CPU seconds of each step."""
    seconds = []
    for z in scans:
        start = time.thread_time()
        tracker.predict()
        tracker.update(z)
        seconds.append(time.thread_time() - start)
    return seconds
