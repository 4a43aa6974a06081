"""Filters by name."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import pytest
from helpers import cases, refusal, refuses

import herdfilter as hf
from herdfilter import by_name
from herdfilter.catalogue import catalogue
from herdfilter.catalogue.specifications import catalogue_spec

MODEL = hf.models.UNGM()


def test_an_unknown_name_is_told_the_nearest():
    with refusal(r"^name: unknown 'auto_kh'; did you mean 'auto'\?$"):
        hf.make_filter("auto_kh", MODEL)


def test_a_name_in_place_of_a_part_is_refused_with_the_way_to_do_it():
    with refusal(
        r"got 'auto'; .*herdfilter\.make_filter\('auto', model, n_particles, rng\)$", TypeError
    ):
        hf.ParticleFilter(MODEL, proposal="auto")


@cases("scheme", hf.ResidualResampling(), "ResidualResampling()")
def test_an_option_is_an_object_or_an_expression(scheme):
    pf = hf.make_filter(
        "bootstrap", MODEL, 20, resampling=scheme, resample_below=0.8, on_degeneracy="predict"
    )
    assert (pf.resampling, pf.resample_below, pf.on_degeneracy) == (
        hf.ResidualResampling(),
        0.8,
        "predict",
    )
    assert hf.make_filter("bootstrap", MODEL, 20).resampling == hf.SystematicResampling()


test_an_option_that_the_class_does_not_take_is_told_the_nearest = refuses(
    lambda name, options: hf.make_filter(name, MODEL, **options),
    (
        "auto",
        {"resampel_below": 0.5},
        r"^option of auto: unknown 'resampel_below'; did you mean 'resample_below'\?$",
    ),
    (
        "auto",
        {"seed": 3},
        r"^option of auto: unknown 'seed'; did you mean 'rng'\?$",
    ),
    ("lmb-ukf", {}, r"^birth: expected where targets may appear, such as \[.*\], got none"),
    (
        "bootstrap",
        {"resampling": "ResidualResamplin()"},
        r"^resampling: 'Resid.*: .*did you mean 'ResidualResampling'",
    ),
)


def overloads():
    """Names, class and options of each overload but the last, which is for any name."""
    scope = {**vars(hf.tracking), **vars(by_name)}
    for overload in get_overloads(by_name.make_filter)[:-1]:
        hints = get_type_hints(overload, scope)
        options = {
            key: hint
            for key, hint in hints.items()
            if key not in ("name", "model", "n_particles", "rng", "return")
        }
        if "options" in options:
            (table,) = get_args(options["options"])
            options = table.__annotations__
        yield get_args(hints["name"]), hints["return"], set(options)


def test_the_types_of_make_filter_are_those_of_the_catalogue():
    seen = []
    for names, kind, options in overloads():
        seen += names
        for name in names:
            built = catalogue_spec(name).built()
            assert issubclass(built, kind), name
            assert options == {*inspect.signature(built).parameters} - {
                "model",
                "n_particles",
                "rng",
            }, name
    assert sorted(seen) == sorted(catalogue())


PROGRAM = """
import herdfilter as hf

model = hf.models.UNGM()
births = [hf.tracking.Birth(0.1, model.initial)]
reveal_type(hf.make_filter("auto", model))
reveal_type(hf.make_filter("bootstrap", model, 50, rng=0, resampling=hf.SSPResampling(), on_degeneracy="predict"))
reveal_type(hf.make_filter("ukf", model, alpha=0.5))
reveal_type(hf.make_filter("ledh", model, flow_steps=5))
reveal_type(hf.make_filter("lmb-auto", model, birth=births, survival_probability=0.9))
name: str = input()
reveal_type(hf.make_filter(name, model, 50, rng=0, on_degeneracy="predict"))
hf.make_filter("auto", model, resampel_below=0.3)
hf.make_filter("auto", model, alpha=0.3)
hf.make_filter("auto", model, on_degeneracy="ignore")
hf.make_filter("ekf", model, alpha=0.3)
hf.make_filter("auto", model, seed=1)
"""


@pytest.mark.slow
def test_a_type_checker_knows_the_class_and_the_options_of_a_name(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        tmp_path / "cache",
        tmp_path / "program.py",
    ]
    root = str(Path(hf.__file__).parents[1])
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": root}, capture_output=True, text=True
    )
    kinds = re.findall(r'Revealed type is "(?:[\w.]*\.)?(\w+)"', done.stdout)
    assert kinds == [
        "ParticleFilter",
        "ParticleFilter",
        "UnscentedKalmanFilter",
        "DaumHuangFilter",
        "LMBTracker",
        "Any",
    ]
    wrong = re.findall(r"program\.py:(\d+): error: No overload", done.stdout)
    assert [PROGRAM.splitlines()[int(line) - 1].partition("model, ")[2] for line in wrong] == [
        "resampel_below=0.3)",
        "alpha=0.3)",
        'on_degeneracy="ignore")',
        "alpha=0.3)",
        "seed=1)",
    ]
    assert 'did you mean "resample_below"?' in done.stdout
