"""
Thinning a posterior sample
===========================

A Markov chain has visited five thousand points, and the next simulation can afford fifty. Which fifty?
"""

# %%
# The chain walks on a banana: each step is random, and the density there decides if the chain accepts it (Metropolis
# 1953).

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf

rng = np.random.default_rng(0)


def log_density(x):
    """Return the logarithm of the density, up to a constant."""
    return -0.5 * (x[0] ** 2 / 4 + 4 * (x[1] - 0.5 * x[0] ** 2) ** 2)


chain = np.zeros((5000, 2))
for t in range(1, len(chain)):
    there = chain[t - 1] + rng.standard_normal(2)
    accepted = np.log(rng.random()) < log_density(there) - log_density(chain[t - 1])
    chain[t] = there if accepted else chain[t - 1]

# %%
# The usual way keeps every 100th point. :func:`~herdfilter.thin` chooses the points that represent the chain best. It
# returns their indices, so you can thin everything that belongs to the points.

every = np.arange(99, 5000, 100)
chosen = hf.thin(chain, 50)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
chance, herding = hf.plotting.styles(["bootstrap", "herded-kh"]).values()
for ax, kept, name, look in zip(
    axes, (every, chosen), ("every 100th", "hf.thin"), (chance, herding), strict=True
):
    ax.plot(*chain.T, ".", color="0.8", markersize=2)
    ax.plot(*chain[kept].T, **look._replace(linestyle="").line)
    distance = hf.energy_distance(hf.Points(chain[kept]), hf.Points(chain))
    ax.set_title(f"{name}: {distance:.4f}")
# sphinx_gallery_thumbnail_number = 0

# %%
# The number above each picture is the energy distance to the whole chain. Every 100th point comes in clumps and leaves
# holes, much as random draws do.
#
# An average over the chosen points now replaces one over all. Its error is the distance from the average over the whole
# chain, in standard deviations of the function. With every k-th point the error depends on the first point: the line is
# the root mean square over all k starts.

functions = {
    "first coordinate": chain[:, 0],
    "second coordinate": chain[:, 1],
    "distance from 0": np.hypot(*chain.T),
    "left of -2 or not": (chain[:, 0] < -2).astype(float),
}
sizes = np.array([10, 20, 50, 100, 200, 500])
members = [hf.thin(chain, m) for m in sizes]

fig, axes = plt.subplots(1, 4, figsize=(11, 3.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, functions.items(), strict=True):
    off = (values - values.mean()) / values.std()
    by_start = [off.reshape(m, -1).mean(axis=0) for m in sizes]  # a column for each start
    ax.loglog(
        sizes, [np.sqrt(np.mean(error**2)) for error in by_start], label="every k-th", **chance.line
    )
    ax.loglog(
        sizes,
        [abs(off[kept].mean()) for kept in members],
        label="hf.thin",
        **herding._replace(linestyle="").line,
    )
    ax.set(title=name, xlabel="points kept")
axes[0].set_ylabel("error")
axes[0].legend(loc="lower left")

# %%
# A function that is not smooth gains least. An example is one that is 1 to the left of -2 and 0 elsewhere: the average
# over 50 points comes in steps of 1/50.
#
# Pass ``weights`` to thin the particles of a filter in the same way, and name angles in ``circular``. The method, and a
# comparison with other methods in up to 20 dimensions: :doc:`/thinning`.
