"""Tracking of many targets: trackers whose tracks hold any filter, births, and distances between sets of targets."""

from herdfilter._repr import listing_of
from herdfilter.tracking.birth import Birth, BirthFromMeasurements
from herdfilter.tracking.lmb import LMBTracker
from herdfilter.tracking.metrics import GOSPA, gospa, label_switches, ospa
from herdfilter.tracking.results import TrackingRecord, TrackingResult
from herdfilter.tracking.simulation import simulate_scans
from herdfilter.tracking.tables import scans_from_table
from herdfilter.tracking.track import DetectionHistory, Track

__all__ = [
    "GOSPA",
    "Birth",
    "BirthFromMeasurements",
    "DetectionHistory",
    "LMBTracker",
    "Track",
    "TrackingRecord",
    "TrackingResult",
    "gospa",
    "label_switches",
    "ospa",
    "scans_from_table",
    "simulate_scans",
]
__dir__ = listing_of(globals())
