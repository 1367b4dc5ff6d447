"""What `lakelet export` writes is what `lakelet import` reads, in every format and for every type."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import lakelet
from lakelet.cli import main
from lakelet.model.arrow.arrow_types import arrow_schema
from tests.property.every_value import VALUES, bits, wrapped
from tests.tiers.examples import examples

_TEXTS = [
    "",
    " ",
    "NULL",
    "null",
    '"',
    '""',
    "a,b;c|d\te",
    "line\nbreak",
    "\r\n",
    "'",
    "\\",
    '\\"',
    "#x",
    "é 数 🦆",
    "1",
    "nan",
    "[1]",
]
# Names that need quotes, in CSV, in JSON and in SQL.
_NAMES = {"STRING": 'a "quoted", name', "INT": "ünï cödé", "DOUBLE": "select", "BYTES": "semi;colon"}
_NESTED = ("ARRAY<{}>", "MAP<STRING, {}>", "ROW<a INT, b {}>", "ARRAY<ROW<a MAP<STRING, {}>>>")


def _columns() -> list[tuple[str, str]]:
    flat = [(_NAMES.get(text, f"c{place}"), text) for place, text in enumerate(VALUES)]
    return flat + [
        (f"n{place}", _NESTED[place % len(_NESTED)].format(text))
        for place, text in enumerate(VALUES)
        if text != "BINARY(3)"
    ]


def _values(text: str) -> st.SearchStrategy[Any]:
    return VALUES[text] | st.sampled_from(_TEXTS) if text == "STRING" else VALUES[text]


def _nested(place: int, text: str) -> st.SearchStrategy[Any]:
    nesting = _NESTED[place % len(_NESTED)]
    value = st.none() | _values(text)
    if nesting == "ARRAY<ROW<a MAP<STRING, {}>>>":
        return value.map(lambda one: [{"a": [('k"', one), ("", one)]}, None, {"a": None}, {"a": []}])
    return value.map(lambda one: wrapped(one, nesting))


def _rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    columns = {_NAMES.get(text, f"c{place}"): st.none() | _values(text) for place, text in enumerate(VALUES)}
    columns |= {
        f"n{place}": st.none() | _nested(place, text) for place, text in enumerate(VALUES) if text != "BINARY(3)"
    }
    return st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=5)


def _came_back(location: str, folder: Path, table: pa.Table, name: str, *options: str) -> pa.Table:
    lake = lakelet.connect(location)
    file = str(folder / f"{uuid.uuid4().hex}-{name}")
    reading = [option for option in options if option != "--no-header"]
    assert main(["export", "d.a", file, *options]) == 0
    assert main(["import", "d.b", file, *reading, *(["--no-header"] if "--no-header" in options else [])]) == 0
    return lake.table("d.b").scan().to_arrow()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows.csv", []),
        ("rows.csv", ["--null", "NULL"]),
        ("rows.csv.gz", ["--no-header"]),
        ("rows.tsv", ["--delimiter", "\t"]),
        ("rows.json", []),
        ("rows.ndjson", []),
        ("rows.parquet", []),
    ],
    ids=["csv", "csv-null", "csv-no-header", "tsv", "json", "ndjson", "parquet"],
)
@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_export_and_import_are_the_identity(
    monkeypatch: pytest.MonkeyPatch, name: str, options: list[str], data: st.DataObject
) -> None:
    location = f"memory://{uuid.uuid4()}"
    monkeypatch.setenv("LAKELET_WAREHOUSE", location)
    lake = lakelet.connect(location)
    lake.create_database("d")
    tables = [lake.create_table(f"d.{one}", _columns()) for one in "ab"]
    schema = arrow_schema(tables[0].schema.fields)
    rows = pa.Table.from_pylist(data.draw(_rows(), label="rows"), schema=schema)
    tables[0].write(rows)
    with tempfile.TemporaryDirectory() as folder:
        found = _came_back(location, Path(folder), rows, name, *options)
    for column in schema.names:
        assert bits(found.column(column)) == bits(rows.column(column)), column


@pytest.mark.parametrize("name", ["rows.csv", "rows.ndjson"])
def test_texts_of_a_table_of_one_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    location = f"memory://{uuid.uuid4()}"
    monkeypatch.setenv("LAKELET_WAREHOUSE", location)
    lake = lakelet.connect(location)
    lake.create_database("d")
    tables = [lake.create_table(f"d.{one}", [("s", "STRING")]) for one in "ab"]
    rows = pa.table({"s": [*_TEXTS, None, "x", None]})
    tables[0].write(rows)
    assert _came_back(location, tmp_path, rows, name).column("s").to_pylist() == rows.column("s").to_pylist()
