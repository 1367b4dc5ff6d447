"""Create and remove the files of a table: its first schema and its identity, and its whole folder.

Snapshots are removed first and schemas last, the newest of them at the end, so that an interrupted drop leaves an empty table,
which can be dropped again, and never one with files missing or with options of another time.
"""

from __future__ import annotations

from lakelet.commit.metadata.schemas import create_first_schema
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import InvalidError
from lakelet.events import TableCreated, TableDropped, publish, uncertain
from lakelet.format.metadata.table_metadata import TableMetadata, encode_metadata
from lakelet.model.schema import TableSchema
from lakelet.options import keeps_iceberg_metadata
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH


def make_table(home: TableHome, schema: TableSchema) -> None:
    """Create a table with its first schema; AlreadyExistsError where there is one, InvalidError for remains of a dropped one."""
    paths = home.paths
    kept = (paths.snapshot_folder, paths.tag_folder, paths.branch_folder)
    leftover = next((info for folder in kept for info in home.store.list(folder)), None)
    if leftover is not None:
        raise InvalidError(f"{home.where(leftover.path)} is left over from another table: remove {paths.root} first")
    create_first_schema(home, schema, deferred=True)
    with uncertain(home.table_name, MAIN_BRANCH, "creation"):
        new = [paths.schema(schema.id)]
        # A table that is published in its own folder has Iceberg's metadata under that name.
        if not keeps_iceberg_metadata(schema.options):
            metadata = TableMetadata(home.ids.uuid(), schema.time_ms, schema.time_ms)
            home.store.put(paths.metadata, encode_metadata(metadata), deferred=True)
            new.append(paths.metadata)
        home.store.sync(new)
    publish(TableCreated(home.table_name, MAIN_BRANCH))


def remove_table(home: TableHome) -> None:
    """Remove a table; of one whose folder is linked from elsewhere only the link."""
    store, paths = home.store, home.paths
    with uncertain(home.table_name, MAIN_BRANCH, "drop"):
        if not store.is_linked(paths.root):
            store.delete_folder(paths.snapshot_folder)
            for folder in store.list_folder(paths.root).folders:
                if folder != paths.schema_folder:
                    store.delete_folder(folder)
            # The newest goes last: what it says of the table must not be taken back by an older one.
            older = sorted(schema_ids(home))[:-1]
            store.delete([paths.schema(number) for number in older])
        store.delete_folder(paths.root)
    publish(TableDropped(home.table_name, MAIN_BRANCH))
