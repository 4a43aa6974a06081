"""The checks of a sampler pass what is right and find what is wrong: for every check a sampler that fails it."""

import pickle

import numpy as np
import pytest
import scipy.stats
from demands import check_everything
from helpers import refuses

import herdfilter as hf
from herdfilter.testing import SamplerError, check_sampler

GOOD = hf.MappedSampling(hf.KernelHerding())


class Sampler:
    def __init__(self, function):
        self.function = function

    def sample(self, mixture, n, rng=None):
        return self.function(mixture, n, rng)


def draw(mixture, n, rng):
    return hf.RandomSampling().sample(mixture, n, rng)


def herd(mixture, n, rng=None):
    return GOOD.sample(mixture, n)


def moved(points, x):
    return hf.Points.unchecked(x, points.weights)


# Samplers, each right but for one thing


def herding(change):
    """A herded sampler whose points are changed, as a function of points, mixture, n and generator."""
    return lambda mixture, n, rng: change(herd(mixture, n), mixture, n, rng)


def shifted(shift):
    """A herded sampler whose points are moved, in standard deviations of the mixture along each dimension."""
    return herding(lambda p, mixture, n, rng: moved(p, p.x + np.sqrt(np.diag(mixture.covariance)) * shift(mixture, n, rng)))


def changed(weights=lambda m: m.weights, means=lambda m: m.means, covariances=lambda m: m.covariances, draw=None):
    """A sampler of another mixture, by herding or by what it is given."""

    def sample(mixture, n, take):
        other = hf.GaussianMixture(weights(mixture), means(mixture), covariances(mixture))
        return draw(other, n) if draw else take(other, n)

    return sample


def another(**parts):
    return changed(**parts, draw=herd)


def of_negative_weights(mixture, n, rng):
    points, weights = herd(mixture, n), np.full(n, 1 / n)
    if n > 4:
        weights[:2] += [-1.1 / n, 1.1 / n]
    return hf.Points.unchecked(points.x, weights)


def writing(mixture, n, rng):
    points = herd(mixture, n)
    mixture.means[0] += 0.0 if n == 1 else 1e-12
    return points


class Keeping:
    def __init__(self):
        self.cache = {}

    def sample(self, mixture, n, rng=None):
        key = (mixture.means.tobytes(), mixture.distinct_covariances.tobytes(), len(mixture), repr(n))
        if key not in self.cache:
            self.cache[key] = herd(mixture, n)
        return self.cache[key]


class Restless:
    calls = 0

    def sample(self, mixture, n, rng=None):
        points = herd(mixture, n)
        self.calls += 1
        return moved(points, points.x * (1 + 1e-14 * self.calls))


def using_random_numbers(mixture, n, rng):
    if rng is not None:
        rng.random()
    return herd(mixture, n)


def on_a_grid_about_the_mean(mixture, n, rng):
    points, unit = herd(mixture, n), 1e-3 * np.sqrt(np.trace(mixture.covariance))
    return moved(points, mixture.mean + unit * np.round((points.x - mixture.mean) / unit)) if unit else points


def needing_a_density(mixture, n, rng):
    mixture.log_density(mixture.means)
    return herd(mixture, n)


def without_the_lightest(mixture):
    lightest = mixture.weights == mixture.weights[mixture.weights > 0].min()
    return mixture.weights * ~lightest if len(mixture) > 1 else mixture.weights


rounding = herding(lambda p, mixture, n, rng: moved(p, np.round(p.x, 3)))
halved = herding(lambda p, mixture, n, rng: moved(p, mixture.mean + 0.5 * (p.x - mixture.mean)))
ignoring_a_component = another(weights=without_the_lightest)
dependent_on_the_origin = shifted(lambda mixture, n, rng: 1e-2 * np.sin(mixture.mean))
BROKEN = {
    "shapes": [
        lambda mixture, n, rng: herd(mixture, n).x,
        lambda mixture, n, rng: herd(mixture, n + 1 if n > 1 else n),
        herding(lambda p, mixture, n, rng: moved(p, np.where(np.arange(n)[:, None] == 7, np.inf, p.x))),
        herding(lambda p, mixture, n, rng: hf.Points.unchecked(p.x, np.ones(n))),
        of_negative_weights,
    ],
    "a single point": [lambda mixture, n, rng: herd(mixture, n) if n != 1 else {}["no such point"]],
    "bad numbers of points": [lambda mixture, n, rng: herd(mixture, n if type(n) is int and n > 0 else 1)],
    "the mixture is left alone": [
        writing,
        lambda m, n, rng: hf.Points.unchecked(m.means, np.ones(1)) if n == len(m) == 1 else herd(m, n),
        Keeping().sample,
    ],
    "determinism": [
        using_random_numbers,
        Restless().sample,
    ],
    "shared covariance": [herding(lambda p, mixture, n, rng: moved(p, p.x[::-1] if mixture.shared else p.x))],
    "component of weight zero": [lambda m, n, rng: another(weights=lambda m: np.maximum(m.weights, 1.0 / n))(m, n, rng)],
    "order of the components": [another(weights=lambda m: m.weights * (1 + 0.3 * (len(m) > 1) * (np.arange(len(m)) == 0)))],
    "origin and unit": [rounding],
    "thin covariance": [needing_a_density],
    "flat covariance": [
        needing_a_density,
        another(covariances=lambda m: m.covariances + 1e-2 * np.trace(m.covariance) / m.dim * np.eye(m.dim)),
    ],
    "a single place": [
        herding(lambda p, mixture, n, rng: moved(p, p.x + (np.ptp(p.x) == 0) * np.linspace(-0.1, 0.1, n)[:, None]))
    ],
    "huge and tiny scales": [
        herding(lambda p, mixture, n, rng: moved(p, p.x * (np.inf if mixture.covariance.max() > 1e15 else 1.0))),
        rounding,
    ],
    "far components": [ignoring_a_component],
    "energy distance": [halved],
    "moments": [
        shifted(lambda mixture, n, rng: np.linspace(0, 0.5 * (n > 1), n)[:, None]),
        lambda m, n, rng: another(weights=lambda m: np.random.default_rng(0).multinomial(int(n), m.weights))(m, n, rng),
    ],
}
OF_THE_PACKAGE = {
    "shapes",
    "bad numbers of points",
    "the mixture is left alone",
    "determinism",
    "flat covariance",
    "moments",
}
CASES = [(check, function) for check, functions in BROKEN.items() for function in functions]


@pytest.mark.parametrize(("check", "function"), CASES)
def test_a_broken_sampler_fails(check, function):
    with pytest.raises(SamplerError) as caught:
        (check_sampler if check in OF_THE_PACKAGE else check_everything)(Sampler(function), dims=(1, 2))
    assert check in caught.value.failures
    assert check not in caught.value.passed
    assert "expected" in caught.value.failures[check][0]
    assert f"- {check}: {caught.value.failures[check][0]}" in str(caught.value)


# Samplers of another distribution


def reshaped(curve):
    """A sampler whose noise is not Gaussian: a function of the standard normal noise of the nearest component."""

    def sample(mixture, n, take):
        points = take(mixture, n)
        roots = np.linalg.cholesky(mixture.covariances + 1e-12 * np.trace(mixture.covariance) * np.eye(mixture.dim))
        noise = np.linalg.solve(roots[:, None], (points.x - mixture.means[:, None])[..., None])[..., 0]
        j = (noise**2).sum(axis=2).argmin(axis=0)
        x = mixture.means[j] + (roots[j] @ curve(noise[j, np.arange(n)])[..., None])[..., 0]
        return moved(points, x)

    return sample


def of_one_gaussian(mixture, n, take):
    return take(hf.GaussianMixture([1.0], mixture.mean[None], mixture.covariance), n)


WRONG = {
    "one Gaussian": of_one_gaussian,
    "standard deviations times 1.3": changed(covariances=lambda m: 1.3**2 * m.covariances),
    "variances for standard deviations": changed(covariances=lambda m: m.covariances @ m.covariances),
    "heavy tails": reshaped(lambda e: scipy.stats.t(4).ppf(scipy.stats.norm.cdf(e)) / np.sqrt(2)),
    "weights to the power 0.7": changed(weights=lambda m: m.weights**0.7),
    "equal weights": changed(weights=lambda m: np.sign(m.weights)),
    "means moved": changed(means=lambda m: m.means + 0.1 * np.sqrt(np.diag(m.covariance))),
}  # fmt: skip
QUALITY = {"moments", "energy distance", "far components"}


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "herded") for name in WRONG), ("heavy tails", "random"), ("equal weights", "random")]
)
def test_a_sampler_of_another_distribution_fails(name, kind):
    def sample(mixture, n, rng):
        return WRONG[name](mixture, n, herd if kind == "herded" else lambda m, n: draw(m, n, rng))

    with pytest.raises(SamplerError) as caught:
        check_everything(Sampler(sample), deterministic=kind == "herded", affine=None, dims=(1, 2))
    assert QUALITY & caught.value.failures.keys()


def test_every_check_can_fail():
    assert set(check_sampler(GOOD, dims=(1, 2))) == OF_THE_PACKAGE
    assert set(check_everything(GOOD, dims=(1, 2))) == BROKEN.keys()
    of_random = check_everything(Sampler(draw), deterministic=False, dims=(1, 2))
    assert BROKEN.keys() - set(of_random) == {"determinism", "order of the components"}


def one_draw(mixture, n, rng):
    return draw(mixture, n, 0)


def fresh_entropy(mixture, n, rng):
    return draw(mixture, n, None)


@pytest.mark.parametrize("function", [one_draw, fresh_entropy])
def test_a_random_sampler_that_misuses_its_seed_fails(function):
    with pytest.raises(SamplerError) as caught:
        check_sampler(Sampler(function), deterministic=False, dims=(2,))
    assert "seeds" in caught.value.failures


def test_a_promise_that_is_not_kept_fails():
    promises = {"any affine map": {"affine": "any"}, "determinism": {}}
    for check, promise in promises.items():
        sampler = Sampler(draw) if check == "determinism" else Sampler(on_a_grid_about_the_mean)
        with pytest.raises(SamplerError) as caught:
            check_everything(sampler, **promise, dims=(2,))
        assert check in caught.value.failures


def test_what_is_not_promised_is_not_checked():
    assert OF_THE_PACKAGE - set(check_sampler(GOOD, dims=(1, 2), moments=False)) == {"moments"}
    everything = check_everything(GOOD, dims=(1, 2))
    fewer = check_everything(GOOD, dims=(1, 2), moments=False, far_components=False, affine=None)
    lost = {"moments", "order of the components", "energy distance", "far components", "origin and unit"}
    assert set(everything) - set(fewer) == lost
    check_everything(Sampler(dependent_on_the_origin), affine=None, far_components=False, dims=(2,))
    with pytest.raises(SamplerError, match=r"- origin and unit: d = 2, unit 1e-6: expected the same points"):
        check_everything(Sampler(dependent_on_the_origin), dims=(2,))


def test_signed_weights_pass_where_they_are_announced():
    with pytest.raises(SamplerError, match="expected no negative weight"):
        check_sampler(Sampler(of_negative_weights), dims=(2,))
    promises = {"signed_weights": True, "moments": False, "far_components": False}
    check_everything(Sampler(of_negative_weights), **promises, dims=(2,))


def only_even(mixture, n, rng):
    if n % 2:
        raise ValueError(f"n: expected an even number, got {n}")
    return herd(mixture, n)


def even(dim, components):
    return range(2, 400, 2)


def test_samplers_of_certain_sizes_are_asked_for_these_alone():
    check_sampler(Sampler(only_even), sizes=even, dims=(2,))
    assert "a single point" not in check_everything(Sampler(only_even), sizes=even, dims=(2,))
    with pytest.raises(SamplerError, match="n = 399: expected a ValueError, got points"):
        check_sampler(Sampler(herd), sizes=even, dims=(2,))
    with pytest.raises(SamplerError, match="got ValueError: n: expected an even number"):
        check_sampler(Sampler(only_even), dims=(2,))


def test_random_draws_are_held_to_their_own_error():
    assert "moments" in check_sampler(hf.RandomSampling(), deterministic=False)

    def drifting(mixture, n, rng):
        points = draw(mixture, n, rng)
        return moved(points, points.x + np.linspace(0, 1, n)[:, None] * np.sqrt(np.diag(mixture.covariance)))

    with pytest.raises(SamplerError) as caught:
        check_everything(Sampler(drifting), deterministic=False, dims=(2,))
    assert caught.value.failures.keys() == QUALITY


def test_all_failures_are_reported_in_one_message():
    with pytest.raises(SamplerError) as caught:
        check_sampler(Sampler(lambda mixture, n, rng: hf.Points(np.zeros((3, 1)))), dims=(1, 2))
    error = caught.value
    failed = len(error.failures)
    assert str(error).splitlines()[0].endswith(f"fails {failed} of {failed + len(error.passed)} checks:")
    assert len(str(error).splitlines()) == 1 + len(error.failures)
    assert "d = 1, M = 1: expected shapes (2, 1) and (2,), got (3, 1) and (3,)" in str(error)
    assert isinstance(error, AssertionError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_something_else_than_a_sampler_is_named():
    with pytest.raises(SamplerError, match=r"shapes: expected an object with sample\(mixture, n, rng\), got 'kh'"):
        check_sampler("kh", dims=(2,))


test_bad_promises_are_named = refuses(
    lambda promise: check_sampler(GOOD, **promise),
    ({"dims": []}, "dims: expected at least one dimension, got none"),
    ({"dims": [0]}, "dims: expected an integer of at least 1, got 0"),
)
