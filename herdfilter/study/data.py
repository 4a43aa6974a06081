"""Recorded data: the addresses of its files, and functions that find or download one.

Modules beside the scenarios, one for each data set, are imported from here: ``herdfilter.study.data.plaza`` is
``scenarios/plaza.py``. The files are not part of the package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from herdfilter._checks import one_of
from herdfilter.study.machine import check_folder, user_cache

__all__ = ["DATA_FILES", "fetch"]

_PACKAGE = Path(__file__).parents[1]
SCENARIOS = (
    _PACKAGE / "_scenarios" if (_PACKAGE / "_scenarios").is_dir() else _PACKAGE.parent / "scenarios"
)
"""The folder of the scenarios that come with the package: inside it when installed, beside it in a clone."""

__path__ = [str(SCENARIOS)]  # so that the modules there are submodules of this one

# Addresses of fixed versions: a file that changes would not pass its checksum.
_GTSAM = "https://raw.githubusercontent.com/borglab/gtsam/4.2.0/examples/Data"
_STONE_SOUP = "https://raw.githubusercontent.com/dstl/Stone-Soup/v1.9.1/docs/demos"
_AUTOFERRY = "https://raw.githubusercontent.com/Autoferry/sensor_fusion_dataset/319ed9a587be01ac68e5b5a8233316c5f5ac79bf"


@dataclass(frozen=True)
class DataFile:
    """A published file: its data set, its folder at a fixed version, its checksum, and the licence of the repository."""

    data_set: str
    base_url: str
    sha256: str
    licence: str


def _autoferry(scenario: int, sha256: str) -> DataFile:
    return DataFile("autoferry", f"{_AUTOFERRY}/scenario{scenario}", sha256, "CC0")


DATA_FILES: dict[str, DataFile] = {
    "Plaza1_.mat": DataFile(
        "plaza", _GTSAM, "9ccbfec19942eabecfa3206bff983bf708b98d6c7db462d81c55376f92d75847", "BSD"
    ),
    "Plaza2_.mat": DataFile(
        "plaza", _GTSAM, "72f0abe0fea2050eb5ee1cffc8c43823266a35785b7cdecac4ec5eae727561a2", "BSD"
    ),
    "UAV_Rot.csv": DataFile(
        "uav",
        _STONE_SOUP,
        "c20845069a8bc1e4226ad630797a266228d41ad00cb237d233ca00dca2da2043",
        "MIT",
    ),
    "scenario2_detections.json": _autoferry(
        2, "461d2eefb5d66d08b6288ba5b4c644cc3118bcfcdbfe2c2a5ad84bb85d3ad6ef"
    ),
    "scenario2_groundTruth.json": _autoferry(
        2, "18fa16bd82fa82724ca9608bdf7ea2e5ec5a654dc4e52d4eac61c08edb0a1865"
    ),
    "scenario4_detections.json": _autoferry(
        4, "4b55a394f1a3e6a7416655996494de1c7d2bbfb1a28963884d6a8d713f23f62e"
    ),
    "scenario4_groundTruth.json": _autoferry(
        4, "8ae0a4d3871a54cb3d0c7d41ec14b56564c7d0011236cf3a0d8a3d3dea4743bf"
    ),
}
"""Name of a file -> its data set, folder, checksum and licence."""


def locate(
    file: str, folder: str | os.PathLike[str] | None = None, base_url: str | None = None
) -> Path:
    """Return the path of a file in `folder`, else in the folder ``HERDFILTER_DATA`` names, else downloaded (`fetch`)."""
    # An empty variable is as good as none.
    named = folder or os.environ.get("HERDFILTER_DATA")
    return _find(Path(named).expanduser(), file) if named else fetch(file, base_url=base_url)


def files_of(data_set: str) -> list[str]:
    """Return the names of the files of a data set; ValueError with the nearest name if it is unknown."""
    one_of("data set", data_set, sorted({file.data_set for file in DATA_FILES.values()}))
    return [name for name, file in DATA_FILES.items() if file.data_set == data_set]


def fetch(
    file: str,
    to: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> Path:
    """Download or copy a file into a folder, check it, and return its path; an intact file that is there already is used.

    Parameters
    ----------
    file : str
        Name of the file, from `DATA_FILES`.
    to : path, optional
        The folder; by default the user's cache.
    source : path, optional
        Folder to copy the file from, instead of a download.
    base_url : str, optional
        Address of the folder; by default the environment variable ``HERDFILTER_DATA_URL``, then the publisher's.

    Raises
    ------
    FileNotFoundError
        If `source` does not hold the file.
    ValueError
        If the name is unknown or the checksum differs.
    OSError
        If the download fails or the folder cannot be written.
    ImportError
        If something is to be downloaded, and pooch is not installed.

    Examples
    --------
    >>> from herdfilter.study.data import fetch
    >>> try:
    ...     fetch("Plaza1.mat")
    ... except ValueError as error:
    ...     print(error)
    file: unknown 'Plaza1.mat'; did you mean 'Plaza1_.mat'?
    """
    published = DATA_FILES[one_of("file", file, DATA_FILES)]
    folder = user_cache() if to is None else Path(to).expanduser()
    if (folder / file).is_file() and checksum(folder / file) == published.sha256:
        return folder / file
    # A wrong source is an error before anything is written.
    original = None if source is None else _find(Path(source).expanduser(), file)
    if original is not None and checksum(original) != published.sha256:
        raise ValueError(
            f"{original}: expected sha256 {published.sha256}, got {checksum(original)}"
        )
    try:
        check_folder(folder)
    except OSError as error:
        raise OSError(f"data folder: cannot write into {folder} ({error.strerror})") from None
    if original is not None:
        return Path(shutil.copy(original, folder / file))
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"download: needs the package pooch ({error}); install herdfilter[data], or name a folder that holds the data"
        ) from error
    url = f"{(base_url or os.environ.get('HERDFILTER_DATA_URL') or published.base_url).rstrip('/')}/{file}"
    try:
        return Path(pooch.retrieve(url, f"sha256:{published.sha256}", file, folder))
    except (OSError, ValueError) as error:
        # pooch raises ValueError for a wrong checksum; an error of requests has the server's response.
        status = getattr(getattr(error, "response", None), "status_code", None)
        cause = (
            "its checksum differs"
            if "hash" in str(error)
            else f"status {status}"
            if status
            else type(error).__name__
        )
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{file}: no download ({cause}); name a folder that has it") from None


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _find(folder: Path, file: str) -> Path:
    """Return the path of a file in a folder or its subfolder for the data set; the error lists the files of the folder."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data folder: expected a folder with {file}, got {folder}: no such folder"
        )
    for directory in (folder, folder / (DATA_FILES[file].data_set if file in DATA_FILES else "")):
        if (directory / file).is_file():
            return directory / file
    # What is there mostly tells what is wrong: a file of another name, or another folder.
    names = sorted(entry.name for entry in folder.iterdir())
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise FileNotFoundError(
        f"data folder: expected {file} in {folder}, got {listed or 'an empty folder'}"
    )
