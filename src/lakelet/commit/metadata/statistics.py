"""Table statistics: written as a file, named by a snapshot, inherited by later snapshots.

    statistics/stat-<uuid>-0        first the file
    snapshot-N, kind ANALYZE        then a commit that changes no data and names it

A crash between the two leaves a file that nothing names, for orphan removal. Later commits carry the name on until the schema
changes, so that the statistics may describe an older snapshot than the one that names them; they name it. Java Paimon does
the same, and reads the file at each of its commits: one that a snapshot names must exist as long as the snapshot.
"""

from __future__ import annotations

import logging

from lakelet.commit.committer import commit
from lakelet.commit.metadata.manifests import get_named
from lakelet.commit.metadata.schemas import SchemaVersions
from lakelet.commit.request import CommitRequest
from lakelet.errors import CommitUnknownError, InternalError, LakeletError
from lakelet.format.metadata.statistics_json import decode_statistics, encode_statistics
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.table_statistics import TableStatistics
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)


def read_statistics(home: TableHome, snapshot: Snapshot) -> TableStatistics | None:
    """The statistics that a snapshot names, None where it names none."""
    if snapshot.statistics is None:
        return None
    path = home.paths.statistics(snapshot.statistics)
    schema_of = SchemaVersions(home)
    return decode_statistics(get_named(home, path), lambda number: schema_of(number).fields, path=home.where(path))


def commit_statistics(home: TableHome, schema: TableSchema, statistics: TableStatistics, user: str) -> Snapshot:
    """Write statistics of columns of `schema`, and commit them."""
    name = f"stat-{home.ids.uuid()}-0"
    path = home.paths.statistics(name)
    home.deferring().put_new(path, encode_statistics(statistics, schema.fields))
    try:
        made = commit(home, CommitRequest(user, (), ignore_empty=False, statistics=name))
    except CommitUnknownError:
        raise
    except LakeletError:
        _remove(home, path)
        raise
    if made is None:
        raise InternalError(f"{home.where(path)}: statistics were written, but no snapshot was made for them")
    return made


def _remove(home: TableHome, path: str) -> None:
    try:
        home.store.delete([path])
    except LakeletError as error:
        _LOG.warning("%s stays behind, though no snapshot names it: %s", home.where(path), error)
