"""What each procedure does to a table, and its result rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.model.snapshot import CommitKind
from lakelet.sql.context import Context
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import words_of
from lakelet.sql.procedures.call import run_call
from lakelet.sql.statement import Statement
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.sql.relation_rows import system_rows
from tests.unit.versioned_table import HOUR_MS, START_MS, SetClock, ids, put, table_on

DAY_MS = 24 * HOUR_MS


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore, clock: SetClock) -> Table:
    return table_on(store, clock, 3)


@pytest.fixture
def lake(store: MemoryStore, clock: SetClock, table: Table) -> Lake:
    return Lake(store, clock=clock)


def result(lake: Lake, text: str) -> SqlResult:
    text = f"CALL sys.{text}"
    return run_call(Context(lake), Statement(WordReader(text, words_of(text))))


def call(lake: Lake, text: str) -> list[tuple[Any, ...]]:
    return result(lake, text).rows()


def keyed(lake: Lake, name: str = "d.k", **options: str) -> Table:
    table = lake.create_table(
        name,
        [("id", "INT"), ("p", "INT"), ("v", "INT")],
        primary_key=["id", "p"],
        partitioned_by=["p"],
        options={"bucket": "1", "write-only": "true"} | options,
    )
    for step in range(3):
        table.write([{"id": i, "p": i % 3, "v": step} for i in range(9)])
    return table


def levels(table: Table) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for path, file in table.files():
        found.setdefault(path.split("/")[-3], set()).add(file.level)
    return found


class TestCompact:
    def test_is_full_unless_told_otherwise(self, lake: Lake) -> None:
        table = keyed(lake)
        assert call(lake, "compact('d.k', compact_strategy => 'minor')") == [(None, 0, 0, 0)]
        stored = sum(file.size for _, file in table.files())
        ((number, rows, read, written),) = call(lake, "compact('d.k')")
        assert (number, rows, read) == (4, 27, stored)
        assert written == sum(file.size for _, file in table.files())
        assert levels(table) == {"p=0": {5}, "p=1": {5}, "p=2": {5}}
        assert result(lake, "compact('d.k')").message == "d.k: there was nothing to compact"

    @pytest.mark.parametrize(
        "narrowed", ["'p=0;p=2'", "where => 'p <> 1'", "partitions => 'p=0;p=2', options => 'num-levels=6'"]
    )
    def test_of_some_partitions(self, lake: Lake, narrowed: str) -> None:
        table = keyed(lake)
        call(lake, f"compact('d.k', {narrowed})")
        assert levels(table) == {"p=0": {5}, "p=1": {0}, "p=2": {5}}

    def test_of_idle_partitions(self, lake: Lake, clock: SetClock) -> None:
        table = keyed(lake)
        clock.now += DAY_MS
        table.write([{"id": 1, "p": 1, "v": 9}])
        call(lake, "compact('d.k', partition_idle_time => '1 h')")
        assert levels(table) == {"p=0": {5}, "p=1": {0}, "p=2": {5}}

    def test_with_options_for_once(self, lake: Lake) -> None:
        table = keyed(lake)
        call(lake, "compact('d.k', options => 'num-levels=4')")
        assert levels(table)["p=0"] == {3}
        assert "num-levels" not in table.options

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("'p=0', where => 'p = 1'", "partitions or where, and not both"),
            ("'q=0'", "partition column 'q' is not a partition key"),
            ("'p=x'", "partition value 'x' is no INT"),
            ("where => 'v = 1'", "v"),
            ("where => 'p ='", "where"),
            ("order_strategy => 'zorder', order_by => 'v'", "has a primary key"),
            ("order_strategy => 'zorda'", "order_strategy 'zorda': expected none, order"),
            ("compact_strategy => 'some'", "compact_strategy 'some': expected full or minor"),
            ("options => 'no.such=1'", "unknown table option 'no.such'"),
        ],
    )
    def test_refuses(self, lake: Lake, arguments: str, message: str) -> None:
        table = keyed(lake)
        with pytest.raises(InvalidError, match=message):
            call(lake, f"compact('d.k', {arguments})")
        assert len(table.snapshots()) == 3

    def test_where_needs_partitions(self, lake: Lake) -> None:
        with pytest.raises(InvalidError, match="no partitions to choose from"):
            call(lake, "compact('d.t', where => 'id = 1')")


def test_compact_database(lake: Lake) -> None:
    lake.create_database("e")
    for name in ("d.k", "e.k1", "e.k2", "e.skip"):
        keyed(lake, name)
    assert call(lake, "compact_database('e', excluding_tables => 'e.sk.*')") == [("e", "k1", 4), ("e", "k2", 4)]
    assert call(lake, "compact_database(including_tables => 'k|e.k1', mode => 'combined')") == [
        ("d", "k", 4),
        ("e", "k1", None),
    ]
    with pytest.raises(InvalidError, match="mode 'x': expected divided or combined"):
        call(lake, "compact_database(mode => 'x')")


def test_compact_manifest(lake: Lake, table: Table) -> None:
    ((number,),) = call(lake, "compact_manifest('d.t')")
    assert number == table.snapshots()[-1].id == 4
    assert call(lake, "compact_manifest('d.t')") == [(None,)]


def test_rescale(lake: Lake) -> None:
    table = keyed(lake)
    ((number,),) = call(lake, "rescale('d.k', 3, 'p=1')")
    assert [row["total_buckets"] for row in system_rows(lake, "d.k$partitions")] == [1, 3, 1]
    assert number == 4
    ((number,),) = call(lake, "rescale('d.k')")
    assert (number, table.options["bucket"]) == (5, "3")
    assert call(lake, "rescale('d.k')") == [(None,)]
    with pytest.raises(InvalidError, match="say bucket_num"):
        call(lake, "rescale('d.t')")


class TestTags:
    def test_create(self, lake: Lake, table: Table) -> None:
        assert call(lake, "create_tag('d.t', 'new')") == [("new", 3)]
        assert call(lake, "create_tag(`table` => 'd.t', tag => 'old', snapshot => 1, time_retained => '1 d')") == [
            ("old", 1)
        ]
        assert table.tags.get("old").time_retained == timedelta(days=1)
        with pytest.raises(AlreadyExistsError, match="'new' exists"):
            call(lake, "create_tag('d.t', 'new')")
        assert call(lake, "create_tag('d.t', 'new', 1, if_not_exists => true)") == [("new", 3)]
        with pytest.raises(NotFoundError, match="snapshot 9"):
            call(lake, "create_tag('d.t', 'x', 9)")

    def test_create_from_times(self, lake: Lake, table: Table) -> None:
        second = table.snapshots()[1].time_ms
        assert call(lake, f"create_tag_from_timestamp('d.t', 'a', {second})") == [("a", 2)]
        assert call(lake, f"create_tag_from_timestamp('d.t', 'b', {second + 1}, '1 h')") == [("b", 3)]
        assert call(lake, "create_tag_from_timestamp('d.t', 'c', TIMESTAMP '2027-01-15 08:00:00')") == [("c", 1)]
        with pytest.raises(NotFoundError, match="no snapshot made at"):
            call(lake, "create_tag_from_timestamp('d.t', 'd', '2030-01-01')")
        put(table, 4, watermark=100)
        put(table, 5, watermark=200)
        assert call(lake, "create_tag_from_watermark('d.t', 'e', 101)") == [("e", 5)]
        with pytest.raises(NotFoundError, match="watermark of 201"):
            call(lake, "create_tag_from_watermark('d.t', 'f', 201)")

    def test_replace_and_rename(self, lake: Lake, table: Table) -> None:
        table.tags.create("a", 1, time_retained="1 d")
        assert call(lake, "replace_tag('d.t', 'a', time_retained => '2 h')") == [("a", 1)]
        assert table.tags.get("a").time_retained == timedelta(hours=2)
        assert call(lake, "replace_tag('d.t', 'a', snapshot_id => 2)") == [("a", 2)]
        assert call(lake, "rename_tag('d.t', 'a', 'b')") == [("b", 2)]
        with pytest.raises(NotFoundError, match="'a'"):
            call(lake, "replace_tag('d.t', 'a')")

    def test_delete_several_or_none(self, lake: Lake, table: Table) -> None:
        for name in "abc":
            table.tags.create(name)
        with pytest.raises(NotFoundError, match="'x'"):
            call(lake, "delete_tag('d.t', 'a,x')")
        assert call(lake, "delete_tag('d.t', 'a, b')") == [("a",), ("b",)]
        assert table.tag_names() == ["c"]

    def test_expire(self, lake: Lake, table: Table, clock: SetClock) -> None:
        table.tags.create("short", time_retained="1 h")
        table.tags.create("long", time_retained="9 d")
        clock.now += 2 * DAY_MS
        assert call(lake, "expire_tags('d.t')") == [("short",)]
        assert call(lake, "expire_tags('d.t', older_than => '3 d')") == []
        assert call(lake, "expire_tags('d.t', older_than => INTERVAL 1 DAY)") == [("long",)]

    def test_automatic_ones(self, lake: Lake, table: Table) -> None:
        table.set_options({"tag.automatic-creation": "process-time", "tag.creation-period": "daily"})
        assert call(lake, "trigger_tag_automatic_creation('d.t')") == [(name,) for name in table.tag_names()]
        assert table.tag_names()


class TestBranches:
    def test_from_first_to_last(self, lake: Lake, table: Table) -> None:
        table.tags.create("one", 1)
        assert call(lake, "create_branch('d.t', 'dev', 'one')") == [("dev",)]
        assert ids(table.on_branch("dev")) == [1]
        with pytest.raises(AlreadyExistsError, match="dev"):
            call(lake, "create_branch('d.t', 'dev')")
        call(lake, "create_branch('d.t', 'dev', ignoreIfExists => true)")
        put(table.on_branch("dev"), 77)
        assert call(lake, "rename_branch('d.t', from_branch => 'dev', to_branch => 'next')") == [("next",)]
        assert call(lake, "fast_forward('d.t', 'next')") == [(2,)]
        assert ids(table) == [1, 77]
        call(lake, "create_branch('d.t', 'other', snapshot_id => 2)")
        with pytest.raises(NotFoundError, match="no branch 'nxt'; did you mean next"):
            call(lake, "delete_branch('d.t', 'other,nxt')")
        assert call(lake, "delete_branch('d.t', 'other,next')") == [("other",), ("next",)]
        assert table.branches.list() == []

    def test_procedures_on_a_branch(self, lake: Lake, table: Table) -> None:
        table.branches.create("dev")
        put(table.on_branch("dev"), 5)
        assert call(lake, "create_tag('d.t$branch_dev', 'here')") == [("here", 1)]
        assert (table.tag_names(), table.on_branch("dev").tag_names()) == ([], ["here"])


class TestRollback:
    @pytest.mark.parametrize(
        "text",
        [
            "rollback('d.t', 2)",
            "rollback('d.t', '2')",
            "rollback('d.t', version => 'two')",
            "rollback(table => 'd.t', tag => 'two')",
            "rollback(table => 'd.t', snapshot => 2)",
            "rollback_to('d.t', 2)",
            "rollback_to('d.t', 'two')",
            "rollback_to(`table` => 'd.t', snapshot_id => 2)",
            "rollback_to(`table` => 'd.t', tag => 'two')",
            "rollback_to_tag('d.t', 'two')",
            "rollback_to_timestamp('d.t', TIME)",
            "rollback_to_watermark('d.t', 250)",
        ],
    )
    def test_every_way(self, store: MemoryStore, clock: SetClock, text: str) -> None:
        table = table_on(store, clock)
        for number in (1, 2, 3):
            put(table, number, watermark=number * 100)
        table.tags.create("two", 2)
        lake = Lake(store, clock=clock)
        assert call(lake, text.replace("TIME", str(table.snapshots()[1].time_ms))) == [(2,)]
        assert ids(table) == [1, 2]

    def test_refuses(self, lake: Lake, table: Table) -> None:
        for text in ("rollback('d.t')", "rollback('d.t', 1, 2)", "rollback_to('d.t', 1, 'x')"):
            with pytest.raises(InvalidError, match="a rollback needs one of version, snapshot and tag"):
                call(lake, text)
        for text in ("rollback('d.t', 9)", "rollback_to_tag('d.t', '2')", "rollback_to_watermark('d.t', 5)"):
            with pytest.raises(NotFoundError):
                call(lake, text)
        assert ids(table) == [1, 2, 3]


class TestExpiry:
    def test_snapshots(self, lake: Lake, table: Table) -> None:
        ((count, files, kept_by),) = call(lake, "expire_snapshots('d.t', 2, dry_run => true)")
        assert (count, files) == (1, 0)
        assert "number" in kept_by
        assert call(lake, "expire_snapshots('d.t', 2)")[0][0] == 1
        assert [one.id for one in table.snapshots()] == [2, 3]
        assert call(lake, "expire_snapshots('d.t', retain_max => 1, max_deletes => 1)")[0][0] == 1

    def test_snapshots_by_age(self, lake: Lake, table: Table, clock: SetClock) -> None:
        clock.now += DAY_MS
        put(table, 4)
        expired = "expire_snapshots('d.t', older_than => '2 h', retain_min => 1, options => 'snapshot.expire.limit=1')"
        assert [call(lake, expired)[0][0] for _ in range(3)] == [1, 1, 0]
        assert [one.id for one in table.snapshots()] == [3, 4]
        with pytest.raises(InvalidError, match="unknown table option"):
            call(lake, "expire_snapshots('d.t', options => 'x=1')")

    def test_partitions(self, lake: Lake, clock: SetClock) -> None:
        table = lake.create_table("d.days", [("id", "INT"), ("dt", "STRING")], partitioned_by=["dt"])
        table.write([{"id": 1, "dt": "2027.01.01"}, {"id": 2, "dt": "2027.01.14"}])
        text = "expire_partitions('d.days', '7 d', timestamp_formatter => 'yyyy.MM.dd'"
        assert call(lake, f"{text}, dry_run => true)") == [("dt=2027.01.01", None)]
        assert call(lake, f"{text})") == [("dt=2027.01.01", 2)]
        assert call(lake, f"{text})") == []
        assert table.scan().to_arrow().column("id").to_pylist() == [2]
        assert table.options == {}
        clock.now = START_MS + 30 * DAY_MS
        assert call(lake, "expire_partitions('d.days', '7 d', expire_strategy => 'update-time')") == [
            ("dt=2027.01.14", 3)
        ]
        with pytest.raises(InvalidError, match=r"partition\.expiration-time"):
            call(lake, "expire_partitions('d.days')")

    def test_orphans(self, lake: Lake, table: Table, store: MemoryStore, clock: SetClock) -> None:
        store.put("d.db/t/bucket-0/data-lost.parquet", b"123")
        clock.now = 4_000_000_000_000
        for name in ("'d.t'", "'d.*'"):
            assert call(lake, f"remove_orphan_files({name}, older_than => '1 d', dry_run => true)") == [
                ("d.t", 1, 3, 0, 0)
            ]
        ((name, count, size, *_),) = call(lake, "remove_orphan_files('d.t')")
        assert (name, count, size) == ("d.t", 1, 3)
        assert store.head("d.db/t/bucket-0/data-lost.parquet") is None
        with pytest.raises(InvalidError, match="mode 'x'"):
            call(lake, "remove_orphan_files('d.t', mode => 'x')")
        with pytest.raises(NotFoundError, match="database 'e'"):
            call(lake, "remove_orphan_files('e.*')")


def test_remove_unexisting_files(lake: Lake, table: Table, store: MemoryStore) -> None:
    assert call(lake, "remove_unexisting_files('d.*')") == []
    (lost, _), *_ = table.files()
    store.delete([lost])
    row = ("d.t", f"{store.location}/{lost}")
    assert call(lake, "remove_unexisting_files('d.t', dry_run => true)") == [(*row, None)]
    assert call(lake, "remove_unexisting_files('d.t')") == [(*row, 4)]
    assert ids(table) == [2, 3]


class TestMaintenance:
    def test_repair(self, lake: Lake, table: Table, store: MemoryStore) -> None:
        store.put("d.db/t/snapshot/LATEST", b"1")
        lake.create_table("d.u", [("id", "INT")])
        assert call(lake, "repair('d.t')") == [("d.t", 1, 3, 1)]
        assert call(lake, "repair()") == [("d.t", 1, 3, 0), ("d.u", None, None, 0)]
        assert call(lake, "repair(database_or_table => 'd,d.u')")[2] == ("d.u", None, None, 0)
        with pytest.raises(NotFoundError):
            call(lake, "repair('d.x')")

    def test_consumers(self, lake: Lake, table: Table) -> None:
        assert call(lake, "reset_consumer('d.t', 'a1', 2)") == [("a1", 2)]
        call(lake, "reset_consumer(table => 'd.t', consumerId => 'a2', nextSnapshotId => 1)")
        call(lake, "reset_consumer('d.t', 'b', 3)")
        assert call(lake, "reset_consumer('d.t', 'b')") == [("b", None)]
        with pytest.raises(NotFoundError, match="no consumer 'a'; did you mean a"):
            call(lake, "reset_consumer('d.t', 'a')")
        assert call(lake, "clear_consumers('d.t', 'a.*', 'a1')") == [("a2",)]
        assert call(lake, "clear_consumers('d.t')") == [("a1",)]
        assert table.consumers.list() == []

    def test_analyze(self, lake: Lake, table: Table) -> None:
        ((number, rows, size),) = call(lake, "analyze('d.t', 'id')")
        assert (number, rows, size > 0) == (4, 3, True)
        found = table.statistics()
        assert found is not None
        assert list(found.columns) == ["id"]
        lake.create_table("d.u", [("id", "INT")])
        assert call(lake, "analyze('d.u')") == [(None, None, None)]
        with pytest.raises(NotFoundError, match="'x'"):
            call(lake, "analyze('d.t', 'x')")


class TestCopy:
    def test_makes_a_table_alike(self, lake: Lake) -> None:
        table = keyed(lake)
        with pytest.raises(NotFoundError, match="database 'e'"):
            call(lake, "copy('d.k', 'e.copy')")
        lake.create_database("e")
        assert call(lake, "copy('d.k', 'E.copy', 'p < 2')") == [(1, 6)]
        copied = lake.table("e.copy")
        assert (copied.schema.primary_keys, copied.options) == (table.schema.primary_keys, table.options)
        assert copied.scan(columns=["v"]).to_arrow().column("v").to_pylist() == [2] * 6

    def test_into_a_table_that_is_there(self, lake: Lake, table: Table) -> None:
        lake.create_table("d.u", [("id", "BIGINT"), ("p", "STRING")])
        assert call(lake, "copy('d.t', 'd.u', version => 2)") == [(1, 2)]
        assert call(lake, "copy('d.t', 'd.u', columns => 'id')") == [(2, 3)]
        assert ids(lake.table("d.u")) == [1, 1, 2, 2, 3]
        assert call(lake, "copy('d.t', 'd.u', overwrite => true)") == [(3, 3)]
        assert ids(lake.table("d.u")) == [1, 2, 3]
        assert lake.table("d.u").snapshots()[-1].commit_kind is CommitKind.OVERWRITE

    def test_refuses(self, lake: Lake) -> None:
        keyed(lake)
        with pytest.raises(InvalidError, match="without its key columns id"):
            call(lake, "copy('d.k', 'd.new', columns => 'p,v')")
        with pytest.raises(InvalidError, match="into itself"):
            call(lake, "copy('d.k', 'D.K')")
        with pytest.raises(InvalidError, match="found that of a branch or a system table"):
            call(lake, "copy('d.k', 'd.k$branch_x')")
        assert lake.tables("d") == ["k", "t"]


class TestMigrate:
    def test_adopts_a_folder(self, tmp_path: Path) -> None:
        lake = connect(str(tmp_path / "warehouse"))
        lake.create_database("d")
        folder = tmp_path / "events"
        for day in (1, 2):
            (folder / f"dt=2026-01-0{day}").mkdir(parents=True)
            rows = pa.table({"id": pa.array([day, day + 10], pa.int64())})
            pq.write_table(rows, folder / f"dt=2026-01-0{day}" / "part.parquet")
        text = f"migrate_table(connector => 'parquet', source_table => '{folder}', target_table => 'd.t', "
        assert call(lake, f"{text} partitioned_by => 'dt DATE', options => 'file.compression=zstd')") == [(1, 2, 4)]
        table = lake.table("d.t")
        assert [str(field.type) for field in table.schema.fields] == ["BIGINT", "DATE"]
        assert table.options["file.compression"] == "zstd"
        assert sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == [1, 2, 11, 12]
        assert not list(folder.rglob("*.parquet"))
        assert call(lake, f"migrate(source => '{folder}', target => 'd.t')") == [(None, 0, 0)]

    def test_refuses(self, tmp_path: Path) -> None:
        lake = connect(str(tmp_path / "warehouse"))
        lake.create_database("d")
        with pytest.raises(NotFoundError, match="is no folder"):
            call(lake, f"migrate(source => '{tmp_path}/none', target => 'd.t')")
        with pytest.raises(InvalidError, match="connector 'hive': expected 'parquet'"):
            call(lake, "migrate('hive', 'db.t', 'd.t')")
        with pytest.raises(NotFoundError, match="database 'x'"):
            call(lake, f"migrate(source => '{tmp_path}', target => 'x.t')")
        assert lake.tables("d") == []
