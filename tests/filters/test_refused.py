"""Wrong inputs of filters that fail deep inside unless they are looked at first."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.tracking import BirthFromMeasurements, LMBTracker

WALK = hf.models.LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])


@pytest.mark.parametrize("name", ["bootstrap", "ukf"])
def test_a_control_of_rows_that_differ_in_length_is_named(name):
    with pytest.raises(ValueError, match="control: expected numbers"):
        hf.make_filter(name, WALK, 10, rng=0).predict(1.0, [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("name", ["bootstrap", "auto", "grid"])
def test_a_whole_series_as_one_observation_is_named(name):
    options = {"lower": [-9.0], "upper": [9.0], "points": [200]}
    one = hf.GridFilter(WALK, **options) if name == "grid" else hf.make_filter(name, WALK, 10, rng=0)
    with pytest.raises(ValueError, match=r"z: expected .*\(4, 1\)"):
        one.run([[[0.1], [0.2], [0.3], [0.4]]])


@pytest.mark.parametrize("dt", [np.array(0.5, dtype=np.float32), np.array(0.5, dtype=object)])
def test_a_time_step_in_an_array_without_axes_is_named(dt):
    with pytest.raises(ValueError, match="dt: expected a positive finite number"):
        hf.simulate(WALK, 3, rng=0, dt=dt)


def test_time_steps_of_several_fields_are_named():
    model = hf.models.WithClutter(WALK, detection_probability=0.9, clutter_density=0.1)
    tracker = LMBTracker(model, BirthFromMeasurements(WALK.initial, expected=0.1, most=0.1), filter="ukf")
    with pytest.raises(ValueError, match="dt: expected"):
        tracker.run([[[0.1]], [[0.2]]], dt=np.zeros(2, dtype=[("a", float), ("b", int)]))
