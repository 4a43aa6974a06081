"""Models and statistics of the figures of quasi-Monte Carlo beside ours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("particles", reason="the optional library particles is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def sqmc(scripts):
    return scripts("benchmarks/published_sqmc")


def test_volatilities_are_those_of_the_library(sqmc):
    rng = np.random.default_rng(0)
    ssm = sqmc.volatilities(2)
    x = rng.normal(-9, 1, (5, 2))
    z = rng.normal(0, 0.01, 2)
    step = 1
    theirs = ssm.PX(step, x)
    assert_allclose(
        ssm.model.log_likelihood(z, x, step), ssm.PY(step, None, x).logpdf(z), rtol=1e-10
    )
    assert_allclose(ssm.model.transition_mean(x, 1.0, None, step), theirs.loc, rtol=1e-12)
    assert_allclose(ssm.model.transition_covariance(1.0, step), theirs.cov)
    assert_allclose(ssm.model.initial.covariance, ssm.PX0().cov)


def test_gains_are_set_beside_those_of_the_library(sqmc):
    table = list(sqmc.gains("toy model", sqmc.Toy(), sqmc.toy_reference, [32], [0, 1], steps=5))
    assert len(table) == 2 * len(sqmc.GAINS)
    beside = [row for row in table if row["verdict"] != "ours alone"]
    assert [row["quantity"] for row in beside] == [
        "gain of sqmc in the log-likelihood",
        "gain of sqmc in the means",
    ]
    assert all(row["theirs"] > 0 and row["low"] <= row["ours"] <= row["high"] for row in beside)
