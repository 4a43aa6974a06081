"""Every filter of the catalogue on models that are wrong, or right and extreme: finite estimates or a named error.

Never NaN, a warning, an error that names nothing, or a loop without end.
"""

import faulthandler
import re
import warnings
from functools import cached_property

import numpy as np
import pytest
from helpers import EYE, cases, normal

from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.filters import DegenerateWeightsError
from herdfilter.filters.kalman.update import IndefiniteCovarianceError
from herdfilter.mixture import GaussianMixture

SEEN = [[0.4], [1.1], [0.9]]
NAMED = (ValueError, TypeError, DegenerateWeightsError, IndefiniteCovarianceError)


class Plain:
    """A walk in two dimensions of which the first is seen; modes change one thing of it."""

    dim = 2
    scale = 1.0
    offset = 0.0
    initial_covariance = 1.0

    @cached_property
    def initial(self):
        d = self.dim
        covariance = self.initial_covariance * self.scale**2 * np.eye(d)
        return GaussianMixture([1.0], np.full((1, d), self.offset), covariance)

    def transition_mean(self, x, dt, control, step):
        return self.offset + 0.9 * (x - self.offset)

    def transition_covariance(self, dt, step):
        return 0.5 * self.scale**2 * np.eye(self.dim)

    def observation_mean(self, x, step):
        return x[:, :1]

    def observation_covariance(self, step):
        return 0.3 * self.scale**2 * np.eye(1)

    def log_likelihood(self, z, x, step):
        return -0.5 * (z[0] - x[:, 0]) ** 2 / (0.3 * self.scale**2)


def changed(**changes):
    return type("Changed", (Plain,), changes)()


def scaled(scale, offset=0.0):
    return changed(scale=scale, offset=offset), [[offset + scale * z[0]] for z in SEEN]


def noise(matrix):
    return changed(transition_covariance=lambda self, dt, step: matrix)


def observed(matrix):
    return changed(observation_covariance=lambda self, step: matrix)


def likelihood(function):
    return changed(log_likelihood=lambda self, z, x, step: function(z, x, step))


def moving(function):
    return changed(transition_mean=lambda self, x, dt, control, step: function(x, step))


def seeing(function):
    return changed(observation_mean=lambda self, x, step: function(x, step))


class Spread:
    def __init__(self, mean, covariance, value=0.0):
        self.mean = mean
        self.covariance = covariance
        self.value = value

    def sample(self, n, rng):
        return np.full((n, 2), self.value)


def lacking(name):
    return type(
        "Lacking",
        (Plain,),
        {name: property(lambda self: (_ for _ in ()).throw(AttributeError(name)))},
    )()


def late(matrix):
    return changed(transition_covariance=lambda self, dt, step: matrix if step == 3 else 0.5 * EYE)


NOT_COVARIANCES = {
    "indefinite": np.array([[1.0, 2.0], [2.0, 1.0]]),
    "asymmetric": np.array([[1.0, 0.5], [0.0, 1.0]]),
    "NaN": np.full((2, 2), np.nan),
    "of the wrong shape": np.eye(3),
    "None": None,
}

FINE = {
    "one dimension": changed(dim=1),
    "twelve orders smaller": scaled(1e-6),
    "variances of 1e150": scaled(1e75),
    "offset of 1e9": scaled(1e-3, 1e9),
    "no noise": noise(np.zeros((2, 2))),
    "noise of 1e-12": noise(1e-12 * EYE),
    "noise in one dimension": noise(np.diag([1.0, 0.0])),
    "noise off by rounding": noise(np.array([[1 / 3, 0.1], [np.nextafter(0.1, 1), 1 / 3]])),
    "known initial state, no noise": changed(
        initial_covariance=0.0, transition_covariance=lambda self, dt, step: np.zeros((2, 2))
    ),
    "constant likelihood": likelihood(lambda z, x, step: np.zeros(len(x))),
    "one particle likely": likelihood(
        lambda z, x, step: np.where(np.arange(len(x)) == 3, 0.0, -np.inf)
    ),
    "likelihoods near -1e300": likelihood(lambda z, x, step: -0.5 * x[:, 0] ** 2 - 1e300),
    "integers": moving(lambda x, step: np.rint(x).astype(int)),
    "missing": (Plain(), [None, [np.nan], SEEN[2]]),
}

SINGULAR = {name for name in FINE if name.endswith("no noise")} | {"noise in one dimension"}

EITHER = {
    "sharp observation": changed(
        observation_covariance=lambda self, step: 1e-24 * np.eye(1),
        log_likelihood=lambda self, z, x, step: -0.5e24 * (z[0] - x[:, 0]) ** 2,
    ),
    "no observation noise": observed(np.zeros((1, 1))),
    "vanishing at the second step": likelihood(
        lambda z, x, step: np.full(len(x), -np.inf if step == 2 else 0.0)
    ),
    "farthest observation": (Plain(), [[1e200]] * 3),
    "variances of 1e300": scaled(1e150),
    "variances of 1e-300": scaled(1e-150),
    "noise of very different scales": noise(np.diag([1e200, 1e-200])),
    "explosion": moving(lambda x, step: 1e200 * (1 + x)),
    "all in one place": moving(lambda x, step: np.zeros_like(x)),
    "blind observation": seeing(lambda x, step: np.zeros((len(x), 1))),
    "constant far observation mean": seeing(lambda x, step: np.full((len(x), 1), 1e308)),
    "observation mean 1e200": seeing(lambda x, step: 1e200 * x[:, :1]),
}

REFUSED = {
    **{f"noise {what}": noise(matrix) for what, matrix in NOT_COVARIANCES.items()},
    "noise late indefinite": late(NOT_COVARIANCES["indefinite"]),
    "transition NaN": moving(lambda x, step: np.full(x.shape, np.nan)),
    "transition complex": moving(lambda x, step: x * 1j),
    "transition of the wrong shape": moving(lambda x, step: x[:, 0]),
    "transition ragged": moving(lambda x, step: [[1.0], [1.0, 2.0]]),
    "transition without a step": changed(transition_mean=lambda self, x, dt, control: x),
    "no transition": lacking("transition_mean"),
    "no initial": lacking("initial"),
    "initial of another dimension": changed(initial=normal(np.zeros(3))),
    "initial NaN": changed(initial=Spread(np.full(2, np.nan), EYE, np.nan)),
    "initial indefinite": changed(
        initial=GaussianMixture.unchecked(
            np.ones(1), np.zeros((1, 2)), NOT_COVARIANCES["indefinite"]
        )
    ),
    "infinite observation": (Plain(), [SEEN[0], [np.inf], SEEN[2]]),
    "observation of text": (Plain(), [SEEN[0], "north", SEEN[2]]),
    "circular out of range": changed(circular=(5,)),
}

MOMENTS = {
    **{f"observed {what}": observed(matrix) for what, matrix in NOT_COVARIANCES.items()},
    "observation NaN": seeing(lambda x, step: np.full((len(x), 1), np.nan)),
    "observation complex mean": seeing(lambda x, step: x[:, :1] * 1j),
    "observation of another size": (Plain(), [[0.4, 0.2]] * 3),
    "observation a matrix": (Plain(), [[[0.4]]] * 3),
    "observation circular out of range": changed(observation_circular=(4,)),
}

LIKELIHOODS = {
    "likelihood NaN": likelihood(lambda z, x, step: np.full(len(x), np.nan)),
    "likelihood complex": likelihood(lambda z, x, step: x[:, 0] * 1j),
    "likelihood of the wrong shape": likelihood(lambda z, x, step: x),
    "likelihood without a step": changed(log_likelihood=lambda self, z, x: np.zeros(len(x))),
}

FILTERS = (
    "auto auto-random-modes ranked bootstrap auxiliary sqmc herded-kh herded-quantile mixture-kh"
    " augmented-gauss-kh guided"
    " kalman-mixture-kh guided-augmented-gauss-kh ekf ukf enkf s2kf imm mkf edh ledh ledh-weighted"
)
FILTERS = resolve_filters(FILTERS.split())  # one of each class
KALMAN = {name for name, spec in FILTERS.items() if spec.filter != "ParticleFilter"}
OF_FULL_RANK = {"guided", "kalman-mixture-kh"}  # they weigh by transition densities
ON_A_LINE = {"herded-quantile"}  # for states of one dimension
# of filters that one particle will not do for
SMALLEST = {"enkf": 2, "edh": 2, "ledh": 2, "s2kf": 4}


@pytest.fixture(autouse=True)
def no_hang():
    """A compiled loop without end takes no signal: the process ends, and says where it was."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def outcome(name, mode, n=8):
    """'estimates', 'refused', or what is wrong with the answer of a filter."""
    model, observations = mode if isinstance(mode, tuple) else (mode, SEEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = FILTERS[name](model, n, np.random.default_rng(7)).run(observations)
        except NAMED as error:
            own = not isinstance(error, np.linalg.LinAlgError)
            if own and re.fullmatch(r"(step \d+|[\w.]+( \w+ \d+)?): .+", str(error)):
                return "refused"
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    numbers = np.concatenate(
        [np.ravel(result.means), np.ravel(result.covariances), result.log_likelihoods]
    )
    return "estimates" if np.isfinite(numbers).all() else "estimates that are not finite"


def outcomes(mode):
    return {name: outcome(name, mode) for name in FILTERS}


def only(expected):
    return dict.fromkeys(FILTERS, expected)


@cases("mode", *FINE)
def test_an_extreme_model_is_filtered(mode):
    refusing = OF_FULL_RANK if mode in SINGULAR else set()
    refusing = refusing | (set() if mode == "one dimension" else ON_A_LINE)
    assert outcomes(FINE[mode]) == only("estimates") | dict.fromkeys(refusing, "refused")


@cases("mode", *EITHER)
def test_a_model_beyond_all_numbers_is_filtered_or_refused_by_name(mode):
    assert {
        k: v for k, v in outcomes(EITHER[mode]).items() if v not in ("estimates", "refused")
    } == {}


@cases("mode", *REFUSED)
def test_a_wrong_model_is_refused_by_name(mode):
    assert outcomes(REFUSED[mode]) == only("refused")


@pytest.fixture(scope="module")
def of_moments():
    """Filters that ask for mean and covariance of the observation; some do only where there are any."""
    without = lacking("observation_mean")
    where_given = {"auto", "auto-random-modes", "ranked"}
    return {name for name in FILTERS if outcome(name, without) == "refused"} | where_given


@cases("mode", *MOMENTS)
def test_a_wrong_observation_is_refused_by_those_who_use_it(mode, of_moments):
    assert outcomes(MOMENTS[mode]) == only("estimates") | dict.fromkeys(of_moments, "refused")


@cases("mode", *LIKELIHOODS)
def test_a_wrong_likelihood_is_refused_by_those_who_use_it(mode):
    assert outcomes(LIKELIHOODS[mode]) == only("refused") | dict.fromkeys(KALMAN, "estimates")


@cases("n", 1, 2)
def test_few_particles_are_enough_or_refused_by_name(n):
    needed = {name: "refused" for name, least in SMALLEST.items() if n < least}
    line = changed(dim=1)
    assert {name: outcome(name, line, n) for name in ON_A_LINE} == dict.fromkeys(
        ON_A_LINE, "estimates"
    )
    needed |= dict.fromkeys(ON_A_LINE, "refused")
    assert {name: outcome(name, Plain(), n) for name in FILTERS} == only("estimates") | needed
