"""Changelog files: what writes and compactions tell of, how the files are named, and when they go."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.commit.metadata.manifests import read_entries, read_manifest_list
from lakelet.compact.progress import CompactionProgress
from lakelet.model.snapshot import Snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.table.upkeep.changelog_lag import ChangelogLag

COLUMNS = [("id", "INT"), ("v", "INT"), ("w", "INT")]
Rows = list[tuple[str, int, int]]


@pytest.fixture
def lake() -> Lake:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake


def make(lake: Lake, producer: str, **options: str) -> Table:
    named = {name.replace("_", "-"): text for name, text in options.items()}
    given = {"bucket": "1", "changelog-producer": producer, **named}
    return lake.create_table("d.t", COLUMNS, primary_key=["id"], options=given)


def put(table: Table, *rows: tuple[int, int], kinds: list[str] | None = None, **more: Any) -> None:
    table.write([{"id": id_, "v": v, "w": 0} for id_, v in rows], kinds=kinds, **more)


def told(table: Table, after: int = 0) -> Rows:
    return [(row["_row_kind"], row["id"], row["v"]) for row in table.changes(after).to_pylist()]


def newest(table: Table) -> Snapshot:
    found = table.latest_snapshot()
    assert found is not None
    return found


def files(table: Table) -> list[tuple[str, int, int]]:
    """Of all changelog files of the table's snapshots the name, the level and the number of rows."""
    found = []
    for snapshot in table.snapshots():
        if snapshot.changelog_manifest_list is not None:
            entries = read_entries(table.home, read_manifest_list(table.home, snapshot.changelog_manifest_list))
            names = [entries.column(name).to_pylist() for name in ("_FILE_NAME", "_LEVEL", "_ROW_COUNT")]
            found += list(zip(*names, strict=True))
    return found


def stored(table: Table, part: str) -> int:
    return sum(part in info.path for info in table.home.store.list(table.home.paths.root))


def test_input_is_told_of_as_it_came(lake: Lake) -> None:
    table = make(lake, "input")
    put(table, (2, 1), (1, 1), (2, 2), (3, 9), kinds=["+I", "+I", "+U", "-D"])
    assert told(table) == [("+I", 1, 1), ("+I", 2, 1), ("+U", 2, 2), ("-D", 3, 9)]
    assert newest(table).commit_kind.value == "APPEND"
    assert newest(table).changelog_record_count == 4
    put(table, (1, 7), (4, 7), kinds=["-U", "+I"])
    assert told(table, 1) == [("-U", 1, 7), ("+I", 4, 7)]


def test_input_of_a_buffer_that_is_often_full_keeps_its_order(lake: Lake) -> None:
    table = make(lake, "input", write_buffer_size="1 b")
    with table.new_write() as write:
        for v in range(4):
            write.write([{"id": 1, "v": v, "w": 0}])
        table.new_commit("job", 1).commit(write.prepare_commit())
    assert told(table) == [("+I", 1, v) for v in range(4)]
    assert len(files(table)) == 4


def test_rows_that_the_table_ignores_are_not_told_of(lake: Lake) -> None:
    table = make(lake, "input", ignore_delete="true")
    put(table, (1, 1), (1, 1), kinds=["+I", "-D"])
    assert told(table) == [("+I", 1, 1)]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rows_before_and_after(lake: Lake, producer: str) -> None:
    table = make(lake, producer)
    put(table, (1, 1), (2, 1), (3, 1))
    assert told(table) == [("+I", 1, 1), ("+I", 2, 1), ("+I", 3, 1)]
    put(table, (1, 1), (2, 2), (2, 3), (3, 1), (4, 4), (9, 9), kinds=["+U", "+U", "+U", "-D", "+I", "-D"])
    changes = [("-U", 1, 1), ("+U", 1, 1), ("-U", 2, 1), ("+U", 2, 3), ("-D", 3, 1), ("+I", 4, 4)]
    assert told(table, 2) == changes
    assert newest(table).commit_kind.value == "COMPACT"
    assert newest(table).changelog_record_count == 6
    table.compact(full=True)
    assert told(table, 4) == []


@pytest.mark.parametrize(
    ("ignored", "count"), [({}, 2), ({"changelog_producer.row_deduplicate_ignore_fields": "w,v"}, 0)]
)
def test_updates_that_change_nothing(lake: Lake, ignored: dict[str, str], count: int) -> None:
    table = make(lake, "lookup", **{"changelog_producer.row_deduplicate": "true", **ignored})
    put(table, (1, 1), (2, 1))
    put(table, (1, 1), (2, 5))
    assert newest(table).changelog_record_count == (count or None)


@pytest.mark.parametrize(
    ("options", "kinds", "rows", "expected"),
    [
        ({"merge-engine": "aggregation", "remove": "true"}, ["-D", "+I"], [(1, 0), (1, 3)], 3),
        ({"merge-engine": "partial-update", "sequence.field": "w"}, ["+I", "+I"], [(2, 9), (4, None)], 5),
    ],
)
def test_rows_of_several_writes_are_folded_with_the_old_one(
    lake: Lake, options: dict[str, str], kinds: list[str], rows: list[tuple[int, int | None]], expected: int
) -> None:
    """A deletion removes the old row before another one comes; a row may be older than the stored one."""
    if options.pop("remove", None):
        options |= {"fields.v.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"}
    table = make(lake, "lookup", write_only="true", **options)
    table.write([{"id": 1, "v": 5, "w": 3}])
    table.compact()
    before = newest(table).id
    for (w, v), kind in zip(rows, kinds, strict=True):
        table.write([{"id": 1, "v": v, "w": w}], kinds=[kind])
    table.compact()
    assert [row["v"] for row in table.scan().to_arrow().to_pylist()] == [expected]
    assert told(table, before) == [("-U", 1, 5), ("+U", 1, expected)]


def test_a_full_compaction_tells_of_all_writes_before_it(lake: Lake) -> None:
    options = {"full-compaction.delta-commits": "3", "changelog-producer": "full-compaction", "bucket": "2"}
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options=options)
    put(table, (1, 1))
    put(table, (2, 1), (3, 1), (4, 1))
    assert told(table) == []
    put(table, (1, 2))
    assert {change[1] for change in told(table)} == {1, 2, 3, 4}


def test_names_formats_and_levels(lake: Lake) -> None:
    table = make(
        lake, "lookup", **{"changelog_file.prefix": "log-", "changelog_file.format": "orc", "file.format": "sst"}
    )
    put(table, (1, 1))
    ((name, level, rows),) = files(table)
    assert name.startswith("log-")
    assert name.endswith(".orc")
    assert (level, rows) == (5, 1)
    table.set_options({"changelog-file.format": "avro", "changelog-file.prefix": "l"})
    put(table, (2, 1))
    assert files(table)[-1][0].endswith(".avro")
    assert told(table, 2) == [("+I", 2, 1)]


def test_sst_has_no_changelogs(lake: Lake) -> None:
    table = make(lake, "input", **{"file.format": "sst"})
    put(table, (1, 1), (1, 2))
    assert files(table)[0][0].endswith(".parquet")
    assert told(table) == [("+I", 1, 1), ("+I", 1, 2)]


def test_an_overwrite_has_no_changelog(lake: Lake) -> None:
    table = make(lake, "input")
    put(table, (1, 1), (2, 1))
    put(table, (2, 2), mode="overwrite")
    assert newest(table).changelog_manifest_list is None
    assert stored(table, "/changelog-") == 1
    with table.new_write() as write:
        write.write([{"id": 7, "v": 7, "w": 0}])
        messages = write.prepare_commit()
    assert stored(table, "/changelog-") == 2
    table.new_commit("job", 1).overwrite().commit(messages)
    assert stored(table, "/changelog-") == 1
    assert told(table, 2) == [("-D", 2, 2), ("+I", 7, 7)]


def test_an_aborted_write_leaves_nothing(lake: Lake) -> None:
    table = make(lake, "input")
    write = table.new_write()
    write.write([{"id": 7, "v": 7, "w": 0}])
    table.new_commit("job", 1).abort(write.prepare_commit())
    assert stored(table, "/changelog-") == 0


@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_changelogs_expire_with_their_snapshots(lake: Lake, producer: str) -> None:
    table = make(lake, producer)
    for v in range(4):
        put(table, (1, v))
    table.remove_orphan_files("0 s")
    assert stored(table, "/changelog-") == 4
    table.expire_snapshots(1)
    assert stored(table, "/changelog-") == 1
    assert table.scan().to_arrow().num_rows == 1


def test_changelogs_that_are_kept_longer(lake: Lake) -> None:
    table = make(lake, "input", **{"changelog.num_retained.min": "50", "changelog.num_retained.max": "100"})
    for v in range(4):
        put(table, (1, v))
    table.expire_snapshots(1)
    assert [snapshot.id for snapshot in table.snapshots()] == [4]
    assert stored(table, "/bucket-0/changelog-") == 4
    table.remove_orphan_files("0 s")
    assert stored(table, "/bucket-0/changelog-") == 4
    (done,) = lake.sql("CALL sys.expire_changelogs('d.t', 2, 1)").to_arrow().to_pylist()
    count, removed = done.values()
    assert (count, removed > 0) == (2, True)
    assert stored(table, "/bucket-0/changelog-") == 2


def test_a_writer_of_single_rows(lake: Lake) -> None:
    lookup = make(lake, "lookup")
    with lookup.writer() as writer:
        writer.put({"id": 1, "v": 1, "w": 0})
        writer.flush()
        writer.put({"id": 1, "v": 2, "w": 0})
    assert told(lookup) == [("+I", 1, 1), ("-U", 1, 1), ("+U", 1, 2)]
    lake.drop_table("d.t")
    with pytest.raises(InvalidError, match="its changelog would lack the others"):
        make(lake, "input").writer()


def test_options_that_change_with_the_table(lake: Lake) -> None:
    """Rows that were there before a producer are told of once they rise; what follows from one version to the next is whole."""
    table = make(lake, "none", write_only="true")
    put(table, (1, 1), (2, 1))
    table.set_options({"changelog-producer": "full-compaction"})
    put(table, (1, 2))
    table.compact(full=True)
    table.set_options({"changelog-producer": "none"})
    put(table, (2, 2))
    state: dict[int, int] = {}
    for kind, id_, v in told(table):
        if kind in ("+I", "+U"):
            state[id_] = v
    assert state == {1: 2, 2: 2}


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_few_old_rows_are_looked_up_and_counted(lake: Lake, engine: str) -> None:
    table = make(lake, "lookup", merge_engine=engine, write_only="true")
    put(table, *((id_, 1) for id_ in range(100)))
    assert table.changelog_lag() == ChangelogLag(1, 100, created(table))
    table.compact()
    assert table.changelog_lag() == ChangelogLag(0, 0, None)
    put(table, (7, 2), (200, 2))
    seen: list[CompactionProgress] = []
    table.compact(progress=seen.append)
    assert told(table, 2) == [("-U", 7, 1), ("+U", 7, 2), ("+I", 200, 2)]
    assert (seen[-1].looked_up, seen[-1].found, seen[-1].changelog_rows) == (2, 1, 3)
    put(table, *((id_, 3) for id_ in range(100)))
    table.compact(progress=seen.append)
    assert (seen[-1].looked_up, seen[-1].found, seen[-1].changelog_rows) == (0, 0, 200)


def created(table: Table) -> int | None:
    return min(file.creation_ms for _, file in table.files() if file.creation_ms is not None)


@pytest.mark.parametrize("producer", ["none", "input"])
def test_no_lag_where_compaction_makes_no_changelog(lake: Lake, producer: str) -> None:
    table = make(lake, producer)
    put(table, (1, 1))
    assert table.changelog_lag() is None
