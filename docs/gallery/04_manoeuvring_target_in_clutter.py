"""
A manoeuvring target in clutter
===============================

An aircraft flies straight, turns, and flies straight again. A radar sometimes misses it, and gives many false alarms.
"""

# %%
# There are two models of the motion. In a turn the aircraft nearly keeps its turn rate. In straight flight the rate is
# zero, and the entry of the state holds the rate of a turn to come.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf

turning = hf.models.CoordinatedTurn(
    turn_density=1e-4,
    initial_mean=[1000, 150, 1000, 60, 0],  # x, its velocity, y, its velocity, turn rate
    initial_covariance=np.diag([100, 10, 100, 10, 1e-3]),
)
straight = hf.models.from_functions(
    f=lambda x, dt: turning.transition_mean(x * [1, 1, 1, 1, 0], dt, None, 1),
    h=lambda x: turning.observation_mean(x, 1),  # range and bearing
    Q=lambda dt: turning.transition_covariance(dt, 1) + np.diag([0, 0, 0, 0, 0.06**2]),
    R=turning.observation_covariance(1),
    initial_mean=turning.initial_mean,
    initial_covariance=turning.initial_covariance,
    observation_circular=[1],
)

# %%
# :class:`~herdfilter.models.JumpMarkov` switches between them with given probabilities.
# :class:`~herdfilter.models.WithClutter` around both describes the errors of the radar. An observation is now a scan:
# any number of detections, at most one of them from the aircraft.

model = hf.models.WithClutter(
    hf.models.JumpMarkov([straight, turning], [[0.95, 0.05], [0.1, 0.9]], initial_modes=[1, 0]),
    detection_probability=0.9,
    clutter_density=2e-3,  # false detections in a metre times radian
    region=[[0, 8000], [0, np.pi / 2]],
)
modes = np.repeat([0, 1, 0], [16, 15, 15])  # at steps 0 to 45
truth, scans = hf.simulate(model, steps=45, rng=5, modes=modes)
names = ["auto", "bootstrap", "imm"]
looks = hf.plotting.styles(names)
results = {name: hf.make_filter(name, model, n_particles=100, rng=0).run(scans) for name in names}

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
distance, bearing = np.vstack(scans).T
left.plot(distance * np.cos(bearing), distance * np.sin(bearing), ".", color="0.4", markersize=2)
left.plot(0, 0, "^", color="black")
left.set(
    title="what the radar (triangle) saw in 45 scans",
    xlabel="x (m)",
    ylabel="y (m)",
    aspect="equal",
)
right.plot(distance * np.cos(bearing), distance * np.sin(bearing), ".", color="0.8", markersize=2)
hf.plotting.plot_track(truth, ax=right, dims=(0, 2), color="black", linewidth=1, label="truth")
hf.plotting.plot_track(
    results["auto"].means,
    ax=right,
    dims=(0, 2),
    color=looks["auto"].color,
    label="estimate",
    ends=True,
)
right.set(title="auto with 100 particles", xlabel="x (m)", ylabel="", aspect="equal")
right.set(xlim=(500, 6500), ylim=(500, 6500))
right.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
# Filters of a model that jumps give the probability of each mode. They need a few steps to detect a turn, and a few
# more to detect its end. The third filter here has a Kalman filter for each mode (``imm``, interacting multiple model).

step = np.arange(1, 46)
fig, (above, below) = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True, layout="constrained")
above.fill_between(
    step, modes[1:], step="mid", color="0.78", linewidth=0, label="the aircraft turns"
)
for name, result in results.items():
    above.plot(step, result.mode_probabilities[:, 1], color=looks[name].color, label=name)
    error = np.linalg.norm((result.means - truth)[:, [0, 2]], axis=1)
    below.plot(
        step, error, color=looks[name].color, label=f"{name}: {np.sqrt(np.mean(error**2)):.1f} m"
    )
above.set(ylabel="probability of a turn", ylim=(0, 1))
above.legend(fontsize="small")
below.set(xlabel="step", ylabel="error of the position (m)", ylim=(0, None))
below.legend(fontsize="small", title="root mean square")

# %%
# In this run herded particles are ahead of random ones. They are no better than Kalman filters, which take a fraction
# of the time: in either mode the motion is nearly linear. But one run proves nothing. Here is the bootstrap filter
# again, on the same scans with other random numbers:

for seed in range(1, 9):
    again = hf.make_filter("bootstrap", model, n_particles=100, rng=seed).run(scans)
    error = np.linalg.norm((again.means - truth)[:, [0, 2]], axis=1)
    print(f"bootstrap, seed {seed}: {np.sqrt(np.mean(error**2)):.1f} m")

# %%
# One of them is ahead of all three above. Flights differ, too: :func:`herdfilter.compare` takes many, and gives the
# difference between filters with intervals.
#
# Next: :doc:`/one_target` recommends filters after many runs. For more than one aircraft see
# :doc:`/tracking`.
