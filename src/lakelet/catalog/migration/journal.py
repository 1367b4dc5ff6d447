"""The journal of a migration, written into the source folder before anything is changed.

    <folder>/.lakelet-migration     JSON: the table, the commit that will adopt the files, and the files with their new names

Whoever finds one finishes that migration first: the commit is recognised by its user, so that no file is adopted twice, and
files lose their old names only once it is committed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from lakelet.catalog.migration.source_files import SourceFile
from lakelet.errors import ConflictError, CorruptionError, NotFoundError
from lakelet.storage.store import ObjectStore

NAME = ".lakelet-migration"


@dataclass(frozen=True, slots=True)
class Journal:
    """One migration: into which table, by which commit, which files under which names."""

    table: str
    table_uuid: str | None
    user: str
    schema_id: int
    files: tuple[tuple[SourceFile, str], ...]
    committed: bool = False


def read_journal(source: ObjectStore) -> Journal | None:
    """The unfinished migration of the folder, None where there is none."""
    try:
        text = source.get(NAME)
    except NotFoundError:
        return None
    try:
        found = json.loads(text)
        files = tuple(
            (SourceFile(one["path"], one["size"], tuple((key, value) for key, value in one["partition"])), one["name"])
            for one in found["files"]
        )
        return Journal(found["table"], found["tableUuid"], found["user"], found["schemaId"], files, found["committed"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{source.location}/{NAME} is no journal of a migration: {error}") from error


def begin_journal(source: ObjectStore, journal: Journal) -> None:
    """Write the journal, durably; ConflictError where another migration of the folder has just begun."""
    if not source.put_if_absent(NAME, _encoded(journal)):
        raise ConflictError(f"{source.location}: another migration has begun at the same time; run this one again")


def note_commit(source: ObjectStore, journal: Journal) -> None:
    """Record that the files are committed to the table."""
    source.put(NAME, _encoded(replace(journal, committed=True)))


def _encoded(journal: Journal) -> bytes:
    files = [
        {"path": file.path, "size": file.size, "partition": file.partition, "name": name}
        for file, name in journal.files
    ]
    content = {
        "table": journal.table,
        "tableUuid": journal.table_uuid,
        "user": journal.user,
        "schemaId": journal.schema_id,
        "committed": journal.committed,
        "files": files,
    }
    return json.dumps(content, indent=1).encode()


def remove_journal(source: ObjectStore) -> None:
    """Delete the journal: the migration is finished."""
    source.delete([NAME])
