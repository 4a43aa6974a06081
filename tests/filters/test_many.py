"""Many tracks, each with a filter of its own."""

import numpy as np
import pytest
from helpers import needs_equal_rows

import herdfilter as hf

MODEL = hf.models.UNGM()
TRACKS = [hf.simulate(MODEL, steps, rng=steps)[1] for steps in (3, 5, 4, 6)]


def bootstrap(k):
    return hf.make_filter("bootstrap", MODEL, 10, rng=k)


@needs_equal_rows
def test_results_are_those_of_single_runs_whatever_the_number_of_workers():
    alone = [bootstrap(k).run(z) for k, z in enumerate(TRACKS)]
    for workers in (1, 2):
        results = hf.run_many(bootstrap, TRACKS, workers=workers)
        for one, other in zip(alone, results, strict=True):
            np.testing.assert_array_equal(one.means, other.means)


def test_tracks_may_have_times_of_their_own():
    walk = hf.models.LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    given = [{"observations": z, "times": np.arange(1, len(z) + 1) / 2} for z in TRACKS]
    results = hf.run_many(lambda k: hf.UnscentedKalmanFilter(walk), given)
    assert [list(result.times) for result in results] == [list(track["times"]) for track in given]


def test_a_track_that_fails_takes_no_other_with_it():
    tracks = [TRACKS[0], [[0.0], [np.inf]], TRACKS[2]]
    with pytest.raises(
        hf.TracksError, match=r"^1 of 3 tracks failed, .*track 1 with ValueError: z: expected finite"
    ) as caught:
        hf.run_many(bootstrap, tracks)
    assert [len(result) for result in caught.value.results] == [3, 1, 4]
    assert list(caught.value.errors) == [1]


def test_a_filter_in_place_of_a_factory_is_refused():
    with pytest.raises(TypeError, match=r"^build: expected a function of a track's index"):
        hf.run_many(bootstrap(0), TRACKS)


def test_progress_is_told_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr("herdfilter.filters.progress._PATIENCE", 0.0)
    monkeypatch.setattr("herdfilter.filters.progress.EVERY", 0.0)

    def slow(k):
        import time

        time.sleep(0.15)
        return bootstrap(k)

    hf.run_many(slow, TRACKS)
    assert "of 4 tracks" in capsys.readouterr().err
    hf.run_many(slow, TRACKS[:2], progress=False)
    assert capsys.readouterr().err == ""


WALK = hf.models.LinearGaussian([[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], 0.1 * np.eye(2), [[1.0]], np.zeros(2), np.eye(2))
RAGGED = [
    [0.1, None, 0.4],
    np.array([[0.3], [np.nan], [0.2], [1.0], [2.0]]),
    [],
    [[0.5]],
    [np.array([0.1]), [0.2], [0.4]],
]


class Single(hf.UnscentedKalmanFilter):
    """A filter with a method of its own does not run in a batch."""

    def predict(self, dt=1.0, control=None):
        super().predict(dt, control)


def assert_same_results(results, expected):
    for one, other in zip(results, expected, strict=True):
        for name in ("means", "covariances", "log_likelihoods", "ess"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12, err_msg=name)
        assert one.outcomes == other.outcomes
        assert one.steps.tolist() == other.steps.tolist()
        assert one.times.tolist() == other.times.tolist()
        assert (one.circular, one.position_dims) == (other.circular, other.position_dims)


def in_one_batch(monkeypatch):
    """Count the states that are updated at once."""
    sizes, update = [], hf.BatchedKalmanFilter.update
    monkeypatch.setattr(
        hf.BatchedKalmanFilter, "update", lambda self, *args: (sizes.append(len(self)), update(self, *args))[1]
    )
    return sizes


@pytest.mark.parametrize("kind", [hf.UnscentedKalmanFilter, hf.ExtendedKalmanFilter, hf.CubatureKalmanFilter])
@pytest.mark.parametrize("options", [{}, {"dt": 0.5}, {"gate": 0.9}])
def test_kalman_filters_of_one_model_run_in_one_batch(kind, options, monkeypatch):
    """Tracks that end drop out; filters and results are as after single runs."""
    sizes = in_one_batch(monkeypatch)
    filters, singles = ([kind(WALK) for _ in RAGGED] for _ in range(2))
    results = hf.run_many(lambda k: filters[k], RAGGED, **options)
    assert sizes == [4, 3, 3, 1, 1]
    assert_same_results(results, [one.run(z, **options) for one, z in zip(singles, RAGGED, strict=True)])
    for one, other in zip(filters, singles, strict=True):
        assert (one.step, one.time) == (other.step, other.time)
        assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
        assert (one.record is None) == (other.record is None)
        one.predict()
        one.update([1.0])


def test_times_and_controls_that_all_tracks_share_run_in_a_batch(monkeypatch):
    sizes, times = in_one_batch(monkeypatch), np.array([0.0, 0.5, 2.0])
    tracks = np.random.default_rng(1).normal(size=(6, 3, 1))
    results = hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), tracks, times=times)
    assert sizes == [6, 6, 6]
    assert_same_results(results, [hf.UnscentedKalmanFilter(WALK).run(z, times=times) for z in tracks])


def test_in_a_batch_a_track_that_fails_takes_no_other_with_it(monkeypatch):
    tracks = [[0.1, 0.2], [0.1, np.inf], [0.3], [0.5, 0.1, 0.2], [[0.1, 0.2]]]
    sizes = in_one_batch(monkeypatch)
    with pytest.raises(hf.TracksError) as caught:
        hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), tracks[:4])
    assert max(sizes) == 4
    with pytest.raises(ValueError, match=r"^z: expected finite") as single:
        hf.UnscentedKalmanFilter(WALK).run(tracks[1])
    assert {k: str(error) for k, error in caught.value.errors.items()} == {1: str(single.value)}
    others = [hf.UnscentedKalmanFilter(WALK).run(tracks[k]) for k in (0, 2, 3)]
    assert_same_results(caught.value.results, [others[0], single.value.result, *others[1:]])
    with pytest.raises(hf.TracksError) as caught:
        hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), tracks)
    assert list(caught.value.errors) == [1, 4]


def test_filters_that_do_not_fit_together_run_one_by_one(monkeypatch):
    sizes, other = in_one_batch(monkeypatch), hf.models.LinearGaussian(WALK.F, WALK.H, WALK.Q, WALK.R, np.ones(2), np.eye(2))
    shared, tracks = hf.UnscentedKalmanFilter(WALK), [[0.1, 0.2], [0.3]]
    builds = [
        lambda k: Single(WALK),
        lambda k: hf.UnscentedKalmanFilter((WALK, other)[k]),
        lambda k: hf.UnscentedKalmanFilter(WALK, kappa=1.0 + k),
        lambda k: (hf.UnscentedKalmanFilter, hf.ExtendedKalmanFilter)[k](WALK),
        lambda k: hf.EnsembleKalmanFilter(WALK, 10, rng=k),
        lambda k: shared,
    ]
    for build in builds:
        hf.run_many(build, tracks)
    readings = [[(1.0, None, [0.1]), (1.5, None, [0.2])], [(1.0, None, [0.3])]]
    results = hf.run_many(lambda k: hf.UnscentedKalmanFilter(WALK), readings)
    assert [one.times.tolist() for one in results] == [[1.0, 1.5], [1.0]]
    assert sizes == []
    assert shared.step == 3
