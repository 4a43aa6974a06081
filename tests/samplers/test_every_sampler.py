"""Every sampler, run through what any sampler must do."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from herdfilter.discrepancy import energy_distance
from herdfilter.kernels import kernel_covariance
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, RandomSampling, Sampler

PUBLISHED = ContinuousHerdedGibbs(target="paper")
LINE = GaussianMixture([0.3, 0.7], [[-1.0], [2.0]], [[[0.5]], [[2.0]]])


def whitened_offset(points, mixture):
    """Difference of the means in standard deviations of the mixture, along its worst direction."""
    return np.linalg.norm(np.linalg.solve(np.linalg.cholesky(mixture.covariance), points.mean - mixture.mean))


# Form


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("components", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 23])
def test_n_finite_points_with_weights_that_sum_to_one(sampler, random_mixture, d, components, n):
    points = sampler.sample(random_mixture(0, d, components), n, np.random.default_rng(0))
    assert points.x.shape == (n, d)
    assert points.weights.shape == (n,)
    assert np.isfinite(points.x).all()
    assert (points.weights >= 0).all()
    assert points.weights.sum() == pytest.approx(1, abs=1e-12)


def test_samplers_follow_the_contract(sampler):
    assert isinstance(sampler, Sampler)


def test_shared_and_repeated_covariances_give_the_same_points(sampler, random_mixture):
    mixture, cov = random_mixture(1, 2), np.array([[1.0, 0.4], [0.4, 0.5]])
    shared = GaussianMixture(mixture.weights, mixture.means, cov)
    repeated = GaussianMixture(mixture.weights, mixture.means, shared.covariances)
    np.testing.assert_allclose(
        sampler.sample(shared, 15, np.random.default_rng(0)).x,
        sampler.sample(repeated, 15, np.random.default_rng(0)).x,
        atol=1e-5,
    )


def test_the_mixture_is_left_alone(sampler, random_mixture):
    mixture = random_mixture(2, 2)
    before = pickle.dumps((mixture.weights, mixture.means, mixture.covariances.copy()))
    sampler.sample(mixture, 10, np.random.default_rng(0)).x[:] = np.nan
    assert pickle.dumps((mixture.weights, mixture.means, mixture.covariances.copy())) == before


@pytest.mark.parametrize(
    "components",
    [
        5,
    ],
)
def test_points_handed_out_earlier_stay_and_later_ones_are_unharmed(
    deterministic, random_mixture, components
):
    """A caller may write into what it got."""
    mixture = random_mixture(3, 2, components)
    first = deterministic.sample(mixture, 10)
    expected = first.x.copy(), first.weights.copy()
    first.x[:], first.weights[:] = np.nan, np.nan
    again = deterministic.sample(mixture, 10)
    np.testing.assert_array_equal(again.x, expected[0])
    np.testing.assert_array_equal(again.weights, expected[1])


@pytest.mark.parametrize("n", [0, -1, 2.0, "10", None, True])
def test_the_number_of_points_is_checked(sampler, n):
    with pytest.raises(ValueError, match=f"n: expected an integer of at least 1, got {n!r}"):
        sampler.sample(LINE, n)


@pytest.mark.parametrize("kind", [KernelHerding, ContinuousHerdedGibbs])
def test_samplers_of_equal_options_are_equal_and_hash_alike(kind):
    """So that they can be keys, whatever form the bandwidth was given in."""
    for one, same, other in ((0.5, np.float64(0.5), 0.6), (np.eye(2), [[1, 0], [0, 1]], 2 * np.eye(2))):
        assert kind(bandwidth=one) == kind(bandwidth=same) != kind(bandwidth=other)
        assert len({kind(bandwidth=one), kind(bandwidth=same), kind(bandwidth=other), kind()}) == 3


# Difficult mixtures


@pytest.mark.parametrize("d", [1, 3])
def test_a_component_of_weight_zero_might_as_well_not_be_there(sampler, random_mixture, d):
    rng, mixture = np.random.default_rng, random_mixture(4, d)
    padded = GaussianMixture(
        np.append(0.0, mixture.weights),
        np.vstack([np.full(d, 50.0), mixture.means]),
        np.concatenate([[9 * np.eye(d)], mixture.covariances]),
    )
    a, b = sampler.sample(mixture, 30, rng(0)), sampler.sample(padded, 30, rng(0))
    np.testing.assert_allclose(a.x, b.x, atol=1e-5)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-12)


@pytest.mark.parametrize("thickness", [1e-7, 0.0])
@pytest.mark.parametrize("components", [1, 3])
def test_flat_mixtures_give_points_in_the_plane(sampler, thickness, components):
    """Components without extent across one direction, to rounding: the points keep to the plane and fill it."""
    rng = np.random.default_rng(5)
    normal = np.array([1.0, -2.0, 2.0]) / 3
    flat = np.eye(3) - np.outer(normal, normal)
    means = 2 * rng.standard_normal((components, 3)) @ flat
    mixture = GaussianMixture(np.ones(components), means, flat + thickness**2 * np.outer(normal, normal))
    points = sampler.sample(mixture, 60, np.random.default_rng(1))
    assert np.abs(points.x @ normal).max() < 1e-3
    in_plane = np.linalg.svd(flat)[0][:, :2]
    spread = in_plane.T @ points.covariance @ in_plane
    target = in_plane.T @ mixture.covariance @ in_plane
    assert np.linalg.eigvals(np.linalg.solve(target, spread)).real.min() > 0.3


def test_a_single_place_gives_points_there(sampler):
    """Components without any extent, at the same place."""
    mixture = GaussianMixture([0.5, 0.5], [[3.0, -4.0]] * 2, np.zeros((2, 2)))
    points = sampler.sample(mixture, 10, np.random.default_rng(0))
    assert np.abs(points.x - [3.0, -4.0]).max() < 1e-3


@pytest.mark.parametrize("distance", [30.0, 1e4, 1e8])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_far_components_get_their_shares(sampler, distance, d):
    if sampler == PUBLISHED and d > 1:
        pytest.skip("as published the sampler cannot leave a mode: see test_herded_gibbs")
    means = np.zeros((3, d))
    means[1, 0], means[2, -1] = distance, -distance
    mixture = GaussianMixture([0.5, 0.3, 0.2], means, np.eye(d))
    points, n = sampler.sample(mixture, 40, np.random.default_rng(2)), 40
    nearest = np.argmin(((points.x[:, None] - means) ** 2).sum(-1), axis=1)
    counts = np.bincount(nearest, minlength=3)
    allowed = 4.5 * np.sqrt(n / 4) if sampler == RandomSampling() else 2
    assert np.abs(counts - n * mixture.weights).max() <= allowed


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_points_follow_the_unit(sampler, random_mixture, unit):
    mixture = random_mixture(6, 2)
    scaled = GaussianMixture(mixture.weights, unit * mixture.means, unit**2 * mixture.covariances)
    points, rng = sampler.sample(mixture, 40, np.random.default_rng(0)), np.random.default_rng(0)
    np.testing.assert_allclose(sampler.sample(scaled, 40, rng).x / unit, points.x, atol=1e-4)


def test_points_follow_the_origin(sampler, random_mixture):
    mixture, shift = random_mixture(7, 2), np.array([1e5, -1e5])
    away = GaussianMixture(mixture.weights, mixture.means + shift, mixture.covariances)
    points, rng = sampler.sample(mixture, 40, np.random.default_rng(0)), np.random.default_rng(0)
    np.testing.assert_allclose(sampler.sample(away, 40, rng).x - shift, points.x, atol=1e-4)


# Determinism


def test_deterministic_points_do_not_depend_on_the_seed(deterministic, random_mixture):
    mixture = random_mixture(8, 3)
    expected = deterministic.sample(mixture, 30).x
    for rng in (np.random.default_rng(0), np.random.default_rng(1)):
        state = rng.bit_generator.state
        np.testing.assert_array_equal(deterministic.sample(mixture, 30, rng).x, expected)
        assert rng.bit_generator.state == state


PROGRAM = """
import hashlib, numpy as np
from herdfilter.kernels import kernel_covariance
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, MappedSampling
rng = np.random.default_rng(9)
digest = hashlib.sha256()
for d, shared in ((1, False), (2, True), (3, False)):
    roots = rng.standard_normal((1 if shared else 4, d, d))
    mixture = GaussianMixture(rng.dirichlet(np.ones(4)), 3 * rng.standard_normal((4, d)),
                              (roots @ roots.transpose(0, 2, 1) + np.eye(d))[0 if shared else slice(None)])
    for sampler in (KernelHerding(), KernelHerding(0.3), ContinuousHerdedGibbs(), ContinuousHerdedGibbs("paper", 0.4),
                    MappedSampling(KernelHerding()), MappedSampling(ContinuousHerdedGibbs())):
        points = sampler.sample(mixture, 40)
        digest.update(points.x.tobytes() + points.weights.tobytes())
print(digest.hexdigest())
"""


def test_deterministic_points_are_bit_identical_in_two_processes():
    seen = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout.strip())
    assert len(seen) == 1
    assert len(seen.pop()) == len(hashlib.sha256().hexdigest())


# Quality


def test_points_have_the_mean_of_the_mixture(sampler, random_mixture):
    if sampler == PUBLISHED:
        pytest.skip("as published the sampler drifts off: see test_herded_gibbs")
    random = sampler == RandomSampling()
    for seed in range(3):
        mixture = random_mixture(10 + seed, 2)
        few, many = (sampler.sample(mixture, n, np.random.default_rng(seed)) for n in (20, 320))
        assert whitened_offset(few, mixture) < (4.5 / np.sqrt(20) if random else 0.2)
        assert whitened_offset(many, mixture) < (4.5 / np.sqrt(320) if random else 0.03)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_order_of_the_components_does_not_matter(deterministic, random_mixture, d):
    """The points may differ, where two places are equally good; their quality does not."""
    if deterministic == PUBLISHED:
        pytest.skip("as published the sampler drifts off: see test_herded_gibbs")
    mixture = random_mixture(13, d)
    turned = GaussianMixture(mixture.weights[::-1], mixture.means[::-1], mixture.covariances[::-1])
    one, other = (energy_distance(deterministic.sample(m, 100), mixture) for m in (mixture, turned))
    assert 0.8 < one / other < 1.25


def skewed(mixture, seed):
    """The mixture in other units, up to eight orders of magnitude apart, and mixed coordinates: x -> A x."""
    rng, d = np.random.default_rng(seed), mixture.dim
    A = np.diag(10.0 ** rng.uniform(-4, 4, d)) @ rng.standard_normal((d, d))
    return A, GaussianMixture(mixture.weights, mixture.means @ A.T, A @ mixture.covariances @ A.T)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_herded_gibbs_points_follow_any_affine_map_of_the_state(random_mixture, d):
    mixture, sampler = random_mixture(14, d), ContinuousHerdedGibbs()
    A, other = skewed(mixture, 15)
    back = np.linalg.solve(A, sampler.sample(other, 100).x.T).T
    np.testing.assert_allclose(back, sampler.sample(mixture, 100).x, atol=1e-5)


@pytest.mark.parametrize("d", [2, 3])
def test_affine_maps_of_the_state_leave_the_quality_of_kernel_herding_unchanged(random_mixture, d):
    """Rounding decides near-ties and so all that follows: single mixtures differ, their geometric mean does not."""
    ratios = []
    for seed in range(20):
        mixture, sampler = random_mixture(30 + seed, d), KernelHerding()
        A, other = skewed(mixture, seed)
        back = Points(np.linalg.solve(A, sampler.sample(other, 100).x.T).T)
        ratios.append(energy_distance(back, mixture) / energy_distance(sampler.sample(mixture, 100), mixture))
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1, abs=0.05)


# Energy distance to the mixture, in its whitened coordinates, relative to independent draws: medians over mixtures.
# Measured: 0.04, 0.08 and 0.14.
BETTER = {1: 0.09, 2: 0.12, 4: 0.16}


@pytest.mark.parametrize("d", BETTER)
def test_herded_points_are_closer_to_the_mixture_than_independent_draws(herding, random_mixture, d):
    n, ratios = 200, []
    for seed in range(5):
        mixture = random_mixture(20 + seed, d)
        whiten = np.linalg.inv(np.linalg.cholesky(mixture.covariance)).T
        target = GaussianMixture(
            mixture.weights, mixture.means @ whiten, whiten.T @ mixture.covariances @ whiten
        )
        pairs = target.sample(20_000, 1) - target.sample(20_000, 2)
        independent = np.sqrt((pairs**2).sum(axis=1)).mean() / n  # the mean for independent draws, exactly
        ratios.append(energy_distance(Points(herding.sample(mixture, n).x @ whiten), target) / independent)
    assert np.median(ratios) < BETTER[d]
    assert max(ratios) < 1.5 * BETTER[d]


@pytest.mark.parametrize("d", [2, 4])
def test_the_automatic_bandwidth_is_among_the_good_ones(herding, random_mixture, d):
    """Energy distance against that with multiples of the kernel width, geometric means over mixtures.

    The rule lies at the upper end of the good widths: half of it does nearly as well, two and a half times much worse.
    """
    distances = []
    for seed in range(6):
        mixture = random_mixture(80 + seed, d)
        kernel = kernel_covariance("auto", mixture, 100)
        distances.append(
            [
                energy_distance(type(herding)(bandwidth=factor**2 * kernel).sample(mixture, 100), mixture)
                for factor in (0.2, 0.6, 0.8, 1.0, 2.5)
            ]
        )
    narrow, *good, auto, wide = np.exp(np.log(distances).mean(axis=0))
    assert auto < 1.35 * min(good)
    assert auto < 0.6 * min(narrow, wide)
