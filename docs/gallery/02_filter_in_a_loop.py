"""
A filter in a loop
==================

A weight swings on a string; a camera sees how far to the side it is, twenty times a second. A filter follows the angle while the
measurements come in, also when the camera is covered for a while.
"""

# %%
# A model is made of functions of all particles at once, arrays of shape (n, d). The state is the angle and its velocity.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf


def swing(x, dt):
    angle, velocity = x.T
    velocity = velocity - dt * 9.81 * np.sin(angle)
    return np.column_stack([angle + dt * velocity, velocity])


pendulum = hf.models.from_functions(
    f=swing,
    h=lambda x: np.sin(x[:, :1]),
    Q=lambda dt: dt * np.diag([1e-4, 0.1]),
    R=[[0.1**2]],
    x0=[0.8, 0.0],
    P0=0.05 * np.eye(2),
)
dt = 0.05
truth, measured = hf.simulate(pendulum, steps=100, rng=1, dt=dt)
covered = slice(45, 60)
measured[covered] = np.nan

# %%
# This is the loop of a program that runs while the measurements arrive. An observation that is None, or NaN, is missing: the
# step is a prediction, and the filter says so.

pf = hf.make_filter("auto-kh", pendulum, n_particles=100)
estimate, sd, outcomes = [], [], []
for z in measured:
    pf.predict(dt=dt)
    record = pf.update(z)
    estimate.append(pf.mean[0])
    sd.append(np.sqrt(pf.covariance[0, 0]))
    outcomes.append(record.outcome)

print(outcomes.count(hf.Outcome.UPDATED), "measurements,", outcomes.count(hf.Outcome.MISSING), "missing")

# %%
# The band is two standard deviations to each side. It widens while nothing is seen, and closes with the first measurements.

time, estimate, sd = dt * np.arange(1, 101), np.array(estimate), np.array(sd)
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.axvspan(*time[[covered.start, covered.stop]] - dt / 2, color="0.92", label="camera covered")
ax.fill_between(
    time, estimate - 2 * sd, estimate + 2 * sd, alpha=0.25, linewidth=0, label="two standard deviations"
)
ax.plot(time, estimate, label="estimate")
ax.plot(time, truth[:, 0], "k", linewidth=1, label="truth")
ax.plot(time, measured[:, 0], ".", color="0.5", markersize=4, label="seen: sine of the angle")
ax.set(xlabel="time (s)", ylabel="angle (rad)")
fig.legend(loc="outside upper center", ncols=5, fontsize="small")

# %%
# How good is the filter? The truth does not tell: no filter can know it better than the measurements allow. What a filter
# should find is the posterior mean. Here a bootstrap filter with 20,000 particles stands in for it; `run` does the loop at once.

reference = hf.make_filter("bootstrap", pendulum, n_particles=20_000, rng=0).run(measured, dt=dt)
posterior_sd = np.sqrt(reference.covariances[:, 0, 0])
random = [
    hf.make_filter("bootstrap", pendulum, n_particles=100, rng=seed).run(measured, dt=dt)
    for seed in range(1, 11)
]
away = np.abs([run.means[:, 0] - reference.means[:, 0] for run in random]) / posterior_sd
herded = np.abs(estimate - reference.means[:, 0]) / posterior_sd

fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.plot(time, away.T, color="tab:orange", linewidth=0.5, alpha=0.6)
ax.plot(
    time,
    np.median(away, axis=0),
    color="tab:orange",
    label="bootstrap, 100 particles: ten runs and their median",
)
ax.plot(time, herded, color="tab:blue", label="herded (auto-kh), 100 particles: one run, there is no other")
ax.set(xlabel="time (s)", ylabel="distance from the reference\n(posterior standard deviations)")
ax.legend(fontsize="small")

print(f"bootstrap {np.sqrt(np.mean(away**2)):.3f}, herded {np.sqrt(np.mean(herded**2)):.3f}")
print(f"the reference itself: about {20_000**-0.5:.3f}")

# %%
# One run of one model proves little. Let the weight start at ``x0=[1.4, 0.0]``: it may then swing beyond a right angle, where
# two angles have the same sine. The posterior is no longer close to a Gaussian, and herding gains less.
#
# Next: :doc:`/herding` says when herding helps, and when not, on many models. :doc:`/running` has all that a loop may meet,
# :doc:`/model` all that a model may be.
