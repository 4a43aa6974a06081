"""
Where is the robot?
===================

A robot mower measures its distance to four radio beacons, one at a time. It knows how its wheels turn, but neither its
place nor its heading. The recording is real: ``Plaza1_.mat``, of Djugash, Hamner and Roth (2009).
"""

# %%
# ``herdfilter data fetch plaza`` downloads the file once. The example uses its first 300 ranges, three minutes. The
# motion that the wheels report between two of them is the control input of a step.

import matplotlib.pyplot as plt
import numpy as np
from herdfilter.study.data.plaza import load_plaza

import herdfilter as hf

data = load_plaza(max_ranges=300)
model = hf.models.RangeOnly(data.beacons)  # any place in the field and any heading, to begin with
print(data.beacons, data.observations[:3], sep="\n")  # (beacon, range in m)


def localise(name, seed, n=300):
    """Run a filter over all ranges, and keep its particles."""
    pf = hf.make_filter(name, model, n_particles=n, rng=seed)
    return pf.run(data.observations, dt=data.dt, controls=data.controls, keep_particles=True)


# %%
# The bootstrap filter resamples among its particles. The other filter fits a kernel density to them, a Gaussian on
# each, and draws new ones from it. Each arrow is a particle with its heading; the red circle is the place of the robot.

resampling, drawing = localise("bootstrap", 0), localise("mixture-random", 0)

fig, axes = plt.subplots(2, 4, figsize=(9.5, 5), sharex=True, sharey=True, layout="constrained")
for row, (name, run) in zip(axes, {"bootstrap": resampling, "mixture-random": drawing}.items(), strict=True):
    for ax, k in zip(row, (0, 7, 65, 120), strict=True):
        x, y, heading = run.particles[k].T
        ax.quiver(x, y, np.cos(heading), np.sin(heading), color="tab:blue", scale=15, width=0.006, alpha=0.6)
        ax.plot(*data.truth[k, :2], "o", color="tab:red", markerfacecolor="none", markersize=12)
        ax.plot(*data.beacons.T, "^", color="black", markersize=4)
        ax.set(title=f"{data.time[k]:.0f} s", aspect="equal")
    row[0].set_ylabel(f"{name}\ny (m)")
fig.supxlabel("x (m)", fontsize="medium")

# %%
# After three seconds both filters know the approximate place of the robot. It stands still for most of a minute, so one
# heading is as likely as another. The bootstrap filter keeps the few headings of the particles that were near by
# chance. When the robot drives off, none of them is right. The fit makes new headings.
#
# The next figure has runs with other random numbers, too. Ten times as many particles do not save the bootstrap filter.
# ``auto`` widens the particles as the fit does, because the noise of the wheels is too narrow to separate them.

more = {
    "bootstrap": ("tab:orange", [resampling, *(localise("bootstrap", seed) for seed in range(1, 4))]),
    "bootstrap, 3,000 particles": ("tab:red", [localise("bootstrap", seed, n=3000) for seed in range(2)]),
    "mixture-random": ("tab:blue", [drawing, *(localise("mixture-random", seed) for seed in range(1, 6))]),
    "auto": ("tab:green", [localise("auto", seed) for seed in range(6)]),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
hf.plotting.plot_track(data.truth, ax=left, color="black", linewidth=1, label="truth")
hf.plotting.plot_track(drawing.means, ax=left, color="tab:blue", label="mixture-random,\nits first run")
left.plot(*data.beacons.T, "^", color="black", markersize=4, label="beacons")
left.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
left.legend(loc=(0.21, 0.35), fontsize="small")
for name, (colour, runs) in more.items():
    errors = [np.linalg.norm((run.means - data.truth)[:, :2], axis=1) for run in runs]
    lines = right.semilogy(data.time, np.transpose(errors), color=colour, linewidth=1)
    found = sum(error[-1] < 3 for error in errors)
    lines[0].set_label(f"{name}: {found} of {len(runs)} found it")
right.set(xlabel="time (s)", ylabel="error of the position (m)", ylim=(5e-4, 200))
right.legend(fontsize="small")

# %%
# Wider particles help, but not always. ``mixture-kh`` herds points from the fit in place of random draws. To count the
# runs that find the robot, of twenty with each filter, call ``herdfilter compare plaza``.
#
# Next: :doc:`/scenarios` has this scenario and the others, :doc:`/filters` the parts of a filter.
# :class:`herdfilter.MixtureResampling` draws from any fit.
