"""Checks of what every sampler must do, for a test of your own sampler: `check_sampler`.

Each check is one generator below, whose docstring states the demand. It yields a line "case: expected ..., got ..." for
everything that is wrong.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from herdfilter._checks import Array, as_generator, check_count, one_of
from herdfilter._repr import listing_of
from herdfilter.discrepancy import energy_distance, expected_energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler

__all__ = ["SamplerError", "check_sampler", "hostile_mixture", "random_mixture"]
__dir__ = listing_of(globals())

Sizes = Callable[[int, int], Iterable[int]]
"""``(dim, components) -> numbers of points`` that a sampler can give; components of weight zero are not counted."""


SEEDS_POOLED = 16  # seeds of a random sampler whose points are pooled
# Energy distance, as a multiple of its mean, that fewer than one in 100,000 sets of independent draws exceed: no quadratic
# form of Gaussian variables has a longer tail than chi-squared with one degree of freedom (Szekely and Bakirov 2003).
LARGEST_ENERGY_RATIO = 20.0
RARE_PROBABILITY = 1e-7  # a random sampler fails if a share of its points so small, or so large, is less probable


class SamplerError(AssertionError):
    """A sampler failed checks.

    Attributes
    ----------
    sampler : str
        Representation of the sampler.
    failures : dict of str to list of str
        Name of each failed check -> its complaints.
    passed : list of str
        Names of the checks that passed.

    Examples
    --------
    >>> print(hf.testing.SamplerError("Mine()", {"a single place": ["d = 1: expected 3, got 4"]}, ["shapes"]))
    Mine() fails 1 of 2 checks:
    - a single place: d = 1: expected 3, got 4
    """

    def __init__(self, sampler: str, failures: dict[str, list[str]], passed: list[str]) -> None:
        super().__init__(sampler, failures, passed)
        self.sampler, self.failures, self.passed = sampler, failures, passed

    def __str__(self) -> str:
        lines = [f"{self.sampler} fails {len(self.failures)} of {len(self.failures) + len(self.passed)} checks:"]
        for name, wrong in self.failures.items():
            more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
            lines.append(f"- {name}: " + "; ".join(wrong[:3]) + more)
        return "\n".join(lines)


def check_sampler(
    sampler: Sampler,
    *,
    deterministic: bool = True,
    affine: Literal["unit", "any"] | None = "unit",
    moments: bool = True,
    far_components: bool = True,
    signed_weights: bool = False,
    sizes: Sizes | None = None,
    largest: int = 320,
    dims: Sequence[int] = (1, 2, 3, 5),
) -> list[str]:
    """Run all checks of a sampler that apply to its promises, and report all failures together.

    Call it in a test of your own: ``herdfilter.testing.check_sampler(MySampler(), deterministic=False)``.

    Parameters
    ----------
    sampler : Sampler
        The object to check.
    deterministic : bool
        True promises bit-identical points for the same input on the same machine, and a generator left untouched; False
        promises draws that a seed reproduces and that differ between seeds.
    affine : {"unit", "any"} or None
        Promises that the points move with the origin and the unit of the state, or with any affine map of it. A random
        sampler promises it for the same seed.
    moments : bool
        Promises to represent five overlapping components: the mean to a fraction of the error of independent draws (to 4.5
        of their standard errors, for a random sampler), the variance along every direction within a factor of two, an
        energy distance up to independent draws' mean; and the same in either order.
    far_components : bool
        Promises that components far apart get their shares of the points, of 40 at most two too many or too few, and that
        no point lies between them.
    signed_weights : bool
        Promises only that weights sum to 1; they may be negative.
    sizes : callable, optional
        ``(dim, components) -> allowed n`` of a sampler that allows certain numbers of points; every other number must raise
        ValueError. Checks use the allowed number nearest to theirs.
    largest : int
        Most points to ask for, of a sampler that is slow.
    dims : sequence of int
        Dimensions of the mixtures.

    Returns
    -------
    list of str
        Names of the checks that passed: all that apply to these promises.

    Raises
    ------
    SamplerError
        If a check fails. It lists each failed check with what was expected and what came.

    Notes
    -----
    Random points of 16 seeds are pooled: their energy distance may be 20 times the mean over sets of as many independent
    draws, and the share of each far component must have a probability above 1e-7. Correct samplers with independent draws
    fail less than once in 1,000 times.

    Examples
    --------
    >>> passed = hf.testing.check_sampler(hf.SobolSampling(), dims=(1,), largest=10)
    >>> "determinism" in passed
    True
    """
    if affine is not None:
        one_of("affine", affine, ("unit", "any"))
    dims = tuple(check_count("dims", d) for d in dims)
    if not dims:
        raise ValueError("dims: expected at least one dimension, got none")
    largest = check_count("largest", largest)
    case = _Case(sampler, deterministic, affine, moments, far_components, signed_weights, sizes, largest, dims)
    wrong: dict[str, list[str]] = {name: [] for name, (_, applies) in _CHECKS.items() if applies(case)}
    for name, complaints in wrong.items():
        try:
            complaints.extend(_CHECKS[name][0](case))
        except Exception as error:
            complaints.append(f"expected no error, got {type(error).__name__}: {error}")
    passed = [name for name, complaints in wrong.items() if not complaints]
    if len(passed) < len(wrong):
        raise SamplerError(repr(sampler), {name: lines for name, lines in wrong.items() if lines}, passed)
    return passed


def random_mixture(seed: int, dim: int, n_components: int = 5) -> GaussianMixture:
    """Return a mixture of overlapping components of random shape, of a total variance of about 10 per dimension.

    Examples
    --------
    >>> hf.testing.random_mixture(seed=1, dim=2, n_components=3)
    GaussianMixture(components=3, dim=2)
    """
    rng = as_generator(check_count("seed", seed, 0, None))
    dim, n = check_count("dim", dim), check_count("n_components", n_components)
    roots = rng.standard_normal((n, dim, dim))
    covariances = roots @ roots.transpose(0, 2, 1) / dim + 0.2 * np.eye(dim)
    return GaussianMixture(rng.dirichlet(2 * np.ones(n)), 3 * rng.standard_normal((n, dim)), covariances)


def hostile_mixture(seed: int) -> GaussianMixture:
    """Return one of a wide family of mixtures, to find where a sampler fails.

    It has up to 20 components in up to 8 dimensions, a tenth of a standard deviation to 10,000 apart, with even or uneven
    weights; alike, of sizes four orders of magnitude apart, long and narrow, or without extent along some directions.

    Examples
    --------
    >>> [hf.testing.hostile_mixture(seed) for seed in (1, 2)]
    [GaussianMixture(components=13, dim=2, shared), GaussianMixture(components=5, dim=8)]
    """
    rng = np.random.default_rng([check_count("seed", seed, 0, None), 77])
    dim, components = int(rng.choice([1, 2, 3, 4, 6, 8])), int(rng.integers(1, 21))
    weights = rng.dirichlet(np.full(components, 10 ** rng.uniform(-1, 1)))
    means = 10 ** rng.uniform(-1, 4) * rng.standard_normal((components, dim))
    roots = rng.standard_normal((components, dim, dim))
    kind = rng.choice(["alike", "sizes", "narrow", "flat"])
    if kind == "sizes":
        roots *= 10 ** rng.uniform(-3, 1, (components, 1, 1))
    if kind == "narrow":
        roots *= 10 ** rng.uniform(-4, 0, (components, 1, dim))
    if kind == "flat":
        roots[:, :, : rng.integers(dim)] = 0.0
    covariances = roots @ roots.swapaxes(1, 2)
    return GaussianMixture(weights, means, covariances[0] if rng.random() < 0.3 else covariances)


@dataclass(frozen=True)
class _Case:
    """A sampler and what it promises."""

    sampler: Sampler
    deterministic: bool
    affine: str | None
    moments: bool
    far_components: bool
    signed_weights: bool
    sizes: Sizes | None
    largest: int
    dims: tuple[int, ...]

    def draw(self, mixture: GaussianMixture, n: int, seed: int = 0) -> Points:
        """Draw points for a mixture, as near to n in number as the sampler allows."""
        return self.sampler.sample(mixture, self.near(mixture, n), np.random.default_rng(seed))

    def pool(self, mixture: GaussianMixture, n: int) -> Points:
        """Draw deterministic points, or pool random ones of many seeds."""
        found = [self.draw(mixture, n, seed) for seed in range(1 if self.deterministic else SEEDS_POOLED)]
        weights = np.concatenate([points.weights for points in found])
        return Points.unchecked(np.concatenate([points.x for points in found]), weights / len(found))

    @property
    def low_dims(self) -> tuple[int, ...]:
        """Up to two dimensions: in more, rounding more often decides a near-tie, and so all later points."""
        return tuple(d for d in self.dims if d <= 2) or (min(self.dims),)

    def near(self, mixture: GaussianMixture, n: int) -> int:
        if self.sizes is None:
            return min(n, self.largest)
        return min(self.sizes(mixture.dim, int(np.count_nonzero(mixture.weights))), key=lambda size: abs(size - n))


_Check = Callable[[_Case], Iterator[str]]
_CHECKS: dict[str, tuple[_Check, Callable[[_Case], bool]]] = {}


def _demand(applies: Callable[[_Case], Any] = lambda case: True) -> Callable[[_Check], _Check]:
    """List a check under its own name; it runs for samplers to whose promises it applies."""

    def add(run: _Check) -> _Check:
        _CHECKS[run.__name__.strip("_").replace("_", " ")] = run, applies
        return run

    return add


# Form


@_demand()
def _contract(case: _Case) -> Iterator[str]:
    """Have a method sample(mixture, n, rng=None) that returns Points."""
    if not isinstance(case.sampler, Sampler):
        yield f"expected an object with sample(mixture, n, rng), got {case.sampler!r}"
    else:
        mixture = _two_on_a_line()
        points = case.sampler.sample(mixture, case.near(mixture, 5))
        if not isinstance(points, Points):
            yield f"expected Points from sample(mixture, n), got {type(points).__name__}"


@_demand()
def _shapes(case: _Case) -> Iterator[str]:
    """Return finite points (n, d), and weights (n,) that sum to 1 and, unless promised otherwise, are not negative."""
    for d, components, wanted in product(case.dims, (1, 4), (2, 23)):
        yield from _form(case, f"d = {d}, M = {components}", random_mixture(0, d, components), wanted)


@_demand(lambda case: case.near(_two_on_a_line(), 1) == 1)
def _a_single_point(case: _Case) -> Iterator[str]:
    """Give a single point all the weight, and place it where the mixture is."""
    for d, components in product(case.dims, (1, 4)):
        mixture, text = random_mixture(0, d, components), f"d = {d}, M = {components}, n = 1"
        yield from _form(case, text, mixture, 1)
        yield from _near_the_mixture(text, case.draw(mixture, 1), mixture)


@_demand()
def _bad_numbers_of_points(case: _Case) -> Iterator[str]:
    """Refuse a number of points that is not a positive integer, or that the sampler cannot give."""
    bad: list[Any] = [0, -1, 2.5, "10", None]
    if case.sizes is not None:
        bad.append(max(case.sizes(1, 2)) + 1)
    for n in bad:
        try:
            case.sampler.sample(_two_on_a_line(), n, np.random.default_rng(0))
        except (TypeError, ValueError):
            continue
        yield f"n = {n!r}: expected a ValueError, got points"


@_demand()
def _the_mixture_is_left_alone(case: _Case) -> Iterator[str]:
    """Leave the mixture unchanged, also when the caller writes into the points."""
    for components, n in ((5, 10), (1, 1), (1, 10)):
        mixture = random_mixture(2, case.low_dims[-1], components)
        before = _bytes(mixture)
        points = case.draw(mixture, n)
        points.x[:], points.weights[:] = np.nan, np.nan
        if _bytes(mixture) != before:
            yield f"M = {components}, n = {n}: expected weights, means and covariances as before, got others"


@_demand()
def _points_may_be_overwritten(case: _Case) -> Iterator[str]:
    """Return new arrays every time: the next points are the same when the caller writes into these."""
    for components in (1, 5):
        mixture = random_mixture(3, case.low_dims[-1], components)
        first = case.draw(mixture, 10)
        expected = first.x.copy(), first.weights.copy()
        first.x[:], first.weights[:] = np.nan, np.nan
        yield from _same(f"M = {components}", case.draw(mixture, 10), *expected)


# Determinism


@_demand(lambda case: case.deterministic)
def _determinism(case: _Case) -> Iterator[str]:
    """Return bit-identical points with any generator or without one, and leave the generator as it was."""
    for d in case.dims:
        mixture = random_mixture(8, d)
        n = case.near(mixture, 30)
        first = case.sampler.sample(mixture, n)
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            before = rng.bit_generator.state
            again = case.sampler.sample(mixture, n, rng)
            yield from _same(f"d = {d}, seed {seed}", again, first.x, first.weights)
            if rng.bit_generator.state != before:
                yield f"d = {d}: expected an untouched generator, got one that has moved on"


@_demand(lambda case: not case.deterministic)
def _seeds(case: _Case) -> Iterator[str]:
    """Repeat the draws of a seed; draw others from another seed, later from the same generator, and without one."""
    mixture = random_mixture(8, min(3, max(case.dims)))
    n, rng = case.near(mixture, 30), np.random.default_rng(0)
    first, later = (case.sampler.sample(mixture, n, rng).x for _ in range(2))
    yield from _same("seed 0 twice", case.draw(mixture, n, seed=0), first)
    others = {"a later draw": later, "seed 1": case.draw(mixture, n, seed=1).x}
    others["no generator"] = case.sampler.sample(mixture, n).x
    for name, other in others.items():
        if np.array_equal(other, first):
            yield f"{name}: expected other points than from seed 0, got the same"
    if np.array_equal(others["no generator"], case.sampler.sample(mixture, n).x):
        yield "no generator twice: expected different points, got the same"


# The same mixture written in another way


@_demand()
def _shared_covariance(case: _Case) -> Iterator[str]:
    """Return the same points for one shared covariance and for the same one repeated."""
    for d in case.low_dims:
        mixture = random_mixture(1, d)
        shared = GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])
        repeated = GaussianMixture(mixture.weights, mixture.means, shared.covariances)
        yield from _close(f"d = {d}, shared", case.draw(shared, 15), case.draw(repeated, 15), 1e-5)


@_demand()
def _component_of_weight_zero(case: _Case) -> Iterator[str]:
    """Ignore such a component: place no point near it; a deterministic sampler gives the same points as without it."""
    for d in case.dims:
        mixture = random_mixture(4, d)
        padded = GaussianMixture(
            np.append(0.0, mixture.weights),
            np.vstack([np.full(d, 50.0), mixture.means]),
            np.concatenate([[9 * np.eye(d)], mixture.covariances]),
        )
        points = case.draw(padded, 30)
        yield from _near_the_mixture(f"d = {d}", points, mixture)
        if case.deterministic:
            yield from _close(f"d = {d}, with and without", points, case.draw(mixture, 30), 1e-5)


@_demand(lambda case: case.moments and case.deterministic)
def _order_of_the_components(case: _Case) -> Iterator[str]:
    """Represent the mixture equally well in either order, to a quarter; the points themselves may differ."""
    for d in case.dims:
        mixture = random_mixture(13, d)
        turned = GaussianMixture(mixture.weights[::-1], mixture.means[::-1], mixture.covariances[::-1])
        one, other = (energy_distance(case.draw(m, 100), mixture) for m in (mixture, turned))
        if not max(one, other) <= 1.25 * min(one, other):
            yield f"d = {d}: expected energy distances within a factor of 1.25, got {one:.3g} and {other:.3g}"


@_demand(lambda case: case.affine)
def _origin_and_unit(case: _Case) -> Iterator[str]:
    """Move with the origin and the unit of the state."""
    for d in case.low_dims:
        mixture = random_mixture(6, d)
        points, shift = case.draw(mixture, 40), 1e5 * (-1.0) ** np.arange(d)
        for name, A, b in (("unit 1e-6", 1e-6, 0.0), ("unit 1e6", 1e6, 0.0), ("origin", 1.0, shift)):
            moved = case.draw(_mapped(mixture, A * np.eye(d), b), 40)
            back = Points.unchecked((moved.x - b) / A, moved.weights)
            yield from _close(f"d = {d}, {name}", back, points, 1e-4)


@_demand(lambda case: case.affine == "any")
def _any_affine_map(case: _Case) -> Iterator[str]:
    """Move with mixed coordinates in units up to eight orders of magnitude apart."""
    for d in case.dims:
        mixture, rng = random_mixture(14, d), np.random.default_rng(15)
        A = np.diag(10.0 ** rng.uniform(-4, 4, d)) @ rng.standard_normal((d, d))
        moved = case.draw(_mapped(mixture, A, 0.0), 100)
        back = Points.unchecked(np.linalg.solve(A, moved.x.T).T, moved.weights)
        yield from _close(f"d = {d}", back, case.draw(mixture, 100), 1e-5)


# Difficult mixtures


@_demand(lambda case: max(case.dims) > 1)
def _flat_covariance(case: _Case) -> Iterator[str]:
    """Fill a plane and keep to it, if components have hardly any extent across it, or none."""
    flats = ("oblique", 1e-7), ("oblique", 0.0), ("along an axis", 0.0)  # the last exactly, not to rounding
    for d, components, (name, thickness) in product((d for d in case.dims if d > 1), (1, 3), flats):
        normal = np.eye(d)[-1] if name == "along an axis" else np.resize([1.0, -2.0, 2.0, -1.0, 3.0], d)
        normal /= np.linalg.norm(normal)
        flat, rng = np.eye(d) - np.outer(normal, normal), np.random.default_rng(5)
        means = 2 * rng.standard_normal((components, d)) @ flat
        mixture = GaussianMixture(np.ones(components), means, flat + thickness**2 * np.outer(normal, normal))
        points, text = case.draw(mixture, 60, seed=1), f"d = {d}, M = {components}, {name}, {thickness:g} thick"
        away = np.abs(points.x @ normal).max()
        if not away < 1e-3:
            yield f"{text}: expected points within 1e-3 of the plane, got {away:.3g}"
        plane = np.linalg.svd(flat)[0][:, :-1]
        due, got = (plane.T @ one.covariance @ plane for one in (mixture, points))
        ratios = np.linalg.eigvals(np.linalg.solve(due, got)).real
        if not ratios.min() > 0.3:
            yield f"{text}: expected 0.3 of the variance along every direction in the plane, got {ratios.min():.3g}"


@_demand()
def _a_single_place(case: _Case) -> Iterator[str]:
    """Put all points at one place, if all components are there and have no extent."""
    for d in case.dims:
        place = np.where(np.arange(d) % 2, -4.0, 3.0)
        mixture = GaussianMixture([0.5, 0.5], [place] * 2, np.zeros((d, d)))
        away = np.abs(case.draw(mixture, 10).x - place).max()
        if not away < 1e-3:
            yield f"d = {d}: expected points within 1e-3 of {place}, got {away:.3g}"


@_demand()
def _huge_and_tiny_scales(case: _Case) -> Iterator[str]:
    """Return finite points, not all in one place, whatever the unit of the state."""
    for d, unit in product(case.dims, (1e-9, 1e9)):
        mixture = _mapped(random_mixture(6, d), unit * np.eye(d), 0.0)
        yield from _form(case, f"d = {d}, unit {unit:g}", mixture, 40)
        if not case.draw(mixture, 40).covariance.trace() > 0:
            yield f"d = {d}, unit {unit:g}: expected points in different places, got one place"


@_demand(lambda case: case.far_components)
def _far_components(case: _Case) -> Iterator[str]:
    """Give components 30 to 1e8 standard deviations apart points by their weights, and place no point elsewhere."""
    from scipy.stats import binom  # slow to import

    cases = (30.0, (0.9, 0.07, 0.03)), (1e4, (0.5, 0.3, 0.2)), (1e8, (0.9, 0.07, 0.03))
    for d, (distance, weights) in product(case.dims, cases):
        means = np.zeros((3, d))
        means[1, 0], means[2, -1] = distance, -distance
        points = case.pool(GaussianMixture(weights, means, np.eye(d)), 40)
        away, text = np.linalg.norm(points.x[:, None] - means, axis=2), f"d = {d}, distance {distance:g}"
        furthest = away.min(axis=1).max()
        if not furthest <= 10:
            yield f"{text}: expected points within 10 standard deviations of a component, got one at {furthest:.3g}"
        n = 1 / (points.weights**2).sum()
        shares = n * np.bincount(away.argmin(axis=1), points.weights, minlength=3)
        expected, k = n * np.array(weights), shares.round()
        if case.deterministic:
            wrong = np.abs(shares - expected) > 2 + 1e-9
        else:
            wrong = np.minimum(binom.cdf(k, round(n), weights), binom.sf(k - 1, round(n), weights)) < RARE_PROBABILITY
        if wrong.any():
            yield f"{text}: expected shares near {_numbers(expected)} of {n:.0f} points, got {_numbers(shares)}"


# Quality


@_demand(lambda case: case.moments)
def _moments(case: _Case) -> Iterator[str]:
    """Have the mean of the mixture, and its variance along every direction within a factor of two."""
    for d, seed, wanted in product(case.dims, range(3), (20, 320)):
        mixture = random_mixture(10 + seed, d)
        points, text = case.draw(mixture, wanted, seed), f"d = {d}, mixture {seed}, n = {wanted}"
        whiten = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
        off = float(np.linalg.norm(whiten @ (points.mean - mixture.mean)))
        if case.deterministic:
            allowed = 0.03 if len(points) >= 100 else 0.2 * max(1.0, np.sqrt(20 / len(points)))
            allowed *= max(1.0, d / 2)
        else:
            allowed = 4.5 * np.sqrt(max(1.0, d / 2) / len(points))
        if not off <= allowed:
            yield f"{text}: expected the mean within {allowed:.3g} standard deviations, got {off:.3g}"
        ratios = np.linalg.eigvalsh(whiten @ points.covariance @ whiten.T)
        if len(points) >= 100 and not (ratios[0] >= 0.5 and ratios[-1] <= 2):
            yield f"{text}: expected variances of 0.5 to 2 of the mixture's, got {ratios[0]:.3g} to {ratios[-1]:.3g}"


@_demand(lambda case: case.moments)
def _energy_distance(case: _Case) -> Iterator[str]:
    """Be as near to a Gaussian, and to a mixture, as independent draws: those of many seeds together, if random."""
    for d, components in product(case.dims, (1, 5)):
        mixture = random_mixture(10, d, components)
        points = case.pool(mixture, 320)
        mean = expected_energy_distance(mixture, 1) * (points.weights**2).sum()
        ratio, allowed = energy_distance(points, mixture) / mean, 1.0 if case.deterministic else LARGEST_ENERGY_RATIO
        if not ratio <= allowed:
            text = f"d = {d}, M = {components}, n = {len(points)}: expected an energy distance"
            yield f"{text} up to {allowed:g} times the mean of independent draws, got {ratio:.3g} times"


# Parts of checks


def _two_on_a_line() -> GaussianMixture:
    return GaussianMixture([0.3, 0.7], [[-1.0], [2.0]], [[[0.5]], [[2.0]]])


def _form(case: _Case, text: str, mixture: GaussianMixture, wanted: int) -> Iterator[str]:
    points, n, d = case.draw(mixture, wanted), case.near(mixture, wanted), mixture.dim
    if np.shape(points.x) != (n, d) or np.shape(points.weights) != (n,):
        got = f"{np.shape(points.x)} and {np.shape(points.weights)}"
        yield f"{text}: expected shapes ({n}, {d}) and ({n},), got {got}"
    elif not np.isfinite(points.x).all():
        yield f"{text}, n = {n}: expected finite points, got {np.count_nonzero(~np.isfinite(points.x))} non-finite"
    if not abs(points.weights.sum() - 1) <= 1e-12:
        yield f"{text}, n = {n}: expected weights that sum to 1, got a sum of {points.weights.sum():.15g}"
    if not case.signed_weights and not (points.weights >= 0).all():
        yield f"{text}, n = {n}: expected no negative weight, got {points.weights.min():g}"


def _near_the_mixture(text: str, points: Points, mixture: GaussianMixture) -> Iterator[str]:
    """Complain unless every point is within ten standard deviations of the mixture's mean."""
    away = np.linalg.solve(np.linalg.cholesky(mixture.covariance), (points.x - mixture.mean).T)
    furthest = np.linalg.norm(away, axis=0).max()
    if not furthest <= 10:
        yield f"{text}: expected points within 10 standard deviations of the mean, got one at {furthest:.3g}"


def _same(text: str, points: Points, x: Array, weights: Array | None = None) -> Iterator[str]:
    if not np.array_equal(points.x, x):
        yield f"{text}: expected the same points to the last bit, got others"
    if weights is not None and not np.array_equal(points.weights, weights):
        yield f"{text}: expected the same weights to the last bit, got others"


def _close(text: str, points: Points, others: Points, tolerance: float) -> Iterator[str]:
    if points.x.shape != others.x.shape:
        yield f"{text}: expected as many points, got {len(points)} and {len(others)}"
        return
    apart = np.abs(points.x - others.x).max()
    if not apart <= tolerance:
        yield f"{text}: expected the same points to {tolerance:g}, got some {apart:.3g} apart"
    equal = np.ptp(others.weights) == 0  # others are found from the points, and only as good as these
    apart, largest = np.abs(points.weights - others.weights).max(), np.abs(others.weights).max()
    if not apart <= (1e-12 if equal else tolerance) * largest:
        yield f"{text}: expected the same weights, got {apart / largest:.3g} of the largest between some"


def _mapped(mixture: GaussianMixture, A: Array, b: Array | float) -> GaussianMixture:
    """Return the distribution of A x + b."""
    return GaussianMixture(mixture.weights, mixture.means @ A.T + b, A @ mixture.covariances @ A.T)


def _bytes(mixture: GaussianMixture) -> bytes:
    return pickle.dumps((mixture.weights, mixture.means, mixture.distinct_covariances.copy()))


def _numbers(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
