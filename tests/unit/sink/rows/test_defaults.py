"""Defaults of columns that the data does not have."""

import datetime as dt

import pytest

from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.sink.rows.defaults import default_array


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INT", "7", 7),
        ("STRING", "", ""),
        ("BOOLEAN", "true", True),
        ("DATE", "2024-01-02", dt.date(2024, 1, 2)),
        ("TIME(3)", "01:02:03.004", dt.time(1, 2, 3, 4000)),
        ("BYTES", "ab", b"ab"),
        ("INT", None, None),
        ("ARRAY<INT>", None, None),
    ],
)
def test_every_row_has_it(kind: str, text: str | None, value: object) -> None:
    found = default_array(Field(0, "c", parse_type(kind), default=text), 3)
    assert found.to_pylist() == [value] * 3
    assert len(default_array(Field(0, "c", parse_type(kind), default=text), 0)) == 0
