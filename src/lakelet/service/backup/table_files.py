"""The files that make a table exist: its identity and its schemas, copied as they are."""

from __future__ import annotations

from collections.abc import Container

from lakelet.commit.metadata.stored import schema_bytes
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import ConflictError, NotFoundError
from lakelet.events import SchemaChanged, publish
from lakelet.service.backup.checksums import Checksum, checksum_of
from lakelet.storage.home import TableHome


def same_table(one: TableHome, other: TableHome) -> bool:
    """Whether two tables, which both exist, are one and its copy; of one that has lost its identity the first schema tells."""
    if _identity(one) is None or _identity(other) is None:
        return _schema(one, 0) == _schema(other, 0)
    return table_identity(one) == table_identity(other)


def copy_identity(source: TableHome, target: TableHome) -> None:
    """Copy the identity of a table, where it has one. It comes before the first schema, so that no table is without."""
    data = _identity(source)
    if data is not None and _identity(target) != data:
        target.store.put(target.paths.metadata, data)


def copy_schemas(source: TableHome, target: TableHome, checked: Container[str] = ()) -> dict[str, Checksum]:
    """Copy the schemas that the target lacks, oldest first; the checksums of all that are not `checked` before."""
    there, found = set(schema_ids(target)), {}
    for number in schema_ids(source):
        name = f"schema/schema-{number}"
        if number in there and name in checked:
            continue
        data = schema_bytes(source, number)
        is_new = number not in there and target.store.put_if_absent(target.paths.schema(number), data)
        if not is_new and _schema(target, number) != data:
            raise ConflictError(
                f"{target.where(target.paths.schema(number))} is another schema than that of the source"
            )
        if is_new:
            publish(SchemaChanged(target.table_name, target.paths.branch, number))
        found[name] = checksum_of(data)
    return found


def _identity(home: TableHome) -> bytes | None:
    try:
        return home.store.get(home.paths.metadata)
    except NotFoundError:
        return None


def _schema(home: TableHome, number: int) -> bytes | None:
    try:
        return schema_bytes(home, number)
    except NotFoundError:
        return None
