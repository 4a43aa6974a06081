"""Passes: herded points are placed again (to be replaced)."""

from herdfilter.samplers.herding.placing import place_again as _again


def passes_meant(passes, bandwidth, n, dim):
    if passes is not None:
        return passes
    if not isinstance(bandwidth, str):
        return 0
    if n >= 50:
        return int(dim >= 8)
    return 3 if dim <= 2 else 6


def place_again(frame, z, passes):
    return _again(frame, z, passes * len(z))
