"""
Particles for one dimension of three
====================================

You see particles that carry a Gaussian each, their errors beside those of particles for the whole state, and what herding
adds. An aircraft finds its place by the ground below, while its instruments are off.
"""

# %%
# The state is the position along the flight, the error of the speed and that of the barometer. The measurement is the
# height of the ground by barometer and radio altimeter. Only the position enters a nonlinear function.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats

import herdfilter as hf


def ground(x):
    """Return the height of the ground in m at a position in km."""
    return 60 * np.sin(x / 0.7) + 40 * np.sin(x / 0.23 + 1) + 25 * np.cos(x / 1.9)


def aircraft(noise, speed_error):
    """Return the model whose last two dimensions are linear."""
    whole = hf.models.from_functions(
        # in a second 50 m and the error of the speed
        f=lambda x: x + [0.05, 0, 0] + x[:, [1]] * [1, 0, 0],
        h=lambda x: ground(x[:, :1]) + x[:, 2:],
        Q=np.diag([0.01, 0.001, 1.0]) ** 2,
        R=[[noise**2]],
        initial_mean=[0, 0, 0],
        initial_covariance=np.diag([0.5, speed_error, 20.0]) ** 2,
    )
    return hf.models.ConditionallyLinear(whole, linear=[1, 2])


# %%
# A Rao-Blackwellised filter has points for the position alone, each with a Kalman filter for the rest. One dimension has
# exact quantiles: the herded filter takes these, and its random counterpart draws from the same mixture by chance.

proposals = {
    "random, whole state": hf.HerdedProposal(hf.RandomSampling()),
    "bootstrap": hf.RaoBlackwellisedProposal(hf.BootstrapProposal()),
    "random": hf.RaoBlackwellisedProposal(hf.HerdedProposal(hf.RandomSampling())),
    "quantiles": hf.RaoBlackwellisedProposal(hf.HerdedProposal(hf.QuantileSampling())),
}
filters = ["mixture-random", "bootstrap", "herded-random", "herded-quantile"]
looks = dict(zip(proposals, hf.plotting.styles(filters).values(), strict=True))

model = aircraft(noise=10.0, speed_error=0.01)
truth, heights = hf.simulate(model, steps=30, rng=100)
pf = hf.ParticleFilter(model, 50, proposals["quantiles"])
many = hf.make_filter("bootstrap", model, n_particles=20_000, rng=0)
results = pf.run(heights[:4]), many.run(heights[:4])

# %%
# After four seconds: bars are two standard deviations to each side, dark by weight; dots are a tenth of 20,000 particles.

x, _, error = pf.particles.T
sd = np.sqrt(pf.covariance[2, 2] - np.cov(error, aweights=pf.weights, ddof=0))
style = {"color": looks["quantiles"].color, "alpha": 0.15 + 0.85 * pf.weights / pf.weights.max()}
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(*many.particles[::10, [0, 2]].T, ".", color="0.8", ms=2, label="particle of all states")
ax.vlines(x, error - 2 * sd, error + 2 * sd, label="position with its Gaussian", **style)
ax.set(xlabel="position (km)", ylabel="barometer error (m)", xlim=(-0.05, 1.2), ylim=(-20, 70))
ax.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
# One flight proves little. Here are twenty: distances from the posterior mean (3,000 Rao-Blackwellised particles), in its
# standard deviations. In the hard case the altimeter is sharp and the speed poor: most particles are wrong every second.


def errors(model, n=50, flights=20):
    """Return the error of each filter in each flight."""
    found = {name: np.zeros(flights) for name in proposals}
    for k in range(flights):
        _, z = hf.simulate(model, steps=20, rng=100 + k)
        reference = hf.make_filter("rb-bootstrap", model, 3000, rng=0).run(z)
        sd = np.sqrt(np.einsum("tii->ti", reference.covariances))
        for name, proposal in proposals.items():
            means = hf.ParticleFilter(model, n, proposal, rng=k).run(z).means
            found[name][k] = np.sqrt(np.mean(((means - reference.means) / sd) ** 2))
    return found


# The filters drawn by chance have steps with one particle left.
warnings.simplefilter("ignore", hf.DegeneracyWarning)
cases = {"as above": errors(model), "hard": errors(aircraft(noise=5.0, speed_error=0.03))}
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3), sharey=True, layout="constrained")
for ax, (title, found) in zip(axes, cases.items(), strict=True):
    ax.set(title=title, xlabel="error (posterior standard deviations)")
    for name, values in found.items():
        ax.semilogx(values, [name] * len(values), **looks[name]._replace(linestyle="").line)
        if name != "quantiles":
            logs = np.log(found["quantiles"] / values)
            low, high = np.exp(scipy.stats.ttest_1samp(logs, 0).confidence_interval())
            ratio = f"{np.exp(logs.mean()):.2f} (95 % interval {low:.2f} to {high:.2f})"
            print(f"{title}: quantiles over {name}: {ratio}")

# %%
# Kalman filters gain most: see the lowest row. Herding gains as well, over the same draw by chance and over ``bootstrap``,
# which copies particles; less so in the hard case. An error of ten is a filter that took one valley for another.
#
# The method, more dimensions and times: :doc:`/kalman`. A step takes three to five times as long there as with
# particles for the whole state, so that it pays from some 300 particles on.
