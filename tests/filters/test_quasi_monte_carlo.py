"""Sequential quasi-Monte Carlo: its points, the Hilbert curve, and the filter against exact answers."""

import numpy as np
from helpers import cases
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import qmc

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.samplers.balanced import (
    _index,
    _radix_order,
    direction_numbers,
    hilbert_order,
    scrambled_points,
    scrambled_sobol,
)


def test_in_one_dimension_particles_are_sorted_by_value():
    x = default_rng(0).standard_normal((200, 1))
    weights = np.full(200, 1 / 200)
    assert_array_equal(hilbert_order(x, weights), np.argsort(x[:, 0]))


def test_origin_unit_and_cut_of_the_circle_do_not_change_the_order():
    rng = default_rng(1)
    x = rng.standard_normal((300, 3))
    weights = rng.dirichlet(np.full(300, 0.5))
    order = hilbert_order(x, weights, (2,))
    moved = wrap_angles(x * [1e-6, 1e6, 1.0] + [3e-5, -4e7, 2.5], (2,))
    assert_array_equal(hilbert_order(moved, weights, (2,)), order)


@cases("dim", 2, 40)
def test_points_that_are_not_scrambled_are_those_of_the_sobol_sequence(dim):
    for n in (1, 2, 32, 100):
        directions = direction_numbers(dim, (n - 1).bit_length())
        plain = scrambled_points(
            n, directions, np.zeros((dim, directions.shape[1] + 1), np.int64), False
        )
        expected = qmc.Sobol(dim, scramble=False).random_base2(7)[:n]
        assert_allclose(plain, expected, atol=1e-15)


def test_scrambled_points_are_even_uniform_and_inside_the_cube():
    rng = default_rng(2)
    sets = np.array([scrambled_sobol(64, 3, rng) for _ in range(1000)])
    assert 0 < sets.min() < 1e-4
    assert 1 - 1e-4 < sets.max() < 1
    # one point in each of 64 intervals, and, of the first two coordinates, in each cell of 8 by 8: a (0, 6, 2)-net
    assert_array_equal(np.sort(np.floor(64 * sets), axis=1)[..., 0], [range(64)] * 1000)
    boxes = np.floor(8 * sets[..., :2]) @ [8, 1]
    assert_array_equal(np.sort(boxes, axis=1), [range(64)] * 1000)
    first = sets[:, 5]  # one point alone is uniform
    assert_allclose(first.mean(axis=0), 0.5, atol=4.5 / np.sqrt(12 * 1000))
    assert_allclose((64 * first % 1).mean(axis=0), 0.5, atol=4.5 / np.sqrt(12 * 1000))
    extremes = scrambled_points(4, direction_numbers(1, 2), np.array([[0, 0, 2**52 - 1]]), False)
    assert extremes.max() < 1
    assert scrambled_points(4, direction_numbers(1, 2), np.zeros((1, 3), np.int64), False).min() > 0


def skilling(cell, bits):
    """Skilling's published AxestoTranspose, and the digits of its result one after the other."""
    x = [int(one) for one in cell]
    digit = 1 << (bits - 1)
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
    return int(
        "".join(str((one ^ gray) >> level & 1) for level in range(bits - 1, -1, -1) for one in x), 2
    )


@cases("d", 2, 3, 31)
def test_places_on_the_curve_are_those_of_the_published_program_up_to_the_last_bit(d):
    bits = 62 // d
    cells = default_rng(d).integers(2**bits, size=(200, d))
    cells[:2] = [[0] * d, [2**bits - 1] * d]
    _index(np.array(cells.T, order="C"), bits, index := np.zeros(len(cells), np.int64))
    assert index.tolist() == [skilling(cell, bits) for cell in cells]


def test_places_are_sorted_byte_by_byte_as_by_numpy():
    """Also where a byte is the same in all, or some are equal; in Python, where an index out of range is an error."""
    rng = default_rng(5)
    for keys in (
        rng.integers(0, 2**62, 50),
        rng.integers(0, 4, 50) << 40,
        rng.integers(250, 260, 50),
        np.zeros(3, np.int64),
    ):
        assert_array_equal(_radix_order.py_func(keys.copy()), np.argsort(keys, kind="stable"))


def test_no_scheme_resamples_what_is_drawn_from_the_weighted_particles():
    """Each step draws them by their weights itself; a model that is copied before would be drawn from twice."""
    _, z = hf.simulate(hf.models.UNGM(), 10, rng=1)
    result = hf.ParticleFilter(hf.models.UNGM(), 50, hf.SequentialQuasiMonteCarlo(), rng=0).run(z)
    assert result.ess.min() < 10
    assert not result.resampled.any()
