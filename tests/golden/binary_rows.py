"""Reads the vectors that Java Paimon 1.4.2 made of rows: their BinaryRow bytes, hashes and partition folders."""

from __future__ import annotations

import datetime as dt
import json
import struct
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from lakelet.format.rows.binary_row import nanoseconds
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import BINARIES, FLOATS, TIMESTAMPS, Atomic, DataType, Kind

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """A row and what Java made of it. `path` is None where Java's default name is not the same twice."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    values: tuple[object, ...]
    row: bytes
    hash: int
    path: str | None
    plain_path: str


def golden_rows() -> list[GoldenRow]:
    """All rows of `binary-rows.json`."""
    found = []
    for entry in json.loads((FOLDER / "binary-rows.json").read_text()):
        types = tuple(parse_type(text) for text in entry["types"])
        values = tuple(from_json(value, kind) for value, kind in zip(entry["values"], types, strict=True))
        names = tuple(entry.get("names") or (f"c{index}" for index in range(len(types))))
        found.append(
            GoldenRow(
                names, types, values, bytes.fromhex(entry["row"]), entry["hash"], entry["path"], entry["plain_path"]
            )
        )
    return found


def from_json(value: object, data_type: DataType) -> object:
    """A value as the vectors write it, in the form that rows take."""
    assert isinstance(data_type, Atomic)
    if value is None:
        return None
    kind = data_type.kind
    if kind in FLOATS:
        number = float(value)  # type: ignore[arg-type]
        return struct.unpack("<f", struct.pack("<f", number))[0] if kind is Kind.FLOAT else number
    if not isinstance(value, str):
        return value
    if kind is Kind.DECIMAL:
        return Decimal(value)
    if kind in BINARIES:
        return bytes.fromhex(value)
    if kind is Kind.DATE:
        return dt.date.fromisoformat(value)
    if kind is Kind.TIME:
        return dt.time.fromisoformat(value)
    if kind not in TIMESTAMPS:
        return value
    second, _, fraction = value.rstrip("Z").partition(".")
    moment = dt.datetime.fromisoformat(second)
    nanos = int(fraction.ljust(9, "0"))
    if data_type.precision > 6:
        return nanoseconds(moment) + nanos
    moment = moment.replace(microsecond=nanos // 1000)
    return moment.replace(tzinfo=dt.UTC) if kind is Kind.TIMESTAMP_LTZ else moment


def column_of(values: list[object], data_type: DataType) -> pa.Array:
    """Values as the Arrow array of their type."""
    arrow = to_arrow(data_type)
    if any(isinstance(value, int) for value in values) and pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).cast(arrow)
    return pa.array(values, arrow)
