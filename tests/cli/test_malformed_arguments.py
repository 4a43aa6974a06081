"""Arguments with every kind of fault, of commands and of `compare`: each is refused in one line and leaves nothing."""

import pytest
from helpers import cases

import herdfilter as hf

LONG = "x" * 5000
COMMANDS = ("compare", "scenarios", "filters", "show", "export", "paper", "data fetch")
OPTIONS = (
    "--filters",
    "--particles",
    "--runs",
    "--seed",
    "--workers",
    "--data",
    "--out",
    "--scheduler",
)
NUMBERS = ("--particles", "--runs", "--workers")
ARGUMENTS = (
    "scenario",
    "filters",
    "particles",
    "runs",
    "seed",
    "workers",
    "data",
    "scheduler",
    "store",
)


def test_a_bad_name_or_option_is_refused(fault_of, tmp_path):
    (tmp_path / "file").touch()
    lines = [(*command.split(), text) for command in COMMANDS for text in ("", "\0", LONG, "größe")]
    lines += [("compare", "ungm", option, text) for option in OPTIONS for text in ("", "\0", LONG)]
    lines += [
        ("compare", "ungm", option, text)
        for option in NUMBERS
        for text in ("0", "-1", "1.5", "nan", "1" * 5000, "５,-1")
    ]
    lines += [
        ("compare", "ungm", "--out", "file/below"),
        ("compare", "ungm", "--resume"),
        ("compare", "ungm", "--fliters", "x"),
    ]
    faults = {line: fault_of(*line) for line in lines}
    assert not any(faults.values()), {line: fault for line, fault in faults.items() if fault}


@cases("argument", *ARGUMENTS)
def test_a_bad_argument_of_compare_is_refused_before_any_work(tmp_path, monkeypatch, argument):
    monkeypatch.setattr(
        "herdfilter.study.engine._perform", lambda *work: pytest.fail("worked in vain")
    )
    for value in ("", [], 1.5, b"x"):
        given = {
            "scenario": "ungm",
            "filters": ["bootstrap"],
            "store": tmp_path / "new" / "x",
            argument: value,
        }
        with pytest.raises(
            (ValueError, TypeError, FileNotFoundError), match=argument.rstrip("s")
        ) as caught:
            hf.compare(**given)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == []
