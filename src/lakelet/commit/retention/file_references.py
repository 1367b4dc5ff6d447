"""The holders of files: the snapshots, tags and long-lived changelogs of every branch of a table.

Manifests, indexes and data files of all branches are in the same folders, so that whoever removes files asks here first,
and not only about the branch it works on. This file reads snapshot files; it never reads a manifest and removes nothing.

A branch's snapshots are one line: each is made of the one before and its own changes, so that the line as a whole holds
the files of its first snapshot and whatever the later ones add. A tag is a line of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.metadata.snapshots import try_snapshot
from lakelet.commit.metadata.stored import stored_snapshots
from lakelet.commit.metadata.version_ids import snapshot_ids
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.options import CHANGELOG_PRODUCER, TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH

_READERS = 16
_TRIES = 5
_CHANGELOG = re.compile(r"^changelog-\d+$")


@dataclass(frozen=True, slots=True)
class Line:
    """Consecutive snapshots of one branch, oldest first."""

    snapshots: tuple[Snapshot, ...]


@dataclass(frozen=True, slots=True)
class Holders:
    """Everything that holds files of a table; changelogs hold their changes alone, not the files below them, and are left out
    where they hold none."""

    lines: tuple[Line, ...]
    changelogs: tuple[Snapshot, ...]


def table_holders(home: TableHome) -> Holders:
    """The holders on all branches, tags of one and the same snapshot once."""
    lines: list[Line] = []
    changelogs: list[Snapshot] = []
    for branch in branch_homes(home):
        line = branch_line(branch)
        if line.snapshots:
            lines.append(line)
        lines.extend(Line((tag,)) for tag in tagged_snapshots(branch))
        changelogs.extend(telling_changelogs(branch))
    return Holders(distinct_lines(lines), tuple(changelogs))


def branch_homes(home: TableHome) -> list[TableHome]:
    """The table on its main branch, and on each of the others."""
    folders = home.store.list_folder(home.paths.branch_folder).folders
    names = [folder.rsplit("/branch-", 1)[-1] for folder in folders if "/branch-" in folder]
    return [home.on_branch(name) for name in (MAIN_BRANCH, *names)]


def branch_line(home: TableHome) -> Line:
    """The live snapshots of this branch. Those that are expired or rolled back while they are read are left out."""
    for _ in range(_TRIES):
        found = read_snapshots(home, snapshot_ids(home))
        there = [index for index, snapshot in enumerate(found) if snapshot is not None]
        # Expiry removes the oldest and rollback the newest, so that a gap in between means reading again.
        if not there or there[-1] - there[0] + 1 == len(there):
            break
    return Line(tuple(snapshot for snapshot in found if snapshot is not None))


def read_snapshots(home: TableHome, numbers: Iterable[int]) -> list[Snapshot | None]:
    """The snapshots of these ids, read several at a time; None for one that does not exist."""
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(partial(try_snapshot, home), numbers))


def tagged_snapshots(home: TableHome) -> list[Snapshot]:
    """The snapshots that tags of this branch keep, by id.

    A tag keeps the rows of its snapshot and not its changelog: as in Java that is removed with the snapshot.
    """
    tags = _read_folder(home, home.paths.tag_folder, re.compile(r"^tag-."))
    return sorted((replace(tag, changelog_manifest_list=None) for tag in tags), key=lambda tag: tag.id)


def long_lived_changelogs(home: TableHome) -> list[Snapshot]:
    """The changelogs of this branch that outlive their snapshots, by id."""
    found = _read_folder(home, home.paths.changelog_folder, _CHANGELOG)
    return sorted(found, key=lambda changelog: changelog.id)


def telling_changelogs(home: TableHome) -> list[Snapshot]:
    """The long-lived changelogs of this branch that hold files, by id.

    Where a producer makes the changelog, a snapshot without one changed nothing that readers were to be told of: as in Java,
    it leaves its files to be removed.
    """
    schema_of = SchemaVersions(home)
    return [
        changelog
        for changelog in long_lived_changelogs(home)
        if changelog.changelog_manifest_list is not None or not _has_producer(schema_of(changelog.schema_id))
    ]


def _has_producer(schema: TableSchema) -> bool:
    return bool(schema.primary_keys) and TableOptions(schema.options).get(CHANGELOG_PRODUCER) != "none"


def distinct_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines, without duplicates of the same single snapshot."""
    kept: dict[object, Line] = {}
    for line in lines:
        first = line.snapshots[0]
        key = (first.base_manifest_list, first.delta_manifest_list) if len(line.snapshots) == 1 else id(line)
        kept.setdefault(key, line)
    return tuple(kept.values())


def _read_folder(home: TableHome, folder: str, wanted: re.Pattern[str]) -> list[Snapshot]:
    files = home.store.list_folder(folder).files
    return stored_snapshots(home, [info.path for info in files if wanted.match(info.path.rsplit("/", 1)[-1])])
