"""Append tables with deletion vectors: Java Paimon and Lakelet read and go on with what the other has marked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.tables import DATABASE, JAVA, LAKELET, Warehouse

COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitions": {"partitioned_by": ["p"], "options": {"deletion-vectors.bitmap64": "true"}},
    "buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
}


def positions_of(warehouse: Warehouse, *ids: int) -> dict[str, list[int]]:
    """The places of rows in the files of a table, each file of which is read alone."""
    found: dict[str, list[int]] = {}
    for split in warehouse.table("t").scan().plan().splits:
        for one in split.single_files():
            rows = [id_ for batch in warehouse.table("t").scan().read(one) for id_ in batch.column("id").to_pylist()]
            places = [place for place, id_ in enumerate(rows) if id_ in ids]
            if places:
                found[one.files[0].name] = places
    return found


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_both_mark_rows_of_one_table(warehouse: Warehouse, layout: str) -> None:
    chosen = dict(LAYOUTS[layout])
    chosen["options"] = {"deletion-vectors.enabled": "true", "write-only": "true", **chosen.get("options", {})}
    warehouse.create(LAKELET, "t", COLUMNS, **chosen)
    for writer, start in ((JAVA, 0), (LAKELET, 10)):
        warehouse.write(
            writer, "t", [{"id": id_, "p": "ab"[id_ % 2], "v": id_ * 10} for id_ in range(start, start + 10)]
        )
    warehouse.lake.sql(f"USE {DATABASE}")
    both = (LAKELET, JAVA)
    warehouse.java.mark(warehouse.folder, f"{DATABASE}.t", positions_of(warehouse, 1, 2, 13))
    assert {row["id"] for row in warehouse.agree("t", readers=both)} == set(range(20)) - {1, 2, 13}

    # Lakelet goes on from Java's vectors, and Java from Lakelet's.
    warehouse.lake.sql("DELETE FROM t WHERE id IN (3, 14)")
    warehouse.lake.sql("UPDATE t SET v = v + 1 WHERE id IN (4, 15)")
    found = warehouse.agree("t", readers=both)
    assert {row["id"]: row["v"] for row in found if row["id"] in (4, 15)} == {4: 41, 15: 151}
    assert len(found) == 15
    java = warehouse.java.snapshots(warehouse.folder, f"{DATABASE}.t")
    assert [(one["commitKind"], one["deltaRecordCount"]) for one in java[-3:]] == [
        ("OVERWRITE", 0),
        ("OVERWRITE", 0),
        ("OVERWRITE", 2),
    ]
    (name,) = [name for name, places in positions_of(warehouse, 15).items() if places]
    warehouse.java.mark(warehouse.folder, f"{DATABASE}.t", {name: positions_of(warehouse, 15)[name]})
    rows = warehouse.agree("t", readers=both)
    assert {row["id"] for row in rows} == set(range(20)) - {1, 2, 3, 13, 14, 15}
    changed = warehouse.table("t").changes(2).to_pylist()
    assert sorted(row["id"] for row in changed if row["_row_kind"] in ("-D", "-U")) == [1, 2, 3, 4, 13, 14, 15, 15]
    warehouse.table("t").compact(full=True)
    assert warehouse.agree("t", readers=both) == rows
