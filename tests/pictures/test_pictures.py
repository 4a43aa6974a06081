"""Pictures go where they are told, hold what they say they hold, and draw no line across the seam of a circle."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import EYE, refuses
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter import plotting

COVARIANCE = np.array([[4.0, 1.5], [1.5, 1.0]])
MIXTURE = hf.GaussianMixture(
    [0.7, 0.3], [[0.0, 0.0, 1.0], [6.0, 2.0, 0.0]], np.diag([1.0, 0.5, 2.0])
)


@pytest.fixture
def ax():
    return Figure().subplots()


def circling(steps=40):
    """A path whose heading goes round more than twice."""
    turn = np.linspace(0.0, 14.0, steps)
    return np.column_stack([turn, (turn + np.pi) % (2 * np.pi) - np.pi])


def longest_stride(line):
    """The longest way in y between two places that a line connects."""
    return np.nanmax(np.abs(np.diff(line.get_ydata())))


def test_axes_are_those_given_and_no_others(ax):
    before = plt.get_fignums()
    for draw in (
        lambda ax: plotting.plot_points([0.5, 1.0], ax),
        lambda ax: plotting.plot_mixture(MIXTURE, ax, dims=1),
        lambda ax: plotting.plot_track(circling(), None, ax, ends=True),
    ):
        assert draw(ax) is ax
        assert ax.has_data()
    assert plt.get_fignums() == before
    made = plotting.plot_ellipse([0, 0], COVARIANCE)  # without axes a figure of pyplot
    assert made.figure.number in plt.get_fignums()
    plt.close(made.figure)


def test_an_ellipse_holds_its_share_of_the_gaussian(ax):
    mass = 0.8
    plotting.plot_ellipse([1.0, -2.0], COVARIANCE, ax, mass=mass)
    (ellipse,) = ax.patches
    draws = np.random.default_rng(0).multivariate_normal([1.0, -2.0], COVARIANCE, 20_000)
    inside = ellipse.get_path().contains_points(
        ellipse.get_transform().inverted().transform(ax.transData.transform(draws))
    )
    assert inside.mean() == pytest.approx(mass, abs=0.012)


def test_contours_of_a_mixture_hold_their_shares(ax):
    plotting.plot_mixture(MIXTURE, ax, dims=(0, 1), levels=(0.5, 0.9))
    (contours,) = ax.collections
    draws = MIXTURE.marginal((0, 1)).sample(20_000, 1)
    outer, inner = contours.get_paths()
    for path, share in ((outer, 0.9), (inner, 0.5)):
        parts = path._iter_connected_components()
        inside = np.any([part.contains_points(draws) for part in parts], axis=0)
        assert inside.mean() == pytest.approx(share, abs=0.02)


def test_dots_have_the_weights_as_areas(ax):
    points = hf.Points([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [1, 2, 5])
    plotting.plot_points(points, ax)
    (dots,) = ax.collections
    assert_array_equal(dots.get_offsets(), points.x)
    assert_allclose(dots.get_sizes() / dots.get_sizes().sum(), points.weights)


def test_a_path_has_the_ellipses_asked_for(ax):
    path = circling(50)
    covariances = np.broadcast_to(0.1 * EYE, (50, 2, 2))
    plotting.plot_track(path, covariances, ax, every=10)
    assert [tuple(patch.center) for patch in ax.patches] == [tuple(place) for place in path[::10]]
    assert all(isinstance(patch, Ellipse) for patch in ax.patches)
    assert len(plotting.plot_track(path, covariances, Figure().subplots()).patches) == 20


def test_paths_are_broken_where_an_angle_wraps(ax):
    plotting.plot_track(circling(), None, ax, circular=(1,))
    assert longest_stride(ax.lines[0]) < 1.0
    plotting.plot_track(circling(), None, ax)
    assert longest_stride(ax.lines[1]) > 5.0
    result = SimpleNamespace(
        means=circling(), times=np.datetime64("2020-01-01") + np.arange(40), circular=(1,)
    )
    over_time = plotting.plot_state_over_time(result, 1, Figure().subplots(), truth=circling())
    assert [longest_stride(line) < 1.0 for line in over_time.lines] == [True, True]


def test_a_fan_goes_on_from_the_past_and_holds_the_quantiles():
    model = hf.models.linear_chain(2)
    pf = hf.ParticleFilter(model, 200, rng=0)
    result = pf.run([[0.3, 0.1], [1.0, 0.2]])
    ahead = pf.forecast(3)
    panels = result.plot(Figure().subplots(2))
    assert list(ahead.plot(panels, truth=np.ones((3, 2)), quantiles=(0.5, 0.9))) == list(panels)
    for i, ax in enumerate(panels):
        lines = {line.get_label(): line.get_xydata() for line in ax.lines}
        assert_array_equal(lines["forecast"], np.column_stack([ahead.times, ahead.means[:, i]]))
        assert_array_equal(lines["truth"][:, 1], 1.0)
        _, inner, outer = ax.collections
        for band, mass in ((inner, 0.5), (outer, 0.9)):
            edges = band.get_paths()[0].vertices
            low, high = ahead.quantiles([0.5 - mass / 2, 0.5 + mass / 2])[:, :, i].T
            for t, bounds in zip(ahead.times, zip(low, high, strict=True), strict=True):
                assert set(bounds) <= set(edges[edges[:, 0] == t, 1])


def draw_nothing(draw):
    figures = plt.get_fignums()
    try:
        draw()
    finally:
        assert plt.get_fignums() == figures


test_what_does_not_fit_is_said_before_anything_is_drawn = refuses(
    draw_nothing,
    (lambda: plotting.plot_points(EYE, ax=[1, 2]), "ax: expected Axes of matplotlib or None, got"),
    (lambda: plotting.plot_points(EYE, dims=(0, 2)), "dims: expected one or two indices from 0 to 1"),
    (lambda: plotting.plot_points(EYE, dims=(1.0, 0)), "dims: expected one or two indices from 0 to 1"),
    (lambda: plotting.plot_ellipse([0, 0], EYE, mass=95), "mass: expected a probability"),
    (lambda: plotting.plot_mixture(EYE), "mixture: expected a GaussianMixture"),
    (lambda: plotting.plot_track(np.eye(3), np.eye(3)), "covariances: expected shape"),
    error=(TypeError, ValueError),
)  # fmt: skip
