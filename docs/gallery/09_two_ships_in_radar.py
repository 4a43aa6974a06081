"""
Two ships in real radar
=======================

A radar turns on a small ferry. Each turn gives echoes: of two boats, of the shore, of other boats, or none. How many
boats are there, where are they, and which is which? The recording is real. The two boats carried GPS, so the answer can
be checked.
"""

# %%
# The data are recording 2 of Helgesen, Vasstein, Brekke and Stahl (2022), from the harbour of Trondheim:
# ``scenario2_detections.json`` and ``scenario2_groundTruth.json``, which ``herdfilter data fetch autoferry`` downloads
# (public domain). Positions are in metres, north and east. We look only at the water of these two boats, since the
# others have no GPS, and leave out the wake of the ferry.

import matplotlib.pyplot as plt
import numpy as np
from herdfilter.study.data.autoferry import load_autoferry

import herdfilter as hf

data = load_autoferry(scenario=2, sensors=["radar"])
low, high = [-180.0, -640.0], [110.0, -330.0]
scans = [
    scan[((scan > low) & (scan < high)).all(axis=1) & (np.linalg.norm(scan - ferry, axis=1) > 30)]
    for scan, ferry in zip(data.scans, data.own_ship, strict=True)
]
print(f"{len(scans)} scans in {data.time[-1]:.0f} s, with {sum(map(len, scans))} echoes")

# %%
# A boat moves with a velocity that changes slowly. The radar reports 2.5 s late, to 2.4 m, in four turns of five, with
# false echoes. These numbers were found in another recording.

echoes = {"detection_probability": 0.8, "clutter_density": 1e-5}  # false ones per square metre
boat = hf.models.ConstantVelocity(
    spectral_density=0.05,
    position_sd=2.4,
    initial_mean=[-35.0, -485.0, 0.0, 0.0],
    initial_covariance=np.diag([150.0, 150.0, 3.0, 3.0]) ** 2,
)
# It sees where the boat was.
radar = hf.Sensor(lambda x: x[:, :2] - 2.5 * x[:, 2:], 2.4**2 * np.eye(2), **echoes)

# %%
# The tracker does not know the number of boats. An echo that belongs to no track may start one, with a small
# probability.

tracker = hf.tracking.LMBTracker(
    hf.models.WithClutter(boat, **echoes),
    hf.tracking.BirthFromMeasurements(boat.initial, expected=0.01),
    survival_probability=0.999,
    filter="ukf",
)
readings = [(time, radar, scan) for time, scan in zip(data.time, scans, strict=True)]
result = tracker.run(readings, start=-1.7)

# %%
# Grey crosses are the echoes of all scans, dashed lines the boats by GPS, and coloured lines the tracks. A track keeps
# its label: the step of its birth, and a number.

tracks = result.trajectories()
fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
east, north = np.concatenate(scans)[:, ::-1].T
ax.plot(east, north, "x", color="0.7", markersize=4, label="echoes")
ax.plot(data.own_ship[:, 1], data.own_ship[:, 0], color="0.7", label="ferry")
for vessel, name in enumerate(["leisure craft", "research vessel"]):
    ax.plot(data.truth[:, vessel, 1], data.truth[:, vessel, 0], "k--", linewidth=1)
    ax.annotate(name, data.truth[0, vessel, ::-1], (-40, -18), textcoords="offset points")
for label, path in tracks.items():
    hf.plotting.plot_track(path, None, ax, dims=(1, 0), label=f"track {label}")
ax.set(xlabel="east (m)", ylabel="north (m)", aspect="equal")
ax.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
# The leisure craft passes behind the larger ship, and the radar does not see it there. Its track becomes doubtful,
# reappears on the other side, and keeps its label. In the north a third boat without GPS, or the shore, makes a short
# track, and another that lasts for two scans only.
#
# The probability of existence shows the same. Below it is GOSPA, one number for the error of the whole picture:
# distances, up to 20 m each, and a penalty for every missed boat and every track of neither boat.

gospa = [
    hf.tracking.gospa(truth, means[:, :2], cutoff=20)
    for truth, means in zip(data.truth, result.means, strict=True)
]
missed_or_false = [np.sqrt(at.missed + at.false) for at in gospa]
table = result.to_dataframe()

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
for label, rows in table.groupby(["birth", "number"]):
    top.plot(rows["time"], rows["existence"], ".", label=f"track {label}")
top.set(ylabel="existence")
top.legend()
bottom.plot(data.time, [at.distance for at in gospa], "k", label="all")
bottom.fill_between(data.time, 0, missed_or_false, alpha=0.3, label="missed and false")
bottom.set(xlabel="time (s)", ylabel="GOSPA (m)")
bottom.legend()

# %%
# At the start the error is large: the first echoes of the research vessel, 36 m long, lie 20 m and more from its
# antenna.
#
# Kalman filters in the tracks leave nothing to herd. What herding adds on these recordings, for one boat at a time:
# :doc:`/examples/13_herding_on_recorded_data`.
#
# ``herdfilter compare harbour_two --out results`` runs the same with other filters in the tracks and writes a report
# with an animation. Radar, lidar and their failures: :doc:`/harbour`. Trackers for other scenes: :doc:`/tracking`.
