"""Many tracks, each with a filter of its own."""

import numpy as np
import pytest

import herdfilter as hf

MODEL = hf.models.UNGM()
TRACKS = [hf.simulate(MODEL, steps, rng=steps)[1] for steps in (3, 5, 4, 6)]


def bootstrap(k):
    return hf.make_filter("bootstrap", MODEL, 10, rng=k)


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
