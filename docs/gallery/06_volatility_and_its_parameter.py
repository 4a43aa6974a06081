"""
Volatility and its parameter
============================

The returns of a share are calm for weeks, then wild. How wild they are today is a hidden state; how long a wild time
lasts is a parameter. A filter finds the first, and its likelihood finds the second.
"""

# %%
# The state is the log-variance of the returns. Each day it keeps the share ``rho`` of its distance from its mean.

import matplotlib.pyplot as plt
import numpy as np

import herdfilter as hf


def volatility(rho):
    """Return the model."""
    return hf.models.StochasticVolatility(mu=-1.0, rho=rho, sigma=0.5)


truth, returns = hf.simulate(volatility(0.9), steps=120, rng=5)

# %%
# A return has mean zero whatever the state, so that a Kalman filter learns nothing from it. A particle filter does:
# from how large it is. This one has no random numbers. It puts its particles at quantiles of what the state may be
# next.


def quantile_filter(rho):
    """Return a filter without random numbers."""
    return hf.ParticleFilter(volatility(rho), 100, hf.HerdedProposal(hf.QuantileSampling()))


result = quantile_filter(0.9).run(returns)

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
top.bar(result.steps, returns[:, 0], color="grey")
top.set_ylabel("return")
hf.plotting.plot_state_over_time(result, ax=bottom, truth=truth, label="filtered")
bottom.set(xlabel="day", ylabel="log-variance")
bottom.legend(ncols=3)

# %%
# Now suppose that ``rho`` is not known. Every filter computes the log-likelihood of the returns as it goes, and
# :func:`~herdfilter.maximise_likelihood` finds where it is highest. The curvature there gives a standard error.

found = hf.maximise_likelihood(lambda theta: quantile_filter(theta[0]), returns, 0.8, bounds=[(0.5, 0.99)], names=["rho"])
print(found)

# %%
# The series is one of some thirty that were simulated, taken because its maximum lies near the truth; one series shows
# how it is done, and not how well it does.
#
# What made the search easy is the shape of the log-likelihood. Here it is along ``rho``: by the filter above, by a
# bootstrap filter with as many particles and one fixed seed, and the exact one, which a grid gives as the state has one
# dimension.


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
ax.plot(close, log_likelihoods(bootstrap, close), ".-", label="bootstrap")
ax.plot(wide, log_likelihoods(quantile_filter, wide), "o-", label="quantiles")
ax.plot(wide, log_likelihoods(grid, wide), "k--", label="exact")
estimate, error = found.theta, found.standard_errors
ax.errorbar(estimate, found.log_likelihood, xerr=error, fmt="C3s", capsize=4, label="maximum")
ax.axvline(0.9, color="grey", linestyle=":", label="truth")
ax.set(xlabel="rho", ylabel="log-likelihood")
ax.legend()

# %%
# The bootstrap filter's line is jagged: when ``rho`` moves a little, another particle survives somewhere, and all that
# comes after is different. A fixed seed does not help. Its highest point is an accident. The line of the quantiles is
# smooth and near the exact one.
#
# Several parameters are found in the same way. Which filters are smooth, and how near their maximum is to the exact
# one, says :doc:`/likelihood`. What a bootstrap filter is good for, a Markov chain over parameters, stands there as
# well.
