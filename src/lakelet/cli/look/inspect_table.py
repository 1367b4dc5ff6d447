"""`lakelet inspect`: the contents of a table's metadata files. Data files are `inspect_file`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from lakelet.cli.look.inspect_file import inspect_file
from lakelet.cli.output.output import Output
from lakelet.clock import shown_time
from lakelet.commit.metadata.manifests import read_manifest, read_manifest_list, snapshot_manifests
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.commit.metadata.source import metadata
from lakelet.errors import InvalidError, NotFoundError
from lakelet.format.manifest.manifest_columns import columns_to_entries
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.default_expressions import default_of
from lakelet.model.manifest import ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.sql.lexer.errors import nearest
from lakelet.table import Table

_MANIFEST_COLUMNS = ("manifest", "list", "bytes", "added", "deleted", "schema")


def inspect_table(table: Table, output: Output, what: str, name: str | None) -> None:
    """One aspect of a table."""
    match what:
        case "schema":
            _schema(table, output, table.schema if name is None else read_schema(table.home, _number(name)))
        case "snapshot":
            _snapshot(table, output, _newest(table) if name is None else read_snapshot(table.home, _number(name)))
        case "manifest":
            _manifest(table, output, name or "")
        case "file":
            inspect_file(table, output, name or "")
        case _:
            {
                "schemas": _schemas,
                "snapshots": _snapshots,
                "manifests": _manifests,
                "files": list_files,
                "options": _options,
                "tags": _tags,
                "branches": _branches,
            }[what](table, output)


def list_files(table: Table, output: Output, version: int | None = None) -> None:
    """The live data files."""
    rows = [
        (path, file.row_count, file.size, file.level, file.schema_id) for path, file in table.files(version=version)
    ]
    output.rows(table.name, ("file", "rows", "bytes", "level", "schema"), rows)


def _schema(table: Table, output: Output, schema: TableSchema) -> None:
    rows = [
        (field.id, field.name, str(field.type), default_of(field, schema), field.description) for field in schema.fields
    ]
    output.rows(f"{table.name}, schema {schema.id}", ("id", "column", "type", "default", "comment"), rows)
    output.values("keys", {"partition": ", ".join(schema.partition_keys), "primary": ", ".join(schema.primary_keys)})


def _schemas(table: Table, output: Output) -> None:
    rows = [
        (schema.id, shown_time(schema.time_ms), len(schema.fields), ", ".join(field.name for field in schema.fields))
        for schema in table.schemas()
    ]
    output.rows(table.name, ("schema", "time", "columns", "names"), rows)


def _snapshots(table: Table, output: Output) -> None:
    rows = [
        (
            s.id,
            s.commit_kind.value,
            shown_time(s.time_ms),
            s.total_record_count,
            s.delta_record_count,
            s.schema_id,
            s.commit_user,
        )
        for s in table.snapshots()
    ]
    output.rows(table.name, ("snapshot", "kind", "time", "records", "change", "schema", "user"), rows)


def _snapshot(table: Table, output: Output, snapshot: Snapshot) -> None:
    values: dict[str, object] = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    values |= {"commit_kind": snapshot.commit_kind.value, "time": shown_time(snapshot.time_ms)}
    output.values(f"{table.name}, snapshot {snapshot.id}", values)
    _list_manifests(table, output, snapshot)


def _manifests(table: Table, output: Output) -> None:
    _list_manifests(table, output, _newest(table))


def _list_manifests(table: Table, output: Output, snapshot: Snapshot) -> None:
    lists = [("base", snapshot.base_manifest_list), ("delta", snapshot.delta_manifest_list)]
    if snapshot.changelog_manifest_list is not None:
        lists.append(("changelog", snapshot.changelog_manifest_list))
    rows = [row for kind, name in lists for row in _manifest_rows(kind, read_manifest_list(table.home, name))]
    output.rows(f"manifests of snapshot {snapshot.id}", _MANIFEST_COLUMNS, rows)


def _manifest(table: Table, output: Output, name: str) -> None:
    """The entries of a manifest, the manifests of a manifest list, or the index files of an index manifest, by the file name."""
    home, schema = table.home, table.schema
    folders = PartitionFolders(home.paths, schema)
    if name.startswith("manifest-list-"):
        output.rows(name, _MANIFEST_COLUMNS, _manifest_rows("", read_manifest_list(home, name)))
        return
    if name.startswith("index-manifest-"):
        found = metadata(home).index_manifest(home, name)
        columns: Sequence[str] = ("kind", "partition", "bucket", "index", "file", "rows", "bytes")
        index_rows = [
            (
                entry.kind.name,
                folders.partition_path(entry.partition),
                entry.bucket,
                entry.file.index_type,
                entry.file.name,
                entry.file.row_count,
                entry.file.size,
            )
            for entry in found
        ]
        output.rows(name, columns, index_rows)
        return
    manifest = _named_manifest(table, name)
    entries = columns_to_entries(read_manifest(home, manifest))
    rows = [
        (
            entry.kind.name,
            folders.partition_path(entry.partition),
            entry.bucket,
            entry.file.level,
            entry.file.name,
            entry.file.row_count,
            entry.file.size,
            entry.file.schema_id,
        )
        for entry in entries
    ]
    output.rows(name, ("kind", "partition", "bucket", "level", "file", "rows", "bytes", "schema"), rows)


def _named_manifest(table: Table, name: str) -> ManifestFile:
    """The manifest of that name in any snapshot, newest first; NotFoundError names the nearest."""
    known: set[str] = set()
    for snapshot in reversed(table.snapshots()):
        for manifest in snapshot_manifests(table.home, snapshot):
            if manifest.name == name:
                return manifest
            known.add(manifest.name)
    raise NotFoundError(f"manifest {name!r} is in no snapshot of {table.name}{nearest(name, known)}")


def _manifest_rows(kind: str, manifests: Sequence[ManifestFile]) -> list[tuple[object, ...]]:
    return [
        (manifest.name, kind, manifest.size, manifest.added_files, manifest.deleted_files, manifest.schema_id)
        for manifest in manifests
    ]


def _options(table: Table, output: Output) -> None:
    output.values(table.name, table.options)


def _tags(table: Table, output: Output) -> None:
    rows = [(tag.name, tag.snapshot_id, shown_time(tag.time_ms)) for tag in table.tags.list()]
    output.rows(table.name, ("tag", "snapshot", "time"), rows)


def _branches(table: Table, output: Output) -> None:
    output.rows(table.name, ("branch",), [(name,) for name in table.branches.list()])


def _newest(table: Table) -> Snapshot:
    snapshot = table.latest_snapshot()
    if snapshot is None:
        raise NotFoundError(f"{table.name} has no snapshot yet: nothing was written")
    return snapshot


def _number(text: str) -> int:
    if not text.isdigit():
        raise InvalidError(f"{text!r}: expected the number of a schema or snapshot")
    return int(text)
