"""
Forty tracks
============

You see the paths of forty boats that one call tracks, and what herding adds: forty tracks are also forty comparisons.
"""

# %%
# Two stations on the shore measure the bearing of each boat, ten times per unit of time. Each boat has measurements of
# its own, so there is nothing to associate.

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

import herdfilter as hf

stations = np.array([[-1.0, -2.0], [1.0, 1.0]])
model = hf.models.BearingsTracking(
    stations, bearing_sd=0.05, initial_covariance=np.diag([0.1, 0.1, 0.5, 0.5])
)
boats = [hf.simulate(model, steps=25, rng=k, dt=0.1) for k in range(40)]
measured = [z for _, z in boats]

# %%
# :func:`~herdfilter.run_many` takes a function that makes the filter of a track, and the measurements of all tracks. If
# some tracks fail, the others are filtered all the same.


def track(name, n=100):
    """Return the results of one filter for each boat."""
    return hf.run_many(
        lambda k: hf.make_filter(name, model, n_particles=n, rng=k),
        measured,
        dt=0.1,
        progress=False,
    )


results = track("auto")
fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for k, ((truth, _), result) in enumerate(zip(boats, results, strict=True)):
    ax.plot(*truth[:, :2].T, color="black", linewidth=0.5, label="truth" if k == 0 else None)
    hf.plotting.plot_track(
        result.means, None, ax, label="estimate" if k == 0 else None, color=f"C{k % 6}", linewidth=1
    )
ax.plot(*stations.T, "^", color="black", markersize=10, label="station")
ax.set(xlabel="east", ylabel="north", aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
ax.legend(fontsize="small")
# sphinx_gallery_thumbnail_number = 0

# %%
# Is the default, ``auto``, nearer to the posterior mean than its counterpart ``auto-random``, which has the same rule and
# draws by chance? In each track the two see the same measurements. The posterior mean is here that of 6,000 particles.

reference = track("bootstrap", n=6000)


def errors(results):
    """Return the distance of each track from the reference, in posterior standard deviations (40,)."""
    pairs = zip(results, reference, strict=True)
    return np.array(
        [
            np.sqrt(np.mean((a.means - b.means) ** 2 / np.einsum("tii->ti", b.covariances)))
            for a, b in pairs
        ]
    )


def ratio(a, b):
    """Return the geometric mean of a / b and its 95 % interval as text."""
    logs = np.log(a / b)
    half = scipy.stats.t.ppf(0.975, len(logs) - 1) * scipy.stats.sem(logs)
    return "{:.2f} ({:.2f} to {:.2f})".format(*np.exp(logs.mean() + np.array([0, -half, half])))


found = {
    name: errors(results if name == "auto" else track(name))
    for name in ("auto", "auto-random", "bootstrap")
}
for name in ("auto-random", "bootstrap"):
    print(f"auto over {name}: {ratio(found['auto'], found[name])}")

# %%
# The hard case is a boat that runs far out, where both stations see it at nearly the same angle. The figure has the
# largest distance of each boat from the start.

distance = np.array([np.linalg.norm(truth[:, :2], axis=1).max() for truth, _ in boats])
looks = hf.plotting.styles(found)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, error in found.items():
    ax.semilogy(distance, error, **looks[name]._replace(linestyle="").line, label=name)
ax.set(
    xlabel="largest distance of the boat",
    ylabel="distance from the reference\n(standard deviations)",
)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
far = np.argsort(distance)[-10:]
print(
    f"auto over auto-random, the ten boats farthest out: {ratio(found['auto'][far], found['auto-random'][far])}"
)

# %%
# On most boats herding gains. On those far out it gains little, if anything: the posterior is long and bent, all filters
# are farther off, and so is the reference. Any few of these tracks could show the opposite: that is why there are forty.
#
# Tracks with times or sensors of their own, and several processes: :doc:`/sensors`. Kalman filters of many tracks, which
# run in one batch: :doc:`/kalman`. Detections of unknown origin: :doc:`/tracking`.
