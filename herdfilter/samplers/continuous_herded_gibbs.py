"""Continuous herded Gibbs sampling (Wolf and Baum, "Continuous Herded Gibbs Sampling", arXiv:2106.06430)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks, bandwidths
from herdfilter._checks import Array
from herdfilter.discrete.herding import herded_labels
from herdfilter.mixture import GaussianMixture, as_mixture, equal_weights
from herdfilter.points import Points
from herdfilter.samplers.base import MixtureSampler
from herdfilter.samplers.gibbs import recursion
from herdfilter.samplers.herding.frame import KernelFrame, grouped, heaviest
from herdfilter.samplers.herding.greedy import place_again

MODE_SWEEPS = 200  # at most, to a maximum of the density


@dataclass(frozen=True)
class ContinuousHerdedGibbs(MixtureSampler):
    r"""Deterministic Gibbs sampling: coordinate by coordinate, each point goes where the conditional lacks samples most.

    Coordinate i of the next point, after t points, maximises over x_i with the others held

    .. math:: \frac{t + 1}{t} \mathrm E[k(x_i, X_i) \mid x_{-i}] - \frac{1}{c} \sum_s w_s k(x_i, x_i^s) , \qquad
        w_s = k(x_{-i}, x_{-i}^s) , \quad c = \sum_s w_s

    The published recursion stalls, so the default differs from it in three ways, each an option of its own.

    Parameters
    ----------
    target : {"smoothed", "paper"}
        The density that is conditioned on. ``"smoothed"``: the mixture convolved with the kernel, to whose conditionals the
        weighted kernel sums converge. ``"paper"``: the mixture itself, smoothed along x_i only, as published; it also turns
        the other two repairs off unless they are given.
    bandwidth : "auto", float or array_like of shape (d, d)
        Kernel width sigma_k in state units, kernel covariance, or the rule `herdfilter.bandwidths.Whitened`. With a number
        the coordinates are those of the state, else the principal axes of the average component covariance, in units of the
        kernel. With ``"auto"``, the smoothed target and no given start, components far apart or of very different size are
        sampled group by group, and the points placed again, as by `KernelHerding`.
    effective_count : bool, optional
        Use the effective number :math:`c^2 / \sum_s w_s^2` of samples in the slice (Kish 1965) in place of t.
    component_herding : bool, optional
        Choose a component for each point by herding on the mixture weights, and start its sweeps from the component's
        latest point (its mean at first); otherwise from the point before, as published.
    sweeps : int, optional
        Sweeps over the coordinates per point: 2 with component herding, else 1.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points = hf.ContinuousHerdedGibbs().sample(mixture, 50)
    >>> hf.energy_distance(points, mixture) < 0.2 * hf.expected_energy_distance(mixture, 50)
    True
    """

    target: Literal["smoothed", "paper"] = "smoothed"
    bandwidth: bandwidths.Bandwidth = "auto"
    effective_count: bool | None = None
    component_herding: bool | None = None
    sweeps: int | None = None

    def __post_init__(self) -> None:
        _checks.one_of("target", self.target, ("smoothed", "paper"))
        _checks.check_fields(self, bandwidth=bandwidths.check_bandwidth)
        effective_count, component_herding, _ = self._options
        _checks.check_flags(effective_count=effective_count, component_herding=component_herding)

    @property
    def _options(self) -> tuple[bool, bool, int]:
        """Effective count, component herding and number of sweeps, with the defaults filled in."""
        repaired = self.target == "smoothed"
        count = repaired if self.effective_count is None else self.effective_count
        herded = repaired if self.component_herding is None else self.component_herding
        sweeps = (
            (2 if herded else 1)
            if self.sweeps is None
            else _checks.check_count("sweeps", self.sweeps)
        )
        return count, herded, sweeps

    def sample(
        self,
        mixture: GaussianMixture,
        n: int,
        rng: np.random.Generator | int | None = None,
        start: ArrayLike | None = None,
    ) -> Points:
        """Herd `n` points with equal weights from `mixture`; `rng` is not used.

        The first point is `start` (d,), in state units; by default the maximum of the smoothed density reached from the mean
        of the heaviest component.
        """
        if start is None:
            return super().sample(mixture, n, rng)
        n = _checks.check_count("n", n)
        frame = self._frame(as_mixture("mixture", mixture), n)
        return Points(frame.back(self._herd(frame, n, start)))

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Herd the points, group by group if the bandwidth is "auto" and the target smoothed."""
        if self.bandwidth == "auto" and self.target == "smoothed":

            def herd(frame: KernelFrame, count: int) -> tuple[Array, Array]:
                return place_again(frame, self._herd(frame, count, None)), equal_weights(count)

            return grouped(mixture, n, herd)[0], equal_weights(n)
        frame = self._frame(mixture, n)
        return frame.back(self._herd(frame, n, None)), equal_weights(n)

    def _frame(self, mixture: GaussianMixture, n: int) -> KernelFrame:
        kernel = bandwidths.kernel_covariance(self.bandwidth, mixture, n)
        return KernelFrame.of(mixture, kernel, turn=not isinstance(self.bandwidth, float))

    def _herd(self, frame: KernelFrame, n: int, start: ArrayLike | None) -> Array:
        """Return points (n, d) in the coordinates of the frame."""
        effective_count, component_herding, count = self._options
        d = len(frame.origin)
        # The kernel's variance is added before conditioning, or after it as published.
        density = recursion.target_of(frame, 1.0, 0.0)
        smoothed = self.target == "smoothed"
        target = density if smoothed else recursion.target_of(frame, 0.0, 1.0)
        z = np.empty((d, n))
        first = np.empty((d, 1))
        if start is not None:
            first[:, 0] = frame.forward(_checks.as_array("start", start, (d,))[None, :])[0]
        else:
            # Whatever is conditioned on, the first point is a maximum of the smoothed density.
            origin = np.array([-1 - heaviest(frame.weights)])
            recursion.herd_coordinates(density, origin, MODE_SWEEPS, False, 0, first)
        z[:, :1] = first
        # Sweeps start from the point before, or from the latest point of the same component.
        origins = np.arange(-1, n - 1)
        if component_herding:
            origins = recursion.origins_of(herded_labels(frame.weights, n))
        recursion.herd_coordinates(target, origins, count, effective_count, 1, z)
        return z.T
