"""Decide which snapshots, branches and tags are expired. A pure function of the table's metadata and of the time.

a tag, or a branch other than main, expires when its snapshot is older than its own max-ref-age, or the table's
a branch keeps its head, its newest `min-snapshots-to-keep`, and all that are younger than `max-snapshot-age`
a snapshot that is on no branch or tag is kept as long as it is younger than the table's age
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakelet.errors import InvalidError, NotFoundError


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """The properties of a snapshot that the retention policy uses."""

    id: int
    parent: int | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class HistoryRef:
    """A branch or a tag, with ages of its own where it has some."""

    name: str
    snapshot: int
    is_branch: bool
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults for branches and tags: snapshots made before `older_than_ms` expire, but `retain_last` of each branch
    are kept; refs expire when they are older than `max_ref_age_ms`, if that is given."""

    older_than_ms: int
    retain_last: int
    max_ref_age_ms: int | None


@dataclass(frozen=True, slots=True)
class Expired:
    """The expired snapshots and refs."""

    snapshots: tuple[int, ...]
    refs: tuple[str, ...]


def expired(
    snapshots: Collection[HistorySnapshot],
    refs: Collection[HistoryRef],
    limits: Limits,
    now_ms: int,
    chosen: Collection[int] = (),
) -> Expired:
    """What is expired by age, and snapshots chosen by id; InvalidError where a chosen one is that of a branch or a tag."""
    by_id = {one.id: one for one in snapshots}
    unknown = sorted(set(chosen) - set(by_id))
    if unknown:
        raise NotFoundError(f"there is no snapshot {unknown[0]}")
    gone = {ref.name for ref in refs if _ref_is_over(ref, by_id, limits, now_ms)}
    stay: set[int] = set()
    reached: set[int] = set()
    for ref in refs:
        if ref.name in gone:
            continue
        stay.add(ref.snapshot)
        lineage = _lineage(ref.snapshot, by_id)
        reached.update(lineage)
        if ref.is_branch:
            stay.update(_kept_of_branch(ref, lineage, by_id, limits, now_ms))
    stay.update(one.id for one in snapshots if one.id not in reached and one.time_ms >= limits.older_than_ms)
    heads = {ref.snapshot: ref.name for ref in refs if ref.name not in gone}
    for number in chosen:
        if number in heads:
            raise InvalidError(f"snapshot {number} is the one of {heads[number]!r} and cannot be expired")
    stay -= set(chosen)
    return Expired(tuple(one.id for one in snapshots if one.id not in stay), tuple(sorted(gone)))


def _ref_is_over(ref: HistoryRef, by_id: Mapping[int, HistorySnapshot], limits: Limits, now_ms: int) -> bool:
    age = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else limits.max_ref_age_ms
    found = by_id.get(ref.snapshot)
    return ref.name != "main" and age is not None and found is not None and now_ms - found.time_ms > age


def _lineage(head: int, by_id: Mapping[int, HistorySnapshot]) -> list[int]:
    """A snapshot and its ancestors, newest first."""
    found: list[int] = []
    number: int | None = head
    while number is not None and number in by_id:
        found.append(number)
        number = by_id[number].parent
    return found


def _kept_of_branch(
    ref: HistoryRef, lineage: list[int], by_id: Mapping[int, HistorySnapshot], limits: Limits, now_ms: int
) -> set[int]:
    fewest = ref.min_snapshots if ref.min_snapshots is not None else limits.retain_last
    oldest = now_ms - ref.max_snapshot_age_ms if ref.max_snapshot_age_ms is not None else limits.older_than_ms
    kept: set[int] = set()
    for place, number in enumerate(lineage):
        if place >= fewest and by_id[number].time_ms < oldest:
            break
        kept.add(number)
    return kept
