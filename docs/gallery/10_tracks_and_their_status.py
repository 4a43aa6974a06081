"""
Tracks and their status
=======================

Three targets appear one after the other, and one of them leaves. Each track is tentative, then confirmed, and coasts
while no scan detects it. The same scans are then tracked as they may arrive: some of them late.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import herdfilter as hf

target = hf.models.ConstantVelocity(
    0.05, 2.0, initial_mean=[0, 0, 0, 0], initial_covariance=np.diag([1e4, 1e4, 9.0, 9.0])
)
model = hf.models.WithClutter(
    target, detection_probability=0.8, clutter_density=1e-4, region=[[-150, 150], [-150, 150]]
)

# %%
# The truth has a row for each scan, and NaN where a target is absent. Scans hold detections and false alarms.

rng = np.random.default_rng(4)
truth = np.full((40, 3, 4), np.nan)
for i, (first, last, state) in enumerate(
    [(0, 40, [-100, -60, 5, 1]), (5, 28, [80, 100, -3, -3]), (12, 40, [-60, 90, 3, -4])]
):
    x = np.array(state, dtype=float)
    for k in range(first, last):
        truth[k, i] = x
        x = target.transition_mean(x[None], 1.0, None, k + 1)[0]
scans = hf.tracking.simulate_scans(model, truth, rng)

# %%
# Recorded detections are often a table with a row for each. A scan without a detection has no row, so the times of all
# scans are given beside it.

table = pd.DataFrame(
    [(k, *z) for k, scan in enumerate(scans, start=1) for z in scan],
    columns=["time", "east", "north"],
)
readings = hf.tracking.scans_from_table(table, ["east", "north"], times=range(1, 41))


def new_tracker():
    """Return a tracker that starts tracks at detections which belong to no track."""
    births = hf.tracking.BirthFromMeasurements(target.initial, expected=0.1)
    return hf.tracking.LMBTracker(
        model, births, survival_probability=0.98, filter="ukf", confirm=(3, 5)
    )


result = new_tracker().run(readings)

# %%
# Each track has a colour, rings mark scans at which it coasts, and the truth is thin.

fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ax.plot(table["east"], table["north"], "x", color="0.8", markersize=4, label="detections")
result.plot(ax, truth=truth, ellipses=None, names=["east", "north", "speed east", "speed north"])
ax.set_aspect("equal")
ax.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
# One row for each track: its first and last report, and its status at the last.

result.summary()

# %%
# The status of each track over time. Tentative tracks are reported as soon as they exist more probably than not.

rows = result.to_dataframe()
fig, ax = plt.subplots(figsize=(8, 2.5), layout="constrained")
for status, colour in {"tentative": "0.6", "confirmed": "C0", "coasting": "C1"}.items():
    chosen = rows[rows["status"] == status]
    ax.plot(chosen["time"], chosen["track_id"], "s", color=colour, label=status)
ax.set(xlabel="time", ylabel="track")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %%
# Now every fourth scan arrives two scans late. The tracker goes back and follows anew, and in the end stands where the
# scans in order have led it, to the last bit.

arriving = sorted(readings, key=lambda reading: reading[0] + 2.5 * (reading[0] % 4 == 0))
replay = hf.Replay(new_tracker(), lag=5.0)
for time, sensor, scan in arriving:
    record = replay.update(time, scan, sensor)
print(record.labels == result.labels[-1], np.array_equal(record.means, result.means[-1]))

# %%
# Filters and associations that a tracker takes: :doc:`/tracking`. Radar of two ships:
# :doc:`/examples/09_two_ships_in_radar`.
