"""Quasi-Monte Carlo draws from a mixture (Sobol 1967; generator of scipy.stats.qmc)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, equal_weights
from herdfilter.samplers.base import MixtureSampler
from herdfilter.samplers.mapped import along_main_axis

SCRAMBLED_BITS = 30  # of a coordinate


@dataclass(frozen=True)
class SobolSampling(MixtureSampler):
    r"""Draws from the mixture by the inverse distribution function, with Sobol points in place of random numbers.

    Of the d + 1 coordinates of a Sobol point, the first picks the component, by the inverse of the cumulative weights, and
    the others, through the normal quantile and a factor F of the component's covariance, the place in it:

    .. math:: x = \mu_m + F_m \Phi^{-1}(u_2, \dots, u_{d+1}) , \qquad F_m F_m^\top = \Sigma_m

    The cumulative weights run over the components in the order of their means along the mixture's main axis, so that
    neighbouring Sobol points are neighbours in the state, and the order in which components are given does not matter. Of a
    power of two of points each component gets its share to within one.

    The Sobol sequence begins at the origin, whose normal quantile is infinite. All points are moved by half a cell of the
    finest grid they lie on, which centres them: for n a power of two every coordinate has the mean 1/2 exactly. (To leave
    the first point out instead would spoil that balance, Owen 2022.)

    Parameters
    ----------
    scramble : bool
        Scramble at random (linear matrix scramble and digital shift, Matousek 1998): the points are then random ones, each
        distributed as the mixture, with averages that have no bias. `sample` draws the scramble from its `rng`.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points = hf.SobolSampling().sample(mixture, 64)
    >>> hf.energy_distance(points, mixture) < 0.2 * hf.expected_energy_distance(mixture, 64)
    True
    """

    scramble: bool = False

    def __post_init__(self) -> None:
        _checks.check_flags(scramble=self.scramble)

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Draw points; `rng` is used if scrambling. SciPy has no sequence of more than 21201 dimensions."""
        from scipy.stats import qmc  # it takes longer to import than the rest of the package

        dim = mixture.dim + 1
        power = (n - 1).bit_length()  # the sequence is balanced over whole powers of two
        if self.scramble:
            engine = qmc.Sobol(dim, bits=SCRAMBLED_BITS, seed=_checks.as_generator(rng))
            cell = 2.0**-SCRAMBLED_BITS
        else:
            engine = qmc.Sobol(dim, scramble=False)
            cell = 2.0**-power
        u = engine.random_base2(power)[:n] + 0.5 * cell
        # The first coordinate picks the component, by the inverse of the cumulative weights.
        order = along_main_axis(mixture)
        order = order[mixture.weights[order] > 0]
        cumulative = np.cumsum(mixture.weights[order])
        labels = order[np.searchsorted(cumulative, u[:, 0] * cumulative[-1], side="right")]
        return mixture.place(labels, scipy.special.ndtri(u[:, 1:])), equal_weights(n)
