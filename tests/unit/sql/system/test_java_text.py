"""Values as text."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.sql.system.java_text import key_texts, named_texts, partition_texts, value_texts


@pytest.mark.parametrize(
    ("kind", "value", "cast", "printed"),
    [
        ("INT", -5, "-5", "-5"),
        ("BIGINT", 2**62, str(2**62), str(2**62)),
        ("BOOLEAN", True, "true", "true"),
        ("STRING", "ä, b", "ä, b", "ä, b"),
        ("DATE", date(1969, 7, 20), "1969-07-20", "-165"),
        ("DOUBLE", 1e10, "1.0E10", "1.0E10"),
        ("FLOAT", 0.5, "0.5", "0.5"),
        ("DECIMAL(12, 10)", Decimal("0.0000000001"), "0.0000000001", "0.0000000001"),
        ("TIME(3)", time(1, 2, 3), "01:02:03.0", "3723000"),
        ("TIMESTAMP(3)", datetime(2024, 1, 2, 3, 4), "2024-01-02 03:04:00.000", "2024-01-02T03:04"),
        (
            "TIMESTAMP(9)",
            datetime(2024, 1, 2, 3, 4, 5, 6),
            "2024-01-02 03:04:05.000006000",
            "2024-01-02T03:04:05.000006",
        ),
        ("BYTES", b"\x01z", "\x01z", "017a"),
    ],
)
def test_values(kind: str, value: Any, cast: str, printed: str) -> None:
    data_type = parse_type(kind)
    values = pa.array([value, None, value], to_arrow(data_type))
    assert value_texts(values, data_type, cast=True).to_pylist() == [cast, None, cast]
    assert value_texts(values, data_type, cast=False).to_pylist() == [printed, None, printed]


def test_rows() -> None:
    types = [parse_type("INT"), parse_type("STRING")]
    columns = [pa.array([1, None]), pa.array(["a", "b"])]
    assert partition_texts(columns, types, 2).to_pylist() == ["{1, a}", "{null, b}"]
    assert key_texts(columns, types, 2).to_pylist() == ["[1, a]", "[null, b]"]
    assert partition_texts([], [], 2).to_pylist() == ["{}", "{}"]
    assert named_texts({"b": pa.array(["1", None]), "a": pa.array([None, ""])}, 2).to_pylist() == [
        "{a=null, b=1}",
        "{a=, b=null}",
    ]
