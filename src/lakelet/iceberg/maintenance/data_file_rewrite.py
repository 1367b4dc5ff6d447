"""Small-file compaction: rewrite the live rows of many small files into few files of the table's current spec.

Rows are read file by file and written as they come, so that memory is that of the writer. All groups become one `replace`
snapshot: the rows of the table are the same before and after it. Rows that were deleted meanwhile, or files that another
rewrite replaced, are a ConflictError, after which the new files are removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelet.clock import Clock
from lakelet.errors import InvalidError
from lakelet.iceberg.commit.attempts import MadeSnapshot, head_of
from lakelet.iceberg.commit.partition_keys import partition_key
from lakelet.iceberg.commit.replace_files import replace_files
from lakelet.iceberg.maintenance.file_groups import Candidate, file_groups
from lakelet.iceberg.scan import IcebergScan, ScanFile, scan_of
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import write_plan
from lakelet.ids import Ids, RandomIds

_MIN_INPUT_FILES = 5


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """What a rewrite did; the snapshot is None where there was nothing to do."""

    snapshot: MadeSnapshot | None
    rewritten_files: int
    added_files: int
    rewritten_bytes: int


def rewrite_data_files(
    table: IcebergTable,
    *,
    target_bytes: int | None = None,
    min_input_files: int = _MIN_INPUT_FILES,
    where: str | None = None,
    branch: str = "main",
    ids: Ids | None = None,
    clock: Clock | None = None,
) -> RewrittenFiles:
    """Rewrites the files of a branch that are due, of those that may hold rows for which a condition is true."""
    if (target_bytes is not None and target_bytes < 1) or min_input_files < 1:
        raise InvalidError("rewriting data files: expected a target size and a number of input files from 1 on")
    ids = ids or RandomIds()
    now = table.reloaded()
    head = head_of(now, branch)
    if head is None:
        return RewrittenFiles(None, 0, 0, 0)
    plan = write_plan(now, ids.uuid())
    if target_bytes is not None:
        plan = replace(plan, target_file_size=target_bytes)
    # A branch is read in the table's schema, a snapshot by its id in the one it was written with.
    scan = scan_of(now, ref=branch)
    chosen = scan.files if where is None else scan_of(now, ref=branch, where=where).files
    by_path = {file.path: file for file in chosen}
    groups = file_groups(
        [_candidate(file, now.metadata.default_spec_id) for file in chosen],
        target_bytes=plan.target_file_size,
        min_input_files=min_input_files,
    )
    if not groups:
        return RewrittenFiles(None, 0, 0, 0)
    removed = [candidate.path for group in groups for candidate in group]
    writer = TableWriter(plan, "rewrite")
    try:
        for path in removed:
            _copy(scan, by_path[path], writer)
        added = writer.close()
    except BaseException:
        writer.abort()
        raise
    made = replace_files(
        now,
        removed,
        added,
        base_snapshot_id=head.snapshot_id,
        operation="replace",
        branch=branch,
        ids=ids,
        clock=clock,
    )
    return RewrittenFiles(made, len(removed), len(added), sum(by_path[path].size for path in removed))


def _copy(scan: IcebergScan, file: ScanFile, writer: TableWriter) -> None:
    for batch in scan.read(file):
        writer.write(batch)


def _candidate(file: ScanFile, spec_id: int) -> Candidate:
    key = (file.spec_id, partition_key(file.partition))
    return Candidate(file.path, key, file.size, bool(file.deletes), file.spec_id != spec_id)
