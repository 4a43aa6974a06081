"""Continuous herded Gibbs sampling: the published sequences, the recursion step by step, and the three repairs."""

import numpy as np
from helpers import EYE, cases, published, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.bandwidths import Whitened
from herdfilter.discrepancy import energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs

CASES = ["fig1_example", "random_d2_seed1", "random_d3_seed2", "random_d5_seed3"]


@cases("name", *CASES)
def test_published_sequences_are_reproduced(name):
    """An independent exact solution of the published recursion, which the authors' own program confirms."""
    case, mixture = published(name)
    sampler = ContinuousHerdedGibbs(target="paper", bandwidth=case["sigma_k"])
    points = sampler.sample(mixture, len(case["chg_exact"]), start=case["chg"][0])
    assert_allclose(points.x, case["chg_exact"], atol=1e-4)


# The recursion, coordinate by coordinate: with one sweep per point, the place of every move is known from outside


def conditional_density(x, i, weights, means, covariances):
    rest = [j for j in range(len(x)) if j != i]
    log_w = []
    centres = []
    variances = []
    for w, m, S in zip(weights, means, covariances, strict=True):
        S_rest = S[np.ix_(rest, rest)]
        cross = S[i, rest]
        u = x[rest] - m[rest]
        log_w.append(
            np.log(w) - 0.5 * (u @ np.linalg.solve(S_rest, u) + np.linalg.slogdet(S_rest)[1])
        )
        gain = np.linalg.solve(S_rest, cross)
        centres.append(m[i] + gain @ u)
        variances.append(S[i, i] - gain @ cross)
    share = np.exp(np.array(log_w) - max(log_w))
    share /= share.sum()
    return share, np.array(centres), np.array(variances)


def objective(x, i, earlier, mixture, sigma, sampler):
    """The function of x_i that the sampler maximises, by the definition; also its value's tolerance."""
    smoothed = sampler.target == "smoothed"
    covariances = mixture.covariances + (sigma**2 * np.eye(mixture.dim) if smoothed else 0)
    share, centres, variances = conditional_density(
        x, i, mixture.weights, mixture.means, covariances
    )
    variances = variances if smoothed else variances + sigma**2
    rest = np.delete(np.arange(mixture.dim), i)
    log_slice = -((earlier[:, rest] - x[rest]) ** 2).sum(axis=1) / (2 * sigma**2)
    slice_weights = np.exp(log_slice - log_slice.max())
    slice_weights /= slice_weights.sum()
    t = 1 / (slice_weights**2).sum() if sampler.effective_count else len(earlier)

    def value(v):
        u = np.asarray(v)[..., None]
        bumps = np.exp(-((u - centres) ** 2) / (2 * variances)) / np.sqrt(variances)
        kernels = np.exp(-((u - earlier[:, i]) ** 2) / (2 * sigma**2))
        return (t + 1) / t * sigma * (bumps @ share) - kernels @ slice_weights

    low = (centres - 6 * np.sqrt(variances)).min()
    high = (centres + 6 * np.sqrt(variances)).max()
    return value, np.linspace(low, high, int((high - low) / (0.05 * sigma)) + 2)


def highest(value, grid):
    f = value(grid)
    peaks = 1 + np.flatnonzero((f[1:-1] >= f[:-2]) & (f[1:-1] >= f[2:]))
    peaks = peaks[f[peaks] > f.max() - 1e-3 * np.abs(f).max()]
    width = grid[1] - grid[0]
    centres = grid[peaks]
    for _ in range(6):
        fine = centres[:, None] + width * np.linspace(-1, 1, 41)
        centres = fine[np.arange(len(fine)), value(fine).argmax(axis=1)]
        width /= 15
    return value(centres).max()


def assert_highest(points, t, start, mixture, sigma, sampler):
    """Follow one sweep from `start` to point t: to 2e-8, the share of far samples that the sampler may leave out."""
    x = start.copy()
    for i in range(mixture.dim):
        value, grid = objective(x, i, points[:t], mixture, sigma, sampler)
        x[i] = points[t, i]
        assert value(x[i]) >= highest(value, grid) - 2e-8


@cases(
    "target effective herded",
    ("paper", False, False),
    ("paper", True, True),
    ("smoothed", True, False),
    ("smoothed", False, True),
)
def test_every_move_is_to_the_highest_point_of_its_objective(
    target, effective, herded, random_mixture
):
    for seed, (d, sigma) in enumerate([(2, 0.4), (2, 1.5), (3, 0.7), (4, 1.0)]):
        mixture = random_mixture(40 + seed, d, n_components=3)
        sampler = ContinuousHerdedGibbs(target, sigma, effective, herded, sweeps=1)
        points = sampler.sample(mixture, 12).x
        counts = np.zeros(3)
        latest = mixture.means.copy()
        for t in range(len(points)):
            # herding on the component weights
            label = np.argmax((t + 1) * mixture.weights - counts)
            counts[label] += 1
            if t:
                start = latest[label] if herded else points[t - 1]
                assert_highest(points, t, start, mixture, sigma, sampler)
            latest[label] = points[t]


# The first point


def test_the_first_point_is_a_maximum_of_the_smoothed_density(random_mixture):
    mixture = random_mixture(45, 3)
    sigma = 0.5
    smoothed = mixture.convolve(sigma**2 * np.eye(3))
    first = ContinuousHerdedGibbs(bandwidth=sigma).sample(mixture, 1).x
    around = first + 1e-3 * np.vstack([np.eye(3), -np.eye(3)])
    assert (smoothed.log_density(around) < smoothed.log_density(first)).all()
    heaviest = mixture.means[[mixture.weights.argmax()]]
    assert smoothed.log_density(first)[0] >= smoothed.log_density(heaviest)[0]


@cases("target bandwidth", ("paper", 0.5), ("smoothed", Whitened()))
def test_start_is_the_first_point(random_mixture, target, bandwidth):
    sampler = ContinuousHerdedGibbs(target, bandwidth)
    mixture = random_mixture(46, 2)
    assert_allclose(sampler.sample(mixture, 5, start=[1.0, -2.0]).x[0], [1.0, -2.0], rtol=1e-12)
    own = sampler.sample(mixture, 5).x
    assert_allclose(sampler.sample(mixture, 5, start=own[0]).x, own, atol=1e-5)


# The repairs


TWO_MODES = GaussianMixture([0.7, 0.3], [[0.0, 0.0], [30.0, 30.0]], EYE)


def share_of_second_mode(sampler):
    return (sampler.sample(TWO_MODES, 40).x[:, 0] > 15).mean()


def test_as_published_the_sampler_cannot_leave_a_mode_and_component_herding_mends_that():
    assert share_of_second_mode(ContinuousHerdedGibbs("paper", 0.5)) == 0
    assert share_of_second_mode(ContinuousHerdedGibbs("paper", 0.5, component_herding=True)) == 0.3
    assert share_of_second_mode(ContinuousHerdedGibbs(bandwidth=0.5, component_herding=False)) == 0
    assert share_of_second_mode(ContinuousHerdedGibbs(bandwidth=0.5)) == 0.3


def test_as_published_the_sampler_drifts_off_and_the_smoothed_target_mends_that(random_mixture):
    """Energy distances, medians over mixtures: 34 times further away without the repair, in four dimensions."""
    ratios = []
    for seed in range(3):
        mixture = random_mixture(20 + seed, 4)
        paper, smoothed = (
            energy_distance(ContinuousHerdedGibbs(target).sample(mixture, 200), mixture)
            for target in ("paper", "smoothed")
        )
        ratios.append(paper / smoothed)
    assert min(ratios) > 3
    assert np.median(ratios) > 10


def test_the_paper_target_turns_all_repairs_off(random_mixture):
    mixture = random_mixture(57, 3)
    plain = ContinuousHerdedGibbs("paper", 0.5).sample(mixture, 15).x
    spelled = ContinuousHerdedGibbs(
        "paper", 0.5, effective_count=False, component_herding=False, sweeps=1
    )
    assert_array_equal(plain, spelled.sample(mixture, 15).x)
    for options in ({"effective_count": True}, {"component_herding": True}, {"sweeps": 2}):
        assert (ContinuousHerdedGibbs("paper", 0.5, **options).sample(mixture, 15).x != plain).any()


# Axes


def test_the_axes_are_those_of_the_state_for_a_number_and_principal_ones_for_a_matrix():
    """With a kernel of one width in all directions, a turned mixture gives turned points along principal axes alone."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    weights = [0.4, 0.6]
    means = np.array([[0.0, 0.0], [3.0, 1.0]])
    cov = np.array([[2.0, 0.3], [0.3, 0.4]])
    straight = GaussianMixture(weights, means, cov)
    turned = GaussianMixture(weights, means @ turn.T, turn @ cov @ turn.T)

    def gap(bandwidth):
        sampler = ContinuousHerdedGibbs(bandwidth=bandwidth)
        return np.abs(sampler.sample(turned, 20).x - sampler.sample(straight, 20).x @ turn.T).max()

    assert gap(0.7**2 * EYE) < 1e-5 < 0.01 < gap(0.7)


# Components so far apart, in kernel widths, that no grid spans the gap


@cases("distance full", (1e6, False), (1e9, True))
def test_modes_any_number_of_kernel_widths_apart(distance, full):
    """Along an axis: the conditional weights of the far mode are differences of squared distances, if taken naively."""
    weights = [0.3, 0.2, 0.35, 0.15]
    means = np.array([[0.0, 0.0], [1.7, 0.9], [0.0, 0.0], [1.1, -1.3]])
    shift = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    shape = np.array([[[2.0, 0.5], [0.5, 1.0]]] * 3 + [EYE]) if full else EYE
    mixture, near = (
        GaussianMixture(weights, means + gap * shift, shape) for gap in (distance, 40.0)
    )
    options = {"target": "paper", "bandwidth": 0.5}
    points = ContinuousHerdedGibbs(**options).sample(mixture, 24).x
    expected = ContinuousHerdedGibbs(**options).sample(near, 24).x
    far = points[:, 0] > distance / 2
    assert_array_equal(far, expected[:, 0] > 20)
    assert 0 < far.sum() < 24
    points[far, 0] -= distance
    expected[far, 0] -= 40
    assert_allclose(points, expected, atol=1e-4 + 1e-15 * distance)


# Many samples


def test_every_move_among_many_samples_is_to_the_highest_point_of_its_objective(random_mixture):
    sigma = 0.3
    n = 1000
    mixture = random_mixture(84, 2, n_components=3)
    sampler = ContinuousHerdedGibbs(
        "smoothed", sigma, effective_count=True, component_herding=False, sweeps=1
    )
    points = sampler.sample(mixture, n).x
    for t in range(n - 60, n, 10):
        assert_highest(points, t, points[t - 1], mixture, sigma, sampler)


def test_points_do_not_depend_on_how_many_follow_when_they_are_many(random_mixture):
    """Herding takes differences of rounding tenfold with every hundred points, here from 1e-13 to 1e-9."""
    sampler = ContinuousHerdedGibbs(bandwidth=0.6)
    mixture = random_mixture(47, 2)
    few = sampler.sample(mixture, 200).x
    many = sampler.sample(mixture, 700).x
    assert_allclose(few, many[:200], rtol=0, atol=1e-7)


# Bad input


test_bad_options_are_named = refuses(
    lambda arguments: ContinuousHerdedGibbs(**arguments),
    ({"target": "smooth"}, "target: unknown 'smooth'; did you mean 'smoothed'?"),
    ({"sweeps": 0}, "sweeps: expected an integer of at least 1, got 0"),
)


test_what_does_not_fit_the_mixture_is_named = refuses(
    lambda bandwidth, start: ContinuousHerdedGibbs(bandwidth=bandwidth).sample(
        TWO_MODES, 3, start=start
    ),
    ("auto", [[0.0, 0.0]], r"start: expected shape \(2,\), got \(1, 2\)"),
    (np.eye(3), None, r"bandwidth: expected shape .*\(2, 2\) for this mixture, got \(3, 3\)"),
)
