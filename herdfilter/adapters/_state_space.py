"""A `StateSpaceModel` of the library `particles` as a model of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.adapters._laws import (
    Gaussians,
    drive,
    driven,
    gaussians,
    log_density,
    mixture,
    moments,
    observed,
)
from herdfilter.angles import wrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import as_observation

TRIED = 5
"""States at which it is tried what depends on the state."""


class ParticlesModel:
    """A model that `from_particles` made; see there, and `herdfilter.models.contract`.

    Attributes
    ----------
    ssm : particles.state_space_models.StateSpaceModel
    dim : int
        Dimension d of the state.
    initial : GaussianMixture or object with ``sample(n, rng)``
    circular, observation_circular : tuple of int
    """

    def __init__(self, ssm: Any, circular: Sequence[int] = (), observation_circular: Sequence[int] = ()) -> None:
        self.ssm, self.circular, self.observation_circular = ssm, tuple(circular), tuple(observation_circular)
        start = ssm.PX0()
        with drawing_from(np.random.default_rng(0)):
            first = np.asarray(start.rvs(size=TRIED))
            if first.dtype.names or first.ndim > 2:
                raise ValueError(
                    f"PX0: expected states of shape (n,) or (n, d), got shape {first.shape} of {first.dtype}; take an "
                    "MvNormal or an IndepProd"
                )
            law = ssm.PX(1, first)
            self._tried = np.asarray(law.rvs(size=TRIED))
        self.dim = 1 if first.ndim == 1 else first.shape[1]
        self._flat, self._integers = first.ndim == 1, first.dtype.kind in "iu"
        self._offer_transition(start, law)
        self._offer_observation(first)

    def __repr__(self) -> str:
        return f"ParticlesModel({type(self.ssm).__name__}, dim={self.dim})"

    def _offer_transition(self, start: Any, law: Any) -> None:
        """Set the functions of the transition that there are, and the initial distribution that goes with them."""
        d, known = self.dim, gaussians(law, TRIED)
        self._start = gaussians(start, 1)
        self._stays = False  # at the transition to step 1
        self.initial: Any = GaussianMixture([1.0], np.zeros((1, d)), np.eye(d))
        if self._start is not None:
            self.initial = GaussianMixture([1.0], self._start.means, self._start.covariances[0])
        if known is not None and known.shared():
            self.transition_mean, self.transition_covariance = self._mean, self._covariance
            self._stays = self._start is None
        elif driven(law):
            self.transition, self.noise_dim = self._driven, d
            self._stays = not driven(start)
        else:
            self.sample_transition = self._drawn
        if known is None or not known.shared():
            self.transition_log_density = self._log_density
        if self._stays:
            self.initial = mixture(start) or Start(self, start)

    def _offer_observation(self, first: Array) -> None:
        """Set the moments of the observation where they are known, and tell something of their mean and covariance."""
        at_first, at_second = self.ssm.PY(0, None, first), self.ssm.PY(1, first, self._tried)
        with drawing_from(np.random.default_rng(1)):
            z = np.asarray(observed(at_second).rvs(size=TRIED))[:1]
        other = self.ssm.PY(1, first[::-1], self._tried)
        if not np.array_equal(at_second.logpdf(z), other.logpdf(z), equal_nan=True):
            raise ValueError(
                "PY: expected a law of the present state x, got one that depends on the state before, xp; make that a part "
                "of the state"
            )
        known = moments(at_first, TRIED), moments(at_second, TRIED)
        if known[0] is None or known[1] is None:
            return
        means, covariances = known[1]
        if (means == means[0]).all():
            return
        self.observation_mean = self._seen_mean
        constant = len(covariances) == 1 and len(known[0][1]) == 1
        self.observation_covariance: Any = self._noise if constant else self._noise_of_states

    def theirs(self, x: Array) -> Array:
        """Return states (n, d) as the library has them: (n,) in one dimension, integers where they are discrete."""
        x = x[:, 0] if self._flat else x
        return x.astype(np.int64) if self._integers else x

    def ours(self, x: Any) -> Array:
        """Return states of the library, (n,) or (n, d), as ours, (n, d)."""
        return np.asarray(x, dtype=np.float64).reshape(-1, self.dim)

    def log_likelihood(self, z: Array, x: Array, step: int) -> Array:
        """Log-density of an observation (k,) by ``PY``, at each state; (n, d) -> (n,)."""
        law = self._seen(x, step)
        values: Array = as_observation(z, law.dim)
        if self.observation_circular:
            mean = self._seen_mean(x, step)
            values = mean + wrap_angles(values - mean, self.observation_circular)
        return log_density(law, values, len(x))

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw an observation of each state by ``PY``, (n, d) -> (n, k)."""
        with drawing_from(rng):
            return np.asarray(self._seen(x, step).rvs(size=len(x)), np.float64).reshape(len(x), -1)

    # The other functions of the contract; a model has those that its parts allow, by the contract's names.

    def _mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        if step == 1:
            return x if self._start is None else np.broadcast_to(self._start.means, x.shape)
        return self._gaussians(self.theirs(x), step).means

    def _covariance(self, dt: float, step: int) -> Array:
        if step == 1:
            return np.zeros((self.dim, self.dim)) if self._start is None else self._start.covariances[0]
        found = self._gaussians(self._tried, step)
        if not found.shared():
            raise ValueError(f"PX: {_OTHERWISE} t = {step - 1}, where it depends on the state")
        return found.covariances[0]

    def _gaussians(self, xp: Array, step: int) -> Gaussians:
        found = gaussians(law := self.ssm.PX(step - 1, xp), len(xp))
        if found is None:
            raise ValueError(f"PX: {_OTHERWISE} t = {step - 1}, where it is a {type(law).__name__}")
        return found

    def _driven(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        if step == 1 and self._stays:
            return x
        return drive(self._moved(x, step), noise)

    def _drawn(self, x: Array, rng: np.random.Generator, dt: float, control: Any, step: int) -> Array:
        with drawing_from(rng):
            return self.ours(self._moved(x, step).rvs(size=len(x)))

    def _log_density(self, x_next: Array, x: Array, dt: float, control: Any, step: int) -> Array:
        law = self._moved(np.tile(x, (len(x_next), 1)), step)
        values = law.logpdf(self.theirs(np.repeat(x_next, len(x), axis=0)))
        return np.broadcast_to(np.ravel(values), len(x_next) * len(x)).reshape(len(x_next), len(x))

    def _moved(self, x: Array, step: int) -> Any:
        return self.ssm.PX0() if step == 1 else self.ssm.PX(step - 1, self.theirs(x))

    def _seen(self, x: Array, step: int) -> Any:
        states = self.theirs(x)
        return observed(self.ssm.PY(step - 1, None if step == 1 else states, states))

    def _seen_moments(self, x: Array, step: int) -> tuple[Array, Array]:
        found = moments(law := self._seen(x, step), len(x))
        if found is None:
            raise ValueError(
                f"PY: expected a law with mean and covariance, as at the first times, got {type(law).__name__} at t = "
                f"{step - 1}"
            )
        return found

    def _seen_mean(self, x: Array, step: int) -> Array:
        return self._seen_moments(x, step)[0]

    def _noise(self, step: int) -> Array:
        covariances = self._seen_moments(self.ours(self._tried), step)[1]
        if len(covariances) > 1:
            raise ValueError(
                f"PY: expected one covariance for all states, as at the first times, got some at t = {step - 1}"
            )
        return covariances[0]

    def _noise_of_states(self, step: int, x: Array) -> Array:
        covariances = self._seen_moments(x, step)[1]
        return np.broadcast_to(covariances, (len(x), *covariances.shape[1:]))


_OTHERWISE = "expected a Gaussian with one covariance for all states, as at t = 1, got another at"


class Start:
    """The law of the first state, drawn from at random; mean (d,) and covariance (d, d) are there where they are known."""

    def __init__(self, model: ParticlesModel, law: Any) -> None:
        self.model, self.law = model, law
        known = moments(law, 1)
        if known is not None:
            self.mean, self.covariance = known[0][0], known[1][0]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw `n` states, (n, d)."""
        with drawing_from(rng):
            return self.model.ours(self.law.rvs(size=n))


@contextmanager
def drawing_from(rng: np.random.Generator) -> Iterator[None]:
    """Let what draws from NumPy's global stream, as the library does, draw from a generator; the stream stays as it was."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(rng.integers(2**32))  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
