"""Tables whose rows SQL changed, read and written on by Java Paimon and pypaimon."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.tables import DATABASE, JAVA, LAKELET, PYTHON, Warehouse

COLUMNS = [("id", "INT NOT NULL"), ("p", "STRING"), ("v", "BIGINT")]
LAYOUTS: list[dict[str, Any]] = [
    {"partitioned_by": ["p"]},
    {"primary_key": ["id"], "options": {"bucket": "2"}},
    {"primary_key": ["id", "p"], "partitioned_by": ["p"], "options": {"bucket": "1", "sequence.field": "v"}},
    {"primary_key": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
]
STATEMENTS = (
    "UPDATE t SET v = v + 100 WHERE id % 3 = 0",
    "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v > 103) OR id = 1",
    "MERGE INTO t USING (SELECT CAST(range AS INT) AS id, 'a' AS p, range * 1000 AS v FROM range(4, 12, 2)) AS s "
    "ON t.id = s.id AND t.p = s.p WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO t SELECT id + 100, p, v FROM t WHERE v IS NOT NULL",
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=["append", "fixed", "sequence", "vectors"])
def test_others_read_what_sql_changed(warehouse: Warehouse, layout: dict[str, Any]) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, **layout)
    vectors = "deletion-vectors.enabled" in layout.get("options", {})
    readers = (LAKELET, JAVA) if vectors else (LAKELET, JAVA, PYTHON)
    start = [{"id": number, "p": "ab"[number % 2], "v": number} for number in range(10)]
    warehouse.write(JAVA, "t", start)
    if vectors:
        warehouse.table("t").compact()
    warehouse.lake.sql(f"USE {DATABASE}")
    counts = []
    for statement in STATEMENTS:
        warehouse.lake.sql(statement)
        counts.append(len(warehouse.agree("t", readers=readers)))
    assert counts == [10, 7, 8, 16]
    # Java goes on from there.
    warehouse.write(JAVA, "t", [{"id": 200, "p": "a", "v": 1}])
    warehouse.lake.sql("UPDATE t SET v = v + 5 WHERE id = 0")
    found = warehouse.agree("t", readers=(LAKELET, JAVA))
    assert {row["v"] for row in found if row["id"] == 0} == {105}
