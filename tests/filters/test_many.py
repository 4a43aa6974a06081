"""Many tracks, each with a filter of its own."""

import logging

import numpy as np
import pytest
from helpers import EYE, cases, polar, position_and_speed, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.filters import many
from herdfilter.filters.kalman import batched

MODEL = hf.models.UNGM()
TRACKS = [hf.simulate(MODEL, steps, rng=steps)[1] for steps in (3, 5, 4, 6)]


def bootstrap(k):
    return hf.make_filter("bootstrap", MODEL, 10, rng=k)


@pytest.mark.slow
def test_results_are_those_of_single_runs_whatever_the_number_of_workers():
    alone = [bootstrap(k).run(z) for k, z in enumerate(TRACKS)]
    for workers in (1, 2):
        results = hf.run_many(bootstrap, TRACKS, workers=workers)
        for one, other in zip(alone, results, strict=True):
            assert_array_equal(one.means, other.means)


def test_filters_of_several_blocks_end_as_after_single_runs(monkeypatch):
    monkeypatch.setattr(many, "BLOCK", 3)
    tracks = [[*z[:2], None, *z[2:]] for z in TRACKS]
    filters, singles = ([bootstrap(k) for k in range(4)] for _ in range(2))
    results = hf.run_many(filters.__getitem__, tracks, progress=False, dt=0.5, keep_particles=True)
    for one, other, z, result in zip(filters, singles, tracks, results, strict=True):
        expected = other.run(z, dt=0.5, keep_particles=True)
        for array in (
            "means",
            "covariances",
            "ess",
            "resampled",
            "log_likelihoods",
            "times",
            "particles",
            "outcomes",
        ):
            assert_array_equal(getattr(result, array), getattr(expected, array), err_msg=array)
        for entry, value in other.state.items():
            assert_array_equal(one.state[entry], value, err_msg=entry)


def test_tracks_may_have_times_of_their_own():
    given = [{"observations": z, "times": np.arange(1, len(z) + 1) / 2} for z in TRACKS]
    results = hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), given)
    assert [list(result.times) for result in results] == [list(track["times"]) for track in given]


def test_a_filter_in_place_of_a_factory_is_refused():
    with refusal(r"^build: expected a function of a track's index", TypeError):
        hf.run_many(bootstrap(0), TRACKS)


WALK = position_and_speed(0.1 * EYE)
MODELS = {
    "walk": WALK,
    "radar": hf.models.from_functions(
        lambda x: 0.9 * x, polar, 0.1 * EYE, 0.05 * EYE, [3, 1], EYE, observation_circular=[1]
    ),
    "heading": hf.models.from_functions(
        lambda x: np.column_stack([x[:, 0] + 0.3, x[:, 1] + np.sin(x[:, 0])]),
        lambda x: x, 0.2 * EYE, 0.3 * EYE, [3, 0], EYE, circular=[0], observation_circular=[0],
    ),
    "noise of the state": hf.models.from_functions(
        lambda x: x, lambda x: x, EYE, lambda x: (1 + x[:, :1, None] ** 2) * EYE, [0, 0], EYE
    ),
}  # fmt: skip


def ragged(model):
    """Tracks of several lengths, one of them empty, with missing entries and observations."""
    tracks = [hf.simulate(model, steps, rng=steps)[1] for steps in (3, 5, 1, 4)]
    tracks[0] = [0.1, None, 0.4] if model is WALK else tracks[0]
    tracks[1][1] = np.nan
    tracks[1][2, 0] = np.nan
    return [*tracks[:2], [], *tracks[2:]]


class Single(hf.UnscentedKalmanFilter):
    """A filter with a method of its own does not run in a batch."""

    def predict(self, dt=1.0, control=None):
        super().predict(dt, control)


def assert_same_results(results, expected, close=1e-12):
    for one, other in zip(results, expected, strict=True):
        for name in ("means", "covariances", "log_likelihoods", "ess"):
            assert_allclose(
                getattr(one, name), getattr(other, name), rtol=close, atol=close, err_msg=name
            )
        assert one.outcomes == other.outcomes
        assert one.steps.tolist() == other.steps.tolist()
        assert one.times.tolist() == other.times.tolist()
        assert (one.circular, one.position_dims) == (other.circular, other.position_dims)


def in_one_batch(monkeypatch):
    """Count the states that are updated at once."""
    sizes = []
    update = hf.BatchedKalmanFilter.update
    monkeypatch.setattr(
        hf.BatchedKalmanFilter,
        "update",
        lambda self, *args: (sizes.append(len(self)), update(self, *args))[1],
    )
    return sizes


@cases(
    "kind name options",
    (hf.UnscentedKalmanFilter, "walk", {"dt": 0.5}),
    (hf.ExtendedKalmanFilter, "walk", {"gate": 0.9}),
    (hf.UnscentedKalmanFilter, "radar", {"gate": 0.9}),
    (hf.CubatureKalmanFilter, "heading", {}),
    (hf.UnscentedKalmanFilter, "noise of the state", {}),
    (hf.ExtendedKalmanFilter, "noise of the state", {"gate": 0.9}),
)
def test_kalman_filters_of_one_model_run_in_one_batch(kind, name, options, monkeypatch):
    """Tracks that end drop out; filters and results are as after single runs, but for what differences leave of rounding."""
    sizes = in_one_batch(monkeypatch)
    model = MODELS[name]
    tracks = ragged(model)
    close = 1e-9 if kind is hf.ExtendedKalmanFilter else 1e-12
    filters, singles = ([kind(model) for _ in tracks] for _ in range(2))
    results = hf.run_many(lambda k: filters[k], tracks, **options)
    assert sizes == [4, 3, 3, 2, 1]
    expected = [one.run(z, **options) for one, z in zip(singles, tracks, strict=True)]
    assert_same_results(results, expected, close)
    for one, other in zip(filters, singles, strict=True):
        assert (one.step, one.time) == (other.step, other.time)
        for entry, value in other.state.items():
            if value.dtype.kind == "f":
                assert_allclose(one.state[entry], value, rtol=close, atol=close, err_msg=entry)
        assert (one.record is None) == (other.record is None)
        one.predict()
        one.update(None)


def test_filters_that_do_not_fit_together_run_one_by_one(monkeypatch):
    sizes = in_one_batch(monkeypatch)
    other = position_and_speed(WALK.Q, mean=np.ones(2))
    tracks = [[0.1, 0.2], [0.3]]
    for build in (
        lambda k: Single(WALK),
        lambda k: hf.UnscentedKalmanFilter((WALK, other)[k]),
        lambda k: hf.UnscentedKalmanFilter(WALK, kappa=1.0 + k),
    ):
        hf.run_many(build, tracks)
    assert sizes == []


@cases("make", lambda k: hf.UnscentedKalmanFilter(WALK), bootstrap, ids=["kalman", "particles"])
def test_one_filter_for_several_tracks_is_refused(make):
    filters = [make(0), make(1)]
    for build in (lambda k: filters[0], lambda k: filters[k % 2]):
        with refusal(
            r"^build: expected a new filter for each track, got one \w+Filter for several$"
        ):
            hf.run_many(build, [[0.1]] * 3)
    assert [one.step for one in filters] == [0, 0]


def test_a_fault_of_the_program_is_raised_and_not_evaded(monkeypatch):
    """Tracks that fail together and not by themselves."""
    monkeypatch.setattr(batched, "run_together", lambda *given: {}.missing)
    with refusal("missing", AttributeError):
        hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), [[0.1], [0.2], [0.3]])


class Narrow(hf.models.LinearGaussian):
    """A random walk whose function takes so many states only."""

    def __init__(self, most):
        super().__init__([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
        object.__setattr__(self, "most", most)

    def transition_mean(self, x, dt, control, step):
        if len(x) > self.most:
            raise ValueError("too many states")
        return x


SHORT = [[0.1, 0.2], [0.3], [-0.5, 0.1, 2.0]]


def test_a_model_that_does_not_take_the_rows_of_many_tracks_runs_one_by_one_and_says_so(caplog):
    model = Narrow(5)
    build = lambda k: hf.UnscentedKalmanFilter(model)  # noqa: E731
    results = hf.run_many(build, SHORT)
    assert_same_results(results, [build(k).run(track) for k, track in enumerate(SHORT)])
    assert [(one.levelno, one.name) for one in caplog.records] == [
        (logging.WARNING, "herdfilter.filters.many")
    ]
    assert "ValueError('too many states')" in caplog.text


@cases("name", "bootstrap", "ranked", "auto")
def test_functions_of_the_model_are_given_the_particles_of_one_track(name, caplog):
    model = Narrow(60)
    build = lambda k: hf.make_filter(name, model, 20, rng=k)  # noqa: E731
    results = hf.run_many(build, SHORT * 10)
    for k, result in enumerate(results):
        assert_array_equal(result.means, build(k).run(SHORT[k % 3]).means)
    assert caplog.records == []


def test_in_a_batch_a_track_that_fails_leaves_the_others_together(monkeypatch, caplog):
    """Its error is its own, and no record of the log; the steps before it are kept."""
    sizes = in_one_batch(monkeypatch)
    tracks = [[0.1, 0.2]] * 5 + [[0.1, np.inf]] + [[0.1, 0.2]] * 2
    with refusal(
        r"^1 of 8 tracks failed, the first of them track 5 with ValueError: z: exp", hf.TracksError
    ) as caught:
        hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), tracks)
    # of two steps each: only the batches with track 5 are halved
    assert sizes == [8, 8, *[4] * 4, *[2] * 4]
    assert caplog.records == []
    assert list(caught.value.errors) == [5]
    tracks[5] = [0.1]
    expected = [hf.UnscentedKalmanFilter(WALK).run(z) for z in tracks]
    assert_same_results(caught.value.results, expected)


def test_a_filter_that_cannot_be_built_leaves_the_others_together(monkeypatch):
    sizes = in_one_batch(monkeypatch)
    tracks = [[0.1]] * 5
    with refusal(
        r"^1 of 5 tracks failed, the first of them track 2 with KeyError: 2;", hf.TracksError
    ):
        hf.run_many(lambda k: {j: hf.UnscentedKalmanFilter(WALK) for j in (0, 1, 3, 4)}[k], tracks)
    assert sizes == [2, 2]


LOST = [[0.1, 0.2], [0.1, 400.0], [0.3], [0.1, 0.2, 400.0, 400.0]]


@cases("workers", 1, pytest.param(2, marks=pytest.mark.slow))
def test_one_warning_names_the_tracks_in_which_one_particle_is_left(workers):
    """Also of tracks of other processes."""
    with pytest.warns(hf.DegeneracyWarning) as caught:
        hf.run_many(
            lambda k: hf.ParticleFilter(hf.models.linear_chain(1), 50, rng=k), LOST, workers
        )
    (warning,) = [one.message for one in caught]
    text = "2 of 4 tracks, the first of them track 1: one of 50 particles has all the weight after an update"
    assert str(warning).startswith(text)
    assert warning.steps == {1: [2], 3: [3, 4]}


def test_a_second_observation_of_the_initial_state_is_refused_in_a_batch_too():
    filters = [hf.UnscentedKalmanFilter(WALK) for _ in range(3)]
    filters[1].update([0.4])
    with refusal(
        r"^1 of 3 tracks failed, the first of them track 1 with RuntimeError: upd", hf.TracksError
    ) as one:
        hf.run_many(filters.__getitem__, [[[0.1], [0.2]]] * 3, dt=[0.0, 1.0])
    expected = hf.UnscentedKalmanFilter(WALK).run([[0.1], [0.2]], dt=[0.0, 1.0])
    assert_same_results([one.value.results[k] for k in (0, 2)], [expected] * 2)
