"""Many targets: trackers whose tracks hold any filter, and where targets appear."""

from herdfilter.tracking.birth import Birth, BirthFromMeasurements
from herdfilter.tracking.lmb import LMBTracker
from herdfilter.tracking.results import TrackingRecord, TrackingResult
from herdfilter.tracking.track import Track

__all__ = [
    "Birth",
    "BirthFromMeasurements",
    "LMBTracker",
    "Track",
    "TrackingRecord",
    "TrackingResult",
]
