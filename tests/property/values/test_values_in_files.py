"""Every value of every type is one value in every file format: it comes back as it was written, or its write is refused.

Values that a format might take for one another are among them: text that differs in trailing blanks, bytes that differ in
trailing zeros, zeros of both signs, the first and the last moments.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet
from lakelet.errors import InvalidError
from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.data_file_formats import data_file_format
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, renumber
from lakelet.storage.memory import MemoryStore
from tests.property.every_value import NESTED, VALUES, bits, wrapped
from tests.tiers.examples import examples

FORMATS = ("parquet", "orc", "avro")


def _written(file_format: str, fields: list[Field], table: pa.Table) -> pa.Table:
    store = MemoryStore()
    with store.open_output("t/f") as output:
        writer = data_file_format(file_format).open_writer(output, fields, WriteSettings(), without_ranges=frozenset())
        writer.write(table)
        writer.close()
    names = [field.name for field in fields]
    return pa.Table.from_batches(data_file_format(file_format).read(store, "t/f", fields, names, batch_rows=100))


@pytest.mark.parametrize("type_text", VALUES)
@pytest.mark.parametrize("file_format", FORMATS)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_a_file_gives_values_back_or_refuses_them(file_format: str, type_text: str, data: st.DataObject) -> None:
    nesting = data.draw(st.sampled_from(NESTED), label="nesting")
    values = data.draw(st.lists(st.none() | VALUES[type_text], min_size=1, max_size=8), label="values")
    fields = [Field(0, "c", renumber(parse_type(nesting.format(type_text)), 1)[0])]
    table = pa.table([[wrapped(value, nesting) for value in values]], schema=arrow_schema(fields))
    try:
        found = _written(file_format, fields, table)
    except InvalidError:
        assert "TIMESTAMP" in type_text
        return
    assert bits(found.column("c")) == bits(table.column("c"))


_KEYS: dict[str, list[Any]] = {
    "CHAR(5)": ["a", "a ", "a  ", " a", "", "     ", "ab\t "],
    "VARCHAR(5)": ["a", "a ", "a  ", " a", "", "     ", "a\0"],
    "STRING": ["a", "a ", "A", "a\0", ""],
    "BINARY(3)": [b"a", b"a\0", b"a\0\0", b"a ", b""],
    "BYTES": [b"a", b"a\0", b""],
    "FLOAT": [0.0, -0.0, float("nan"), float("inf")],
    "DOUBLE": [0.0, -0.0, float("nan"), 5e-324],
    "DECIMAL(38, 38)": [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), Decimal("0." + "0" * 38)],
    "TIME(3)": [dt.time(0), dt.time(0, 0, 0, 1000), dt.time(23, 59, 59, 999000)],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10)],
    "TIMESTAMP(6)": [
        dt.datetime(1969, 12, 31, 23, 59, 59),
        dt.datetime(1970, 1, 1),
        dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    ],
}


@pytest.mark.parametrize("type_text", _KEYS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_keys_stay_apart_in_a_table_whose_format_changes(tmp_path: Path, file_format: str, type_text: str) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("db")
    table = lake.create_table(
        "db.t", [("k", f"{type_text} NOT NULL"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"}
    )
    keys = _KEYS[type_text]
    table.write([{"k": key, "v": 0} for key in keys])
    table.set_options({"file.format": file_format})
    for number, key in enumerate(keys):
        table.write([{"k": key, "v": number}])
    table.compact(full=True)
    found = table.scan().to_arrow()
    assert sorted(zip(map(repr, found["k"].to_pylist()), found["v"].to_pylist(), strict=True)) == sorted(
        (repr(key), number) for number, key in enumerate(keys)
    )
    for key in keys:
        row = table.get({"k": key})
        assert row is not None
        assert repr(row["k"]) == repr(key)
