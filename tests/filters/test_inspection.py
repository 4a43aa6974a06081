"""Inputs that are valid but probably mistakes: a filter says so once; right ones pass in silence."""

import warnings

import numpy as np
from helpers import cases

import herdfilter as hf

TURNS = np.linspace(0.5, 3.0, 12)  # readings of a compass that turns
DEGREES = np.degrees(TURNS)[:, None]
ANGLES = {"circular": [0], "observation_circular": [0]}


def turning(f, **options):
    noises = {"Q": [[0.05]], "R": [[0.01]], "initial_mean": [0.5], "initial_covariance": [[0.1]]}
    return hf.models.from_functions(f, lambda x: x, **noises | options)


COMPASS = turning(lambda x: x + 0.2, **ANGLES)
STEPPED = turning(lambda x, dt: x + 0.2 * dt)


def readings(log_likelihood):
    """Readings by a sensor whose likelihood depends on squared distances, in units of its noise."""

    def function(z, x):
        return log_likelihood(50 * np.square(z[0] - x[:, 0]))

    sensor = hf.Sensor(None, None, log_likelihood=function)
    return [(1.0 + k, sensor, [z]) for k, z in enumerate(TURNS)]


@cases(
    "name model z options expected",
    ("ukf", COMPASS, DEGREES, {}, ["z: expected angles in radians, got 28.6479"]),
    ("auto", COMPASS, [[np.nan], *DEGREES], {}, ["z: expected angles"]),
    ("auto", COMPASS, 5 * TURNS[:, None], {}, []),  # unwrapped: only the first counts
    ("bootstrap", COMPASS, readings(lambda s: np.exp(-s)), {}, ["log_likelihood: expected log"]),
    (
        "bootstrap",
        COMPASS,
        readings(lambda s: 4 * np.exp(-s)),
        {},
        ["log_likelihood: expected log"],
    ),
    ("bootstrap", COMPASS, readings(lambda s: 4 - s), {}, []),
    ("ukf", STEPPED, TURNS[:, None], {}, ["dt: expected one, or times"]),
    ("ukf", STEPPED, TURNS[:, None], {"dt": 1.0}, []),
)
def test_a_probable_mistake_is_told_once(name, model, z, options, expected):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hf.make_filter(name, model, 200, rng=0).run(z, **options)
    told = [str(one.message) for one in caught if one.category is hf.InputWarning]
    assert len(told) == len(expected)
    assert all(map(str.startswith, told, expected))


def test_a_loop_is_told_at_the_line_that_calls():
    kf = hf.UnscentedKalmanFilter(COMPASS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for z in DEGREES:
            kf.predict()
            kf.update(z)
    assert [one.filename for one in caught] == [__file__]


def test_a_grid_says_so_too():
    model = turning(lambda x: x + 0.2, observation_circular=[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hf.GridFilter(model, -10.0, 90.0, 2000).run(DEGREES[:3])
    assert [str(one.message).partition(",")[0] for one in caught] == [
        "z: expected angles in radians"
    ]
