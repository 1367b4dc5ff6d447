"""Repair of `LATEST` and `EARLIEST`, the hints to the newest and oldest snapshot.

A hint may be wrong after a crash, and every reader checks it; a correct one saves a listing. Repair lists the snapshots and
writes what it finds. Where no snapshot is left it removes the hints.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.snapshots import write_hint
from lakelet.commit.metadata.version_ids import read_hint, snapshot_ids
from lakelet.commit.retention.file_references import long_lived_changelogs
from lakelet.storage.home import TableHome


@dataclass(frozen=True, slots=True)
class RepairedHints:
    """The oldest and newest snapshot, and the paths of the hints that were wrong."""

    earliest: int | None
    latest: int | None
    repaired: tuple[str, ...]


def repair_hints(home: TableHome) -> RepairedHints:
    """Correct the hints of this branch, those of its long-lived changelogs too."""
    ids = snapshot_ids(home)
    changelogs = long_lived_changelogs(home)
    wanted: dict[str, int | None] = {
        home.paths.earliest_hint: ids[0] if ids else None,
        home.paths.latest_hint: ids[-1] if ids else None,
    }
    if changelogs:
        wanted[f"{home.paths.changelog_folder}/EARLIEST"] = changelogs[0].id
        wanted[f"{home.paths.changelog_folder}/LATEST"] = changelogs[-1].id
    repaired = []
    for path, number in wanted.items():
        there = home.store.head(path) is not None
        if number is None and there:
            home.store.delete([path])
        elif number is not None and read_hint(home, path) != number:
            write_hint(home, path, number)
        else:
            continue
        repaired.append(path)
    return RepairedHints(ids[0] if ids else None, ids[-1] if ids else None, tuple(repaired))
