"""Real radar and lidar against the GPS of two vessels: what the sensors are like, and filters and trackers on their scans.

Everything that a filter is told of the sensors comes from the other one of the two recordings.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from common import mean_with_interval
from herdfilter.study.data.autoferry import load_autoferry
from herdfilter.study.data.harbour import Sightings, sensor_constants, sightings

import herdfilter as hf
from herdfilter.study.scenario import load_scenario

RECORDINGS = {2: 4, 4: 2}
"""Recording -> the one that its constants come from."""


def sensors(folder: Path | None) -> pd.DataFrame:
    """Return what each sensor is like in each recording, of both vessels together and of each."""
    rows = []
    for recording, used_in in RECORDINGS.items():  # of two, each is the other's
        data = load_autoferry(folder, recording)
        for sensor in ("radar", "lidar"):
            known = sensor_constants(data, sensor)
            both = {"delay": known.delay, "sd": known.sd, "detected": known.detection_probability}
            both |= {"clutter": known.clutter_density, "used_in": used_in}
            seen = [sightings(data, sensor, vessel) for vessel in (1, 2)]
            rows.append(
                {"recording": recording, "sensor": sensor, "vessel": "both"} | offsets(*seen) | both
            )
            rows += [
                {"recording": recording, "sensor": sensor, "vessel": str(vessel)} | offsets(one)
                for vessel, one in enumerate(seen, start=1)
            ]
    return pd.DataFrame(rows)


def offsets(*seen: Sightings) -> dict[str, float]:
    """Share of scans with a detection, and the mean of the nearest ones from the antenna, along two directions."""
    error, velocity, sight = (
        np.concatenate([getattr(one, name) for one in seen]) for name in _FIELDS
    )
    found = np.isfinite(error[:, 0])
    means = {}
    for name, direction in (("ahead", velocity), ("away", sight)):
        unit = direction[found] / np.linalg.norm(direction[found], axis=1, keepdims=True)
        means[name] = float((error[found] * unit).sum(axis=1).mean())
    spread = {"reach": float(np.linalg.norm(sight[found], axis=1).max())}
    return {"scans": len(found), "detected": float(found.mean())} | means | spread


_FIELDS = ("error", "velocity", "sight")


def filters(args: argparse.Namespace) -> pd.DataFrame:
    """Run the filters of the scenario on each vessel in each recording."""
    scenario = load_scenario("harbour")
    rows = []
    for recording, other in RECORDINGS.items():
        for vessel in (1, 2):
            told = {"recording": recording, "constants_from": other, "vessel": vessel}
            one = replace(scenario, data={"type": scenario.data["type"]} | told)
            table = hf.compare(
                one, runs=args.runs, seed=args.seed, workers=args.workers, data=args.data
            )
            for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
                fine = runs[~runs["diverged"].astype(bool)]
                rows.append(
                    {
                        "recording": recording,
                        "vessel": vessel,
                        "filter": name,
                        "n": n,
                        "runs": len(runs),
                    }
                    | {"lost": runs["diverged"].mean(), "rmse": fine["rmse"].median()}
                    | {"anees": fine["anees"].median(), "ms": runs["ms_per_step"].median()}
                )
    return pd.DataFrame(rows)


def trackers(args: argparse.Namespace) -> pd.DataFrame:
    """Run the trackers of the scenario in each recording, by radar alone and by radar and lidar."""
    scenario = load_scenario("harbour_two")
    rows = []
    for recording, other in RECORDINGS.items():
        for by in (["radar"], ["radar", "lidar"]):
            told = {"recording": recording, "constants_from": other, "sensors": by}
            one = replace(scenario, data={**(scenario.data or {}), **told})
            table = hf.compare(
                one, runs=args.runs, seed=args.seed, workers=args.workers, data=args.data
            )
            for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
                row = {
                    "recording": recording,
                    "sensors": " ".join(by),
                    "filter": name,
                    "n": n,
                    "runs": len(runs),
                }
                for measure in ("gospa", "ospa"):
                    mean, low, high = mean_with_interval(runs[measure].to_numpy())
                    row |= {measure: mean, f"{measure}_low": low, f"{measure}_high": high}
                rows.append(row | runs[list(_PARTS)].mean().to_dict())
    return pd.DataFrame(rows)


_PARTS = ("gospa_localisation", "gospa_missed", "gospa_false", "label_switches", "ms_per_step")
