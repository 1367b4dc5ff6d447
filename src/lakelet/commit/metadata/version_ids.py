"""Ids of schema versions and snapshots, and names of tags, in the store: found by hints and by listing folders.

Snapshot ids are contiguous: N exists only after N-1 was made, the oldest are expired first, a rollback takes the newest
first. `LATEST` and `EARLIEST` are hints that any crash can leave wrong, so an answer is always verified against the
snapshots themselves; where the check fails the folder is listed. Nothing here is cached.
"""

from __future__ import annotations

from lakelet.errors import NotFoundError
from lakelet.storage.home import TableHome
from lakelet.storage.paths import file_number

# A hint this many commits behind is followed step by step; one further behind costs a listing.
_MAX_STEPS = 8
_MAX_DIGITS = 18
_TAG_PREFIX = "tag-"


def schema_ids(home: TableHome) -> list[int]:
    """The ids of all schema versions, oldest first."""
    listing = home.store.list_folder(home.paths.schema_folder)
    return sorted(number for info in listing.files if (number := file_number(info.path, "schema")) is not None)


def tag_names(home: TableHome) -> list[str]:
    """The names of all tags, sorted."""
    files = home.store.list_folder(home.paths.tag_folder).files
    names = [info.path.rsplit("/", 1)[-1] for info in files]
    return sorted(name.removeprefix(_TAG_PREFIX) for name in names if name.startswith(_TAG_PREFIX))


def listed_ids(home: TableHome) -> set[int]:
    """The ids of all snapshot files, stray ones included."""
    files = home.store.list_folder(home.paths.snapshot_folder).files
    return {number for info in files if (number := file_number(info.path, "snapshot")) is not None}


def changelog_ids(home: TableHome) -> set[int]:
    """The ids of the changelogs that outlive their snapshots."""
    files = home.store.list_folder(home.paths.changelog_folder).files
    return {number for info in files if (number := file_number(info.path, "changelog")) is not None}


def snapshot_ids(home: TableHome) -> range:
    """The ids of the live snapshots: the contiguous run that ends in the greatest id."""
    numbers = listed_ids(home)
    if not numbers:
        return range(0)
    latest = earliest = max(numbers)
    oldest = min(numbers)
    # A listing is no point in time: commits made while it ran can show a newer snapshot and miss the one before it.
    while earliest - 1 in numbers or (
        earliest > oldest and home.store.head(home.paths.snapshot(earliest - 1)) is not None
    ):
        earliest -= 1
    return range(earliest, latest + 1)


def latest_id(home: TableHome) -> int | None:
    """The id of the newest snapshot, None for a table without any."""
    hint = hinted_id(home)
    if hint is not None and _stands(home, hint):
        for number in range(hint, hint + _MAX_STEPS):
            if home.store.head(home.paths.snapshot(number + 1)) is None:
                return number
    ids = snapshot_ids(home)
    return ids[-1] if ids else None


def hinted_id(home: TableHome) -> int | None:
    """The id that `LATEST` names, which may be wrong."""
    return read_hint(home, home.paths.latest_hint)


def is_newest(home: TableHome, number: int) -> bool:
    """Whether an existing snapshot is the newest by its neighbours alone: one before it, none after it."""
    return _follows(home, number) and home.store.head(home.paths.snapshot(number + 1)) is None


def read_hint(home: TableHome, path: str) -> int | None:
    """The number in a hint; None where the hint is missing or not a number."""
    try:
        text = home.store.get(path).strip()
    except NotFoundError:
        return None
    return int(text) if text.isdigit() and len(text) <= _MAX_DIGITS else None


def _stands(home: TableHome, number: int) -> bool:
    """Whether a hinted snapshot exists and is not a stray one, left far below the live run by a late writer."""
    return home.store.head(home.paths.snapshot(number)) is not None and _follows(home, number)


def _follows(home: TableHome, number: int) -> bool:
    return number > 1 and home.store.head(home.paths.snapshot(number - 1)) is not None
