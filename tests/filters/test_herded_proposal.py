"""Herded prediction: the defensive mixture and its importance weights."""

import numpy as np
import pytest
from helpers import in_units, model_of

from herdfilter.filters import HerdedProposal, ParticleFilter
from herdfilter.mixture import GaussianMixture
from herdfilter.models import LinearGaussian
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, RandomSampling

every_sampler = pytest.mark.parametrize(
    "sampler", [KernelHerding(), ContinuousHerdedGibbs(), RandomSampling()], ids=["KH", "CHG", "random"]
)


@every_sampler
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_weights_are_the_ratio_of_the_predictive_density_to_the_one_drawn_from(walk, sampler, share):
    pf = ParticleFilter(walk, 30, HerdedProposal(sampler, share), rng=0)
    pf.predict()
    pf.update([1.5])
    before, x = pf.weights, pf.particles
    pf.predict()
    predictive = GaussianMixture(before, x, walk.transition_covariance(1.0, 2))
    even = GaussianMixture(np.full(30, 1 / 30), x, walk.transition_covariance(1.0, 2))
    p, q = (np.exp(m.log_density(pf.particles)) for m in (predictive, even))
    ratio = p / ((1 - share) * p + share * q)
    np.testing.assert_allclose(pf.weights, ratio / ratio.sum(), rtol=1e-9)
    assert ratio.max() <= 1 / (1 - share) + 1e-12


TWO_ROOMS = model_of(  # a state stays in the room where it is; an observation is the log-odds of the first room
    GaussianMixture([0.5, 0.5], [[0.0], [20.0]], [[1.0]]),
    transition_mean=lambda x, dt, control, step: np.where(x < 10, 0.5 * x, 20 + 0.5 * (x - 20)),
    transition_covariance=lambda dt, step: np.array([[1.0]]),
    log_likelihood=lambda z, x, step: np.where(x[:, 0] < 10, z[0], 0.0),
)


@pytest.mark.parametrize("sampler", [KernelHerding(), ContinuousHerdedGibbs()], ids=["KH", "CHG"])
def test_a_mode_too_light_for_a_point_is_kept_by_the_defensive_share_and_lost_without(sampler):
    """The second room falls to 0.06 percent, a quarter of a particle, and then turns out to be right.

    With the defensive share it has some sixty points: one more or less is an error of 0.017 in the evidence.
    """
    z = np.array([[7.4], [-20.0]])
    kept, lost = (ParticleFilter(TWO_ROOMS, 400, HerdedProposal(sampler, share), rng=1).run(z) for share in (0.3, 0.0))
    assert kept.means[-1, 0] == pytest.approx(20, abs=0.5)
    assert lost.means[-1, 0] == pytest.approx(0, abs=0.5)
    evidence = 0.5 + 0.5 * np.exp(np.cumsum(z))  # exact, since the room never changes
    np.testing.assert_allclose(np.cumsum(kept.log_likelihoods), np.log(evidence), atol=0.05)


OBSERVATIONS = [[0.3], [0.9], [2.1], [2.0], [2.6], [3.9]]


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-4, 1e4), (1e8, 1e-8)])
@pytest.mark.parametrize("noise", [(0.0, 0.2), (0.1, 0.2)])
def test_the_units_of_the_state_do_not_matter(units, noise):
    proposal = HerdedProposal(RandomSampling())
    model = LinearGaussian([[1.0, 1.0], [0.0, 0.9]], [[1.0, 0.0]], np.diag(noise), [[1.0]], [0.0, 0.0], np.diag([1.0, 0.5]))
    plain, scaled = (ParticleFilter(m, 40, proposal, rng=3).run(OBSERVATIONS) for m in (model, in_units(model, units)))
    np.testing.assert_allclose(scaled.means / units, plain.means, rtol=1e-6)
    np.testing.assert_allclose(scaled.log_likelihoods, plain.log_likelihoods, rtol=1e-6)


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
def test_a_bad_share_is_named(share):
    with pytest.raises(ValueError, match=f"defensive_share: expected from 0 to below 1, got {share!r}"):
        HerdedProposal(RandomSampling(), share)
