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

import herdfilter as hf
from herdfilter.catalogue import catalogue

PLANE, LINE, LARGE = hf.models.linear_chain(2), hf.models.linear_chain(1), hf.models.Lorenz96()
MIXTURE = hf.GaussianMixture([0.3, 0.7], [[0.0, 0.0], [4.0, 1.0]], np.eye(2))
START = np.datetime64("2026-01-01T12:00")
RNG = np.random.default_rng(0)
Z = [[0.1, 0.2], [1.0, -0.3], None, [0.2, 0.1]]


def filtered(**options):
    return hf.ParticleFilter(PLANE, 12, rng=1).run(Z, **options)


def singular():
    model = hf.models.LinearGaussian(np.eye(2), np.eye(2), np.eye(2), np.eye(2), np.zeros(2), np.diag([1.0, 0.0]))
    return hf.ExtendedKalmanFilter(model)


PICTURED = {
    "mixture": lambda: MIXTURE,
    "mixture, d = 1": lambda: MIXTURE.marginal([0]),
    "mixture, d = 10": lambda: hf.GaussianMixture([1.0], np.zeros((1, 10)), np.eye(10)),
    "mixture of 3000": lambda: hf.GaussianMixture(np.ones(3000), RNG.normal(size=(3000, 3)), np.eye(3)),
    "points": lambda: hf.KernelHerding().sample(MIXTURE, 20),
    "points, d = 1": lambda: hf.Points([[1.0], [2.0]], [0.3, 0.7]),
    "a million points": lambda: hf.Points(RNG.normal(size=(10**6, 2))),
    "points of negative weight": lambda: hf.Points([[1.0, 0.0], [2.0, 0.0]], [-0.5, 1.5], signed=True),
    "result": filtered,
    "result with particles": lambda: filtered(keep_particles=True),
    "result, d = 1": lambda: hf.ParticleFilter(LINE, 12, rng=1).run([[0.1], [0.4]]),
    "result of no step": lambda: hf.ParticleFilter(PLANE, 12, rng=1).run([]),
    "result with dates": lambda: hf.ParticleFilter(LINE, 12, rng=1).run(
        [(START + np.timedelta64(k, "h"), None, [0.1 * k]) for k in range(1, 5)], start=START
    ),
    "grid result": lambda: hf.GridFilter(LINE, -12, 12, 121).run([[0.1], [0.4]]),
    "smoothed": lambda: hf.marginal_smoother(PLANE, filtered(keep_particles=True)),
    "trajectories": lambda: hf.backward_simulation(PLANE, filtered(keep_particles=True), 5, 0),
    "large": lambda: hf.ParticleFilter(LARGE, 20, rng=1),
}


def shown(thing):
    """Return the line and the picture (height, width, 4) of an object; None for no picture."""
    line, image = re.fullmatch(
        r'<code>(.*?)</code>(?:<br><img width="300" alt="" src="data:image/png;base64,(.*)">)?', thing._repr_html_(), re.S
    ).groups()
    return line, None if image is None else plt.imread(io.BytesIO(base64.b64decode(image)))


def assert_shown(thing):
    before, rc = plt.get_fignums(), dict(mpl.rcParams)
    line, image = shown(thing)
    assert line == repr(thing)
    assert image.shape[1] == 600
    assert len(np.unique(image.reshape(-1, 4), axis=0)) > 2
    assert (plt.get_fignums(), dict(mpl.rcParams)) == (before, rc)


@pytest.mark.parametrize("name", PICTURED)
def test_line_and_picture_are_shown(name):
    assert_shown(PICTURED[name]())


@pytest.mark.parametrize(
    "name", [name for name, table in catalogue().items() if "tracker" not in table and name[:3] != "rb-"]
)
def test_a_filter_is_shown_within_a_step_and_goes_on_with_equal_bits(name):
    try:
        looked, other = (hf.make_filter(name, PLANE, 12, rng=1) for _ in range(2))
    except ValueError as error:
        pytest.skip(str(error))
    if not hasattr(looked, "predict"):
        pytest.skip("a batch filter")
    for z in Z[:1]:
        looked.predict()
        before = pickle.dumps(looked)
        assert_shown(looked)
        assert pickle.dumps(looked) == before
        looked.update(z)
        other.predict()
        other.update(z)
        assert (looked.mean == other.mean).all()
        assert (looked.covariance == other.covariance).all()
        assert looked.log_likelihood == other.log_likelihood


def test_a_generator_that_others_use_stays_where_it_was():
    rng = np.random.default_rng(3)
    assert_shown(hf.ParticleFilter(PLANE, 12, rng=rng))
    assert rng.random() == np.random.default_rng(3).random()


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


def test_the_points_drawn_of_many_are_spread_over_all(monkeypatch):
    given = []
    monkeypatch.setattr("herdfilter.pictures.notebook.plot_points", lambda x, ax, weights: given.append((x, weights)))
    x = np.column_stack([np.arange(1700.0), np.zeros(1700)])
    hf.Points(x, np.arange(1, 1701))._repr_html_()
    ((drawn, weights),) = given
    assert len(drawn) == len(weights) <= 500
    assert set(np.diff(drawn[:, 0])) == {4.0}
    np.testing.assert_allclose(weights, (drawn[:, 0] + 1) / (drawn[:, 0] + 1).sum())
