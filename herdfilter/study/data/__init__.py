"""Real data sets: found in a folder, or downloaded once and kept; never part of the package. One file a data set."""

from herdfilter.study.data.autoferry import AutoferryData, load_autoferry
from herdfilter.study.data.files import DATA_FILES, DataFile, fetch
from herdfilter.study.data.plaza import PlazaData, load_plaza
from herdfilter.study.data.uav import UAVData, load_uav

__all__ = [
    "DATA_FILES",
    "AutoferryData",
    "DataFile",
    "PlazaData",
    "UAVData",
    "fetch",
    "load_autoferry",
    "load_plaza",
    "load_uav",
]
