"""A source database in a dictionary: random changes of its rows, the events of each envelope, and its state in the end."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from tests.spark.cdc.sample_events import DECIMAL, canal, debezium

EPOCH = datetime(1970, 1, 1)
NOTES = ("", "x", 'ä"\\\n\t', "日本語 🦆", "null", "1", '{"a":1}', "','payload':")


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "parameters": parameters}


# Name, field of Debezium's schema, MySQL's type. Those behind the first six come to the table later.
COLUMNS: list[tuple[str, dict[str, Any], str]] = [
    ("id", {"type": "int64", "optional": False}, "bigint"),
    ("price", _decimal(20, 4), "decimal(20,4)"),
    ("big", {"type": "int64"}, "bigint"),
    ("note", {"type": "string"}, "text"),
    ("at", {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, "datetime(6)"),
    ("flag", {"type": "boolean"}, "tinyint(1)"),
    ("huge", _decimal(38, 0), "decimal(38,0)"),
    ("born", {"type": "int32", "name": "io.debezium.time.Date"}, "date"),
    ("Note", {"type": "string"}, "varchar(20)"),
    ("real", {"type": "float64"}, "double"),
    ("clock", {"type": "int32", "name": "io.debezium.time.Time"}, "time(3)"),
]  # fmt: skip
FIRST = 6


def fields(count: int, *, wide: bool) -> list[dict[str, Any]]:
    """The fields of Debezium's schema; `big` is an INT until it is widened."""
    made = [{"field": name, "optional": name != "id", **known} for name, known, _ in COLUMNS[:count]]
    return [{**one, "type": "int32"} if one["field"] == "big" and not wide else one for one in made]


@dataclass(slots=True)
class SourceHistory:
    """Changes of a table, one after another."""

    random: random.Random
    keys: int = 12
    columns: int = FIRST
    wide: bool = False
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def change(self, envelope: str) -> None:
        """One random change: of a row, or of the table."""
        what = self.random.random()
        if what < 0.04 and self.columns < len(COLUMNS):
            self.columns += 1
        elif what < 0.06:
            self.wide = True
        key = self.random.randrange(self.keys)
        old = self.rows.get(key)
        if old is None:
            self._emit(envelope, "i", None, self._row(key))
        elif what < 0.25:
            self._emit(envelope, "d", old, None)
        elif what < 0.4 and (other := self.random.randrange(self.keys)) not in self.rows:
            self._emit(envelope, "u", old, {**self._row(other), "id": other})
        else:
            self._emit(envelope, "u", old, self._row(key))

    def state(self) -> list[dict[str, Any]]:
        """The rows at the end, with all columns that came."""
        names = [name for name, _, _ in COLUMNS[: self.columns]]
        return [{name: self.rows[key].get(name) for name in names} for key in sorted(self.rows)]

    def _row(self, key: int) -> dict[str, Any]:
        chosen = self.random
        bits = 62 if self.wide else 31
        values = {
            "id": key,
            "price": Decimal(chosen.randrange(-(10**20) + 1, 10**20)).scaleb(-4),
            "big": chosen.randrange(-(2**bits), 2**bits),
            "note": chosen.choice(NOTES),
            "at": EPOCH + timedelta(microseconds=chosen.randrange(-(10**16), 10**16)),
            "flag": chosen.random() < 0.5,
            "huge": Decimal(chosen.choice([-1, 1]) * chosen.randrange(10 ** chosen.randrange(1, 38))),
            "born": date(1970, 1, 1) + timedelta(days=chosen.randrange(-30000, 30000)),
            "Note": chosen.choice(NOTES),
            "real": chosen.uniform(-1e9, 1e9),
            "clock": (datetime(2000, 1, 1) + timedelta(milliseconds=chosen.randrange(86_400_000))).time(),
        }
        names = [name for name, _, _ in COLUMNS[: self.columns]]
        return {name: None if name != "id" and chosen.random() < 0.15 else values[name] for name in names}

    def _emit(self, envelope: str, op: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if old is not None:
            del self.rows[old["id"]]
        if new is not None:
            self.rows[new["id"]] = new
        place = len(self.events)
        if envelope == "canal":
            self.events.append(_canal(op, old, new, place, self.columns, wide=self.wide))
        else:
            letter = {"i": "c"}.get(op, op)
            before, after = (None if row is None else _debezium(row) for row in (old, new))
            known = fields(self.columns, wide=self.wide)
            self.events.append(debezium(letter, before, after, fields=known, lsn=place, ts_ms=1))


def _debezium(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else _spelt(value) for name, value in row.items()}


def _spelt(value: Any) -> Any:
    match value:
        case Decimal():
            number = int(value.scaleb(4)) if value.as_tuple().exponent == -4 else int(value)
            size = (number.bit_length() + 8) // 8
            return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case time():
            return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
        case _:
            return value


def _canal(
    op: str, old: dict[str, Any] | None, new: dict[str, Any] | None, place: int, count: int, *, wide: bool
) -> dict[str, Any]:
    kind = {"i": "INSERT", "u": "UPDATE", "d": "DELETE"}[op]
    row = {name: _text(value) for name, value in (new or old or {}).items()}
    before = {name: _text(value) for name, value in (old or {}).items()}
    changed = {name: value for name, value in before.items() if row.get(name) != value}
    types = {name: "int" if name == "big" and not wide else known for name, _, known in COLUMNS[:count]}
    more = {"old": [changed]} if op == "u" else {}
    # One time for all: only the number tells the order.
    return canal(kind, [row], id=place, es=5, mysqlType=types, **more)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:f}" if isinstance(value, Decimal) else repr(value) if isinstance(value, float) else str(value)
