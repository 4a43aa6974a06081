"""Scenario files with every kind of fault: each is refused in one line, and leaves nothing behind.

A table of keys and bad values (malformed.toml), and faults of the file as a whole.
"""

import copy
import json
import tomllib
from pathlib import Path

import pytest
from helpers import cases

TABLES = tomllib.loads((Path(__file__).parent / "malformed.toml").read_text(encoding="utf-8"))
BASES, BAD = TABLES["good"], TABLES["bad"]
FILES = {
    "empty": b"",
    "broken": b"title = ",
    "twice": b'title = "a"\ntitle = "b"',
    "latin-1": 'title = "Größe"'.encode("latin-1"),
    "nested lists": b"particles = " + b"[" * 3000 + b"]" * 3000,
    "digits": b"steps = " + b"9" * 5000,
}


def expanded(value):
    """A value of the table of bad ones, with its long texts and numbers written out."""
    match value:
        case "DIGITS":
            return 10**399
        case str():
            return value.replace("LONG", "x" * 5000).replace("DIGITS", "9" * 400)
        case list():
            return [expanded(item) for item in value]
        case dict():
            return {expanded(key): expanded(item) for key, item in value.items()}
    return value


def toml(value):
    """Write a value as TOML, tables inline."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case bool() | str():
            return json.dumps(value)
    return str(value)


def with_value(base, path, value):
    """The text of a scenario that fits, but for another value at a dotted key."""
    table = inner = copy.deepcopy(BASES["plain"] | BASES[base])
    *folders, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    for folder in folders:
        inner = inner[folder]
    inner[last] = value
    return "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in table.items() if v != "ABSENT")


CASES = [
    (path, value, with_value(base, path, expanded(value)))
    for base, table in BAD.items()
    for paths, values in table.items()
    for path in paths.split()
    for value in values
]


@pytest.fixture
def fault_of_file(fault_of, tmp_path):
    """A function that writes a file, and says what is wrong with the way a comparison refuses it."""
    path = tmp_path / "scenario.toml"

    def fault_of_file(content, *options, **expected):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return fault_of(
            "compare", str(path), "-q", "--out", str(tmp_path / "new" / "out"), *options, **expected
        )

    return fault_of_file


@cases("cases", CASES[::6], pytest.param(CASES, marks=pytest.mark.slow), ids=["some", "all"])
def test_a_bad_value_of_any_key_is_refused_by_its_name(fault_of_file, cases):
    """The table starts from scenarios that fit."""
    faults = {}
    for base in ("plain", "grid", "large"):
        text = with_value(base, "title", "Good")
        assert (
            fault_of_file(b"\xef\xbb\xbf" + text.encode()) == "is accepted"
        )  # with a byte order mark
    for path, value, text in cases:
        faults[path, toml(value)] = fault_of_file(text, naming=path.split(".")[-1].rstrip("s"))
    assert {case: fault for case, fault in faults.items() if fault} == {}


def test_a_file_that_is_no_table_is_refused(fault_of_file):
    assert {
        name: fault_of_file(text, naming="scenario.toml") for name, text in FILES.items()
    } == dict.fromkeys(FILES, "")
