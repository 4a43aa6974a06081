"""Nobody waits in the dark, and nobody is bothered with what is done at once."""

import os
import sys
import time
import unicodedata
from types import SimpleNamespace

import pytest

from herdfilter.filters import progress
from herdfilter.filters.progress import Counter, live_line


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.15)
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)


def test_what_takes_long_is_told_again_and_again(hasty, capsys):
    with live_line(lambda seconds: f"working ({seconds:.1f} s)"):
        time.sleep(0.7)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 6
    assert all(line.startswith("working (") for line in lines)


def test_what_is_done_at_once_is_not_told(capsys):
    with live_line("a trifle"):
        pass
    assert capsys.readouterr().err == ""


def test_nothing_is_told_of_what_is_not_visible(hasty, capsys):
    with live_line("slow work", visible=False):
        time.sleep(0.5)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("columns", "name"), [(40, "非線形フィルタの比較"), (60, "e\u0301" * 20), (80, "coordinated_turn_of_a_long_name")]
)
def test_on_a_terminal_of_any_width_no_line_is_left_behind(hasty, monkeypatch, columns, name):
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    counter = Counter(name, done=0, left=8000)
    counter.add(1234, 56)
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with live_line(counter):
            time.sleep(0.5)
        drawn = os.read(master, 65536).decode()
    os.close(master)
    lines = drawn.split("\r\x1b[K")
    assert len(lines) > 2
    assert "\n" not in drawn
    assert max(map(places, lines)) < columns  # in the last place some terminals begin a new line
    assert all(line.startswith(name[:5]) for line in lines if line)


def places(line):
    """Places of a terminal that a line takes, by Unicode's table of wide characters."""
    signs = unicodedata.normalize("NFC", line)
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in signs)


def test_in_a_notebook_one_line_is_replaced_and_stays(hasty, capsys, monkeypatch):
    shown = []

    def display(data, raw, display_id):
        shown.append([data["text/plain"]])
        return SimpleNamespace(update=lambda data, raw: shown[-1].append(data["text/plain"]))

    shell = SimpleNamespace(kernel=object())
    modules = {"IPython": SimpleNamespace(get_ipython=lambda: shell), "IPython.display": SimpleNamespace(display=display)}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with live_line("slow work"):
        time.sleep(0.6)
    ((first, *_, last),) = shown
    assert first.startswith("slow work (")
    assert last == "slow work (1 s)"
    assert capsys.readouterr().err == ""


def test_the_counter_tells_what_is_left():
    counter = Counter("walk", done=10, left=30)
    assert counter(1.0) == "walk [##........] 10 of 40 runs of a filter"
    counter.add(10, 2)
    line = counter(5.0)
    assert line == "walk [#####.....] 20 of 40 runs of a filter (2 failed), 10 s left, 2 per second"
