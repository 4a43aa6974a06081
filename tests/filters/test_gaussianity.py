"""What the automatic proposal looks at: shares of variance and cumulants, against formulas written out here."""

import numpy as np
import pytest
import scipy.linalg
from helpers import cases
from numpy.random import default_rng
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.filters.proposals.gaussianity import Gaussianity, narrow, over_chance, standardised


def cumulants(x, weights):
    """Squared third and fourth cumulants of whitened points, over what chance makes of them."""
    centred = x - weights @ x
    root = np.linalg.cholesky((weights * centred.T) @ centred)
    z = np.linalg.solve(root, centred.T).T
    d = x.shape[1]
    third = np.einsum("i,ia,ib,ic->abc", weights, z, z, z)
    fourth = np.einsum("i,i,ia,ib->ab", weights, (z**2).sum(axis=1), z, z) - (d + 2) * np.eye(d)
    ess = 1 / (weights**2).sum()
    scale = 24 if d == 1 else 4 * (d + 4)
    entries = d * (d + 1) / 2
    return ess * (third**2).sum() / 6 / (entries * (d + 2) / 3), ess * (
        fourth**2
    ).sum() / scale / entries


def skewed(rng, n, d):
    return rng.exponential(size=(n, d))


def normal(rng, n, d):
    return rng.standard_normal((n, d))


def two_modes(rng, n, d):
    return 0.3 * rng.standard_normal((n, d)) + np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]


@cases(
    "shape n d",
    (skewed, 60, 1),
    (two_modes, 60, 1),
    (two_modes, 150, 2),
    (skewed, 150, 3),
    (normal, 150, 3),
)
def test_kernels_leave_of_the_cumulants_what_is_not_chance(shape, n, d):
    """Of variance they take the share h^2, of third cumulants they leave (1 - h^2)^(3/2), of fourth (1 - h^2)^2.

    h^2 is the least of what leaves either, and of the -2/3th power of the effective sample size.
    """
    rng = default_rng(n + d)
    x = shape(rng, n, d)
    weights = rng.dirichlet(np.full(n, 5.0))
    third, fourth = over_chance(standardised(x, weights)[2], weights)
    assert (third, fourth) == pytest.approx(cumulants(x, weights))
    found = Gaussianity(hf.Particles(x, np.log(weights)), ())
    kept = [max(0.0, 1 - 1 / c) for c in (third, fourth)]
    left = 1 - found.width**2
    chance = (weights @ weights) ** (2 / 3)
    assert left**3 >= kept[0] - 1e-9
    assert left**4 >= kept[1] - 1e-9
    assert min(np.abs((left**3 - kept[0], left**4 - kept[1], found.width**2 - chance))) < 1e-9
    assert found.width**2 <= chance + 1e-12
    assert found.gaussian == (max(kept) <= 0.5)


@cases("scale", 1.0, 1e-4)
def test_noise_is_narrow_where_its_least_share_of_the_covariance_is_below_the_bound(scale):
    rng = default_rng(3)
    state, noise = (scale * rng.standard_normal((3, 3)) * [1.0, 1e3, 1.0] for _ in range(2))
    noise, whole = noise.T @ noise, state.T @ state + noise.T @ noise
    least = scipy.linalg.eigh(noise, whole, eigvals_only=True)[0]
    assert not narrow(noise, whole, 0.99 * least)
    assert narrow(noise, whole, 1.01 * least)
    one_direction = np.diag([0.0, 1.0, 1.0]) * noise
    # nothing of the noise, nor of the whole
    assert narrow(one_direction, one_direction + whole, 1e-9)


@cases("where", "anywhere", "on a plane", "far away")
def test_standardised_points_are_the_points_in_units_of_the_factor_of_their_covariance(where):
    """Also where the covariance is singular, or the offset takes nearly all digits."""
    rng = default_rng(4)
    x = rng.normal(size=(60, 2))
    weights = rng.dirichlet(np.full(60, 5.0))
    x = {
        "anywhere": x + 5.0,
        "on a plane": (x + 5.0) @ [[1.0, 0.5, 0.3], [0.0, 2.0, -1.0]],
        "far away": x + 1e12,
    }[where]
    mean, root, z = standardised(x, weights)
    centred = x - mean
    assert_allclose(mean, weights @ x, rtol=1e-12)
    assert_allclose(weights @ centred, 0.0, atol=1e-3 if where == "far away" else 1e-12)
    assert_allclose(root @ root.T, (weights * centred.T) @ centred, rtol=1e-3, atol=1e-6)
    assert_allclose(z @ root.T, centred, rtol=1e-3, atol=1e-3 if where == "far away" else 1e-6)


@cases("d n", (1, 200), (2, 200), (2, 2000), (3, 1000), (6, 200), (6, 2000))
def test_chance_in_ranked_particles_that_stay_gaussian_is_what_is_said(d, n):
    model = hf.models.linear_chain(d)
    _, z = hf.simulate(model, 20, rng=d)
    pf = hf.ParticleFilter(model, n, proposal=hf.RankedProposal())
    excess = []
    for observation in z:
        pf.predict()
        pf.update(observation)
        excess.append(Gaussianity(pf._current(), (), ranked=True).excess(pf.record.ess))
    assert 0.02 < np.median(excess) < 1
