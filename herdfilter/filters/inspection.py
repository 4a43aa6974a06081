"""Signs of common mistakes in the first readings of a filter: degrees for radians, a likelihood for its logarithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter.filters import results
from herdfilter.filters.observation import Observation

LIKELIHOOD_RANGE = 0.01  # a likelihood at some particle is this fraction of the largest, or less


class InputWarning(UserWarning):
    """An input of a filter is valid, but probably a mistake; each filter warns once.

    The first reading of an angle is beyond a full turn: probably degrees. Or the model's `log_likelihood` is nowhere
    negative in the first three updates, and near zero at some particles: probably the likelihood itself. Or a series is run
    with neither `dt` nor `times`, though the function `f` of `from_functions` takes ``dt``.

    Examples
    --------
    A compass whose readings are in degrees:

    >>> import warnings
    >>> compass = hf.Sensor(lambda x: x[:, 0], [[0.01]], circular=[0])
    >>> kf = hf.UnscentedKalmanFilter(hf.models.from_functions(lambda x: x, None, [[0.1]], None, [0.0], [[1.0]]))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     record = kf.update([90.0], sensor=compass)
    ...
    >>> print(str(caught[0].message).partition(";")[0])
    z: expected angles in radians, got 90 in the first reading
    """


class Inspection(NamedTuple):
    """What the readings so far have shown."""

    angles_read: bool = False
    # updates whose log-likelihoods look like likelihoods; minus infinity after one that does not
    suspicions: float = 0.0

    def after(self, observation: Observation) -> Inspection:
        """Warn if an observation that has been taken up shows a mistake; return the inspection of the next one."""
        angles_read, suspicions = self
        measurement = observation.measurement
        if not angles_read and len(measurement.entries_circular):
            z = np.atleast_1d(observation.z)
            angles = [i for i in measurement.entries_circular if i in range(z.shape[-1])]
            largest = np.nanmax(np.abs(z[..., angles]), initial=0.0)
            # Later angles may have been unwrapped, and grow.
            angles_read = largest > 0.0
            if largest > 2 * np.pi:
                warn_of_input(
                    f"z: expected angles in radians, got {largest:g} in the first reading; np.radians(z) converts degrees"
                )
        if observation.lowest < 0:
            suspicions = -np.inf
        elif observation.lowest < LIKELIHOOD_RANGE * (observation.log_offset or 0.0):
            suspicions += 1
            # Fewer could be chance.
            if suspicions == 3:
                warn_of_input(
                    "log_likelihood: expected logarithms, got no negative value in three updates, but some near 0, as "
                    "likelihoods have; return np.log of these, or logpdf in place of pdf"
                )
        return Inspection(angles_read, suspicions)


def warn_of_input(text: str) -> None:
    """Warn of a probable mistake, on behalf of the caller of a filter's `update`."""
    results.WARN.get()(InputWarning(text), stacklevel=4)
