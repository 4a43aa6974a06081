import dataclasses
import re

import numpy as np
import pytest
from helpers import cases, refusal
from numpy.testing import assert_allclose

from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario, scenario_files

PLAZA = "herdfilter.study.data.plaza"
MINIMAL = """
title = "Minimal"
[model]
type = "UNGM"
"""

OWN_MODEL = """
from herdfilter.models import LinearGaussian


class Walk(LinearGaussian):
    def __init__(self, speed: float = 1.0):
        super().__init__([[speed]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
        self.__dict__["speed"] = speed
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_every_shipped_scenario_names_its_source_and_can_be_planned():
    """So can its published figures."""
    for name in scenario_files():
        scenario = load_scenario(name)
        assert scenario.source
        if scenario.data is None:  # real data are not shipped
            plan_study(scenario)
        for entry in scenario.published:
            assert entry.skip < (entry.steps or scenario.steps)
            dataclasses.replace(scenario, model=scenario.model | entry.model).build_model()
            if entry.filter != "reference":
                resolve_filters(entry.filter, scenario.filter)


def test_a_changed_model_file_is_read_again(write):
    path = write('title = "Walk"\n[model]\ntype = "walk.py:Walk"')
    write(OWN_MODEL, "walk.py")
    assert load_scenario(path).build_model().speed == 1.0
    write(OWN_MODEL.replace("speed: float = 1.0", "speed: float = 22.0"), "walk.py")
    assert load_scenario(path).build_model().speed == 22.0


@cases(
    "text message",
    (MINIMAL + "proces_variance = 1.0", "did you mean 'process_variance'"),
    (MINIMAL + f'[data]\ntype = "{PLAZA}:load_plaza"', f"add imports = ['{PLAZA}']"),
    (
        MINIMAL + "[truth]",
        "truth.initial: expected a state, or a table 'model' with keys, got neither",
    ),
    (
        MINIMAL + '[truth]\ninitial = [0.1]\n[data]\ntype = "plaza"',
        "truth: cannot be combined with [data]",
    ),
    ("[model]\ntype = 'UNGM'", "key 'title' is missing"),
)
def test_what_is_wrong_in_a_file_is_named_in_one_line(write, text, message):
    with refusal(re.escape(message)):
        plan_study(write(text))


def test_a_fixed_initial_truth_is_the_same_in_every_run(write):
    still = "title = 'Still'\nsteps = 3\n[model]\ntype = 'UNGM'\nprocess_variance = 1e-30\n"
    scenario = load_scenario(write(still + "[truth]\ninitial = [2.0]"))
    first, second = (
        record(scenario, scenario.build_model(), None, np.random.default_rng(seed))
        for seed in (1, 2)
    )
    assert_allclose(first.truth, second.truth, rtol=1e-12)
    assert_allclose(first.truth[0], 1 + 50 / 5 + 8 * np.cos(1.2), rtol=1e-12)
    assert (first.observations != second.observations).all()


def test_a_missing_or_faulty_model_file_names_the_scenario(write):
    path = write('title = "Walk"\n[model]\ntype = "walk.py:Walk"')
    with refusal(r"mine\.toml: model type .*: no file .*walk\.py", FileNotFoundError):
        plan_study(path)
    write("raise KeyError('oops')", "walk.py")
    with refusal(r"mine\.toml: .*walk\.py cannot be imported: .*oops"):
        plan_study(path)
