"""Observations with NaN in some entries: used as far as they go where the likelihood says so, and else left out by name."""

import warnings

import numpy as np
import pytest
from helpers import cases, refusal
from numpy.testing import assert_allclose

import herdfilter as hf

Z = np.array([[np.nan, 0.6 + 0.02 * k] for k in range(60)])
PAIR = hf.models.LinearGaussian(
    [[1.0]], [[1.0], [1.0]], [[0.01]], np.diag([0.04, 0.25]), [0.0], [[1.0]]
)
WALK = hf.models.from_functions(lambda x: x, None, PAIR.Q, None, [0.0], [[1.0]])


def by_hand(z, x):
    """Two readings of the state, each with noise of its own; one that is NaN does not count."""
    return np.nansum(-0.5 * (z - x) ** 2 / [0.04, 0.25], axis=1)


def pair(**flags):
    return hf.Sensor(None, None, log_likelihood=by_hand, **flags).on(WALK)


def warned(call):
    """Return what a call returns, and whether each of its warnings is of a partial observation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert all(
        "give the model or the Sensor partial_observations=True" in str(one.message)
        for one in caught
    )
    return result, [one.category is hf.PartialObservationWarning for one in caught]


def bootstrap(model, seed=1):
    return hf.ParticleFilter(model, 300, rng=seed)


@cases(
    "run",
    lambda model: bootstrap(model).run(Z),
    lambda model: bootstrap(WALK).run(
        [(k + 1.0, hf.Sensor(None, None, log_likelihood=by_hand), z) for k, z in enumerate(Z)]
    ),
    lambda model: hf.run_many(lambda k: bootstrap(model, k), [Z, Z, Z[:9]], progress=False)[0],
    lambda model: hf.GridFilter(model, -9.0, 9.0, 801).run(Z),
    lambda model: hf.GridFilter(model, -9.0, 9.0, 801).smooth(Z),
    ids=["run", "readings", "run_many", "grid", "grid, smoothed"],
)
def test_half_a_reading_that_is_dropped_whole_is_said_once_a_run(run):
    """What stays is the prior, whose mean is 0 and whose variance grows by 0.01 a step."""
    result, said = warned(lambda: run(pair()))
    assert said == [True]
    assert_allclose(result.means[:, 0], 0.0, atol=0.2)
    assert result.covariances[-1, 0, 0] == pytest.approx(1.6, rel=0.25)


def test_modes_of_which_one_takes_no_nan_are_said_as_well():
    model = hf.models.JumpMarkov([PAIR, pair()], [[0.9, 0.1], [0.1, 0.9]])
    result, said = warned(lambda: bootstrap(model).run(Z))
    assert said == [True]
    assert set(result.outcomes) == {hf.Outcome.MISSING}


def test_a_loop_of_updates_says_it_in_one_text():
    """So that Python's filter of warnings shows it once, and the caller's registry holds one entry."""
    pf = bootstrap(pair())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for z in Z:
            pf.predict()
            pf.update(z)
    assert [one.category for one in caught] == [hf.PartialObservationWarning]
    assert caught[0].filename == __file__


def test_a_sensor_whose_likelihood_leaves_nan_out_uses_the_other_half():
    """As the derived likelihood of the same two readings does, particle by particle; so it does on a grid."""
    flagged = pair(partial_observations=True)
    result, said = warned(lambda: bootstrap(flagged).run(Z))
    derived, _ = warned(
        lambda: bootstrap(hf.Sensor(lambda x: x[:, [0, 0]], PAIR.R).on(WALK)).run(Z)
    )
    assert said == []
    assert set(result.outcomes) == {hf.Outcome.UPDATED}
    assert_allclose(result.means, derived.means, rtol=1e-9)
    exact = hf.ExtendedKalmanFilter(PAIR).run(Z)
    assert_allclose(hf.GridFilter(flagged, -9.0, 9.0, 801).run(Z).means, exact.means, atol=1e-4)


@cases("z", None, [np.nan, np.nan], [0.5, 0.7])
def test_nothing_is_said_of_an_observation_that_is_missing_or_whole(z):
    assert warned(lambda: bootstrap(pair()).run([z] * 3))[1] == []


def test_the_flag_of_a_sensor_is_true_or_false():
    with refusal(r"^partial_observations: expected True or False, got 'yes'$"):
        hf.Sensor(None, None, log_likelihood=by_hand, partial_observations="yes")
