"""
A filter in a loop
==================

A weight swings on a string. A camera sees its sideways position twenty times a second. A filter follows the angle as
the measurements come in, and goes on while the camera is covered.
"""

# %%
# A model consists of functions of all particles at once, arrays of shape (n, d). The state is the angle and its
# velocity.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf


def swing(x, dt):
    """Move angle and velocity on by a time dt."""
    angle, velocity = x.T
    velocity = velocity - dt * 9.81 * np.sin(angle)
    return np.column_stack([angle + dt * velocity, velocity])


pendulum = hf.models.from_functions(
    f=swing,
    h=lambda x: np.sin(x[:, :1]),
    Q=lambda dt: dt * np.diag([1e-4, 0.1]),
    R=[[0.1**2]],
    initial_mean=[0.8, 0.0],
    initial_covariance=0.05 * np.eye(2),
)
dt = 0.05
truth, measured = hf.simulate(pendulum, steps=100, rng=1, dt=dt)
measured[45:60] = np.nan  # the camera is covered

# %%
# A program that runs while the measurements arrive has this loop. An observation that is None or NaN is missing: the
# step is a prediction, and the record says so.

pf = hf.make_filter("auto", pendulum, n_particles=100)
estimate, sd, missing = np.zeros(100), np.zeros(100), 0
for k, z in enumerate(measured):
    pf.predict(dt=dt)
    record = pf.update(z)
    missing += record.outcome is hf.Outcome.MISSING
    estimate[k], sd[k] = pf.mean[0], np.sqrt(pf.covariance[0, 0])

print(missing, "measurements were missing; what became of the last one:", record.outcome.value)

# %%
# The band is two standard deviations (sd) to each side. It widens while the camera is covered, and narrows afterwards.

time = dt * np.arange(1, 101)
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.axvspan(time[45], time[60], color="0.82", linewidth=0, label="camera covered")
looks = hf.plotting.styles(["auto", "bootstrap"])
red, grey = looks["auto"].color, looks["bootstrap"].color
ax.fill_between(
    time, estimate - 2 * sd, estimate + 2 * sd, color=red, alpha=0.25, linewidth=0, label="two sd"
)
ax.plot(time, estimate, color=red, label="estimate")
ax.plot(time, truth[:, 0], "k", linewidth=1, label="truth")
ax.plot(time, measured[:, 0], ".", color="0.5", markersize=4, label="seen: sine of the angle")
ax.set(xlabel="time (s)", ylabel="angle (rad)")
fig.legend(loc="outside upper center", ncols=5, fontsize="small")
# sphinx_gallery_thumbnail_number = 0

# %%
# How good is the filter? Do not ask the truth: no filter can know it better than the measurements allow. A filter
# should find the posterior mean. Here a bootstrap filter with 20,000 particles provides it; all others have 100.
# :meth:`run <herdfilter.ParticleFilter.run>` is the loop above in one call.

filters = [
    hf.make_filter("bootstrap", pendulum, n_particles=100, rng=seed) for seed in range(1, 11)
]
bootstrap = np.array([pf.run(measured, dt=dt).means[:, 0] for pf in filters])
reference = hf.make_filter("bootstrap", pendulum, n_particles=20_000, rng=0).run(measured, dt=dt)
posterior_sd = np.sqrt(reference.covariances[:, 0, 0])
away = abs(bootstrap - reference.means[:, 0]) / posterior_sd
deterministic = abs(estimate - reference.means[:, 0]) / posterior_sd

fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.plot(time, away.T, color=grey, linewidth=0.5, alpha=0.6)
ax.plot(time, np.median(away, axis=0), color=grey, label="bootstrap: ten runs and their median")
ax.plot(time, deterministic, color=red, label="auto: the same in every run")
ax.set(xlabel="time (s)", ylabel="distance from the reference\n(posterior standard deviations)")
ax.legend(fontsize="small")

rms = np.round([np.sqrt(np.mean(away**2)), np.sqrt(np.mean(deterministic**2))], 3)
print("root mean squares of the bootstrap filters and of auto:", rms)

# %%
# One run of one model proves little. Let it start at ``initial_mean=[1.4, 0.0]``: the weight may then swing beyond a right
# angle, and two angles have the same sine. The posterior is no longer close to a Gaussian, and herding gains less.
#
# Next: :doc:`/claims` measures on many models when herding helps and when not. :doc:`/running` has all that a loop may
# meet, :doc:`/model` all that a model may be.
