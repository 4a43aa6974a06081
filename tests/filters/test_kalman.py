"""Kalman filters: exact where the model is linear, right about angles, and clear about what they cannot take."""

import pickle

import numpy as np
import pytest
from helpers import (
    WithJacobians,
    assert_turns,
    cases,
    fixture_of,
    kalman,
    linear,
    model_of,
    of_inner_noise,
    only_simulated,
    refusal,
)
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

POINTS_OR_SLOPES = {
    "ekf": hf.ExtendedKalmanFilter,
    "ukf": hf.UnscentedKalmanFilter,
    "scaled ukf": lambda model: hf.UnscentedKalmanFilter(model, alpha=0.1, beta=2.0, kappa=0.0),
    "ckf": hf.CubatureKalmanFilter,
    "s2kf": lambda model: hf.SmartSamplingKalmanFilter(model, 20),
}
EVERY = {**POINTS_OR_SLOPES, "enkf": lambda model: hf.EnsembleKalmanFilter(model, 50, rng=0)}
SOME = {name: EVERY[name] for name in ("ekf", "ukf", "enkf")}
FLOWS = {
    "edh": lambda model: hf.DaumHuangFilter(model, 100, rng=0),
    "ledh": lambda model: hf.DaumHuangFilter(model, 100, rng=0, local=True),
}


gaussian = fixture_of(POINTS_OR_SLOPES)
some = fixture_of(SOME)


KNOWN = linear(
    3, 2, Q=np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0]), initial_covariance=np.zeros((3, 3))
)


@cases(
    "model missing form",
    (linear(2, 3), 0.4, None),
    (linear(6, 3), 0.0, None),
    (KNOWN, 0.4, None),
    (linear(), 0.0, of_inner_noise),
)
def test_exact_on_a_linear_gaussian_model(gaussian, model, missing, form):
    """Also where entries are missing, where a known state is carried along by noise of rank one, and with noise inside."""
    _, observations = hf.simulate(model, 20, rng=1)
    observations[np.random.default_rng(3).random(observations.shape) < missing] = np.nan
    means, covariances, log_likelihoods = kalman(model, observations)
    kf = gaussian(form(model) if form else model)
    result = kf.run(observations)
    assert_allclose(result.means, means, rtol=0, atol=1e-8)
    assert_allclose(result.covariances, covariances, rtol=0, atol=1e-8)
    assert_allclose(result.log_likelihoods, log_likelihoods, rtol=0, atol=1e-8)
    assert kf.log_likelihood == pytest.approx(log_likelihoods.sum(), abs=1e-8)
    assert np.isnan(result.ess).all()
    nothing = [outcome is hf.Outcome.MISSING for outcome in result.outcomes]
    assert_array_equal(nothing, np.isnan(observations).all(axis=1))


RANDOM = {
    "ensemble": hf.EnsembleKalmanFilter,
    "flow": lambda model, n, rng: hf.DaumHuangFilter(model, n, rng=rng, flow_steps=2),
    "weighted flow": lambda model, n, rng: hf.ParticleFilter(
        model, n, hf.FlowProposal(False, flow_steps=2), rng=rng
    ),
}


@cases("make", *RANDOM.values(), ids=RANDOM)
def test_random_filters_tend_to_the_exact_posterior(make):
    """The errors fall as the root of the number: by 8 where that grows 64-fold."""
    model = linear()
    _, observations = hf.simulate(model, 20, rng=5)
    exact = kalman(model, observations)
    errors = []
    for n in (100, 6400):
        runs = [make(model, n, rng=seed).run(observations) for seed in range(6)]
        found = [
            (run.means - exact[0], run.covariances - exact[1], run.log_likelihood - exact[2].sum())
            for run in runs
        ]
        errors.append([np.sqrt(np.mean(np.square(part))) for part in zip(*found, strict=True)])
    ratio = np.divide(*errors)
    assert (ratio > 4).all()
    assert (ratio < 16).all()
    assert errors[1][0] < 0.03


@cases("make", *(EVERY | FLOWS).values(), ids=EVERY | FLOWS)
@cases("turn", 2.5, -2.0)
def test_the_cut_of_the_circle_may_be_anywhere(make, turn):
    plain, turned = assert_turns(lambda model, z: make(model).run(z), turn, 1e-7)
    assert turned.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)


def test_a_given_jacobian_is_used_and_agrees_with_differences():
    _, observations = hf.simulate(WithJacobians(), 20, rng=9)
    given, found = (
        hf.ExtendedKalmanFilter(model).run(observations)
        for model in (WithJacobians(), hf.models.UNGM())
    )
    assert_allclose(given.means, found.means, rtol=1e-6)
    assert (given.means != found.means).any()


def test_the_ensemble_takes_a_transition_that_can_only_be_simulated():
    model = linear(1, 1)
    _, observations = hf.simulate(model, 5, rng=12)
    simulated = hf.EnsembleKalmanFilter(only_simulated(model), 4000, rng=1).run(observations)
    assert_allclose(simulated.means, kalman(model, observations)[0], atol=0.1)


class Square(hf.models.UNGM):
    """Whose image, with a negative weight in the centre, has a negative variance."""

    def transition_mean(self, x, dt, control, step):
        return x**2 if step == 2 else x


def test_definiteness_lost_for_good_is_a_named_error():
    model = Square(process_variance=0.01, observation_variance=1.0, initial_variance=5.0)
    kf = hf.UnscentedKalmanFilter(model, kappa=-0.9)
    with refusal("step 2: the predicted covariance", hf.IndefiniteCovarianceError) as caught:
        kf.run([None, None, None])
    assert caught.value.step == 2
    assert len(caught.value.result) == 1
    assert kf.step == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.step, len(again.result), str(again)) == (2, 1, str(caught.value))


def test_an_observation_without_noise_that_says_nothing_is_a_named_error(some):
    blind = linear(H=[[0.0, 0.0]], R=[[0.0]])
    with refusal("step 1: the observation's covariance", hf.IndefiniteCovarianceError):
        some(blind).run([[0.0]])


def test_what_the_model_lacks_is_named(some):
    with refusal(
        r"KalmanFilter needs .*; SimpleNamespace has no transition_mean and no", TypeError
    ):
        some(model_of(linear(1, 1).initial))
