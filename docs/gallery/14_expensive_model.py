"""
An expensive model
==================

Take the filter with the fewest evaluations of the model if the model is slow. Here a robot finds its place by a lidar. For
every particle 36 rays are cast on a map, which takes some 60 microseconds, nearly all the time of a bootstrap step.
"""

# %%
# The map has 200 x 200 cells of 0.1 m. The robot leaves its dock, with a pose known to 0.1 m and 3 degrees, and drives
# round a pillar for 15 seconds; its wheels tell the motion. One range in twenty is random, as of people who walk by.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from herdfilter.study.data.lidar import LidarRobot

import herdfilter as hf
from herdfilter.angles import wrap_angles

# the first ranges tell far more than was known at the dock, and leave few particles
warnings.simplefilter("ignore", hf.DegeneracyWarning)

model = LidarRobot()
controls = [model.control(step) for step in range(1, 31)]  # speed and turn rate
truth, ranges = hf.simulate(model, steps=30, rng=0, dt=0.5, controls=controls)
poses = model.initial.sample(1000, np.random.default_rng(0))
start = time.process_time()
model.observation_mean(poses, 1)
print(f"{1e3 * (time.process_time() - start):.0f} us per particle")

# %%
# Most filters ask the model once per particle and step, the herded ones, too: their search for good points comes on
# top. ``auto`` asks it several times, for slopes by differences. So compare errors at equal time, not at equal n. The
# second model casts a third of the rays.

models = {"36 rays": model, "12 rays": LidarRobot(beams=12)}
counts = {
    "bootstrap": [50, 100, 200, 400, 800],
    "herded-kh": [50, 100, 200, 400],
    "herded-chg": [50, 100, 200],
    "auto": [25, 50],
}


def follow(model, name, n, ranges, seed):
    """Run a filter; return its result and its milliseconds a step."""
    pf = hf.make_filter(name, model, n_particles=n, rng=seed)
    start = time.process_time()
    result = pf.run(ranges, dt=0.5, controls=controls)
    return result, 1e3 * (time.process_time() - start) / len(ranges)


def errors(model, seed):
    """Return (milliseconds, error) of each filter and count in one drive."""
    _, ranges = hf.simulate(model, steps=30, rng=seed, dt=0.5, controls=controls)
    reference, _ = follow(model, "bootstrap", 3000, ranges, seed)
    sd = np.sqrt(np.einsum("tii->ti", reference.covariances))
    points = {}
    for name, n in ((name, n) for name, sizes in counts.items() for n in sizes):
        result, ms = follow(model, name, n, ranges, seed + 1000)
        deviation = wrap_angles(result.means - reference.means, model.circular) / sd
        points[name, n] = ms, np.sqrt(np.mean(deviation**2))
    return points


# %%
# Errors are distances from the posterior mean, here of 3,000 particles, in its standard deviations: geometric means
# over six drives. Six drives prove little; :doc:`/claims` has more, with intervals.

looks = hf.plotting.styles(counts)
fig, (plan, *panels) = plt.subplots(1, 3, figsize=(9.5, 3.6), layout="constrained")
plan.imshow(model.occupied.T, origin="lower", extent=(0, 20, 0, 20), cmap="Greys")
x, y, heading = truth[-1]
angle = heading + model.bearings
ends = np.array([x + ranges[-1] * np.cos(angle), y + ranges[-1] * np.sin(angle)])
plan.plot(*ends, ".", color="0.4", markersize=3)
hf.plotting.plot_track(truth, ax=plan, color=looks["herded-kh"].color, linewidth=2)
plan.set(xlabel="x (m)", ylabel="y (m)", title="drive, and last ranges")
for ax, (title, robot) in zip(panels, models.items(), strict=True):
    runs = [errors(robot, seed) for seed in range(6)]
    for name, sizes in counts.items():
        curve = np.exp(np.mean([[np.log(run[name, n]) for n in sizes] for run in runs], axis=0))
        ax.loglog(*curve.T, label=name, **looks[name].line)
        for n, (ms, error) in zip(sizes, curve, strict=True):
            print(f"{title}, {name}, n = {n}: {ms:.1f} ms, error {error:.2f}")
    ax.set(title=title, xlabel="CPU time of a step (ms)", ylim=(0.15, 1.6))
    ax.set(xticks=[2, 5, 10, 20, 50], xticklabels=[2, 5, 10, 20, 50])
    ax.set(yticks=[0.2, 0.5, 1], yticklabels=[0.2, 0.5, 1])
    ax.minorticks_off()
panels[0].set_ylabel("error (posterior standard deviations)")
panels[0].legend(fontsize="small")
# sphinx_gallery_thumbnail_number = 0

# %%
# Both herded filters are a little ahead of the bootstrap filter: to move the points takes about a tenth of a step with 36
# rays, and a fifth with 12. With 36 rays few particles have most of the weight, whichever points they are. ``auto`` pays
# for its slopes with several times the rays, and slopes mislead where a ray passes the edge of a door.
#
# With a cheap model the order is another one: :doc:`/guide`. More runs of this robot, also with more particles:
# :doc:`/claims`. To run it in a study of your own: ``herdfilter compare lidar --filters bootstrap,herded-kh``.
