"""Scenario files with every kind of fault, some hundreds: each is refused in one line, and leaves nothing behind.

A table of keys and bad values, faults of the file as a whole, and mutations of the shipped files by a fixed seed.
"""

import copy
import json
import random
import tomllib
from pathlib import Path

import pytest

from herdfilter.study.scenario import load_scenario, scenario_files

GOOD = {
    "title": "Good",
    "source": "nobody",
    "unit": "m",
    "steps": 5,
    "dt": 1.0,
    "runs": 2,
    "particles": [5],
    "filters": ["bootstrap"],
    "error_dims": [0, 1],
    "labels": ["x", "y"],
    "time_label": "time",
    "view": "plane",
    "model": {
        "type": "LinearGaussian",
        "F": [[1.0, 1.0], [0.0, 1.0]],
        "H": [[1.0, 0.0]],
        "Q": [[1.0, 0.0], [0.0, 1.0]],
        "R": [[1.0]],
        "initial_mean": [0.0, 0.0],
        "initial_covariance": [[1.0, 0.0], [0.0, 1.0]],
    },
    "truth": {"initial": [0.0, 0.0]},
    "reference": {"type": "kalman"},
    "divergence": {"rmse_above": 3.0, "final_part": 0.5},
    "published": [{"filter": "bootstrap", "n_particles": 5, "value": 1.0, "tolerance": 0.1, "source": "nobody"}],
    "filter": {"mine": {"resample_below": 0.5}},
}
BASES = {
    "plain": GOOD,
    "grid": {**GOOD, "reference": {"type": "grid", "lower": -10.0, "upper": 10.0, "points": 101}},
    "large": {**GOOD, "reference": {"type": "large", "n": 50}},
    "data": {
        **{key: value for key, value in GOOD.items() if key not in ("truth", "reference")},
        "imports": ["herdfilter.study.data.plaza"],
        "data": {"type": "herdfilter.study.data.plaza:load_plaza", "name": "Plaza1"},
    },
}

FILES = {
    "empty": b"",
    "no model": b'title = "a"',
    "no title": b'[model]\ntype = "UNGM"',
    "broken": b"title = ",
    "no equals": b"title",
    "open string": b'title = "a',
    "open list": b"particles = [5",
    "open table": b"[model\n",
    "twice": b'title = "a"\ntitle = "b"',
    "table twice": b"[model]\n[model]",
    "binary": bytes(range(256)),
    "zeros": bytes(1000),
    "latin-1": 'title = "Größe"'.encode("latin-1"),
    "utf-16": 'title = "a"'.encode("utf-16"),
    "byte order mark alone": b"\xef\xbb\xbf",
    "nested lists": b"particles = " + b"[" * 3000 + b"]" * 3000,
    "nested lists of the model": b'title = "a"\n[model]\ntype = "UNGM"\nx = ' + b"[" * 300 + b"]" * 300,
    "nested tables": b"model = " + b"{a = " * 3000 + b"1" + b"}" * 3000,
    "nested keys": b'title = "a"\n[model]\n' + b".".join([b"a"] * 3000) + b" = 1",
    "nested quoted keys": b'title = "a"\n[' + b" . ".join([b'"a b"'] * 3000) + b"]",
    "digits": b"steps = " + b"9" * 5000,
    "date": b"title = 1979-05-27",
    "not TOML": b"<html></html>",
    "JSON": json.dumps({"title": "a"}).encode(),
    "long key": b"x" * 5000 + b" = 1",
    "strange key": b'"\\u0000\\u2028" = 1',
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
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case str():
            return json.dumps(value)
    return str(value)


def with_value(base, path, value):
    """The text of a table with another value at a dotted key."""
    table = copy.deepcopy(base)
    *folders, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    inner = table
    for folder in folders:
        inner = inner[folder]
    inner[last] = value
    return "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in table.items())


BAD = tomllib.loads((Path(__file__).parent / "malformed.toml").read_text(encoding="utf-8"))
CASES = [
    (path, value, with_value(BASES[base], path, expanded(value)))
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
        return fault_of("compare", str(path), "-q", "--out", str(tmp_path / "new" / "out"), *options, **expected)

    return fault_of_file


@pytest.mark.parametrize("base", ["plain", "grid", "large"])
def test_the_table_starts_from_a_scenario_that_fits(fault_of_file, base):
    text = with_value(BASES[base], "title", "Good")
    assert fault_of_file(text) == "is accepted"
    assert fault_of_file(b"\xef\xbb\xbf" + text.encode()) == "is accepted"  # with a byte order mark


@pytest.mark.parametrize("part", range(4))
def test_a_bad_value_of_any_key_is_refused_by_its_name(fault_of_file, part):
    assert len(CASES) > 500
    faults = {}
    for path, value, text in CASES[part::4]:
        faults[f"{path} = {toml(value)}"] = fault_of_file(text, naming=path.split(".")[-1].rstrip("s"))
    assert {case: fault for case, fault in faults.items() if fault} == {}


def test_telling_of_a_bad_scenario_refuses_it_or_tells_all(fault_of, tmp_path):
    path, faults = tmp_path / "scenario.toml", {}
    for key, value, text in CASES[::5]:
        path.write_text(text, encoding="utf-8")
        faults[f"{key} = {toml(value)}"] = fault_of("scenarios", str(path), may_fit=True)
    assert {case: fault for case, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_refused(fault_of_file, name):
    assert fault_of_file(FILES[name], naming="scenario.toml") == ""


@pytest.mark.parametrize("key", [".".join(["a"] * 5000), " . ".join(['"a b"'] * 51), "b = {" + "a." * 60 + "a = 1} #"])
def test_a_key_that_is_dotted_too_often_is_refused_before_the_file_is_read(tmp_path, monkeypatch, key):
    """Reading 5,000 dots takes seconds."""
    path = tmp_path / "deep.toml"
    path.write_text(f'title = "a"\n{key} = 1\n')
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("was read"))
    with pytest.raises(ValueError, match=r"^deep.toml: expected tables and lists nested at most 50 deep"):
        load_scenario(path)


def mutated(text, draw):
    """Change a file in one place: a value, a line or a character."""
    lines = text.splitlines()
    i = draw.randrange(len(lines))
    key, equals, _ = lines[i].partition(" = ")
    match draw.randrange(5):
        case 0 if equals:
            _, value, _ = draw.choice(CASES)
            lines[i] = f"{key} = {toml(expanded(value))}"
        case 1:
            del lines[i]
        case 2:
            lines.insert(i, lines[draw.randrange(len(lines))])
        case 3:
            lines = lines[:i]
        case _:
            j = draw.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:j] + draw.choice("\"'[]{}=#.,-9eé\x00 ") + lines[i][j + draw.randrange(2) :]
    return "\n".join(lines)


@pytest.mark.parametrize("name", scenario_files())
def test_a_shipped_file_changed_at_random_is_refused_or_fits(fault_of_file, name):
    text, draw = scenario_files()[name].read_text(encoding="utf-8"), random.Random(name)
    for _ in range(8):
        changed = mutated(text, draw)
        fault = fault_of_file(changed, "--filters", "bootstrap", "--particles", "5", may_fit=True)
        assert fault == "", changed
