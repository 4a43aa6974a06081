"""A model made of functions is the model that a class of the same functions is."""

import copy
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import cases, refuses
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.models.resolved import Measurement

UNGM = hf.models.UNGM()


def ungm(**changes):
    given = {
        "f": lambda x, step: UNGM.transition_mean(x, 1.0, None, step),
        "h": lambda x: x[:, 0] ** 2 / 20,
        "Q": UNGM.transition_covariance(1.0, 1),
        "R": UNGM.observation_covariance(1),
        "initial_mean": UNGM.initial.mean,
        "initial_covariance": UNGM.initial.covariance,
    }
    return hf.models.from_functions(**{**given, **changes})


@pytest.fixture
def observations():
    return hf.simulate(UNGM, 12, rng=3)[1]


def test_the_derived_likelihood_is_the_one_that_a_gaussian_model_writes_out():
    model = hf.models.BearingsTracking()
    x = model.initial.sample(7, np.random.default_rng(0))
    _, (z,) = hf.simulate(model, 1, rng=1)
    names = {name for name in dir(model) if name[0] != "_"}
    names -= {"log_likelihood", "partial_observations"}
    derived = Measurement(SimpleNamespace(**{name: getattr(model, name) for name in names}))
    assert derived.takes_partial
    for observed in (z, np.array([np.nan, z[1]])):
        expected = model.log_likelihood(observed, x, 1)
        assert_allclose(
            derived.log_likelihood(observed, x, 1),
            expected,
            rtol=1e-12,
            atol=1e-12 * abs(expected).max(),
        )


def test_noise_that_depends_on_the_state_has_the_density_of_each_states_own():
    model = ungm(R=lambda x: 1 + x[:, :, None] ** 2)
    x, z = np.array([[0.0], [2.0]]), np.array([1.0])
    variance, residual = 1 + x[:, 0] ** 2, 1.0 - x[:, 0] ** 2 / 20
    expected = -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))
    assert_allclose(Measurement(model).log_likelihood(z, x, 1), expected, rtol=1e-13)


def test_a_filter_does_the_same_with_functions_and_with_a_class(observations):
    functions, own = (
        hf.make_filter("auto", model, 30, rng=5).run(observations) for model in (ungm(), UNGM)
    )
    assert_allclose(functions.means, own.means, rtol=1e-6, atol=1e-6)
    assert functions.log_likelihood == pytest.approx(own.log_likelihood, rel=1e-6)


def test_functions_of_one_state_are_called_for_each():
    both = [
        hf.models.from_functions(f, h, [[0.1]], [[1.0]], [0.7], [[1.0]], vectorised=vectorised)
        for f, h, vectorised in [
            (lambda x, dt: x + dt * np.sin(x), lambda x: x[:, :1] ** 2, True),
            (lambda x, dt: x + dt * np.sin(x), lambda x: x[0] ** 2, False),
        ]
    ]
    means = [hf.make_filter("auto", model, 10).run([[1.0], [2.0]], dt=0.5).means for model in both]
    assert_allclose(*means, rtol=1e-12)


def test_arguments_are_passed_by_name():
    given = []

    def f(x, control, dt):
        given.append((dt, control))
        return x

    model = ungm(f=f, Q=lambda dt: [[dt]])
    pf = hf.make_filter("bootstrap", model, 5, rng=0)
    given.clear()
    pf.predict(dt=0.25, control="left")
    assert set(given) == {(0.25, "left")}
    assert model.transition_covariance(0.25, 1) == [[0.25]]


test_what_does_not_fit_is_named = refuses(
    lambda changes: ungm(**changes),
    (TypeError, {"f": lambda x, u: x}, r"^f: .* of dt, control, step, got one of \(x, u\); give others a default"),
    ({"h": None}, r"^h: expected a value, as R is given, got None$"),
    (TypeError, {"Q": lambda x: x}, r"^Q: expected a matrix, or a function of any of dt, step, got one of \(x\)$"),
    ({"R": 0.1}, r"^R: expected a matrix, such as \[\[0.1\]\], or a function, got shape \(\)$"),
    ({"noise_dim": 1}, r"^noise_dim: expected f\(x, noise\), and neither Q nor .*, got f of \(x, step\)$"),
    (TypeError, {"log_likelihood": lambda z: z}, r"^log_likelihood: .* an observation and the states, first, and .* \(z\)"),
    ({"position_dims": [1]}, r"^position_dims: expected .* from 0 to 0, such as \[0\], got \[1\]$"),
)  # fmt: skip


@cases("vectorised", True, False)
def test_noise_and_a_likelihood_of_ones_own_are_those_of_a_class(vectorised, observations):
    # each serves one state as well as rows of states
    def f(x, step, noise):
        return x / 2 + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * step) + np.sqrt(10) * noise

    def log_likelihood(z, x):
        return -0.5 * (z[0] - x[..., 0] ** 2 / 20) ** 2 - 0.5 * np.log(2 * np.pi)

    start = {"initial_mean": [0.0], "initial_covariance": [[5.0]], "position_dims": [0]}
    options = {"noise_dim": 1, "partial_observations": True, "vectorised": vectorised}
    model = hf.models.from_functions(f, log_likelihood=log_likelihood, **start, **options)
    series = [*observations[:, 0], np.nan]
    result, expected = (hf.make_filter("bootstrap", m, 30, 5).run(series) for m in (model, UNGM))
    assert_allclose(result.means, expected.means, rtol=1e-9)
    assert result.log_likelihood == pytest.approx(expected.log_likelihood)
    assert result.position_dims == (0,)
    assert model.partial_observations


@cases("z", 1.0, [1.0], np.float64(1), np.array(1.0), np.ma.array([1.0]))
def test_an_observation_is_a_vector_however_it_is_given(z):
    assert hf.Observation.read(UNGM, z, 1).z.tolist() == [1.0]
    assert hf.Observation.read(hf.Sensor(slope, [[1.0]]).on(UNGM), z, 1).z.shape == (1,)


def slope(x):
    return (0.5 + 25 * (1 - x**2) / (1 + x**2) ** 2)[:, :, None]


SLOPES = {"transition_jacobian": slope, "observation_jacobian": lambda x: x[:, :, None] / 10}


def test_the_derivatives_of_functions_take_the_place_of_differences(observations):
    plain, given = (
        hf.ExtendedKalmanFilter(model).run(observations).means for model in (ungm(), ungm(**SLOPES))
    )
    assert_allclose(given, plain, rtol=1e-4, atol=1e-4)
    for wrong in (
        {"observation_jacobian": lambda x: x[:, :, None]},
        {"transition_jacobian": lambda x: 2 * slope(x)},
    ):
        other = hf.ExtendedKalmanFilter(ungm(**SLOPES | wrong)).run(observations).means
        assert abs(other - plain).max() > 0.01
    with pytest.raises(
        ValueError, match=r"^observation_jacobian: expected shape \(1, \*, 1\), got \(1, 1\)$"
    ):
        hf.ExtendedKalmanFilter(ungm(observation_jacobian=lambda x: x)).run([[1.0]])


def test_an_error_within_a_function_is_told_what_it_was_called_with():
    with pytest.raises(
        ValueError, match=r"^f: expected a row for each state, .*, got \(1,\); .* vectorised=False$"
    ):
        hf.make_filter("ukf", ungm(f=lambda x: x[0])).run([[1.0]])
    with pytest.raises(ValueError, match="matmul") as caught:
        hf.make_filter("ukf", ungm(f=lambda x: np.eye(2) @ x)).run([[1.0]])
    (note,) = caught.value.__notes__
    assert note.startswith("f: called with states of shape (")
    assert "particles come first" in note


LINE = {"Q": np.eye(2), "initial_mean": [0, 0], "initial_covariance": [[4, 2], [2, 3]]}
EXACT = hf.Sensor(lambda x: x[:, :1], [[0.0]])


@cases("name", "ekf", "ukf", "ckf")
@cases(
    "model sensor",
    (hf.models.LinearGaussian(F=np.eye(2), H=[[1, 0]], R=[[0]], **LINE), None),
    (hf.models.from_functions(lambda x: x, lambda x: x[:, :1], R=[[0.0]], **LINE), None),
    (hf.models.from_functions(lambda x: x, None, R=None, **LINE), EXACT),
    ids=["linear", "functions", "sensor"],
)
def test_an_observation_without_noise_is_for_kalman_filters_whatever_the_model(model, sensor, name):
    """They condition on it; others have no likelihood, and say so when they need one."""
    online = hf.make_filter(name, model)
    online.predict()
    record = online.update([1.0], sensor)
    assert_allclose(record.mean, [1.0, 0.4], atol=1e-12)  # P = [[5, 2], [2, 4]]
    assert_allclose(record.covariance, [[0, 0], [0, 3.2]], atol=1e-12)
    assert record.log_likelihood == pytest.approx(-0.1 - 0.5 * np.log(2 * np.pi * 5))
    for step in (0, 1):
        particles = hf.ParticleFilter(model, 10, rng=0)
        for _ in range(step):
            particles.predict()
        with pytest.raises(
            ValueError,
            match=rf"positive definite R, got a singular one from the model at step {step}; give the model a log",
        ):
            particles.update([1.0], sensor)


def online():
    """A filter of lambda functions and closures, as of the README, in the middle of a step."""
    scale = 0.5
    position = hf.Sensor(lambda x: scale * x[:, :1], [[0.2]])
    model = hf.models.from_functions(
        f=lambda x, dt: x + dt * np.sin(scale * x),
        h=lambda x: x[:, 0],
        Q=lambda dt: dt * np.eye(2),
        R=lambda step: [[0.1 * step]],
        initial_mean=[0.0, 1.0],
        initial_covariance=np.eye(2),
    )
    pf = hf.ParticleFilter(model, 30, rng=0)
    pf.predict(dt=0.5)
    pf.update([0.3])
    pf.predict(dt=0.5)
    return pf, position


def go_on(pf, position):
    pf.update([0.7], sensor=position)
    pf.predict()
    pf.update([0.2])
    return pf.particles


def test_a_filter_of_lambda_functions_is_copied_or_pickled_and_goes_on():
    for again in (copy.deepcopy(online()), pickle.loads(pickle.dumps(online()))):
        np.testing.assert_array_equal(go_on(*again), go_on(*online()))


@pytest.mark.slow
def test_a_pickled_filter_of_lambda_functions_goes_on_in_another_process(tmp_path):
    (tmp_path / "filter.pickle").write_bytes(pickle.dumps(online()))
    script = """
import pickle, numpy as np
pf, position = pickle.load(open("filter.pickle", "rb"))
pf.update([0.7], sensor=position); pf.predict(); pf.update([0.2])
np.save("particles.npy", pf.particles)
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "particles.npy"), go_on(*online()))


def test_a_function_may_hold_the_sensor_that_it_is_of_and_one_with_a_name_is_pickled_by_it():
    sensor = hf.Sensor(lambda x: x * sensor.covariance[0, 0], [[2.0]])
    assert set(sensor.functions) >= {"observation_mean"}  # kept, and bound to the sensor
    again = pickle.loads(pickle.dumps(sensor))
    assert again.mean.__closure__[0].cell_contents is again
    assert again.mean(np.ones((1, 1))) == 2.0
    assert pickle.loads(pickle.dumps(hf.Sensor(slope, [[2.0]]))).mean is slope


def test_a_function_that_cannot_be_pickled_is_named_with_what_to_do():
    lock = threading.Lock()
    sensor = hf.Sensor(lambda x: x * lock.locked(), [[1.0]])
    with pytest.raises(
        pickle.PicklingError,
        match=r"^Sensor.*: expected functions that can be pickled, got .*; define them at the top",
    ):
        pickle.dumps(sensor)
