"""Models of compiled functions: the same numbers as in NumPy, errors in one line, pickling, copying and the disk's cache."""

import copy
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from helpers import EYE, cases, refusal, refuses

import herdfilter as hf
from herdfilter.models.resolved import Measurement


def line(x):
    return 0.9 * x[0]


def one(**changes):
    given = {
        "f": line,
        "h": line,
        "Q": [[1.0]],
        "R": [[2.0]],
        "initial_mean": [0.0],
        "initial_covariance": [[1.0]],
    }
    return hf.models.CompiledModel(**(given | changes))


@cases("model", hf.models.UNGM(3.0, 2.0, 1.0), hf.models.BearingsTracking())
def test_a_model_of_the_project_and_its_compiled_form_agree(model):
    other = model.compiled()
    rng = np.random.default_rng(0)
    x = model.initial.sample(50, rng)
    odd = np.asfortranarray(x)
    odd.flags.writeable = False
    assert np.allclose(other.initial.sample(50, np.random.default_rng(0)), x)
    assert np.allclose(
        other.transition_mean(odd, 0.5, None, 3), model.transition_mean(x, 0.5, None, 3)
    )
    assert np.allclose(other.transition_covariance(0.5, 3), model.transition_covariance(0.5, 3))
    assert np.allclose(other.observation_mean(x, 3), model.observation_mean(x, 3))
    z = model.observation_mean(x[:1], 3)[0] + 3.0
    assert np.allclose(
        Measurement(other).log_likelihood(z, x, 3), Measurement(model).log_likelihood(z, x, 3)
    )
    assert getattr(other, "observation_circular", ()) == getattr(model, "observation_circular", ())


def test_functions_name_what_they_take_in_any_order():
    def f(control, x, step, out, parameters, dt):
        out[0] = parameters[1] * x[0] + control[0] * dt + step

    model = one(f=f, parameters=[0.0, 0.5])
    assert model.transition_mean(np.array([[2.0]]), 0.1, [30.0], 7).tolist() == [[1.0 + 3.0 + 7.0]]
    assert one(f=f, parameters=[0.0, 1.0]).f.compiled is model.f.compiled


def test_copies_and_pickles_give_the_same_run():
    def half(x):  # found by no name
        return x[0] / 2

    model = one(f=half, h=lambda x: x[0] ** 2, R=lambda step: [[1.0 + step]])
    _, z = hf.simulate(model, 6, rng=1)
    expected = hf.ParticleFilter(model, 40, rng=0).run(z)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(hf.ParticleFilter(other, 40, rng=0).run(z).means, expected.means)


def text(x, out):
    out[0] = x[0] + "a"


def faulty(x, parameters, out):
    fault, place = parameters
    if fault == 0 and x[0] > place:
        out[40] = 1.0
    if fault == 1:
        x[0] *= 2.0
    if fault == 2:
        parameters[1] += 1.0
    if fault != 3 or x[0] < place:
        out[0] = x[0]


def told(fault, place=0.5):
    return {"f": faulty, "parameters": [fault, place]}


test_a_fault_is_told_in_one_line = refuses(
    lambda changes: one(**changes),
    (TypeError, {"h": text}, r"h: expected .*add\(float64, Literal\[str\]\(a\)\)"),
    # an index out of range above 0.5, beyond the initial distribution, and where the start is known
    (told(0), r"^f: expected indices in range at the state \[1\.\d+\], got index 40 .*; code .* NUMBA_BOUNDSCHECK=1"),
    (told(0, 50.0), r"^f: .* state \[\d\d\.\d+\], got"),
    (told(0) | {"initial_covariance": [[0.0]]}, r"^f: .* state \[1\.\], got index 40"),
    # a state, and a parameter, that is written to
    (told(1), "^f: expected a function that writes to out alone, .* read-only$"),
    (told(2), "^f: .* writes to out alone, .* read-only$"),
    # out as it was above 0.5, and none
    (told(3), r"^f: expected a function that writes all entries of out, got none at \[0"),
    (TypeError, {"h": line, "R": EYE}, "h: expected a function that writes 2 entries into its argument out"),
)  # fmt: skip


def test_the_function_of_a_sensor_is_checked_before_it_runs_in_the_loop():
    """Out of range in the compiled loop it would end the process, or write anywhere."""
    readings = [
        (float(k), hf.Sensor(hf.models.CompiledFunction(faulty, 1, [0, 0.5], "f"), [[1.0]]), [0.0])
        for k in range(1, 30)
    ]
    with refusal(r"^f: expected indices in range at the state"):
        hf.ParticleFilter(one(h=None, R=None), 100, rng=0).run(readings)


def test_a_control_that_is_needed_and_not_given():
    def f(x, control):
        return x[0] + control[0]

    pf = hf.ParticleFilter(one(f=f), 20, rng=0)
    with refusal("control: expected numbers, as f takes them, got None", TypeError):
        pf.run([1.0, 2.0])
    assert pf.run([1.0, 2.0], controls=[3.0, [4.0]]).means.shape == (2, 1)


def test_what_a_compiled_function_raises_arrives():
    def f(x):
        if x[0] > 100.0:
            raise ValueError("too high")
        return x[0]

    with refusal("too high"):
        hf.ParticleFilter(one(f=f, initial_mean=[0.0], initial_covariance=[[1e6]]), 50, rng=0).run(
            [0.0]
        )


PROGRAM = """
import os
import herdfilter as hf
offset = float(os.environ.get("OFFSET", 0))
def f(x):
    return {factor} * x[0] + offset
model = hf.models.CompiledModel(f, None, [[1.0]], None, [0.0], [[1.0]], log_likelihood=lambda z, x: -abs(z[0] - x[0]))
print([sum(part.compiled.stats.cache_hits.values()) for part in (model.f, model.likelihood)], model.f(hf.Points([[2.0]]).x))
"""


@pytest.mark.slow
def test_compiled_functions_are_found_on_the_disk_until_their_file_changes(tmp_path):
    program = tmp_path / "program.py"

    def run(**given):
        call = partial(subprocess.run, capture_output=True, text=True, check=True)
        return call([sys.executable, str(program)], env=os.environ | given).stdout.strip()

    program.write_text(PROGRAM.format(factor=0.5))
    assert run() == "[0, 0] [[1.]]"
    assert run() == "[1, 1] [[1.]]"
    assert run(OFFSET="2") == "[0, 1] [[3.]]"
    program.write_text(PROGRAM.format(factor=0.25))
    assert run() == "[0, 0] [[0.5]]"
