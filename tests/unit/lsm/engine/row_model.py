"""What `aggregation` and `partial-update` make of the rows of a key, in plain Python, row by row.

A row is a dict with its kind under `_kind`. Values are those of Arrow: ints, floats, Decimals, text. What is told here is what
Paimon does, with its corners: a row that is alone is not merged, a retract that comes first fills the columns of a partial
update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
from pyroaring import BitMap

Row = dict[str, Any]
INSERT, DELETE = "+I", "-D"
RETRACTS = ("-U", "-D")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class Accumulator:
    """The aggregation of one column."""

    def __init__(self, function: str, type_: str, settings: Mapping[str, Any] | None = None) -> None:
        self.function, self.type, self.begun = function, type_, False
        self.settings = settings or {}

    def agg(self, value: Any, given: Any) -> Any:
        match self.function:
            case "last_value":
                return given
            case "last_non_null_value":
                return value if given is None else given
            case "first_value":
                if self.begun:
                    return value
                self.begun = True
                return given
            case "first_non_null_value":
                if self.begun or given is None:
                    return value
                self.begun = True
                return given
            case "collect" if self.settings.get("distinct"):
                if value is None and given is None:
                    return None
                # Paimon takes elements that are nested for distinct in what it has already.
                held = value or [] if self.type.startswith("ARRAY<ROW") else unique(value or [])
                return held + [item for item in unique(given or []) if repr(item) not in map(repr, held)]
        if value is None or given is None:
            return given if value is None else value
        match self.function:
            case "collect":
                return value + given
            case "merge_map":
                return list((dict(value) | dict(given)).items())
            case "merge_map_with_keytime":
                return self.timed(dict(value), given)
            case "nested_update":
                return self.nested(value, given)
            case "nested_partial_update":
                return self.merged(value + given)
            case "rbm32":
                return (BitMap.deserialize(value) | BitMap.deserialize(given)).serialize()
            case "max":
                return given if order(value) < order(given) else value
            case "min":
                return value if order(value) < order(given) else given
            case "bool_and":
                return value and given
            case "bool_or":
                return value or given
            case "sum":
                return self.rounded(lambda one, two: one + two, value, given)
            case "product":
                return self.rounded(lambda one, two: one * two, value, given)
            case "listagg":
                return self.joined(value, given)
        raise AssertionError(self.function)

    def retract(self, value: Any, given: Any) -> Any:
        match self.function:
            case "last_value":
                return None
            case "last_non_null_value":
                return value if given is None else None
            case "sum":
                if value is None or given is None:
                    return value if given is None else self.rounded(lambda one, two: -two, given, given)
                return self.rounded(lambda one, two: one - two, value, given)
            case "product":
                if value is None or given is None:
                    return value
                return self.rounded(divided, value, given)
        if value is None or given is None:
            return value
        match self.function:
            case "collect":
                return without(value, given)
            case "merge_map":
                return [(key, item) for key, item in value if key not in dict(given)]
            case "nested_update" if self.settings.get("nested-key"):
                gone = [self.nested_key(row) for row in given if row is not None]
                return [row for row in keyed(value, self.nested_key) if self.nested_key(row) not in gone]
            case "nested_update":
                return [row for row in value if row is not None and row not in given]
        raise AssertionError(self.function)

    def joined(self, older: str, newer: str) -> str:
        delimiter = self.settings.get("list-agg-delimiter", ",")
        if not older or not newer:
            return older or newer
        if not self.settings.get("distinct"):
            return older + delimiter + newer
        known = older.split(delimiter)
        for token in newer.split(delimiter):
            if token and token not in known:
                known.append(token)
        return delimiter.join(known)

    def timed(self, value: dict[Any, Any], given: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        name = self.settings.get("ts-field", "ts")
        for key, row in given:
            if row is None:
                value.pop(key, None)
            elif row[name] is not None:
                held = value.get(key)
                if held is None or held[name] is None or units(row[name]) > units(held[name]):
                    value[key] = row
        return list(value.items())

    def nested_key(self, row: Row) -> str:
        return repr([row[name] for name in self.settings["nested-key"].split(",")])

    def nested(self, value: list[Any], given: list[Any]) -> list[Any]:
        left = int(self.settings.get("count-limit", 2**31)) - len(value)
        if left <= 0:
            return value
        rows = [row for row in value if row is not None] + [row for row in given if row is not None][:left]
        return keyed(rows, self.nested_key) if "nested-key" in self.settings else rows

    def merged(self, rows: list[Any]) -> list[Any]:
        found: dict[str, Row] = {}
        for row in rows:
            if row is not None:
                known = found.setdefault(self.nested_key(row), dict.fromkeys(row))
                known |= {name: item for name, item in row.items() if item is not None}
        return list(found.values())

    def rounded(self, compute: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
        """The result in the column's type: integers wrap around, floats are rounded, decimals that are too long are NULL."""
        if self.type in _BITS:
            size = 1 << _BITS[self.type]
            return (compute(one, two) + size // 2) % size - size // 2
        if self.type in ("FLOAT", "DOUBLE"):
            kind = np.float32 if self.type == "FLOAT" else np.float64
            with np.errstate(all="ignore"):
                return float(compute(kind(one), kind(two)))
        digits, scale = (int(part) for part in self.type.strip(")").partition("(")[2].split(","))
        with localcontext(prec=99):
            made = compute(one, two).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        return made if len(str(made).replace(".", "").lstrip("-0")) <= digits else None


def unique(items: list[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(repr(item), item)
    return list(found.values())


def without(items: list[Any], gone: list[Any]) -> list[Any]:
    left = [repr(item) for item in gone]
    kept = []
    for item in items:
        if repr(item) in left:
            left.remove(repr(item))
        else:
            kept.append(item)
    return kept


def keyed(rows: list[Any], key: Callable[[Row], str]) -> list[Any]:
    """Of each key the newest row, in the place of the oldest."""
    return list({key(row): row for row in rows if row is not None}.values())


def units(text: str) -> bytes:
    """What Java compares of a text: units of 16 bits."""
    return text.encode("utf-16-be")


def divided(one: Any, two: Any) -> Any:
    if not isinstance(one, int):
        return one / two
    quotient = abs(one) // abs(two)
    return quotient if (one < 0) == (two < 0) else -quotient


def order(value: Any) -> Any:
    """NaN is the greatest number, and 0.0 is more than -0.0."""
    if isinstance(value, float):
        return (1, 0, 0) if np.isnan(value) else (0, value, np.copysign(1, value))
    return value


@dataclass(frozen=True)
class Rules:
    """The columns of a table beside its key, by name, and what its options say of them."""

    key: tuple[str, ...]
    types: Mapping[str, str]
    functions: Mapping[str, str] = field(default_factory=dict)
    ignores: frozenset[str] = frozenset()
    removes: bool = False
    groups: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = ()
    removing: frozenset[str] = frozenset()
    partial: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def fold(self, rows: Sequence[Row]) -> Row:
        """The rows of a key, oldest first, as one."""
        if len(rows) == 1:
            return rows[0]
        return _Partial(self, rows[-1]).of(rows) if self.partial else self._aggregated(rows)

    def _aggregated(self, rows: Sequence[Row]) -> Row:
        columns = {
            name: Accumulator(
                self.functions.get(name, "last_non_null_value"), self.types[name], self.settings.get(name)
            )
            for name in self.types
        }
        state: Row = dict.fromkeys(columns)
        kind = INSERT
        for row in rows:
            kind = DELETE if self.removes and row["_kind"] == DELETE else INSERT
            for name, column in columns.items():
                if kind == DELETE:
                    state[name] = row[name]
                elif row["_kind"] not in RETRACTS:
                    state[name] = column.agg(state[name], row[name])
                elif name not in self.ignores:
                    state[name] = column.retract(state[name], row[name])
        return {**{name: rows[-1][name] for name in self.key}, **state, "_kind": kind}


class _Partial:
    """The partial update of one key."""

    def __init__(self, rules: Rules, last: Row) -> None:
        self.rules = rules
        self.columns = {
            name: Accumulator(rules.functions[name], rules.types[name], rules.settings.get(name))
            for name in rules.functions
        }
        self.key = {name: last[name] for name in rules.key}
        self.state: Row = dict.fromkeys(rules.types)

    def of(self, rows: Sequence[Row]) -> Row:
        removed = inserted = False
        for number, row in enumerate(rows):
            retracts = row["_kind"] in RETRACTS
            if retracts and number == 0:
                self._set(row)
            removed = self._retract(row) if retracts else self._add(row)
            inserted |= not retracts
        return {**self.key, **self.state, "_kind": DELETE if removed or not inserted else INSERT}

    def _set(self, row: Row) -> None:
        self.state = {name: row[name] for name in self.rules.types}

    def _newer(self, row: Row, sequence: Sequence[str]) -> bool:
        versions = [
            tuple((one[name] is not None, order(one[name]) if one[name] is not None else 0) for name in sequence)
            for one in (row, self.state)
        ]
        return versions[0] >= versions[1]

    def _add(self, row: Row) -> bool:
        grouped = {name for sequence, members in self.rules.groups for name in (*sequence, *members)}
        for name in self.state.keys() - grouped:
            self.state[name] = self.state[name] if row[name] is None else row[name]
        for sequence, members in self.rules.groups:
            if all(row[name] is None for name in sequence):
                continue
            newer = self._newer(row, sequence)
            for name in members:
                column = self.columns.get(name)
                if column is not None:
                    newest = newer or column.function == "collect"
                    one, two = (self.state[name], row[name]) if newest else (row[name], self.state[name])
                    self.state[name] = column.agg(one, two)
                elif newer:
                    self.state[name] = row[name]
            if newer:
                self.state |= {name: row[name] for name in sequence}
        return False

    def _retract(self, row: Row) -> bool:
        """Whether the row is removed."""
        groups = [group for group in self.rules.groups if any(row[name] is not None for name in group[0])]
        removing = [group for group in groups if not self.rules.removing.isdisjoint(group[0])]
        if row["_kind"] == DELETE and (self.rules.removes or any(self._newer(row, group[0]) for group in removing)):
            self._set(row)
            return True
        for sequence, members in groups:
            newer = self._newer(row, sequence)
            for name in members:
                column = self.columns.get(name)
                if column is not None:
                    if name not in self.rules.ignores:
                        self.state[name] = column.retract(self.state[name], row[name])
                elif newer:
                    self.state[name] = None
            if newer:
                self.state |= {name: row[name] for name in sequence}
        return False
