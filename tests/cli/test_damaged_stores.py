"""Whatever has become of a store: a command tells it in one line, or shows what the intact one shows."""

import os
import sqlite3
from contextlib import closing

import pytest
from helpers import cases, command, completed, refused, walk

from herdfilter.study import store as store_module
from herdfilter.study.store import StoreError, open_for_reading

WALK = walk(source="nobody", steps=5, runs=2, particles=[10], filters=["bootstrap"])


@pytest.fixture(scope="module", autouse=True)
def no_figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("herdfilter.plotting.drawings", lambda result: {})
        patch.setattr(
            "herdfilter.report.write_report", lambda result, out, plans: out / "report.html"
        )
        patch.setattr(store_module, "BUSY_SECONDS", 0.1)
        yield


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """The bytes of a store, what is shown of it, and its table."""
    folder = tmp_path_factory.mktemp("intact")
    (folder / "walk.toml").write_text(WALK)
    completed("compare", folder / "walk.toml", "--workers", "1", "--out", folder / "out", "-q")
    out = folder / "out"
    return (
        (out / "study.sqlite").read_bytes(),
        command("show", out).stdout,
        (out / "runs.csv").read_bytes(),
    )


def bytes_of(change):
    return lambda store: store.write_bytes(change(bytearray(store.read_bytes())))


def statement(text):
    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            connection.execute(text)
            connection.commit()

    return damage


def a_pipe(store):
    store.unlink()
    os.mkfifo(store)


DAMAGES = {
    "a text for a number": (statement("UPDATE runs SET rmse = 'small' WHERE run = 0"), "damaged store (ValueError"),
    "a missing table": (statement("DROP TABLE arrays"), ""),
    "half": (bytes_of(lambda data: data[: len(data) // 2]), "damaged"),
    "text": (bytes_of(lambda data: b"filter,n_particles,run\n" * 500), "not a store of herdfilter"),
    "pipe": (a_pipe, ""),
    "another version": (
        statement("PRAGMA user_version = 3"),
        "a store of version 3, but this herdfilter reads version 4; read it with the herdfilter that wrote it",
    ),
}  # fmt: skip


@cases("damage", *DAMAGES)
def test_a_damaged_store_is_told_in_one_line_and_left_alone(intact, tmp_path, damage):
    store, path, csv = tmp_path / "out" / "study.sqlite", tmp_path / "walk.toml", tmp_path / "x.csv"
    path.write_text(WALK)
    store.parent.mkdir()
    store.write_bytes(intact[0])
    change, words = DAMAGES[damage]
    change(store)
    before = store.read_bytes() if store.is_file() else None
    told = refused("show", store)
    assert "study.sqlite" in told
    assert words in told
    assert "study.sqlite" in refused(
        "compare", path, "--workers", "1", "--out", store.parent, "--resume", "-q"
    )
    if command("export", store.parent, "--csv", csv).exit_code == 0:
        assert csv.read_bytes() == intact[2]  # what is damaged is no part of it
    assert before is None or store.read_bytes() == before


def test_damaged_series_are_told_when_they_are_asked_for(intact, tmp_path):
    store = tmp_path / "study.sqlite"
    store.write_bytes(intact[0])
    statement("UPDATE arrays SET data = x'00' WHERE n_particles > 0")(store)
    with open_for_reading(store) as kept:
        series = kept.result().series
    with pytest.raises(StoreError, match="damaged store"):
        series["bootstrap", 10]


def test_a_locked_store_is_told_in_one_line(intact, tmp_path):
    store = tmp_path / "study.sqlite"
    store.write_bytes(intact[0])
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert (
            refused("show", store)
            == f"Error: {store}: locked by another program; end that, or wait\n"
        )
    assert command("show", store).stdout == intact[1]
