"""Every type, in every file format, written by each implementation and read by all."""

from __future__ import annotations

import pytest

from tests.conformance import every_type
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, READERS, Warehouse, same, spell_rows

FORMATS = ("parquet", "orc", "avro")


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("writer", [LAKELET, JAVA])
def test_every_type(warehouse: Warehouse, writer: str, file_format: str) -> None:
    chosen = every_type.columns(nanos=file_format != "avro")
    rows = every_type.rows(chosen)
    columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
    warehouse.create(writer, "t", columns, options={"file.format": file_format})
    warehouse.write(writer, "t", rows)
    expected = spell_rows(rows, warehouse.table("t").schema.fields)
    failures = []
    for reader in READERS:
        for name, _ in columns:
            try:
                same(warehouse.rows(reader, "t", columns=["id", name] if name != "id" else ["id"]), [{k:v for k,v in r.items() if k in ("id",name)} for r in expected], reader)
            except Exception as e:
                failures.append((reader, name, str(e)[:600]))
    print()
    for f in failures: print(*f)
    assert not failures
