"""Copies of tables."""

from __future__ import annotations

import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.table_copy import copy_table, create_like
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


@pytest.fixture
def source(lake: Lake) -> Table:
    made = lake.create_table(
        "d.s",
        [("id", "INT"), ("p", "STRING"), ("v", "INT")],
        primary_key=["id", "p"],
        partitioned_by=["p"],
        options={"bucket": "2", "write-only": "true"},
        comment="what it is",
    )
    made.write([{"id": i, "p": "ab"[i % 2], "v": 0} for i in range(10)])
    made.write([{"id": i, "p": "ab"[i % 2], "v": 1} for i in range(5)])
    return made


def test_a_copy_is_alike(lake: Lake, source: Table) -> None:
    copied = copy_table(lake, source, "e.t", where="v = 1")
    assert (copied.rows, copied.snapshot and copied.snapshot.id) == (5, 1)
    made = lake.table("e.t").schema
    assert (made.fields, made.primary_keys, made.partition_keys, made.options, made.comment) == (
        source.schema.fields,
        source.schema.primary_keys,
        source.schema.partition_keys,
        source.schema.options,
        "what it is",
    )
    assert sorted(lake.table("e.t").scan(columns=["id"]).to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, 4]


def test_versions_and_modes(lake: Lake, source: Table) -> None:
    lake.create_table("d.t", [("id", "BIGINT"), ("v", "INT")])
    assert copy_table(lake, source, "d.t", columns=["id", "v"], version=1).rows == 10
    assert copy_table(lake, source, "d.t", columns=["v"]).rows == 10
    assert lake.table("d.t").scan(where="id IS NULL AND v = 1").count() == 5
    assert copy_table(lake, source, "d.t", columns=["id"], where="id < 3", mode="overwrite").rows == 3
    assert lake.table("d.t").scan().count() == 3


def test_nothing_to_copy(lake: Lake, source: Table) -> None:
    copied = copy_table(lake, source, "d.t", where="id > 100")
    assert (copied.snapshot, copied.rows, lake.table_exists("d.t")) == (None, 0, True)


def test_keys_must_be_there(lake: Lake, source: Table) -> None:
    with pytest.raises(InvalidError, match="without its key columns id: copy them as well"):
        create_like(lake, "d.t", source.schema, [source.schema.field("p"), source.schema.field("v")])
    assert not lake.table_exists("d.t")
    create_like(lake, "d.s", source.schema, [])
