"""Which version a read in Spark means; no session is needed for that."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakelet.errors import NotFoundError
from lakelet.spark.iceberg.table_frame import planned
from tests.unit.iceberg.ice_tables import ice_table


def test_a_number_in_a_text_is_a_tag_before_it_is_a_snapshot(tmp_path: Path) -> None:
    table = ice_table(tmp_path, Schema(NestedField(1, "id", LongType())))
    table.library.append(pa.table({"id": [1]}))
    first = table.reloaded().snapshot_id()
    assert first is not None
    table.library.manage_snapshots().create_tag(first, "20260101").commit()
    table.library.append(pa.table({"id": [2]}))
    now = table.reloaded()
    assert planned(now, version="20260101").scan.snapshot_id == first
    assert planned(now, version=str(first)).scan.snapshot_id == first
    assert planned(now).scan.snapshot_id != first
    for missing in ("20260102", "²"):
        with pytest.raises(NotFoundError, match=missing):
            planned(now, version=missing)
