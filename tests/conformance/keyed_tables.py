"""Primary-key tables and a dict that says what must be in them.

`KeyedTable` is a table in a warehouse that all write to and read from, with a `Model` of it: the newest row of every key, by
the rules of the table's options. Rows of Python values go in; the model keeps them spelled, as `tables` compares them.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakelet.model.types import Field
from lakelet.table import Table
from tests.conformance.tables import (
    DATABASE,
    READERS,
    Columns,
    Rows,
    Warehouse,
    arrow_rows,
    in_order,
    respell,
    same,
    spell_table,
)

PUTS = ("+I", "+U")
Key = str
Version = tuple[tuple[bool, Any], ...]


@dataclass
class Model:
    """The newest row of each key; a row that a delete took out stays known by its version, until a compaction drops it."""

    key: list[str]
    sequence: list[str] = field(default_factory=list)
    descending: bool = False
    ignore_delete: bool = False
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    versions: dict[Key, Version] = field(default_factory=dict)

    def write(self, rows: Rows, spelled: Rows, kinds: Sequence[str] | None) -> None:
        """One commit: `spelled` are the same rows, spelled."""
        for number, (row, plain) in enumerate(zip(rows, spelled, strict=True)):
            kind = kinds[number] if kinds else "+I"
            if self.ignore_delete and kind not in PUTS:
                continue
            key, version = self.key_of(plain), self._version(row)
            if key in self.versions and self._older(version, self.versions[key]):
                continue
            self.versions[key] = version
            if kind in PUTS:
                self.rows[key] = plain
            else:
                self.rows.pop(key, None)

    def delete(self, keys: Iterable[Key]) -> None:
        """As Lakelet deletes by key: against the row's own version, so that nothing stays but what is newer."""
        for key in keys:
            self.rows.pop(key, None)

    def compacted(self) -> None:
        """A full compaction forgets what was deleted."""
        self.versions = {key: version for key, version in self.versions.items() if key in self.rows}

    def clear(self, gone: Callable[[dict[str, Any]], bool] = lambda row: True) -> None:
        """Rows that an overwrite replaces, deletes and all."""
        self.rows = {key: row for key, row in self.rows.items() if not gone(row)}
        self.compacted()

    def key_of(self, spelled: Mapping[str, Any]) -> Key:
        return json.dumps([spelled[name] for name in self.key], ensure_ascii=False)

    def found(self) -> Rows:
        return in_order(self.rows.values())

    def _version(self, row: Mapping[str, Any]) -> Version:
        return tuple((row[name] is not None, row[name]) for name in self.sequence)

    def _older(self, one: Version, than: Version) -> bool:
        for (present, value), (other_present, other) in zip(one, than, strict=True):
            if present != other_present:
                return other_present
            if present and value != other:
                return bool((value > other) if self.descending else (value < other))
        return False


def difference(before: Mapping[Key, dict[str, Any]], after: Mapping[Key, dict[str, Any]]) -> Rows:
    """What `changes` must say about two versions: rows with their kind under `_kind`, in one order."""
    found: Rows = []
    for key, row in before.items():
        if key not in after:
            found.append({"_kind": "-D", **row})
        elif row != after[key]:
            found += [{"_kind": "-U", **row}, {"_kind": "+U", **after[key]}]
    found += [{"_kind": "+I", **row} for key, row in after.items() if key not in before]
    return in_order(found)


def spelled_changes(table: Table, start: int, end: int | None = None) -> Rows:
    """What Lakelet's `changes` says, spelled, with kinds under `_kind`."""
    found = table.changes(start, end)
    rows = spell_table(found.drop_columns(["_row_kind"]), table.schema.fields)
    return [{"_kind": kind, **row} for kind, row in zip(found.column("_row_kind").to_pylist(), rows, strict=True)]


class KeyedTable:
    """One primary-key table, its model, and every state that it was in."""

    def __init__(
        self,
        warehouse: Warehouse,
        creator: str,
        name: str,
        columns: Columns,
        key: Sequence[str],
        *,
        partitioned_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        readers: Sequence[str] = READERS,
    ) -> None:
        self.warehouse = warehouse
        self.name = name
        self.readers = tuple(readers)
        options = dict(options or {})
        warehouse.create(creator, name, columns, primary_key=key, partitioned_by=partitioned_by, options=options)
        sequence = options.get("sequence.field")
        self.model = Model(
            list(key),
            sequence.split(",") if sequence else [],
            options.get("sequence.field.sort-order") == "descending",
            options.get("ignore-delete") == "true",
        )
        self.states: dict[int, dict[Key, dict[str, Any]]] = {0: {}}

    @property
    def table(self) -> Table:
        return self.warehouse.table(self.name)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.table.schema.fields

    @property
    def full_name(self) -> str:
        return f"{DATABASE}.{self.name}"

    def spell(self, rows: Rows) -> Rows:
        """In the order given."""
        return spell_table(arrow_rows(rows, self.fields), self.fields)

    # ---------------------------------------------------------------- writing

    def write(self, writer: str, rows: Rows, kinds: Sequence[str] | None = None) -> None:
        self.warehouse.write(writer, self.name, rows, kinds=kinds)
        self.model.write(rows, self.spell(rows), kinds)
        self.note()

    def delete(self, keys: Rows) -> None:
        """Lakelet's delete by key."""
        self.table.delete(self.key_table(keys))
        self.model.delete(self.spell_keys(keys))
        self.note()

    def compact(self) -> None:
        """By Java, all of it."""
        self.warehouse.java.compact(self.warehouse.folder, self.full_name)
        self.model.compacted()
        self.note()

    def note(self) -> None:
        """Keeps the state that the newest snapshot must show."""
        latest = self.table.latest_snapshot()
        for id_ in range(max(self.states) + 1, latest.id + 1 if latest else 0):
            self.states[id_] = dict(self.model.rows)

    def key_table(self, rows: Rows) -> pa.Table:
        fields = [self.table.schema.field(name) for name in self.model.key]
        return arrow_rows([{name: row[name] for name in self.model.key} for row in rows], fields)

    def spell_keys(self, rows: Rows) -> list[Key]:
        fields = [self.table.schema.field(name) for name in self.model.key]
        return [self.model.key_of(row) for row in spell_table(self.key_table(rows), fields)]

    # ---------------------------------------------------------------- comparing

    def check(self, readers: Sequence[str] | None = None) -> None:
        """All readers, counts and key order against the model."""
        for reader in readers or self.readers:
            same(self.warehouse.rows(reader, self.name), self.model.found(), f"{reader} against the model")
        assert self.table.scan().count() == len(self.model.rows)

    def check_ordered(self) -> None:
        scan = self.table.scan(ordered=True)
        same(spell_table(scan.to_arrow(), self.fields), self.model.found(), "lakelet, ordered")

    def check_get(self, rows: Rows) -> None:
        """Rows with keys, wanted or not: `get_many` gives the model's, in the order asked for."""
        wanted = self.spell_keys(rows)
        found = spell_table(self.table.get_many(self.key_table(rows)), self.fields)
        expected = [self.model.rows[key] for key in wanted if key in self.model.rows]
        same(found, expected, "lakelet, get_many")
        assert [self.model.key_of(row) for row in found] == [self.model.key_of(row) for row in expected]

    def check_where(self, where: str, java: Sequence[str], keep: Callable[[dict[str, Any]], bool]) -> None:
        """A filter as Lakelet and as Java take it, against the model."""
        expected = [row for row in self.model.rows.values() if keep(row)]
        same(self.warehouse.filtered("lakelet", self.name, where), expected, f"lakelet where {where}")
        same(self.warehouse.filtered("java", self.name, list(java)), expected, f"java where {java}")
        assert self.table.scan(where=where).count() == len(expected)

    def check_history(self, *, seed: int = 0, most: int = 5, readers: Sequence[str] = ("lakelet", "java")) -> None:
        """Some older versions, and the changes between them; of a schema that did not change."""
        ids = sorted(self.states)
        chosen = ids if len(ids) <= most else sorted(random.Random(seed).sample(ids, most))
        for id_ in chosen:
            if id_ > 0:
                expected = in_order(self.states[id_].values())
                for reader in readers:
                    same(self.warehouse.rows(reader, self.name, snapshot=id_), expected, f"{reader} at {id_}")
        for start, end in itertools.pairwise(sorted({ids[0], *chosen, ids[-1]})):
            expected = difference(self.states[start], self.states[end])
            same(spelled_changes(self.table, start, end), expected, f"changes {start} to {end}")

    def buckets(self) -> dict[Key, tuple[bytes, int]]:
        """The place of each row; a key in two places is an error."""
        scan = self.table.scan()
        found: dict[Key, tuple[bytes, int]] = {}
        for split in scan.plan().splits:
            for row in spell_table(pa.Table.from_batches(scan.read(split), scan.arrow_schema), self.fields):
                key = self.model.key_of(row)
                assert key not in found, f"{key} stands in {found[key]} and in bucket {split.bucket}"
                found[key] = (split.partition, split.bucket)
        return found

    def java_changes(self, first: int, last: int) -> Rows:
        """Java's streaming read of snapshots first..last, spelled."""
        found = self.warehouse.java.changes(self.warehouse.folder, self.full_name, first, last)
        return [
            {
                "_kind": row["_kind"],
                **respell({name: value for name, value in row.items() if name != "_kind"}, self.fields),
            }
            for row in found
        ]
