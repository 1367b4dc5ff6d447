"""Everything `write` takes, as batches."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.sink.input import batches_of

SCHEMA = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.string()), ("l", pa.list_(pa.int16()))])
TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def rows(data: object) -> list[dict[str, object]]:
    return [row for batch in batches_of(data, SCHEMA) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(max_chunksize=1),
        TABLE.to_batches(max_chunksize=2),
        iter(TABLE.to_batches(max_chunksize=1)),
        (batch for batch in TABLE.to_batches(max_chunksize=1)),
        [TABLE.slice(0, 1), TABLE.slice(1).to_batches()],
        pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        pl.LazyFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
        TABLE.to_pylist(),
        [[{"a": 1, "b": "x"}], [{"a": 2, "b": None}, {"a": 3, "b": "z"}]],
        pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}, index=[7, 8, 9]),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__name__,
)
def test_all_forms_give_the_same_rows(data: object) -> None:
    assert rows(data) == TABLE.to_pylist()


def test_dicts_are_read_as_the_tables_types() -> None:
    (batch,) = batches_of([{"a": 1}, {"l": [1], "a": 2}], SCHEMA)
    assert batch.schema.field("a").type == pa.int32()
    assert batch.schema.names == ["a", "l"]
    assert batch.to_pylist() == [{"a": 1, "l": None}, {"a": 2, "l": [1]}]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([{"a": 1, "z": 2}], "the column 'z', which is not in the table; its columns are a, b, l"),
        ([{"a": "x"}], "do not fit the table's types"),
        ([{"a": 2**40}], "do not fit the table's types"),
        ([{"l": 3}], "do not fit the table's types"),
        ([{"a": 1}, {"a": 1.5}], "row 1 has 1.5 for column 'a', which int32 cannot hold"),
        ([{"l": [1, 2.5]}], r"row 0 has \[1, 2.5\] for column 'l'"),
        (7, "cannot write a int"),
        ("text", "cannot write a str"),
        (b"bytes", "cannot write a bytes"),
        ({"a": [1]}, "cannot write a dict"),
        ([1, 2], "cannot write a int"),
        (None, "cannot write a NoneType"),
    ],
)
def test_what_is_refused(data: object, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        rows(data)


@pytest.mark.parametrize("data", [[], iter([]), TABLE.slice(0, 0), pd.DataFrame({"a": []})])
def test_nothing_is_nothing(data: object) -> None:
    assert rows(data) == []
