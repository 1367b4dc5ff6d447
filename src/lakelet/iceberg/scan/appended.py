"""The snapshots of a branch in their order, and the files that an appending one added: what a stream of a table reads.

    append               the files whose entries it added
    replace              nothing: the same rows in other files
    overwrite, delete    rows are removed, which a stream of appended rows cannot show

Only manifests that the snapshot itself wrote are read; merged ones among them also name older files, which are distinguished by
the status of their entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

from lakelet.errors import NotFoundError
from lakelet.iceberg.catalog.library_errors import lakelet_errors
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.scan_file import ScanFile
from lakelet.iceberg.table import IcebergTable

APPEND, REPLACE = "append", "replace"


@dataclass(frozen=True, slots=True)
class Step:
    """A snapshot of a branch: its id, what made it, when, and under which schema."""

    snapshot_id: int
    operation: str
    time_ms: int
    schema_id: int | None


def steps(table: IcebergTable, branch: str | None = None) -> tuple[tuple[Step, ...], bool]:
    """The snapshots of a branch, oldest first, and whether they go back to its first one rather than to an expired one."""
    metadata = table.metadata
    number, found = table.snapshot_id(branch), list[Step]()
    if branch is not None and number is None:
        raise NotFoundError(f"table {table.full_name} has no branch {branch!r}")
    while number is not None:
        snapshot = metadata.snapshot_by_id(number)
        if snapshot is None:
            return tuple(reversed(found)), False
        operation = snapshot.summary.operation.value if snapshot.summary is not None else APPEND
        found.append(Step(number, operation, snapshot.timestamp_ms, snapshot.schema_id))
        number = snapshot.parent_snapshot_id
    return tuple(reversed(found)), True


def added_files(table: IcebergTable, snapshot_id: int) -> tuple[ScanFile, ...]:
    """The data files that a snapshot added, in the order of its manifests."""
    io, what = table.library.io, f"table {table.full_name}"
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise NotFoundError(f"{what} has no snapshot {snapshot_id}; it may have been expired")
    found: list[ScanFile] = []
    with lakelet_errors(what):
        with reading(snapshot.manifest_list, what):
            listed = table.source.manifest_list(io, snapshot)
        for manifest in listed:
            if manifest.content != ManifestContent.DATA or manifest.added_snapshot_id != snapshot_id:
                continue
            with reading(manifest.manifest_path, what):
                entries = table.source.manifest_rows(io, manifest)
            for entry in entries:
                if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in (None, snapshot_id):
                    file = entry.data_file
                    found.append(
                        ScanFile(
                            file.file_path,
                            file.file_format.value.upper(),
                            file.file_size_in_bytes,
                            file.record_count,
                            manifest.partition_spec_id,
                            tuple(file.partition[place] for place in range(len(file.partition))),
                            entry.sequence_number or 0,
                        )
                    )
    return tuple(found)


def schema_changes(table: IcebergTable, began: int, now: int | None) -> Sequence[str]:
    """The columns that differ between two schemas of a table, described; none where the second is not known."""
    schemas = {one.schema_id: one for one in table.metadata.schemas}
    if now is None or now == began or began not in schemas or now not in schemas:
        return ()
    was, became = ({one.field_id: one for one in schemas[number].fields} for number in (began, now))
    found = [f"column {became[number].name!r} was added" for number in became.keys() - was.keys()]
    found += [f"column {was[number].name!r} was dropped" for number in was.keys() - became.keys()]
    for number in was.keys() & became.keys():
        if was[number].name != became[number].name:
            found.append(f"column {was[number].name!r} was renamed to {became[number].name!r}")
        if was[number].field_type != became[number].field_type:
            found.append(f"the type of column {was[number].name!r} became {became[number].field_type}")
    return sorted(found)
