"""
Points from a mixture
=====================

Fifty points represent a Gaussian mixture: drawn at random, herded with a kernel, and herded coordinate by coordinate.
"""

# %%
# A mixture has weights (M,), means (M, d) and covariances (M, d, d).

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf

mixture = hf.GaussianMixture(
    weights=[0.5, 0.3, 0.2],
    means=[[-2.0, 0.0], [2.0, 1.0], [0.5, -2.5]],
    covariances=[[[1.0, 0.6], [0.6, 1.0]], [[0.4, -0.2], [-0.2, 0.8]], 0.3 * np.eye(2)],
)

# %%
# Every sampler has the same method. Only the first one uses a random number. Each has the colour of the
# filters that draw in its way.

samplers = {
    "random": hf.RandomSampling(),
    "kernel herding": hf.KernelHerding(),
    "herded Gibbs": hf.ContinuousHerdedGibbs(),
}
points = {name: sampler.sample(mixture, 50, rng=0) for name, sampler in samplers.items()}
looks = dict(
    zip(
        samplers, hf.plotting.styles(["bootstrap", "herded-kh", "herded-chg"]).values(), strict=True
    )
)

fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, drawn) in zip(axes, points.items(), strict=True):
    hf.plotting.plot_mixture(mixture, ax=ax, color="0.6")
    hf.plotting.plot_points(drawn, ax=ax, color=looks[name].color, marker=looks[name].marker)
    ax.set_title(f"{name}: {hf.energy_distance(drawn, mixture):.4f}")
# sphinx_gallery_thumbnail_number = 0

# %%
# The number above each picture is the energy distance of the points from the mixture. It has no bandwidth that could
# favour a sampler. Random points also reach a given distance, but need more points: the expected distance of :math:`n`
# independent draws falls as :math:`1/n`.

sizes = np.array([10, 20, 50, 100, 200])
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.loglog(
    sizes,
    [hf.expected_energy_distance(mixture, n) for n in sizes],
    "--",
    color=looks["random"].color,
    label="random, expected",
)
for name in ("kernel herding", "herded Gibbs"):
    distances = [hf.energy_distance(samplers[name].sample(mixture, n), mixture) for n in sizes]
    ax.loglog(sizes, distances, label=name, **looks[name].line)
ax.set(xlabel="number of points", ylabel="energy distance")
ax.legend()

# %%
# The equations of herding: :doc:`/theory_herding`. All samplers: :doc:`/samplers`. The guide says which one
# suits: :doc:`/guide`.
