"""The status of a track: tentative until M of N scans have detected it, then confirmed, and coasting while none does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from herdfilter._checks import as_array, short_repr


class DetectionHistory(NamedTuple):
    """The scans that detected a track (Blackman and Popoli 1999, chapter 6).

    A scan detects a track if its detections belong to the track with a probability above 1/2.

    Attributes
    ----------
    detections : int
        Number of scans that detected the track.
    time_since_detection : float
        Time since the last of them; before the first, since the start of the track.
    confirmed : bool
        Whether M of N successive scans have detected it, with ``(M, N)`` the tracker's `confirm`.
    recent : tuple of bool
        Whether each of the last N scans detected it, the latest last.

    Examples
    --------
    >>> hf.tracking.DetectionHistory(detections=3, time_since_detection=1.0, confirmed=True).status
    'coasting'
    """

    detections: int = 0
    time_since_detection: float = 0.0
    confirmed: bool = False
    recent: tuple[bool, ...] = ()

    @property
    def status(self) -> Literal["tentative", "confirmed", "coasting"]:
        """``"tentative"`` until confirmed; then ``"coasting"`` if no scan of the present step detected it."""
        return ("coasting" if self.time_since_detection else "confirmed") if self.confirmed else "tentative"


def add_scan(
    histories: Iterable[DetectionHistory], detected: Iterable[bool], confirm: tuple[int, int]
) -> list[DetectionHistory]:
    """Return the histories of tracks after a scan that detected, or missed, each; `confirm` is M of N."""
    after = []
    for (detections, elapsed, confirmed, recent), hit in zip(histories, detected, strict=True):
        recent = (*recent, hit)[-confirm[1] :]
        confirmed = confirmed or sum(recent) >= confirm[0]
        after.append(DetectionHistory(detections + hit, 0.0 if hit else elapsed, confirmed, recent))
    return after


def as_confirm(value: Any) -> tuple[int, int]:
    """Return M and N of the confirmation of a track."""
    least, scans = as_array("confirm", value, (2,)).tolist()
    if not 1 <= least <= scans or least % 1 or scans % 1:
        raise ValueError(f"confirm: expected integers (M, N), 1 <= M <= N: M detections in N scans, got {short_repr(value)}")
    return int(least), int(scans)
