"""Particles for the nonlinear part of a state, and a Kalman filter for the linear part of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import unwrap, wrap
from herdfilter.filters.observation import Observation, linear_observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.balanced import balanced_noise
from herdfilter.filters.proposals.bootstrap import BootstrapProposal
from herdfilter.filters.proposals.flow import FlowProposal
from herdfilter.filters.proposals.gaussianity import Gaussianity
from herdfilter.filters.resampling.base import Indices
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract

LEAST_PIVOT = 1e-13  # share of a variance below which what is left of it is rounding
GOLDEN = 0.5 * (np.sqrt(5) - 1)  # its multiples, modulo 1, are spread evenly


@dataclass(frozen=True)
class RaoBlackwellisedProposal:
    r"""Moves the nonlinear part of the state by any proposal, and the linear part of each particle by a Kalman filter.

    The model names its ``linear`` dimensions (`ConditionallyLinear`). Given the path of the nonlinear part the linear part
    of particle i is :math:`N(m_i, P_i)`, exactly (Schön, Gustafsson and Nordlund 2005): the proposal sees a model of the
    nonlinear part alone, with the transition :math:`N(f^n + A^n m_i,\ A^n P_i A^{nT} + Q^n)` and the observation
    :math:`N(h + C m,\ C P C^T + R)`, and moves it with whatever points it draws: random, ranked or herded. The linear part
    then takes up what the new state says of it, and the observation. With fewer dimensions in particles the variance is
    less, never more (Rao and Blackwell).

    Every new state must have its ancestor. It is known where a proposal moves particles one by one. A point of the predictive
    mixture, as `HerdedProposal` draws, is given one of the components by their probabilities at the point. The linear part at
    a state that a proposal fitted, as `AutomaticProposal` does, is the regression on the nonlinear part where the particles
    :math:`(x^n_i, m_i)` cannot be told from one Gaussian, and that of the nearest particle elsewhere.

    In the filter, ``particles`` hold the means :math:`m_i` in the linear dimensions; ``mean`` and ``covariance`` are those of
    the whole state, with :math:`P_i`. Smoothers of particles do not know of :math:`P_i`.

    Parameters
    ----------
    proposal : Proposal
        For the nonlinear part.

    Raises
    ------
    TypeError
        If `proposal` is none; in a filter, if the model names no linear dimensions, its transition noise is not additive, its
        initial distribution is no `GaussianMixture`, or it has scans or modes.

    Notes
    -----
    The observation is taken for Gaussian about its mean. Particles are resampled by schemes that copy them.

    Examples
    --------
    A bearing to a target that moves along a line at unknown velocity: 50 particles for the position alone are better than as
    many for both.

    >>> plain = hf.models.from_functions(
    ...     lambda x: x @ [[1, 0], [1, 1]], lambda x: np.arctan(x[:, :1] / 5), 0.01 * np.eye(2), [[0.001]], [0, 0], np.eye(2)
    ... )
    >>> model = hf.models.ConditionallyLinear(plain, linear=[1])
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> reference = hf.ParticleFilter(plain, 20_000, rng=1).run(z).means
    >>> for proposal in [hf.BootstrapProposal(), hf.RaoBlackwellisedProposal(hf.BootstrapProposal())]:
    ...     errors = [hf.ParticleFilter(model, 50, proposal, rng=seed).run(z).means - reference for seed in range(10)]
    ...     print(bool(np.sqrt(np.mean(np.square(errors))) < 0.08))
    ...
    False
    True
    """

    proposal: base.Proposal = field(default_factory=BootstrapProposal)

    def __post_init__(self) -> None:
        base.check_part("proposal", self.proposal, base.Proposal, "a proposal such as RankedProposal()")

    @property
    def uses(self) -> base.Uses:
        """See `Proposal`."""
        return self.proposal.uses

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        user = type(self).__name__
        if not hasattr(model, "linear"):
            raise TypeError(
                f"model: {user} needs linear, the dimensions that are linear given the others; {contract.kind(model)} has no "
                "linear: wrap it as herdfilter.models.ConditionallyLinear(model, linear=[...])"
            )
        contract.require(model, user, contract.ADDITIVE)
        contract.require(model, user, contract.OBSERVED)
        if contract.has_scans(model):
            raise TypeError(f"model: {user} needs observations, and not scans; take it without WithClutter")
        if not isinstance(model.initial, GaussianMixture):
            raise TypeError(
                f"model.initial: {user} needs a GaussianMixture, got {type(model.initial).__name__}; fit one to a sample: "
                "GaussianFit().fit(points, weights)"
            )
        if isinstance(self.proposal, FlowProposal):
            raise TypeError(
                f"proposal: {user} needs one that leaves states where it draws them, got FlowProposal; take RankedProposal()"
            )
        self.proposal.check(_Nonlinear(model))

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        part = _Nonlinear(model)
        part.ancestors, part.weights = _Joint.of(model.initial.means, model.initial.covariances, part.free), model.initial.weights
        return part.whole(self.proposal.initial(part, n, rng))

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        if particles.covariances is None:
            raise ValueError(
                "resampling: expected a scheme that copies particles with their Gaussians, such as SystematicResampling(), "
                "got one that drops these"
            )
        part = _Nonlinear(transition.model, transition, particles)
        given = Particles.unchecked(particles.x[:, part.free], particles.log_weights, None, particles.n_next)
        part.x = given.x
        onward = _PartTransition(part, transition.dt, transition.control, transition.step)
        if observation is None:
            return part.whole(self.proposal.propose(onward, given, rng))
        part.observed = observation.model
        own = replace(observation, model=part)
        moved = part.whole(self.proposal.propose(onward, given, rng, own))
        observation.log_offset = own.log_offset
        return observation.update(moved)[0]


@dataclass
class _Joint:
    """Gaussians of the whole state, by the nonlinear part: ``means + columns @ v``, with v from N(0, I), and what is left.

    Means (M, d), columns (M, d, dim) of the partial Cholesky factor, and covariances (M, d, d) of the linear part that are
    left given v, zero in rows and columns of the nonlinear part; the last two have one row where all M have the same.
    """

    means: Array
    columns: Array
    left: Array

    @classmethod
    def of(cls, means: Array, covariances: Array, free: Indices) -> _Joint:
        """Condition on the nonlinear part, the dimensions `free`."""
        left, columns = covariances.copy(), np.zeros((*covariances.shape[:2], len(free)))
        for column, j in enumerate(free):
            pivot = left[:, j, j]
            known = pivot > LEAST_PIVOT * covariances[:, j, j]
            columns[:, :, column] = np.where(known[:, None], left[:, :, j] / np.sqrt(np.where(known, pivot, 1.0))[:, None], 0.0)
            left -= columns[:, :, None, column] * columns[:, None, :, column]
            left[:, j], left[:, :, j] = 0.0, 0.0
        return cls(means, columns, left)

    def moved(self, rows: Indices, noise: Array) -> Array:
        """States (m, d) of the chosen members (m,) at noise v (m, dim)."""
        shift = noise @ self.columns[0].T if len(self.columns) == 1 else np.einsum("nij,nj->ni", self.columns[rows], noise)
        return self.means[rows] + shift

    def join(self, other: _Joint) -> _Joint:
        """Concatenate."""
        parts = [(one.means, *(np.broadcast_to(p, (len(one.means), *p.shape[1:])) for p in (one.columns, one.left))) for one in (self, other)]
        return _Joint(*map(np.concatenate, zip(*parts, strict=True)))


def _at(rows: Indices, array: Array) -> Array:
    """Return rows of an array, which may have one for all."""
    return array if len(array) == 1 else array[rows]


class _Nonlinear:
    """The model of the nonlinear part at a step, as a proposal sees it.

    It remembers which ancestor each successor comes from, and finds it again by its bits.
    """

    partial_observations = True

    def __init__(self, model: contract.Model, transition: Transition | None = None, particles: Particles | None = None) -> None:
        self.model = self.observed = model
        self.free = np.array([i for i in range(model.dim) if i not in model.linear])
        self.dim = self.noise_dim = len(self.free)
        circular = contract.circular_dims(model)
        self.circular = tuple(j for j, i in enumerate(self.free.tolist()) if i in circular)
        self._successors: list[tuple[Array, Indices]] = []
        self._found: tuple[Any, Any] = (None, None)
        if particles is not None:
            self._transition, self._particles = transition, particles
            self.weights = particles.weights
            self.ancestors = self._moved(particles.x, particles.covariances)

    @property
    def initial(self) -> GaussianMixture:
        return self.model.initial.marginal(self.free)

    @property
    def observation_circular(self) -> Any:
        return getattr(self.observed, "observation_circular", None)

    def _moved(self, x: Array, covariances: Array) -> _Joint:
        """Predict the Gaussian about each state."""
        model, given = self.model, (self._transition.dt, self._transition.control, self._transition.step)
        dims = np.array(model.linear)
        jacobian = getattr(model, "transition_jacobian", None)
        function = contract.VectorFunction(
            self._transition.mean,
            lambda _: contract.circular_dims(model),
            jacobian and (lambda x: jacobian(x, *given)),
        )
        means, slopes = contract.linear_slopes(function, x, covariances, dims)
        inner = covariances[:, dims[:, None], dims]
        return _Joint.of(means, slopes @ inner @ slopes.transpose(0, 2, 1) + self._transition.covariance, self.free)

    def rows(self, x: Array) -> Indices:
        """Return the ancestor of which each state (m, dim) is the nonlinear part; one is made where it is not a particle's."""
        if x is self.x:
            return np.arange(len(x))
        rows = self._of_particles(x)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            particles, x = self._particles, x[missing]
            circular, linear = contract.circular_dims(self.model), np.array(self.model.linear)
            full = np.zeros((len(x), self.model.dim))
            if self._gaussian:
                mean, covariance = particles.moments(circular)
                between = covariance - particles.within
                slopes = np.linalg.lstsq(between[self.free[:, None], self.free], between[self.free][:, linear], rcond=1e-12)[0]
                full[:, linear] = mean[linear] + wrap(x - mean[self.free], self.circular) @ slopes
                covariance = covariance.copy()
                covariance[linear[:, None], linear] -= slopes.T @ between[self.free][:, linear]
                covariance[self.free], covariance[:, self.free] = 0.0, 0.0
                covariances = covariance[None]
            else:
                scale = np.sqrt(np.diagonal(particles.moments(circular)[1])[self.free])
                scale = np.where(scale > 0, scale, 1.0)
                apart = wrap(x[:, None] - self.x, self.circular) / scale
                nearest = (apart**2).sum(axis=2).argmin(axis=1)
                full[:, linear] = particles.x[nearest][:, linear]
                covariances = _at(nearest, particles.covariances)
            full[:, self.free] = x
            rows[missing] = len(self.ancestors.means) + np.arange(len(x))
            self.ancestors = self.ancestors.join(self._moved(full, covariances))
        return rows

    @cached_property
    def _gaussian(self) -> bool:
        """True if the particles, each with a point of its Gaussian, cannot be told from one Gaussian."""
        particles, linear = self._particles, np.array(self.model.linear)
        noise = np.random.default_rng(0).permutation(balanced_noise(len(particles), len(linear), 0))
        x, factors = particles.x.copy(), covariance_factor(particles.covariances[:, linear[:, None], linear])
        x[:, linear] += (factors @ noise[:, :, None])[:, :, 0]
        return Gaussianity(Particles.unchecked(x, particles.log_weights), contract.circular_dims(self.model)).gaussian

    @cached_property
    def _of_particles(self) -> Callable[[Array], Indices]:
        return finder(self.x)

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """Successors of the nonlinear part, remembered with their linear part."""
        rows = self.rows(x)
        full = wrap(self.ancestors.moved(rows, noise), circular := contract.circular_dims(self.model))
        full = wrap(full, circular)  # as the transition will
        self._successors.append((full, rows))
        vars(self).pop("_of_successors", None)
        moved = full[:, self.free]
        self._found = moved, (full, _at(rows, self.ancestors.left))
        return moved

    @cached_property
    def _of_successors(self) -> tuple[Array, Indices, Callable[[Array], Indices]]:
        full, rows = (np.concatenate(parts) for parts in zip(*self._successors, strict=True))
        return full, rows, finder(full[:, self.free])

    def given(self, x: Array) -> tuple[Array, Array]:
        """Return the whole state (m, d) of successors (m, dim), and the covariances (m, d, d) of its linear part."""
        if x is self._found[0]:
            return self._found[1]
        rows, full = np.full(len(x), -1), np.empty((len(x), self.model.dim))
        if self._successors:
            known, ancestors, find = self._of_successors
            places = find(x)
            rows = np.where(places < 0, -1, ancestors[places])
            full = known[places]
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            rows[missing] = self._drawn(x[missing])
            joint, chosen = self.ancestors, rows[missing]
            left, white = wrap(x[missing] - joint.means[chosen][:, self.free], self.circular), np.zeros((len(chosen), self.dim))
            columns = _at(chosen, joint.columns)
            for j in range(self.dim):
                pivot = columns[:, self.free[j], j]
                white[:, j] = np.where(pivot > 0, left[:, j] / np.where(pivot > 0, pivot, 1.0), 0.0)
                left -= white[:, j : j + 1] * columns[:, self.free, j]
            full[missing] = joint.moved(chosen, white)
            full[missing[:, None], self.free] = x[missing]
        self._found = x, (full, _at(rows, self.ancestors.left))
        return self._found[1]

    def _drawn(self, x: Array) -> Indices:
        """Draw one of the components for each point (m, dim) of the predictive mixture, by their probabilities there."""
        if len(self.weights) == 1:
            return np.zeros(len(x), dtype=np.int64)
        mixture = self.predictive(unwrap(self.ancestors.means[: len(self.weights)], self.weights, ()))
        terms = mixture.component_log_densities(x)
        with np.errstate(divide="ignore"):
            terms += np.log(self.weights)
        sums = np.cumsum(np.exp(terms - terms.max(axis=1, keepdims=True)), axis=1)
        u = (0.5 + GOLDEN * np.arange(len(x))) % 1.0
        return (u[:, None] * sums[:, -1:] >= sums).sum(axis=1)

    def predictive(self, means: Array) -> GaussianMixture:
        """Density of the nonlinear part of the successors of all ancestors."""
        roots = self.ancestors.columns[: len(self.weights), self.free]
        return GaussianMixture.unchecked(self.weights, means[:, self.free], roots @ roots.transpose(0, 2, 1))

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return self.transition(x, np.zeros((len(x), self.dim)), dt, control, step)

    def transition_covariance(self, dt: float, step: int) -> Array:
        raise NotImplementedError

    def observation_mean(self, x: Array, step: int) -> Array:
        return contract.observation_mean(self.observed, self.given(x)[0], step)

    def observation_covariance(self, step: int, x: Array) -> Array:
        full, covariances = self.given(x)
        observed = linear_observation(self.observed, full, covariances, step)[1]
        return np.broadcast_to(observed, (len(x), *observed.shape[1:]))

    def whole(self, moved: Particles) -> Particles:
        """Return particles of the whole state, each with its Gaussian."""
        full, covariances = self.given(moved.x)
        covariances = covariances[:1] if (covariances == covariances[0]).all() else covariances
        return Particles.unchecked(full, moved.log_weights, None, moved.n_next, covariances)


class _PartTransition(Transition):
    """The transition of the nonlinear part; its noise has another covariance for each particle."""

    @cached_property
    def has_density(self) -> bool:
        roots = self.model.ancestors.columns[:, self.model.free]
        return bool((np.diagonal(roots, axis1=1, axis2=2) > 0).all())

    def noises(self, x: Array) -> Array:
        roots = _at(self.model.rows(x), self.model.ancestors.columns)[:, self.model.free]
        return roots @ roots.transpose(0, 2, 1)

    def predictive(self, x: Array, weights: Array) -> GaussianMixture:
        means = unwrap(self.model.ancestors.means, weights, contract.circular_dims(self.model.model))
        return self.model.predictive(means)


def finder(x: Array) -> Callable[[Array], Indices]:
    """Return a function that finds states (m, d) among those of x by their bits: indices (m,), -1 where there is none."""
    keys = _keys(x)
    order = keys.argsort()
    ranked = keys[order]

    def find(y: Array) -> Indices:
        wanted = _keys(y)
        places = order[np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)]
        return np.where(keys[places] == wanted, places, -1)

    return find


def _keys(x: Array) -> np.ndarray:
    """Return a number for each state that is the same for the same bits."""
    bits = np.ascontiguousarray(x + 0.0).view(np.uint64)
    keys = np.zeros(len(x), dtype=np.uint64)
    for column in bits.T:
        keys = (keys ^ (keys >> np.uint64(29)) ^ column) * np.uint64(0x9E3779B97F4A7C15)
    return keys
