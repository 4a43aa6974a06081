"""What a filter refuses, and how it says so."""

from functools import partial

import numpy as np
import pytest
from helpers import EYE, cases, refusal, refuses
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.filters import BootstrapProposal, ParticleFilter, Particles

ONLINE = {
    "particles": partial(ParticleFilter, n_particles=5, rng=26),
    "ukf": hf.UnscentedKalmanFilter,
    "edh": partial(hf.DaumHuangFilter, n_particles=5, rng=26),
}


@pytest.fixture(params=ONLINE.values(), ids=ONLINE)
def online(request, walk):
    return request.param(walk)


class Bare(BootstrapProposal):
    """A proposal that returns particles and log-weights side by side; also a scheme that does."""

    def propose(self, transition, particles, rng, observation=None):
        return particles.x, particles.log_weights

    def resample(self, particles, rng, circular=()):
        return particles.x, particles.log_weights


@cases("method", "propose", "resample")
def test_weighted_points_that_are_no_particles_are_named(walk, method):
    parts = (
        {"resampling": Bare(), "resample_below": 1.0}
        if method == "resample"
        else {"proposal": Bare()}
    )
    expected = rf"Bare.{method}: expected a herdfilter.filters.Particles\(particles, log_weights\), got tuple"
    with refusal(expected, TypeError):
        ParticleFilter(walk, 10, **parts, rng=25).run([[0.5], None, [0.5]])


test_what_is_no_cloud_is_named = refuses(
    Particles,
    (np.nan, np.nan, r"particles: expected shape \(\*, \*\)"),
    ([[0.0]], [np.inf], "log_weights: expected numbers below infinity"),
    ([[0.0]], [0.0, 0.0], r"log_weights: expected shape \(1,\)"),
    (np.empty((2, 0)), [0.0, 0.0], "particles: expected at least one point and one dimension"),
    words="^{}",
)


def test_an_initial_distribution_that_cannot_be_drawn_from_is_named(walk):
    walk.initial = np.zeros(1)
    with refusal("initial distribution needs sample; ndarray", TypeError):
        ParticleFilter(walk, 5)


def test_a_bad_time_step_is_named_and_nothing_has_happened(online):
    before = online.mean
    for dt in (0.0, np.nan, "1", None):
        with refusal(f"dt: expected a positive finite number, got {dt!r}"):
            online.predict(dt)
    assert online.step == 0
    assert_array_equal(online.mean, before)


@cases(
    "error arguments message",
    (ValueError, {"on_degeneracy": "predicts"}, "on_degeneracy: unknown 'predicts'; did you mean 'predict'?"),
    (TypeError, {"proposal": "bootstrap"}, "proposal: expected a proposal such as .* got 'bootstrap'"),
    (TypeError, {"resampling": "systematic"}, "resampling: expected a scheme such as .* got 'systematic'"),
)  # fmt: skip
def test_bad_arguments_are_named(walk, error, arguments, message):
    with refusal(message, error):
        ParticleFilter(walk, **arguments)


def test_a_second_observation_of_the_initial_state_is_refused(online):
    """So a loop that forgets to predict does not pass in silence."""
    z = [1.0]
    assert online.update(z).step == 0
    before = online.record
    with refusal(
        "update: expected one observation of the initial state, step 0, got a second; call",
        RuntimeError,
    ):
        online.update(z)
    assert online.record is before
    online.predict()
    assert online.update(z).step == 1


SENSOR = hf.Sensor(lambda x: np.hstack([x, x]), EYE)
NAMES = ["bootstrap", "auto", "ranked", "herded-kh", "guided", "ukf", "ekf", "enkf", "edh"]


@cases("step", 0, 1)
@cases("name", *NAMES)
@cases("gate", None, 0.999)
def test_an_observation_of_the_wrong_size_is_named_at_every_step(name, step, gate):
    """Of two entries that are expected: also one that lacks an entry, none, and a number, which fits to any size."""
    online = hf.make_filter(
        name, hf.models.linear_chain(1), **({} if name in ("ukf", "ekf") else {"n_particles": 20})
    )
    for _ in range(step):
        online.predict()
    before = online.mean
    for z, shape in (
        ([1.0, 2.0, 3.0], "3,"),
        ([np.nan, 1.0, 2.0], "3,"),
        ([1.0], "1,"),
        ([], "0,"),
        (1.0, "1?,?"),
    ):
        with refusal(rf"^z: expected shape \(2,\), as observation_\w+ has, got \({shape}\)"):
            online.update(z, sensor=SENSOR, gate=gate)
    assert_array_equal(online.mean, before)
    assert online.update([np.nan, np.nan], sensor=SENSOR, gate=gate).outcome is hf.Outcome.MISSING


@cases("name", "ranked", "guided", "kalman-mixture-kh", "edh-weighted")
def test_so_it_is_in_the_modes_of_a_model(name):
    model = hf.models.JumpMarkov([hf.models.linear_chain(2)] * 2, [[0.9, 0.1], [0.1, 0.9]])
    online = hf.make_filter(name, model, n_particles=20)
    online.predict()
    with refusal(r"^z: expected shape \(2,\), as observation_\w+ has, got \(3,\)"):
        online.update([1.0, 2.0, 3.0])
