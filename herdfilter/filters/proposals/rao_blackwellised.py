"""Particles for the nonlinear part of a state, and a Kalman filter for the linear part of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from herdfilter._checks import Array, check_part
from herdfilter._covariances import covariance_factor
from herdfilter.angles import merged, unwrap, wrap
from herdfilter.filters.observation import Observation, linear_part_observation
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.balanced import balanced_noise, hilbert_order
from herdfilter.filters.proposals.flow import FlowProposal
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.state import Indices, Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Transition

LEAST_PIVOT = 1e-13  # share of a variance below which what is left of it is rounding
ODD = np.random.default_rng(0).integers(2**63, size=1000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)  # of a hash
GOLDEN = 0.5 * (np.sqrt(5) - 1)  # its multiples, modulo 1, are spread evenly


@dataclass(frozen=True)
class RaoBlackwellisedProposal:
    r"""Moves the nonlinear part of the state by any proposal, and the linear part of each particle by a Kalman filter.

    Given the path of the nonlinear part of particle i its linear part is :math:`N(m_i, P_i)` (Schön, Gustafsson and Nordlund
    2005, in the names of `ConditionallyLinear`). The proposal sees a model of the nonlinear part alone, with the transition
    :math:`N(f^n + A^n m_i, A^n P_i A^{nT} + Q^n)` and the observation :math:`N(h + C m, C P C^T + R)`, and moves it by its
    own points: random, ranked or herded. The linear part then takes up the new state and the observation.

    A point of the predictive mixture, as of `HerdedProposal`, gets an ancestor by the probabilities of the components there.
    At a state from a fit, as of `AutomaticProposal`, the linear part is the regression on the nonlinear part if particles
    cannot be told from one Gaussian, else that of the nearest particle.

    In a filter ``particles`` hold the means :math:`m_i`; ``mean`` and ``covariance`` are those of the whole state. Smoothers
    of particles do not know of :math:`P_i`. The noise of the observation is taken for Gaussian.

    Parameters
    ----------
    proposal : Proposal
        For the nonlinear part; not `FlowProposal`.

    Raises
    ------
    TypeError
        In a filter, if the model names no ``linear`` dimensions, its noise is not additive, its initial distribution is no
        `GaussianMixture`, or it has scans or modes.

    Examples
    --------
    An angle shows a target on a line, at unknown speed. 50 particles for its position alone halve the error, and more.

    >>> plain = hf.models.from_functions(
    ...     lambda x: x @ [[1, 0], [1, 1]], lambda x: np.arctan(x[:, :1] / 5), 0.01 * np.eye(2), [[0.001]], [0, 0], np.eye(2)
    ... )
    >>> model = hf.models.ConditionallyLinear(plain, linear=[1])
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> reference = hf.ParticleFilter(plain, 20_000, rng=1).run(z).means
    >>> def error(proposal):
    ...     runs = [hf.ParticleFilter(model, 50, proposal, rng=seed).run(z).means for seed in range(10)]
    ...     return np.sqrt(np.mean(np.square(runs - reference)))
    ...
    >>> bool(error(hf.RaoBlackwellisedProposal(hf.BootstrapProposal())) < 0.5 * error(hf.BootstrapProposal()))
    True
    """

    proposal: base.Proposal = field(default_factory=base.BootstrapProposal)

    def __post_init__(self) -> None:
        check_part("proposal", self.proposal, base.Proposal, "a proposal such as RankedProposal()")
        if isinstance(self.proposal, FlowProposal):
            raise TypeError(
                "proposal: expected one that does not move what it drew, got FlowProposal; take RankedProposal()"
            )

    @property
    def uses(self) -> base.Uses:
        """See `Proposal`."""
        return self.proposal.uses

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        user = type(self).__name__
        if not hasattr(model, "linear"):
            raise TypeError(
                f"model: {user} needs linear, dimensions that are linear given the others; {contract.kind(model)} has no "
                "linear: take herdfilter.models.ConditionallyLinear(model, linear=[...])"
            )
        contract.require(model, user, (*contract.ADDITIVE, *contract.OBSERVED))
        if contract.has_scans(model):
            raise TypeError(f"model: {user} needs observations, got scans; take the model without WithClutter")
        if not isinstance(given := model.initial, GaussianMixture):
            raise TypeError(f"model.initial: {user} needs a GaussianMixture, as GaussianFit().fit(points) is, got {given!r}")
        self.proposal.check(_Nonlinear(model))

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        part = _Nonlinear(model)
        part.start(model.initial.weights, model.initial.means, model.initial.distinct_covariances)
        return part.whole(self.proposal.initial(part, n, rng))

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        if not isinstance(particles, ConditionalGaussians):
            raise ValueError(
                "resampling: expected a scheme that copies particles with their Gaussians, such as SystematicResampling(), "
                "got one that drops these"
            )
        part = _Nonlinear(transition.model, transition, particles, None if observation is None else observation.measurement)
        part.start(particles.weights, *part.predicted(particles.x, particles.covariances))
        onward = _PartTransition(part, transition.dt, transition.control, transition.step)
        given = Particles.unchecked(part.x, particles.log_weights, None, particles.n_next)
        if observation is None:
            return part.whole(self.proposal.propose(onward, given, rng))
        partial = observation.by(part)
        moved = part.whole(self.proposal.propose(onward, given, rng, partial))
        observation.log_offset = partial.log_offset
        return moved.conditioned(observation)[0]


class ConditionalGaussians(Particles):
    """Particles each of which carries the Gaussian of a linear part, given the path of the nonlinear part."""

    FIELDS: ClassVar[tuple[str, ...]] = (*Particles.FIELDS, "covariances")

    covariances: Array
    """Covariances (n, d, d) of the Gaussians about the particles, or (1, d, d) of all."""

    @classmethod
    def about(cls, x: Array, covariances: Array, particles: Particles) -> Self:
        """Return Gaussians about states (n, d) with the weights and ancestors that particles have."""
        gaussians = cls.unchecked(x, particles.log_weights, None, particles.n_next, particles.ancestors)
        gaussians.covariances = covariances
        return gaussians

    @classmethod
    def restored_spread(cls, saved: Any, n: int, dim: int) -> dict[str, Array]:
        """See `Particles`."""
        shared = np.shape(saved.entries["covariances"]) == (1, dim, dim)
        return {"covariances": saved.read("covariances", (1 if shared else n, dim, dim))}

    def moments(self, circular: tuple[int, ...] = ()) -> tuple[Array, Array]:
        """See `Particles`."""
        mean, covariance = super().moments(circular)
        covariances = self.covariances
        return mean, covariance + (covariances[0] if len(covariances) == 1 else np.tensordot(self.weights, covariances, 1))

    def predicted_observation(self, reader: Measurement, step: int) -> tuple[Array, Array]:
        """See `Particles`."""
        means, covariances, _ = linear_part_observation(
            reader, self.x, self.covariances, np.array(reader.model.linear), step
        )
        covariances = np.broadcast_to(covariances, (len(self), *covariances.shape[1:]))
        return merged(means, covariances, self.weights, reader.circular(means.shape[1]))

    def updated(self, observation: Observation) -> ConditionalGaussians:
        """See `Particles`: the Gaussians are updated, too."""
        gaussians, log_densities = self.conditioned(observation)
        return gaussians.reweighted(observation.less_offset(log_densities))

    def conditioned(self, observation: Observation) -> tuple[ConditionalGaussians, Array]:
        """Update the Gaussian about each particle as Kalman; return them, weighted as before, and the log-densities (n,)."""
        dims = np.array(observation.model.linear)
        means, observed, cross = linear_part_observation(
            observation.measurement, self.x, self.covariances, dims, observation.step
        )
        observed = observation.part(observed)
        cross = cross[..., observation.observed_entries]
        residuals = observation.residuals(means)
        log_densities = contract.gaussian_log_density(residuals, observed, observation.step)
        gains = np.linalg.solve(observed, cross.transpose(0, 2, 1))
        after = self.covariances - cross @ gains
        x = self.x + (residuals @ gains[0] if len(gains) == 1 else np.einsum("ikd,ik->id", gains, residuals))
        after = 0.5 * (after + after.transpose(0, 2, 1))
        return ConditionalGaussians.about(x, after, self), log_densities


class _Gaussians(NamedTuple):
    """M Gaussians of the whole state: ``means + columns @ v``, with v from N(0, I) for the nonlinear part, and what is left.

    Means (M, d), columns (M, d, dim) of the Cholesky factor, and covariances (M, d, d) of the linear part given v; the last
    two may have one row for all.
    """

    means: Array
    columns: Array
    left: Array
    free: Indices

    @classmethod
    def of(cls, means: Array, covariances: Array, free: Indices) -> _Gaussians:
        left, columns = covariances.copy(), np.zeros((*covariances.shape[:2], len(free)))
        for column, j in enumerate(free):
            pivot = left[:, j, j]
            root = np.sqrt(np.where(pivot > LEAST_PIVOT * covariances[:, j, j], pivot, np.inf))
            columns[:, :, column] = left[:, :, j] / root[:, None]
            left -= columns[:, :, None, column] * columns[:, None, :, column]
            left[:, j], left[:, :, j] = 0.0, 0.0
        return cls(means, columns, left, free)

    def place(self, rows: Indices, v: Array) -> Array:
        """Whole states (m, d) of the members (m,) at noise v (m, dim)."""
        return np.asarray(self.means[rows] + np.einsum("...ij,...j->...i", _at(rows, self.columns), v))

    def white(self, x: Array, circular: tuple[int, ...], rows: Any = slice(None)) -> Array:
        """Noise v that leads the members to x (..., dim); none in directions without any."""
        inverse = np.linalg.pinv(self.columns[:, self.free])
        apart = wrap(x - self.means[rows][:, self.free], circular)
        return np.asarray(np.einsum("...ij,...j->...i", _at(rows, inverse), apart))

    def at(self, rows: Indices, x: Array, circular: tuple[int, ...]) -> Array:
        """Whole states (m, d) of the members (m,) whose nonlinear part is x (m, dim)."""
        full = self.place(rows, self.white(x, circular, rows))
        full[:, self.free] = x
        return full


def _at(rows: Any, array: Array) -> Array:
    """Return rows of an array, which may have one for all."""
    return array if len(array) == 1 else array[rows]


class _Nonlinear:
    """The model of the nonlinear part at a step, as a proposal sees it; it knows which ancestor every successor has."""

    partial_observations = True

    def __init__(
        self, model: contract.Model, transition: Any = None, particles: Any = None, measurement: Measurement | None = None
    ) -> None:
        self.model = model
        self.measurement = Measurement(model) if measurement is None else measurement
        self.observation_circular = self.measurement.entries_circular
        self.linear = np.array(model.linear)
        self.all_circular = self.measurement.state_circular
        self.free = np.array([i for i in range(model.dim) if i not in model.linear])
        self.dim = self.noise_dim = len(self.free)
        self.circular = tuple(j for j, i in enumerate(self.free.tolist()) if i in self.all_circular)
        self._way, self._particles = transition, particles
        self.x: Any = None if particles is None else particles.x[:, self.free]
        self._successors: list[tuple[Array, Array]] = []
        self._found: tuple[Any, Any] = None, None

    def start(self, weights: Array, means: Array, covariances: Array) -> None:
        """Set the Gaussians of the whole state after the step, with their weights."""
        self.weights, self.gaussians = weights, _Gaussians.of(means, covariances, self.free)
        self.roots = self.gaussians.columns[:, self.free]  # factors of the covariances of the nonlinear part

    @property
    def initial(self) -> GaussianMixture:
        return self.model.initial.marginal(self.free)  # type: ignore[no-any-return]

    def predicted(self, x: Array, covariances: Array) -> tuple[Array, Array]:
        """Means (n, d) and covariances of the successors of Gaussians about states (n, d)."""
        way, jacobian = self._way, self._way.motion.jacobian
        slopes_of = jacobian and (lambda x: jacobian(x, way.dt, way.control, way.step))
        function = contract.VectorFunction(way.mean, lambda _: self.all_circular, slopes_of)
        means, slopes = contract.linear_slopes(function, x, covariances, self.linear)
        within = covariances[:, self.linear[:, None], self.linear]
        return means, slopes @ within @ slopes.transpose(0, 2, 1) + way.covariance

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """Successors of the nonlinear part, kept with their linear part."""
        gaussians, rows = self.gaussians, np.arange(len(x)) if x is self.x else self._find(x)
        if rows.min() < 0:
            gaussians, rows = self._made(x), np.arange(len(x))
        full = wrap(wrap(gaussians.place(rows, noise), self.all_circular), self.all_circular)  # twice, as it will be
        self._found = full[:, self.free], (full, _at(rows, gaussians.left))
        self._successors.append(self._found[1])
        vars(self).pop("_known", None)
        return self._found[0]

    def _made(self, x: Array) -> _Gaussians:
        """Return ancestors whose nonlinear parts (m, dim) are not those of particles."""
        particles = self._particles
        mean, covariance = particles.moments(self.all_circular)
        if self._gaussian:
            whole = _Gaussians.of(mean[None], covariance[None], self.free)
            full, covariances = whole.at(np.zeros(len(x), dtype=np.int64), x, self.circular), whole.left
        else:
            scale = np.sqrt(np.diagonal(covariance)[self.free])
            apart = wrap(x[:, None] - self.x, self.circular) / np.where(scale > 0, scale, 1.0)
            nearest = (apart**2).sum(axis=2).argmin(axis=1)
            full, covariances = particles.x[nearest], _at(nearest, particles.covariances)
            full[:, self.free] = x
        return _Gaussians.of(*self.predicted(full, covariances), self.free)

    @cached_property
    def _gaussian(self) -> bool:
        """True if the particles, each with a point of its Gaussian, cannot be told from one Gaussian."""
        particles, linear = self._particles, self.linear
        noise = np.random.default_rng(0).permutation(balanced_noise(len(particles), len(linear), 0))
        x, factors = particles.x.copy(), covariance_factor(particles.covariances[:, linear[:, None], linear])
        x[:, linear] += (factors @ noise[:, :, None])[:, :, 0]
        return Gaussianity(Particles.unchecked(x, particles.log_weights), self.all_circular).gaussian

    @cached_property
    def _find(self) -> Callable[[Array], Indices]:
        return finder(self.x)

    @cached_property
    def _known(self) -> tuple[Array, Array, Callable[[Array], Indices]]:
        full = np.concatenate([x for x, _ in self._successors])
        left = [np.broadcast_to(part, (len(x), *part.shape[1:])) for x, part in self._successors]
        return full, np.concatenate(left), finder(full[:, self.free])

    def given(self, x: Array) -> tuple[Array, Array]:
        """Return the whole states (m, d) of successors (m, dim), and the covariances of their linear parts."""
        if x is not self._found[0]:
            places = self._known[2](x) if self._successors else np.full(1, -1)
            if places.min() < 0:
                rows = self._drawn(x)
                full, left = self.gaussians.at(rows, x, self.circular), _at(rows, self.gaussians.left)
            else:
                full, left = self._known[0][places], self._known[1][places]
            self._found = x, (full, left[:1] if (left == left[0]).all() else left)
        return self._found[1]  # type: ignore[no-any-return]

    def _drawn(self, x: Array) -> Indices:
        """Return a component of the prediction for each point (m, dim), by their probabilities there, evenly along x."""
        pivots = np.diagonal(self.roots, axis1=1, axis2=2)
        white = self.gaussians.white(x[:, None], self.circular)
        terms = -0.5 * (white**2).sum(axis=2) - np.log(np.where(pivots > 0, pivots, 1.0)).sum(axis=1)
        sums = np.cumsum(self.weights * np.exp(terms - terms.max(axis=1, keepdims=True)), axis=1)
        u = np.empty(len(x))
        u[hilbert_order(x, np.ones(len(x)), self.circular)] = (0.5 + GOLDEN * np.arange(len(x))) % 1.0
        chosen: Indices = (u[:, None] * sums[:, -1:] >= sums).sum(axis=1)
        return np.minimum(chosen, len(self.weights) - 1)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return self.transition(x, np.zeros(x.shape), dt, control, step)

    def transition_covariance(self, dt: float, step: int) -> Array:
        raise NotImplementedError  # there is one for each particle: see `_PartTransition`

    def observation_mean(self, x: Array, step: int) -> Array:
        return self.measurement.mean(self.given(x)[0], step)

    def observation_covariance(self, step: int, x: Array) -> Array:
        observed = linear_part_observation(self.measurement, *self.given(x), self.linear, step)[1]
        return np.broadcast_to(observed, (len(x), *observed.shape[1:]))

    def whole(self, moved: Particles) -> ConditionalGaussians:
        """Return particles of the whole state, each with its Gaussian."""
        return ConditionalGaussians.about(*self.given(moved.x), moved)


class _PartTransition(Transition):
    """The transition of the nonlinear part, whose noise has a covariance for each particle."""

    @property
    def has_density(self) -> bool:
        return bool(np.diagonal(self.model.roots, axis1=1, axis2=2).all())

    def noises(self, x: Array) -> Array:
        roots: Array = self.model.roots
        return roots @ roots.transpose(0, 2, 1)

    def predictive(self, x: Array, weights: Array) -> GaussianMixture:
        means = self.model.gaussians.means[:, self.model.free]
        return GaussianMixture.unchecked(weights, unwrap(means, weights, self.circular), self.noises(x))


def finder(x: Array) -> Callable[[Array], Indices]:
    """Return a function that finds states (m, d) among those of x by their bits: indices (m,), -1 where there is none."""

    def keys(x: Array) -> np.ndarray:
        bits = np.ascontiguousarray(x + 0.0).view(np.uint64)
        return np.asarray((bits ^ (bits >> np.uint64(29))) @ ODD[: x.shape[1]])

    known = keys(x)
    order = known.argsort()

    def find(y: Array) -> Indices:
        wanted = keys(y)
        places: Indices = order[np.searchsorted(known, wanted, sorter=order).clip(max=len(order) - 1)]
        return np.where(known[places] == wanted, places, -1)

    return find
