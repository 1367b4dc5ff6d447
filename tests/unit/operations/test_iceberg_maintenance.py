"""Maintenance, refs and rollback of Iceberg tables as operations."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.iceberg.table import IcebergTable
from lakelet.operations.iceberg_maintenance import (
    ExpireIcebergSnapshots,
    RemoveIcebergOrphans,
    RewriteDataFiles,
    expire_iceberg_snapshots,
    remove_iceberg_orphans,
    rewrite_iceberg_data_files,
    rewrite_iceberg_manifests,
)
from lakelet.operations.iceberg_refs import (
    CreateRef,
    create_iceberg_branch,
    create_iceberg_tag,
    drop_iceberg_branch,
    drop_iceberg_tag,
    fast_forward_iceberg_branch,
    roll_back_iceberg_table,
)
from tests.unit.iceberg.commit.tables import new_table, rows_of, write

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergTable:
    catalog = lakelet.connect(str(tmp_path)).catalogs.open("iceberg")
    catalog.create_namespace("shop")
    table = new_table(catalog, COLUMNS, {"day": "identity"})
    for number in range(3):
        write(table, [{"id": number, "day": 1}])
    return table


def test_files_are_rewritten_and_snapshots_expire(iceberg: IcebergTable) -> None:
    done = rewrite_iceberg_data_files(iceberg, RewriteDataFiles(min_input_files=2))
    assert (done.rewritten_files, done.added_files) == (3, 1)
    assert rewrite_iceberg_data_files(iceberg.reloaded(), RewriteDataFiles()).snapshot is None
    rewrite_iceberg_manifests(iceberg.reloaded())
    expired = expire_iceberg_snapshots(iceberg.reloaded(), ExpireIcebergSnapshots(older_than="0 s", retain_last=1))
    assert expired.removed_files == 3
    assert sorted(one["id"] for one in rows_of(iceberg.reloaded())) == [0, 1, 2]  # type: ignore[type-var]
    assert remove_iceberg_orphans(iceberg.reloaded(), RemoveIcebergOrphans(dry_run=True)).paths == ()


def test_refs_and_rollback(iceberg: IcebergTable) -> None:
    oldest, _, newest = (one.snapshot_id for one in iceberg.reloaded().metadata.snapshots)
    assert create_iceberg_branch(iceberg, CreateRef("dev", oldest)) == oldest
    assert create_iceberg_tag(iceberg.reloaded(), CreateRef("eod")) == newest
    assert fast_forward_iceberg_branch(iceberg.reloaded(), "dev", "main") == newest
    assert drop_iceberg_branch(iceberg.reloaded(), "dev")
    assert drop_iceberg_tag(iceberg.reloaded(), "eod")
    assert not drop_iceberg_tag(iceberg.reloaded(), "eod", if_exists=True)
    assert roll_back_iceberg_table(iceberg.reloaded(), oldest) == newest
