"""
Volatility and its parameter
============================

The returns of a share are calm for weeks, then wild. Their volatility today is a hidden state; a parameter sets how
long wild times last. A filter finds the state, and its likelihood finds the parameter.
"""

# %%
# The state is the log-variance of the returns. Each day it keeps the fraction ``rho`` of its distance from its mean.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf


def volatility(rho):
    """Return the model."""
    return hf.models.StochasticVolatility(mu=-1.0, rho=rho, sigma=0.5)


truth, returns = hf.simulate(volatility(0.9), steps=120, rng=5)

# %%
# A return has mean zero in every state, so a Kalman filter learns nothing from it. A particle filter learns from its
# size. This filter has no random numbers: it puts its particles at quantiles of the predicted state.


def quantile_filter(rho):
    """Return a filter without random numbers."""
    return hf.ParticleFilter(volatility(rho), 100, hf.HerdedProposal(hf.QuantileSampling()))


result = quantile_filter(0.9).run(returns)
looks = hf.plotting.styles(["bootstrap", "herded-quantile"])
grey, green = looks["bootstrap"].color, looks["herded-quantile"].color

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
top.bar(result.steps, returns[:, 0], color="0.5")
top.set_ylabel("return")
hf.plotting.plot_state_over_time(result, ax=bottom, truth=truth, color=green, label="filtered")
bottom.set(xlabel="day", ylabel="log-variance")
bottom.legend(ncols=3)

# %%
# Now suppose that ``rho`` is unknown. Every filter computes the log-likelihood of the returns, and
# :func:`~herdfilter.maximise_likelihood` finds its maximum. The curvature there gives a standard error.

found = hf.maximise_likelihood(
    lambda theta: quantile_filter(theta[0]), returns, 0.8, bounds=[(0.5, 0.99)], names=["rho"]
)
print(found)

# %%
# The series is one of some thirty that were simulated, taken because its maximum lies near the truth. One series shows
# the method, not its accuracy.
#
# The shape of the log-likelihood made the search easy. The figure has it along ``rho``, three times: by the filter
# above, by a bootstrap filter with as many particles and one fixed seed, and exactly, by a grid. The grid is possible
# because the state has one dimension.


def bootstrap(rho):
    """Return a filter with random numbers, the same ones every time."""
    return hf.ParticleFilter(volatility(rho), 100, rng=0)


def grid(rho):
    """Return the exact filter."""
    return hf.GridFilter(volatility(rho), lower=-14.0, upper=12.0, points=211)


def log_likelihoods(build, rhos):
    """Run a filter for each value of the parameter."""
    return [build(rho).run(returns).log_likelihood for rho in rhos]


close, wide = np.linspace(0.72, 0.98, 53), np.linspace(0.72, 0.98, 11)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(close, log_likelihoods(bootstrap, close), ".-", color=grey, label="bootstrap")
ax.plot(wide, log_likelihoods(quantile_filter, wide), "o-", color=green, label="quantiles")
ax.plot(wide, log_likelihoods(grid, wide), "k--", label="exact")
estimate, error = found.theta, found.standard_errors
ax.errorbar(
    estimate, found.log_likelihood, xerr=error, fmt="s", color=green, capsize=4, label="maximum"
)
ax.axvline(0.9, color="0.5", linestyle=":", label="truth")
ax.set(xlabel="rho", ylabel="log-likelihood")
ax.legend()
# sphinx_gallery_thumbnail_number = 0

# %%
# The line of the bootstrap filter is jagged: if ``rho`` moves a little, another particle survives somewhere, and all
# that comes after is different. A fixed seed does not help. Its highest point is an accident. The line of the quantiles
# is smooth and near the exact one.
#
# You estimate several parameters in the same way. Next: :doc:`/parameters` lists the filters whose likelihood is
# smooth, and compares their maxima with the exact ones. It also shows the use of a bootstrap filter, a Markov chain
# over parameters.
