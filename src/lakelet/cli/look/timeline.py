"""`lakelet history`: the snapshots of a table as a timeline, newest first, with tags and branches.

● 4  COMPACT    2026-01-04 09:00:00Z     −20  1,040 records  █
│
● 3  APPEND     2026-01-03 09:00:00Z     +60  1,060 records  █             ◀ tag eod
┊
○ 1  OVERWRITE  2026-01-01 09:00:00Z  +1,000  1,000 records  ████████████  ◀ tag first (expired, kept by the tag)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rich.text import Text

from lakelet.cli.look.amounts import bar, shown_second
from lakelet.cli.output.output import Output
from lakelet.clock import shown_time
from lakelet.model.snapshot import Snapshot
from lakelet.table import Table

_BAR = 12


@dataclass(frozen=True, slots=True)
class _Stop:
    """A snapshot on the timeline, and the tags and branches that refer to it."""

    snapshot: Snapshot
    tags: tuple[str, ...]
    branches: tuple[str, ...]
    expired: bool


def show_history(table: Table, output: Output, limit: int) -> None:
    """Draw the timeline; rows for programs."""
    every = _stops(table)
    stops = every[:limit] if limit else every
    if output.for_programs:
        columns = ("snapshot", "kind", "time", "records", "change", "schema", "user", "tags", "branches", "expired")
        output.rows(table.name, columns, [_row(stop) for stop in stops])
        return
    if not stops:
        output.note(f"{table.name} has no snapshot yet")
        return
    output.picture(Text(f"{table.name}, branch {table.branch}", "bold"))
    scale = _Scale.of([stop.snapshot for stop in stops])
    previous: int | None = None
    for stop in stops:
        if previous is not None:
            output.picture(Text("│" if previous == stop.snapshot.id + 1 else "┊", "dim"))
        output.picture(_line(stop, scale))
        previous = stop.snapshot.id
    if len(stops) < len(every):
        output.picture(Text(f"┊ {len(every) - len(stops):,} older; --limit 0 shows all", "dim"))


@dataclass(frozen=True, slots=True)
class _Scale:
    """The column widths of the picture, and the value of the longest bar."""

    id: int
    change: int
    total: int
    longest: int

    @staticmethod
    def of(snapshots: list[Snapshot]) -> _Scale:
        return _Scale(
            max(len(str(snapshot.id)) for snapshot in snapshots),
            max(len(_signed(snapshot)) for snapshot in snapshots),
            max(len(f"{snapshot.total_record_count or 0:,}") for snapshot in snapshots),
            max(abs(snapshot.delta_record_count or 0) for snapshot in snapshots),
        )


def _signed(snapshot: Snapshot) -> str:
    change = snapshot.delta_record_count
    return "unknown" if change is None else f"{change:+,}".replace("-", "−")


def _line(stop: _Stop, scale: _Scale) -> Text:
    snapshot = stop.snapshot
    change = snapshot.delta_record_count or 0
    colour = "green" if change >= 0 else "red"
    line = Text("○ " if stop.expired else "● ", "cyan", no_wrap=True, overflow="ellipsis")
    line.append(f"{snapshot.id:>{scale.id}}  ", "bold")
    line.append(f"{snapshot.commit_kind.value:<9}  {shown_second(snapshot.time_ms)}  ")
    line.append(_signed(snapshot).rjust(scale.change), colour)
    line.append(f"  {snapshot.total_record_count or 0:>{scale.total},} records  ")
    line.append(f"{bar(abs(change), scale.longest, _BAR):<{_BAR}}", colour)
    names = [f"tag {name}" for name in stop.tags] + [f"branch {name}" for name in stop.branches]
    if names:
        line.append(f"  ◀ {', '.join(names)}", "yellow")
    if stop.expired:
        line.append(" (expired, kept by the tag)", "dim")
    line.rstrip()
    return line


def _stops(table: Table) -> list[_Stop]:
    tags: dict[int, list[str]] = defaultdict(list)
    snapshots = {snapshot.id: snapshot for snapshot in table.snapshots()}
    standing = set(snapshots)
    for tag in table.tags.list():
        tags[tag.snapshot_id].append(tag.name)
        snapshots.setdefault(tag.snapshot_id, tag.snapshot)
    branches: dict[int, list[str]] = defaultdict(list)
    for name in table.branches.list():
        others = table.on_branch(name).snapshots()
        # A branch is drawn where it forks off: at the newest snapshot that both have.
        shared = [other.id for other in others if snapshots.get(other.id) == other]
        if shared:
            branches[max(shared)].append(name)
    return [
        _Stop(snapshots[number], tuple(tags[number]), tuple(branches[number]), number not in standing)
        for number in sorted(snapshots, reverse=True)
    ]


def _row(stop: _Stop) -> tuple[object, ...]:
    snapshot = stop.snapshot
    return (
        snapshot.id,
        snapshot.commit_kind.value,
        shown_time(snapshot.time_ms),
        snapshot.total_record_count,
        snapshot.delta_record_count,
        snapshot.schema_id,
        snapshot.commit_user,
        stop.tags,
        stop.branches,
        stop.expired,
    )
