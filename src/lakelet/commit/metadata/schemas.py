"""Schema versions: read them, create the first, and change them without losing a concurrent change.

`schema-N` is created only if absent. A change is computed from the newest version and written as the next; whoever
finds that version taken computes the change again, so that of two concurrent ALTERs both take effect or one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakelet.commit.metadata.source import metadata
from lakelet.errors import AlreadyExistsError, CommitUnknownError, NotFoundError, UnavailableError
from lakelet.events import OptionsChanged, SchemaChanged, publish, uncertain
from lakelet.format.metadata.schema_json import encode_schema
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome

_UNKNOWN_TRIES = 5


def read_schema(home: TableHome, number: int) -> TableSchema:
    """One schema version."""
    return metadata(home).schema(home, number)


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """Finds schema versions by id, each read once."""

    home: TableHome
    known: dict[int, TableSchema] = field(default_factory=dict)

    def __call__(self, number: int) -> TableSchema:
        """The version of that id."""
        if number not in self.known:
            self.known[number] = read_schema(self.home, number)
        return self.known[number]


def latest_schema(home: TableHome) -> TableSchema:
    """The newest schema version; NotFoundError where there is no table."""
    return metadata(home).latest_schema(home)


def is_newest_schema(home: TableHome, number: int) -> bool:
    """Whether no version follows one that exists; always asked of the store, and cheaper than reading the newest."""
    return home.store.head(home.paths.schema(number + 1)) is None


def create_first_schema(home: TableHome, schema: TableSchema, *, deferred: bool = False) -> None:
    """Writes `schema-0`; AlreadyExistsError if the table exists. Its name may be `deferred` until the caller syncs it."""
    with uncertain(home.table_name, home.paths.branch, "creation"):
        made = _create(home, schema, deferred=deferred)
    if not made:
        raise AlreadyExistsError(f"table {home.where(home.paths.root)} exists")


def create_next_schema(home: TableHome, schema: TableSchema) -> bool:
    """Write a version whose id follows the newest; False if a concurrent change has taken the id."""
    with uncertain(home.table_name, home.paths.branch, "schema change"):
        made = _create(home, schema)
    if made:
        publish(SchemaChanged(home.table_name, home.paths.branch, schema.id))
    return made


def change_schema(home: TableHome, change: Callable[[TableSchema], TableSchema]) -> TableSchema:
    """Applies `change` to the newest schema and writes the result as the next version.

    A change that leaves the schema as it is writes nothing.
    """
    while True:
        old = latest_schema(home)
        changed = change(old)
        if replace(changed, id=old.id, time_ms=old.time_ms) == old:
            return old
        new = replace(changed, id=old.id + 1, time_ms=home.clock.now_ms())
        with uncertain(home.table_name, home.paths.branch, "schema change"):
            made = _create(home, new)
            if made:
                _check_follows(home, new)
        if made:
            only_options = replace(new, id=old.id, time_ms=old.time_ms, options=old.options) == old
            kind = OptionsChanged if only_options else SchemaChanged
            publish(kind(home.table_name, home.paths.branch, new.id))
            return new


def _check_follows(home: TableHome, schema: TableSchema) -> None:
    """NotFoundError, and no schema, if the table was dropped before this version of it was written."""
    if home.store.head(home.paths.schema(schema.id - 1)) is not None:
        return
    home.store.delete([home.paths.schema(schema.id)])
    for folder in (home.paths.schema_folder, home.paths.branch_root):
        home.store.remove_empty_folder(folder)
    raise NotFoundError(f"{home.where(home.paths.branch_root)}: the table was dropped while its schema was changed")


def _create(home: TableHome, schema: TableSchema, *, deferred: bool = False) -> bool:
    path, data = home.paths.schema(schema.id), encode_schema(schema)
    for attempt in range(_UNKNOWN_TRIES):
        try:
            created = home.store.put_if_absent(path, data, deferred=deferred)
        except UnavailableError:
            # The store may have kept it: sending the same bytes again shows it.
            home.clock.sleep(0.05 * 2**attempt)
            continue
        if created or attempt == 0:
            return created
        return home.store.get(path) == data
    raise CommitUnknownError(
        f"{home.where(path)}: the store did not say whether the schema was written; look before trying again"
    )
