"""Scenario files with every kind of fault, some hundreds: each is refused in one line, and leaves nothing behind.

A table of keys and bad values, faults of the file as a whole, and mutations of the shipped files by a fixed seed.
"""

import copy
import json
import math
import random

import pytest

from herdfilter.evaluation.scenario import scenario_files

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
    "published": [
        {"filter": "bootstrap", "n_particles": 5, "value": 1.0, "tolerance": 0.1, "source": "nobody"}
    ],
    "filter": {"mine": {"resample_below": 0.5}},
}
GRID = {"type": "grid", "lower": -10.0, "upper": 10.0, "points": 101}
LARGE = {"type": "large", "n": 50}

NAN, INF, HUGE, LONG = math.nan, math.inf, 10**15, "x" * 5000
NO_TEXT = [0, -1, 1.5, True, NAN, INF, [], ["a"], {}, {"a": 1}, HUGE]
NO_COUNT = [0, -1, 1.5, NAN, INF, "5", "", True, [], [5], {}, LONG]
NO_POSITIVE = [0, -1.0, NAN, INF, -INF, "1", "", False, [], [1.0], {}, 10**400]
NO_LIST = [0, 1.5, NAN, True, "", "bootstrap", {}, {"a": 1}, LONG]
NO_TABLE = [0, 1.5, NAN, True, "", "a", [], [1], LONG]
NO_MATRIX = [
    0,
    "a",
    True,
    {},
    [],
    [[]],
    [["a"]],
    [[NAN, 0.0], [0.0, 1.0]],
    [[INF, 0.0], [0.0, 1.0]],
    [[1.0], [2.0, 3.0]],
]
NO_MATRIX += [[[[1.0]]], [[1.0, 2.0, 3.0]], [[1.0] * 5] * 5, LONG]
NO_COVARIANCE = [*NO_MATRIX, [[-1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]
NO_STATE = ["a", {}, [], [1.0], [1.0] * 3, ["a", "b"], [NAN, 0.0], [INF, 0.0], [[1.0, 2.0]], LONG]
NO_TYPE = [
    0,
    True,
    [],
    {},
    "",
    " ",
    ":",
    ":X",
    "X:",
    "a:b:c",
    "LinearGausian",
    "lineargaussian",
    "builtins:print",
]
NO_TYPE += [
    "os:system",
    "subprocess:run",
    "nowhere.py:X",
    "../nowhere.py:X",
    "/nowhere.py:X",
    "\0.py:X",
    "Größe",
    LONG,
]
NO_TYPE += [
    "herdfilter.evaluation:compare",
    "herdfilter.models:np",
    "herdfilter.models.ungm:np",
    f"{LONG}.py:X",
]
NO_EXPRESSION = [
    "",
    " ",
    "X",
    "X()",
    "1/0",
    "9**9**9",
    "'a' * 10**9",
    "os.system('x')",
    "(" * 300,
    LONG,
    "Größe()",
    "\0",
]
NO_EXPRESSION += [
    "KernelHerding(",
    "KernelHerding()",
    0,
    [],
    {},
    "HerdedProposal(1)",
    "BootstrapProposal(9)",
    f"X({'9' * 5000})",
]

TABLE = {
    **dict.fromkeys(("title", "source", "unit", "time_label"), NO_TEXT),
    **dict.fromkeys(("steps", "runs"), [*NO_COUNT, HUGE]),
    "dt": NO_POSITIVE,
    "particles": [*NO_LIST, [], [0], [-1], [1.5], ["5"], [True], [[5]], [NAN], [5, HUGE]],
    "filters": [
        *NO_LIST,
        [],
        [1],
        [""],
        ["boostrap"],
        [["bootstrap"]],
        [LONG],
        ["größe"],
        ["bootstrap", "x"],
    ],
    "error_dims": [*NO_LIST, [], [0, 0], [-1], [2], [1.5], ["0"], [True], [[0]], [HUGE]],
    "labels": [*NO_LIST, ["a"], ["a"] * 3, [1, 2], [["a"], ["b"]]],
    "view": [*NO_TEXT, "plan", "", LONG],
    "imports": [
        *NO_LIST,
        [1],
        [""],
        ["a b"],
        ["no_module_of_this_name"],
        ["../x.py"],
        ["os; x"],
        ["."],
        [[]],
        [LONG],
    ],
    "model": [*NO_TABLE, {}, {"type": "UNGM", "procss_variance": 1.0}],
    "model.type": NO_TYPE,
    "model.F": NO_MATRIX,
    "model.H": [[], "a", [[]], [["a"]], [1.0], [[NAN, 0.0]], [[1.0]], [[1.0, 0.0, 0.0]], {}, LONG],
    "model.Q": NO_COVARIANCE,
    "model.R": [[], "a", [[]], [["a"]], [[NAN]], [[-1.0]], [[0.0]], [[1.0, 0.0], [0.0, 1.0]], {}, LONG],
    "model.initial_mean": NO_STATE,
    "model.initial_covariance": NO_COVARIANCE,
    "truth": [*NO_TABLE, {}, {"inital": [0.0, 0.0]}],
    "truth.initial": NO_STATE,
    "reference": [
        *NO_TABLE,
        {},
        {"type": 1},
        {"type": "gird"},
        {"type": LONG},
        {"type": "kalman", "n": 5},
        {"type": "large"},
    ],
    "divergence": [*NO_TABLE, {}, {"rmse_over": 3.0}],
    "divergence.rmse_above": NO_POSITIVE,
    "divergence.final_part": [*NO_POSITIVE, 1.5],
    "published": [*NO_TABLE[:5], [1], [[]], {}, [{}], {"filter": "bootstrap"}],
    "filter": [*NO_TABLE, {"mine": 3}, {"mine": "bootstrap"}, {"mine": []}],
    "filter.mine.filter": [*NO_TEXT, "", "ParticleFiltr", "compare", "os.system", "KernelHerding", LONG],
    "filter.mine.proposal": NO_EXPRESSION,
    "filter.mine.resampling": NO_EXPRESSION,
    "filter.mine.resample_below": [2.0, -1, NAN, [], {}, "1/0", LONG],
    "data": [*NO_TABLE, {}, {"type": "plaza"}, {"type": LONG}],
    "stpes": [5],
    "model.f": [1.0],
    "divergence.above": [1.0],
    "filter.mine.propsal": ["BootstrapProposal()"],
}
TABLES = [
    ("reference", {**GRID, key: bad})
    for key, values in {
        "lower": [60.0, NAN, -INF, "a", [], [0.0], {}, [-50.0] * 3],
        "upper": [-60.0, NAN, INF, "a", [], [0.0], {}, [50.0] * 3, 0.0, 1e9],
        "points": [0, -1, 1.5, "a", [], [9], [9, 0], {}, HUGE, [HUGE, HUGE], 8, True, NAN],
        "pionts": [101],
    }.items()
    for bad in values
]
TABLES += [
    ("reference", {**LARGE, key: bad})
    for key, values in {
        "n": [*NO_COUNT, HUGE],
        "repeats": NO_COUNT,
        "filter": [
            *NO_TEXT,
            "",
            "bootstrp",
            "ukf",
            "ekf",
            "enkf",
            "edh",
            "herded-kh",
            "augmented-kh",
            "auto-kh",
            LONG,
        ],
        "repeat": [4],
    }.items()
    for bad in values
]
TABLES += [
    ("published", [{**GOOD["published"][0], key: bad}])
    for key, values in {
        "filter": [*NO_TEXT, "", "boostrap", LONG],
        "n_particles": NO_COUNT,
        "value": NO_POSITIVE,
        "tolerance": NO_POSITIVE,
        "source": [*NO_TEXT, ""],
        "measure": ["rms", "", 1, [], LONG],
        "statistic": ["maen", "", 1, [], LONG],
        "runs": NO_COUNT,
        "steps": NO_COUNT,
        "skip": [-1, 1.5, "1", True, []],
        "model": [*NO_TABLE, {"f": 1.0}, {"F": "a"}],
        "sorce": ["nobody"],
    }.items()
    for bad in values
]

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
    "digits": b"steps = " + b"9" * 5000,
    "date": b"title = 1979-05-27",
    "not TOML": b"<html></html>",
    "JSON": json.dumps({"title": "a"}).encode(),
    "long key": b"x" * 5000 + b" = 1",
    "strange key": '"\\u0000\\u2028" = 1'.encode(),
}


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
            return json.dumps(value, ensure_ascii=False).replace("\x00", "\\u0000")
    return str(value)


def with_value(path, value):
    """The good table with another value at a dotted key."""
    table = copy.deepcopy(GOOD)
    *folders, key = path.split(".")
    inner = table
    for folder in folders:
        inner = inner[folder]
    inner[key] = value
    return table


CASES = [
    (f"{path} = {toml(bad)}"[:80], with_value(path, bad)) for path, values in TABLE.items() for bad in values
]
CASES += [(f"{path} = {toml(bad)}"[:120], with_value(path, bad)) for path, bad in TABLES]
CASES += [
    (f"{path} left out", with_value(path, None))
    for path in ("title", "model.type", "model.F", "divergence.rmse_above")
]


def without_none(table):
    return {k: without_none(v) if isinstance(v, dict) else v for k, v in table.items() if v is not None}


@pytest.fixture
def refused(fault_of, tmp_path):
    """A function that writes a file, and says what is wrong with the way a comparison refuses it."""
    path = tmp_path / "scenario.toml"

    def refused(content, **options):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return fault_of(
            "compare", str(path), "--out", str(tmp_path / "new" / "out"), *options.pop("more", ()), **options
        )

    return refused


def text_of(table):
    return "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in without_none(table).items())


def faults(cases):
    return {name: fault for name, fault in cases if fault}


def test_the_table_starts_from_a_scenario_that_fits(refused):
    for reference in ({"type": "kalman"}, GRID, LARGE):
        assert refused(text_of({**GOOD, "reference": reference}), may_fit=False) == "is accepted"


@pytest.mark.parametrize("part", range(4))
def test_a_bad_value_of_any_key_is_refused(refused, part):
    assert len(CASES) > 500
    assert faults((name, refused(text_of(table))) for name, table in CASES[part::4]) == {}


def test_a_file_that_is_no_table_is_refused(refused):
    assert faults((name, refused(content)) for name, content in FILES.items()) == {}


def mutated(text, draw):
    """Change a file in one place: a value, a line or a character."""
    lines = text.splitlines()
    i = draw.randrange(len(lines))
    key, equals, _ = lines[i].partition(" = ")
    match draw.randrange(5):
        case 0 if equals:
            lines[i] = f"{key} = {toml(draw.choice([*NO_COUNT, *NO_TABLE, [[]], [NAN], -1.0, 1e300]))}"
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


def test_a_shipped_file_changed_at_random_is_refused_or_fits(refused):
    draw, cases = random.Random(14), []
    texts = {name: path.read_text(encoding="utf-8") for name, path in scenario_files().items()}
    for _ in range(12):
        for name, text in texts.items():
            changed = mutated(text, draw)
            cases.append(
                (changed, refused(changed, may_fit=True, more=("--filters", "bootstrap", "--particles", "5")))
            )
    assert faults(cases) == {}
