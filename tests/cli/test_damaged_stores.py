"""Whatever has become of a store: a command tells it in one line, or shows what the intact one shows."""

import gzip
import json
import os
import sqlite3
import tracemalloc
import zlib
from contextlib import closing

import pytest
from helpers import command, refused, walk

from herdfilter.study import store as store_module

WALK = walk(source="nobody", steps=5, runs=2, particles=[10], filters=["bootstrap"])


@pytest.fixture(scope="module", autouse=True)
def no_figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("herdfilter.plotting.drawings", lambda result: {})
        patch.setattr("herdfilter.report.write_report", lambda result, out, plans: out / "report.html")
        patch.setattr(store_module, "BUSY_SECONDS", 0.1)
        yield


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """The bytes of a store, what is shown of it, and its table."""
    folder = tmp_path_factory.mktemp("intact")
    (folder / "walk.toml").write_text(WALK)
    result = command("compare", folder / "walk.toml", "--workers", "1", "--out", folder / "out", "-q")
    assert result.exit_code == 0, result.output
    out = folder / "out"
    return (out / "study.sqlite").read_bytes(), command("show", out).stdout, (out / "runs.csv").read_bytes()


def bytes_of(change):
    def damage(store):
        data = bytearray(store.read_bytes())
        store.write_bytes(change(data))

    return damage


def flipped(start, stop):
    return bytes_of(lambda data: data[:start] + bytes(~byte & 0xFF for byte in data[start:stop]) + data[stop:])


def statement(*statements):
    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            for one in statements:
                connection.execute(one)
            connection.commit()

    return damage


def configuration(value):
    return statement(f"UPDATE study SET value = '{value}' WHERE name = 'configuration'")


def described_as(**changes):
    def damage(store):
        with closing(sqlite3.connect(store)) as connection:
            (text,) = connection.execute("SELECT value FROM study WHERE name = 'configuration'").fetchone()
            text = json.dumps(json.loads(text) | changes)
            connection.execute("UPDATE study SET value = ? WHERE name = 'configuration'", (text,))
            connection.commit()

    return damage


def a_folder(store):
    store.unlink()
    store.mkdir()


def a_pipe(store):
    store.unlink()
    os.mkfifo(store)


def forged(store):
    """A shown array that takes a gigabyte when it is unpacked, and digests to match."""
    with closing(sqlite3.connect(store)) as connection:
        bomb = zlib.compress(bytes(2**20), 9)
        connection.execute("UPDATE shown SET data = ?", (bomb,))
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM shown").fetchall():
            values = (store_module.digest_of(dict(row)), row["filter"], row["name"])
            connection.execute("UPDATE shown SET digest = ? WHERE filter = ? AND name = ?", values)
        connection.commit()


EDITED = {
    "run -5": statement("UPDATE runs SET run = -5 WHERE run = 1"),
    "copied run": statement(
        "CREATE TEMP TABLE one AS SELECT * FROM runs WHERE run = 1",
        "UPDATE one SET id = 99, run = 7",
        "INSERT INTO runs SELECT * FROM one",
    ),
    "rmse 1e9": statement("UPDATE runs SET rmse = 1e9 WHERE run = 0"),
    "last digit": statement("UPDATE runs SET rmse = rmse * (1 + 3e-16) WHERE run = 0"),
    "dropped column": statement("ALTER TABLE runs DROP COLUMN rmse"),
    "new column": statement("ALTER TABLE runs ADD COLUMN more REAL", "UPDATE runs SET more = 1"),
    "failed no more": statement("UPDATE runs SET diverged = 1 - diverged"),
    "another seed": statement("UPDATE study SET value = replace(value, '\"seed\": 0', '\"seed\": 1')"),
    "another machine": statement("UPDATE sessions SET machine = '{}'"),
    "another shape": statement("UPDATE shown SET shape = '[1, 5]' WHERE shape = '[5, 1]'"),
    "garbage shown": statement("UPDATE shown SET data = (SELECT data FROM series LIMIT 1)"),
    "no digest": statement("UPDATE runs SET digest = ''"),
    "bomb": forged,
}

DAMAGES = {
    **EDITED,
    "header only": bytes_of(lambda data: data[:100]),
    "first page only": bytes_of(lambda data: data[:4096]),
    "half": bytes_of(lambda data: data[: len(data) // 2]),
    "zeros": bytes_of(lambda data: bytes(len(data))),
    "magic flipped": flipped(0, 16),
    "page size flipped": flipped(16, 18),
    "schema flipped": flipped(100, 1000),
    "middle flipped": flipped(5000, 20000),
    "text": bytes_of(lambda data: b"filter,n_particles,run\n" * 500),
    "compressed": bytes_of(lambda data: gzip.compress(bytes(data))),
    "folder": a_folder,
    "pipe": a_pipe,
    "another program's": statement("PRAGMA application_id = 1"),
    "another version": statement("PRAGMA user_version = 99"),
    **{f"no {table}": statement(f"DROP TABLE {table}") for table in ("study", "sessions", "runs", "shown")},
    "no column": statement("ALTER TABLE runs DROP COLUMN error"),
    "no configuration": statement("DELETE FROM study"),
    **{f"configuration {value}": configuration(value) for value in ("", "{}", "[]", "null", "7", "{")},
    "nested configuration": configuration("[" * 5000 + "]" * 5000),
    "no scenario": described_as(scenario=[]),
    "no filters": described_as(filters=None),
    "no particles": described_as(particles=[]),
    "no number of runs": described_as(runs="many"),
    "machine no JSON": statement("UPDATE sessions SET machine = 'mine'"),
    "count no number": statement("UPDATE runs SET n_particles = 'many'"),
    "unknown filter": statement("UPDATE runs SET filter = 'another'"),
    "error no text": statement("UPDATE runs SET rmse = x'00'"),
    "shape no JSON": statement("UPDATE shown SET shape = 'round'"),
    "shown cut": statement("UPDATE shown SET data = substr(data, 1, 5)"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_told_in_one_line_and_left_alone(intact, tmp_path, damage):
    store, path, csv = tmp_path / "out" / "study.sqlite", tmp_path / "walk.toml", tmp_path / "x.csv"
    path.write_text(WALK)
    store.parent.mkdir()
    store.write_bytes(intact[0])
    DAMAGES[damage](store)
    before = store.read_bytes() if store.is_file() else None
    for arguments in (
        ("show", store),
        ("export", store.parent, "--csv", csv),
        ("compare", path, "--workers", "1", "--out", store.parent, "--resume", "-q"),
    ):
        if arguments[0] == "export" and command(*arguments).exit_code == 0:
            assert csv.read_bytes() == intact[2]  # what is damaged is no part of it
            continue
        assert "study.sqlite" in refused(*arguments)
        assert before is None or store.read_bytes() == before


def test_a_locked_store_is_told_in_one_line(intact, tmp_path):
    store = tmp_path / "study.sqlite"
    store.write_bytes(intact[0])
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert refused("show", store) == f"Error: {store}: locked by another program; end that, or wait\n"
    assert command("show", store).stdout == intact[1]


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("run -5", "1 of 2 rows of runs {}, the first with filter 'bootstrap', n_particles 10, run -5"),
        ("rmse 1e9", "1 of 2 rows of runs {}, the first with filter 'bootstrap', n_particles 10, run 0"),
        ("dropped column", "2 of 2 rows of runs {}"),
        ("another seed", "1 of 1 rows of study {}, the first with name 'configuration'"),
    ],
)
def test_an_edited_store_is_told_by_the_row(intact, tmp_path, edit, told):
    store = tmp_path / "study.sqlite"
    store.write_bytes(intact[0])
    EDITED[edit](store)
    assert told.format("are not as they were written") in command("show", store).stderr


def test_what_begins_as_a_small_text_is_unpacked_only_as_far_as_it_should_be():
    bomb = zlib.compress(bytes(2**30), 9)
    tracemalloc.start()
    with pytest.raises(ValueError, match="expected at most 100 whole numbers"):
        store_module.unpacked(bomb, 100)
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()
