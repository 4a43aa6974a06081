"""
Two sensors at different rates
==============================

A boat crosses a bay. A radar sees it every four seconds and reports late. A camera at another place sees it every half
second. One filter takes all readings.
"""

# %%
# The model describes the motion of the boat; sensors describe its observations. The radar measures range and bearing.
# The camera measures only the bearing, but sharply.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf

boat = hf.models.ConstantVelocity(
    spectral_density=0.1,
    position_sd=1.0,  # of the model's own observation, which nothing here uses
    initial_mean=[50.0, 250.0, 5.0, -1.0],  # position in m, velocity in m/s
    initial_covariance=np.diag([50.0, 50.0, 1.0, 1.0]) ** 2,
)
lighthouse = np.array([-100.0, 0.0])  # where the camera stands; the radar is at the origin


def bearing(x, place):
    """Return the angle at which the boat is seen from a place."""
    return np.arctan2(x[:, 1] - place[1], x[:, 0] - place[0])


radar = hf.Sensor(
    mean=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), bearing(x, (0, 0))]),
    covariance=np.diag([5.0, 0.06]) ** 2,
    circular=[1],  # the bearing is an angle
)
camera = hf.Sensor(lambda x: bearing(x, lighthouse)[:, None], [[0.02**2]], circular=[0])

# %%
# The program simulates a crossing of a minute. A reading is a tuple of time, sensor and measurement.

truth, _ = hf.simulate(boat, steps=120, rng=5, dt=0.5)
time = 0.5 * np.arange(1, 121)
of_camera = [(t, camera, z) for t, z in zip(time, camera.sample(truth, rng=7), strict=True)]
of_radar = [(t, radar, z) for t, z in zip(time, radar.sample(truth, rng=6), strict=True)][7::8]

# %%
# :meth:`run <herdfilter.ParticleFilter.run>` takes readings of all sensors together; the result has a row for each. A
# reading is late if it comes after one of a later time. With ``late="replay"`` the filter goes back and uses it at its
# own time.

delay = 2.3  # from the moment that the radar sees to the moment that it says so
arrival = [t for t, _, _ in of_camera] + [t + delay for t, _, _ in of_radar]
both = [(of_camera + of_radar)[k] for k in np.argsort(arrival, kind="stable")]
runs = {
    "radar alone": hf.make_filter("auto", boat, n_particles=300).run(of_radar),
    "camera alone": hf.make_filter("auto", boat, n_particles=1000).run(of_camera),
    "both": hf.make_filter("auto", boat, n_particles=300).run(both, late="replay"),
}

red = hf.plotting.STYLES["auto"].color
fig, axes = plt.subplots(1, 3, figsize=(9.5, 2.9), sharex=True, sharey=True, layout="constrained")
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    hf.plotting.plot_track(truth, ax=ax, color="black", linewidth=1, label="truth")
    hf.plotting.plot_track(
        run.means, run.covariances, ax=ax, label="estimate", ends=True, color=red
    )
    ax.plot(0, 0, "^", color="black", label="radar")
    ax.plot(*lighthouse, "v", color="black", label="camera")
    ax.set(title=name, xlabel="east (m)", ylabel="north (m)", aspect="equal")
    ax.label_outer()
axes[0].legend(fontsize="small")

# %%
# The ellipses hold 95 % of the probability. The camera does not measure the distance of the boat: its ellipses are
# long, and the filter needs more particles to fill them. The radar is rough, and reports only every four seconds.
# Together they do better than each alone. The next figure shows the time of each reading, and the standard deviation of
# the position at that time.

fig = plt.figure(figsize=(8.5, 4), layout="constrained")
above, below = fig.subplots(2, 1, sharex=True, height_ratios=[1, 3])
taken = np.array([t for t, _, _ in of_radar])
above.plot(time, ["camera"] * len(time), "|", color="black")
above.plot(taken, ["radar"] * len(taken), "|", color="black", label="taken")
above.plot(taken + delay, ["radar"] * len(taken), ">", color=red, markersize=4, label="arrived")
above.hlines(["radar"] * len(taken), taken, taken + delay, color=red, linewidth=1)
above.margins(y=0.5)
for name, run in runs.items():
    sd = np.sqrt(run.covariances[:, 0, 0] + run.covariances[:, 1, 1])
    below.plot(run.times, sd, drawstyle="steps-post", label=name)
below.set(xlabel="time (s)", ylabel="standard deviation\nof the position (m)", ylim=(0, 100))
fig.legend(loc="outside right upper", fontsize="small")
# sphinx_gallery_thumbnail_number = 0

# %%
# If readings come one by one, :class:`herdfilter.Replay` does the same in a loop.
#
# Next: :doc:`/sensors` has this loop, readings with dates, and sensors that move. :doc:`/one_target` has sensors that miss
# the boat or give false alarms.
