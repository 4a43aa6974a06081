"""The metrics of trackers have the numbers of Stone Soup's."""

from datetime import datetime

import numpy as np
import pytest

import herdfilter as hf

pytest.importorskip("stonesoup")

from stonesoup.metricgenerator.ospametric import GOSPAMetric, OSPAMetric
from stonesoup.types.state import State


def test_ospa_and_gospa_are_those_of_stone_soup():
    rng = np.random.default_rng(0)
    truth, found = rng.normal(0, 2, (3, 2)), rng.normal(0, 2, (4, 2))
    there, here = (
        [State(x, datetime(2030, 1, 1)) for x in positions] for positions in (truth, found)
    )
    ospa = OSPAMetric(c=2.0, p=2).compute_OSPA_distance(here, there)
    gospa, _ = GOSPAMetric(c=2.0, p=2).compute_gospa_metric(here, there)
    parts = hf.tracking.gospa(truth, found, cutoff=2.0, p=2)
    assert np.isclose(ospa.value, hf.tracking.ospa(truth, found, cutoff=2.0, p=2))
    assert np.isclose(gospa.value["distance"], parts.distance)
    assert np.isclose(gospa.value["localisation"], parts.localisation)
