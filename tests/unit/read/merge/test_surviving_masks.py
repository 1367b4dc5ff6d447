"""Which rows survive a merge is kept between reads, and never used for other files, rules or schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelet
from lakelet.cache.level import CacheLevel
from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.lsm.run_merge import surviving_rows
from lakelet.predicate.row_filter import row_filter
from lakelet.read.merge import merge_reader
from lakelet.storage.home import TableHome
from lakelet.table import Table
from tests.unit.read.key_value_table import KeyValueTable, schema_of_columns

Action = Callable[[Lake, Table], None]
COLUMNS = [("k", "BIGINT"), ("s", "STRING"), ("v", "INT"), ("seq", "INT")]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(str(tmp_path))
    found.create_database("d")
    return found


def made(lake: Lake, **options: str) -> Table:
    table = lake.create_table(
        "d.t", COLUMNS, primary_key=["k"], options={"bucket": "2", "write-only": "true", **options}
    )
    write(table, range(40), 1)
    write(table, range(10, 25), 2)
    write(table, range(20, 50), 3)
    return table


def write(table: Table, keys: range, version: int, **more: Any) -> None:
    numbers = list(keys)
    columns = {
        "k": pa.array(numbers, pa.int64()),
        "s": [f"{number}-{version}" for number in numbers],
        "v": pa.array([100 * version + number for number in numbers], pa.int32()),
        # Later versions have smaller numbers for every other key, for tables that order rows by it.
        "seq": pa.array([version if number % 2 else -version for number in numbers], pa.int32()),
    }
    table.write(pa.table({**columns, **more}))


def same_as_uncached(table: Table, columns: list[str] | None = None, where: str | None = None) -> int:
    names = columns or list(table.schema.names)
    cached, plain = (table.scan(names, where, cache=cache).to_arrow() for cache in (True, False))
    order = [(name, "ascending") for name in names]
    assert cached.sort_by(order).equals(plain.sort_by(order))
    batches = pa.Table.from_batches(table.scan(names, where).to_batches(), plain.schema)
    assert batches.sort_by(order).equals(plain.sort_by(order))
    assert table.scan(where=where).count() == plain.num_rows
    return int(plain.num_rows)


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows went through each merge of keys."""
    found: list[int] = []

    def counted(runs: Any, spec: Any, **more: Any) -> Any:
        found.append(sum(run.num_rows for run in runs))
        return surviving_rows(runs, spec, **more)

    monkeypatch.setattr(merge_reader, "surviving_rows", counted)
    return found


def test_keys_are_merged_once_whatever_the_columns(lake: Lake, merged: list[int]) -> None:
    table = made(lake)
    table.scan(["v"]).to_arrow()
    assert sum(merged) == 85
    for columns in (["v"], ["s", "v"], ["k"], ["v", "seq", "k"]):
        assert table.scan(columns).to_arrow().num_rows == 50
        assert sum(batch.num_rows for batch in table.scan(columns).to_batches()) == 50
    assert table.scan(["v"], "s <> '3-1'").to_arrow().num_rows == 49
    assert table.scan().count() == 50
    lake.sql("SELECT sum(v) FROM d.t").to_arrow()
    assert sum(merged) == 85


def test_a_commit_has_only_its_bucket_merged_again(lake: Lake, merged: list[int]) -> None:
    table = made(lake)
    rows = dict.fromkeys(range(2), 0)
    for path, file in table.files():
        rows[int(path.split("bucket-")[1].split("/")[0])] += file.row_count
    same_as_uncached(table)
    write(table, range(7, 8), 4)
    (path, _), *_ = [one for one in table.files() if one[1].row_count == 1]
    bucket = int(path.split("bucket-")[1].split("/")[0])
    merged.clear()
    table.scan(["v"]).to_arrow()
    assert merged == [rows[bucket] + 1]
    same_as_uncached(table)


def test_a_condition_on_the_key_reads_what_it_needs(lake: Lake) -> None:
    table = made(lake)
    for _ in range(2):
        assert same_as_uncached(table, ["v"], "k BETWEEN 12 AND 22") == 11
        assert same_as_uncached(table, ["v"], "k = 22 AND v > 300") == 1
        assert same_as_uncached(table, ["v"]) == 50


def _rollback_and_commit(lake: Lake, table: Table) -> None:
    table.rollback(2)
    write(table, range(5, 30), 9)


def _recreate(lake: Lake, table: Table) -> None:
    lake.drop_table("d.t")
    again = made(lake)
    again.delete(where="k < 13")


def _compact(lake: Lake, table: Table) -> None:
    table.compact(full=True)


def _delete(lake: Lake, table: Table) -> None:
    table.delete(where="k % 3 = 0")
    write(table, range(3, 5), 5)


def _branch(lake: Lake, table: Table) -> None:
    table.tags.create("base")
    table.branches.create("b", tag="base")
    other = table.on_branch("b")
    write(other, range(15, 35), 6)
    same_as_uncached(other)
    table.branches.fast_forward("b")


def _overwrite(lake: Lake, table: Table) -> None:
    table.write(table.scan().to_arrow().slice(0, 9), mode="overwrite")


def _schema(lake: Lake, table: Table) -> None:
    lake.sql("ALTER TABLE d.t ADD COLUMN extra INT")
    same_as_uncached(table)
    lake.sql("ALTER TABLE d.t RENAME COLUMN v TO w")
    same_as_uncached(table)
    lake.sql("ALTER TABLE d.t ALTER COLUMN w TYPE BIGINT")
    same_as_uncached(table)
    lake.sql("ALTER TABLE d.t DROP COLUMN s")


def _expire(lake: Lake, table: Table) -> None:
    table.compact(full=True)
    write(table, range(2, 6), 7)
    table.expire_snapshots(1)


ACTIONS = {
    "rolled back and committed to the same id": _rollback_and_commit,
    "dropped and created again": _recreate,
    "compacted": _compact,
    "deleted from": _delete,
    "a branch": _branch,
    "overwritten": _overwrite,
    "another schema": _schema,
    "expired": _expire,
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    "options",
    [{}, {"sequence.field": "seq"}, {"deletion-vectors.enabled": "true"}],
    ids=["plain", "sequence", "vectors"],
)
def test_a_table_that_changes_is_read_as_without_a_cache(lake: Lake, action: str, options: dict[str, str]) -> None:
    if "deletion-vectors.enabled" in options:
        options = {**options, "write-only": "false"}
    table = made(lake, **options)
    for _ in range(2):
        same_as_uncached(table)
    ACTIONS[action](lake, table)
    for _ in range(2):
        same_as_uncached(table)


@pytest.mark.parametrize(
    "changed", [{"ignore-delete": "true"}, {"sequence.field": "seq"}, {"rowkind.field": "s"}], ids=str
)
def test_the_rules_of_the_merge_are_part_of_what_is_kept(lake: Lake, changed: dict[str, str]) -> None:
    """By hand, since some of them cannot be changed by ALTER: schemas that differ in their options alone."""
    table = made(lake)
    table.delete([{"k": 4}, {"k": 21}])
    plan = table.scan().plan()
    found = []
    for home in (table.home, table.home.uncached()):
        for schema in (table.schema, replace(table.schema, options={**table.schema.options, **changed})):
            versions = SchemaVersions(home, {schema.id: schema})
            reader = merge_reader.MergeReader(home, schema, ["k", "v"], row_filter(None, schema.fields), versions)
            found.append(sorted(map(tuple, (row.values() for row in reader.table(plan.splits).to_pylist()))))
    cached, cached_changed, plain, plain_changed = found
    assert (cached, cached_changed) == (plain, plain_changed)
    assert changed == {"rowkind.field": "s"} or plain != plain_changed


def test_other_files_of_the_same_size_are_other_files(lake: Lake) -> None:
    """Rolled back and committed again: the same ids, sequence numbers and numbers of rows."""
    table = lake.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    write(table, range(10, 40), 1)
    for first in (10, 20, 25, 10):
        write(table, range(first, first + 15), 2)
        for _ in range(2):
            assert same_as_uncached(table) == max(30, first + 5)
        table.rollback(1)


class _Values(dict[tuple[object, ...], Any]):
    """Values that are kept for good."""

    max_bytes = 1 << 20

    def put(self, name: tuple[object, ...], value: object, nbytes: int) -> None:
        self[name] = value


class _Source:
    """A metadata source that only keeps values."""

    def __init__(self) -> None:
        self.values = _Values()

    def kept(self, home: TableHome) -> _Values:
        return self.values


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_that_a_deletion_vector_hides_are_no_part_of_what_is_kept(*, ordered: bool) -> None:
    table = KeyValueTable(schema_of_columns({"k": "INT", "v": "INT"}, ["k"]))
    file = table.write([(number, 0, {"k": number, "v": 0}) for number in range(9)])
    table.write([(number, 0, {"k": number, "v": 1}) for number in range(6, 12)])
    home = replace(table.home, metadata=_Source())  # type: ignore[arg-type]

    def read(where: TableHome) -> list[tuple[int, int]]:
        schema = table.schema
        reader = merge_reader.MergeReader(
            where, schema, ["k", "v"], row_filter(None, schema.fields), table.schema_of, ordered=ordered
        )
        return sorted(tuple(row.values()) for row in reader.table([table.split()]).to_pylist())

    for hidden in ([1], [1, 4, 7], []):
        if hidden:
            table.hide(file, hidden)
        else:
            table.vectors.clear()
        for _ in range(2):
            assert read(home) == read(table.home)
            assert len(read(home)) == 12 - len([place for place in hidden if place < 6])


def test_without_room_nothing_is_kept_and_rows_are_the_same(tmp_path: Path, merged: list[int]) -> None:
    lake = lakelet.connect(str(tmp_path), {"cache.partition.max-bytes": "2 kb"})
    lake.create_database("d")
    table = made(lake)
    for _ in range(2):
        assert same_as_uncached(table, ["v"]) == 50
        assert lake.cache.tiers[CacheLevel.PARTITION].nbytes <= 2048
    assert len(merged) > 4


def test_the_size_of_what_is_kept_is_counted(lake: Lake) -> None:
    table = made(lake)
    table.scan(["v"]).plan()
    before = lake.cache.tiers[CacheLevel.PARTITION].nbytes
    table.scan(["v"]).to_arrow()
    rows = sum(file.row_count for _, file in table.files())
    # A bit for each row, and what names the files.
    assert rows // 8 < lake.cache.tiers[CacheLevel.PARTITION].nbytes - before < 10_000
