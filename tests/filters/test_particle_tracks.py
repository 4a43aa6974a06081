"""Particle filters of many tracks at once give what each gives by itself, to the last bit."""

import numpy as np
import pytest
from helpers import needs_equal_rows

import herdfilter as hf
from herdfilter.filters import many, particle_tracks

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
PENDULUM = hf.models.from_functions(
    f=lambda x, dt: x + 0.1 * dt * np.column_stack([x[:, 1], -9.81 * np.sin(x[:, 0])]),
    h=lambda x: np.sin(x[:, 0]),
    Q=np.diag([1e-6, 1e-1]),
    R=[[0.01]],
    initial_mean=[3.0, 0.0],
    initial_covariance=np.eye(2),
    circular=[0],
)
MODELS = {
    "ungm": hf.models.UNGM(),
    "lorenz63": hf.models.Lorenz63(),
    "landmarks": hf.models.LandmarkLocalisation(),
    "linear": hf.models.linear_chain(4),
    "angles observed": PLAIN,
    "pendulum": PENDULUM,
}
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


def alone(build, tracks, **options):
    return [build(k).run(track, **options) for k, track in enumerate(tracks)]


def assert_equal(results, expected):
    for one, other in zip(results, expected, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("key", ["bootstrap", "ranked", "auto"])
def test_tracks_together_are_those_of_single_filters(key, name):
    model, tracks, n = MODELS[name], tracks_of(MODELS[name]), 40

    def build(k):
        return hf.make_filter(key, model, n, rng=k, resample_below=0.7)

    filters = [build(k) for k in range(len(tracks))]
    together = particle_tracks.run_together(filters, tracks, {"dt": 0.5, "keep_particles": True})
    expected = alone(build, tracks, dt=0.5, keep_particles=True)
    assert_equal(together, expected)
    if key == "bootstrap":
        assert len({result.resampled[:4].tobytes() for result in expected}) > 1  # at steps of their own
    for pf, k in zip(filters, range(len(tracks)), strict=True):
        own = build(k)
        own.run(tracks[k], dt=0.5)
        left, right = pf.state, own.state
        for entry in left:
            np.testing.assert_array_equal(left[entry], right[entry], err_msg=entry)


def test_a_track_that_fails_goes_by_itself():
    """One whose likelihood vanishes, and one that holds no number, cost no other track anything."""

    class Box:
        dim = 1
        initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])

        def sample(self, x):
            return x

        def transition_mean(self, x, dt, control, step):
            return x

        def transition_covariance(self, dt, step):
            return np.eye(1)

        def log_likelihood(self, z, x, step):
            return np.where(abs(x[:, 0] - z) < 3, 0.0, -np.inf)

    model, tracks = Box(), [[0.0, 0.5, 0.2], [0.1, 1e3, 0.0], [0.3, np.inf], [1.0, 1.0, 1.0]]

    def build(k):
        return hf.ParticleFilter(model, 50, rng=k)

    with pytest.raises(hf.TracksError) as caught:
        hf.run_many(build, tracks, progress=False)
    assert [type(error).__name__ for error in caught.value.errors.values()] == ["DegenerateWeightsError", "ValueError"]
    assert [len(result) for result in caught.value.results] == [3, 1, 1, 3]
    for k in (0, 3):
        np.testing.assert_array_equal(caught.value.results[k].means, build(k).run(tracks[k]).means)


def test_each_function_of_the_model_is_called_once_for_all_tracks(monkeypatch):
    rows = []
    f = PLAIN.transition_mean
    monkeypatch.setattr(PLAIN, "transition_mean", lambda x, *way: rows.append(len(x)) or f(x, *way), raising=False)
    tracks = [[[30.0, 3.1]] * 3] * 5
    hf.run_many(lambda k: hf.make_filter("bootstrap", PLAIN, 20, rng=k), tracks, progress=False)
    assert rows == [5 * 20] * 3


def test_filters_that_are_not_alike_run_one_after_the_other(monkeypatch):
    """Another model, number of particles, option or generator, a sampler, random members: no common steps."""
    other, shared = hf.models.UNGM(), np.random.default_rng(0)
    model, tracks = MODELS["ungm"], [[0.1, 0.2], [0.3]]
    for build in (
        lambda k: hf.ParticleFilter(model if k else other, 20, rng=k),
        lambda k: hf.ParticleFilter(model, 20 + k, rng=k),
        lambda k: hf.ParticleFilter(model, 20, resample_below=0.5 + 0.1 * k, rng=k),
        lambda k: hf.ParticleFilter(model, 20, rng=shared),
        lambda k: hf.ParticleFilter(model, 20, hf.AutomaticProposal(hf.RandomSampling()), rng=k),
        lambda k: hf.ParticleFilter(model, 20, hf.RankedProposal(randomised=True), rng=k),
        lambda k: hf.UnscentedKalmanFilter(model),
    ):
        assert particle_tracks.run_together([build(0), build(1)], tracks, {}) == [None, None]
    alike = [hf.ParticleFilter(model, 20, rng=k) for k in range(2)]
    assert None not in particle_tracks.run_together(alike, tracks, {})
    for options in ({"dt": [1.0, 2.0]}, {"gate": 0.99}, {"times": [1.0, 2.0]}):
        alike = [hf.ParticleFilter(model, 20, rng=k) for k in range(2)]
        assert particle_tracks.run_together(alike, [[0.1, 0.2]] * 2, options) == [None, None]


def test_blocks_of_tracks_do_not_change_results(monkeypatch):
    monkeypatch.setattr(many, "TOGETHER", 3)
    tracks = [list(hf.simulate(PLAIN, 4, rng=k)[1]) for k in range(7)]

    def build(k):
        return hf.make_filter("ranked", PLAIN, 20)

    results = hf.run_many(build, tracks, progress=False)
    for one, other in zip(results, alone(build, tracks), strict=True):
        np.testing.assert_array_equal(one.means, other.means)
