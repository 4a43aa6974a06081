"""What every sampler of the package must do beyond `herdfilter.testing.check_sampler`: `check_everything`.

Each demand is one generator below, as there.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import default_rng
from scipy.stats import binom

from herdfilter.discrepancy import energy_distance, expected_energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.testing import check_sampler, random_mixture

SEEDS_POOLED = 16  # seeds of a random sampler whose points are pooled
# Energy distance, as a multiple of its mean, that fewer than one in 100,000 sets of independent draws exceed: no quadratic
# form of Gaussian variables has a longer tail than chi-squared with one degree of freedom (Szekely and Bakirov 2003).
LARGEST_ENERGY_RATIO = 20.0
# a random sampler fails if a share of its points so small, or so large, is less probable
RARE_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Case:
    """A sampler and what it promises."""

    sampler: object
    deterministic: bool
    sizes: object
    dims: tuple

    def draw(self, mixture, n, seed=0):
        """Draw points, as near to n in number as the sampler allows; components of weight zero are not counted."""
        if self.sizes is not None:
            n = min(
                self.sizes(mixture.dim, np.count_nonzero(mixture.weights)),
                key=lambda size: abs(size - n),
            )
        points = self.sampler.sample(mixture, n, default_rng(seed))
        assert np.isfinite(points.x).all()
        return points

    def pool(self, mixture, n):
        """Draw deterministic points, or pool random ones of many seeds."""
        found = [
            self.draw(mixture, n, seed) for seed in range(1 if self.deterministic else SEEDS_POOLED)
        ]
        weights = np.concatenate([points.weights for points in found])
        return Points.unchecked(
            np.concatenate([points.x for points in found]), weights / len(found)
        )

    @property
    def low_dims(self):
        """Up to two dimensions: in more, rounding more often decides a near-tie, and so all later points."""
        return tuple(d for d in self.dims if d <= 2) or (min(self.dims),)


@dataclass(frozen=True)
class Limited:
    """A slow sampler that is asked for a few points only."""

    sampler: object
    largest: int

    def sample(self, mixture, n, rng=None):
        assert n <= self.largest
        return self.sampler.sample(mixture, n, rng)


def check_everything(
    sampler,
    *,
    deterministic=True,
    affine="unit",
    moments=True,
    far_components=True,
    signed_weights=False,
    sizes=None,
    largest=None,
    dims=(1, 2, 3, 5),
):
    """Run the checks of the package and those below that apply to the promises, and report all failures together.

    `affine` is "unit" or "any" if points move with origin and unit of the state, or with any affine map of it. `moments`
    promises equal quality in either order of the components, and an energy distance up to independent draws' mean, too;
    `far_components` that components far apart get their shares of the points, of 40 at most two too many or too few, and
    that no point lies between them. Random points of 16 seeds are pooled: correct samplers with independent draws fail less
    than once in 1,000 times. `largest` is the most points to ask for.
    """
    if largest is not None:
        sampler = Limited(sampler, largest)
        sizes = lambda dim, components: range(1, largest + 1)  # noqa: E731
    case = Case(sampler, deterministic, sizes, tuple(dims))
    checks = [_shared_covariance, _component_of_weight_zero, _a_single_place, _huge_and_tiny_scales]
    if sizes is None or 1 in sizes(1, 2):
        checks.append(_a_single_point)
    checks += [_thin_covariance] * (max(dims) > 1) + [_far_components] * far_components
    checks += [_energy_distance, *[_order_of_the_components] * deterministic] * moments
    checks += [_origin_and_unit] * (affine is not None) + [_any_affine_map] * (affine == "any")
    failures = []
    try:
        check_sampler(
            sampler,
            deterministic=deterministic,
            moments=moments,
            signed_weights=signed_weights,
            sizes=sizes,
            dims=dims,
        )
    except AssertionError as error:
        failures.append(str(error))
    for check in checks:
        name = check.__name__.strip("_").replace("_", " ")
        try:
            failures += [f"- {name}: {line}" for line in check(case)]
        except Exception as error:
            failures.append(f"- {name}: {error!r}")
    assert not failures, "\n".join(failures)


def _a_single_point(case):
    """Give a single point all the weight, and place it where the mixture is."""
    for d, components in product(case.dims, (1, 4)):
        mixture = random_mixture(0, d, components)
        text = f"d = {d}, M = {components}, n = 1"
        yield from _near_the_mixture(text, case.draw(mixture, 1), mixture)


def _shared_covariance(case):
    """Return the same points for one shared covariance and for the same one repeated."""
    for d in case.low_dims:
        mixture = random_mixture(1, d)
        shared = GaussianMixture(mixture.weights, mixture.means, mixture.covariances[0])
        repeated = GaussianMixture(mixture.weights, mixture.means, shared.covariances)
        yield from _close(f"d = {d}, shared", case.draw(shared, 15), case.draw(repeated, 15), 1e-5)


def _component_of_weight_zero(case):
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


def _order_of_the_components(case):
    """Represent the mixture equally well in either order, to a quarter; the points themselves may differ."""
    for d in case.dims:
        mixture = random_mixture(13, d)
        turned = GaussianMixture(
            mixture.weights[::-1], mixture.means[::-1], mixture.covariances[::-1]
        )
        one, other = (energy_distance(case.draw(m, 100), mixture) for m in (mixture, turned))
        if not max(one, other) <= 1.25 * min(one, other):
            yield f"d = {d}: expected energy distances within a factor of 1.25, got {one:.3g} and {other:.3g}"


def _origin_and_unit(case):
    """Move with the origin and the unit of the state."""
    for d in case.low_dims:
        mixture = random_mixture(6, d)
        points = case.draw(mixture, 40)
        shift = 1e5 * (-1.0) ** np.arange(d)
        for name, A, b in (
            ("unit 1e-6", 1e-6, 0.0),
            ("unit 1e6", 1e6, 0.0),
            ("origin", 1.0, shift),
        ):
            moved = case.draw(_mapped(mixture, A * np.eye(d), b), 40)
            back = Points.unchecked((moved.x - b) / A, moved.weights)
            yield from _close(f"d = {d}, {name}", back, points, 1e-4)


def _any_affine_map(case):
    """Move with mixed coordinates in units up to eight orders of magnitude apart."""
    for d in case.dims:
        mixture = random_mixture(14, d)
        rng = default_rng(15)
        A = np.diag(10.0 ** rng.uniform(-4, 4, d)) @ rng.standard_normal((d, d))
        moved = case.draw(_mapped(mixture, A, 0.0), 100)
        back = Points.unchecked(np.linalg.solve(A, moved.x.T).T, moved.weights)
        yield from _close(f"d = {d}", back, case.draw(mixture, 100), 1e-5)


def _thin_covariance(case):
    """Fill a plane and keep to it, if components have hardly any extent across it, or none."""
    # the last exactly, not to rounding
    flats = (("oblique", 1e-7), ("oblique", 0.0), ("along an axis", 0.0))
    for d, components, (name, thickness) in product((d for d in case.dims if d > 1), (1, 3), flats):
        normal = (
            np.eye(d)[-1] if name == "along an axis" else np.resize([1.0, -2.0, 2.0, -1.0, 3.0], d)
        )
        normal /= np.linalg.norm(normal)
        flat = np.eye(d) - np.outer(normal, normal)
        rng = default_rng(5)
        means = 2 * rng.standard_normal((components, d)) @ flat
        mixture = GaussianMixture(
            np.ones(components), means, flat + thickness**2 * np.outer(normal, normal)
        )
        points = case.draw(mixture, 60, seed=1)
        text = f"d = {d}, M = {components}, {name}, {thickness:g} thick"
        away = np.abs(points.x @ normal).max()
        if not away < 1e-3:
            yield f"{text}: expected points within 1e-3 of the plane, got {away:.3g}"
        plane = np.linalg.svd(flat)[0][:, :-1]
        due, got = (plane.T @ one.covariance @ plane for one in (mixture, points))
        ratios = np.linalg.eigvals(np.linalg.solve(due, got)).real
        if not ratios.min() > 0.3:
            yield f"{text}: expected 0.3 of the variance along every direction in the plane, got {ratios.min():.3g}"


def _a_single_place(case):
    """Put all points at one place, if all components are there and have no extent."""
    for d in case.dims:
        place = np.where(np.arange(d) % 2, -4.0, 3.0)
        mixture = GaussianMixture([0.5, 0.5], [place] * 2, np.zeros((d, d)))
        away = np.abs(case.draw(mixture, 10).x - place).max()
        if not away < 1e-3:
            yield f"d = {d}: expected points within 1e-3 of {place}, got {away:.3g}"


def _huge_and_tiny_scales(case):
    """Return finite points, not all in one place, whatever the unit of the state."""
    for d, unit in product(case.dims, (1e-9, 1e9)):
        mixture = _mapped(random_mixture(6, d), unit * np.eye(d), 0.0)
        if not case.draw(mixture, 40).covariance.trace() > 0:
            yield f"d = {d}, unit {unit:g}: expected points in different places, got one place"


def _far_components(case):
    """Give components 30 to 1e8 standard deviations apart points by their weights, and place no point elsewhere."""

    cases = (30.0, (0.9, 0.07, 0.03)), (1e4, (0.5, 0.3, 0.2)), (1e8, (0.9, 0.07, 0.03))
    for d, (distance, weights) in product(case.dims, cases):
        means = np.zeros((3, d))
        means[1, 0] = distance
        means[2, -1] = -distance
        points = case.pool(GaussianMixture(weights, means, np.eye(d)), 40)
        away = np.linalg.norm(points.x[:, None] - means, axis=2)
        text = f"d = {d}, distance {distance:g}"
        furthest = away.min(axis=1).max()
        if not furthest <= 10:
            yield f"{text}: expected points within 10 standard deviations of a component, got one at {furthest:.3g}"
        n = 1 / (points.weights**2).sum()
        shares = n * np.bincount(away.argmin(axis=1), points.weights, minlength=3)
        expected = n * np.array(weights)
        k = shares.round()
        if case.deterministic:
            wrong = np.abs(shares - expected) > 2 + 1e-9
        else:
            wrong = (
                np.minimum(binom.cdf(k, round(n), weights), binom.sf(k - 1, round(n), weights))
                < RARE_PROBABILITY
            )
        if wrong.any():
            yield f"{text}: expected shares near {_numbers(expected)} of {n:.0f} points, got {_numbers(shares)}"


def _energy_distance(case):
    """Be as near to a Gaussian, and to a mixture, as independent draws: those of many seeds together, if random."""
    for d, components in product(case.dims, (1, 5)):
        mixture = random_mixture(10, d, components)
        points = case.pool(mixture, 320)
        mean = expected_energy_distance(mixture, 1) * (points.weights**2).sum()
        ratio = energy_distance(points, mixture) / mean
        allowed = 1.0 if case.deterministic else LARGEST_ENERGY_RATIO
        if not ratio <= allowed:
            text = f"d = {d}, M = {components}, n = {len(points)}: expected an energy distance"
            yield f"{text} up to {allowed:g} times the mean of independent draws, got {ratio:.3g} times"


def _near_the_mixture(text, points, mixture):
    """Complain unless every point is within ten standard deviations of the mixture's mean."""
    away = np.linalg.solve(np.linalg.cholesky(mixture.covariance), (points.x - mixture.mean).T)
    furthest = np.linalg.norm(away, axis=0).max()
    if not furthest <= 10:
        yield f"{text}: expected points within 10 standard deviations of the mean, got one at {furthest:.3g}"


def _close(text, points, others, tolerance):
    if points.x.shape != others.x.shape:
        yield f"{text}: expected as many points, got {len(points)} and {len(others)}"
        return
    apart = np.abs(points.x - others.x).max()
    if not apart <= tolerance:
        yield f"{text}: expected the same points to {tolerance:g}, got some {apart:.3g} apart"
    # others are found from the points, and only as good as these
    equal = np.ptp(others.weights) == 0
    apart = np.abs(points.weights - others.weights).max()
    largest = np.abs(others.weights).max()
    if not apart <= (1e-12 if equal else tolerance) * largest:
        yield f"{text}: expected the same weights, got {apart / largest:.3g} of the largest between some"


def _mapped(mixture, A, b):
    """Return the distribution of A x + b."""
    return GaussianMixture(mixture.weights, mixture.means @ A.T + b, A @ mixture.covariances @ A.T)


def _numbers(values):
    return ", ".join(f"{value:.3g}" for value in values)
