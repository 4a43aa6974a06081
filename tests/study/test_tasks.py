"""What a failed run tells."""

import dataclasses

from helpers import cases

import herdfilter as hf

MODEL = """\
import math

import numpy as np

from herdfilter.models import LinearGaussian


class Leaking(LinearGaussian):
    def __init__(self):
        super().__init__([[1.0]], [[1.0]], [[1.0]], [[1.0]], [0.5], [[1.0]])

    def log_likelihood(self, z, x, step):
        return self.level(x, step)

    def level(self, x, step):
        return {wrong}
"""


@cases(
    "wrong told",
    ("x[:, 0] / math.sqrt(-1)", "ValueError: math domain error"),
    ("np.linalg.inv(np.zeros((2, 2)))", "LinAlgError: Singular matrix"),
)
def test_a_bug_inside_a_model_is_told_with_its_place(scenario, tmp_path, wrong, told):
    """Where the user's own code was last passed through, not where NumPy gave up."""
    (tmp_path / "leaking.py").write_text(MODEL.replace("{wrong}", wrong), encoding="utf-8")
    model = {"type": "leaking.py:Leaking"}
    leaking = dataclasses.replace(scenario, model=model, reference=None, folder=tmp_path)
    table = hf.compare(leaking, ["bootstrap"], [5], runs=1)
    assert table["error"].str.fullmatch(told + r" \(leaking.py, line 16, in level\)").all(), table[
        "error"
    ][0]
