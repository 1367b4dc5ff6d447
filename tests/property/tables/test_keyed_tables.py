"""Random operations on two primary-key tables with different buckets, files and buffers: both hold what the model holds.

What decides which row wins (key, `sequence.field`, `ignore-delete`, `rowkind.field`) is the same for both tables; how rows
are stored (fixed or dynamic buckets, formats, thin files, buffers that spill, tiny splits) is drawn for each. Keys that lack
a partition column make both tables KEY_DYNAMIC. Nothing is compacted here. `LAKELET_CASES` multiplies the number of runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lakelet import ConflictError, InvalidError, Lake, Table
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.sink.bucket.extractors import FixedBucketRowKeyExtractor, RowPartitionAllPrimaryKeyExtractor
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock
from tests.property import keyed_strategies, strategies
from tests.property.keyed_model import KeyedModel, same, shown
from tests.property.table_model import Column, Leaf, Row, Shown, Struct, found, plain, shown_rows, type_text, unsigned
from tests.tiers.examples import examples
from tests.unit.hooked_store import HookedStore

_NAMES = ["alpha", "beta", "gamma", "delta"]
_QUERIES = ["where", "columns", "limit", "changes", "changes", "ordered", "get", "get_many", "splits"]


class KeyedTables(RuleBasedStateMachine):
    """Two tables and their model."""

    model: KeyedModel
    store: MemoryStore
    tables: list[Table]
    kind_column: Column | None

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """Makes the tables."""
        layout = data.draw(keyed_strategies.layouts(), label="layout")
        columns = Struct(layout.columns)
        self.model = KeyedModel(
            columns,
            layout.partition_keys,
            keys=[columns.named(name) for name in layout.keys],
            sequence=[columns.named(name) for name in layout.sequence],
            descending=layout.options.get("sequence.field.sort-order") == "descending",
            ignored=layout.ignored,
        )
        self.kind_column = columns.named("op") if "rowkind.field" in layout.options else None
        self.store = MemoryStore()
        lake = Lake(self.store, clock=SteppingClock())
        lake.create_database("d")
        self.tables = []
        for number in range(2):
            options = data.draw(keyed_strategies.bucket_options(layout), label=f"buckets of {number}")
            options |= layout.options | {"write-only": "true"}
            options |= data.draw(keyed_strategies.stored_options(), label=f"options of table {number}")
            self.tables.append(keyed_strategies.make_table(lake, f"d.t{number}", layout, options))

    # ------------------------------------------------------------------ writing

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        """Puts rows in and takes rows out."""
        rows, kinds = self._rows(data)
        self._write(data, rows, kinds)

    @rule(data=st.data())
    def upsert_again(self, data: st.DataObject) -> None:
        """Meets rows that are there: the same keys with other values."""
        if not self.model.live:
            return
        rows, kinds = self._rows(data, least=1)
        old = data.draw(st.lists(st.sampled_from(self.model.live), min_size=len(rows), max_size=len(rows)), label="old")
        met = [self._with_key_of(row, like) for row, like in zip(rows, old, strict=True)]
        self._write(data, met, kinds)

    @rule(data=st.data(), kind=st.sampled_from(["all", "static", "dynamic"]))
    def overwrite(self, data: st.DataObject, kind: str) -> None:
        """One rule for all overwrites, so that tables have time to grow."""
        getattr(self, f"_overwrite_{kind}")(data)

    def _overwrite_all(self, data: st.DataObject) -> None:
        """Replaces all rows."""
        rows, kinds = self._rows(data)
        self._write(data, rows, kinds, gone=lambda row: True, mode="overwrite")

    def _overwrite_static(self, data: st.DataObject) -> None:
        """Replaces the rows of one partition, or of all that share a part of the key."""
        if not self.model.partition_keys:
            return
        keys = data.draw(st.lists(st.sampled_from(self.model.partition_keys), min_size=1, unique=True), label="keys")
        columns = [self.model.columns.named(key) for key in keys]
        rows, kinds = self._rows(data, least=1)
        like = data.draw(st.sampled_from([*self.model.live, rows[0]]), label="like")
        spec = {column.identity: like.get(column.identity) for column in columns}
        partition = {column.name: spec[column.identity] for column in columns}
        self._write(
            data,
            [{**row, **spec} for row in rows],
            kinds,
            gone=lambda row: all(row.get(identity) == value for identity, value in spec.items()),
            mode="overwrite",
            partition=partition,
        )

    def _overwrite_dynamic(self, data: st.DataObject) -> None:
        """Replaces the rows of the partitions that the new rows belong to."""
        rows, kinds = self._rows(data)
        if self.model.ignored and kinds is not None:
            # A row that is dropped names no partition.
            kept = [place for place, kind in enumerate(kinds) if kind not in self.model.ignored]
            rows, kinds = [rows[place] for place in kept], [kinds[place] for place in kept]
        touched = {self.model.partition(row) for row in rows}
        self._write(
            data, rows, kinds, gone=lambda row: self.model.partition(row) in touched, mode="overwrite_partitions"
        )

    @rule(data=st.data())
    def delete_where(self, data: st.DataObject) -> None:
        """Deletes the rows that match a condition."""
        condition = data.draw(strategies.conditions(self.model.columns), label="where")
        self._delete(condition.keeps, lambda table: table.delete(where=condition.sql))

    @rule(data=st.data())
    def delete_keys(self, data: st.DataObject) -> None:
        """Deletes rows by their keys, some of which have no row."""
        wanted = self._some_keys(data)
        keys = {self.model.key(row) for row in wanted}
        data_of = self._key_table(wanted)
        self._delete(lambda row: self.model.key(row) in keys, lambda table: table.delete(data_of(table)))

    @rule(data=st.data())
    def two_phases(self, data: st.DataObject) -> None:
        """Several writers write files, which are committed at once."""
        rows, kinds = self._rows(data, least=1)
        made = []
        for table in self.tables:
            messages: list[Any] = []
            for part in self._shares(table, rows, data.draw(st.integers(1, 3), label="writers")):
                with table.new_write() as write:
                    own = None if kinds is None or self.kind_column is not None else [kinds[place] for place in part]
                    write.write(self._arrow(table, [rows[place] for place in part]), own)
                    messages += write.prepare_commit()
            made.append(table.new_commit().commit(messages))
        self.model.apply(rows, kinds)
        self._committed(made)

    @rule(data=st.data())
    def two_phases_too_late(self, data: st.DataObject) -> None:
        """Rows of the same keys are committed between the phases: the second phase is refused and nothing happens."""
        rows, kinds = self._rows(data, least=1, kinds=False)
        made = []
        for table in self.tables:
            write = table.new_write()
            write.write(self._arrow(table, rows))
            messages = write.prepare_commit()
            made.append(table.write(self._arrow(table, rows)))
            if made[-1] is not None:
                with pytest.raises(ConflictError):
                    table.new_commit().commit(messages)
            write.abort()
        self.model.apply(rows, kinds)
        self._committed(made)

    @rule(data=st.data())
    def race(self, data: st.DataObject) -> None:
        """Another writer commits between our files and our snapshot: its version comes first, ours then wins."""
        theirs, their_kinds = self._rows(data, least=1)
        their_mode = data.draw(st.sampled_from(["append", "append", "overwrite"]), label="their mode")
        ours, kinds = self._rows(data, least=1)
        mode = data.draw(st.sampled_from(["append", "append", "overwrite"]), label="our mode")
        deleted = data.draw(st.lists(st.sampled_from(self.model.live), max_size=3)) if self.model.live else []
        deletes = bool(deleted) and data.draw(st.booleans(), label="we delete")
        if deletes and "-D" in self.model.ignored:
            return
        keys = {self.model.key(row) for row in deleted}
        outcomes = []
        for table in self.tables:
            met: list[Any] = []

            def rival(table: Table = table, met: list[Any] = met) -> None:
                met.append(table.write(self._arrow(table, theirs), kinds=self._given(their_kinds), mode=their_mode))

            mine = self._hooked(table, rival)
            if deletes:
                made = mine.delete(self._key_table(deleted)(table))
            else:
                made = mine.write(self._arrow(table, ours), kinds=self._given(kinds), mode=mode)
            outcomes.append((met, made))
        met, _ = outcomes[0]
        assert [len(one) for one, _ in outcomes] == [len(met)] * 2
        if met:
            if their_mode == "overwrite":
                self.model.forget(lambda row: True)
            self.model.apply(theirs, their_kinds)
            self._committed([one[0] for one, _ in outcomes])
        if deletes:
            self.model.delete(lambda row: self.model.key(row) in keys)
        else:
            if mode == "overwrite":
                self.model.forget(lambda row: True)
            self.model.apply(ours, kinds)
        self._committed([made for _, made in outcomes])
        self._check(data)

    def _hooked(self, table: Table, rival: Callable[[], None]) -> Table:
        hooked = HookedStore(self.store)
        hooked.when = lambda call, path: call == "put" and "manifest-list" in path
        hooked.after = rival
        return Lake(hooked, clock=SteppingClock()).table(table.name)

    def _rows(self, data: st.DataObject, least: int = 0, *, kinds: bool = True) -> tuple[list[Row], list[str] | None]:
        rows = data.draw(
            keyed_strategies.rows(self.model.columns, self.model.keys, self.kind_column, least), label="rows"
        )
        if self.kind_column is not None:
            return rows, [row[self.kind_column.identity] for row in rows]
        if not kinds or data.draw(st.booleans(), label="all are inserts"):
            return rows, None
        return rows, data.draw(
            st.lists(st.sampled_from(keyed_strategies.KINDS), min_size=len(rows), max_size=len(rows)), label="kinds"
        )

    def _write(
        self,
        data: st.DataObject,
        rows: list[Row],
        kinds: list[str] | None,
        *,
        gone: Callable[[Row], bool] = lambda row: False,
        **arguments: Any,
    ) -> None:
        omitted = self._omitted(data, rows)
        made = []
        for table in self.tables:
            given: list[str] | str | None = self._given(kinds)
            content: Any = self._arrow(table, rows, omitted)
            form = data.draw(st.sampled_from(["table", "batches", "stream", "dicts", "kind column"]), label="form")
            if form == "batches" and rows:
                size = data.draw(st.integers(1, 4), label="batch size")
                content = [content.slice(start, size) for start in range(0, len(rows), size)]
            elif form == "stream":
                content = content.to_reader(max_chunksize=2)
            elif form == "dicts" and rows:
                content = content.to_pylist()
            elif form == "kind column" and given is not None:
                content, given = content.append_column("what", pa.array(given, pa.string())), "what"
            made.append(table.write(content, kinds=given, missing="default", **arguments))
        self.model.forget(gone)
        self.model.apply(rows, kinds)
        self._committed(made)
        self._check(data)

    def _delete(self, gone: Callable[[Row], bool], delete: Callable[[Table], Any]) -> None:
        if "-D" in self.model.ignored:
            for table in self.tables:
                with pytest.raises(InvalidError, match="ignore-delete"):
                    delete(table)
            return
        made = [delete(table) for table in self.tables]
        count = self.model.delete(gone)
        assert [snapshot is not None for snapshot in made] == [count > 0] * 2
        self._committed(made)

    def _committed(self, made: Sequence[Any]) -> None:
        """Each snapshot that was made is a version; where none was, nothing has changed."""
        assert [one is None for one in made] == [made[0] is None] * len(made)
        if made[0] is None:
            before = self.model.versions[-1].rows if self.model.versions else []
            assert {self.model.key(row): row for row in self.model.live} == {self.model.key(row): row for row in before}
            return
        assert [one.id for one in made] == [len(self.model.versions) + 1] * len(made)
        self.model.keep()
        for table in self.tables:
            same(shown(table.scan(version=made[0].id).to_arrow(), self.model.columns), self.model.shown())

    def _given(self, kinds: list[str] | None) -> list[str] | None:
        return None if self.kind_column is not None else kinds

    def _omitted(self, data: st.DataObject, rows: list[Row]) -> set[str]:
        """Columns that the input leaves out: their rows get the default."""
        needed = {column.identity for column in [*self.model.keys, *self.model.sequence, self.kind_column] if column}
        able = [
            column
            for column in self.model.columns.columns
            if column.identity not in needed and column.name not in self.model.partition_keys
        ]
        chosen = data.draw(st.lists(st.sampled_from(able), max_size=1), label="left out") if able else []
        for column in chosen:
            for row in rows:
                row[column.identity] = column.default
        return {column.name for column in chosen}

    def _arrow(self, table: Table, rows: Sequence[Row], omitted: set[str] | frozenset[str] = frozenset()) -> pa.Table:
        columns = [column for column in self.model.columns.columns if column.name not in omitted]
        lines = [{column.name: plain(row.get(column.identity), column.type) for column in columns} for row in rows]
        known = table.scan().arrow_schema
        return pa.Table.from_pylist(lines, schema=pa.schema([known.field(column.name) for column in columns]))

    def _with_key_of(self, row: Row, like: Row) -> Row:
        return {**row, **{column.identity: like[column.identity] for column in self.model.keys}}

    def _some_keys(self, data: st.DataObject) -> list[Row]:
        """Keys of rows that are there, and others."""
        there = data.draw(st.lists(st.sampled_from(self.model.live), max_size=4)) if self.model.live else []
        others, _ = self._rows(data, kinds=False)
        return [*there, *others[:2]]

    def _key_table(self, rows: Sequence[Row]) -> Callable[[Table], pa.Table]:
        return lambda table: self._arrow(table, rows).select([column.name for column in self.model.keys])

    def _shares(self, table: Table, rows: Sequence[Row], writers: int) -> list[list[int]]:
        """Places of rows by writer: one writer per bucket, with dynamic buckets one per partition, else one."""
        mode = bucket_mode(table.schema)
        batch = self._arrow(table, rows).combine_chunks().to_batches()[0]
        if mode is BucketMode.HASH_FIXED:
            extracted = FixedBucketRowKeyExtractor(table.schema).extract(batch)
            assert extracted.buckets is not None
            owners = (extracted.partition_codes + extracted.buckets) % writers
        else:
            extracted = RowPartitionAllPrimaryKeyExtractor(table.schema).extract(batch)
            owners = extracted.partition_codes % (1 if mode is BucketMode.KEY_DYNAMIC else writers)
        return [[place for place, owner in enumerate(owners) if owner == one] for one in sorted(set(owners.tolist()))]

    # ------------------------------------------------------------------ changing the table

    @rule(
        data=st.data(), change=st.sampled_from(["add_column", "drop_column", "rename_column", "widen", "set_options"])
    )
    def change_table(self, data: st.DataObject, change: str) -> None:
        """One rule for all changes, so that most steps write rows."""
        getattr(self, f"_{change}")(data)

    def _add_column(self, data: st.DataObject) -> None:
        """Adds a column, possibly under a name that was dropped."""
        free = [name for name in _NAMES if name not in self.model.columns.names()]
        if not free:
            return
        column = Column(data.draw(st.sampled_from(free)), data.draw(strategies.types(), label="type"))
        if column.type == Leaf("INT"):
            column.default = data.draw(st.sampled_from([None, 7]), label="default")
        first = data.draw(st.booleans(), label="first")
        for table in self.tables:
            table.add_column(column.name, type_text(column.type), default=column.default, first=first)
        self.model.columns.columns.insert(0 if first else len(self.model.columns.columns), column)
        self._check(data)

    def _drop_column(self, data: st.DataObject) -> None:
        """Drops a column; those that keys or the order of rows rest on stay."""
        column = data.draw(st.sampled_from(self.model.columns.columns), label="column")
        needed = [*self.model.keys, *self.model.sequence, self.kind_column]
        if column in needed or column.name in self.model.partition_keys or column.name == "v":
            return
        for table in self.tables:
            table.drop_column(column.name)
        self.model.columns.columns.remove(column)
        self._check(data)

    def _rename_column(self, data: st.DataObject) -> None:
        """Renames a column, of the key or not."""
        free = [name for name in _NAMES if name not in self.model.columns.names()]
        able = [column for column in self.model.columns.columns if column.name not in self.model.partition_keys]
        if not free:
            return
        column, name = data.draw(st.sampled_from(able), label="column"), data.draw(st.sampled_from(free), label="name")
        for table in self.tables:
            table.rename_column(column.name, name)
        column.name = name
        self._check(data)

    def _widen(self, data: st.DataObject) -> None:
        """Changes a column to a type that holds all its values; keys stay as they are."""
        able = [
            column
            for column in self.model.columns.columns
            if isinstance(column.type, Leaf)
            and column.type.text in strategies.WIDENINGS
            and column not in self.model.keys
            and column.name not in self.model.partition_keys
        ]
        column = data.draw(st.sampled_from(able), label="column") if able else None
        if column is None:
            return
        assert isinstance(column.type, Leaf)
        wider = data.draw(st.sampled_from(strategies.WIDENINGS[column.type.text]), label="type")
        for table in self.tables:
            table.change_type(column.name, wider)
        column.type = Leaf(wider)
        self._check(data)

    def _set_options(self, data: st.DataObject) -> None:
        """Changes how one of the tables is stored from now on."""
        self.tables[data.draw(st.integers(0, 1), label="table")].set_options(
            data.draw(keyed_strategies.stored_options(), label="options")
        )
        self._check(data)

    # ------------------------------------------------------------------ reading

    def _check(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(self.model.versions)), label="old version") if self.model.versions else 0
        for table in self.tables:
            same(shown(table.scan().to_arrow(), self.model.columns), self.model.shown())
            assert table.scan().count() == len(self.model.live)
            if number:
                version = self.model.versions[number - 1]
                scan = table.scan(version=number)
                same(shown(scan.to_arrow(), version.columns), version.shown())
                assert scan.count() == len(version.rows)
            query = data.draw(st.sampled_from(_QUERIES), label="query")
            getattr(self, f"_check_{query}")(data, table)

    def _check_where(self, data: st.DataObject, table: Table) -> None:
        columns = self.model.columns
        condition = data.draw(strategies.conditions(columns), label="where")
        names = data.draw(st.lists(st.sampled_from(columns.names()), min_size=1, unique=True), label="columns")
        kept = [row for row in self.model.live if condition.keeps(row)]
        ordered = data.draw(st.booleans(), label="ordered")
        scan = table.scan(columns=names, where=condition.sql, ordered=ordered)
        same(shown(scan.to_arrow(), columns, names), shown_rows(kept, columns, names))
        assert table.scan(where=condition.sql).count() == len(kept)

    def _check_columns(self, data: st.DataObject, table: Table) -> None:
        columns = self.model.columns
        names = data.draw(st.lists(st.sampled_from(columns.names()), min_size=1, unique=True), label="columns")
        same(shown(table.scan(columns=names).to_arrow(), columns, names), shown_rows(self.model.live, columns, names))

    def _check_limit(self, data: st.DataObject, table: Table) -> None:
        limit = data.draw(st.integers(0, 8), label="limit")
        ordered = data.draw(st.booleans(), label="ordered")
        some = Counter(shown(table.scan(limit=limit, ordered=ordered).to_arrow(), self.model.columns))
        assert some.total() == min(limit, len(self.model.live))
        assert some <= Counter(self.model.shown())

    def _check_changes(self, data: st.DataObject, table: Table) -> None:
        latest = len(self.model.versions)
        start = data.draw(st.integers(0, latest), label="start")
        end = data.draw(st.integers(start, latest), label="end")
        changes = table.changes(start, end)
        kinds, rows = changes.column("_row_kind").to_pylist(), shown(changes.drop(["_row_kind"]), self.model.columns)
        assert Counter(zip(kinds, map(unsigned, rows), strict=True)) == self.model.changed_keys(start, end)

    def _check_ordered(self, data: st.DataObject, table: Table) -> None:
        """Each bucket is in key order, over all its splits, and no key is in two buckets."""
        scan, columns = table.scan(ordered=True), self.model.columns
        by_bucket: dict[tuple[bytes, int], list[Shown]] = {}
        for split in scan.plan().splits:
            rows = pa.Table.from_batches(scan.read(split), scan.arrow_schema)
            by_bucket.setdefault((split.partition, split.bucket), []).extend(shown(rows, columns))
        places = {line: row for row, line in zip(self.model.live, shown_rows(self.model.live, columns), strict=True)}
        for lines in by_bucket.values():
            orders = [self.model.order(places[line]) for line in lines]
            assert orders == sorted(orders)
        assert sum(map(len, by_bucket.values())) == len(self.model.live)
        same(shown(scan.to_arrow(), columns), list(places))

    def _check_splits(self, data: st.DataObject, table: Table) -> None:
        scan = table.scan()
        batches = [batch for split in scan.plan().splits for batch in scan.read(split)]
        rows = pa.Table.from_batches(batches, scan.arrow_schema)
        same(shown(rows, self.model.columns), self.model.shown())

    def _check_get(self, data: st.DataObject, table: Table) -> None:
        for row in self._some_keys(data)[:2]:
            key = {column.name: plain(row[column.identity], column.type) for column in self.model.keys}
            record = self.model.records.get(self.model.key(row))
            got = table.get(key)
            if record is None or record.deleted:
                assert got is None
            else:
                assert got is not None
                (expected,) = shown_rows([record.row], self.model.columns)
                assert tuple((c.name, found(got[c.name], c.type)) for c in self.model.columns.columns) == expected

    def _check_get_many(self, data: st.DataObject, table: Table) -> None:
        columns = self.model.columns
        names = data.draw(st.lists(st.sampled_from(columns.names()), min_size=1, unique=True), label="columns")
        wanted = {self.model.key(row): row for row in self._some_keys(data)}
        records = [self.model.records.get(key) for key in wanted]
        there = [record.row for record in records if record is not None and not record.deleted]
        rows = table.get_many(self._key_table(list(wanted.values()))(table), columns=names)
        assert shown(rows, columns, names) == shown_rows(there, columns, names)


TestKeyedTables = KeyedTables.TestCase
TestKeyedTables.settings = settings(
    max_examples=examples(16),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
