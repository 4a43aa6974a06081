"""Independent draws."""

import numpy as np
import pytest

from herdfilter.samplers import RandomSampling


def test_draws_are_those_of_the_mixture(random_mixture):
    mixture = random_mixture(70, 3)
    np.testing.assert_array_equal(RandomSampling().sample(mixture, 9, 5).x, mixture.sample(9, 5))
    np.testing.assert_array_equal(RandomSampling().sample(mixture, 4, 5).weights, [0.25] * 4)


def test_the_seed_zero_is_a_seed_and_none_is_fresh(random_mixture):
    mixture, sampler = random_mixture(71, 1), RandomSampling()
    np.testing.assert_array_equal(sampler.sample(mixture, 5, 0).x, sampler.sample(mixture, 5, 0).x)
    assert (sampler.sample(mixture, 5).x != sampler.sample(mixture, 5).x).any()


def test_a_generator_moves_on(random_mixture):
    mixture, rng = random_mixture(72, 1), np.random.default_rng(0)
    first, second = (RandomSampling().sample(mixture, 5, rng).x for _ in range(2))
    assert (first != second).all()


def test_a_bad_generator_is_named(random_mixture):
    with pytest.raises(ValueError, match="rng: expected a numpy Generator, a seed or None, got 'dice'"):
        RandomSampling().sample(random_mixture(73, 1), 5, "dice")
