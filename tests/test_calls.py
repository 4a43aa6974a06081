"""Odd arguments are refused in one line that names them, not in words of NumPy, SciPy or numba."""

from pathlib import Path

import numpy as np
import pytest

import herdfilter as hf
from herdfilter import angles, association, discrete, kernels, models, study, testing, tracking

FOLDER = Path(__file__).parents[1] / "benchmarks"
MIX = hf.GaussianMixture([0.6, 0.4], [[0, 0], [3, 1]], np.eye(2))
LINE = hf.GaussianMixture([1.0], [[0]], [[1]])
WALK = models.ConstantVelocity(0.1, 0.5, [0, 1], np.eye(2))
STILL = models.LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
CLUTTER = models.WithClutter(WALK, 0.9, 0.01)
RAGGED = [[1.0], [1.0, 2.0]]
X = np.arange(12.0).reshape(6, 2)


def run(**given):
    return hf.ParticleFilter(WALK, 10, rng=0).run([[0.9], [2.1]], **given)


ODD = {
    "bandwidth of a sampler": (lambda: hf.KernelHerding(bandwidth=5e-324), "bandwidth: expected a number from"),
    "n of a mixture": (lambda: MIX.sample(10**30), "n: expected an integer up to 2147483647, as memory"),
    "n of herding": (lambda: discrete.herding([0.5, 0.5], 10**30), "n: expected an integer up to"),
    "iterations": (lambda: hf.EMFit(2, max_iterations=10**30), "max_iterations: expected an integer up to"),
    "share": (lambda: hf.HerdedProposal(hf.RandomSampling(), [0.2]), "defensive_share: expected from 0"),
    "unguided share": (
        lambda: hf.KalmanMixtureProposal(hf.RandomSampling(), unguided_share=None),
        "unguided_share: expected from 0 to below 1, got None",
    ),
    "complex parameter": (lambda: models.StochasticVolatility(rho=0.5 + 2j), "rho: expected a number above"),
    "ragged dims": (lambda: MIX.marginal(RAGGED), "dims: expected entries of one shape"),
    "ragged dt": (lambda: run(dt=RAGGED), "dt: expected entries of one shape"),
    "dt of several fields": (lambda: run(dt=np.zeros(2, [("a", float), ("b", int)])), "dt: expected"),
    "dt without axes": (lambda: hf.simulate(WALK, 3, rng=0, dt=np.array(0.5, np.float32)), "dt: expected a positive finite"),
    "ragged control": (lambda: hf.ParticleFilter(WALK, 9, rng=0).predict(1.0, RAGGED), "control: expected numbers"),
    "series in a list": (lambda: hf.ParticleFilter(WALK, 9, rng=0).run([[[0.9], [2.1]]]), r"z: expected .*\(2, 1\)"),
    "series in a list, grid": (
        lambda: hf.GridFilter(STILL, [-9], [9], [200]).run([[[0.9], [2.1]]]),
        r"z: expected .*\(2, 1\)",
    ),
    "ragged directions": (
        lambda: hf.sliced_wasserstein(hf.Points(X), MIX, directions=RAGGED),
        "directions: expected entries of one shape",
    ),
    "watcher": (lambda: run(watcher=3), "watcher: expected an object with predicted and updated, got 3"),
    "flag": (lambda: hf.EMFit(2, shared="no"), "shared: expected True or False, got 'no'"),
    "order of a kernel": (lambda: kernels.Matern(5e-324), "nu: expected a number from 0.001 to 1e.06"),
    "mixture of a rule": (lambda: hf.bandwidths.Scott().covariance(X, 5), "mixture: expected a GaussianMixture"),
    "kernel": (lambda: kernels.expected_kernel(MIX, X, np.eye(2), "abc"), "kernel: expected a kernel with"),
    "angles": (lambda: hf.GaussianFit().fit(X, circular=0), "circular: expected a sequence of indices from 0 to 1"),
    "moments": (lambda: angles.moments(X, np.full(6, np.nan)), "x, weights: expected finite numbers"),
    "scans": (lambda: tracking.LMBTracker(CLUTTER).run(3), "scans: expected a sequence with one entry per step"),
    "lag": (lambda: hf.Replay(hf.UnscentedKalmanFilter(WALK), "abc"), "lag: expected numbers"),
    "order of a distance": (lambda: tracking.ospa(X, X, 1.0, p=10**30), "p: expected a number from 1 to 100"),
    "neglect": (lambda: association.HerdedGibbs(neglect=np.empty(0)), "neglect: expected a positive"),
    "level": (lambda: study.claims(None, level="abc"), "table: expected the table of runs"),
    "rule": (
        lambda: hf.ParticleFilter(WALK, 9, hf.GuidedProposal(lambda *given: None), rng=0).run([[1.0]]),
        "rule: expected means, covariances and cross-covariances, got None",
    ),
    "clutter": (
        lambda: models.WithClutter(WALK, 0.9, 1e30, [[0, 1]]).sample_observation(X, np.random.default_rng(0), 1),
        "clutter_density, region: expected up to",
    ),
}


@pytest.mark.parametrize(("call", "message"), ODD.values(), ids=list(ODD))
def test_what_is_odd_is_named_in_one_line(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_time_that_takes_too_many_steps_of_integration_is_refused():
    with pytest.raises(ValueError, match=r"^dt: expected up to 100000 steps of integration, each of .*, got 1e.30"):
        hf.simulate(models.Lorenz63(), 1, rng=0, dt=10**30)


@pytest.fixture
def calls(monkeypatch):
    """The module of the benchmarks that makes odd calls."""
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not part of this installation")
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__("calls")


@pytest.mark.slow
def test_odd_calls_are_answered_or_refused(calls):
    table = calls.measured(statements=40, most=400, apart=False)
    bad = table[table["class"].isin(calls.BAD)]
    assert bad.empty, bad.to_string()
    assert set(table["class"]) == {"fine", "refused", "refused for another"}


@pytest.mark.slow
def test_a_call_that_hangs_or_crashes_is_counted(calls, monkeypatch):
    monkeypatch.setattr(calls, "SECONDS", 0.2)
    monkeypatch.setattr(calls, "_quiet", lambda valid, odd: odd())
    import os

    def hangs():
        while True:
            pass

    given = [lambda: ("fine", "1"), hangs, lambda: os._exit(3), lambda: ("raw error", "2")]
    found = list(calls._apart(None, given, "."))
    assert [name for name, _ in found] == ["fine", "hang", "crash", "raw error"]


@pytest.mark.slow
def test_what_is_public_is_called_or_left_out_on_purpose(calls):
    source = (FOLDER / "valid_calls.py").read_text(encoding="utf-8")
    missing = {
        name
        for place in (hf, models, association, tracking, discrete, testing, kernels, hf.bandwidths, angles)
        for name in place.__all__
        if callable(getattr(place, name)) and name not in source
    }
    results = {"FilterResult", "Forecast", "GridResult", "StepRecord", "SmoothedResult", "Trajectories", "MaximumLikelihood"}
    results |= {
        "Association",
        "Comparison",
        "DetectionHistory",
        "GOSPA",
        "Track",
        "TrackingRecord",
        "TrackingResult",
        "Outcome",
    }
    protocols = {"BandwidthRule", "ClusterMethod", "CopyingResampling", "Fit", "Kernel"}
    protocols |= {"Proposal", "Resampling", "Sampler", "Uses"}
    inner = {
        "Transition",
        "KernelMean",
        "RandomModel",
        "FunctionModel",
        "CompiledModel",
        "check_sampler",
        "Energy",
        "Laplace",
    }
    inner |= {"MultinomialResampling", "SSPResampling", "StratifiedResampling"}  # without arguments
    inner |= {"board"}  # minutes for each seed
    errors = {name for name in missing if name.endswith(("Error", "Warning"))}
    assert missing == (results | protocols | inner | errors) & missing, missing
