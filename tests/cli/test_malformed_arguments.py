"""Arguments with every kind of fault, of commands and of `compare`: each is refused in one line and leaves nothing."""

from pathlib import Path

import numpy as np
import pytest

import herdfilter as hf

LONG = "x" * 5000
COUNTS = ("", " ", "x", "0", "-1", "1.5", "nan", "inf", "1e3", "0x10", "5,", ",", "1" * 30, "1" * 5000, "5,x", LONG, "５,-1")
PLACES = ("", "\0")

COMMANDS = {
    "compare": [
        "ungn",
        "UNGM ",
        "",
        " ",
        ".",
        "/",
        "x.toml",
        "\0.toml",
        f"{LONG}.toml",
        LONG,
        "Größe",
        "ungm\n",
        "--",
        "-5",
    ],
    "scenarios": ["ungn", "", ".", "/", "x.toml", "\0", LONG, f"{LONG}.toml", "ungm\n"],
    "filters": ["boostrap", "", "bootstrap,herded-kh", LONG, "\0", "Größe"],
    "show": ["", "\0", "nowhere", "/", LONG, "nowhere/study.sqlite"],
    "export": ["", "\0", "nowhere", "/", LONG],
    "paper": ["fig0", "", "FIG9", LONG, "1"],
    "data": ["", "fetsh", "fetch"],
    "data fetch": ["", "plazza", "Plaza1_.mat", LONG, "\0"],
    "comprae": [""],
}
OPTIONS = {
    "--filters": ["", ",", " , ", "boostrap", "bootstrap,x", LONG, "bootstrap;ukf", "KernelHerding()", "\0", "größe"],
    "--particles": COUNTS,
    "--runs": [*COUNTS, "5,5"],
    "--seed": ["", "x", "-1", "1.5", "nan", "0x10", LONG],
    "--workers": ["", "x", "0", "-1", "1.5", "nan", LONG],
    "--data": ["", ".", "/nowhere", LONG, "\0"],
    "--out": ["", "\0", "file", "file/below", LONG, f"new/{LONG}"],
    "--scheduler": ["", "dsak", "tcp://", "tcp://host", "http://host:1", "tcp://host:port", LONG, "\0", "LOCAL"],
    "--resume": [None],
    "--fliters": ["x"],
    "--wide": ["x"],
}
NO_LIST = [(), "", [], 1.5, True, {}, object(), [[]], [1.5], [None], LONG, b"x", np.nan, np.array([[1.0]])]
NO_FILTER = [3, None, "boostrap", [], {"filter": 3}, {"propsal": 3}, {"proposal": "os.system('x')"}, hf.KernelHerding()]
ARGUMENTS = {
    "scenario": [
        "ungn",
        "",
        "x.toml",
        None,
        3,
        1.5,
        [],
        {},
        b"ungm",
        hf.models.UNGM(),
        hf.models.UNGM,
        f"{LONG}.toml",
        Path(LONG),
        LONG,
    ],
    "filters": [*NO_LIST, "boostrap", {3: "ukf"}, {LONG: "ukf"}, {"\0": "ukf"}, *({"a": value} for value in NO_FILTER)],
    "particles": [*NO_LIST, 0, -1, np.inf, [0], [5, -1], "50", 10**15, 10**400, [True]],
    "runs": [0, -1, 1.5, "5", [5], True, np.nan, np.inf, 10**15, 10**400, {}, LONG],
    "seed": [-1, 1.5, "0", None, [0], True, np.nan, {}, LONG],
    "data": [".", "", "/nowhere", 3, b"x", [], LONG],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_name_is_refused(fault_of, command):
    faults = {name: fault_of(*command.split(), *([name] if name != "--" else [])) for name in COMMANDS[command]}
    assert not any(faults.values()), faults


@pytest.mark.parametrize("option", OPTIONS)
def test_a_bad_option_is_refused(fault_of, tmp_path, option):
    (tmp_path / "file").touch()
    out, faults = () if option in ("--out", "--resume") else ("--out", "new/out"), {}
    for value in OPTIONS[option]:
        given = () if value is None else (value,)
        faults[value] = fault_of("compare", "ungm", "-q", option, *given, *out)
    assert not any(faults.values()), faults


REFUSED_BEFORE_WORK = {
    "workers": [0, -1, 1.5, "2", None, True, [], np.nan],
    "scheduler": ["", "dsak", 3, [], b"dask", "tcp://", "tcp://host:x", LONG],
    "store": [3, [], b"x", True, 1.5, "", np.nan],
    "resume": [True],
}


@pytest.mark.parametrize("argument", REFUSED_BEFORE_WORK)
def test_a_bad_argument_about_the_work_is_refused_before_it(tmp_path, monkeypatch, argument):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("herdfilter.study.engine._perform", lambda *work: pytest.fail("worked in vain"))
    for value in REFUSED_BEFORE_WORK[argument]:
        with pytest.raises((ValueError, TypeError), match=argument) as caught:
            hf.compare("ungm", ["bootstrap"], particles=[5], runs=2, **{argument: value})
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_bad_argument_of_compare_is_refused(planned, tmp_path, argument):
    for value in ARGUMENTS[argument]:
        with pytest.raises((ValueError, TypeError, FileNotFoundError)) as caught:
            hf.compare(**{"scenario": "ungm", "filters": ["bootstrap"], argument: value}, store=tmp_path / "new" / "x")
        message = str(caught.value)
        assert argument.rstrip("s") in message
        assert "\n" not in message
        assert len(message) < 1000
    assert list(tmp_path.iterdir()) == []
