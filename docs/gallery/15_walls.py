"""
A robot that cannot pass walls
==============================

You see what it is worth to know that a robot is never inside a wall. It drives from one room into the other, and
measures its distance from a single beacon, which leaves a ring of places. The walls cut the ring.
"""

# %%
# A state is feasible if it lies in a room or in the door between them. The limits are part of the model: ``feasible``
# takes states (n, 2) and returns a truth value for each. Only states count, not the way between two of them, so the
# wall has to be thicker than a step is long.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf

BEACON = np.array([1.0, 8.0])


def rooms(x):
    """Two rooms of 6 m x 6 m, with a wall of 2 m between them and a door in it."""
    in_wall = (np.abs(x[:, 0] - 7) < 1) & (np.abs(x[:, 1] - 2) > 0.5)
    return (x > 0).all(axis=1) & (x[:, 0] < 14) & (x[:, 1] < 6) & ~in_wall


def robot(**limits):
    """Return a model of a robot in the plane, whose wheels slip; it starts anywhere in the first room."""
    return hf.models.from_functions(
        f=lambda x, control: x + control,
        h=lambda x: np.linalg.norm(x - BEACON, axis=1),
        Q=0.15**2 * np.eye(2),
        R=[[0.3**2]],
        initial_mean=[3.0, 3.0],
        initial_covariance=4.0 * np.eye(2),
        position_dims=[0, 1],
        **limits,
    )


# %%
# The robot drives to the door, through it, and up in the second room. The simulation draws each step again until it
# is inside.

drive = [[0.6, 0.0]] * 14 + [[0.1, 0.35]] * 8
models = {"with walls": robot(feasible=rooms), "without": robot()}
truth, ranges = hf.simulate(
    models["with walls"], rng=4, controls=drive, initial=[2.0, 2.0]
)  # the filters do not know where it starts
results = {
    name: hf.make_filter("auto", model, n_particles=500).run(
        ranges, controls=drive, keep_particles=True
    )
    for name, model in models.items()
}
looks = dict(zip(models, hf.plotting.styles(["auto", "bootstrap"]).values(), strict=True))

fig, axes = plt.subplots(2, 3, figsize=(9.5, 4.6), sharex=True, sharey=True, layout="constrained")
for row, (name, result) in zip(axes, results.items(), strict=True):
    for ax, k in zip(row, (0, 9, 15), strict=True):
        shown = result.weights[k] > 0
        ax.plot(*result.particles[k][shown].T, ".", color=looks[name].color, markersize=2)
        ax.plot(*truth[k], "o", color="black", markerfacecolor="none", markersize=10)
        for low, height in ((0.0, 1.5), (2.5, 3.5)):
            ax.add_patch(plt.Rectangle((6, low), 2, height, color="0.7"))
        ax.set(title=f"step {k + 1}", xlim=(0, 14), ylim=(0, 6), aspect="equal")
    row[0].set_ylabel(f"{name}\ny (m)")
fig.supxlabel("x (m)", fontsize="medium")
# sphinx_gallery_thumbnail_number = 0

# %%
# After the door the particles know both coordinates, from distances alone: those that were elsewhere on the ring have met
# the wall. Without walls the ring only turns. One drive proves little, so here are twenty.

errors = {name: [] for name in models}
for seed in range(20):
    truth, ranges = hf.simulate(models["with walls"], rng=seed, controls=drive, initial=[2.0, 2.0])
    for name, model in models.items():
        result = hf.make_filter("auto", model, n_particles=500).run(ranges, controls=drive)
        errors[name].append(np.linalg.norm(result.means - truth, axis=1))

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, by_drive in errors.items():
    by_step = np.sqrt(np.mean(np.square(by_drive), axis=0))
    ax.plot(np.arange(1, len(by_step) + 1), by_step, label=name, **looks[name].line)
    print(f"{name}: {np.sqrt(np.mean(np.square(by_drive))):.2f} m root mean square")
ax.set(xlabel="step", ylabel="error (m)")
ax.legend()
print(f"share of points inside: {results['with walls'].feasible_share.round(2)}")

# %%
# The log-likelihood includes the probability of staying inside, so that two maps can be compared by it. What a filter
# does with limits, and which filters know them: :doc:`/limits`.
