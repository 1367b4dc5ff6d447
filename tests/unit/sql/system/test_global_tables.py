"""Tables of the database sys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import NotFoundError
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Rows
from lakelet.sql.system import GLOBAL_TABLES, global_relation
from lakelet.storage.decorated import DecoratedStore
from lakelet.storage.memory import MemoryStore
from tests.unit.sql.relation_rows import arrow_of

T = TypeVar("T")


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    for database in ("d", "e"):
        made.create_database(database)
    made.create_table("d.t", [("id", "INT"), ("p", "STRING")], partitioned_by=["p"]).write(
        [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}, {"id": 3, "p": "b"}]
    )
    made.create_table("e.u", [("id", "INT")], primary_key=["id"], options={"bucket": "3"})
    return made


def rows(lake: Lake, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = arrow_of(global_relation(Context(lake), table)).to_pylist()
    return found


def test_tables(lake: Lake) -> None:
    first, second = rows(lake, "tables")
    assert (first["database_name"], first["table_name"], first["partitioned"], first["primary_key"]) == (
        "d",
        "t",
        True,
        False,
    )
    assert (first["record_count"], first["file_count"]) == (3, 2)
    assert first["file_size_in_bytes"] == sum(file.size for _, file in lake.table("d.t").files())
    assert (second["table_name"], second["primary_key"], second["record_count"]) == ("u", True, None)
    assert first["created_at"] == lake.table("d.t").schema.time_ms


def test_partitions(lake: Lake) -> None:
    found = rows(lake, "PARTITIONS")
    assert [(row["table_name"], row["partition_name"], row["record_count"], row["done"]) for row in found] == [
        ("t", "p=a", 1, False),
        ("t", "p=b", 2, False),
    ]


def test_options(lake: Lake) -> None:
    assert rows(lake, "all_table_options") == [{"database_name": "e", "table_name": "u", "key": "bucket", "value": "3"}]
    assert rows(lake, "catalog_options") == [{"key": "warehouse", "value": lake.location}]


def test_an_empty_lake() -> None:
    empty = Lake(MemoryStore())
    assert [rows(empty, name) for name in sorted(GLOBAL_TABLES) if name != "catalog_options"] == [[], [], []]


def test_unknown(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match=r"'sys\.table' is not there; did you mean tables"):
        rows(lake, "table")


def test_names_alone_read_no_manifest() -> None:
    paths: list[str] = []

    class Watched(DecoratedStore):
        def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
            paths.append(path)
            return action()

    lake = Lake(Watched(MemoryStore()))
    lake.create_database("d")
    lake.create_table("d.t", [("id", "INT")]).write([{"id": 1}])
    relation = global_relation(Context(lake), "tables")
    assert isinstance(relation, Rows)
    paths.clear()
    list(relation.read(["table_name", "created_at"], None))
    assert not any("manifest" in path for path in paths)
    list(relation.read(["record_count"], None))
    assert any("manifest" in path for path in paths)
