"""Options of reads: time travel, splits and scans. Those of streams are in `stream`."""

from typing import Any

from lakelet.options.kinds import (
    BOOL,
    FILE_NAME_PART,
    LONG,
    POSITIVE,
    POSITIVE_SIZE,
    SIZE,
    STRING,
    one_of,
)
from lakelet.options.option import ACTED, REFUSED, Option, declare

SCAN_MODE = declare(
    "scan.mode",
    one_of(
        "default",
        "latest-full",
        "full",
        "latest",
        "compacted-full",
        "from-timestamp",
        "from-creation-timestamp",
        "from-file-creation-time",
        "from-snapshot",
        "from-snapshot-full",
        "incremental",
    ),
    "default",
    "Where a read begins. The other scan options decide what Lakelet reads, without them the latest snapshot; modes that "
    "would give a batch read other rows are refused.",
    supported=("default", "latest-full", "full", "latest", "from-timestamp", "from-snapshot", "from-snapshot-full"),
    older_names=("log.scan",),
)
SCAN_SNAPSHOT_ID = declare("scan.snapshot-id", LONG, None, "Snapshot that is read.", ACTED)
SCAN_TAG_NAME = declare("scan.tag-name", FILE_NAME_PART, None, "Tag that is read.", ACTED)
SCAN_TIMESTAMP = declare(
    "scan.timestamp", STRING, None, "Time, as text, whose state is read: that of the last snapshot up to it.", ACTED
)
SCAN_TIMESTAMP_MILLIS = declare(
    "scan.timestamp-millis",
    LONG,
    None,
    "Time, in milliseconds since 1970, whose state is read: that of the last snapshot up to it.",
    ACTED,
    older_names=("log.scan.timestamp-millis",),
)
SCAN_VERSION = declare(
    "scan.version", STRING, None, "Tag or snapshot that is read; a tag goes before a snapshot of the same name.", ACTED
)
SCAN_MANIFEST_PARALLELISM = declare(
    "scan.manifest.parallelism", POSITIVE, None, "Manifests that are read at once; unset means one per core.", ACTED
)
SOURCE_SPLIT_TARGET_SIZE = declare(
    "source.split.target-size", POSITIVE_SIZE, "128 mb", "Bytes of files that one split takes.", ACTED
)
SOURCE_SPLIT_OPEN_FILE_COST = declare(
    "source.split.open-file-cost", SIZE, "4 mb", "Least size that a file counts for when splits are packed.", ACTED
)
READ_BATCH_SIZE = declare("read.batch-size", POSITIVE, "1024", "Rows that other engines' file readers give at once.")

READING_OPTIONS: tuple[Option[Any], ...] = (
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    SCAN_MANIFEST_PARALLELISM,
    SOURCE_SPLIT_TARGET_SIZE,
    SOURCE_SPLIT_OPEN_FILE_COST,
    READ_BATCH_SIZE,
    declare("scan.watermark", LONG, None, "Watermark whose first snapshot is read.", REFUSED),
    declare(
        "scan.fallback-snapshot-branch", STRING, None, "Branch of full states for partitions that are absent.", REFUSED
    ),
    declare("scan.fallback-delta-branch", STRING, None, "Branch of changes for partitions that are absent.", REFUSED),
    declare("scan.primary-branch", STRING, None, "Branch whose partitions go before those of this one.", REFUSED),
    declare(
        "scan.ignore-corrupt-files",
        BOOL,
        "false",
        "Whether other engines skip damaged files; Lakelet always reports them.",
    ),
    declare(
        "scan.ignore-lost-files",
        BOOL,
        "false",
        "Whether other engines skip files that are gone; Lakelet always reports them.",
    ),
    declare("scan.max-splits-per-task", POSITIVE, "10", "Splits that wait for each task of an engine's stream."),
    declare("scan.plan-sort-partition", BOOL, "false", "Whether splits come in the order of their partitions."),
    declare(
        "batch-scan-mode", one_of("none", "compact"), "none", "Files that only a compaction job should read.", REFUSED
    ),
    declare(
        "stream-scan-mode",
        one_of("none", "compact-bucket-table", "file-monitor"),
        "none",
        "Files that only a compaction or monitoring stream should read.",
        REFUSED,
    ),
    declare(
        "incremental-between-scan-mode",
        one_of("auto", "delta", "changelog", "diff"),
        "auto",
        "Whether changes are taken from new files, from changelogs or by comparing states.",
        REFUSED,
    ),
    declare(
        "incremental-between-tag-to-snapshot",
        BOOL,
        "false",
        "Whether tags are taken as their snapshots when changes are read.",
        REFUSED,
    ),
    declare(
        "incremental-to-auto-tag", STRING, None, "Automatic tag whose changes since the one before are read.", REFUSED
    ),
    declare(
        "key-value.sequence_number.enabled", BOOL, "false", "Whether reads show the sequence number column.", REFUSED
    ),
    declare(
        "table-read.sequence-number.enabled",
        BOOL,
        "false",
        "Whether the audit-log and binlog tables show the sequence number column.",
        REFUSED,
    ),
    declare(
        "query-auth.enabled", BOOL, "false", "Whether the catalog decides which rows and columns a user sees.", REFUSED
    ),
    declare("file-reader-async-threshold", SIZE, "10 mb", "File size from which files are read ahead by a thread."),
)
