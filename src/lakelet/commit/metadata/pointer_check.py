"""Confirm the known pointers of a table in two round trips, for stores where each call is one.

A known snapshot N is right if a reader without a cache would find N, and if its file, read after that, has the same bytes. What
such a reader would find is known in one of two ways:

    by the folder        snapshot/, schema/                                         ─      snapshot-N, schema-M
    by its neighbours    LATEST, snapshot-(N+1), snapshot-(N-1), schema/            ─      snapshot-N, schema-M

Where the folder lists one run of snapshots without a gap, every reader finds its end, wherever `LATEST` leads: it follows the run
up, or lists the folder itself. A gap is left by an upkeep that is under way or was interrupted, and then `LATEST` decides, which
has to name N, since a fast-forward fills in ids downwards; a predecessor has to exist, since a rollback that was interrupted can
leave a snapshot below the live ones. A folder of many snapshots takes several calls to list, and the neighbours are asked for.
Whatever is not as expected is not confirmed, and determined anew by the caller.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass

from lakelet.commit.metadata.pointers import SchemaPointer, SnapshotPointer, read_if_there
from lakelet.commit.metadata.version_ids import listed_ids, read_hint, schema_ids
from lakelet.storage.home import TableHome

# A folder of more snapshots is not listed: on MinIO a listing takes 20 µs a name, and a thousand names are a call.
MOST_LISTED = 60
# The number of snapshots after which the folder is listed again.
_LISTED_AGAIN = 100


@dataclass(frozen=True, slots=True)
class FolderSize:
    """How many snapshots a folder had when the newest one was `newest`; None for one with a gap."""

    newest: int
    snapshots: int | None

    def is_listed(self, newest: int) -> bool:
        """Whether to list the folder, now that another snapshot is the newest perhaps."""
        is_small = self.snapshots is not None and self.snapshots <= MOST_LISTED
        return is_small or abs(newest - self.newest) >= _LISTED_AGAIN


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Whether the pointers are still right, and what the folder of snapshots was like if it was listed."""

    snapshot: bool
    schema: bool
    folder: FolderSize | None


def confirm(
    home: TableHome, snapshot: SnapshotPointer, schema: SchemaPointer, pool: Executor, known: FolderSize | None
) -> Confirmed:
    """Whether both pointers are still right; False also where it takes more than two round trips to know."""
    number, version, folder = snapshot.snapshot.id, schema.schema.id, None
    if known is None or known.is_listed(number):
        listing = pool.submit(listed_ids, home)
        versions = schema_ids(home)
        found = listing.result()
        has_gap = not found or len(found) <= max(found) - min(found)
        folder = FolderSize(number, None if has_gap else len(found))
        same_line = not has_gap and max(found) == number
    else:
        asked = _neighbours(home, number, pool)
        versions = schema_ids(home)
        same_line = all(one.result() for one in asked)
    data = pool.submit(read_if_there, home, home.paths.snapshot(number)) if same_line else None
    same_version = bool(versions) and versions[-1] == version
    same_schema = same_version and read_if_there(home, home.paths.schema(version)) == schema.data
    return Confirmed(data is not None and data.result() == snapshot.data, same_schema, folder)


def _neighbours(home: TableHome, number: int, pool: Executor) -> list[Future[bool]]:
    """Questions all of which are answered by True if this is the newest snapshot. The first one of a table has no predecessor and
    is never known so."""
    store, paths = home.store, home.paths
    return [
        pool.submit(lambda: read_hint(home, paths.latest_hint) == number),
        pool.submit(lambda: store.head(paths.snapshot(number + 1)) is None),
        pool.submit(lambda: number > 1 and store.head(paths.snapshot(number - 1)) is not None),
    ]
