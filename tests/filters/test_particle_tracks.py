"""Particle filters of many tracks at once give what each gives by itself, to the last bit."""

import numpy as np
import pytest
from helpers import needs_equal_rows
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.filters import many, particle_tracks
from herdfilter.filters.observation import Observation, Observations

pytestmark = needs_equal_rows

PLAIN = hf.models.from_functions(
    f=lambda x, dt: np.column_stack([x[:, :2] + dt * x[:, 2:], x[:, 2:]]),
    h=lambda x: np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])]),
    Q=0.05 * np.eye(4),
    R=np.diag([1.0, 0.01]),
    initial_mean=[-30.0, 0.0, 0.0, 0.0],
    initial_covariance=np.diag([9.0, 9.0, 1.0, 1.0]),
    observation_circular=[1],
)
CASES = {"bootstrap": hf.models.Lorenz63(), "ranked": PLAIN, "auto": hf.models.UNGM()}
ARRAYS = "means", "covariances", "ess", "resampled", "log_likelihoods", "steps", "times", "particles", "weights", "outcomes"


def tracks_of(model):
    """Tracks of many lengths, with observations that are missing, in whole or in part."""
    tracks = [list(hf.simulate(model, 4 + k % 5, rng=k)[1]) for k in range(12)]
    tracks[3][1], tracks[5][0], tracks[6][2] = None, None, np.full(tracks[6][2].shape, np.nan)
    if np.size(tracks[0][0]) > 1:
        for k in (2, 7, 8):
            tracks[k][1] = tracks[k][1].copy()
            tracks[k][1][k % 2] = np.nan
    return tracks


@pytest.fixture
def blocks(monkeypatch):
    """The results of the blocks that ran at once."""
    made, run = [], particle_tracks._run
    monkeypatch.setattr(particle_tracks, "_run", lambda *given: made.append(run(*given)) or made[-1])
    return made


@pytest.mark.parametrize("name", CASES)
def test_tracks_together_are_those_of_single_filters(name, monkeypatch, blocks):
    """Also in several blocks, and by the state that filters end in."""
    monkeypatch.setattr(many, "TOGETHER", 5)
    model, tracks = CASES[name], tracks_of(CASES[name])
    filters, alone = ([hf.make_filter(name, model, 40, rng=k, resample_below=0.7) for k in range(12)] for _ in range(2))
    results = hf.run_many(filters.__getitem__, tracks, progress=False, dt=0.5, keep_particles=True)
    assert [len(block) for block in blocks] == [5, 5, 2]
    assert all(one is not None for block in blocks for one in block)
    for pf, own, track, result in zip(filters, alone, tracks, results, strict=True):
        expected = own.run(track, dt=0.5, keep_particles=True)
        for array in ARRAYS:
            assert_array_equal(getattr(result, array), getattr(expected, array), err_msg=array)
        for entry, value in own.state.items():
            assert_array_equal(pf.state[entry], value, err_msg=entry)


class Heated(hf.ParticleFilter):
    """A filter that takes each observation for one less."""

    def update(self, z, sensor=None, gate=None):
        return super().update(z - 1.0, sensor, gate)


MODELS = [hf.models.linear_chain(1), hf.models.linear_chain(1, 0.9)]


@pytest.mark.parametrize("differ", ["models", "classes", "particles", "generators"])
def test_filters_that_do_not_go_together_run_by_themselves(differ, blocks):
    """Another model, class or number of particles, or one generator for two."""
    tracks, results = [[np.array([0.3]), np.array([2.0])], [np.array([1.0])]], []
    for together in (True, False):
        shared = np.random.default_rng(0)
        filters = [
            (Heated if differ == "classes" and k else hf.ParticleFilter)(
                MODELS[k if differ == "models" else 0],
                30 if differ == "particles" and k else 40,
                rng=shared if differ == "generators" else k,
            )
            for k in range(2)
        ]
        alone = [] if together else [one.run(track) for one, track in zip(filters, tracks, strict=True)]
        results.append(alone or hf.run_many(filters.__getitem__, tracks))
    for one, other in zip(*results, strict=True):
        assert_array_equal(one.means, other.means)
    assert blocks == []


def test_readings_of_one_sensor_are_read_by_it_and_not_by_the_model(blocks):
    """The model's own function reads a tenth of it."""
    model, sensor = hf.models.linear_chain(1), hf.Sensor(lambda x: 10 * x, [[0.01]])
    tracks = [[(1.0, sensor, [5.0 + k]), (2.0, sensor, [6.0])] for k in range(3)]
    results = hf.run_many(lambda k: hf.ParticleFilter(model, 1000, rng=k), tracks)
    for result in results:
        assert result.means[-1, 0] == pytest.approx(0.6, abs=0.05)
    assert blocks == []


def test_a_track_without_observations_is_filtered_like_the_others(blocks):
    model, tracks = hf.models.UNGM(), [[], [[0.3], [1.0]], [[2.0]]]
    results = hf.run_many(lambda k: hf.ParticleFilter(model, 40, rng=k), tracks)
    assert [len(result) for result in results] == [0, 2, 1]
    assert [one is None for one in blocks[0]] == [True, False, False]


@pytest.mark.parametrize("model", [hf.models.UNGM(), PLAIN], ids=["likelihood", "moments"])
def test_observations_of_several_tracks_are_weighed_as_each_alone(model):
    """Log-likelihoods lack the largest of the first call, not of a later one."""
    rng, n = np.random.default_rng(0), 6
    z = [hf.simulate(model, 1, rng=k)[1][0] for k in range(2)]
    alone, parts = ([Observation.read(model, one, 1) for one in z] for _ in range(2))
    for spread in (1.0, 3.0, 0.1):
        x = model.initial.mean + spread * rng.normal(size=(2, n, model.dim))
        values = Observations(parts).log_likelihood(x)
        assert_array_equal(values, [one.log_likelihood(own) for one, own in zip(alone, x, strict=True)])
        assert [one.log_offset for one in parts] == [one.log_offset for one in alone]
