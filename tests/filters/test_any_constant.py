"""A constant added to all log-likelihoods: weights and points stay, the evidence moves by it."""

import numpy as np
import pytest
from helpers import assert_same, cases

from herdfilter.catalogue.specifications import resolve_filters

FILTERS = [
    "bootstrap",
    "auxiliary",
    "sqmc",
    "herded-kh",
    "mixture-kh",
    "augmented-gauss-kh",
    "guided",
    "kalman-mixture-kh",
]
FILTERS = resolve_filters([*FILTERS, "ledh-weighted", "ranked", "auto"])
Z = [[0.4], [1.1], None, [0.9]]


@pytest.fixture
def raised(walk_class):
    """A model whose log-likelihoods, and sums of them and the constant, are exact: multiples of a power of 2."""

    class Raised(walk_class):
        def __init__(self, constant, unit=2.0**-4, window=np.inf):
            self.constant = constant
            self.unit = unit
            self.window = window

        def log_likelihood(self, z, x, step):
            exact = self.unit * np.rint(super().log_likelihood(z, x, step) / self.unit)
            return np.where(np.abs(x[:, 0] - z[0]) < self.window, exact, -np.inf) + self.constant

    return Raised


def after(make, model):
    pf = make(model, 12, np.random.default_rng(5))
    pf.run(Z)
    return pf


@cases("name", *FILTERS)
def test_weights_do_not_depend_on_a_constant(raised, name):
    """Beside the larger one nothing else shows: the likelihood is flat where it does not vanish."""
    for unit, window, constant in ((2.0**-4, np.inf, 2.0**48), (1e3, 2.0, 1e300)):
        plain = after(FILTERS[name], raised(0.0, unit, window))
        for added in (-constant, constant):
            other = after(FILTERS[name], raised(added, unit, window))
            assert_same(other, plain, "particles", "weights")
            assert other.log_likelihood == pytest.approx(
                plain.log_likelihood + 3 * added, rel=1e-15, abs=1e-12
            )


def test_differences_of_log_likelihoods_overflow_without_a_warning(walk):
    """To -inf, a weight of zero; warnings are errors in the tests."""
    walk.log_likelihood = lambda z, x, step: np.where(x[:, 0] > 0, 1e308, -1.7e308)
    for name in FILTERS:
        if name in ("bootstrap", "auxiliary", "ranked", "auto"):
            assert np.isfinite(after(FILTERS[name], walk).mean).all()
