"""A notebook shows an object by its line and a small picture, which leaves the object and pyplot as they were."""

import base64
import copy
import io
import pickle
import re
import sys
import threading

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import EYE, cases
from numpy.random import default_rng

import herdfilter as hf

PLANE = hf.models.linear_chain(2)
LINE = hf.models.linear_chain(1)
LARGE = hf.models.Lorenz96()
MIXTURE = hf.GaussianMixture([0.3, 0.7], [[0.0, 0.0], [4.0, 1.0]], EYE)
START = np.datetime64("2026-01-01T12:00")
RNG = default_rng(0)
Z = [[0.1, 0.2], [1.0, -0.3], None, [0.2, 0.1]]


def filtered(**options):
    return hf.ParticleFilter(PLANE, 12, rng=1).run(Z, **options)


def singular():
    model = hf.models.LinearGaussian(EYE, EYE, EYE, EYE, np.zeros(2), np.diag([1.0, 0.0]))
    return hf.ExtendedKalmanFilter(model)


PICTURED = {
    "mixture, d = 1": lambda: MIXTURE.marginal([0]),
    "mixture of 3000": lambda: hf.GaussianMixture(
        np.ones(3000), RNG.normal(size=(3000, 3)), np.eye(3)
    ),
    "points": lambda: hf.KernelHerding().sample(MIXTURE, 20),
    "result with particles": lambda: filtered(keep_particles=True),
    "result of no step": lambda: hf.ParticleFilter(PLANE, 12, rng=1).run([]),
    "result with dates": lambda: hf.ParticleFilter(LINE, 12, rng=1).run(
        [(START + np.timedelta64(k, "h"), None, [0.1 * k]) for k in range(1, 5)], start=START
    ),
    "large": lambda: hf.ParticleFilter(LARGE, 20, rng=1),
}


def shown(thing):
    """Return the line and the picture (height, width, 4) of an object; None for no picture."""
    line, image = re.fullmatch(
        r'<code>(.*?)</code>(?:<br><img width="300" alt="" src="data:image/png;base64,(.*)">)?',
        thing._repr_html_(),
        re.S,
    ).groups()
    return line, None if image is None else plt.imread(io.BytesIO(base64.b64decode(image)))


def assert_shown(thing):
    before = plt.get_fignums()
    rc = dict(mpl.rcParams)
    line, image = shown(thing)
    assert line == repr(thing)
    assert image.shape[1] == 600
    assert len(np.unique(image.reshape(-1, 4), axis=0)) > 2
    assert (plt.get_fignums(), dict(mpl.rcParams)) == (before, rc)


@pytest.mark.slow
@cases("name", *PICTURED)
def test_line_and_picture_are_shown(name):
    assert_shown(PICTURED[name]())


def assert_goes_on(name):
    """A filter is shown within a step, and goes on with the bits of another that was not."""
    looked, other = (hf.make_filter(name, PLANE, 12, rng=1) for _ in range(2))
    for one in (looked, other):
        one.predict()
    before = pickle.dumps(looked)
    assert_shown(looked)
    assert pickle.dumps(looked) == before
    for one in (looked, other):
        one.update(Z[0])
    assert (looked.mean == other.mean).all()
    assert (looked.covariance == other.covariance).all()
    assert looked.log_likelihood == other.log_likelihood


def test_a_filter_is_shown_within_a_step_and_goes_on_with_equal_bits():
    """A generator that others use stays where it was."""
    assert_goes_on("bootstrap")
    rng = default_rng(3)
    assert_shown(hf.ParticleFilter(PLANE, 12, rng=rng))
    assert rng.random() == default_rng(3).random()


@pytest.mark.slow
@cases("name", "auto", "herded-chg", "sqmc", "ukf", "enkf")
def test_every_kind_of_filter_goes_on_after_it_was_shown(name):
    assert_goes_on(name)


def test_what_cannot_be_drawn_or_copied_is_shown_by_its_line():
    assert shown(singular()) == (repr(singular()), None)
    model = copy.copy(PLANE)
    object.__setattr__(model, "lock", threading.Lock())
    held = hf.ParticleFilter(model, 12, rng=1)
    assert shown(held) == (repr(held), None)


def test_without_matplotlib_the_line_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert shown(MIXTURE) == (repr(MIXTURE), None)


def test_the_line_is_text():
    class Evil(hf.models.UNGM):
        pass

    Evil.__name__ = "<b>"
    line, image = shown(hf.ParticleFilter(Evil(), 5, rng=0))
    assert line.startswith("ParticleFilter(model=&lt;b&gt;, dim=1")
    assert image is not None
