"""A primary-key table as plain Python: of every key the record that won, deletes among them, and the rows of each version.

A delete stays as a record, since it may win against rows that come later (a `sequence.field` says so) until the partition is
overwritten or, in a real table, compacted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.property.table_model import Column, Leaf, Row, Shown, Struct, TableModel, found, show, shown_rows, unsigned

Key = tuple[Any, ...]
RETRACTS = ("-U", "-D", "D")


@dataclass(frozen=True)
class Record:
    """The newest record of a key."""

    row: Row
    deleted: bool


@dataclass
class KeyedModel(TableModel):
    """The state by key. `keys` and `sequence` are columns, which may be renamed. With `first` the oldest row of a key stays."""

    keys: list[Column] = field(default_factory=list)
    sequence: list[Column] = field(default_factory=list)
    descending: bool = False
    ignored: tuple[str, ...] = ()
    first: bool = False
    records: dict[Key, Record] = field(default_factory=dict)

    @property
    def live(self) -> list[Row]:
        """The rows that are there now, whatever was committed."""
        return [record.row for record in self.records.values() if not record.deleted]

    def shown(self) -> list[Shown]:
        """These rows in today's columns."""
        return shown_rows(self.live, self.columns)

    @property
    def trimmed(self) -> list[Column]:
        """The key columns that order rows within a bucket."""
        return [column for column in self.keys if column.name not in self.partition_keys]

    def key(self, row: Row) -> Key:
        """What tells a row from others: -0.0 and 0.0 are two keys, NaN is one."""
        return tuple(show(row[column.identity], column.type) for column in self.keys)

    def apply(self, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> None:
        """Rows come in, in this order."""
        for row, kind in zip(rows, kinds or ["+I"] * len(rows), strict=True):
            if kind in self.ignored:
                continue
            before = self.records.get(self.key(row))
            if self.first and before is not None:
                continue
            if before is None or not self._older(row, before.row):
                self.records[self.key(row)] = Record(row, kind in RETRACTS)

    def beaten_by_a_delete(self, row: Row) -> bool:
        """Whether a row is older than a delete, and so shows or not depending on whether that was compacted away."""
        before = self.records.get(self.key(row))
        return before is not None and before.deleted and self._older(row, before.row)

    def forget(self, gone: Callable[[Row], bool]) -> None:
        """Everything is dropped where a row's columns say so, deletes too: an overwrite."""
        self.records = {key: record for key, record in self.records.items() if not gone(record.row)}

    def delete(self, gone: Callable[[Row], bool]) -> int:
        """Deletes live rows, each with its own sequence; how many there were."""
        found = [key for key, record in self.records.items() if not record.deleted and gone(record.row)]
        for key in found:
            self.records[key] = Record(self.records[key].row, True)
        return len(found)

    def keep(self) -> None:
        """The state becomes the next version."""
        self.commit(self.live, 0)

    def changed_keys(self, before: int, after: int) -> Counter[tuple[str, Shown]]:
        """What tells version `after` from version `before`, in today's columns."""
        old, new = (
            {} if number == 0 else {self.key(row): row for row in self.versions[number - 1].rows}
            for number in (before, after)
        )
        changes: Counter[tuple[str, Shown]] = Counter()
        for key in {**old, **new}:
            one, other = (shown_rows([rows[key]], self.columns)[0] if key in rows else None for rows in (old, new))
            if one is None or other is None:
                changes[("+I", unsigned(other)) if one is None else ("-D", unsigned(one))] += 1
            elif unsigned(one) != unsigned(other):
                changes.update([("-U", unsigned(one)), ("+U", unsigned(other))])
        return changes

    def order(self, row: Row) -> tuple[Any, ...]:
        """Sorts rows of a bucket like their keys."""
        return tuple(_order(row[column.identity], column) for column in self.trimmed)

    def _older(self, row: Row, other: Row) -> bool:
        for column in self.sequence:
            mine, theirs = row.get(column.identity), other.get(column.identity)
            if mine is None or theirs is None:
                if (mine is None) != (theirs is None):
                    return mine is None
                continue
            one, two = _order(mine, column), _order(theirs, column)
            if one != two:
                return bool(one > two) if self.descending else bool(one < two)
        return False


def _order(value: Any, column: Column) -> Any:
    assert isinstance(column.type, Leaf)
    if column.type.text.startswith(("FLOAT", "DOUBLE")):
        number = float(value)
        return (True, 0.0, 0.0) if math.isnan(number) else (False, number, math.copysign(1.0, number))
    return value.encode() if isinstance(value, str) else value


def shown(arrow: pa.Table, columns: Struct, names: Sequence[str] | None = None) -> list[Shown]:
    """What a reader gave, in the form that the model has."""
    wanted = columns.columns if names is None else [columns.named(name) for name in names]
    assert arrow.column_names == [column.name for column in wanted]
    return [
        tuple((column.name, found(row[column.name], column.type)) for column in wanted) for row in arrow.to_pylist()
    ]


def same(rows: Sequence[Shown], expected: Sequence[Shown]) -> None:
    """Fails with what is missing and what should not be there."""
    missing, wrong = Counter(expected) - Counter(rows), Counter(rows) - Counter(expected)
    assert not missing, f"missing {list(missing)}; instead there are {list(wrong)}"
    assert not wrong, f"there should not be {list(wrong)}"
