"""A filter is chosen on the user's own model: within its time, by its errors, and what cannot serve is named."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import CHAIN, LINE, completed, refusal, refused

import herdfilter as hf
from herdfilter.study import choosing

QUICK = {"step_time": 1.0, "steps": 5, "budget": 1e-3, "workers": 1, "progress": False}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(choosing, "LARGEST_N", 40)
    monkeypatch.setattr(choosing, "REFERENCE_BOUNDS", (200, 200))


class Simulator:
    """A walk of which nothing but a simulation and a likelihood is known."""

    dim = 1
    initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])

    def sample_transition(self, x, rng, dt, control, step):
        return x + rng.laplace(size=x.shape)

    def log_likelihood(self, z, x, step):
        return -abs(z[0] - x[:, 0])

    def sample_observation(self, x, rng, step):
        return x + rng.laplace(size=x.shape)


def test_on_a_linear_model_it_takes_the_kalman_filter_and_keeps_the_runs(tmp_path):
    given = QUICK | {"filters": ["bootstrap", "ekf"], "store": tmp_path / "runs.sqlite"}
    choice = hf.choose(CHAIN, **given)
    assert (choice.name, choice.n_particles) == ("ekf", None)
    assert isinstance(choice.filter(), hf.ExtendedKalmanFilter)
    bootstrap = choice.table.set_index("filter").loc["bootstrap"]
    assert bootstrap["ratio_low"] > 1
    assert f"{bootstrap['ratio']:.2g}"[0] in choice.verdict
    again = hf.choose(CHAIN, **given)
    np.testing.assert_array_equal(again.table["error"], choice.table["error"])


def test_the_time_goes_to_the_filters_that_may_be_the_best(monkeypatch):
    monkeypatch.setattr(choosing, "MOST_RUNS", 10)

    def few(model, n_particles, rng):
        return hf.ParticleFilter(model, 2, rng=rng)

    def many(model, n_particles, rng):
        return hf.ParticleFilter(model, n_particles, rng=rng)

    filters = {"few": few, "bootstrap": many, "another": many}
    choice = hf.choose(LINE, **QUICK | {"filters": filters, "budget": 60})
    runs = choice.table.set_index("filter")["runs"].to_dict()
    assert runs == {"few": 6, "bootstrap": 10, "another": 10}
    assert choice.runs == 10
    assert choice.name != "few"


def test_filters_that_do_not_serve_are_named_with_the_reason():
    choice = hf.choose(Simulator(), filters=["ekf", "bootstrap", "ranked"], **QUICK)
    assert choice.name in ("bootstrap", "ranked")
    assert len(choice.filter(rng=0).particles) == 40
    assert "transition_mean" in choice.left_out["ekf"]
    assert "ekf: " in repr(choice)


def test_of_equal_errors_the_quicker_filter_is_taken(monkeypatch):
    pace = {"auto": 0.2, "ukf": 0.1}
    real = choosing._fit
    names = iter(("auto", "ukf"))
    monkeypatch.setattr(
        choosing, "_fit", lambda *given: real(*given)._replace(seconds=pace[next(names)])
    )
    choice = hf.choose(LINE, filters=["auto", "ukf"], **QUICK)
    assert choice.name == "ukf"
    assert "as near, but slower: auto" in choice.verdict


@pytest.mark.parametrize(("step_time", "expected"), [(1e-3, 0), (4.05e-3, 30), (1.0, 40)])
def test_the_count_is_the_largest_that_fits(monkeypatch, step_time, expected):
    clock = [0.0]

    class Paced:
        def __init__(self, model, n_particles, rng):
            self.n_particles = n_particles

        def run(self, observations, dt=1.0, controls=None):
            clock[0] += len(observations) * (1e-3 + 1e-4 * self.n_particles)

    monkeypatch.setattr(choosing.time, "process_time", lambda: clock[0])
    recording = hf.study.Recording(None, np.zeros((3, 1)))
    fit = choosing._fit(Paced, LINE, recording, step_time)
    assert (fit.seconds > step_time) if expected == 0 else fit.n_particles == expected


def test_a_model_that_raises_is_quoted():
    def broken(x):
        raise RuntimeError("no such lake")

    model = hf.models.from_functions(
        lambda x: x, broken, [[1.0]], [[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]
    )
    with refusal(r"got none \(bootstrap: RuntimeError: no such lake"):
        hf.choose(model, **QUICK | {"filters": ["bootstrap"]}, observations=[1.0, 2.0])


def test_filters_that_all_fail_are_quoted():
    class Stops:
        def __init__(self, model, n_particles, rng):
            pass

        def run(self, observations, dt=1.0, controls=None):
            if len(observations) > choosing.TIMED_STEPS:
                raise RuntimeError("the lake is frozen")
            return SimpleNamespace(means=np.zeros((len(observations), 1)))

    given = QUICK | {"filters": {"stops": Stops}, "steps": 25}
    with refusal("got RuntimeError: the lake is frozen"):
        hf.choose(LINE, **given)
    with refusal("choose: unknown 'runs'"):
        hf.choose(LINE, **given, runs=3)


def test_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "import herdfilter as hf\n\n\ndef chain():\n    return hf.models.linear_chain(1)\n"
    )
    arguments = ["choose", "own.py:chain", "--step-time", "1 s", "--steps", "5", "--budget", "1ms"]
    result = completed(*arguments, "--filters", "ekf,ukf", "--workers", "1", "--quiet")
    assert "Take " in result.output
    assert "at most 1000 ms" in result.output
    assert "step-time: expected a duration" in refused(*arguments, "--step-time", "soon")
