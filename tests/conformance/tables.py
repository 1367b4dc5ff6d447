"""One warehouse that Lakelet, Java Paimon and pypaimon share, and rows in a spelling in which they compare.

A row is a dict of plain values, spelled as at the head of Judge.java except that floats are text, so that NaN equals itself
and -0.0 differs from 0.0. What a reader gave is spelled by the table's types, never by the types it happened to come in:

    warehouse.create("java", "t", [("id", "BIGINT"), ("tags", "ARRAY<STRING>")])
    warehouse.write("lakelet", "t", [{"id": 1, "tags": ["a", None]}])
    warehouse.agree("t")                     # all four readers give the same rows, which are returned
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakelet
from lakelet.format.metadata.schema_json import encode_type
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import FLOATS, TIMESTAMPS, Array, Atomic, DataType, Field, Kind, Map, Multiset, Row
from lakelet.table import Table
from tests.conformance.java.client import JavaPaimon
from tests.conformance.pypaimon.client import PyPaimon

DATABASE = "db"
LAKELET, JAVA, PYTHON, NATIVE = "lakelet", "java", "python", "native"
READERS = (LAKELET, JAVA, PYTHON, NATIVE)
WRITERS = READERS

Columns = Sequence[tuple[str, str]]
Rows = list[dict[str, Any]]

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Warehouse:
    """A folder with the three implementations on it; tables are named without their database."""

    def __init__(self, folder: Path, java: JavaPaimon, pypaimon: PyPaimon) -> None:
        self.folder = folder
        self.java = java
        self.pypaimon = pypaimon
        self.lake = lakelet.connect(str(folder))
        self.lake.create_database(DATABASE, if_not_exists=True)

    def table(self, name: str) -> Table:
        """Lakelet's view of a table."""
        return self.lake.table(f"{DATABASE}.{name}")

    def path(self, name: str) -> Path:
        """The folder of a table."""
        return self.folder / f"{DATABASE}.db" / name

    def create(
        self,
        creator: str,
        name: str,
        columns: Columns,
        *,
        primary_key: Sequence[str] = (),
        partitioned_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Makes a table by the given implementation."""
        full = f"{DATABASE}.{name}"
        if creator == LAKELET:
            self.lake.create_table(
                full, columns, primary_key=primary_key, partitioned_by=partitioned_by, options=options
            )
            return
        typed = [(column, json_type(text)) for column, text in columns]
        client = self.java if creator == JAVA else self.pypaimon
        client.create(self.folder, full, typed, primary_key=primary_key, partitioned_by=partitioned_by, options=options)

    def write(
        self,
        writer: str,
        name: str,
        rows: Rows,
        *,
        overwrite: bool | Mapping[str, Any] = False,
        kinds: Sequence[str] | None = None,
    ) -> None:
        """One commit of rows of Python values; `overwrite=True` replaces the partitions written to, a mapping that partition,
        an empty one the whole table. pypaimon takes kinds only from a column, `rowkind.field`."""
        fields = self.table(name).schema.fields
        data = arrow_rows(rows, fields)
        full = f"{DATABASE}.{name}"
        if writer == LAKELET:
            partition = overwrite if isinstance(overwrite, Mapping) and overwrite else None
            mode = "overwrite" if isinstance(overwrite, Mapping) else "overwrite_partitions" if overwrite else "append"
            self.table(name).write(data, mode=mode, partition=partition, kinds=kinds)
        elif writer == JAVA:
            options = {"dynamic-partition-overwrite": "false"} if overwrite == {} else None
            spelled = spell_table(data, fields)
            for row, kind in zip(spelled, kinds or (), strict=False):
                row["_kind"] = kind
            self.java.write(self.folder, full, spelled, overwrite=overwrite or overwrite == {}, options=options)
        else:
            assert kinds is None
            self.pypaimon.write(
                self.folder, full, in_seconds(data, fields), native=writer == NATIVE, overwrite=overwrite
            )

    def rows(self, reader: str, name: str, **arguments: Any) -> Rows:
        """What one reader gives, spelled and in one order. Arguments: columns, snapshot, tag, branch."""
        scan = self.table(name).scan(
            columns=arguments.get("columns"),
            version=arguments.get("snapshot"),
            tag=arguments.get("tag"),
            branch=arguments.get("branch"),
        )
        fields = [scan.schema.field(column) for column in scan.columns]
        full = f"{DATABASE}.{name}"
        if reader == LAKELET:
            return in_order(spell_table(scan.to_arrow(), fields))
        if reader == JAVA:
            return in_order([respell(row, fields) for row in self.java.read(self.folder, full, **arguments)])
        return in_order(
            spell_table(self.pypaimon.read(self.folder, full, native=reader == NATIVE, **arguments), fields)
        )

    def filtered(self, reader: str, name: str, condition: Any) -> Rows:
        """The rows that match: a WHERE text for Lakelet, a list of filters for Java and for pypaimon."""
        fields = self.table(name).schema.fields
        full = f"{DATABASE}.{name}"
        if reader == LAKELET:
            return in_order(spell_table(self.table(name).scan(where=condition).to_arrow(), fields))
        if reader == JAVA:
            return in_order([respell(row, fields) for row in self.java.read(self.folder, full, filters=condition)])
        found = self.pypaimon.read(self.folder, full, native=reader == NATIVE, filters=condition)
        return in_order(spell_table(found, fields))

    def agree(self, name: str, *, readers: Iterable[str] = READERS, **arguments: Any) -> Rows:
        """The rows of a table, after checking that all of `readers` give the same."""
        expected: Rows | None = None
        for reader in readers:
            found = self.rows(reader, name, **arguments)
            if expected is not None:
                same(found, expected, reader)
            expected = found
        assert expected is not None
        return expected


def same(found: Rows, expected: Rows, who: str) -> None:
    """Asserts that the rows are the same in some order, showing only those that differ."""
    if in_order(found) == in_order(expected):
        return
    extra, missing = _without(found, expected), _without(expected, found)
    lines = [f"{who} gave {len(found)} rows, expected {len(expected)}"]
    for given, wanted in zip(extra[:4], missing[:4], strict=False):
        differing = [name for name in {**given, **wanted} if _text(given.get(name)) != _text(wanted.get(name))]
        lines += [f"  {name}: found {given.get(name)!r}, expected {wanted.get(name)!r}"[:400] for name in differing]
    shown = min(len(extra), len(missing))
    lines += [f"  unexpected: {_text(row)[:400]}" for row in extra[shown : shown + 4]]
    lines += [f"  missing: {_text(row)[:400]}" for row in missing[shown : shown + 4]]
    raise AssertionError("\n".join(lines))


def _without(rows: Rows, others: Rows) -> Rows:
    left = [_text(row) for row in others]
    kept = []
    for row in in_order(rows):
        if _text(row) in left:
            left.remove(_text(row))
        else:
            kept.append(row)
    return kept


def in_order(rows: Iterable[dict[str, Any]]) -> Rows:
    """The rows in the order of their text."""
    return sorted(rows, key=_text)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


# ---------------------------------------------------------------- types


def fields_of(columns: Columns) -> list[Field]:
    """Columns given by name and type text, without ids."""
    return [Field(-1, name, parse_type(text)) for name, text in columns]


def json_type(text: str) -> Any:
    """A type in the form of schema files, without field ids, which every implementation numbers by itself."""
    return _without_ids(encode_type(parse_type(text)))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(inner) for key, inner in value.items() if key != "id"}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


def arrow_rows(rows: Rows, fields: Sequence[Field]) -> pa.Table:
    """Rows of Python values as an Arrow table of the columns; timestamps may be integers in the column's unit."""
    return pa.Table.from_pylist(rows, arrow_schema(fields))


def in_seconds(table: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """With TIMESTAMP(0) columns in seconds, the only unit that pypaimon takes for them."""
    for index, field in enumerate(fields):
        if isinstance(field.type, Atomic) and field.type.kind in TIMESTAMPS and field.type.precision == 0:
            column = table.column(index).cast(pa.timestamp("s", table.column(index).type.tz))
            table = table.set_column(index, pa.field(field.name, column.type, field.type.nullable), column)
    return table


# ---------------------------------------------------------------- spelling


def spell_rows(rows: Rows, fields: Sequence[Field]) -> Rows:
    """Rows of Python values, spelled and in one order."""
    return in_order(spell_table(arrow_rows(rows, fields), fields))


def spell_table(table: pa.Table, fields: Sequence[Field]) -> Rows:
    """The rows of an Arrow table that holds the columns `fields`, in whatever Arrow types."""
    assert table.column_names == [field.name for field in fields], (
        table.column_names,
        [field.name for field in fields],
    )
    columns = [
        [value for chunk in column.chunks for value in spell_array(chunk, field.type)]
        for column, field in zip(table.columns, fields, strict=True)
    ]
    names = table.column_names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def spell_array(array: pa.Array, data_type: DataType) -> list[Any]:
    """Every value of an array, spelled as the type demands; None for NULL."""
    match data_type:
        case Row(fields):
            members = [spell_array(array.field(index), field.type) for index, field in enumerate(fields)]
            names = [field.name for field in fields]
            assert names == [array.type.field(index).name for index in range(array.type.num_fields)]
            rows = [dict(zip(names, values, strict=True)) for values in zip(*members, strict=True)]
            return _where_valid(array, rows)
        case Array(element):
            values, offsets = spell_array(array.values, element), array.offsets.to_pylist()
            return _where_valid(array, [values[offsets[i] : offsets[i + 1]] for i in range(len(array))])
        case Map(key, value):
            return _spell_maps(array, key, value)
        case Multiset(element):
            return _spell_maps(array, element, Atomic(Kind.INT))
        case Atomic(kind) if kind in TIMESTAMPS:
            factor = _NANOS[array.type.unit]
            values = array.cast(pa.int64()).to_pylist()
            return [None if value is None else _spell_timestamp(value * factor, data_type) for value in values]
        case Atomic(Kind.DATE):
            return [
                None if value is None else str(np.datetime64(value, "D"))
                for value in array.cast(pa.int32()).to_pylist()
            ]
        case _:
            spell = _SPELLERS.get(data_type.kind, lambda value: value)
            return [None if value is None else spell(value) for value in array.to_pylist()]


def _where_valid(array: pa.Array, values: list[Any]) -> list[Any]:
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _spell_maps(array: pa.Array, key: DataType, value: DataType) -> list[Any]:
    keys, values = spell_array(array.keys, key), spell_array(array.items, value)
    pairs = [[k, v] for k, v in zip(keys, values, strict=True)]
    offsets = array.offsets.to_pylist()
    return _where_valid(array, [sorted(pairs[offsets[i] : offsets[i + 1]], key=_text) for i in range(len(array))])


def _spell_timestamp(nanos: int, data_type: Atomic) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = str(np.datetime64(seconds, "s")).replace("T", " ")
    digits = data_type.precision
    if digits:
        text += "." + f"{fraction:09}"[:digits]
    return text + ("Z" if data_type.kind is Kind.TIMESTAMP_LTZ else "")


def _spell_float(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def _spell_time(value: datetime.time) -> str:
    return value.isoformat(timespec="milliseconds")


def _spell_decimal(value: Decimal) -> str:
    return format(value, "f")


_SPELLERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.DECIMAL: _spell_decimal,
    Kind.BINARY: bytes.hex,
    Kind.VARBINARY: bytes.hex,
    Kind.TIME: _spell_time,
    **dict.fromkeys(FLOATS, _spell_float),
}


def respell(row: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """A row as Java printed it, with floats as text and the entries of maps in one order."""
    assert list(row) == [field.name for field in fields], (list(row), [field.name for field in fields])
    return {field.name: _respell(row[field.name], field.type) for field in fields}


def _respell(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    match data_type:
        case Row(fields):
            return respell(value, fields)
        case Array(element):
            return [_respell(one, element) for one in value]
        case Map(key, item):
            return sorted(([_respell(k, key), _respell(v, item)] for k, v in value), key=_text)
        case Multiset(element):
            return sorted(([_respell(k, element), v] for k, v in value), key=_text)
        case Atomic(Kind.FLOAT) if not isinstance(value, str):
            return _spell_float(float(np.float32(value)))
        case Atomic(Kind.DOUBLE) if not isinstance(value, str):
            return _spell_float(value)
        case _:
            return value
