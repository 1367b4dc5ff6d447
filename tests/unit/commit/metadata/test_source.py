"""Metadata sources: which source is asked for metadata."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache.open import cached_metadata
from lakelet.commit.metadata.missing_file import MissingFileError
from lakelet.commit.metadata.source import UNCACHED, metadata
from lakelet.commit.metadata.stored import stored_snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.commit.metadata.recording_source import RecordingSource, StaleQueries

ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "v": pa.array(range(20), pa.int64())})


def opened(source: RecordingSource, store: CountingStore | None = None) -> Table:
    lake = Lake(store or MemoryStore())
    lake.create_database("d")
    made = lake.create_table(
        "d.t",
        [("id", "BIGINT NOT NULL"), ("v", "BIGINT")],
        primary_key=["id"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    return Table("d.t", replace(made.home, metadata=source))


def test_the_store_answers_for_a_home_without_a_source() -> None:
    assert metadata(TableHome(MemoryStore(), TablePaths.of("d", "t"))) is UNCACHED


def test_the_source_of_a_home_answers_on_every_branch_of_the_table() -> None:
    source = RecordingSource()
    home = TableHome(MemoryStore(), TablePaths.of("d", "t"), metadata=source)
    assert metadata(home) is source
    assert metadata(home.on_branch("b")) is source
    assert metadata(home.deferring()) is source
    assert metadata(home.uncached()) is UNCACHED


def test_a_source_is_left_behind_when_a_home_is_pickled() -> None:
    home = TableHome(
        MemoryStore(), TablePaths.of("d", "t"), callback_modules=("m",), defers=True, metadata=RecordingSource()
    )
    there = pickle.loads(pickle.dumps(home))
    assert metadata(there) is UNCACHED
    assert (there.paths, there.callback_modules, there.defers) == (home.paths, ("m",), False)


def test_a_source_is_no_part_of_what_a_home_is() -> None:
    store = MemoryStore()
    one = TableHome(store, TablePaths.of("d", "t"))
    assert replace(one, metadata=RecordingSource()) == one


def test_values_are_tuples_that_callers_share() -> None:
    table = opened(RecordingSource())
    table.write(ROWS)
    table.write(ROWS.slice(0, 5))
    table.tags.create("x")
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is not None
    assert isinstance(UNCACHED.manifest_list(table.home, snapshot.base_manifest_list), tuple)
    assert isinstance(UNCACHED.index_manifest(table.home, snapshot.index_manifest), tuple)
    assert isinstance(UNCACHED.tags(table.home), tuple)
    assert stored_snapshot(table.home, snapshot.id).snapshot == snapshot


@pytest.mark.parametrize("call", ["scan", "get", "write", "delete", "compact", "tags", "files"])
def test_every_stage_comes_through_the_door(call: str) -> None:
    source = RecordingSource()
    table = opened(source)
    table.write(ROWS)
    table.write(ROWS.slice(0, 5))
    table.tags.create("x")
    source.asked.clear()
    calls = {
        "scan": lambda: table.scan(where="id = 3").to_arrow(),
        "get": lambda: table.get({"id": 7}),
        "write": lambda: table.write(ROWS.slice(3, 5)),
        "delete": lambda: table.delete([{"id": 4}]),
        "compact": lambda: table.compact(full=True),
        "tags": table.tags.list,
        "files": table.files,
    }
    calls[call]()
    expected = {"tags"} if call == "tags" else {"latest_snapshot", "latest_schema"}
    assert expected <= source.questions()


def test_whoever_removes_files_reads_the_store() -> None:
    """Nothing is removed on the word of metadata that a cache holds and the store has lost."""
    store = CountingStore(MemoryStore())
    source = cached_metadata(store)
    lake = Lake(store, metadata=source, cache=source.cache)
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT")])
    for number in range(3):
        table.write([{"id": number}])
        table.scan().to_arrow()
    lost = table.home.paths.manifest(table.snapshots()[1].delta_manifest_list)
    store.delete([lost])
    before = sorted(info.path for info in store.list(""))
    with pytest.raises(MissingFileError, match="is missing"):
        table.remove_orphan_files()
    assert sorted(info.path for info in store.list("")) == before


def test_no_metadata_file_is_read_past_the_door() -> None:
    """Every metadata file that the store hands out was asked for at the door; bytes that are copied are not among them."""
    source = RecordingSource()
    store = CountingStore(MemoryStore())
    table = opened(source, store)
    table.write(ROWS)
    table.write(ROWS.slice(0, 5))
    store.reset()
    source.asked.clear()
    table.scan(where="id = 3").to_arrow()
    table.get({"id": 7})
    table.write(ROWS.slice(2, 6))
    table.delete([{"id": 4}])
    table.compact(full=True)
    asked = {about for question, about in source.asked}
    named = ("/manifest/", "/tag/tag-")
    read = [path for call, path in store.log if call == "get" and any(part in path for part in named)]
    assert read
    assert [path for path in read if path not in asked] == []


def stale_lake() -> tuple[Lake, StaleQueries]:
    """A lake whose queries see no commit after their first look at a table."""
    source = StaleQueries()
    lake = Lake(MemoryStore(), metadata=source)
    lake.create_database("d")
    return lake, source


def test_queries_may_be_answered_with_older_pointers() -> None:
    lake, source = stale_lake()
    table = lake.create_table(
        "d.t", [("id", "BIGINT NOT NULL"), ("v", "BIGINT")], primary_key=["id"], options={"bucket": "1"}
    )
    table.write(ROWS.slice(0, 5))
    assert table.scan().count() == 5
    table.write(ROWS)
    assert table.scan().count() == 5
    assert table.get({"id": 9}) is None
    assert lake.sql("SELECT count(*) AS n FROM d.t").to_arrow().to_pylist() == [{"n": 5}]
    source.queries.forget()
    assert table.scan().count() == 20
    assert table.get({"id": 9}) == {"id": 9, "v": 9}


@pytest.mark.parametrize("keyed", [True, False], ids=["primary key", "append"])
def test_whoever_changes_a_table_sees_it_as_it_is(keyed: bool) -> None:
    """Each change builds on the one before, although queries are answered with the first version all the time."""
    lake, source = stale_lake()
    options = {"bucket": "1", "deletion-vectors.enabled": "true"} if keyed else {}
    table = lake.create_table(
        "d.t", [("id", "BIGINT NOT NULL"), ("v", "BIGINT")], primary_key=["id"] if keyed else [], options=options
    )
    table.write(ROWS.slice(0, 2))
    assert table.scan().count() == 2
    assert lake.sql("SELECT count(*) AS n FROM d.t").to_arrow().to_pylist() == [{"n": 2}]
    table.write(ROWS.slice(2, 18))
    table.add_column("w", "INT")
    table.set_options({"write-only": "true"})
    table.delete(where="id = 3")
    lake.sql("DELETE FROM d.t WHERE id = 4")
    lake.sql("UPDATE d.t SET v = 100 WHERE id = 5")
    lake.sql("INSERT INTO d.t VALUES (50, 50, 1)")
    lake.sql(
        "MERGE INTO d.t USING (SELECT 6 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 200 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    table.compact(full=True)
    table.tags.create("x")
    table.tags.replace("x")
    table.write(ROWS.slice(0, 1), mode="overwrite") if not keyed else table.delete([{"id": 7}])
    table.rollback("x")
    table.expire_snapshots(retain_last=1)
    source.queries.forget()
    rows = {row["id"]: row["v"] for row in table.scan(["id", "v"]).to_arrow().to_pylist()}
    assert rows == {**{n: n for n in range(20) if n not in (3, 4)}, 5: 100, 6: 200, 50: 50}
