"""Kalman filters: exact where the model is linear, right about angles, and clear about what they cannot take."""

import operator
import pickle

import numpy as np
import pytest
from helpers import cases, fixture_of, kalman, linear, model_of, of_inner_noise, refuses

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.gaussian import definite
from herdfilter.models.contract import VectorFunction, central_differences

POINTS_OR_SLOPES = {
    "ekf": hf.ExtendedKalmanFilter,
    "ukf": hf.UnscentedKalmanFilter,
    "scaled ukf": lambda model: hf.UnscentedKalmanFilter(model, alpha=0.1, beta=2.0, kappa=0.0),
    "ckf": hf.CubatureKalmanFilter,
    "s2kf": lambda model: hf.SmartSamplingKalmanFilter(model, 20),
}
EVERY = {**POINTS_OR_SLOPES, "enkf": lambda model: hf.EnsembleKalmanFilter(model, 50, rng=0)}
FLOWS = {
    "edh": lambda model: hf.DaumHuangFilter(model, 100, rng=0),
    "ledh": lambda model: hf.DaumHuangFilter(model, 100, rng=0, local=True),
}


gaussian = fixture_of(POINTS_OR_SLOPES)
every = fixture_of(EVERY)


KNOWN = linear(3, 2, Q=np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0]), initial_covariance=np.zeros((3, 3)))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("model", [linear(1, 1), linear(2, 3), linear(3, 3), linear(4, 2), linear(6, 3), KNOWN])
def test_exact_on_a_linear_gaussian_model(gaussian, model, missing):
    """Also where entries are missing, and where a known state is carried along by noise of rank one."""
    _, observations = hf.simulate(model, 40, rng=1)
    observations[np.random.default_rng(3).random(observations.shape) < missing] = np.nan
    means, covariances, log_likelihoods = kalman(model, observations)
    kf = gaussian(model)
    result = kf.run(observations)
    np.testing.assert_allclose(result.means, means, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.covariances, covariances, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.log_likelihoods, log_likelihoods, rtol=0, atol=1e-8)
    assert kf.log_likelihood == pytest.approx(log_likelihoods.sum(), abs=1e-8)
    assert np.isnan(result.ess).all()
    nothing = [outcome is hf.Outcome.MISSING for outcome in result.outcomes]
    np.testing.assert_array_equal(nothing, np.isnan(observations).all(axis=1))


RANDOM = {
    "ensemble": hf.EnsembleKalmanFilter,
    "flow": lambda model, n, rng: hf.DaumHuangFilter(model, n, rng=rng, flow_steps=2),
    "weighted flow": lambda model, n, rng: hf.ParticleFilter(model, n, hf.FlowProposal(False, flow_steps=2), rng=rng),
}


@pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM)
def test_random_filters_tend_to_the_exact_posterior(make):
    """The errors fall as the root of the number: by 8 where that grows 64-fold."""
    model = linear()
    _, observations = hf.simulate(model, 30, rng=5)
    exact, errors = kalman(model, observations), []
    for n in (100, 6400):
        runs = [make(model, n, rng=seed).run(observations) for seed in range(8)]
        found = [(run.means - exact[0], run.covariances - exact[1], run.log_likelihood - exact[2].sum()) for run in runs]
        errors.append([np.sqrt(np.mean(np.square(part))) for part in zip(*found, strict=True)])
    ratio = np.divide(*errors)
    assert (ratio > 4).all()
    assert (ratio < 16).all()
    assert errors[1][0] < 0.03


def test_noise_inside_the_transition_is_exact_where_it_is_linear(gaussian):
    model = linear()
    _, observations = hf.simulate(model, 20, rng=6)
    result = gaussian(of_inner_noise(model)).run(observations)
    np.testing.assert_allclose(result.means, kalman(model, observations)[0], rtol=0, atol=1e-8)


def turning(start=0.0, **changed):
    """A heading, and the rate at which it turns; both headings and their direction are angles."""

    def turned(x, dt, step):
        return wrap_angles(x + dt * x[:, [1]] * [1.0, 0.0] + [0.0, 0.02 * np.sin(step)], (0,))

    Q, P0 = np.diag([0.01, 0.001]), np.diag([0.05, 0.01])
    model = hf.models.from_functions(turned, lambda x: x[:, :1], Q, [[0.02]], [start, 0.3], P0, [0], [0])
    vars(model).update(changed)
    return model


@pytest.mark.parametrize("rotation", [1.0, 2.5, np.pi, -2.0])
@pytest.mark.parametrize("make", (EVERY | FLOWS).values(), ids=EVERY | FLOWS)
def test_the_cut_of_the_circle_may_be_anywhere(make, rotation):
    rng = np.random.default_rng(7)
    observations = np.cumsum(rng.normal(0.3, 0.1, (40, 1)), axis=0)
    plain = make(turning()).run(wrap_angles(observations, (0,)))
    turned = make(turning(rotation)).run(observations + rotation)  # several turns, not wrapped
    apart = wrap_angles(turned.means - plain.means - [rotation, 0.0], (0,))
    np.testing.assert_allclose(apart, 0.0, atol=1e-7)
    np.testing.assert_allclose(turned.covariances, plain.covariances, atol=1e-8)
    assert turned.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)
    assert np.abs(turned.means[:, 0]).max() <= np.pi


def test_an_initial_mixture_gives_its_moments_about_the_circle(gaussian):
    kf = gaussian(turning(initial=hf.GaussianMixture([0.5, 0.5], [[3.1, 0.0], [-3.1, 0.0]], 0.01 * np.eye(2))))
    assert np.abs(kf.mean[0]) == pytest.approx(np.pi, abs=1e-9)
    assert kf.covariance[0, 0] == pytest.approx(0.01 + (np.pi - 3.1) ** 2)


@pytest.mark.parametrize("place", [0.0, 1e6])
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_differences_give_the_jacobian_in_any_unit_and_far_from_the_origin(place, unit):
    """Bearing and range of a target 100 units away, its position given in another unit."""

    def bearing_and_range(x):
        x = x / unit - place
        return np.column_stack([np.arctan2(x[:, 1], x[:, 0]), np.hypot(x[:, 0], x[:, 1])])

    a, b = -100.0, 1.0
    r2 = a**2 + b**2
    expected = np.array([[-b / r2, a / r2], [a / np.sqrt(r2), b / np.sqrt(r2)]]) / unit
    function = VectorFunction(bearing_and_range, lambda size: (0,))
    means = unit * (np.array([[a, b], [a, 0.0]]) + place)  # the second is at the cut
    _, J = central_differences(function, means, np.array([[unit, unit]]))
    np.testing.assert_allclose(J[0], expected, rtol=1e-5, atol=1e-7 / unit)
    np.testing.assert_allclose(J[1], [[0.0, -0.01 / unit], [-1.0 / unit, 0.0]], atol=1e-6 / unit)


class Jacobians(hf.models.UNGM):
    def transition_jacobian(self, x, dt, control, step):
        return (0.5 + 25 * (1 - x**2) / (1 + x**2) ** 2)[:, :, None]

    def observation_jacobian(self, x, step):
        return (x / 10)[:, :, None]


def test_a_given_jacobian_is_used_and_agrees_with_differences():
    model = Jacobians()
    _, observations = hf.simulate(model, 20, rng=9)
    given = hf.ExtendedKalmanFilter(model).run(observations)
    found = hf.ExtendedKalmanFilter(hf.models.UNGM()).run(observations)
    np.testing.assert_allclose(given.means, found.means, rtol=1e-6)

    class Wrong(Jacobians):
        def transition_jacobian(self, x, dt, control, step):
            return np.ones((1, 2))

    with pytest.raises(ValueError, match=r"jacobian: expected shape \(1, 1, 1\), got \(1, 2\)"):
        hf.ExtendedKalmanFilter(Wrong()).predict()


def test_time_steps_and_controls_reach_the_model(every):
    seen = []

    def moved(x, dt, control, step):
        seen.append((dt, control, step))
        return x

    every(turning(transition_mean=moved)).run([[0.1], None], dt=[0.5, 2.0], controls=["left", "right"])
    assert seen == [(0.5, "left", 1), (2.0, "right", 2)]


def test_the_ensemble_shows_its_members():
    kf = hf.EnsembleKalmanFilter(linear(2, 1), 30, rng=11)
    kf.predict()
    record = kf.update([0.4])
    np.testing.assert_allclose(kf.mean, kf.particles.mean(axis=0))
    np.testing.assert_allclose(kf.covariance, np.cov(kf.particles.T))
    assert record.ess == 30


def test_the_ensemble_takes_a_transition_that_can_only_be_simulated():
    model = linear(1, 1)

    root = np.sqrt(model.Q[0, 0])
    moving = model_of(
        model.initial,
        observation_mean=model.observation_mean,
        observation_covariance=model.observation_covariance,
        sample_transition=lambda x, rng, dt, control, step: x @ model.F.T + root * rng.standard_normal(x.shape),
    )
    _, observations = hf.simulate(model, 5, rng=12)
    simulated = hf.EnsembleKalmanFilter(moving, 4000, rng=1).run(observations)
    np.testing.assert_allclose(simulated.means, kalman(model, observations)[0], atol=0.1)


def test_definiteness_lost_to_rounding_is_repaired(gaussian):
    """A prior wider than the observation noise by 16 orders of magnitude."""
    rng = np.random.default_rng(13)
    model = linear(4, 4, H=rng.normal(size=(4, 4)), R=1e-8 * np.eye(4), initial_covariance=1e8 * np.eye(4))
    _, observations = hf.simulate(linear(4, 4, H=model.H, R=model.R), 10, rng=14)
    result = gaussian(model).run(observations)
    lowest = np.linalg.eigvalsh(result.covariances)[:, 0]
    assert (lowest >= -1e-12).all()
    np.testing.assert_allclose(result.means[-1] @ model.H.T, observations[-1], atol=1e-3)


def test_repair_keeps_the_covariance_within_the_tolerance():
    bad = np.array([np.diag([1.0, -1e-9]), np.eye(2)])
    fixed = definite(bad, np.eye(2), 1, "predicted")
    np.testing.assert_allclose(fixed, [np.diag([1.0, 0.0]), np.eye(2)], atol=1e-15)
    for hopeless in (np.diag([1.0, -1e-7]), np.diag([1.0, np.nan])):
        with pytest.raises(hf.IndefiniteCovarianceError, match="step 3: the predicted covariance is not positive"):
            definite(hopeless[None], np.eye(2), 3, "predicted")


class Square(hf.models.UNGM):
    """Whose image, with a negative weight in the centre, has a negative variance."""

    def transition_mean(self, x, dt, control, step):
        return x**2 if step == 2 else x


def test_definiteness_lost_for_good_is_a_named_error():
    model = Square(process_variance=0.01, observation_variance=1.0, initial_variance=5.0)
    kf = hf.UnscentedKalmanFilter(model, kappa=-0.9)
    with pytest.raises(hf.IndefiniteCovarianceError, match="step 2: the predicted covariance") as caught:
        kf.run([None, None, None])
    assert caught.value.step == 2
    assert len(caught.value.result) == 1
    assert kf.step == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.step, len(again.result), str(again)) == (2, 1, str(caught.value))


def test_an_observation_without_noise_that_says_nothing_is_a_named_error(every):
    blind = {"observation_mean": lambda x, step: 0 * x[:, :1], "observation_covariance": lambda step: np.zeros((1, 1))}
    with pytest.raises(hf.IndefiniteCovarianceError, match="step 1: the observation's covariance"):
        every(turning(**blind)).run([[0.0]])


@cases(
    "z message",
    ([0.1, 0.2], r"z: expected shape \(1,\), as observation_mean has, got \(2,\)"),
    ([[0.1]], r"z: expected a vector, got shape \(1, 1\) at step 1"),
    ([np.inf], r"z: expected finite numbers, or NaN where missing, got \[inf\] at step 1"),
    ("north", "z: expected None or an array of numbers, got 'north'"),
)
def test_bad_observations_are_named_and_the_prediction_is_kept(every, z, message):
    kf = every(turning())
    kf.predict()
    before = kf.mean
    with pytest.raises(ValueError, match=message):
        kf.update(z)
    np.testing.assert_array_equal(kf.mean, before)
    assert kf.record is None
    assert kf.update(0.1).outcome is hf.Outcome.UPDATED  # a number stands for one entry


def test_estimates_that_overflow_are_named_and_the_prediction_is_kept(every):
    """So far from the prediction, in its own standard deviations, that the square is no number."""
    sharp = 1e-270 * np.eye(1)
    kf = every(hf.models.LinearGaussian([[1.0]], [[1.0]], sharp, sharp, [0.0], sharp))
    kf.predict()
    before = kf.mean, kf.log_likelihood
    expected = "z: expected an observation that leaves moments and log-likelihood finite, got .* at step 1"
    with pytest.raises(ValueError, match=expected):  # and not by a warning, which is an error here
        kf.update([1e149])
    assert (kf.mean, kf.log_likelihood, kf.record) == (*before, None)
    assert kf.update([1e-135]).outcome is hf.Outcome.UPDATED


@cases(
    "name value message",
    ("observation_mean", lambda x, _: x[:, 0], r"observation_mean: expected shape \(\d+, \*\) .* at step 1"),
    ("observation_mean", lambda x, _: x[:, :1] * np.nan, "observation_mean: expected finite numbers .* at step 1"),
    ("transition_mean", lambda x, *_: x[:, :1], "transition_mean: expected shape .* at step 1"),
    ("observation_covariance", lambda step: np.eye(2), r"observation_covariance: expected shape \(1, 1\), got \(2, 2\)"),
    ("observation_circular", (1,), r"observation_circular: expected .* from 0 to 0, .* got \(1,\)"),
)  # fmt: skip
def test_bad_values_of_the_model_are_named(every, name, value, message):
    with pytest.raises(ValueError, match=message):
        every(turning(**{name: value})).run([[0.1]])


class Nothing:
    dim, initial = 1, linear(1, 1).initial


class HalfObserved(Nothing):
    transition_mean, transition_covariance = hf.models.UNGM.transition_mean, hf.models.UNGM.transition_covariance
    observation_mean = hf.models.UNGM.observation_mean


def test_what_the_model_lacks_is_named(every):
    with pytest.raises(TypeError, match=r"KalmanFilter needs .*; Nothing has no transition_mean and no transition_cov"):
        every(Nothing())
    with pytest.raises(TypeError, match=r"KalmanFilter needs .*; HalfObserved has no observation_covariance"):
        every(HalfObserved())
    with pytest.raises(TypeError, match="expected an instance, got the class UNGM"):
        every(hf.models.UNGM)


def test_an_initial_distribution_without_moments_is_named(gaussian):
    model = turning(initial=hf.models.UniformBox([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(TypeError, match="initial distribution needs mean and covariance; UniformBox has no mean"):
        gaussian(model)
    hf.EnsembleKalmanFilter(model, 5, rng=0).predict()  # which only draws from it


test_bad_arguments_are_named = refuses(
    operator.call,
    (lambda: hf.UnscentedKalmanFilter(turning(), alpha=0.0), "alpha: expected a positive finite number, got 0"),
    (lambda: hf.UnscentedKalmanFilter(turning(), kappa=-2.0), "kappa: expected a number above -2 in 2 dimensions"),
    (lambda: hf.UnscentedKalmanFilter(turning(), kappa=np.nan), "kappa: expected finite numbers, got 1 non-finite"),
    (lambda: hf.UnscentedKalmanFilter(turning(), beta=np.inf), "beta: expected finite numbers, got 1 non-finite"),
    (lambda: hf.SmartSamplingKalmanFilter(turning(), 3), "n_particles: expected an integer of at least 4, got 3"),
    (lambda: hf.EnsembleKalmanFilter(turning(), 1), "n_particles: expected an integer of at least 2, got 1"),
    (lambda: hf.EnsembleKalmanFilter(turning(), rng="dice"), "rng: expected a numpy Generator"),
)  # fmt: skip


def test_the_predicted_observation_is_that_of_the_gain(gaussian):
    model = hf.models.linear_chain(2)
    kalman = gaussian(model)
    for predict in (lambda: None, kalman.predict):
        predict()
        mean, covariance = kalman.predicted_observation()
        np.testing.assert_allclose(mean, model.H @ kalman.mean, atol=1e-9)
        np.testing.assert_allclose(covariance, model.H @ kalman.covariance @ model.H.T + model.R, rtol=1e-6, atol=1e-9)
