"""Which files writers may report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.errors import InternalError, InvalidError
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.transaction import IcebergTransaction
from tests.unit.iceberg.commit.tables import new_catalog, new_table

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
WRONG: dict[str, dict[str, Any]] = {
    "expected a file of DATA, found POSITION_DELETES": {"file_content": "POSITION_DELETES"},
    "expected a file of DATA, found EQUALITY_DELETES": {"file_content": "EQUALITY_DELETES"},
    r"ends in \.parquet": {"file_path": "file:///x/00000-a.metadata.json"},
    r"name that ends in \.parquet": {"file_path": "file:///x/snap-1.avro"},
    "expected partition spec 1, found 0": {"spec_id": 0},
    "expected 1 partition values, found 0": {"partition_values": ()},
    "expected 1 partition values, found 2": {"partition_values": (1, 2)},
    "expected rows, found 0 in 10": {"row_count": 0},
    "expected rows, found -1 in": {"row_count": -1},
    "expected rows, found 1 in 0": {"file_size": 0},
}


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_partitions"])
@pytest.mark.parametrize("reason", WRONG)
def test_what_is_no_data_file_is_refused_and_stays(tmp_path: Path, mode: str, reason: str) -> None:
    table = new_table(new_catalog(tmp_path), COLUMNS, {"day": "identity"})
    other = tmp_path / "other.parquet"
    other.write_bytes(b"another table's")
    transaction = IcebergTransaction(table)
    transaction.begin_insert(mode)
    right = CommitData(f"file://{other}", 1, 10, table.spec_id, (1,))
    with pytest.raises(InvalidError, match=f"table ice.shop.orders: file .*{reason}"):
        transaction.update_commit_data([right, replace(right, **WRONG[reason])])
    assert transaction.finish_insert() is None
    assert table.reloaded().snapshot_id() is None
    assert other.exists()


def test_a_file_that_is_told_of_twice(tmp_path: Path) -> None:
    table = new_table(new_catalog(tmp_path), COLUMNS, {"day": "identity"})
    transaction = IcebergTransaction(table)
    with pytest.raises(InternalError):
        transaction.update_commit_data([])
    transaction.begin_insert()
    one = CommitData("file:///x/a.parquet", 1, 10, table.spec_id, (1,))
    with pytest.raises(InvalidError, match="told of before"):
        transaction.update_commit_data([one, one])
    transaction.update_commit_data([one])
    with pytest.raises(InvalidError, match="told of before"):
        transaction.update_commit_data([one])
