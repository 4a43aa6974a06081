"""Nobody waits in the dark, and nobody is bothered with what is done at once."""

import os
import sys
import time
import unicodedata
from contextlib import suppress
from types import SimpleNamespace

import pytest
from helpers import cases

from herdfilter.filters import progress
from herdfilter.filters.progress import live_line


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.15)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.05)


def test_a_pipe_gets_whole_lines_again_and_again(hasty, capsys):
    with live_line("working"):
        time.sleep(0.7)
    with live_line("walk", 40, 10, "runs") as bar:
        bar.update(10)
        bar.set_postfix_str("2 failed", refresh=False)
        time.sleep(0.5)
    told = capsys.readouterr().err
    assert "\r" not in told
    lines = told.splitlines()
    assert 3 <= len(lines) <= 10
    assert lines[0] == "working (00:00)"
    assert lines[-1].startswith("walk:  50%")
    assert "20/40" in lines[-1]
    assert "2 failed" in lines[-1]


def test_a_pipe_is_never_silent_for_more_than_five_seconds_whatever_the_parts(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_last_line", [time.monotonic() - progress.LOG_SECONDS + 0.5])
    for part in ("first", "second"):
        with live_line(part):
            time.sleep(0.45)
    assert capsys.readouterr().err == "second (00:00)\n"
    assert progress.LOG_SECONDS < 5


@cases("seconds visible", (0.0, True), (0.5, False))
def test_nothing_is_told_of_what_is_done_at_once_or_is_not_visible(hasty, capsys, seconds, visible):
    with live_line("work", 10, visible=visible) as bar:
        bar.update()
        time.sleep(seconds)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@cases(
    "columns name total",
    (40, "非線形フィルタの比較", 8000),
    (60, "e\u0301" * 20, None),
    (60, "compiling or loading " + "a, " * 40, 8000),
    (60, "a, " * 40, None),
)
def test_on_a_terminal_of_any_width_no_line_is_left_behind(
    hasty, monkeypatch, columns, name, total
):
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with live_line(name, total, unit="runs") as bar:
            bar.update(1234)
            time.sleep(0.5)
        os.set_blocking(master, False)
        drawn = b""
        with suppress(BlockingIOError):
            while True:
                drawn += os.read(master, 65536)
        drawn = drawn.decode()
    os.close(master)
    lines = drawn.split("\r")
    assert "\n" not in drawn
    assert max(map(places, lines)) < columns  # in the last place some terminals begin a new line
    assert sum(line.startswith(name[:5]) for line in lines) >= 2
    assert not lines[-1]
    assert not lines[-2].strip()  # it is gone


def places(line):
    """Places of a terminal that a line takes, by Unicode's table of wide characters."""
    signs = unicodedata.normalize("NFC", line)
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in signs)


def test_in_a_notebook_one_line_is_replaced(hasty, capsys, monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with live_line("slow work"):
        time.sleep(0.6)
    told = capsys.readouterr().err
    assert "\n" not in told
    assert told.count("\rslow work (") >= 2
