"""Random tags, branches, fast-forwards, rollbacks, expiry and orphan removal: every version that is there holds its rows.

The model is what the words say: a branch is a line of snapshots, each a set of rows; a tag is a snapshot under a name. Half of
the tables have a primary key. `LAKELET_CASES` multiplies the number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakelet import AlreadyExistsError, InvalidError, Lake, NotFoundError, Table
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples
from tests.unit.versioned_table import COLUMNS, HOUR_MS, SetClock

NAMES = st.sampled_from(["one", "two", "three"])
BRANCHES = st.sampled_from(["main", "dev", "test"])
OTHERS = st.sampled_from(["dev", "test"])
PLACES = st.integers(0, 9)

Rows = frozenset[int]


@dataclass
class Line:
    """A branch: live snapshots by id, and what tags keep. A snapshot is the number of its commit and its rows, for ids come
    again after a rollback."""

    snapshots: dict[int, tuple[int, Rows]] = field(default_factory=dict)
    tags: dict[str, tuple[int, tuple[int, Rows]]] = field(default_factory=dict)

    @property
    def newest(self) -> Rows:
        return self.snapshots[max(self.snapshots)][1] if self.snapshots else frozenset()

    def copied(self) -> Line:
        return Line(dict(self.snapshots), dict(self.tags))

    def known(self) -> dict[int, tuple[int, Rows]]:
        """All snapshots that can be named by id: live ones, and those that tags keep."""
        return dict(self.tags.values()) | self.snapshots

    def roll_back(self, id_: int, kept: tuple[int, Rows]) -> None:
        self.snapshots = {number: one for number, one in self.snapshots.items() if number <= id_} | {id_: kept}
        self.tags = {name: tag for name, tag in self.tags.items() if tag[0] <= id_}


class Versions(RuleBasedStateMachine):
    """A table and its model."""

    @initialize(keyed=st.booleans())
    def create(self, keyed: bool) -> None:
        self.clock = SetClock()
        self.store = MemoryStore()
        lake = Lake(self.store, clock=self.clock)
        lake.create_database("d")
        options = {"bucket": "2"} if keyed else {}
        self.main: Table = lake.create_table(
            "d.t", COLUMNS, primary_key=["id"] if keyed else [], options={"write-only": "true"} | options
        )
        self.lines = {"main": Line()}
        self.commits = 0

    def table(self, branch: str) -> Table:
        return self.main if branch == "main" else self.main.on_branch(branch)

    @rule(branch=BRANCHES, overwrite=st.integers(0, 4).map(lambda number: number == 0))
    def write(self, branch: str, overwrite: bool) -> None:
        if branch not in self.lines:
            return
        line = self.lines[branch]
        self.commits += 1
        row = self.commits
        self.table(branch).write([{"id": row, "p": "x"}], mode="overwrite" if overwrite else "append")
        rows = frozenset({row}) if overwrite else line.newest | {row}
        line.snapshots[max(line.snapshots, default=0) + 1] = (row, rows)

    # ---------------------------------------------------------------- tags

    @rule(branch=BRANCHES, name=NAMES, place=PLACES, newest=st.booleans(), replaces=st.booleans())
    def tag(self, branch: str, name: str, place: int, newest: bool, replaces: bool) -> None:
        if branch not in self.lines:
            return
        line, tags = self.lines[branch], self.table(branch).tags
        known = line.known()
        ids = [max(line.snapshots)] if newest and line.snapshots else sorted(known)
        call = tags.replace if replaces else tags.create
        id_ = ids[place % len(ids)] if ids else 1
        if replaces and name not in line.tags:
            with pytest.raises(NotFoundError):
                call(name, id_)
        elif not replaces and name in line.tags:
            with pytest.raises(AlreadyExistsError):
                call(name, id_)
        elif not ids:
            with pytest.raises(NotFoundError):
                call(name, id_)
        else:
            assert call(name, None if newest and line.snapshots else id_).snapshot_id == id_
            line.tags[name] = (id_, known[id_])

    @rule(branch=BRANCHES, name=NAMES, new=NAMES)
    def rename_tag(self, branch: str, name: str, new: str) -> None:
        if branch not in self.lines:
            return
        line, tags = self.lines[branch], self.table(branch).tags
        if name not in line.tags:
            with pytest.raises(NotFoundError):
                tags.rename(name, new)
        elif new in line.tags:
            with pytest.raises(AlreadyExistsError):
                tags.rename(name, new)
        else:
            tags.rename(name, new)
            line.tags[new] = line.tags.pop(name)

    @rule(branch=BRANCHES, name=NAMES)
    def delete_tag(self, branch: str, name: str) -> None:
        if branch not in self.lines:
            return
        self.table(branch).tags.delete(name, if_exists=True)
        self.lines[branch].tags.pop(name, None)

    # ---------------------------------------------------------------- branches

    @rule(branch=OTHERS, place=PLACES, way=st.sampled_from(["empty", "tag", "version"]))
    def create_branch(self, branch: str, place: int, way: str) -> None:
        line = self.lines["main"]
        if branch in self.lines:
            with pytest.raises(AlreadyExistsError):
                self.main.branches.create(branch)
            return
        made = Line()
        if way == "tag" and line.tags:
            name = sorted(line.tags)[place % len(line.tags)]
            self.main.branches.create(branch, tag=name)
            id_, kept = line.tags[name]
            made = Line({id_: kept}, {name: (id_, kept)})
        elif way == "version" and line.known():
            id_ = sorted(line.known())[place % len(line.known())]
            self.main.branches.create(branch, version=id_)
            kept = line.known()[id_]
            own = f"origin-of-branch-{branch}"
            tags = sorted(name for name, tag in line.tags.items() if tag == (id_, kept) and name != own)
            if not tags:
                line.tags[own] = (id_, kept)
            made = Line({id_: kept}, {tags[0] if tags else own: (id_, kept)})
        else:
            self.main.branches.create(branch)
        self.lines[branch] = made

    @rule(branch=OTHERS)
    def delete_branch(self, branch: str) -> None:
        self.main.branches.delete(branch, if_exists=True)
        gone = self.lines.pop(branch, None)
        own = f"origin-of-branch-{branch}"
        if gone is not None and own in gone.tags and self.lines["main"].tags.get(own) == gone.tags[own]:
            del self.lines["main"].tags[own]

    @rule(branch=OTHERS)
    def fast_forward(self, branch: str) -> None:
        if branch not in self.lines:
            return
        main, line = self.lines["main"], self.lines[branch]
        if not line.snapshots:
            with pytest.raises(InvalidError):
                self.main.branches.fast_forward(branch)
            return
        self.main.branches.fast_forward(branch)
        first, last = min(line.snapshots), max(line.snapshots)
        forwarded = main.snapshots.get(last) == line.snapshots[last]
        live = {number: one for number, one in main.snapshots.items() if number < first or forwarded}
        # Older ones beyond a gap cannot be asked for any more.
        live |= line.snapshots
        start = max(live)
        while start - 1 in live:
            start -= 1
        main.snapshots = {number: one for number, one in live.items() if number >= start}
        main.tags = {
            name: tag
            for name, tag in main.tags.items()
            if tag[0] < first or line.snapshots.get(tag[0]) == tag[1] or (forwarded and tag[0] > last)
        } | line.tags

    # ---------------------------------------------------------------- going back and letting go

    @rule(branch=BRANCHES, place=PLACES, by_tag=st.booleans())
    def roll_back(self, branch: str, place: int, by_tag: bool) -> None:
        line = self.lines.get(branch)
        if line is None or not line.known():
            return
        if by_tag and line.tags:
            name = sorted(line.tags)[place % len(line.tags)]
            id_, kept = line.tags[name]
            self.table(branch).rollback(name)
        else:
            id_ = sorted(line.known())[place % len(line.known())]
            kept = line.known()[id_]
            self.table(branch).rollback(id_)
        line.roll_back(id_, kept)

    @rule(branch=BRANCHES, keep=st.integers(1, 3))
    def expire(self, branch: str, keep: int) -> None:
        if branch not in self.lines:
            return
        self.clock.now += HOUR_MS
        self.table(branch).expire_snapshots(retain_last=keep, retain_max=keep)
        line = self.lines[branch]
        kept = sorted(line.snapshots)[-keep:]
        line.snapshots = {number: line.snapshots[number] for number in kept}

    @precondition(lambda self: self.commits > 3)
    @rule()
    def remove_orphans(self) -> None:
        # Files carry the time of the machine: by this table's clock all are old.
        self.clock.now = max(self.clock.now, 4_000_000_000_000)
        self.main.remove_orphan_files("1 ms")

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def everything_reads_as_the_model_says(self) -> None:
        if not hasattr(self, "lines"):
            return
        assert self.main.branches.list() == sorted(set(self.lines) - {"main"})
        for branch, line in self.lines.items():
            table = self.table(branch)
            assert [snapshot.id for snapshot in table.snapshots()] == sorted(line.snapshots), branch
            assert {tag.name: tag.snapshot_id for tag in table.tags.list()} == {
                name: tag[0] for name, tag in line.tags.items()
            }, branch
            assert found(table) == line.newest
            for number, (_, rows) in line.snapshots.items():
                assert found(table, version=number) == rows, (branch, number)
            for name, (_, (_, rows)) in line.tags.items():
                assert found(table, tag=name) == rows, (branch, name)


def found(table: Table, **version: object) -> Rows:
    ids = table.scan(["id"], **version).to_arrow().column("id").to_pylist()  # type: ignore[arg-type]
    assert len(set(ids)) == len(ids)
    return frozenset(ids)


TestVersions = Versions.TestCase
TestVersions.settings = settings(
    max_examples=examples(15),
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
