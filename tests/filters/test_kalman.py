"""Kalman filters: exact where the model is linear, right about angles, and clear about what they cannot take."""

import copy
import pickle
from typing import ClassVar

import filterpy.kalman
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.catalogue.specifications import resolve_filters
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


@pytest.fixture(scope="module", autouse=True)
def single_thread():
    """Matrices are small: threads only get in each other's way."""
    with threadpool_limits(1):
        yield


@pytest.fixture(params=POINTS_OR_SLOPES.values(), ids=POINTS_OR_SLOPES)
def gaussian(request):
    """Makes each filter without random numbers."""
    return request.param


@pytest.fixture(params=EVERY.values(), ids=EVERY)
def every(request):
    """Makes each filter."""
    return request.param


def linear(d, k, seed=0, **changes):
    rng = np.random.default_rng(seed)
    arguments = {
        "F": 0.95 * np.linalg.qr(rng.normal(size=(d, d)))[0],
        "H": rng.normal(size=(k, d)),
        "Q": 0.3 * np.eye(d),
        "R": np.diag(rng.uniform(0.3, 2.0, k)),
        "initial_mean": np.ones(d),
        "initial_covariance": 2.0 * np.eye(d),
    }
    return hf.models.LinearGaussian(**{**arguments, **changes})


def kalman(model, observations):
    """Means, covariances and log-likelihood by filterpy's linear filter, on the finite part of each observation."""
    kf = filterpy.kalman.KalmanFilter(model.dim, len(model.H))
    kf.x, kf.P, kf.F, kf.Q = model.initial_mean, model.initial_covariance, model.F, model.Q
    means, covariances, log_likelihood = [], [], 0.0
    for z in observations:
        kf.predict()
        kept = ~np.isnan(z)
        if kept.any():
            kf.update(z[kept], model.R[np.ix_(kept, kept)], model.H[kept])
            residual, S = kf.y, kf.S
            log_likelihood -= 0.5 * (residual @ np.linalg.solve(S, residual) + np.linalg.slogdet(2 * np.pi * S)[1])
        means.append(kf.x)
        covariances.append(kf.P)
    return np.array(means), np.array(covariances), log_likelihood


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 3), (4, 2), (6, 3)])
def test_exact_on_a_linear_gaussian_model(gaussian, d, k):
    model = linear(d, k)
    _, observations = hf.simulate(model, 40, rng=1)
    means, covariances, log_likelihood = kalman(model, observations)
    kf = gaussian(model)
    result = kf.run(observations)
    np.testing.assert_allclose(result.means, means, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.covariances, covariances, rtol=0, atol=1e-8)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)
    assert kf.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)
    assert np.isnan(result.ess).all()


def test_exact_where_entries_are_missing(gaussian):
    model = linear(3, 3)
    _, observations = hf.simulate(model, 30, rng=2)
    observations[np.random.default_rng(3).random(observations.shape) < 0.4] = np.nan
    assert np.isnan(observations).all(axis=1).any()
    means, covariances, log_likelihood = kalman(model, observations)
    result = gaussian(model).run(observations)
    np.testing.assert_allclose(result.means, means, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.covariances, covariances, rtol=0, atol=1e-8)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)
    missing = np.array([outcome is hf.Outcome.MISSING for outcome in result.outcomes])
    np.testing.assert_array_equal(missing, np.isnan(observations).all(axis=1))


def test_exact_where_nothing_is_uncertain_in_some_directions(gaussian):
    """A known state is carried along by noise of rank one."""
    model = linear(3, 2, Q=np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0]), initial_covariance=np.zeros((3, 3)))
    _, observations = hf.simulate(model, 20, rng=4)
    means, covariances, log_likelihood = kalman(model, observations)
    result = gaussian(model).run(observations)
    np.testing.assert_allclose(result.means, means, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.covariances, covariances, rtol=0, atol=1e-8)
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)


def test_ensemble_tends_to_the_exact_posterior():
    """The error of mean and covariance falls as the root of the size: by 8 where that grows 64-fold."""
    model = linear(2, 1)
    _, observations = hf.simulate(model, 40, rng=5)
    means, covariances, log_likelihood = kalman(model, observations)
    errors = {}
    for n in (100, 6400):
        runs = [hf.EnsembleKalmanFilter(model, n, rng=seed).run(observations) for seed in range(8)]
        errors[n] = [
            np.sqrt(np.mean([(run.means - means) ** 2 for run in runs])),
            np.sqrt(np.mean([(run.covariances - covariances) ** 2 for run in runs])),
            np.sqrt(np.mean([(run.log_likelihood - log_likelihood) ** 2 for run in runs])),
        ]
    ratio = np.array(errors[100]) / errors[6400]
    assert (ratio > 4).all()
    assert (ratio < 16).all()
    assert errors[6400][0] < 0.03


def test_noise_inside_the_transition_is_exact_where_it_is_linear(gaussian):
    model = linear(2, 1)
    _, observations = hf.simulate(model, 20, rng=6)

    class Inside:
        dim, noise_dim, initial = model.dim, model.dim, model.initial
        observation_mean = staticmethod(model.observation_mean)
        observation_covariance = staticmethod(model.observation_covariance)

        def transition(self, x, noise, dt, control, step):
            return x @ model.F.T + noise @ np.linalg.cholesky(model.Q).T

    np.testing.assert_allclose(gaussian(Inside()).run(observations).means, kalman(model, observations)[0], rtol=0, atol=1e-8)


class Turn:
    """A heading, and the rate at which it turns; both headings and their direction are angles."""

    dim = 2
    circular = (0,)
    observation_circular = (0,)

    def __init__(self, start=0.0):
        self.initial = hf.GaussianMixture([1.0], [[start, 0.3]], np.diag([0.05, 0.01]))

    def transition_mean(self, x, dt, control, step):
        return wrap_angles(x + dt * x[:, [1]] * [1.0, 0.0] + [0.0, 0.02 * np.sin(step)], (0,))

    def transition_covariance(self, dt, step):
        return np.diag([0.01, 0.001])

    def observation_mean(self, x, step):
        return wrap_angles(x[:, :1], (0,))

    def observation_covariance(self, step):
        return np.array([[0.02]])


@pytest.mark.parametrize("rotation", [1.0, 2.5, np.pi, -2.0])
def test_the_cut_of_the_circle_may_be_anywhere(every, rotation):
    """Turned start and observations turn the estimates, and change nothing else."""
    rng = np.random.default_rng(7)
    observations = np.cumsum(rng.normal(0.3, 0.1, (40, 1)), axis=0)
    plain = every(Turn()).run(wrap_angles(observations, (0,)))
    turned = every(Turn(rotation)).run(observations + rotation)  # several turns, not wrapped
    apart = wrap_angles(turned.means - plain.means - [rotation, 0.0], (0,))
    np.testing.assert_allclose(apart, 0.0, atol=1e-7)
    np.testing.assert_allclose(turned.covariances, plain.covariances, atol=1e-8)
    assert turned.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)
    assert np.abs(turned.means[:, 0]).max() <= np.pi


def test_bearings_across_the_cut(gaussian):
    """A target west of its sensors, where bearings jump between pi and -pi, is tracked like its mirror image in the east."""
    sensors = np.array([[-1.0, -2.0], [1.0, 1.0]])
    mean = np.array([3.0, -0.5, 0.1, 0.4])
    covariance = np.diag([0.1, 0.1, 0.5, 0.5])
    east = hf.models.BearingsTracking(sensors, initial_mean=mean, initial_covariance=covariance)
    west = hf.models.BearingsTracking(-sensors, initial_mean=-mean, initial_covariance=covariance)
    _, observations = hf.simulate(east, 30, rng=8, dt=0.1)
    opposite = wrap_angles(observations + np.pi, (0, 1))
    assert np.ptp(opposite) > 6
    plain, mirrored = gaussian(east).run(observations, dt=0.1), gaussian(west).run(opposite, dt=0.1)
    np.testing.assert_allclose(mirrored.means, -plain.means, atol=1e-7)
    assert mirrored.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)


def test_an_initial_mixture_gives_its_moments_about_the_circle(gaussian):
    class Split(Turn):
        def __init__(self):
            self.initial = hf.GaussianMixture([0.5, 0.5], [[3.1, 0.0], [-3.1, 0.0]], 0.01 * np.eye(2))

    kf = gaussian(Split())
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

    with pytest.raises(ValueError, match=r"jacobian: expected finite numbers of shape \(1, 1, 1\) .* got \(1, 2\)"):
        hf.ExtendedKalmanFilter(Wrong()).predict()


def test_time_steps_and_controls_reach_the_model(every):
    class Driven(Turn):
        seen: ClassVar[list] = []

        def transition_mean(self, x, dt, control, step):
            self.seen.append((dt, control, step))
            return super().transition_mean(x, dt, control, step)

    Driven.seen = []
    every(Driven()).run([[0.1], None], dt=[0.5, 2.0], controls=["left", "right"])
    assert Driven.seen == [(0.5, "left", 1), (2.0, "right", 2)]


def test_a_run_is_the_loop_and_can_be_stored_and_resumed_anywhere(every):
    model = linear(2, 1)
    _, observations = hf.simulate(model, 10, rng=10)
    whole = every(model).run(observations)
    kf = every(model)
    for z in observations[:4]:
        kf.predict()
        record = kf.update(z)
    assert kf.record is record
    assert kf.step == record.step == 4
    for again in (pickle.loads(pickle.dumps(kf)), copy.deepcopy(kf)):
        rest = again.run(observations[4:])
        np.testing.assert_array_equal(rest.means, whole.means[4:])
        np.testing.assert_array_equal(rest.covariances, whole.covariances[4:])
        assert again.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)


def test_the_ensemble_shows_its_members():
    kf = hf.EnsembleKalmanFilter(linear(2, 1), 30, rng=11)
    kf.predict()
    record = kf.update([0.4])
    np.testing.assert_allclose(kf.mean, kf.particles.mean(axis=0))
    np.testing.assert_allclose(kf.covariance, np.cov(kf.particles.T))
    assert record.ess == 30


def test_the_ensemble_takes_a_transition_that_can_only_be_simulated():
    model = linear(1, 1)

    class Simulated:
        dim, initial = 1, model.initial
        observation_mean = staticmethod(model.observation_mean)
        observation_covariance = staticmethod(model.observation_covariance)

        def sample_transition(self, x, rng, dt, control, step):
            return x @ model.F.T + np.sqrt(model.Q[0, 0]) * rng.standard_normal(x.shape)

    _, observations = hf.simulate(model, 5, rng=12)
    simulated = hf.EnsembleKalmanFilter(Simulated(), 4000, rng=1).run(observations)
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
    class Blind(Turn):
        def observation_mean(self, x, step):
            return np.zeros((len(x), 1))

        def observation_covariance(self, step):
            return np.zeros((1, 1))

    with pytest.raises(hf.IndefiniteCovarianceError, match="step 1: the observation's covariance"):
        every(Blind()).run([[0.0]])


@pytest.mark.parametrize(
    ("z", "message"),
    [
        ([0.1, 0.2], r"z: expected shape \(1,\), as of observation_mean, got \(2,\)"),
        ([[0.1]], r"z: expected a vector, got shape \(1, 1\) at step 1"),
        ([np.inf], r"z: expected finite numbers, or NaN where missing, got \[inf\] at step 1"),
        ("north", "z: expected None or an array of numbers, got 'north'"),
    ],
)
def test_bad_observations_are_named_and_the_prediction_is_kept(every, z, message):
    kf = every(Turn())
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


def test_an_observation_of_the_initial_state_is_refused(every):
    with pytest.raises(RuntimeError, match="update: the filter stands at the initial state, step 0"):
        every(Turn()).update([0.1])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("observation_mean", lambda x: x[:, 0], r"observation_mean: expected shape \(\d+, \*\) .* at step 1"),
        ("observation_mean", lambda x: x[:, :1] * np.nan, "observation_mean: expected finite numbers .* at step 1"),
        ("transition_mean", lambda x: x[:, :1], "transition_mean: expected shape .* at step 1"),
    ],
)  # fmt: skip
def test_bad_values_of_the_model_are_named(every, name, value, message):
    model = Turn()
    setattr(model, name, lambda x, *_: value(x))
    with pytest.raises(ValueError, match=message):
        every(model).run([[0.1]])


def test_bad_covariances_and_angles_of_the_model_are_named(every):
    model = Turn()
    model.observation_covariance = lambda step: np.eye(2)
    with pytest.raises(ValueError, match=r"observation_covariance: expected shape \(1, 1\), got \(2, 2\)"):
        every(model).run([[0.1]])
    model = Turn()
    model.observation_circular = (1,)
    with pytest.raises(ValueError, match=r"observation_circular: expected .* from 0 to 0, .* got \(1,\)"):
        every(model).run([[0.1]])


def test_a_bad_time_step_is_named(every):
    kf = every(Turn())
    for dt in (0.0, -1.0, np.nan, "1"):
        with pytest.raises(ValueError, match=f"dt: expected a positive finite number, got {dt!r}"):
            kf.predict(dt)
        assert kf.step == 0


def test_series_of_different_lengths_are_named(every):
    with pytest.raises(ValueError, match="dt: expected one per step, 2, got 1"):
        every(Turn()).run([None, None], dt=[1.0])
    with pytest.raises(ValueError, match="controls: expected one per step, 2, got 3"):
        every(Turn()).run([None, None], controls=[None] * 3)


class Nothing:
    dim = 1
    initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])


class OnlyTransition(Nothing):
    def transition_mean(self, x, dt, control, step):
        return x

    def transition_covariance(self, dt, step):
        return np.eye(1)


class HalfObserved(OnlyTransition):
    def observation_mean(self, x, step):
        return x


def test_what_the_model_lacks_is_named(every):
    with pytest.raises(TypeError, match=r"KalmanFilter needs .*; Nothing has no transition_mean and no transition_cov"):
        every(Nothing())
    with pytest.raises(TypeError, match=r"KalmanFilter needs .*; HalfObserved has no observation_covariance"):
        every(HalfObserved())
    with pytest.raises(TypeError, match="expected an instance, got the class Turn"):
        every(Turn)


def test_an_initial_distribution_without_moments_is_named(gaussian):
    model = Turn()
    model.initial = hf.models.UniformBox([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(TypeError, match="initial distribution needs mean and covariance; UniformBox has no mean"):
        gaussian(model)
    hf.EnsembleKalmanFilter(model, 5, rng=0).predict()  # which only draws from it


def test_an_initial_distribution_of_another_dimension_is_named(every):
    model = Turn()
    model.initial = Nothing.initial
    with pytest.raises(ValueError, match="initial"):
        every(model)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hf.UnscentedKalmanFilter(Turn(), alpha=0.0), "alpha: expected a positive finite number, got 0"),
        (lambda: hf.UnscentedKalmanFilter(Turn(), kappa=-2.0), "kappa: expected a number above -2 in 2 dimensions"),
        (lambda: hf.UnscentedKalmanFilter(Turn(), kappa=np.nan), "kappa: expected finite numbers, got 1 non-finite"),
        (lambda: hf.UnscentedKalmanFilter(Turn(), beta=np.inf), "beta: expected finite numbers, got 1 non-finite"),
        (lambda: hf.SmartSamplingKalmanFilter(Turn(), 3), "n_particles: expected an integer of at least 4, got 3"),
        (lambda: hf.EnsembleKalmanFilter(Turn(), 1), "n_particles: expected an integer of at least 2, got 1"),
        (lambda: hf.EnsembleKalmanFilter(Turn(), rng="dice"), "rng: expected a numpy Generator"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_catalogue_knows_them():
    model = linear(2, 1)
    _, observations = hf.simulate(model, 20, rng=15)
    exact = kalman(model, observations)[0]
    filters = resolve_filters(["ekf", "ukf", "ckf", "s2kf", "enkf"])
    for name, build in filters.items():
        means = build(model, 30, np.random.default_rng(1)).run(observations).means
        np.testing.assert_allclose(means, exact, atol=1.0 if name == "enkf" else 1e-8)


def test_the_predicted_observation_is_that_of_the_gain(gaussian):
    model = hf.models.linear_chain(2)
    kalman = gaussian(model)
    assert kalman.predicted_observation() is None
    kalman.predict()
    mean, covariance = kalman.predicted_observation()
    np.testing.assert_allclose(mean, model.H @ kalman.mean, atol=1e-9)
    np.testing.assert_allclose(covariance, model.H @ kalman.covariance @ model.H.T + model.R, rtol=1e-6)
