"""Options of writers and of commits: buffers, spilling, retries, manifests, callbacks."""

from typing import Any

from lakelet.options.kinds import (
    BOOL,
    COUNT,
    DURATION,
    LONG,
    POSITIVE,
    POSITIVE_SIZE,
    SIZE,
    STRING,
    integer,
    one_of,
)
from lakelet.options.option import ACTED, REFUSED, Option, declare
from lakelet.options.table.files import COMPRESSION_NAME

WRITE_ONLY = declare(
    "write-only",
    BOOL,
    "false",
    "Whether writers leave compaction and expiry to others.",
    ACTED,
    older_names=("write.compaction-skip",),
)
WRITE_BATCH_MEMORY = declare(
    "write.batch-memory",
    POSITIVE_SIZE,
    "128 mb",
    "Memory a writer may fill with rows before they go into a file.",
    ACTED,
)
WRITE_MISSING_COLUMNS = declare(
    "write.missing-columns",
    one_of("error", "default", "keep"),
    "error",
    "What an upsert does about columns that its rows lack, unless the writer says missing=: refuse it, fill in the column's "
    "default (else NULL), or keep the values stored for the key.",
    ACTED,
)
FIELD_DEFAULT_EXPRESSION = declare(
    "fields.<column>.default-expression",
    STRING,
    None,
    "Expression whose value rows get that are written without the column, such as `uuid()`. An option of Lakelet's: other "
    "engines write NULL.",
    ACTED,
)
DYNAMIC_PARTITION_OVERWRITE = declare(
    "dynamic-partition-overwrite",
    BOOL,
    "true",
    "Whether INSERT OVERWRITE without a fully named partition replaces only the partitions it has rows for; in Python "
    "mode= says which overwrite is meant.",
    ACTED,
)
COMMIT_MAX_RETRIES = declare(
    "commit.max-retries",
    COUNT,
    "10",
    "Further attempts after a commit lost against another one. The default is other engines': where it is unset, Lakelet does "
    "not count, and repeats a commit for five minutes (docs/decisions/0004).",
    ACTED,
)
COMMIT_TIMEOUT = declare(
    "commit.timeout",
    DURATION,
    None,
    "Time after which a commit makes no further attempt; unset means five minutes.",
    ACTED,
)
COMMIT_MIN_RETRY_WAIT = declare(
    "commit.min-retry-wait", DURATION, "PT0.01S", "Wait before the second attempt of a commit.", ACTED
)
COMMIT_MAX_RETRY_WAIT = declare(
    "commit.max-retry-wait", DURATION, "PT10S", "Longest wait between two attempts of a commit.", ACTED
)
COMMIT_USER_PREFIX = declare("commit.user-prefix", STRING, None, "How generated names of commit users begin.", ACTED)
COMMIT_FORCE_CREATE_SNAPSHOT = declare(
    "commit.force-create-snapshot",
    BOOL,
    "false",
    "Whether a commit without changes makes a snapshot all the same.",
    ACTED,
)
SNAPSHOT_IGNORE_EMPTY_COMMIT = declare(
    "snapshot.ignore-empty-commit",
    BOOL,
    None,
    "Whether a commit without changes makes no snapshot; unset means yes for batch writes.",
    ACTED,
)
MANIFEST_FORMAT = declare("manifest.format", one_of("avro", "json"), "avro", "Format of new manifests.", ACTED)
MANIFEST_COMPRESSION = declare("manifest.compression", COMPRESSION_NAME, "zstd", "Compression of new manifests.", ACTED)
MANIFEST_TARGET_FILE_SIZE = declare(
    "manifest.target-file-size", POSITIVE_SIZE, "8 mb", "Size that merged manifests grow to.", ACTED
)
MANIFEST_MERGE_MIN_COUNT = declare(
    "manifest.merge-min-count", POSITIVE, "30", "Small manifests that must be there before they are merged.", ACTED
)
MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE = declare(
    "manifest.full-compaction-threshold-size",
    SIZE,
    "16 mb",
    "Bytes of changed manifests after which all manifests are rewritten without deleted entries.",
    ACTED,
)

_TAG_MODES = one_of("none", "process-time", "watermark", "batch")

WRITE_BUFFER_SIZE = declare(
    "write-buffer-size", SIZE, "256 mb", "Memory in which rows are sorted before they become a level-0 file.", ACTED
)
COMMIT_CALLBACKS = declare(
    "commit.callbacks",
    STRING,
    "",
    "Classes called after each commit, by their dotted paths, separated by commas; those of Java are for other engines.",
    ACTED,
)
COMMIT_CALLBACK_PARAM = declare(
    "commit.callback.#.param", STRING, None, "Argument that the commit callback class in the name is made with.", ACTED
)
TAG_CALLBACKS = declare(
    "tag.callbacks",
    STRING,
    "",
    "Classes called after a tag is made or deleted, by their dotted paths; those of Java are for other engines.",
    ACTED,
)
TAG_CALLBACK_PARAM = declare(
    "tag.callback.#.param", STRING, None, "Argument that the tag callback class in the name is made with.", ACTED
)
WRITING_OPTIONS: tuple[Option[Any], ...] = (
    WRITE_BATCH_MEMORY,
    WRITE_MISSING_COLUMNS,
    FIELD_DEFAULT_EXPRESSION,
    DYNAMIC_PARTITION_OVERWRITE,
    COMMIT_MAX_RETRIES,
    COMMIT_TIMEOUT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_USER_PREFIX,
    COMMIT_FORCE_CREATE_SNAPSHOT,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
    MANIFEST_FORMAT,
    MANIFEST_COMPRESSION,
    MANIFEST_TARGET_FILE_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    declare("async-file-write", BOOL, "true", "Whether files are written by a thread of their own."),
    WRITE_BUFFER_SIZE,
    declare("write-buffer-for-append", BOOL, "false", "Whether append writers share a bounded buffer."),
    declare("write-buffer-spillable", BOOL, "true", "Whether a full write buffer may go to local disk."),
    declare(
        "write-buffer-spill.max-disk-size",
        SIZE,
        "9223372036854775807 bytes",
        "Local disk that spilled write buffers may take.",
    ),
    declare(
        "write-max-writers-to-spill", COUNT, "10", "Open writers of a batch insert beyond which their buffers spill."
    ),
    WRITE_ONLY,
    declare(
        "write.batch-size",
        POSITIVE,
        "1024",
        "Rows that a file writer takes at once.",
        older_names=("orc.write.batch-size",),
    ),
    declare("local-merge-buffer-size", SIZE, None, "Memory to merge rows of one key before they are sent to buckets."),
    declare("local-sort.max-num-file-handles", POSITIVE, "128", "Spilled files that an external sort opens at once."),
    declare("sort-spill-buffer-size", SIZE, "64 mb", "Memory that a spilling sort fills before it writes to disk."),
    declare("sort-spill-threshold", POSITIVE, None, "Sorted inputs beyond which a merge spills some of them."),
    declare("spill-compression", STRING, "zstd", "Compression of spilled data."),
    declare("spill-compression.zstd-level", integer(1, 22), "1", "How hard zstd tries on spilled data."),
    declare("page-size", SIZE, "64 kb", "Size of the pages that buffers are made of."),
    declare("cache-page-size", SIZE, "64 kb", "Size of the pages that caches are made of."),
    declare(
        "file-operation.thread-num",
        POSITIVE,
        None,
        "Threads that delete and list files; unset means one per core.",
        older_names=("delete-file.thread-num",),
    ),
    declare(
        "overwrite-upgrade", BOOL, "true", "Whether files of an overwritten primary-key table move up a level at once."
    ),
    declare(
        "partition.sink-strategy",
        one_of("NONE", "HASH"),
        "NONE",
        "How an engine spreads rows of partitions over its writers.",
    ),
    declare(
        "partition.timestamp-format.strict",
        BOOL,
        "false",
        "Whether rows whose partition is not a time of the declared pattern are rejected.",
        REFUSED,
    ),
    COMMIT_CALLBACKS,
    COMMIT_CALLBACK_PARAM,
    declare(
        "commit.discard-duplicate-files",
        BOOL,
        "false",
        "Whether a file that is committed twice is dropped quietly instead of failing the commit.",
    ),
    declare("commit.force-compact", BOOL, "false", "Whether writers compact before each commit."),
    declare(
        "commit.strict-mode.last-safe-snapshot",
        LONG,
        None,
        "Snapshot after which no other user may have compacted, overwritten or written buckets, else commits fail.",
        REFUSED,
    ),
    declare(
        "visibility-callback.enabled",
        BOOL,
        "false",
        "Whether a commit returns only when compaction has made its rows visible.",
    ),
    declare(
        "visibility-callback.check-interval", DURATION, "PT10S", "Pause between two looks whether rows are visible."
    ),
    declare("visibility-callback.timeout", DURATION, "PT30M", "Longest wait until rows are visible."),
    declare(
        "manifest.delete-file-drop-stats",
        BOOL,
        "false",
        "Whether manifest entries that delete a file go without its statistics.",
    ),
    declare(
        "snapshot.watermark-idle-timeout",
        DURATION,
        None,
        "Time without input after which a streaming writer makes a snapshot to let tags move on.",
    ),
    TAG_CALLBACKS,
    TAG_CALLBACK_PARAM,
    declare("metastore.partitioned-table", BOOL, "false", "Whether a Hive metastore lists the partitions."),
    declare("metastore.tag-to-partition", STRING, None, "Partition column under which a Hive metastore shows tags."),
    declare(
        "metastore.tag-to-partition.preview",
        _TAG_MODES,
        "none",
        "Whether a Hive metastore shows tags that are yet to be made.",
    ),
    declare("partition.end-input-to-done", BOOL, "false", "Whether partitions are marked done when the input ends."),
    declare("partition.mark-done-action", STRING, "success-file", "How other systems learn that a partition is done."),
    declare("partition.mark-done-action.custom.class", STRING, None, "Java class that marks partitions done."),
    declare("partition.mark-done-action.http.url", STRING, None, "Address that is told of a partition that is done."),
    declare(
        "partition.mark-done-action.http.params",
        STRING,
        None,
        "Body of the request that tells an address of a partition that is done.",
    ),
    declare(
        "partition.idle-time-to-report-statistic",
        DURATION,
        "PT0S",
        "Quiet time after which a partition's statistics go to the metastore; zero never sends them.",
    ),
)
