"""Commit callbacks under random commits, failures, crashes, expiry and rollbacks: no live snapshot is ever passed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.commit.callbacks.callback_record import read_record, write_record
from lakelet.commit.callbacks.commit_callbacks import run_commit_callbacks
from lakelet.commit.metadata.schemas import create_first_schema
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CrashStore, SimulatedCrash
from tests.crash.warehouse import home_on
from tests.tiers.examples import examples

CLASS = f"{__name__}.Counted"


class Counted:
    """Notes which snapshots it was called for, by their delta manifest lists."""

    calls: ClassVar[list[str]] = []
    failing: ClassVar[bool] = False

    def call(self, base_files: Any, delta_files: Any, identifier: Any, snapshot: Snapshot) -> None:
        if Counted.failing:
            raise OSError("down")
        self.calls.append(snapshot.delta_manifest_list)


class World:
    """A table of nothing but snapshots, and what its callback is owed."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.home = home_on(self.store)
        schema = new_schema(
            [Field(0, "id", parse_type("INT"))],
            partition_keys=(),
            primary_keys=(),
            options={"commit.callbacks": CLASS},
            comment=None,
            time_ms=0,
        )
        create_first_schema(self.home, schema)
        self.schema: TableSchema = schema
        self.live: list[Snapshot] = []
        self.made = 0
        self.stale: Any = None

    def commit(self) -> None:
        """A writer that dies before it calls anybody."""
        self.made += 1
        number = self.live[-1].id + 1 if self.live else 1
        lists = {"base_manifest_list": f"base-{self.made}", "delta_manifest_list": f"delta-{self.made}"}
        snapshot = Snapshot(number, 0, **lists, commit_user="u", commit_identifier=self.made, commit_kind=CommitKind.APPEND,
                            time_ms=0, total_record_count=0, delta_record_count=0)  # fmt: skip
        for name in lists.values():
            self.store.put(self.home.paths.manifest(name), b"")
        self.store.put(self.home.paths.snapshot(number), encode_snapshot(snapshot))
        self.store.put(self.home.paths.latest_hint, str(number).encode())
        self.live.append(snapshot)

    def gone(self, snapshot: Snapshot) -> None:
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        self.store.delete([self.home.paths.snapshot(snapshot.id), *map(self.home.paths.manifest, lists)])
        self.live.remove(snapshot)

    def do(self, step: str, number: int) -> None:
        Counted.failing = step == "fail"
        if step == "commit":
            self.commit()
        elif step == "expire":
            for snapshot in self.live[: max(0, min(number, len(self.live) - 1))]:
                self.gone(snapshot)
        elif step == "rollback":
            for snapshot in reversed(self.live[max(1, len(self.live) - number) :]):
                self.gone(snapshot)
            if self.live:
                self.store.put(self.home.paths.latest_hint, str(self.live[-1].id).encode())
        elif step == "remember":
            self.stale = read_record(self.home, CLASS)
        elif step == "slow writer" and self.stale:
            write_record(self.home, CLASS, self.stale)
        elif step == "crash" and self.live:
            try:
                crashing = replace(self.home, store=CrashStore(self.store, crash_at=number + 1, after=bool(number % 2)))
                run_commit_callbacks(crashing, self.schema, self.live[-1])
            except SimulatedCrash:
                return
        elif step in ("run", "fail") and self.live:
            run_commit_callbacks(self.home, self.schema, self.live[-1])

    def check(self) -> None:
        """After a round without trouble everything that is live has been called for, in order."""
        self.do("commit", 0)
        self.do("run", 0)
        live = [snapshot.delta_manifest_list for snapshot in self.live]
        first = list(dict.fromkeys(Counted.calls))
        assert [name for name in first if name in live] == live


steps = st.tuples(
    st.sampled_from(["commit", "commit", "run", "fail", "crash", "expire", "rollback", "remember", "slow writer"]),
    st.integers(0, 4),
)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(steps, max_size=25))
def test_no_snapshot_is_passed_over(chosen: list[tuple[str, int]]) -> None:
    Counted.calls.clear()
    world = World()
    for index, (step, number) in enumerate(chosen):
        world.do(step, number)
        if index % 8 == 7:
            world.check()
    world.check()
