"""Sequential quasi-Monte Carlo: its points, the Hilbert curve, and the filter against exact answers."""

import numpy as np
import pytest
from helpers import LINE, Simulated, plane
from scipy.special import ndtri
from scipy.stats import qmc

from herdfilter.angles import wrap_angles
from herdfilter.filters import BootstrapProposal, ParticleFilter, SequentialQuasiMonteCarlo
from herdfilter.filters.proposals.balanced import (
    direction_numbers,
    hilbert_index,
    hilbert_order,
    normal_quantiles,
    scrambled_points,
    scrambled_sobol,
)
from herdfilter.mixture import GaussianMixture
from herdfilter.models import LinearGaussian
from herdfilter.models.simulation import simulate
from herdfilter.study.recording import Recording
from herdfilter.study.reference import REFERENCES

PLANE = plane()


both = pytest.mark.parametrize("model", [LINE, PLANE], ids=["one dimension", "two dimensions"])


def case(model, steps, seed=5):
    truth, z = simulate(model, steps, seed)
    return z, REFERENCES["kalman"](model, Recording(truth, z), np.random.default_rng(0))


def error(model, n, z, exact, seed, proposal):
    means = ParticleFilter(model, n, proposal, resample_below=1.0, rng=seed).run(z).means
    return np.sqrt(((means - exact.means) ** 2).mean())


@pytest.mark.parametrize(("d", "bits"), [(2, 1), (2, 5), (3, 1), (3, 3), (5, 2)])
def test_the_hilbert_curve_goes_through_every_cell_from_neighbour_to_neighbour(d, bits):
    cells = np.ascontiguousarray(np.indices((2**bits,) * d).reshape(d, -1).T)
    index = hilbert_index(cells, bits)
    assert sorted(index) == list(range(len(cells)))
    path = cells[np.argsort(index)]
    assert (path[0] == 0).all()
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_fine_curve_follows_the_coarse_one(d):
    """Up to the last bit of 62: what lies in one cell of a coarser grid is visited in one go."""
    bits = 62 // d
    cells = np.random.default_rng(d).integers(2**bits, size=(500, d))
    fine = hilbert_index(cells, bits)
    coarse = hilbert_index(cells >> d, bits - d)  # a curve of d levels fewer has the same orientation
    np.testing.assert_array_equal(fine >> d * d, coarse)


def test_in_one_dimension_particles_are_sorted_by_value():
    x, weights = np.random.default_rng(0).standard_normal((200, 1)), np.full(200, 1 / 200)
    np.testing.assert_array_equal(hilbert_order(x, weights), np.argsort(x[:, 0]))


def test_origin_unit_and_cut_of_the_circle_do_not_change_the_order():
    rng = np.random.default_rng(1)
    x, weights = rng.standard_normal((300, 3)), rng.dirichlet(np.full(300, 0.5))
    order = hilbert_order(x, weights, (2,))
    moved = wrap_angles(x * [1e-6, 1e6, 1.0] + [3e-5, -4e7, 2.5], (2,))
    np.testing.assert_array_equal(hilbert_order(moved, weights, (2,)), order)


def test_particles_without_weight_or_without_spread_can_be_sorted():
    x = np.array([[0.0, 1.0], [1e100, 1.0], [1e-100, 1.0], [-1e100, 1.0]])
    order = hilbert_order(x, np.array([0.5, 0.0, 0.5, 0.0]))
    assert sorted(order) == [0, 1, 2, 3]
    assert sorted(hilbert_order(np.ones((5, 2)), np.full(5, 0.2))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dim", [1, 2, 5, 40])
def test_points_that_are_not_scrambled_are_those_of_the_sobol_sequence(dim):
    for n in (1, 2, 32, 100):
        directions = direction_numbers(dim, (n - 1).bit_length())
        plain = scrambled_points(n, directions, np.zeros((dim, directions.shape[1] + 1), np.int64))
        expected = qmc.Sobol(dim, scramble=False).random_base2(7)[:n]
        np.testing.assert_allclose(plain, expected, atol=1e-15)


def test_scrambled_points_are_even_uniform_and_inside_the_cube():
    rng = np.random.default_rng(2)
    sets = np.array([scrambled_sobol(64, 3, rng) for _ in range(2000)])
    assert 0 < sets.min() < 1e-4
    assert 1 - 1e-4 < sets.max() < 1
    # one point in each of 64 intervals, and, of the first two coordinates, in each cell of 8 by 8: a (0, 6, 2)-net
    np.testing.assert_array_equal(np.sort(np.floor(64 * sets), axis=1)[..., 0], [range(64)] * 2000)
    boxes = np.floor(8 * sets[..., :2]) @ [8, 1]
    np.testing.assert_array_equal(np.sort(boxes, axis=1), [range(64)] * 2000)
    first = sets[:, 5]  # one point alone is uniform
    np.testing.assert_allclose(first.mean(axis=0), 0.5, atol=4.5 / np.sqrt(12 * 2000))
    np.testing.assert_allclose((64 * first % 1).mean(axis=0), 0.5, atol=4.5 / np.sqrt(12 * 2000))
    extremes = scrambled_points(4, direction_numbers(1, 2), np.array([[0, 0, 2**52 - 1]]))
    assert extremes.max() < 1
    assert scrambled_points(4, direction_numbers(1, 2), np.zeros((1, 3), np.int64)).min() > 0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 128])
def test_points_in_the_order_of_their_first_entries_are_the_same_points(n):
    plain, ordered = (scrambled_sobol(n, 3, np.random.default_rng(4), ordered) for ordered in (False, True))
    np.testing.assert_array_equal(ordered, plain[plain[:, 0].argsort()])


def test_normal_quantiles_are_those_of_scipy():
    u = np.concatenate([2.0 ** -np.arange(1, 900), 1 - 2.0 ** -np.arange(2, 53), (np.arange(5000) + 0.5) / 5000])
    expected = ndtri(u)
    one_unit = ndtri(np.nextafter(u, 1)) - ndtri(np.nextafter(u, 0))  # what the last place of u makes of the quantile
    assert (np.abs(normal_quantiles(u[:, None])[:, 0] - expected) <= 1e-14 * np.abs(expected) + 1e-15 + one_unit).all()


def test_integrals_have_the_errors_of_scipys_scrambling():
    """Root mean square error of four integrals over the square, 400 sets of 64 points each."""
    rng = np.random.default_rng(3)

    def errors(draw):
        x, y = np.moveaxis([draw() for _ in range(400)], -1, 0)
        functions = (x * y - 0.25, x**3 - 0.25, (x + y > 1) - 0.5, np.exp(x - y) - (2 * np.cosh(1) - 2))
        return [np.sqrt((f.mean(axis=1) ** 2).mean()) for f in functions]

    ours = errors(lambda: scrambled_sobol(64, 2, rng))
    scipys = errors(lambda: qmc.Sobol(2, seed=rng).random_base2(6))
    np.testing.assert_allclose(ours, scipys, rtol=0.25)


@both
def test_errors_fall_faster_than_those_of_random_draws_and_are_smaller(model):
    sizes, z_exact = np.array([32, 128, 1024]), [case(model, 8, seed) for seed in range(10)]
    ours, bootstrap = (
        [np.median([error(model, n, *pair, seed, make()) for pair in z_exact for seed in range(3)]) for n in sizes]
        for make in (SequentialQuasiMonteCarlo, BootstrapProposal)
    )
    slope, usual = (np.polyfit(np.log(sizes), np.log(e), 1)[0] for e in (ours, bootstrap))
    assert slope < -0.65
    assert usual > -0.6
    assert (np.array(ours) < 0.75 * np.array(bootstrap)).all()
    assert ours[-1] < 0.4 * bootstrap[-1]


def test_the_first_particles_are_spread_evenly_over_a_mixture():
    class Two(LinearGaussian):
        initial = GaussianMixture([0.25, 0.75], [[-10.0, 0.0], [10.0, 5.0]], np.eye(2))

    model = Two(**{name: getattr(PLANE, name) for name in PLANE.__dataclass_fields__})
    x = ParticleFilter(model, 64, SequentialQuasiMonteCarlo(), rng=0).particles
    assert np.count_nonzero(x[:, 0] < 0) == 16
    np.testing.assert_allclose(x.mean(axis=0), model.initial.mean, atol=0.1)
    x = ParticleFilter(PLANE, 64, SequentialQuasiMonteCarlo(), rng=0).particles
    np.testing.assert_allclose(x.mean(axis=0), PLANE.initial.mean, atol=0.1)


def test_a_transition_that_can_only_be_simulated_is_refused():
    with pytest.raises(TypeError, match=r"model: SequentialQuasiMonteCarlo needs .* noise_dim; Simulated has no"):
        ParticleFilter(Simulated(), 5, SequentialQuasiMonteCarlo())


def test_more_dimensions_than_can_be_sorted_are_refused():
    eye = np.eye(63)
    model = LinearGaussian(eye, eye, eye, eye, np.zeros(63), eye)
    with pytest.raises(ValueError, match=r"model: expected at most 62 dimensions .*, got 63"):
        ParticleFilter(model, 5, SequentialQuasiMonteCarlo())


def skilling(cell, bits):
    """Skilling's published AxestoTranspose, and the digits of its result one after the other."""
    x, digit = [int(one) for one in cell], 1 << (bits - 1)
    digits = [digit >> k for k in range(bits - 1)]
    for q in digits:
        for i in range(len(x)):
            if x[i] & q:
                x[0] ^= q - 1
            else:
                exchanged = (x[0] ^ x[i]) & (q - 1)
                x[0] ^= exchanged
                x[i] ^= exchanged
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    gray = 0
    for q in digits:
        gray ^= (q - 1) if x[-1] & q else 0
    return int("".join(str((one ^ gray) >> level & 1) for level in range(bits - 1, -1, -1) for one in x), 2)


@pytest.mark.parametrize("d", [2, 3, 7, 31])
def test_places_on_the_curve_are_those_of_the_published_program_up_to_the_last_bit(d):
    bits = 62 // d
    cells = np.random.default_rng(d).integers(2**bits, size=(200, d))
    cells[:2] = [[0] * d, [2**bits - 1] * d]
    assert hilbert_index(cells, bits).tolist() == [skilling(cell, bits) for cell in cells]
