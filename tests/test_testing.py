"""The checks of a sampler pass what is right and find what is wrong: for every check a sampler that fails it."""

import numpy as np
import pytest
from demands import check_everything
from helpers import cases

import herdfilter as hf
from herdfilter.testing import check_sampler

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
    """A herded sampler whose points are moved, as a function of their places, the mixture and n."""

    def sample(mixture, n, rng):
        points = herd(mixture, n)
        return moved(points, change(points.x, mixture, n))

    return sample


def shifted(shift):
    """A herded sampler whose points are moved, in standard deviations of the mixture along each dimension."""
    return herding(
        lambda x, mixture, n: x + np.sqrt(np.diag(mixture.covariance)) * shift(mixture, n)
    )


def changed(
    weights=lambda m: m.weights,
    means=lambda m: m.means,
    covariances=lambda m: m.covariances,
    draw=None,
):
    """A sampler of another mixture, by herding or by what it is given."""

    def sample(mixture, n, take):
        other = hf.GaussianMixture(weights(mixture), means(mixture), covariances(mixture))
        return draw(other, n) if draw else take(other, n)

    return sample


def another(**parts):
    return changed(**parts, draw=herd)


def of_negative_weights(mixture, n, rng):
    points = herd(mixture, n)
    weights = np.full(n, 1 / n)
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
        key = (
            mixture.means.tobytes(),
            mixture.distinct_covariances.tobytes(),
            len(mixture),
            repr(n),
        )
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


def to_a_grid_about_the_mean(x, mixture, n):
    unit = 1e-3 * np.sqrt(np.trace(mixture.covariance))
    return mixture.mean + unit * np.round((x - mixture.mean) / unit) if unit else x


def needing_a_density(mixture, n, rng):
    mixture.log_density(mixture.means)
    return herd(mixture, n)


def without_the_lightest(mixture):
    lightest = mixture.weights == mixture.weights[mixture.weights > 0].min()
    return mixture.weights * ~lightest if len(mixture) > 1 else mixture.weights


rounding = herding(lambda x, mixture, n: np.round(x, 3))
halved = herding(lambda x, mixture, n: mixture.mean + 0.5 * (x - mixture.mean))
ignoring_a_component = another(weights=without_the_lightest)
dependent_on_the_origin = shifted(lambda mixture, n: 1e-2 * np.sin(mixture.mean))
BROKEN = {
    "form": [
        lambda mixture, n, rng: herd(mixture, n).x,
        lambda mixture, n, rng: herd(mixture, n + 1 if n > 1 else n),
        herding(lambda x, mixture, n: np.where(np.arange(n)[:, None] == 7, np.inf, x)),
        lambda mixture, n, rng: hf.Points.unchecked(herd(mixture, n).x, np.ones(n)),
        of_negative_weights,
    ],
    "a single point": [lambda mixture, n, rng: herd(mixture, n) if n != 1 else {}["no such point"]],
    "seeds": [writing, Keeping().sample, using_random_numbers, Restless().sample],
    "shared covariance": [herding(lambda x, mixture, n: x[::-1] if mixture.shared else x)],
    "component of weight zero": [
        lambda m, n, rng: another(weights=lambda m: np.maximum(m.weights, 1.0 / n))(m, n, rng)
    ],
    "order of the components": [
        another(weights=lambda m: m.weights * (1 + 0.3 * (len(m) > 1) * (np.arange(len(m)) == 0)))
    ],
    "origin and unit": [rounding],
    "thin covariance": [needing_a_density],
    "singular covariances": [
        needing_a_density,
        another(
            covariances=lambda m: (
                m.covariances + 1e-2 * np.trace(m.covariance) / m.dim * np.eye(m.dim)
            )
        ),
    ],
    "a single place": [
        herding(lambda x, mixture, n: x + (np.ptp(x) == 0) * np.linspace(-0.1, 0.1, n)[:, None])
    ],
    "huge and tiny scales": [
        herding(lambda x, mixture, n: x * (np.inf if mixture.covariance.max() > 1e15 else 1.0)),
        rounding,
    ],
    "far components": [ignoring_a_component],
    "energy distance": [halved],
    "moments": [
        shifted(lambda mixture, n: np.linspace(0, 0.5 * (n > 1), n)[:, None]),
        lambda m, n, rng: another(
            weights=lambda m: np.random.default_rng(0).multinomial(int(n), m.weights)
        )(m, n, rng),
    ],
}
OF_THE_PACKAGE = {"form", "seeds", "singular covariances", "moments"}
CASES = [(check, function) for check, functions in BROKEN.items() for function in functions]


def fails(words, function, check=check_sampler, dims=(2,), **options):
    """A sampler fails a check, and is told what is wrong with it."""
    with pytest.raises(AssertionError, match=words):
        check(Sampler(function), dims=dims, **options)


@cases("check function", *CASES)
def test_a_broken_sampler_fails(check, function):
    checks = check_sampler if check in OF_THE_PACKAGE else check_everything
    fails(f"- {check}[:,]", function, checks, dims=(1, 2))


# Samplers of another distribution


def of_one_gaussian(mixture, n, take):
    return take(hf.GaussianMixture([1.0], mixture.mean[None], mixture.covariance), n)


WRONG = {
    "one Gaussian": of_one_gaussian,
    "standard deviations times 1.3": changed(covariances=lambda m: 1.3**2 * m.covariances),
    "variances for standard deviations": changed(covariances=lambda m: m.covariances @ m.covariances),
    "weights to the power 0.7": changed(weights=lambda m: m.weights**0.7),
    "equal weights": changed(weights=lambda m: np.sign(m.weights)),
    "means moved": changed(means=lambda m: m.means + 0.1 * np.sqrt(np.diag(m.covariance))),
}  # fmt: skip
QUALITY = "- (moments|energy distance|far components)[:,]"


@cases("name kind", *((name, "herded") for name in WRONG), ("equal weights", "random"))
def test_a_sampler_of_another_distribution_fails(name, kind):
    def sample(mixture, n, rng):
        return WRONG[name](mixture, n, herd if kind == "herded" else lambda m, n: draw(m, n, rng))

    herded = kind == "herded"
    fails(QUALITY, sample, check_everything, dims=(1, 2), deterministic=herded, affine=None)


def test_what_is_right_passes():
    check_everything(GOOD, dims=(1, 2))
    check_everything(Sampler(draw), deterministic=False, dims=(1, 2))


@cases(
    "function",
    lambda mixture, n, rng: draw(mixture, n, 0),
    lambda mixture, n, rng: draw(mixture, n, None),
)
def test_a_random_sampler_that_misuses_its_seed_fails(function):
    fails("- seeds, d = 2", function, deterministic=False)


def test_what_is_not_promised_is_not_checked():
    check_everything(Sampler(dependent_on_the_origin), affine=None, far_components=False, dims=(2,))
    same = "- origin and unit: d = 2, unit 1e-6: expected the same points"
    fails(same, dependent_on_the_origin, check_everything)
    grid = herding(to_a_grid_about_the_mean)
    fails("- any affine map", grid, check_everything, affine="any")
    fails("expected no negative weight", of_negative_weights)
    check_everything(
        Sampler(of_negative_weights),
        signed_weights=True,
        moments=False,
        far_components=False,
        dims=(2,),
    )


def test_samplers_of_certain_sizes_are_asked_for_these_alone():
    def only_even(mixture, n, rng):
        if n % 2:
            raise ValueError(f"n: expected an even number, got {n}")
        return herd(mixture, n)

    check_everything(Sampler(only_even), sizes=lambda dim, components: range(2, 400, 2), dims=(2,))
    fails("- form, d = 2: n: expected an even number", only_even)


def test_all_faults_are_reported_in_one_message():
    with pytest.raises(AssertionError, match="has 7 faults") as caught:
        check_sampler(Sampler(lambda mixture, n, rng: hf.Points(np.zeros((3, 1)))), dims=(1, 2))
    assert len(str(caught.value).splitlines()) == 8
    assert "- form, d = 1: expected shapes (1, 1), (1,), got (3, 1), (3,)" in str(caught.value)
