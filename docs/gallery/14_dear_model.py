"""
A dear model
============

You see which filter to take when the model, and not the filter, takes the time. A robot finds its place by a lidar: for every
particle 36 rays are cast on a map, in some 60 microseconds. A step of a bootstrap filter is nothing but that.
"""

# %%
# The map has 200 x 200 cells of 0.1 m. The robot leaves its dock, with a pose known to 0.1 m and 3 degrees, and drives round a
# pillar for 15 seconds; its wheels tell the motion. One range in twenty is random, as of people who walk by.

import time

import matplotlib.pyplot as plt
import numpy as np
from herdfilter.study.data.lidar import LidarRobot

import herdfilter as hf
from herdfilter.angles import wrap_angles

model = LidarRobot()
controls = [model.control(step) for step in range(1, 31)]  # speed and turn rate
truth, ranges = hf.simulate(model, steps=30, rng=0, dt=0.5, controls=controls)
poses = model.initial.sample(1000, np.random.default_rng(0))
start = time.process_time()
model.observation_mean(poses, 1)
print(f"{1e3 * (time.process_time() - start):.0f} us per particle")

# %%
# Everybody asks the model for a likelihood at n particles. ``auto`` asks it for slopes as well, before it draws. What a herded
# filter does beside, its search for good points, takes about a millisecond for 100 particles.

counts = {
    "bootstrap": [50, 100, 200, 400, 800],
    "herded-kh": [50, 100, 200, 400],
    "herded-chg": [50, 100, 200],
    "auto": [25, 50, 100],
}


def follow(name, n, ranges, seed):
    """Run a filter; return its result and its milliseconds a step."""
    pf = hf.make_filter(name, model, n_particles=n, rng=seed)
    start = time.process_time()
    result = pf.run(ranges, dt=0.5, controls=controls)
    return result, 1e3 * (time.process_time() - start) / len(ranges)


def errors(seed):
    """Return (milliseconds, error) of each filter and count in one drive."""
    _, ranges = hf.simulate(model, steps=30, rng=seed, dt=0.5, controls=controls)
    reference, _ = follow("bootstrap", 6000, ranges, seed)
    sd = np.sqrt(np.einsum("tii->ti", reference.covariances))
    points = {}
    for name, n in ((name, n) for name, sizes in counts.items() for n in sizes):
        result, ms = follow(name, n, ranges, seed + 1000)
        deviation = wrap_angles(result.means - reference.means, model.circular) / sd
        points[name, n] = ms, np.sqrt(np.mean(deviation**2))
    return points


runs = [errors(seed) for seed in range(6)]

# %%
# Errors are distances from the posterior mean, here of 6,000 particles, in its standard deviations: geometric means over six
# drives. Six drives prove little; :doc:`/herding` has twelve, with intervals.

looks = hf.plotting.styles(counts)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")
left.imshow(model.occupied.T, origin="lower", extent=(0, 20, 0, 20), cmap="Greys")
x, y, heading = truth[-1]
ends = x + ranges[-1] * np.cos(heading + model.bearings), y + ranges[-1] * np.sin(
    heading + model.bearings
)
for end in zip(*ends, strict=True):
    left.plot([x, end[0]], [y, end[1]], color="0.8", linewidth=0.7)
hf.plotting.plot_track(truth, ax=left, color=looks["bootstrap"].color, linewidth=2)
left.set(xlabel="x (m)", ylabel="y (m)", title="the drive, and the last ranges")
for name, sizes in counts.items():
    curve = np.exp(np.mean([[np.log(run[name, n]) for n in sizes] for run in runs], axis=0))
    right.loglog(*curve.T, label=name, **looks[name].line)
    for n, (ms, error) in zip(sizes, curve, strict=True):
        print(f"{name}, n = {n}: {ms:.1f} ms, error {error:.2f}")
right.set(xlabel="CPU time of a step (ms)", ylabel="error (posterior standard deviations)")
right.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
