"""Kinds of rows, from a column and from a list."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.row_kind import RowKind
from lakelet.sink.rows.row_kinds import RowKindGenerator, check_row_kind_field, kinds_of
from tests.unit.sink.keyed_tables import batch_of, keyed_schema

ALL = ["I", "+I", "U", "+U", "-U", "D", "-D", "i", "+u", "-d"]
NUMBERS = [0, 0, 2, 2, 1, 3, 3, 0, 2, 3]


def test_a_column_of_any_spelling_gives_the_kinds() -> None:
    schema = keyed_schema(options={"rowkind.field": "s"})
    generator = RowKindGenerator.create(schema)
    assert generator is not None
    batch = batch_of(schema, [{"k": 1, "s": text, "p": 1, "v": 1} for text in ALL])
    assert generator.kinds(batch).tolist() == NUMBERS
    assert generator.kinds(batch.slice(4, 3)).tolist() == [1, 3, 3]
    assert generator.kinds(batch.slice(0, 0)).tolist() == []
    assert generator.kinds(batch).dtype == np.int8


def test_without_the_option_there_is_no_generator() -> None:
    assert RowKindGenerator.create(keyed_schema()) is None
    check_row_kind_field(keyed_schema())


@pytest.mark.parametrize(("text", "shown"), [(None, "NULL"), ("X", "'X'"), ("", "''"), ("+", r"'\+'"), (" I", "' I'")])
def test_an_unknown_spelling_is_named_with_its_row(text: str | None, shown: str) -> None:
    schema = keyed_schema(options={"rowkind.field": "s"})
    rows = [{"k": 1, "s": spelled, "p": 1, "v": 1} for spelled in ("I", "D", text, text)]
    generator = RowKindGenerator.create(schema)
    assert generator is not None
    with pytest.raises(InvalidError, match=rf"column 's': row 102 has the row kind {shown}"):
        generator.kinds(batch_of(schema, rows), first_row=100)


@pytest.mark.parametrize(("field", "message"), [("nope", "is not a column"), ("v", "INT, expected text")])
def test_a_field_that_is_no_text_column_is_refused(field: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        check_row_kind_field(keyed_schema(options={"rowkind.field": field}))


@pytest.mark.parametrize(
    "kinds",
    [
        ["+I", "-D"],
        ("i", "d"),
        [RowKind.INSERT, RowKind.DELETE],
        [0, 3],
        pa.array(["+I", "-D"]),
        pa.array(["+I", "-D"], pa.large_string()),
        pa.array(["+I", "-D"]).dictionary_encode(),
        pa.chunked_array([["I"], ["D"]]),
        pa.array([0, 3], pa.uint8()),
        np.array([0, 3], np.int64),
        np.array(["+I", "-D"]),
        iter(["+I", "-D"]),
    ],
)
def test_kinds_may_come_in_many_shapes(kinds: Any) -> None:
    found = kinds_of(kinds, 2)
    assert found.tolist() == [0, 3]
    assert found.dtype == np.int8


def test_no_rows_have_no_kinds() -> None:
    assert kinds_of([], 0).tolist() == []


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["+I"], "each of 2 rows, found 1"),
        ([0, 1, 2], "each of 2 rows, found 3"),
        (["+I", "?"], r"row 1 has the row kind '\?'"),
        (["+I", None], "row 1 has the row kind NULL"),
        ([0, 4], "row 1 has the row kind 4"),
        ([-1, 0], "row 0 has the row kind -1"),
        ([0, None], "row 1 has the row kind NULL"),
        ([0.0, 1.0], "found double"),
        ([True, False], "found bool"),
        (["+I", 3], "kinds: expected"),
        ("+I", "expected a list"),
        (3, "expected a list"),
        ([None, None], "found null"),
    ],
)
def test_wrong_kinds_are_refused(kinds: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        kinds_of(kinds, 2)
