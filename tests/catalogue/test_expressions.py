import os
import re
import subprocess

import pytest
from helpers import cases, refusal

import herdfilter as hf
from herdfilter.catalogue.expressions import FOLDERS, evaluate, own_parts


def test_an_expression_builds_what_python_would_build():
    built = evaluate("MixtureResampling(KernelDensityFit(), KernelHerding(bandwidth=0.5))")
    assert built == hf.MixtureResampling(hf.KernelDensityFit(), hf.KernelHerding(bandwidth=0.5))


def test_constants_and_lists_are_understood():
    assert evaluate("[1, -2.5, True, None, ('x', [])]") == [1, -2.5, True, None, ["x", []]]


@cases("name", "", "herdfilter.", "samplers.", "herdfilter.samplers.")
def test_a_class_may_be_named_by_its_folder(name):
    assert evaluate(f"{name}KernelHerding(kernel=kernels.Laplace())") == hf.KernelHerding(
        kernel=hf.kernels.Laplace()
    )


@cases(
    "expression message",
    ("KernelHerdin()", "did you mean 'KernelHerding'"),
    ("no_such_package.Sampler()", "'no_such_package' is not a part of herdfilter"),
    ("KernelHerding(", "expected a constructor call"),
    ("KernelHerding", "expected calls"),
    ("1 + 1", "expected calls"),
    ("[x for x in y]", "expected calls"),
    ("KernelHerding(**options)", "expected calls"),
    ("(lambda: 0)()", "lambda"),
    ("KernelHerding(bandwidth=-1)", "bandwidth"),
    ("EMFit(1e999)", "EMFit(1e999)"),
    ("KernelHerding(bandwidth=" + "9" * 400 + ")", "bandwidth: expected a positive finite number"),
)
def test_anything_else_is_a_clear_error(expression, message):
    with refusal(re.escape(message)) as caught:
        evaluate(expression)
    assert expression[:20] in str(caught.value)


ESCAPES = """
os.system('x') | subprocess.run('x') | builtins.eval('1') | eval('1') | exec('x') | open('x', 'w') | print('x')
__import__('os') | __import__('os').system('x') | importlib.import_module('os') | getattr(KernelHerding, 'x')
compare('ungm', store='x') | study.compare('ungm', store='x') | herdfilter.study.engine.compare('ungm', store='x')
plotting.save_figures('x', 'y') | herdfilter.report.write_report('x', 'y') | herdfilter.cli.main()
herdfilter.catalogue.expressions.import_file('x') | samplers.np.os.system('x') | herdfilter.samplers.np.os.system('x')
herdfilter.samplers.kernel_herding.np.savetxt('x', [1]) | hf.samplers.np.os.system('x') | np.save('x', [1])
models.np.loadtxt('x') | herdfilter.import_module('os') | samplers.annotations()
KernelHerding.__init__.__globals__['os'].system('x') | KernelHerding.__class__('x', [], {})
KernelHerding().__class__.__mro__[1].__subclasses__() | KernelHerding().sample.__globals__
().__class__.__bases__[0].__subclasses__() | 'x'.__class__() | GaussianMixture.trusted(1, 2, 3)
samplers.KernelHerding.sample(1, 2, 3) | samplers.compiled.warm_up() | samplers.__loader__.load_module('os')
samplers['np'].os.system('x') | [KernelHerding][0]() | (KernelHerding if 1 else 0)() | (lambda: os.system('x'))()
[os.system('x') for _ in [1]] | {1: os.system('x')} | {os.system('x')} | f'{os.system(1)}'
f'{KernelHerding().__class__}' | '{0.__class__}'.format(KernelHerding()) | (x := KernelHerding())
KernelHerding(*[1]) | KernelHerding(**{'bandwidth': 1}) | 9**9**9 | 'x' * 10**9 | [0] * 10**9
KernelHerding(bandwidth=9**9**9) | 1 / 0 | 1 << 10**9 | KernelHerding(); os.system('x') | import os
await KernelHerding() | KernelHerding() and os.system('x') | not KernelHerding() | os.system | b'x' | 1j | ...
"""
"""Expressions between bars and line ends."""


def complaint(expression):
    try:
        evaluate(expression)
    except ValueError as error:
        return str(error)
    return ""


def test_no_expression_reaches_more_than_classes_of_the_package(monkeypatch, tmp_path):
    def escaped(*args, **kwargs):
        pytest.fail("escaped")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", escaped)
    monkeypatch.setattr(subprocess, "run", escaped)
    monkeypatch.setattr("herdfilter.study.plan.plan_study", escaped)
    for expression in re.split(r" \| |\n", ESCAPES.strip()):
        message = complaint(expression)
        assert re.search(r"expected|unknown|is not a part of herdfilter", message), expression
        assert "\n" not in message, expression
        assert list(tmp_path.iterdir()) == [], expression


def test_every_name_that_may_be_used_is_a_class_or_function_made_in_the_package():
    """Else a helper that a folder imports would be in reach."""
    for folder in ("", *FOLDERS):
        for part in own_parts(folder).values():
            assert part.__module__.startswith("herdfilter.")


def test_a_constructor_that_fails_in_any_way_is_a_clear_error(monkeypatch):
    def failing(*args):
        raise KeyError("nothing there")

    monkeypatch.setitem(own_parts(""), "KernelHerding", failing)
    with refusal(r"KernelHerding\(7\)': KeyError: 'nothing there'"):
        evaluate("KernelHerding(7)")


def test_an_unknown_argument_is_named():
    with refusal("bandwith", TypeError):
        evaluate("KernelHerding(bandwith=1.0)")
