"""Random operations on two primary-key tables that are compacted, tagged, branched off, expired and rolled back.

The rules of `test_keyed_tables` and more, in random order and under random options of compaction: one of the tables may have
deletion vectors and the other not, and writes may compact by themselves. Both hold what the model holds, now, at every snapshot
that is retained, and under every tag. Files of compacted tables are read, rewritten, moved and removed; none of it may show.

Small files are all of one size, so that a policy would always merge all of them. In half of the runs every older run therefore
counts as too large to join, and rows pass through all levels.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from lakelet import Lake, Table
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.snapshot import Snapshot
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock
from tests.property import keyed_strategies
from tests.property.keyed_model import KeyedModel, Record, same, shown
from tests.property.lookup_ways import WAYS, compact_by
from tests.property.table_model import Row, Struct, unsigned
from tests.property.tables.test_keyed_tables import KeyedTables
from tests.tiers.examples import examples

_TAGS = ["one", "two", "three"]
_HOUR_MS = 3_600_000


class CompactedTables(KeyedTables):
    """Two tables and their model. `marks` says of each table's snapshots which version of the model they show."""

    clock: SteppingClock
    marks: list[dict[int, int]]
    tags: dict[str, int]
    saved: dict[int, dict[Any, Record]]
    current: int

    def __init__(self) -> None:
        self.patched = pytest.MonkeyPatch()
        super().__init__()

    # A writer that is not finished by a compaction of its own shows only where level 0 is read.
    two_phases = None  # type: ignore[assignment]
    two_phases_too_late = None  # type: ignore[assignment]
    race = None  # type: ignore[assignment]

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """Makes the tables."""
        layout = data.draw(keyed_strategies.layouts(), label="layout")
        columns = Struct(layout.columns)
        # A table that keeps first rows takes no versions, and no deletes but such as it drops.
        first = not layout.sequence and data.draw(st.sampled_from([False, False, True]), label="first rows")
        if first:
            layout.options |= {"merge-engine": "first-row", "ignore-delete": "true"}
        self.model = KeyedModel(
            columns,
            layout.partition_keys,
            keys=[columns.named(name) for name in layout.keys],
            sequence=[columns.named(name) for name in layout.sequence],
            descending=layout.options.get("sequence.field.sort-order") == "descending",
            ignored=layout.ignored,
            first=first,
        )
        self.kind_column = columns.named("op") if "rowkind.field" in layout.options else None
        compact_by(self.patched, data.draw(st.sampled_from(WAYS), label="how old rows are found"))
        slow = data.draw(st.booleans(), label="older runs are large")
        if slow:
            patch.object(UniversalPolicy, "_grow", lambda policy, runs, count, now_ms: count).start()
        self.store, self.clock = MemoryStore(), SteppingClock()
        lake = Lake(self.store, clock=self.clock)
        lake.create_database("d")
        self.tables, self.marks, self.tags, self.saved, self.current = [], [{}, {}], {}, {}, 0
        for number in range(2):
            options = layout.options | data.draw(keyed_strategies.bucket_options(layout), label=f"buckets of {number}")
            options |= data.draw(keyed_strategies.stored_options(3), label=f"options of table {number}")
            options |= data.draw(keyed_strategies.compaction_options(), label=f"compaction of table {number}")
            if slow:
                options["compaction.max-size-amplification-percent"] = "1000000"
                options["compaction.force-up-level-0"] = "true"
            self.tables.append(keyed_strategies.make_table(lake, f"d.t{number}", layout, options))

    def teardown(self) -> None:
        """Gives the policy and the choice of lookups back."""
        patch.stopall()
        self.patched.undo()

    # ------------------------------------------------------------------ what shows nothing

    @rule(data=st.data(), full=st.sampled_from([False, False, True]), number=st.integers(0, 1))
    def compact(self, data: st.DataObject, full: bool, number: int) -> None:
        """Compacts one of the tables."""
        made = self.tables[number].compact(full)
        self._mark(number, made)
        self._check(data)

    @rule(data=st.data(), keep=st.integers(1, 3), number=st.integers(0, 1))
    def expire(self, data: st.DataObject, keep: int, number: int) -> None:
        """Expires all but the last snapshots of one of the tables."""
        self.clock.now += _HOUR_MS
        self.tables[number].expire_snapshots(retain_last=keep, retain_max=keep)
        if self.current:
            assert len(self.tables[number].snapshots()) <= max(keep, 1)
        self._check(data)

    @rule(name=st.sampled_from(_TAGS))
    def tag(self, name: str) -> None:
        """Gives the newest version a name, or takes the name away."""
        if not self.current:
            return
        for table in self.tables:
            if name in self.tags:
                table.tags.delete(name)
            else:
                table.tags.create(name)
        if self.tags.pop(name, None) is None:
            self.tags[name] = self.current

    # ------------------------------------------------------------------ going back

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """Goes back to a version that both tables still have."""
        both = set(self._retained(0).values()) & set(self._retained(1).values())
        if not both:
            return
        version = data.draw(st.sampled_from(sorted(both)), label="version")
        for number, table in enumerate(self.tables):
            ids = [id_ for id_, shows in self._retained(number).items() if shows == version]
            target = table.rollback(data.draw(st.sampled_from(ids), label="snapshot"))
            self.marks[number] = {id_: shows for id_, shows in self.marks[number].items() if id_ <= target.id}
        self._went_to(version)
        self._check(data)

    @rule(data=st.data(), forward=st.booleans())
    def branch_off(self, data: st.DataObject, forward: bool) -> None:
        """Writes on a branch that begins with a tag, which the main line does not see; then it becomes the main line, or goes."""
        able = [
            name
            for name in self._kept_tags()
            if all(table.scan(tag=name).schema.id == table.schema.id for table in self.tables)
        ]
        if not able:
            return
        name = data.draw(st.sampled_from(able), label="tag")
        rows, kinds = self._rows(data, least=1)
        main = dict(self.model.records)
        self.model.records = dict(self.saved[self.tags[name]])
        rows, kinds = self._unambiguous(rows, kinds)
        self.model.apply(rows, kinds)
        origins = []
        for table in self.tables:
            origins.append(table.tags.get(name).snapshot.id)
            table.branches.create("side", tag=name)
            side = table.on_branch("side")
            side.write(self._arrow(side, rows), kinds=self._given(kinds))
            side.compact(full=data.draw(st.booleans(), label="full"))
            same(shown(side.scan().to_arrow(), self.model.columns), self.model.shown())
        if not forward:
            self.model.records = main
            for table in self.tables:
                table.branches.delete("side")
            self._check(data)
            return
        self.model.keep()
        self.current = len(self.model.versions)
        self.saved[self.current] = dict(self.model.records)
        for number, table in enumerate(self.tables):
            newest = table.branches.fast_forward("side")
            table.branches.delete("side")
            marks = {id_: shows for id_, shows in self.marks[number].items() if id_ <= origins[number]}
            self.marks[number] = {**marks, newest.id: self.current}
        self._kept_tags()
        self._check(data)

    def _went_to(self, version: int) -> None:
        self.current = version
        self.model.records = dict(self.saved[version])
        self._kept_tags()

    def _kept_tags(self) -> list[str]:
        """The tags; those of versions that the tables have gone back behind are gone."""
        names = [set(table.tag_names()) for table in self.tables]
        self.tags = {name: version for name, version in self.tags.items() if all(name in own for own in names)}
        for table in self.tables:
            for name in set(table.tag_names()) - set(self.tags):
                table.tags.delete(name)
        return sorted(self.tags)

    # ------------------------------------------------------------------ keeping books

    def _rows(self, data: st.DataObject, least: int = 0, *, kinds: bool = True) -> tuple[list[Row], list[str] | None]:
        rows, found = super()._rows(data, least, kinds=kinds)
        kept = self._unambiguous(rows, found)
        return kept if len(kept[0]) >= least else (rows[:0], found and found[:0])

    def _unambiguous(self, rows: list[Row], kinds: list[str] | None) -> tuple[list[Row], list[str] | None]:
        """Without rows that are older than a delete, which one table may have dropped and the other not."""
        kept = [place for place, row in enumerate(rows) if not self.model.beaten_by_a_delete(row)]
        return [rows[place] for place in kept], None if kinds is None else [kinds[place] for place in kept]

    def _committed(self, made: Any) -> None:
        assert [one is None for one in made] == [made[0] is None] * len(made)
        if made[0] is None:
            before = self.model.versions[self.current - 1].rows if self.current else []
            assert {self.model.key(row): row for row in self.model.live} == {self.model.key(row): row for row in before}
            return
        self.model.keep()
        self.current = len(self.model.versions)
        self.saved[self.current] = dict(self.model.records)
        for number, snapshot in enumerate(made):
            assert snapshot == self.tables[number].latest_snapshot()
            self._mark(number, snapshot)

    def _mark(self, number: int, made: Snapshot | None) -> None:
        if made is not None:
            self.marks[number][made.id] = self.current

    def _retained(self, number: int) -> dict[int, int]:
        """The snapshots of a table that are still there and are known to show a version."""
        ids = {snapshot.id for snapshot in self.tables[number].snapshots()}
        return {id_: shows for id_, shows in self.marks[number].items() if id_ in ids}

    # ------------------------------------------------------------------ reading

    def _check(self, data: st.DataObject) -> None:
        for number, table in enumerate(self.tables):
            same(shown(table.scan().to_arrow(), self.model.columns), self.model.shown())
            assert table.scan().count() == len(self.model.live)
            for id_, shows in self._retained(number).items():
                self._same_version(table, shows, version=id_)
            for name, shows in self.tags.items():
                self._same_version(table, shows, tag=name)
            query = data.draw(st.sampled_from(["where", "changes", "ordered", "get", "get_many"]), label="query")
            getattr(self, f"_check_{query}")(data, table)

    def _same_version(self, table: Table, shows: int, **scan: Any) -> None:
        version, found = self.model.versions[shows - 1], table.scan(**scan).to_arrow()
        if found.column_names == [column.name for column in version.columns.columns]:
            same(shown(found, version.columns), version.shown())
        else:
            # A compaction after a change of the schema has made a snapshot in other columns.
            assert found.num_rows == len(version.rows)

    def _check_changes(self, data: st.DataObject, table: Table) -> None:
        retained = self._retained(self.tables.index(table))
        if not retained:
            return
        start, end = sorted(data.draw(st.tuples(*[st.sampled_from(sorted(retained))] * 2), label="between"))
        changes = table.changes(start, end)
        kinds, rows = changes.column("_row_kind").to_pylist(), shown(changes.drop(["_row_kind"]), self.model.columns)
        found = sorted(zip(kinds, map(unsigned, rows), strict=True), key=repr)
        assert found == sorted(self.model.changed_keys(retained[start], retained[end]).elements(), key=repr)


TestCompactedTables = CompactedTables.TestCase
TestCompactedTables.settings = settings(
    max_examples=examples(14),
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
