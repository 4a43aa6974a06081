"""Checks of what every sampler must do, for a test of your own sampler: `check_sampler`; and mixtures to try it on.

Each check is one generator below, whose docstring states the demand. It yields a line "case: expected ..., got ..." for
everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from herdfilter._checks import Array, as_generator, check_count
from herdfilter._repr import listing_of
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler

__all__ = ["SamplerError", "check_sampler", "hostile_mixture", "random_mixture"]
__dir__ = listing_of(globals())


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
    moments: bool = True,
    signed_weights: bool = False,
    sizes: Callable[[int, int], Iterable[int]] | None = None,
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
    moments : bool
        Promises the mean of five overlapping components to a fraction of the error of independent draws (to 4.5 of their
        standard errors, for a random sampler), and the variance along every direction within a factor of two.
    signed_weights : bool
        Promises only that weights sum to 1; they may be negative.
    sizes : callable, optional
        ``(dim, components) -> allowed n`` of a sampler that allows certain numbers of points; every other number must raise
        ValueError. Checks use the allowed number nearest to theirs.
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

    Examples
    --------
    >>> passed = hf.testing.check_sampler(hf.SobolSampling(), dims=(1,))
    >>> "determinism" in passed
    True
    """
    dims = tuple(check_count("dims", d) for d in dims)
    if not dims:
        raise ValueError("dims: expected at least one dimension, got none")
    case = _Case(sampler, deterministic, signed_weights, sizes, dims)
    return _run(_checks_of(case, moments), case)


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
    signed_weights: bool
    sizes: Callable[[int, int], Iterable[int]] | None
    dims: tuple[int, ...]

    def draw(self, mixture: GaussianMixture, n: int, seed: int = 0) -> Points:
        """Draw points for a mixture, as near to n in number as the sampler allows."""
        return self.sampler.sample(mixture, self.near(mixture, n), np.random.default_rng(seed))

    def near(self, mixture: GaussianMixture, n: int) -> int:
        """Return the number of points nearest to n that the sampler allows; components of weight zero are not counted."""
        if self.sizes is None:
            return n
        return min(self.sizes(mixture.dim, int(np.count_nonzero(mixture.weights))), key=lambda size: abs(size - n))


_Check = Callable[[_Case], Iterator[str]]


def _checks_of(case: _Case, moments: bool) -> list[_Check]:
    """Return the checks that apply to the promises."""
    checks: list[_Check]
    checks = [_shapes, _bad_numbers_of_points, _the_mixture_is_left_alone, _determinism if case.deterministic else _seeds]
    return checks + [_flat_covariance] * (max(case.dims) > 1) + [_moments] * moments


def _run(checks: Iterable[_Check], case: _Case) -> list[str]:
    """Return the names of the checks if all pass; else raise SamplerError."""
    complaints: dict[str, list[str]] = {}
    for check in checks:
        lines = complaints[check.__name__.strip("_").replace("_", " ")] = []
        try:
            lines.extend(check(case))
        except Exception as error:
            lines.append(f"expected no error, got {type(error).__name__}: {error}")
    passed = [name for name, lines in complaints.items() if not lines]
    if len(passed) < len(complaints):
        raise SamplerError(repr(case.sampler), {name: lines for name, lines in complaints.items() if lines}, passed)
    return passed


def _shapes(case: _Case) -> Iterator[str]:
    """Return finite points (n, d), and weights (n,) that sum to 1 and, unless promised otherwise, are not negative."""
    if not isinstance(case.sampler, Sampler):
        yield f"expected an object with sample(mixture, n, rng), got {case.sampler!r}"
        return
    for d, components, wanted in product(case.dims, (1, 4), (1, 2, 23)):
        yield from _form(case, f"d = {d}, M = {components}", random_mixture(0, d, components), wanted)


def _form(case: _Case, text: str, mixture: GaussianMixture, wanted: int) -> Iterator[str]:
    points, n, d = case.draw(mixture, wanted), case.near(mixture, wanted), mixture.dim
    if not isinstance(points, Points):
        yield f"{text}: expected Points, got {type(points).__name__}"
        return
    if np.shape(points.x) != (n, d) or np.shape(points.weights) != (n,):
        yield f"{text}: expected shapes ({n}, {d}) and ({n},), got {np.shape(points.x)} and {np.shape(points.weights)}"
    elif not np.isfinite(points.x).all():
        yield f"{text}, n = {n}: expected finite points, got {np.count_nonzero(~np.isfinite(points.x))} non-finite"
    if not abs(points.weights.sum() - 1) <= 1e-12:
        yield f"{text}, n = {n}: expected weights that sum to 1, got a sum of {points.weights.sum():.15g}"
    if not case.signed_weights and not (points.weights >= 0).all():
        yield f"{text}, n = {n}: expected no negative weight, got {points.weights.min():g}"


def _bad_numbers_of_points(case: _Case) -> Iterator[str]:
    """Refuse a number of points that is not a positive integer, or that the sampler cannot give."""
    for n in (0, -1, 2.5, "10", None, *([] if case.sizes is None else [max(case.sizes(1, 2)) + 1])):
        try:
            case.sampler.sample(random_mixture(0, 1, 2), n, np.random.default_rng(0))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        yield f"n = {n!r}: expected a ValueError, got points"


def _the_mixture_is_left_alone(case: _Case) -> Iterator[str]:
    """Leave the mixture unchanged, and return new arrays every time, also when the caller writes into the points."""
    for components, n in ((5, 10), (1, 1), (1, 10)):
        mixture, text = random_mixture(2, min(case.dims), components), f"M = {components}, n = {n}"
        arrays = mixture.weights, mixture.means, mixture.distinct_covariances
        before, first = [array.copy() for array in arrays], case.draw(mixture, n)
        expected = first.x.copy(), first.weights.copy()
        first.x[:], first.weights[:] = np.nan, np.nan
        if not all(map(np.array_equal, arrays, before)):
            yield f"{text}: expected weights, means and covariances as before, got others"
        else:
            yield from _same(text, case.draw(mixture, n), *expected)


def _determinism(case: _Case) -> Iterator[str]:
    """Return bit-identical points with any generator or without one, and leave the generator as it was."""
    for d in case.dims:
        mixture = random_mixture(8, d)
        n, rng = case.near(mixture, 30), np.random.default_rng(0)
        before, first = rng.bit_generator.state, case.sampler.sample(mixture, n)
        for seed in (rng, np.random.default_rng(1)):
            yield from _same(f"d = {d}", case.sampler.sample(mixture, n, seed), first.x, first.weights)
        if rng.bit_generator.state != before:
            yield f"d = {d}: expected an untouched generator, got one that has moved on"


def _seeds(case: _Case) -> Iterator[str]:
    """Repeat the draws of a seed; draw others from another seed, later from the same generator, and without one."""
    mixture, rng = random_mixture(8, max(case.dims)), np.random.default_rng(0)
    n = case.near(mixture, 30)
    first, later, *free = (case.sampler.sample(mixture, n, source) for source in (rng, rng, None, None))
    yield from _same("seed 0 twice", case.draw(mixture, n), first.x, first.weights)
    for name, others in {"a later draw": later, "seed 1": case.draw(mixture, n, 1), "no generator": free[0]}.items():
        if np.array_equal(others.x, first.x):
            yield f"{name}: expected other points than from seed 0, got the same"
    if np.array_equal(free[0].x, free[1].x):
        yield "no generator twice: expected different points, got the same"


def _flat_covariance(case: _Case) -> Iterator[str]:
    """Fill a plane and keep to it, if components have no extent across it."""
    for d, components in product((d for d in case.dims if d > 1), (1, 3)):
        flat = np.diag([1.0] * (d - 1) + [0.0])
        means = 2 * np.random.default_rng(5).standard_normal((components, d)) @ flat
        mixture = GaussianMixture(np.ones(components), means, flat)
        points, text = case.draw(mixture, 60), f"d = {d}, M = {components}"
        away = np.abs(points.x[:, -1]).max()
        if not away < 1e-3:
            yield f"{text}: expected points within 1e-3 of the plane, got {away:.3g}"
        due, got = mixture.covariance[:-1, :-1], points.covariance[:-1, :-1]
        least = np.linalg.eigvals(np.linalg.solve(due, got)).real.min()
        if not least > 0.3:
            yield f"{text}: expected 0.3 of the variance along every direction in the plane, got {least:.3g}"


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


def _same(text: str, points: Points, x: Array, weights: Array) -> Iterator[str]:
    if not np.array_equal(points.x, x):
        yield f"{text}: expected the same points to the last bit, got others"
    if not np.array_equal(points.weights, weights):
        yield f"{text}: expected the same weights to the last bit, got others"
