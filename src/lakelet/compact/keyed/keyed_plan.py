"""Plan the compaction of a primary-key table: the policy of `lsm.universal`, applied bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from lakelet.compact.task import CompactionTask
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.data.sst_file import NAME as SST
from lakelet.lsm.changelog_producer import FULL_COMPACTION, LOOKUP, changelog_producer, check_whole_rows
from lakelet.lsm.engine.removal import removes_rows
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.lsm.levels import LevelRun, level_runs
from lakelet.lsm.universal import CompactUnit, UniversalPolicy, drops_deletes
from lakelet.model.bucket_mode import POSTPONE_BUCKET
from lakelet.model.data_file import DataFile
from lakelet.model.manifest import ManifestEntry
from lakelet.model.schema import TableSchema
from lakelet.model.split import DeletionVector
from lakelet.options import TableOptions
from lakelet.scan.tree import hides_level0, takes_level0


def keyed_tasks(
    entries: Sequence[ManifestEntry],
    schema: TableSchema,
    *,
    snapshot_id: int,
    vectors: Mapping[str, DeletionVector],
    now_ms: int,
    full: bool,
    expired: frozenset[str] = frozenset(),
) -> list[CompactionTask]:
    """The tasks of these live entries, which include all files of each bucket.

    Full compaction merges all runs of every bucket; `expired` are files with rows that are too old to be kept. It also rewrites
    SST files where the table's format is another by now, so that other engines can open the table again. Buckets with files of a
    newer schema are left alone: this one does not know all of their columns. Where compaction makes rows of level 0 visible, or
    looks up what they change, and the merge engine folds values, every task includes all runs of its bucket; so does a task
    with a -D that removes what older rows of a key have made.
    """
    options = TableOptions(schema.options)
    policy = UniversalPolicy.of(options)
    hides, takes = hides_level0(options), takes_level0(options)
    producer = changelog_producer(schema)
    engine = table_engine(schema)
    marks, removes = engine.shortcuts.positions, removes_rows(engine)
    tasks: list[CompactionTask] = []
    for (partition, bucket), total, files in _buckets(entries):
        if bucket == POSTPONE_BUCKET or any(file.schema_id > schema.id for file in files):
            continue
        check_whole_rows(options, [file.level for file in files])
        runs = level_runs(files)
        if full:
            expired |= _in_former_format(files, schema, policy.levels(runs) - 1)
        unit = _unit(policy, runs, vectors, now_ms=now_ms, full=full, takes=takes, expired=expired)
        meets_all = takes and not marks
        if unit is not None and (meets_all or (removes and any(file.delete_row_count != 0 for file in unit.files))):
            # A row from level 0 is folded with the row of its key above, which a deletion vector cannot express. Java reads of
            # the levels above 0 only the lowest that has a key, so that a row there has to be whole.
            unit = _unit(policy, runs, vectors, now_ms=now_ms, full=True, takes=takes, expired=expired)
        if unit is None:
            continue
        taken = {file.name for file in unit.files}
        reported = _reported_level(producer, unit, policy.levels(runs) - 1)
        tasks.append(
            CompactionTask(
                snapshot_id,
                partition,
                bucket,
                total,
                unit.files,
                output_level=unit.output_level,
                drop_deletes=hides or drops_deletes(unit, runs),
                beside=tuple(file for file in files if hides and file.level > 0 and file.name not in taken),
                rewrites_each=unit.rewrites_each,
                vectors={file.name: vectors[file.name] for file in files if file.name in vectors},
                reported_level=reported,
                older=tuple(
                    file for file in files if takes and not hides and file.level > 0 and file.name not in taken
                ),
            )
        )
    return tasks


def _unit(
    policy: UniversalPolicy,
    runs: Sequence[LevelRun],
    vectors: Mapping[str, DeletionVector],
    *,
    now_ms: int,
    full: bool,
    takes: bool,
    expired: frozenset[str],
) -> CompactUnit | None:
    if full:
        with_deleted = {file.name for run in runs for file in run.files if file.name in vectors}
        return policy.pick_full(runs, must_rewrite=with_deleted | expired)
    return policy.pick(runs, now_ms=now_ms, last_full_ms=policy.last_full_ms(runs), force_level0=takes)


def _reported_level(producer: str, unit: CompactUnit, top: int) -> int:
    """The level that rows have to rise to for a unit's changelog to tell of them; 0 where it makes none."""
    if producer == LOOKUP and unit.output_level > 0:
        return 1
    return top if producer == FULL_COMPACTION and unit.output_level == top else 0


def _in_former_format(files: Sequence[DataFile], schema: TableSchema, top: int) -> frozenset[str]:
    """The SST files, unless new files of the top level are such."""
    names = frozenset(file.name for file in files if file.name.endswith(f".{SST}"))
    return frozenset() if not names or FileSettings.of(schema, level=top).file_format == SST else names


def _buckets(entries: Sequence[ManifestEntry]) -> Iterator[tuple[tuple[bytes, int], int, list[DataFile]]]:
    ordered = sorted(entries, key=lambda entry: (entry.partition, entry.bucket))
    for place, group in groupby(ordered, key=lambda entry: (entry.partition, entry.bucket)):
        members = list(group)
        yield place, members[0].total_buckets, [entry.file for entry in members]
