"""The page of system tables shows every one of them, with every column."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import split_name
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Relation, Rows
from lakelet.sql.system import GLOBAL_TABLES, SYSTEM_TABLES, global_relation, system_relation
from lakelet.storage.memory import MemoryStore

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "sql" / "system-tables.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\S+)(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE))
# They have the columns of the table itself, and $file_key_ranges some of those of $files.
OWN_COLUMNS = ("ro", "read_optimized", "file_key_ranges")


@pytest.fixture
def context() -> Context:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    lake.create_table("d.t", [("the_only", "INT")])
    return Context(lake)


def columns(relation: Relation) -> list[str]:
    assert isinstance(relation, (Rows, pa.Table))
    return [name for name in relation.schema.names if name != "the_only"]


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_tables_about_a_table(context: Context, name: str) -> None:
    assert f"${name}" in PAGE
    if name not in OWN_COLUMNS:
        found = columns(system_relation(context, split_name(["d", f"t${name}"], "d")))
        section = SECTIONS[f"${name}"]
        assert [column for column in found if f"`{column}`" not in section] == ([] if name != "binlog" else ["rowkind"])
    starred = f"### ${name} *\n" in PAGE
    assert starred == SYSTEM_TABLES[name].of_a_version or name == "read_optimized"


@pytest.mark.parametrize("name", GLOBAL_TABLES)
def test_tables_about_the_lake(context: Context, name: str) -> None:
    found = columns(global_relation(context, name))
    assert [column for column in found if f"`{column}`" not in SECTIONS[f"sys.{name}"]] == []
