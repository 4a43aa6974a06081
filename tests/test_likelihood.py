"""Maximum likelihood: closed forms, the exact likelihood of a linear Gaussian model, jumps, bounds, bad input."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import EYE, cases, on_a_line, refusal, refuses
from numpy.random import default_rng
from scipy.optimize import minimize

import herdfilter as hf


class Formula:
    """A filter whose log-likelihood is a formula."""

    def __init__(self, function):
        self.function = function

    def run(self, z, **options):
        return SimpleNamespace(log_likelihood=self.function(np.asarray(z), **options))


def normal(theta):
    """Independent observations of mean and variance theta."""
    mean, variance = theta
    return Formula(
        lambda z: -0.5 * np.sum((z - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    )


def parabola(theta):
    return Formula(lambda z, **options: -0.5 * float(np.sum((theta - 1.0) ** 2)))


def linear(f, q):
    return on_a_line(F=f, Q=q)


def exact(f, q, z):
    """Log-density of all observations of `linear`, from their joint covariance."""
    steps = np.arange(1, len(z) + 1)
    variances = [1.0]
    for _ in steps:
        variances.append(f**2 * variances[-1] + q)
    lags = np.abs(steps[:, None] - steps)
    covariance = f**lags * np.array(variances)[np.minimum(steps[:, None], steps)] + np.eye(len(z))
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), np.ravel(z))
    return -0.5 * (whitened @ whitened + np.linalg.slogdet(2 * np.pi * covariance)[1])


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.usefixtures("silent")
def test_mean_and_variance_of_independent_observations_have_their_known_errors():
    z = default_rng(1).normal(2.0, 1.5, 400)
    found = hf.maximise_likelihood(
        normal, z, [0.0, 1.0], [(-10, 10), (0.1, 10)], ["mean", "variance"]
    )
    mean = z.mean()
    variance = z.var()
    errors = np.array([np.sqrt(variance / 400), variance * np.sqrt(2 / 400)])
    assert (found.theta - [mean, variance]) / errors == pytest.approx([0, 0], abs=0.01)
    assert found.standard_errors == pytest.approx(errors, rel=0.01)
    assert found.covariance[0, 1] == pytest.approx(0, abs=0.01 * errors.prod())
    assert found.log_likelihood == normal(found.theta).run(z).log_likelihood
    assert found.smooth
    assert found.evaluations <= 60
    assert "mean=" in repr(found)
    assert found.message == "converged"


@pytest.mark.usefixtures("silent")
def test_a_kalman_filter_finds_the_exact_maximum_and_hessian_of_a_linear_model():
    z = hf.simulate(linear(0.7, 1.0), 50, default_rng(2))[1]

    def build(theta):
        return hf.UnscentedKalmanFilter(linear(*theta))

    found = hf.maximise_likelihood(build, z, [0.4, 0.5], [(-0.98, 0.98), (0.05, 5.0)])
    assert found.log_likelihood == pytest.approx(exact(*found.theta, z))
    best = minimize(lambda theta: -exact(*theta, z), found.theta, method="Nelder-Mead", tol=1e-7).x
    errors = found.standard_errors
    assert (found.theta - best) / errors == pytest.approx([0, 0], abs=0.02)
    fine = 0.02 * errors
    e = EYE
    hessian = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            a = fine[i] * e[i]
            b = fine[j] * e[j]
            corners = [exact(*(best + s * a + t * b), z) * s * t for s in (1, -1) for t in (1, -1)]
            hessian[i, j] = sum(corners) / (4 * fine[i] * fine[j])
    assert errors == pytest.approx(np.sqrt(np.diag(np.linalg.inv(-hessian))), rel=0.05)
    assert found.evaluations <= 60


@cases("theta0", [0.2, 3.0, 0.5], [2.9, 0.1, 2.9])
@pytest.mark.usefixtures("silent")
def test_a_narrow_ridge_is_climbed_from_anywhere(theta0):
    """Correlation 0.97 between parameters of scales 1, 0.01 and 10."""
    scale = np.array([1.0, 0.01, 10.0])
    correlation = np.array([[1.0, 0.97, 0.0], [0.97, 1.0, 0.0], [0.0, 0.0, 1.0]])
    inverse = np.linalg.inv(correlation)

    def build(theta):
        u = (theta / scale - 1.0) * 10
        return Formula(lambda z: -0.5 * u @ inverse @ u)

    box = np.column_stack([-5 * scale, 5 * scale])
    found = hf.maximise_likelihood(build, [], np.array(theta0) * scale, box)
    assert (found.theta / scale - 1) * 10 == pytest.approx([0, 0, 0], abs=0.05)
    assert found.covariance * 100 / np.outer(scale, scale) == pytest.approx(correlation, abs=1e-6)


def test_standard_errors_are_given_only_where_they_are_about_right():
    """Of the persistence of an autoregression: exact ones are 0.03, teeth of resampling have 1e-6 to 1e-2."""

    def model(theta):
        return on_a_line(F=theta[0], R=0.5)

    z = hf.simulate(model([0.9]), 200, rng=0)[1]

    def found(name):
        return hf.maximise_likelihood(
            lambda theta: hf.make_filter(name, model(theta), 50, 1), z, 0.8, [(-0.99, 0.999)], "phi"
        )

    exact = found("ekf")
    assert exact.smooth
    assert 0.02 < exact.standard_errors[0] < 0.05
    with pytest.warns(hf.RoughLikelihoodWarning, match="jumps of about .* along phi"):
        rough = found("bootstrap")
    assert not rough.smooth
    assert rough.roughness[0] > 0.1
    assert np.isnan([rough.standard_errors[0], rough.covariance[0, 0]]).all()
    assert "no standard errors" in rough.message


@pytest.mark.usefixtures("silent")
def test_quantiles_give_a_smooth_likelihood_near_the_exact_one():
    z = hf.simulate(hf.models.StochasticVolatility(rho=0.8, sigma=0.5), 30, default_rng(3))[1]

    def model(theta):
        return hf.models.StochasticVolatility(mu=theta[0], rho=0.8, sigma=0.5)

    def build(theta):
        return hf.ParticleFilter(model(theta), 50, hf.HerdedProposal(hf.QuantileSampling()))

    found = hf.maximise_likelihood(build, z, [0.0], [(-5.0, 3.0)])
    true = hf.maximise_likelihood(
        lambda theta: hf.GridFilter(model(theta), -14, 12, 261), z, [0.0], [(-5, 3)]
    )
    assert found.smooth
    assert found.roughness[0] < 1e-3
    assert abs(found.theta - true.theta) < 0.05 * true.standard_errors
    assert found.standard_errors == pytest.approx(true.standard_errors, rel=0.05)


def test_jumps_of_a_size_are_told_in_that_size():
    def build(theta):
        noise = default_rng(abs(hash(float(theta[0]))) % 2**32).standard_normal()
        return Formula(lambda z: -0.5 * theta[0] ** 2 + 0.2 * noise)

    with pytest.warns(hf.RoughLikelihoodWarning):
        found = hf.maximise_likelihood(build, [], 0.5, [(-5, 5)])
    assert 0.05 < found.roughness[0] < 2.0


def test_a_parameter_at_its_bound_has_no_standard_error():
    found = hf.maximise_likelihood(parabola, [], [0.5, -1.0], [(-5, 5), (-5, 0)], ["a", "b"])
    assert found.theta == pytest.approx([1.0, 0.0], abs=1e-6)
    assert np.isnan(found.standard_errors[1])
    assert found.standard_errors[0] == pytest.approx(1.0)
    assert "b at a bound" in found.message


def cliff(theta):
    if theta[0] > 1.5:
        return Formula(lambda z: -np.inf if theta[0] < 2 else np.nan)
    return parabola(theta)


@cases("build start bound", (cliff, [1.4], 5), (parabola, 30.0, np.inf))
def test_a_likelihood_that_vanishes_in_places_is_climbed_around_and_infinite_bounds_are_none(
    build, start, bound
):
    found = hf.maximise_likelihood(build, [], start, [(-bound, bound)])
    assert found.theta == pytest.approx([1.0], abs=1e-6)


def test_a_flat_likelihood_has_no_standard_errors():
    found = hf.maximise_likelihood(lambda theta: Formula(lambda z: 1.0), [], [0.0], [(-1, 1)])
    assert np.isnan(found.standard_errors).all()
    assert "not negative definite" in found.message


def test_options_are_passed_to_run():
    asked = []

    def build(theta):
        return Formula(lambda z, **options: asked.append(options) or -0.5 * theta[0] ** 2)

    hf.maximise_likelihood(build, [1.0], [0.1], [(-1, 1)], dt=0.5, controls=[2.0])
    assert {tuple(options.items()) for options in ({"dt": o["dt"]} for o in asked)} == {
        (("dt", 0.5),)
    }
    assert all(options["controls"] == [2.0] for options in asked)


def test_a_search_that_is_cut_short_says_so():
    found = hf.maximise_likelihood(
        normal, np.arange(9.0), [0, 1], [(-90, 90), (0.1, 90)], max_evaluations=6
    )
    assert "stopped after 6 evaluations" in found.message


GIVEN = {"build": parabola, "observations": [], "theta0": [0.5], "bounds": [(0.0, 1.0)]}

test_bad_input_is_named = refuses(
    lambda changed: hf.maximise_likelihood(**GIVEN | changed),
    ({"build": 3}, "build: expected a function from parameters to a filter, got 3"),
    (
        {"theta0": [2.0]},
        r"theta0: expected parameters within the bounds \[\[0.0, 1.0\]\], got \[2.0\]",
    ),
    (
        {"bounds": [(1.0, 0.0)]},
        r"bounds: expected rows \(lowest, highest\), the first below the second, got \[\[1.0, 0.0\]\]",
    ),
    ({"bounds": (0.0, 1.0)}, r"bounds: expected shape \(1, 2\), got"),
    (
        {"build": lambda theta: Formula(lambda z: np.nan)},
        r"theta0: expected a finite log-likelihood there, got nan at \[0.5\]",
    ),
    error=(TypeError, ValueError),
)


def test_one_filter_for_all_parameters_is_refused():
    pf = hf.ParticleFilter(linear(0.5, 1.0), 10, rng=0)
    with refusal("build: expected a new filter every time, got the same ParticleFilter"):
        hf.maximise_likelihood(lambda theta: pf, [1.0], [0.5], [(0, 1)])


def test_errors_tell_the_parameters():
    with refusal("sigma") as caught:
        hf.maximise_likelihood(
            lambda theta: hf.ParticleFilter(hf.models.StochasticVolatility(sigma=theta[0])),
            [1.0],
            [-1.0],
            [(-2, 2)],
        )
    assert caught.value.__notes__ == ["at theta = [-1.0]"]
