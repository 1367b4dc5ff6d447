"""Tables that Java wrote and compacted are found whole by a check, and a damaged file of one is named."""

from __future__ import annotations

import pytest

from tests.conformance.tables import DATABASE, JAVA, Warehouse
from tests.conformance.versions.test_cleaning import KINDS, make, rows


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("kind", ["append", "keyed", "dynamic", "deletion vectors"])
def test_tables_of_java_are_found_whole(warehouse: Warehouse, kind: str, file_format: str) -> None:
    assert kind in KINDS
    make(warehouse, kind, **{"file.format": file_format})
    for step in range(4):
        warehouse.write(JAVA, "t", rows(step))
    table = warehouse.lake.table(f"{DATABASE}.t")
    report = table.check()
    assert report.damages == ()
    assert report.data_files > 0
    path = warehouse.path("t") / table.files()[0][0].split("/", 2)[2]
    path.write_bytes(path.read_bytes()[:-3])
    assert [damage.path.rsplit("/", 1)[-1] for damage in table.check().damages] == [path.name]
