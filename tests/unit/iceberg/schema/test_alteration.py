"""Changes of columns and properties."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.schema.alteration import alter_columns, alter_properties
from lakelet.iceberg.table import IcebergTable
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.type_parser import parse_type
from tests.unit.iceberg.ice_tables import ice_table, spec_of

SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "l", ListType(9, StructType(NestedField(10, "x", FloatType())))),
    NestedField(5, "m", MapType(11, StringType(), 12, IntegerType())),
    NestedField(6, "d", DecimalType(5, 2)),
    NestedField(7, "u", UUIDType()),
    NestedField(8, "b", BinaryType()),
)
Change = Callable[[TableSchema], TableSchema]


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    return ice_table(tmp_path, SCHEMA, spec_of((2, DayTransform(), "ts_day")), properties={"k": "v"})


def altered(table: IcebergTable, *changes: Change) -> Schema:
    def all_of_them(schema: TableSchema) -> TableSchema:
        for change in changes:
            schema = change(schema)
        return schema

    after = alter_columns(table, all_of_them)
    assert after is not None
    assert after.reloaded().metadata.schema() == after.metadata.schema()
    return after.metadata.schema()


def to(path: str, text: str) -> Change:
    return lambda schema: evolution.change_type(schema, path, parse_type(text))


def test_one_commit_for_several_changes(table: IcebergTable) -> None:
    schema = altered(
        table,
        lambda schema: evolution.add_column(
            schema, "n", parse_type("ROW<a ARRAY<INT>, b INT>"), comment="new", first=True
        ),
        lambda schema: evolution.rename_column(schema, "s", "text"),
        lambda schema: evolution.drop_column(schema, "b"),
        to("id", "BIGINT"),
        to("d", "DECIMAL(9, 2)"),
        lambda schema: evolution.change_nullability(schema, "id", nullable=True),
        lambda schema: evolution.add_column(schema, "l.element.y", parse_type("STRING")),
        lambda schema: evolution.change_comment(schema, "l.element.x", "inner"),
    )
    assert schema == Schema(
        NestedField(
            13,
            "n",
            StructType(NestedField(14, "a", ListType(16, IntegerType(), False)), NestedField(15, "b", IntegerType())),
            doc="new",
        ),
        NestedField(1, "id", LongType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "text", StringType()),
        NestedField(
            4,
            "l",
            ListType(9, StructType(NestedField(10, "x", FloatType(), doc="inner"), NestedField(17, "y", StringType()))),
        ),
        NestedField(5, "m", MapType(11, StringType(), 12, IntegerType())),
        NestedField(6, "d", DecimalType(9, 2)),
        # Shown as text, and still what it is.
        NestedField(7, "u", UUIDType()),
        schema_id=1,
    )
    assert len(table.reloaded().metadata.metadata_log) == 1


def test_an_id_is_never_used_again(table: IcebergTable) -> None:
    altered(table, lambda schema: evolution.add_column(schema, "new", parse_type("INT")))
    table = table.reloaded()
    altered(table, lambda schema: evolution.drop_column(schema, "new"))
    schema = altered(table.reloaded(), lambda schema: evolution.add_column(schema, "new", parse_type("INT")))
    assert schema.find_field("new").field_id == 14


def test_inside_lists_and_maps(table: IcebergTable) -> None:
    schema = altered(table, to("l.element.x", "DOUBLE"), to("m", "MAP<STRING, BIGINT>"))
    assert str(schema.find_field("l.element.x").field_type) == "double"
    assert (schema.find_field("m.value").field_id, str(schema.find_field("m.value").field_type)) == (12, "long")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (to("id", "DOUBLE"), "column 'id' is int and cannot become double"),
        (to("id", "DECIMAL(10, 0)"), r"cannot become decimal\(10, 0\)"),
        (to("d", "DECIMAL(7, 3)"), r"is decimal\(5, 2\) and cannot become decimal\(7, 3\)"),
        (to("s", "BYTES"), "cannot change from STRING to BYTES"),
        (lambda schema: evolution.drop_column(schema, "ts"), "partition field 'ts_day' of spec 0 is made of it"),
        (lambda schema: evolution.change_nullability(schema, "s", nullable=False), "cannot become NOT NULL"),
        (lambda schema: evolution.change_default(schema, "s", "x"), "default values need format version 3"),
        (
            lambda schema: evolution.add_column(schema, "n", parse_type("INT"), default="1"),
            "column 'n': default values need format version 3",
        ),
        (lambda schema: evolution.add_column(schema, "n", parse_type("MULTISET<INT>")), "Iceberg has no MULTISET"),
        (
            lambda schema: evolution.add_column(schema, "ts_day", parse_type("INT")),
            "name that exists in schema: ts_day",
        ),
    ],
)
def test_refused(table: IcebergTable, change: Change, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        alter_columns(table, change)
    assert table.reloaded().metadata == table.metadata


def test_nothing_to_do(table: IcebergTable) -> None:
    assert alter_columns(table, lambda schema: schema) is None
    # It is an int already.
    assert alter_columns(table, to("id", "INT")) is None
    assert alter_properties(table, {"k": "v", "gone": None, "format-version": "2"}) is None
    assert table.reloaded().metadata.metadata_log == []


def test_a_change_back_takes_the_older_schema(table: IcebergTable) -> None:
    altered(table, lambda schema: evolution.rename_column(schema, "s", "text"))
    altered(table.reloaded(), lambda schema: evolution.rename_column(schema, "text", "s"))
    assert table.reloaded().metadata.current_schema_id == 0


def test_the_name_mapping_follows(tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 3, "names": ["s"]}]'
    table = ice_table(tmp_path, SCHEMA, properties={"schema.name-mapping.default": mapping})
    altered(
        table,
        lambda schema: evolution.rename_column(schema, "s", "text"),
        lambda schema: evolution.add_column(schema, "new", parse_type("ROW<a INT>")),
    )
    found = table.reloaded().metadata.name_mapping()
    assert found is not None
    names = {field.field_id: set(field.names) for field in found}
    assert names[3] == {"s", "text"}
    assert names[13] == {"new"}


def test_properties(table: IcebergTable) -> None:
    after = alter_properties(table, {"k": None, "a": "1", "comment": "c"})
    assert after is not None
    assert after.properties == {"a": "1", "comment": "c"}
    refused: list[tuple[dict[str, str | None], str]] = [
        ({"format-version": "3"}, "versions 1 and 2 are written"),
        ({"format-version": "1"}, "cannot go back to 1"),
        ({"format-version": None}, "cannot be taken away"),
        ({"location": "x"}, "stays where its files are"),
    ]
    for changes, reason in refused:
        with pytest.raises(InvalidError, match=reason):
            alter_properties(after, changes)


def test_version_1_becomes_2(tmp_path: Path) -> None:
    table = ice_table(tmp_path, SCHEMA, properties={"format-version": "1"})
    after = alter_properties(table, {"format-version": "2"})
    assert after is not None
    assert after.format_version == 2


class TestConflicts:
    def test_the_later_change_is_made_on_the_newer_schema(self, table: IcebergTable) -> None:
        altered(table, lambda schema: evolution.add_column(schema, "first", parse_type("INT")))
        # The table is still the one of before.
        seen: list[bool] = []

        def change(schema: TableSchema) -> TableSchema:
            seen.append("first" in schema.names)
            return evolution.add_column(schema, "second", parse_type("INT"))

        after = alter_columns(table, change)
        assert after is not None
        assert after.column_names[-2:] == ("first", "second")
        assert seen == [False, True]

    def test_others_are_always_faster(self, table: IcebergTable, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []

        def refuse(self: Catalog, *arguments: Any) -> None:
            calls.append(arguments)
            raise CommitFailedException("somebody else")

        monkeypatch.setattr(type(table.library.catalog), "commit_table", refuse)
        with pytest.raises(ConflictError, match="somebody else"):
            alter_properties(table, {"a": "1"})
        assert len(calls) == 8
