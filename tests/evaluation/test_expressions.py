import re
from pathlib import PurePosixPath

import pytest

import herdfilter as hf
from herdfilter.evaluation.expressions import evaluate


def test_an_expression_builds_what_python_would_build():
    built = evaluate("MixtureResampling(KernelDensityFit(), KernelHerding(bandwidth=0.5))")
    assert built == hf.MixtureResampling(hf.KernelDensityFit(), hf.KernelHerding(bandwidth=0.5))


def test_constants_lists_and_dotted_names_are_understood():
    assert evaluate("pathlib.PurePosixPath('a', 'b')") == PurePosixPath("a/b")
    assert evaluate("[1, -2.5, True, None, ('x', [])]") == [1, -2.5, True, None, ["x", []]]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("KernelHerdin()", "did you mean 'KernelHerding'"),
        ("pathlib.PurePosixPat()", "did you mean 'PurePosixPath'"),
        ("no_such_package.Sampler()", "cannot import 'no_such_package'"),
        ("KernelHerding(", "expected a constructor call"),
        ("KernelHerding", "expected calls"),
        ("1 + 1", "expected calls"),
        ("[x for x in y]", "expected calls"),
        ("KernelHerding(**options)", "expected calls"),
        ("(lambda: 0)()", "lambda"),
        ("KernelHerding(bandwidth=-1)", "bandwidth"),
    ],
)
def test_anything_else_is_a_clear_error(expression, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        evaluate(expression)
    assert expression in str(caught.value)


def test_an_unknown_argument_is_named():
    with pytest.raises(TypeError, match="bandwith"):
        evaluate("KernelHerding(bandwith=1.0)")
