"""An insert as a whole: all rows in one snapshot, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakelet.errors import InvalidError
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.transaction import IcebergTransaction
from lakelet.iceberg.write.leftovers import remove_files_of_job
from lakelet.iceberg.write.local_insert import insert_batches
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import WritePlan, write_plan
from tests.unit.iceberg.ice_tables import JOB, data_files, ice_table, spec_of, written

_SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "s", StringType()))
_SPEC = spec_of((2, IdentityTransform(), "s"))


def _rows(*ids: int | None) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "s": [f"p{number}" for number in range(len(ids))]})


def test_one_snapshot(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, _SPEC)
    transaction = IcebergTransaction(table)
    made = insert_batches(transaction, transaction.begin_insert(), [_rows(1, 2), _rows(3, 4, 5)])
    assert made is not None
    assert (made.added_files, made.added_rows) == (3, 5)
    found = table.reloaded().library
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert len(found.snapshots()) == 1


def test_nothing_to_insert(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, _SPEC)
    transaction = IcebergTransaction(table)
    assert insert_batches(transaction, transaction.begin_insert(), []) is None
    assert not table.reloaded().library.snapshots()


def test_rows_that_do_not_fit_leave_nothing(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, _SPEC)
    transaction = IcebergTransaction(table)
    with pytest.raises(InvalidError, match="'id': expected long, required, found NULL 1 time, first in row 3"):
        insert_batches(transaction, transaction.begin_insert(), [_rows(1, 2), _rows(3, None)])
    assert not data_files(tmp_path)
    assert not table.reloaded().library.snapshots()


def test_an_input_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield _rows(1, 2)
        raise KeyboardInterrupt

    table = ice_table(tmp_path, _SCHEMA, _SPEC)
    transaction = IcebergTransaction(table)
    with pytest.raises(KeyboardInterrupt):
        insert_batches(transaction, transaction.begin_insert(), broken())
    assert not data_files(tmp_path)
    assert not table.reloaded().library.snapshots()


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write.object-storage.enabled": "true"},
        {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"},
    ],
)
def test_files_of_lost_attempts(tmp_path: Path, properties: dict[str, str]) -> None:
    table = ice_table(tmp_path, _SCHEMA, _SPEC, properties=properties)
    plan = write_plan(table, JOB)
    kept, _ = (_written(plan, task) for task in ("0-0", "0-1"))
    others = written(table, [_rows(9)], job="99999999-2222-3333-4444-555555555555")
    stray = tmp_path / "db" / "t" / "data" / f"note-{JOB}-7.parquet"
    stray.write_bytes(b"")
    assert remove_files_of_job(plan, {data.file_path for data in kept}) == 2
    left = {f"file://{tmp_path}/{path}" for path in data_files(tmp_path)}
    assert left == {data.file_path for data in [*kept, *others]} | {f"file://{stray}"}
    assert remove_files_of_job(plan, ()) == 2


def _written(plan: WritePlan, task: str) -> list[CommitData]:
    writer = TableWriter(plan, task)
    writer.write(_rows(1, 2))
    return writer.close()


def test_a_table_without_data_has_no_leftovers(tmp_path: Path) -> None:
    assert remove_files_of_job(write_plan(ice_table(tmp_path, _SCHEMA), JOB), ()) == 0
