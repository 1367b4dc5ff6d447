"""Random operations on two tables with different options: both hold what the model holds, in every version.

One table has the options of one draw, the other those of another (file and manifest formats, tiny files, manifests and
buffers, every mode of statistics, with buckets or without); what is done to one is done to the other. `LAKELET_CASES`
multiplies the number of runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lakelet import InvalidError, Lake, Table
from lakelet.storage.memory import MemoryStore
from tests.property import strategies
from tests.property.table_model import (
    Column,
    Leaf,
    Row,
    Shown,
    Struct,
    TableModel,
    Version,
    found,
    plain,
    shown_rows,
    structs,
    type_text,
    unsigned,
)
from tests.tiers.examples import examples

_NAMES = ["alpha", "beta", "gamma", "delta"]


class SteppingClock:
    """A clock that moves on each time it is asked, so that every snapshot has a time of its own."""

    def __init__(self) -> None:
        self._now = 1_700_000_000_000

    def now_ms(self) -> int:
        self._now += 1000
        return self._now

    def monotonic(self) -> float:
        return self._now / 1000

    def sleep(self, seconds: float) -> None:
        self._now += int(seconds * 1000)


class Tables(RuleBasedStateMachine):
    """Two tables and their model."""

    model: TableModel
    tables: list[Table]
    # Whether rows must come in the order they were written: not once files were rewritten.
    ordered: bool

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """Makes the tables."""
        keys = data.draw(st.lists(st.sampled_from(strategies.PARTITION_TYPES), max_size=2), label="partition types")
        others = data.draw(st.lists(strategies.types(), min_size=1, max_size=4), label="column types")
        columns = [Column("id", Leaf("BIGINT"))]
        columns += [Column(f"p{index}", Leaf(text)) for index, text in enumerate(keys)]
        columns += [Column(f"c{index}", data_type) for index, data_type in enumerate(others)]
        self.model = TableModel(Struct(columns), [f"p{index}" for index in range(len(keys))])
        self.tables = []
        self.ordered = not keys
        lake = Lake(MemoryStore(), clock=SteppingClock())
        lake.create_database("d")
        for number in range(2):
            options = data.draw(strategies.options(6), label=f"options of table {number}")
            buckets = data.draw(st.sampled_from([-1, -1, 1, 3]), label="buckets")
            if buckets > 0:
                options |= {"bucket": str(buckets), "bucket-key": "id"}
                self.ordered = self.ordered and buckets == 1
            pairs = [(column.name, type_text(column.type)) for column in columns]
            self.tables.append(
                lake.create_table(f"d.t{number}", pairs, partitioned_by=self.model.partition_keys, options=options)
            )

    # ------------------------------------------------------------------ writing

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Adds rows."""
        rows = data.draw(strategies.rows(self.model.columns), label="rows")
        self._write(data, rows, [*self.model.rows, *rows], changed=bool(rows))

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        """Replaces all rows."""
        rows = data.draw(strategies.rows(self.model.columns), label="rows")
        self._write(data, rows, rows, changed=bool(rows or self.model.rows), mode="overwrite")
        self.ordered = not self.model.partition_keys and all(
            table.options.get("bucket", "-1") in ("-1", "1") for table in self.tables
        )

    @precondition(lambda self: self.model.partition_keys)
    @rule(data=st.data())
    def overwrite_static(self, data: st.DataObject) -> None:
        """Replaces the rows of one partition, or of all that share a part of the key."""
        keys = data.draw(st.lists(st.sampled_from(self.model.partition_keys), min_size=1, unique=True), label="keys")
        columns = [self.model.columns.named(key) for key in keys]
        existing = data.draw(st.sampled_from(self.model.rows), label="like") if self.model.rows else {}
        spec = {column.identity: existing.get(column.identity) for column in columns}
        rows = [{**row, **spec} for row in data.draw(strategies.rows(self.model.columns), label="rows")]
        kept = [row for row in self.model.rows if any(row.get(identity) != value for identity, value in spec.items())]
        partition = {column.name: spec[column.identity] for column in columns}
        changed = bool(rows) or len(kept) < len(self.model.rows)
        self._write(data, rows, [*kept, *rows], changed=changed, mode="overwrite", partition=partition)

    @rule(data=st.data())
    def overwrite_dynamic(self, data: st.DataObject) -> None:
        """Replaces the rows of the partitions that the new rows belong to."""
        rows = data.draw(strategies.rows(self.model.columns), label="rows")
        touched = {self.model.partition(row) for row in rows}
        kept = [row for row in self.model.rows if self.model.partition(row) not in touched]
        self._write(data, rows, [*kept, *rows], changed=bool(rows), mode="overwrite_partitions")

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Deletes the rows that match a condition."""
        condition = data.draw(strategies.conditions(self.model.columns), label="where")
        kept = [row for row in self.model.rows if not condition.keeps(row)]
        made = [table.delete(where=condition.sql) for table in self.tables]
        assert [snapshot is not None for snapshot in made] == [len(kept) < len(self.model.rows)] * 2
        if made[0] is not None:
            self.ordered = False
            self._commit(kept)
        self._check(data)

    def _write(self, data: st.DataObject, rows: list[Row], after: list[Row], *, changed: bool, **how: Any) -> None:
        omitted = self._omitted(data, rows)
        made = [table.write(self._input(data, table, rows, omitted), **how) for table in self.tables]
        assert [snapshot is not None for snapshot in made] == [changed, changed]
        if changed:
            self._commit(after)
        self._check(data)

    def _omitted(self, data: st.DataObject, rows: list[Row]) -> set[str]:
        """Columns to leave out of the data: their rows take the default."""
        able = [
            column for column in self.model.columns.columns if column.name not in ("id", *self.model.partition_keys)
        ]
        chosen = (
            data.draw(st.sets(st.sampled_from([column.name for column in able])), label="left out") if able else set()
        )
        if len(chosen) == len(self.model.columns.columns):
            return set()
        for column in able:
            if column.name in chosen:
                for row in rows:
                    row[column.identity] = column.default
        return chosen

    def _input(self, data: st.DataObject, table: Table, rows: Sequence[Row], omitted: set[str]) -> Any:
        columns = [column for column in self.model.columns.columns if column.name not in omitted]
        lines = [{column.name: plain(row[column.identity], column.type) for column in columns} for row in rows]
        as_dicts = data.draw(st.booleans(), label="as dicts")
        if rows and as_dicts:
            return lines
        order = data.draw(st.permutations([column.name for column in columns]), label="order of columns")
        schema = pa.schema([table.scan().arrow_schema.field(name) for name in order])
        arrow = pa.Table.from_pylist(lines, schema=schema)
        size = data.draw(st.integers(1, 4), label="batch size")
        return [arrow.slice(start, size) for start in range(0, len(rows), size)] or arrow

    def _commit(self, rows: list[Row]) -> None:
        snapshots = [table.latest_snapshot() for table in self.tables]
        assert snapshots[0] is not None
        assert [snapshot.id for snapshot in snapshots if snapshot is not None] == [len(self.model.versions) + 1] * 2
        self.model.commit(rows, snapshots[0].time_ms)

    # ------------------------------------------------------------------ changing the table

    @rule(data=st.data())
    def add_column(self, data: st.DataObject) -> None:
        """Adds a column at any depth, possibly under a name that was dropped."""
        path, place = self._place(data)
        free = [name for name in _NAMES if name not in place.names()]
        if not free:
            return
        column = Column(data.draw(st.sampled_from(free)), data.draw(strategies.types(), label="type"))
        if not path and column.type in (Leaf("INT"), Leaf("STRING"), Leaf("DOUBLE")):
            column.default = data.draw(
                st.sampled_from([None, {"INT": 7, "STRING": "d", "DOUBLE": 2.5}[type_text(column.type)]])
            )
        after = data.draw(st.sampled_from([None, *place.names()]), label="after")
        first = after is None and data.draw(st.booleans(), label="first")
        for table in self.tables:
            table.add_column(
                (*path, column.name), type_text(column.type), default=column.default, after=after, first=first
            )
        index = 0 if first else len(place.columns) if after is None else place.names().index(after) + 1
        place.columns.insert(index, column)
        self._check(data)

    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        """Drops a column at any depth."""
        path, place = self._place(data)
        able = [column for column in place.columns if self._free(path, column)]
        if not able or len(place.columns) == 1:
            return
        column = data.draw(st.sampled_from(able), label="column")
        for table in self.tables:
            table.drop_column((*path, column.name))
        place.columns.remove(column)
        self._check(data)

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        """Renames a column at any depth."""
        path, place = self._place(data)
        able = [column for column in place.columns if self._free(path, column)]
        free = [name for name in _NAMES if name not in place.names()]
        if not able or not free:
            return
        column, name = data.draw(st.sampled_from(able), label="column"), data.draw(st.sampled_from(free), label="name")
        for table in self.tables:
            table.rename_column((*path, column.name), name)
        column.name = name
        self._check(data)

    @rule(data=st.data())
    def move_column(self, data: st.DataObject) -> None:
        """Moves a column among its siblings."""
        path, place = self._place(data)
        column = data.draw(st.sampled_from(place.columns), label="column")
        after = data.draw(
            st.sampled_from([None, *(name for name in place.names() if name != column.name)]), label="after"
        )
        for table in self.tables:
            table.move_column((*path, column.name), after=after, first=after is None)
        place.columns.remove(column)
        place.columns.insert(0 if after is None else place.names().index(after) + 1, column)
        self._check(data)

    @rule(data=st.data())
    def widen(self, data: st.DataObject) -> None:
        """Changes a column to a type that holds all its values."""
        path, place = self._place(data)
        able = [
            column
            for column in place.columns
            if isinstance(column.type, Leaf) and column.type.text in strategies.WIDENINGS and self._free(path, column)
        ]
        if not able:
            return
        column = data.draw(st.sampled_from(able), label="column")
        assert isinstance(column.type, Leaf)
        wider = data.draw(st.sampled_from(strategies.WIDENINGS[column.type.text]), label="type")
        for table in self.tables:
            table.change_type((*path, column.name), wider)
        column.type = Leaf(wider)
        self._check(data)

    @rule(data=st.data(), number=st.integers(0, 1))
    def set_options(self, data: st.DataObject, number: int) -> None:
        """Changes how one of the tables is stored from now on."""
        self.tables[number].set_options(data.draw(strategies.options(), label="options"))
        self._check(data)

    @rule(number=st.integers(0, 1))
    def refused_write(self, number: int) -> None:
        """A write that does not fit leaves nothing behind."""
        table = self.tables[number]
        before = table.latest_snapshot()
        with pytest.raises(InvalidError):
            table.write(pa.table({"id": ["no number"]}))
        assert table.latest_snapshot() == before

    def _place(self, data: st.DataObject) -> tuple[tuple[str, ...], Struct]:
        return data.draw(st.sampled_from(list(structs(self.model.columns))), label="place")

    def _free(self, path: tuple[str, ...], column: Column) -> bool:
        """Whether a column may be changed: keys may not, nor the column that every row is known by."""
        return bool(path) or column.name not in ("id", *self.model.partition_keys)

    # ------------------------------------------------------------------ reading

    def _check(self, data: st.DataObject) -> None:
        expected = shown_rows(self.model.rows, self.model.columns)
        for table in self.tables:
            rows = _rows(table.scan().to_arrow(), self.model.columns)
            if self.ordered:
                assert rows == expected
            assert Counter(rows) == Counter(expected)
        if self.model.versions:
            number = data.draw(st.integers(1, len(self.model.versions)), label="older version")
            self._check_version(
                number, self.model.versions[number - 1], by_time=data.draw(st.booleans(), label="by time")
            )
        for table in self.tables:
            self._check_query(data, table)

    def _check_version(self, number: int, version: Version, *, by_time: bool) -> None:
        expected = Counter(version.shown())
        for index, table in enumerate(self.tables):
            # The clock belongs to both tables, so only the first one's times are the model's.
            scan = table.scan(timestamp=version.time_ms) if by_time and index == 0 else table.scan(version=number)
            assert Counter(_rows(scan.to_arrow(), version.columns)) == expected
            assert scan.count() == len(version.rows)

    def _check_query(self, data: st.DataObject, table: Table) -> None:
        kind = data.draw(st.sampled_from(["where", "columns", "limit", "count", "changes", "batches"]), label="query")
        columns, rows = self.model.columns, self.model.rows
        if kind == "where":
            condition = data.draw(strategies.conditions(columns), label="where")
            names = data.draw(st.lists(st.sampled_from(columns.names()), min_size=1, unique=True), label="columns")
            kept = [row for row in rows if condition.keeps(row)]
            scan = table.scan(columns=names, where=condition.sql)
            assert Counter(_rows(scan.to_arrow(), columns, names)) == Counter(shown_rows(kept, columns, names))
            assert table.scan(where=condition.sql).count() == len(kept)
        elif kind == "columns":
            names = data.draw(st.lists(st.sampled_from(columns.names()), min_size=1, unique=True), label="columns")
            assert Counter(_rows(table.scan(columns=names).to_arrow(), columns, names)) == Counter(
                shown_rows(rows, columns, names)
            )
        elif kind == "limit":
            limit = data.draw(st.integers(0, 8), label="limit")
            some = Counter(_rows(table.scan(limit=limit).to_arrow(), columns))
            assert some.total() == min(limit, len(rows))
            assert some <= Counter(shown_rows(rows, columns))
        elif kind == "count":
            assert table.scan().count() == len(rows)
        elif kind == "changes":
            latest = len(self.model.versions)
            start = data.draw(st.integers(0, latest), label="start")
            end = data.draw(st.integers(start, latest), label="end")
            changes = table.changes(start, end)
            kinds, shown = changes.column("_row_kind").to_pylist(), _rows(changes.drop(["_row_kind"]), columns)
            assert Counter(zip(kinds, map(unsigned, shown), strict=True)) == self.model.difference(start, end)
        else:
            scan = table.scan()
            batches = [batch for split in scan.plan().splits for batch in scan.read(split)]
            assert Counter(_rows(pa.Table.from_batches(batches, scan.arrow_schema), columns)) == Counter(
                shown_rows(rows, columns)
            )


def _rows(arrow: pa.Table, columns: Struct, names: Sequence[str] | None = None) -> list[Shown]:
    wanted = columns.columns if names is None else [columns.named(name) for name in names]
    assert arrow.column_names == [column.name for column in wanted]
    return [
        tuple((column.name, found(row[column.name], column.type)) for column in wanted) for row in arrow.to_pylist()
    ]


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=examples(40),
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
