"""The files that Lakelet writes for a primary-key table, beside those that Java writes for the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conformance import every_type
from tests.conformance.tables import JAVA, LAKELET, Rows, Warehouse

COLUMNS = [("v", "DOUBLE"), ("id", "BIGINT"), ("s", "STRING"), ("k", "STRING"), ("p", "INT")]
LAYOUTS: dict[str, dict[str, str]] = {
    "fixed": {"bucket": "2"},
    "thin": {"bucket": "2", "data-file.thin-mode": "true"},
    "dynamic": {"dynamic-bucket.target-row-num": "4"},
    "sequenced": {"bucket": "1", "sequence.field": "v"},
}
# What of `$files` is decided by the rows alone.
SAME = (
    *(
        "partition",
        "bucket",
        "file_format",
        "schema_id",
        "level",
        "record_count",
        "min_key",
        "max_key",
        "null_value_counts",
    ),
    *(
        "min_value_stats",
        "max_value_stats",
        "min_sequence_number",
        "max_sequence_number",
        "deleteRowCount",
        "file_source",
    ),
)


def rows(first: int) -> Rows:
    return [
        {
            "v": None if id_ % 3 == 0 else id_ / 4,
            "id": id_ * 7 % 11,
            "s": f"a text longer than the sixteen characters kept {id_}",
            "k": "key " * (id_ % 4),
            "p": id_ % 2,
        }
        for id_ in range(first, first + 14)
    ]


def listed(warehouse: Warehouse, table: str) -> list[dict[str, Any]]:
    found = warehouse.java.read(warehouse.folder, f"db.{table}$files")
    return sorted(({name: file[name] for name in SAME} for file in found), key=str)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_files_and_their_statistics(warehouse: Warehouse, layout: str) -> None:
    for writer in (LAKELET, JAVA):
        warehouse.create(
            LAKELET,
            writer,
            COLUMNS,
            primary_key=["k", "p", "id"],
            partitioned_by=["p"],
            options={**LAYOUTS[layout], "write-only": "true"},
        )
        for first in (0, 6):
            given = rows(first)
            warehouse.write(writer, writer, given, kinds=["-D" if row["id"] == 4 else "+I" for row in given])
    assert listed(warehouse, LAKELET) == listed(warehouse, JAVA)
    ours, theirs = (sorted(columns_of(warehouse.path(writer)), key=str) for writer in (LAKELET, JAVA))
    assert ours == theirs
    if layout == "dynamic":
        indexes = [
            sorted(
                (index["partition"], index["bucket"], index["index_type"], index["file_size"], index["row_count"])
                for index in warehouse.java.read(warehouse.folder, f"db.{writer}$table_indexes")
            )
            for writer in (LAKELET, JAVA)
        ]
        assert indexes[0] == indexes[1]
        assert len(indexes[0]) > 2


def columns_of(table: Path) -> list[Any]:
    """Per data file its columns with their physical types, ids and the number of rows."""
    found = []
    for path in table.rglob("data-*.parquet"):
        file = pq.ParquetFile(path)
        columns = [file.schema.column(number) for number in range(len(file.schema))]
        ids = [(field.metadata or {}).get(b"PARQUET:field_id") for field in file.schema_arrow]
        found.append(
            (
                [(one.path, one.physical_type, str(one.logical_type), one.max_definition_level) for one in columns],
                ids,
                file.metadata.num_rows,
            )
        )
    return found


def test_key_ranges_of_every_type(warehouse: Warehouse) -> None:
    """`_MIN_KEY`, `_MAX_KEY` and the statistics of keys, one table per type."""
    nested = ("ARRAY", "MAP", "ROW", "MULTISET")
    for name, text, values in every_type.columns("parquet"):
        if text.startswith(nested):
            continue
        kept = [value for value in values if str(value) not in ("nan", "-0.0")]
        for writer in (LAKELET, JAVA):
            table = f"{name}_{writer}"
            options = {"bucket": "1", "write-only": "true"}
            warehouse.create(LAKELET, table, [("k", text), ("n", "INT")], primary_key=["k"], options=options)
            warehouse.write(writer, table, [{"k": value, "n": number} for number, value in enumerate(kept)])
        ours, theirs = (warehouse.table(f"{name}_{writer}").files()[0][1] for writer in (LAKELET, JAVA))
        parts = ["min_key", "max_key", "row_count", "min_sequence", "max_sequence", "delete_row_count"]
        # Java keeps no statistics of nanoseconds, which it writes as INT96.
        parts += [] if name in ("ts9", "ltz9") else ["key_stats"]
        for part in parts:
            assert getattr(ours, part) == getattr(theirs, part), f"{part} of {text}"


def test_snapshots(warehouse: Warehouse) -> None:
    """Record counts as Java counts them: the rows in files, deletes among them."""
    for writer in (LAKELET, JAVA):
        options = {"bucket": "1", "write-only": "true"}
        warehouse.create(LAKELET, writer, [("id", "INT"), ("v", "INT")], primary_key=["id"], options=options)
        warehouse.write(writer, writer, [{"id": id_ % 5, "v": id_} for id_ in range(9)])
        warehouse.write(writer, writer, [{"id": id_, "v": 0} for id_ in range(3)], kinds=["-D"] * 3)
    ours, theirs = (
        [
            {
                name: snapshot.get(name)
                for name in ("id", "schemaId", "commitKind", "totalRecordCount", "deltaRecordCount")
            }
            for snapshot in warehouse.java.snapshots(warehouse.folder, f"db.{writer}")
        ]
        for writer in (LAKELET, JAVA)
    )
    assert ours == theirs
    schemas = [json.loads((warehouse.path(writer) / "schema" / "schema-0").read_text()) for writer in (LAKELET, JAVA)]
    assert schemas[0]["primaryKeys"] == schemas[1]["primaryKeys"] == ["id"]
