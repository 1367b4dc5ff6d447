"""CALL sys.iceberg_* on tables of the lake's own catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelet
from lakelet.errors import InvalidError, NotFoundError
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.lexer.errors import SqlError
from tests.unit.iceberg.commit.tables import new_table, rows_of, write

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])


class Tables:
    """A lake with an Iceberg table of three small files."""

    def __init__(self, folder: Path) -> None:
        self.lake = lakelet.connect(str(folder))
        catalog = self.lake.catalogs.open("iceberg")
        catalog.create_namespace("shop")
        self.table: IcebergTable = new_table(catalog, COLUMNS, {"day": "identity"})
        self.made = [write(self.table, [{"id": number, "day": 1}]) for number in range(3)]

    def call(self, text: str) -> list[tuple[Any, ...]]:
        return self.lake.sql(f"CALL sys.{text}").rows()

    def ids(self, branch: str | None = None) -> list[object]:
        return sorted(one["id"] for one in rows_of(self.table, branch))  # type: ignore[type-var]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def test_compaction_and_manifests(tables: Tables) -> None:
    ((snapshot, rewritten, added, size),) = tables.call(
        "iceberg_compact(table => 'iceberg.shop.orders', min_input_files => 2, where => 'day = 1')"
    )
    assert (rewritten, added) == (3, 1)
    assert snapshot == tables.table.reloaded().metadata.current_snapshot_id
    assert size > 0
    assert tables.ids() == [0, 1, 2]
    write(tables.table, [{"id": 9, "day": 2}])
    assert tables.call("iceberg_rewrite_manifests('iceberg.shop.orders')")[0][1] >= 2
    assert tables.call("iceberg_rewrite_data_files('iceberg.shop.orders')") == [(None, 0, 0, 0)]


def test_expiry_and_orphans(tables: Tables) -> None:
    (row,) = tables.call("iceberg_expire_snapshots('iceberg.shop.orders', older_than => now(), retain_last => 2)")
    assert row[:3] == (1, 0, 0)
    assert tables.call("iceberg_remove_orphan_files(table => 'iceberg.shop.orders', dry_run => true)") == []
    number = tables.table.reloaded().library.snapshots()[0].snapshot_id
    assert tables.call(f"iceberg_expire_snapshots('iceberg.shop.orders', snapshot_id => {number})")[0][0] == 1
    assert tables.ids() == [0, 1, 2]


def test_branches_and_tags(tables: Tables) -> None:
    first = tables.made[0]
    assert first is not None
    assert tables.call(f"iceberg_create_tag('iceberg.shop.orders', 'v1', {first.id})") == [("v1", first.id)]
    head = tables.table.reloaded().metadata.current_snapshot_id
    assert tables.call("iceberg_create_branch('iceberg.shop.orders', 'dev')") == [("dev", head)]
    assert tables.call("iceberg_create_branch('iceberg.shop.orders', 'dev', if_not_exists => true)") == [("dev", head)]
    made = write(tables.table, [{"id": 9, "day": 2}], branch="dev")
    assert made is not None
    assert tables.ids("v1") == [0]
    assert tables.call("iceberg_fast_forward('iceberg.shop.orders', 'main', 'dev')") == [("main", made.id)]
    assert tables.ids() == [0, 1, 2, 9]
    assert tables.call(f"iceberg_rollback_to_snapshot('iceberg.shop.orders', {first.id})") == [(made.id, first.id)]
    assert tables.ids() == [0]
    assert tables.call("iceberg_drop_branch('iceberg.shop.orders', 'dev')") == [("dev",)]
    assert tables.call("iceberg_drop_branch('iceberg.shop.orders', 'dev', if_exists => true)") == []
    assert tables.call("iceberg_drop_tag('iceberg.shop.orders', 'v1')") == [("v1",)]


def test_a_branch_is_named_with_the_table(tables: Tables) -> None:
    tables.call("iceberg_create_branch('iceberg.shop.orders', 'dev')")
    tables.call("iceberg_compact('iceberg.shop.orders$branch_dev', min_input_files => 2)")
    assert tables.table.reloaded().metadata.refs["dev"] != tables.table.reloaded().metadata.refs["main"]
    assert tables.ids("dev") == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("iceberg_compact('shop.orders')", InvalidError, "catalog.database.table"),
        ("iceberg_compact('ice.shop.orders')", NotFoundError, "catalog 'ice'"),
        ("iceberg_compact('iceberg.shop.order')", NotFoundError, "orders"),
        ("iceberg_compact('iceberg.shop.orders$snapshots')", InvalidError, "system table"),
        ("iceberg_expire_snapshots('iceberg.shop.orders$branch_dev')", InvalidError, "without a branch"),
        ("iceberg_drop_branch('iceberg.shop.orders', 'main')", InvalidError, "cannot be dropped"),
        ("iceberg_drop_tag('iceberg.shop.orders', 'v9')", NotFoundError, "no tag 'v9'"),
        ("iceberg_create_branch('iceberg.shop.orders', 'a', 5)", NotFoundError, "no snapshot 5"),
        ("iceberg_fast_forward('iceberg.shop.orders', 'main', 'x')", NotFoundError, "no branch or tag 'x'"),
        ("iceberg_expire_snapshots('iceberg.shop.orders', retain_last => 0)", InvalidError, "from 1 on"),
        ("iceberg_compact('iceberg.shop.orders', target_file_bytes => 0)", InvalidError, "from 1 on"),
        ("iceberg_compact()", SqlError, "table"),
    ],
)
def test_refusals(tables: Tables, text: str, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        tables.call(text)
