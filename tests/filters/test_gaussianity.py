"""What the automatic proposal looks at: shares of variance and cumulants, against formulas written out here."""

import numpy as np
import pytest
import scipy.linalg

from herdfilter.angles import wrap_angles
from herdfilter.filters import Particles, Transition
from herdfilter.filters.proposals.gaussianity import Gaussianity, narrow, nonlinear_share, over_chance
from herdfilter.filters.proposals.lookahead import Ancestors
from tests.helpers import model_of, normal


def cumulants(x, weights):
    """Squared third and fourth cumulants of whitened points, over what chance makes of them."""
    centred = x - weights @ x
    root = np.linalg.cholesky((weights * centred.T) @ centred)
    z, d = np.linalg.solve(root, centred.T).T, x.shape[1]
    third = np.einsum("i,ia,ib,ic->abc", weights, z, z, z)
    fourth = np.einsum("i,i,ia,ib->ab", weights, (z**2).sum(axis=1), z, z) - (d + 2) * np.eye(d)
    ess = 1 / (weights**2).sum()
    scale = 24 if d == 1 else 4 * (d + 4)
    entries = d * (d + 1) / 2
    return ess * (third**2).sum() / 6 / (entries * (d + 2) / 3), ess * (fourth**2).sum() / scale / entries


def skewed(rng, n, d):
    return rng.exponential(size=(n, d))


def two_modes(rng, n, d):
    return 0.3 * rng.standard_normal((n, d)) + np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("shape", [skewed, two_modes, np.random.Generator.normal])
@pytest.mark.parametrize(("n", "d"), [(60, 1), (150, 2), (150, 3)])
def test_kernels_leave_of_the_cumulants_what_is_not_chance(shape, n, d):
    """Of variance they take the share h^2, of third cumulants they leave (1 - h^2)^(3/2), of fourth (1 - h^2)^2.

    h^2 is the least of what leaves either, and of the -2/3th power of the effective sample size.
    """
    rng = np.random.default_rng(n + d)
    x = shape(rng, size=(n, d)) if shape is np.random.Generator.normal else shape(rng, n, d)
    weights = rng.dirichlet(np.full(n, 5.0))
    third, fourth = over_chance(
        np.linalg.solve(np.linalg.cholesky(np.cov(x.T, aweights=weights, ddof=0).reshape(d, d)), (x - weights @ x).T).T,
        weights,
    )
    assert (third, fourth) == pytest.approx(cumulants(x, weights))
    found = Gaussianity.of(Particles(x, np.log(weights)), ())
    kept = [max(0.0, 1 - 1 / c) for c in (third, fourth)]
    left = 1 - found.width**2
    chance = (weights @ weights) ** (2 / 3)
    assert left**3 >= kept[0] - 1e-9
    assert left**4 >= kept[1] - 1e-9
    at_a_bound = (left**3 - kept[0], left**4 - kept[1], found.width**2 - chance)
    assert min(np.abs(at_a_bound)) < 1e-9
    assert found.width**2 <= chance + 1e-12
    assert found.gaussian == (max(kept) <= 0.5)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_noise_is_narrow_where_its_least_share_of_the_covariance_is_below_the_bound(scale):
    rng = np.random.default_rng(3)
    state, noise = (scale * rng.standard_normal((3, 3)) * [1.0, 1e3, 1.0] for _ in range(2))
    noise, whole = noise.T @ noise, state.T @ state + noise.T @ noise
    least = scipy.linalg.eigh(noise, whole, eigvals_only=True)[0]
    assert not narrow(noise, whole, 0.99 * least)
    assert narrow(noise, whole, 1.01 * least)
    one_direction = np.diag([0.0, 1.0, 1.0]) * noise
    assert narrow(one_direction, one_direction + whole, 1e-9)  # nothing of the noise, nor of the whole


@pytest.mark.parametrize("circular", [(), (0,)])
def test_additive_noise_and_the_same_as_a_function_spread_successors_alike(circular):
    """Of a linear transition both are F P F' + Q; the heading is on the seam, its means are taken about their own."""
    rng = np.random.default_rng(3)
    F, root = np.array([[1.0, 0.3], [0.0, 0.8]]), np.array([[0.1, 0.0], [0.05, 0.2]])
    x = np.array([3.1, 0.0]) + 0.2 * rng.standard_normal((500, 2)) @ [[1.0, 0.4], [0.0, 1.0]]
    particles = Particles(wrap_angles(x, circular), np.log(rng.dirichlet(np.full(500, 5.0))))
    common = {"circular": circular, "log_likelihood": lambda z, x, step: x[:, 0]}
    mean = lambda x, dt, control, step: x @ F.T  # noqa: E731
    additive = model_of(
        normal([0.0, 0.0]), transition_mean=mean, transition_covariance=lambda dt, step: root @ root.T, **common
    )
    function = model_of(
        normal([0.0, 0.0]), noise_dim=2, transition=lambda x, v, dt, control, step: x @ F.T + v @ root.T, **common
    )
    shape = Gaussianity.of(particles, circular)
    noise, whole = Ancestors.of(Transition(additive), particles).spreads()
    np.testing.assert_allclose(noise, root @ root.T, atol=1e-12)
    np.testing.assert_allclose(
        whole, F @ particles.moments(circular)[1] @ F.T + root @ root.T, rtol=0.2 if circular else 1e-9
    )
    one = Ancestors.gaussian(Transition(function), shape.mean, shape.root).spreads()
    np.testing.assert_allclose(one, (noise, F @ shape.root @ shape.root.T @ F.T + noise), rtol=1e-9)


def test_the_share_that_no_linear_function_explains_is_that_of_the_worst_dimension():
    rng = np.random.default_rng(4)
    noise = rng.standard_normal((500, 2))
    bend = noise[:, 0] ** 2
    x = np.column_stack([3.0 + noise[:, 0], noise @ [1.0, 2.0] + 0.5 * bend, np.full(500, 7.0)])
    design = np.column_stack([np.ones(500), noise])
    rest = 0.5 * (bend - design @ np.linalg.lstsq(design, bend, rcond=None)[0])
    assert nonlinear_share(x, noise) == pytest.approx((rest @ rest) / (500 * x[:, 1].var()), rel=1e-9)
    assert nonlinear_share(x[:, [0, 2]] + 100.0, noise) == pytest.approx(0, abs=1e-20)
