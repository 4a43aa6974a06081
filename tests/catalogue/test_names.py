"""Modules that a scenario's file names, and those that it does not."""

import re

import numpy as np
import pytest
from helpers import cases, refusal

import herdfilter as hf
from herdfilter.study.plan import plan_study

OWN = """
import os
from os import getcwd

import numpy as np

import herdfilter as hf


class Walk(hf.models.LinearGaussian):
    def __init__(self, noise=1.0):
        super().__init__([[1.0]], [[1.0]], [[noise]], [[1.0]], [0.0], [[1.0]])


class Antithetic:
    def sample(self, mixture, n, rng=None):
        return hf.Points(mixture.sample(n, rng))


class Cautious(hf.ParticleFilter):
    pass


def _hidden():
    return hf.RandomSampling()
"""
SCENARIO = """
title = "Walk"
steps = 3
runs = 2
particles = [5]
filters = ["mine"]
imports = ["own"]
[model]
type = "own:Walk"
noise = 2.0
[filter.mine]
filter = "own.Cautious"
proposal = "HerdedProposal(own.Antithetic())"
"""


@pytest.fixture
def scenario(tmp_path):
    """A function that writes a scenario, and beside it the module that it uses."""
    (tmp_path / "own.py").write_text(OWN)

    def write(text=SCENARIO):
        (tmp_path / "walk.toml").write_text(text)
        return tmp_path / "walk.toml"

    return write


def test_a_module_beside_the_file_gives_model_filter_and_sampler(scenario):
    table = hf.compare(scenario())
    assert (table["error"] == "").all()
    assert np.isfinite(table["rmse"]).all()


def test_an_installed_module_is_named_in_the_same_way(scenario, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "own.py").rename(tmp_path / "elsewhere" / "own_installed.py")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    study = plan_study(scenario(SCENARIO.replace("own", "own_installed")))
    assert type(study.build_model()).__module__ == "own_installed"


def test_a_file_elsewhere_is_used_only_if_it_is_named(scenario, tmp_path):
    (tmp_path / "below").mkdir()
    text = SCENARIO.replace("own:Walk", "../own.py:Walk").replace('"own"', '"../own.py"')
    path = tmp_path / "below" / "walk.toml"
    path.write_text(text)
    assert plan_study(path).build_model().Q == 2.0
    path.write_text(re.sub("imports = .*|filters = .*", "", text).partition("[filter")[0])
    with refusal(r"add imports = \['../own.py'\]"):
        plan_study(path)
    scenario()
    (tmp_path / "below" / "inner.py").write_text(OWN)
    inner = SCENARIO.replace("own:Walk", "below/inner.py:Walk")
    assert plan_study(scenario(inner)).build_model().Q == 2.0  # below the scenario's folder


@cases(
    "before after message",
    ('imports = ["own"]', "", "'own' is not a part of herdfilter"),
    (
        'imports = ["own"]',
        'imports = ["other"]',
        "imports: 'other' cannot be imported: ModuleNotFoundError",
    ),
    ("own:Walk", "own:Wlak", "did you mean 'Walk'"),
    ("own:Walk", "own:getcwd", "unknown 'getcwd'"),
    ("own:Walk", "own.os:system", "'own.os' is not a part of herdfilter"),
    ("own.Cautious", "own.Walk", "key: unknown 'proposal'"),
    ("own.Antithetic()", "own.os.system('x')", "'own.os' is not a part of herdfilter"),
    ("own.Antithetic()", "own._hidden()", "unknown '_hidden'"),
)
def test_what_a_module_imports_is_not_in_reach(scenario, before, after, message):
    assert before in SCENARIO
    with refusal(re.escape(message)):
        plan_study(scenario(SCENARIO.replace(before, after)))


def test_names_that_a_module_lists_may_come_from_elsewhere(scenario, tmp_path):
    (tmp_path / "own.py").write_text(
        OWN + "\n__all__ = ['Walk', 'Cautious', 'Antithetic', 'getcwd']"
    )
    plan_study(scenario())
    (tmp_path / "own.py").write_text(OWN + "\n__all__ = ['Walk', 'Cautious']")
    with refusal("unknown 'Antithetic'"):
        plan_study(scenario())


ENDING = OWN + "class Walk(Walk):\n    def {}:\n        raise SystemExit(0)\n"


@cases(
    "code message",
    ("raise KeyError('x')", r"own\.py cannot be imported: KeyError"),
    ("import sys\nsys.exit(3)", r"own\.py cannot be imported: SystemExit: 3"),
    ("def", r"own\.py cannot be imported: SyntaxError"),
    (ENDING.format("__init__(self, noise)"), "SystemExit: 0"),
    (ENDING.format("transition_mean(self, x, dt, control, step)"), "SystemExit: 0"),
    (ENDING.format("observation_mean(self, x, step)"), "SystemExit: 0"),
)
def test_a_module_that_fails_or_ends_the_program_is_a_clear_error(
    scenario, tmp_path, code, message
):
    (tmp_path / "own.py").write_text(code)
    with refusal(message):
        plan_study(scenario())


def test_a_changed_module_is_another_study(scenario, tmp_path):
    first = plan_study(scenario()).describe()
    (tmp_path / "own.py").write_text(OWN + "# edited\n")
    again = plan_study(scenario()).describe()
    assert first["imports"] != again["imports"]
    assert {**first, "imports": 0, "model": 0} == {**again, "imports": 0, "model": 0}


@cases("name", "own:Antithetic", "builtins:print")
def test_what_is_built_must_be_a_model(scenario, name):
    text = SCENARIO.replace("own:Walk", name).replace('["own"]', '["own", "builtins"]')
    with refusal("model"):
        plan_study(scenario(text.replace("noise = 2.0", "")))


def test_a_text_may_hold_several_names():
    for filters in ("bootstrap, auto", "bootstrap auto", ["bootstrap,auto"]):
        assert [*hf.catalogue.resolve_filters(filters)] == ["bootstrap", "auto"]
    assert [*hf.catalogue.resolve_filters("of mine", {"of mine": {}})] == ["of mine"]


def test_a_wrong_name_is_named_with_the_nearest():
    with refusal(r"^filter: unknown 'herdedkh'; did you mean 'herded-kh'\?$"):
        hf.compare("ungm", {"mine": "bootstrap", "yours": "herdedkh"})
    with refusal(r"^filter: unknown '!'; expected one of auto, "):
        hf.compare("ungm", "!")
