"""One filter a thread: what threads share does not disturb any of them."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import herdfilter as hf

WALK = hf.models.ConstantVelocity(
    0.01, 0.5, initial_mean=[0, 0], initial_covariance=np.diag([100.0, 1.0])
)


class Waits(threading.Thread):
    """A tracker that stands within `update`, in the filter of a track, from the start of the thread to `go_on`."""

    def __init__(self):
        super().__init__()
        self.inside = threading.Event()
        self.free = threading.Event()
        model = hf.models.WithClutter(WALK, detection_probability=0.95, clutter_density=0.005)
        birth = hf.tracking.Birth(0.5, WALK.initial)
        self.tracker = hf.tracking.LMBTracker(
            model, [birth], association="belief-propagation", filter=self.make
        )
        self.tracker.predict()

    def make(self, model, n, rng):
        thread = self

        class Waiting(hf.ParticleFilter):
            def update(self, z, sensor=None, gate=None):
                thread.inside.set()
                assert thread.free.wait(10)
                return super().update(z, sensor, gate)

        return Waiting(model, n, rng=rng)

    def run(self):
        self.tracker.update([[0.3]])

    def enter(self):
        self.start()
        assert self.inside.wait(10)

    def go_on(self):
        self.free.set()
        self.join()


def test_a_tracker_in_another_thread_holds_back_no_warning_of_this_one():
    pf = hf.ParticleFilter(hf.models.linear_chain(1), 100, rng=0)
    pf.predict()
    tracker = Waits()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.enter()
        pf.update([400.0])
        tracker.go_on()
    # all other threads' warnings are recorded, too, and those of what the garbage collector finds
    assert [one.category for one in caught if one.category is hf.DegeneracyWarning] == [
        hf.DegeneracyWarning
    ]


def test_two_trackers_leave_warnings_as_they_were():
    """The first that begins is the first that ends."""
    before = [*warnings.filters]
    first = Waits()
    second = Waits()
    first.enter()
    second.enter()
    first.go_on()
    second.go_on()
    assert warnings.filters == before
    pf = hf.ParticleFilter(hf.models.linear_chain(1), 100, rng=0)
    with pytest.warns(hf.DegeneracyWarning):
        pf.run([[400.0]])


def test_filters_of_threads_may_share_model_and_proposal():
    """Four filters by turns in four threads give what each gives alone, to the last bit."""
    model = hf.models.Lorenz63()
    proposal = hf.AutomaticProposal()
    tracks = [hf.simulate(model, 30, rng=k)[1] for k in range(4)]

    def run(k):
        return hf.ParticleFilter(model, 100, proposal, rng=k).run(tracks[k])

    alone = [run(k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(run, range(4))]
    for one, other in zip(alone, together, strict=True):
        assert_array_equal(one.means, other.means)
        assert one.log_likelihood == other.log_likelihood
