"""The first schema of a table: numbering, and everything it refuses."""

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, field_ids


def schema(
    *columns: tuple[str, str], partitions: tuple[str, ...] = (), keys: tuple[str, ...] = (), **options: str
) -> TableSchema:
    fields = [Field(-1, name, parse_type(text)) for name, text in columns]
    named = {name.replace("_", "-"): text for name, text in options.items()}
    return new_schema(fields, partition_keys=partitions, primary_keys=keys, options=named, comment=None, time_ms=7)


def test_fields_are_numbered_as_paimon_does() -> None:
    made = schema(
        ("id", "BIGINT"),
        ("r", "ROW<a INT, b ROW<c INT>>"),
        ("l", "ARRAY<ROW<x INT>>"),
        ("m", "MAP<STRING, ROW<y INT>>"),
    )
    assert [field.id for field in made.fields] == [0, 1, 5, 7]
    # Inside a ROW a field's own id follows those of its members.
    assert field_ids(made.field("r").type) == [2, 4, 3]
    assert field_ids(made.field("l").type) == [6]
    assert field_ids(made.field("m").type) == [8]
    assert made.highest_field_id == 8
    assert (made.id, made.time_ms) == (0, 7)


def test_primary_key_columns_become_not_null() -> None:
    made = schema(("id", "BIGINT"), ("v", "INT"), keys=("id",))
    assert str(made.field("id").type) == "BIGINT NOT NULL"
    assert made.bucket_keys == ("id",)


def test_looking_up_columns() -> None:
    made = schema(("a", "INT"), ("p", "DATE"), partitions=("p",), bucket="2", bucket_key=" a ")
    assert made.names == ("a", "p")
    assert [str(kind) for kind in made.partition_types] == ["DATE"]
    assert made.bucket_keys == ("a",)
    with pytest.raises(NotFoundError, match="column 'z' is not in the table; its columns are a, p"):
        made.field("z")


@pytest.mark.parametrize(
    ("columns", "more", "reason"),
    [
        ([], {}, "at least one column"),
        ([("a", "INT"), ("a", "INT")], {}, "column 'a' is given twice"),
        ([("", "INT")], {}, "empty name"),
        ([("  ", "INT")], {}, "empty name"),
        ([("_KEY_a", "INT")], {}, "reserved"),
        ([("_SEQUENCE_NUMBER", "INT")], {}, "reserved"),
        ([("_ROW_ID", "INT")], {}, "reserved"),
        ([("a", "ROW<x INT, x INT>")], {}, "'x' is given twice"),
        ([("a", "INT")], {"partitions": ("b",)}, "partition key column 'b' is not a column"),
        ([("a", "INT"), ("b", "INT")], {"partitions": ("b", "b")}, "'b' is given twice"),
        ([("a", "INT"), ("b", "ARRAY<INT>")], {"partitions": ("b",)}, "without children"),
        ([("a", "INT")], {"partitions": ("a",)}, "all columns are partition keys"),
        ([("a", "INT")], {"keys": ("b",)}, "primary key column 'b' is not a column"),
        ([("a", "ROW<x INT>")], {"keys": ("a",)}, "without children"),
        ([("a", "INT")], {"bucket": "2"}, "'bucket-key' must name"),
        ([("a", "INT")], {"bucket_key": "a"}, "needs a fixed 'bucket'"),
        ([("a", "INT")], {"bucket": "2", "bucket_key": "b"}, "'b' is not a column"),
        ([("a", "INT")], {"bucket": "2", "bucket_key": "a,a"}, "given twice"),
        ([("a", "ARRAY<INT>")], {"bucket": "2", "bucket_key": "a"}, "nested type"),
        ([("a", "INT")], {"bucket": "0"}, "option 'bucket': expected a whole number"),
        ([("a", "INT")], {"bucket": "x"}, "option 'bucket': expected a whole number"),
        ([("_row_kind", "INT")], {}, "column name '_row_kind' is reserved"),
        ([("__lakelet_row", "INT")], {}, "column name '__lakelet_row' is reserved"),
        ([("a\ud800", "INT")], {}, "is not valid Unicode"),
        ([("r", "ROW<`a\ud800` INT>")], {}, "is not valid Unicode"),
        ([("a", "INT")], {"file.suffix": "\ud800"}, "option 'file.suffix': .* is not valid Unicode"),
        ([("a", "INT")], {"bucket": "-2"}, "expected -1 or a number above 0"),
    ],
)
def test_what_is_refused(columns: list[tuple[str, str]], more: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        schema(*columns, **more)  # type: ignore[arg-type]
