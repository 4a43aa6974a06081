"""Odd arguments are refused in one line that names them, not in words of NumPy, SciPy or numba."""

from pathlib import Path

import numpy as np
import pytest
from helpers import MIX, WALK, cases, on_a_line  # noqa: F401  the calls name them

import herdfilter as hf
from herdfilter import angles, association, discrete, kernels, models, testing, tracking

FOLDER = Path(__file__).parents[1] / "benchmarks"
STILL = on_a_line()
CLUTTER = models.WithClutter(WALK, 0.9, 0.01)
RAGGED = [[1.0], [1.0, 2.0]]
X = np.arange(12.0).reshape(6, 2)


def planar(**given):
    """Filter two readings of a state of two entries, which a function may spoil."""
    EYE = np.eye(2)
    functions = {"f": lambda x: x, "h": lambda x: x, "R": EYE} | given
    model = models.from_functions(**functions, Q=EYE, initial_mean=[0, 0], initial_covariance=EYE)
    return hf.make_filter("auto", model, 20).run(np.zeros((2, 2)))


def run(**given):
    return hf.ParticleFilter(WALK, 10, rng=0).run([[0.9], [2.1]], **given)


ODD = {
    "hf.KernelHerding(bandwidth=5e-324)": "bandwidth: expected a number from",
    "MIX.sample(10**30)": "n: expected an integer up to 2147483647, as memory",
    "discrete.herding([0.5, 0.5], 10**30)": "n: expected an integer up to",
    "hf.EMFit(2, max_iterations=10**30)": "max_iterations: expected an integer up to",
    "hf.HerdedProposal(hf.RandomSampling(), [0.2])": "defensive_share: expected from 0",
    "models.StochasticVolatility(rho=0.5 + 2j)": "rho: expected a finite number",
    "run(dt=RAGGED)": "dt: expected entries of one shape",
    "hf.simulate(WALK, 3, rng=0, dt=np.array(0.5, np.float32))": "dt: expected a positive finite",
    "hf.ParticleFilter(WALK, 9, rng=0).predict(1.0, RAGGED)": "control: expected numbers",
    "hf.ParticleFilter(WALK, 9, rng=0).run([[[0.9], [2.1]]])": r"z: expected .*\(2, 1\)",
    "hf.GridFilter(STILL, [-9], [9], [200]).run([[[0.9], [2.1]]])": r"z: expected .*\(2, 1\)",
    "hf.ParticleFilter(WALK, 9, hf.BootstrapProposal)": r"proposal: .*\(\), got the class Boot",
    "kernels.Matern(5e-324)": "nu: expected a number from 0.001 to 30",
    "hf.GaussianFit().fit(X, circular=0)": "circular: expected a sequence of indices from 0 to 1",
    "angles.moments(X, np.full(6, np.nan))": "x, weights: expected finite numbers",
    "tracking.LMBTracker(CLUTTER).run(3)": "scans: expected a sequence with one entry per step",
    "hf.Replay(hf.UnscentedKalmanFilter(WALK), 'abc')": "lag: expected numbers",
    "hf.study.claims(None, level='abc')": "table: expected the table of runs",
    "hf.ParticleFilter(WALK, 9, hf.GuidedProposal(lambda *given: None), rng=0).run([[1.0]])": "rule: expected means",
    "models.WithClutter(WALK, 0.9, 1e30, [[0, 1]]).sample_observation(X, np.random.default_rng(0), 1)": "clutter_density",
    "hf.make_filter('auto', models.UNGM)": r"model: .*, got the class UNGM; call it: UNGM\(\)$",
    "hf.make_filter('kalman', WALK)": "name: unknown 'kalman'; did you mean 'ekf', or 'ukf'",
    "hf.compare('ungm', ['grid filter'])": "filter: unknown .*; did you mean GridFilter",
    "hf.compare('models/own.py')": "scenario: expected .* FILE.py:FUNCTION .*, got 'models/own.py'",
    "hf.make_filter('ukf', WALK, N=9)": "option of ukf: unknown 'N'; did you mean 'n_particles'",
    "hf.ParticleFilter(WALK, num_particles=9)": "ParticleFilter.*; did you mean 'n_particles'",
    "planar(h=None, R=None)": "model: FunctionModel lacks log_likelihood",
    "run(start='noon')": ".* got 'noon'; pandas.to_datetime",
    "run(times=[1, 1])": r"times: .*; readings \(time, sensor, z\) may",
    "run(dt=[1, 0])": r"dt of step 2: .*; for another reading .* update\(z, sensor=\.\.\.\)",
    "hf.UnscentedKalmanFilter(WALK).predict(0)": r"dt: expected .*, got 0; .* update\(z, sensor=",
    "hf.make_filter('auto', models.linear_chain(2)).run(X.T)": r"z: .*; got 2 readings: .*transposed",
    "hf.make_filter('bootstrap', models.UNGM()).run(X.T[:1])": r"z: .*; got 1 readings: .*transposed",
    "planar(f=lambda x: [x[0], x[1]])": "f: .*; it takes one state: .* vectorised=False$",
    "planar(h=lambda x: np.hypot(x[0], x[1]))": "h: .*; it takes one state: .* vectorised=False$",
    "planar(f=lambda x: np.vstack([x[0, :], x[1, :]]))": r"f: .*; it takes states \(d, n\): transpose",
    "planar(f=lambda x: np.array([x[:, 0], x[:, 1]]))": "f: .*; particles come first: .*column_stack",
    "planar(f=lambda x, control: x + control)": "control: .* transition_mean takes, got None .* controls=",
}
"""Call -> the beginning of its refusal."""


@cases("call", *ODD)
def test_what_is_odd_is_named_in_one_line(call):
    with pytest.raises((TypeError, ValueError), match=f"^{ODD[call]}") as caught:
        eval(call)
    assert "\n" not in str(caught.value)


def test_what_a_function_raises_itself_says_how_it_was_called():
    for function, advice in (
        (lambda x: np.eye(2) @ x, "it takes one state: write x[:, 0]"),
        (lambda x: undefined, "particles come first"),  # noqa: F821
    ):
        with pytest.raises((ValueError, NameError)) as caught:
            planar(f=function)
        assert any(advice in note for note in caught.value.__notes__)


def test_time_that_takes_too_many_steps_of_integration_is_refused():
    with pytest.raises(
        ValueError, match=r"^dt: expected up to 100000 steps of integration, each of .*, got 1e.30"
    ):
        hf.simulate(models.Lorenz63(), 1, rng=0, dt=10**30)


@pytest.fixture
def calls(scripts):
    """The module of the benchmarks that makes odd calls."""
    return scripts("benchmarks/calls")


@pytest.mark.slow
def test_odd_calls_are_answered_or_refused(calls):
    table = calls.measured(statements=40, most=400, apart=False)
    bad = table[table["class"].isin(calls.BAD)]
    assert bad.empty, bad.to_string()
    assert set(table["class"]) == {"fine", "refused", "refused for another"}


UNCALLED = """
FilterResult Forecast GridResult StepRecord SmoothedResult Trajectories MaximumLikelihood FittedNoise Association Comparison
DetectionHistory GOSPA Track TrackingRecord TrackingResult Outcome BandwidthRule ClusterMethod CopyingResampling Fit Kernel
Proposal Resampling Sampler Uses Transition KernelMean RandomModel FunctionModel CompiledModel check_sampler Energy Laplace
Choice choose
"""
"""Results, protocols, what others are made of, and a study of half a minute."""


@pytest.mark.slow
def test_what_is_public_is_called_or_left_out_on_purpose(calls):
    source = (FOLDER / "valid_calls.py").read_text(encoding="utf-8")
    missing = {
        name
        for place in (
            hf,
            models,
            association,
            tracking,
            discrete,
            testing,
            kernels,
            hf.bandwidths,
            angles,
        )
        for name in place.__all__
        if callable(getattr(place, name)) and name not in source
    }
    inner = {"MultinomialResampling", "SSPResampling", "StratifiedResampling"}  # without arguments
    errors = {name for name in missing if name.endswith(("Error", "Warning"))}
    assert missing - errors - inner - set(UNCALLED.split()) == set()
