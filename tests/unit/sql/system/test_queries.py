"""System tables in queries: DuckDB takes all their types, and asks for as little as it needs."""

from __future__ import annotations

from datetime import date

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.system import GLOBAL_TABLES, SYSTEM_TABLES, global_relation
from lakelet.storage.memory import MemoryStore
from tests.unit.sql.relation_rows import arrow_of, system_rows


@pytest.fixture(scope="module")
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    table = made.create_table(
        "d.t",
        [("id", "INT"), ("p", "DATE"), ("v", "ARRAY<INT>")],
        primary_key=["id", "p"],
        partitioned_by=["p"],
        options={"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"},
    )
    table.write([{"id": i, "p": date(2024, 1, 1 + i % 2), "v": [i]} for i in range(1000)])
    table.compact(full=True)
    table.write([{"id": 1, "p": date(2024, 1, 2), "v": None}])
    table.compact()
    table.tags.create("kept", time_retained="1 d")
    table.branches.create("dev")
    table.consumers.set("someone", 2)
    table.analyze()
    return made


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_tables_about_a_table(lake: Lake, name: str) -> None:
    expected = system_rows(lake, f"d.t${name}")
    assert expected
    found = lake.sql(f"SELECT * FROM d.t${name}").to_arrow().to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert lake.sql(f"SELECT count(*) FROM d.`t${name}`").rows() == [(len(expected),)]
    column = next(iter(expected[0]))
    first = expected[0][column]
    same = sum(row[column] == first for row in expected)
    assert lake.sql(f"SELECT count(*) FROM d.t${name} WHERE {column} = $first", {"first": first}).rows() == [(same,)]


@pytest.mark.parametrize("name", GLOBAL_TABLES)
def test_tables_about_the_lake(lake: Lake, name: str) -> None:
    expected = arrow_of(global_relation(Context(lake), name)).to_pylist()
    assert lake.sql(f"SELECT * FROM sys.{name}").to_arrow().to_pylist() == expected


def test_joined(lake: Lake) -> None:
    text = (
        "SELECT s.snapshot_id, json_array_length(t.fields) FROM d.t$snapshots s JOIN d.t$schemas t USING (schema_id) "
        "WHERE s.commit_kind = 'APPEND' ORDER BY ALL"
    )
    assert lake.sql(text).rows() == [(1, 3), (3, 3)]
    assert lake.sql("SELECT partition, sum(record_count) FROM d.t$files GROUP BY 1 ORDER BY 1").rows() == [
        ("{2024-01-01}", 500),
        ("{2024-01-02}", 501),
    ]
    assert lake.sql("SELECT rowkind, v[1] FROM d.t$binlog WHERE id[1] = 1").rows() == [("+I", None)]
    assert lake.sql("SELECT count(*) FROM d.t$audit_log WHERE id < 10 AND rowkind = '+I'").rows() == [(10,)]


def test_versions_and_changes(lake: Lake) -> None:
    assert lake.sql("SELECT sum(record_count) FROM d.t$files FOR VERSION AS OF 1").rows() == [(1000,)]
    assert lake.sql("SELECT sum(record_count) FROM d.t$files VERSION AS OF 'kept'").rows() == [(1001,)]
    with pytest.raises(InvalidError, match="not about one version"):
        lake.sql("SELECT * FROM d.t$tags FOR VERSION AS OF 1").rows()
    assert lake.sql("SELECT rowkind, id, v FROM changes('d.t$binlog', 2, 4)").rows() == [("+U", [1, 1], [[1], None])]
    assert lake.sql("SELECT rowkind, v FROM changes('d.t$audit_log', 2) ORDER BY 1 DESC").rows() == [
        ("-U", [1]),
        ("+U", None),
    ]


def test_calls(lake: Lake) -> None:
    result = lake.sql("CALL sys.create_tag('d.t', 'again', (SELECT min(snapshot_id) FROM d.t$snapshots))")
    assert (result.rows(), result.message) == ([("again", 1)], "tag 'again' of d.t is snapshot 1")
