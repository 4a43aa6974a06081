"""Small models, exact answers and comparisons that several tests share."""

import dataclasses
import json
import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import filterpy.kalman
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.cli import main
from herdfilter.models.resolved import Measurement
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import load_scenario

EYE = np.eye(2)
EYE.flags.writeable = False
MIX = hf.GaussianMixture([0.6, 0.4], [[0, 0], [3, 1]], EYE)
"""A mixture of round components."""
TILTED = hf.GaussianMixture(
    [0.6, 0.4], [[0.0, 1.0], [2.0, -1.0]], [[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.2], [-0.2, 0.9]]]
)
"""A mixture of components that lean to different sides."""
WALK = hf.models.ConstantVelocity(0.1, 0.5, [0, 1], EYE)
CHAIN = hf.models.linear_chain(2)
LIVELY = hf.models.LinearGaussian(0.9 * EYE, EYE, 2.0 * EYE, EYE, np.zeros(2), EYE)
JUMPING = hf.models.JumpMarkov([CHAIN, LIVELY], [[0.9, 0.1], [0.2, 0.8]])
SERIES = [[0.1, 0.2], [1.0, -0.3], [0.4, 0.6], [0.2, 0.1]]
"""Observations of two states, as `CHAIN` and `JUMPING` have."""

TIMES = ("ms_per_step", "seconds")
"""Columns that differ from one machine, and one hour, to the next."""


def on_a_line(F=1.0, H=1.0, Q=1.0, R=1.0, mean=0.0, variance=1.0):
    """A linear Gaussian model of one number, which is observed."""
    return hf.models.LinearGaussian([[F]], [[H]], [[Q]], [[R]], [mean], [[variance]])


def position_and_speed(Q, R=1.0, mean=(0.0, 0.0)):
    """A linear Gaussian model of a position and its speed, of which the position is observed."""
    F = [[1.0, 1.0], [0.0, 1.0]]
    return hf.models.LinearGaussian(F, [[1.0, 0.0]], Q, [[R]], mean, np.eye(2))


LINE = on_a_line(F=0.9, R=2.0, mean=1.0, variance=2.0)

# A series of a model of two states, one number of which is observed: readings, durations of steps, and control inputs.
READINGS = np.array([[0.5], [2.0], [np.nan], [-1.0], [0.3], [1.2], [3.0]])
DURATIONS = np.array([1.0, 0.5, 2.0, 1.0, 0.2, 1.0, 0.7])
CONTROLS = np.array(
    [[0.0, 1.0], [2.0, 0.0], [-4.0, 1.0], [1.5, 0.5], [2.0, 2.0], [0.0, -3.0], [1.0, 0.0]]
)


def folder_of_data(name):
    """The folder beside the project, or of the environment, that holds a real data set; None without it."""
    places = [Path(__file__).parents[2] / "shared" / "data", os.environ.get("HERDFILTER_DATA", "-")]
    return next((Path(place) for place in places if (Path(place) / name).exists()), None)


def table_of(errors, n=100, **columns):
    """A table of runs: filter -> errors (runs,), or (models, runs) of a family; NaN stands for a failed run."""
    rows = [
        (name, model, 10 * model + run, f"kind {model}", error)
        for name, values in errors.items()
        for (model, run), error in np.ndenumerate(np.atleast_2d(values))
    ]
    table = pd.DataFrame(rows, columns=["filter", "model", "run", "kind", "reference_error"])
    error = table["reference_error"]
    failed = error.isna()
    if np.ndim(next(iter(errors.values()))) < 2:
        table = table.drop(columns=["model", "kind"])
    return table.assign(
        scenario="s",
        n_particles=n,
        reference_error_sd=error,
        reference_uncertainty=0.0,
        reference_sd=0.1,
        rmse=2 * error,
        variance_ratio=1.0,
        log_likelihood_error=-3 * error,
        ess=10.0,
        ms_per_step=1.0,
        diverged=failed,
        error=np.where(failed, "ValueError: no", ""),
    ).assign(**columns)


class Walk:
    """A walk of one or more dimensions, written to the contract of models, all of them observed; parts may be replaced."""

    dim = 1
    initial = hf.GaussianMixture([1.0], [[0.5]], [[2.0]])

    def __init__(self, **parts):
        vars(self).update(parts)

    def transition_mean(self, x, dt, control, step):
        return x

    def transition_covariance(self, dt, step):
        return np.eye(self.dim)

    def observation_mean(self, x, step):
        return x

    def observation_covariance(self, step):
        return np.eye(self.dim)

    def log_likelihood(self, z, x, step):
        return -0.5 * ((z - x) ** 2).sum(axis=1)


def in_python(monkeypatch, *modules):
    """Let the compiled functions of modules run in Python, where an index out of range is an error."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)


def plane(**changes):
    """A linear Gaussian model of two states that turn and fade; a sum of them is observed."""
    arguments = {
        "F": [[0.9, 0.2], [-0.2, 0.9]],
        "H": [[1.0, 0.5]],
        "Q": [[0.5, 0.1], [0.1, 0.3]],
        "R": [[2.0]],
        "initial_mean": [1.0, -1.0],
        "initial_covariance": [[1.0, 0.3], [0.3, 2.0]],
    }
    return hf.models.LinearGaussian(**{**arguments, **changes})


def linear(d=2, k=1, seed=0, **changes):
    """A linear Gaussian model of any size, with random matrices."""
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


def filterpy_filter(model):
    """Filterpy's Kalman filter of a linear Gaussian model, at its initial state."""
    kf = filterpy.kalman.KalmanFilter(model.dim, len(model.H))
    kf.x = model.initial.mean.copy()
    kf.P = model.initial.covariance.copy()
    kf.F = model.F
    kf.H = model.H
    kf.Q = model.Q
    kf.R = model.R
    return kf


def kalman(model, observations):
    """Means, covariances and log-likelihoods of the steps by filterpy, on the finite part of each observation."""
    kf = filterpy_filter(model)
    means = []
    covariances = []
    log_likelihoods = np.zeros(len(observations))
    for k, z in enumerate(observations):
        kf.predict()
        kept = ~np.isnan(z)
        if kept.any():
            kf.update(z[kept], model.R[np.ix_(kept, kept)], model.H[kept])
            residual = kf.y
            S = kf.S
            log_likelihoods[k] = -0.5 * (
                residual @ np.linalg.solve(S, residual) + np.linalg.slogdet(2 * np.pi * S)[1]
            )
        means.append(kf.x)
        covariances.append(kf.P)
    return np.array(means), np.array(covariances), log_likelihoods


def assert_same(one, other, *fields, **tolerance):
    """Compare fields of two results: to the last bit, or as closely as `assert_allclose` is told."""
    for name in fields or ("means", "covariances", "log_likelihoods"):
        a = getattr(one, name)
        b = getattr(other, name)
        if tolerance:
            np.testing.assert_allclose(a, b, err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


def cases(names, *rows, **options):
    """Parametrise a test by a table: the names of its columns, and its rows (values, if there is one column)."""
    return pytest.mark.parametrize(names.replace(" ", ","), rows, **options)


def fixture_of(table):
    """Give a test each entry of a dictionary in turn, under its key."""
    return pytest.fixture(lambda request: request.param, params=table.values(), ids=list(table))


@contextmanager
def refusal(words, error=ValueError):
    """Expect an error that says so, in one line."""
    with pytest.raises(error, match=words) as caught:
        yield caught
    assert "\n" not in str(caught.value)


def refuses(call, *cases, error=ValueError, words="{}"):
    """A test that a call refuses each case: arguments, then the words of the error; another class of error stands first."""

    @pytest.mark.parametrize("case", cases, ids=[case[-1] for case in cases])
    def test(case):
        own = isinstance(case[0], type) and issubclass(case[0], Exception)
        with refusal(words.format(case[-1]), case[0] if own else error):
            call(*case[own:-1])

    return test


def assert_jacobian(jacobian, function, x, scale):
    """Compare a Jacobian with central differences, in the scale of each dimension of the state."""
    numeric = np.empty_like(np.asarray(jacobian(x)))
    for i, step in enumerate(1e-4 * np.diag(scale)):
        numeric[:, :, i] = (function(x + step) - function(x - step)) / (2 * step[i])
    scaled = np.abs(numeric * scale).max(axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(jacobian(x) * scale / scaled, numeric * scale / scaled, atol=2e-6)


def compass(heading=0.0, rate=0.2):
    """A heading that turns, observed with noise; beside it a coordinate on the line."""
    Q = [[0.1, 0.01], [0.01, 0.02]]
    R = np.diag([0.5, 0.05])
    P0 = np.diag([1.0, 0.3])
    return hf.models.from_functions(
        lambda x: x + np.array([0.0, rate]), lambda x: x, Q, R, [0.0, heading], P0, [1], [1]
    )


def assert_turns(run, turn, atol):
    """Compare `run(model, observations)` on a compass and on the same turned: zero may lie anywhere on the circle."""
    z = np.column_stack([np.zeros(6), [0.1, 0.3, 0.2, 0.9, 1.1, 1.5]])
    shift = np.array([0.0, turn])
    plain = run(compass(), z)
    turned = run(compass(turn), wrap_angles(z + shift, (1,)))
    np.testing.assert_allclose(wrap_angles(turned.means - plain.means - shift, (1,)), 0, atol=atol)
    np.testing.assert_allclose(turned.covariances, plain.covariances, atol=atol)
    assert (np.abs(turned.means[:, 1]) <= np.pi).all()
    return plain, turned


def model_of(initial, **functions):
    """A model of functions, without any base class."""
    return SimpleNamespace(dim=initial.dim, initial=initial, **functions)


def only_simulated(model):
    """The same linear Gaussian model, whose transition can only be simulated."""
    root = np.linalg.cholesky(model.Q)
    return model_of(
        model.initial,
        observation_mean=model.observation_mean,
        observation_covariance=model.observation_covariance,
        log_likelihood=model.log_likelihood,
        sample_transition=lambda x, rng, *_: x @ model.F.T + rng.standard_normal(x.shape) @ root.T,
    )


def likelihood_alone(model, likelihood=None):
    """The same model without mean and covariance of its observation."""
    parts = (
        "transition_mean",
        "transition_covariance",
        "transition",
        "noise_dim",
        "circular",
    )
    functions = {name: getattr(model, name) for name in parts if hasattr(model, name)}
    own = likelihood or (lambda z, x, step: Measurement(model).log_likelihood(z, x, step))
    return model_of(model.initial, log_likelihood=own, **functions)


def normal(mean, variance=1.0):
    """A mixture of one Gaussian, of the same variance in all directions."""
    return hf.GaussianMixture([1.0], [mean], variance * np.eye(len(mean)))


def cloud(seed, n=40):
    """Particles (n, 2), far more spread in the first coordinate than in the second, and uneven weights."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) * [3.0, 0.1] + 1.0, rng.dirichlet(np.full(n, 0.3))


def published(name):
    """A case of the published program, and its mixture."""
    path = Path(__file__).parent / "reference" / "authors_samples.json"
    case = next(c for c in json.loads(path.read_text())["cases"] if c["name"] == name)
    return case, hf.GaussianMixture(case["weights"], case["means"], case["covariances"])


def in_units(model, units):
    """The same linear Gaussian model, its state given in other units."""
    D = np.diag(units)
    inverse = np.diag(1 / np.asarray(units))
    moments = D @ model.initial_mean, D @ model.initial_covariance @ D
    return hf.models.LinearGaussian(
        D @ model.F @ inverse, model.H @ inverse, D @ model.Q @ D, model.R, *moments
    )


def polar(x):
    """Distance and bearing of places, seen from the origin."""
    return np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])])


class WithJacobians(hf.models.UNGM):
    """The growth model with its derivatives."""

    def transition_jacobian(self, x, dt, control, step):
        return (0.5 + 25 * (1 - x**2) / (1 + x**2) ** 2)[:, :, None]

    def observation_jacobian(self, x, step):
        return (x / 10)[:, :, None]


class Simulated:
    """A walk with exponential steps that can only be simulated."""

    dim = 1
    initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])

    def sample_transition(self, x, rng, dt, control, step):
        return x + rng.exponential(2.0, x.shape)

    def log_likelihood(self, z, x, step):
        return -0.5 * (z[0] - x[:, 0]) ** 2


class Squared:
    """Noise that is not additive: a chi-square step of three noise variables."""

    dim = 1
    noise_dim = 3
    initial = Simulated.initial
    log_likelihood = Simulated.log_likelihood

    def transition(self, x, noise, dt, control, step):
        return x + (noise**2).sum(axis=1, keepdims=True)

    def observation_mean(self, x, step):
        return x

    def observation_covariance(self, step):
        return np.eye(1)


def of_inner_noise(model):
    """The same linear Gaussian model, whose noise goes into the transition with the state."""

    class Inside:
        dim = model.dim
        noise_dim = model.dim
        initial = model.initial
        observation_mean = model.observation_mean
        observation_covariance = model.observation_covariance

        def transition(self, x, noise, dt, control, step):
            root = np.linalg.cholesky(model.transition_covariance(dt, step))
            return model.transition_mean(x, dt, control, step) + noise @ root.T

    return Inside()


def walk(tables="", **keys):
    """Text of a scenario file of a linear Gaussian walk, with keys of the scenario and tables after that of the model."""
    model = {"type": "LinearGaussian", "F": [[0.9]], "H": [[1.0]], "Q": [[1.0]], "R": [[0.5]]}
    model |= {"initial_mean": [0.0], "initial_covariance": [[1.0]]}
    parts = ({"title": "A walk"} | keys, model)
    return (
        "[model]\n".join(
            "".join(f"{key} = {json.dumps(value)}\n" for key, value in part.items())
            for part in parts
        )
        + tables
    )


def same_runs(a, b):
    """Tables of runs are equal to the last bit, but for the times that were measured."""
    pd.testing.assert_frame_equal(
        *(table.drop(columns=list(TIMES)).reset_index(drop=True) for table in (a, b)),
        check_exact=True,
    )


def quick_family():
    """The scenario of random models with a small reference."""
    random = load_scenario("random")
    return dataclasses.replace(random, reference={**random.reference, "n": 64})


def result_of(scenario, *arguments, **options):
    """Result of a study, as the command line has it."""
    return run_study(plan_study(scenario, *arguments, **options))


def command(*arguments):
    """Result of a command line of herdfilter, run in this process."""
    return CliRunner().invoke(main, [str(one) for one in arguments])


def completed(*arguments):
    """Result of a command line that ends with exit code 0."""
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments):
    """Error of a command line that is refused: one line, nothing else, and exit code 2."""
    result = command(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")
    return result.stderr
