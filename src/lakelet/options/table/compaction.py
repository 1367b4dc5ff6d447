"""Options of compaction, clustering and lookups. They move rows between files and caches and never change them."""

from typing import Any

from lakelet.options.kinds import (
    BOOL,
    COLUMNS,
    COUNT,
    DURATION,
    FLOAT,
    INT,
    POSITIVE,
    SIZE,
    STRING,
    integer,
    one_of,
)
from lakelet.options.option import ACTED, Option, declare

_HOUR = integer(-1, 23)

LOOKUP_CACHE_MAX_MEMORY_SIZE = declare(
    "lookup.cache-max-memory-size", SIZE, "256 mb", "Memory that blocks of lookup files may take.", ACTED
)
LOOKUP_CACHE_FILE_RETENTION = declare(
    "lookup.cache-file-retention", DURATION, "PT1H", "Time after which an unused lookup file is dropped.", ACTED
)
LOOKUP_CACHE_MAX_DISK_SIZE = declare(
    "lookup.cache-max-disk-size",
    SIZE,
    "9223372036854775807 bytes",
    "Local disk that lookup files of the table may take in one process.",
    ACTED,
)
LOOKUP_CACHE_SPILL_COMPRESSION = declare(
    "lookup.cache-spill-compression",
    STRING,
    "zstd",
    "Compression of lookup files: `none`, `snappy`, `lz4` or `zstd`.",
    ACTED,
)
LOOKUP_BLOOM_FILTER_ENABLED = declare(
    "lookup.cache.bloom.filter.enabled", BOOL, "true", "Whether lookup files have a bloom filter.", ACTED
)
LOOKUP_BLOOM_FILTER_FPP = declare(
    "lookup.cache.bloom.filter.fpp",
    FLOAT,
    "0.05",
    "Share of absent keys that the bloom filter of a lookup file lets through; if not set, `sst.bloom-bits-per-key` decides.",
    ACTED,
)
NUM_SORTED_RUN_COMPACTION_TRIGGER = declare(
    "num-sorted-run.compaction-trigger", POSITIVE, "5", "Sorted runs in a bucket that start a compaction.", ACTED
)
NUM_SORTED_RUN_STOP_TRIGGER = declare(
    "num-sorted-run.stop-trigger",
    POSITIVE,
    None,
    "Sorted runs at which writers wait for compaction; unset means three more than those that start one.",
    ACTED,
)
COMPACTION_SIZE_RATIO = declare(
    "compaction.size-ratio",
    COUNT,
    "1",
    "Percentage by which the next run may be larger and still join a compaction.",
    ACTED,
)
COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT = declare(
    "compaction.max-size-amplification-percent",
    COUNT,
    "200",
    "Share of bytes above the last run, in percent of it, that starts a full compaction.",
    ACTED,
)
COMPACTION_MIN_FILE_NUM = declare(
    "compaction.min.file-num", POSITIVE, "5", "Small files of an append table that start a compaction.", ACTED
)
COMPACTION_DELETE_RATIO_THRESHOLD = declare(
    "compaction.delete-ratio-threshold",
    FLOAT,
    "0.2",
    "Share of deleted rows at which a file of an append table is rewritten.",
    ACTED,
)
COMPACTION_FORCE_REWRITE_ALL_FILES = declare(
    "compaction.force-rewrite-all-files", BOOL, "false", "Whether a full compaction rewrites every file.", ACTED
)
COMPACTION_FORCE_UP_LEVEL_0 = declare(
    "compaction.force-up-level-0", BOOL, "false", "Whether every compaction takes in all of level 0.", ACTED
)
COMPACTION_INCREMENTAL_SIZE_THRESHOLD = declare(
    "compaction.incremental-size-threshold", SIZE, None, "Bytes of new data that start a full compaction.", ACTED
)
COMPACTION_TOTAL_SIZE_THRESHOLD = declare(
    "compaction.total-size-threshold", SIZE, None, "Size below which a bucket is always compacted in full.", ACTED
)
COMPACTION_OPTIMIZATION_INTERVAL = declare(
    "compaction.optimization-interval", DURATION, None, "Longest time between two full compactions.", ACTED
)
COMPACTION_OFFPEAK_RATIO = declare(
    "compaction.offpeak-ratio", COUNT, "0", "What is added to compaction.size-ratio in quiet hours.", ACTED
)
COMPACTION_OFFPEAK_START_HOUR = declare(
    "compaction.offpeak.start.hour", _HOUR, "-1", "First quiet hour of the day; -1 means there is none.", ACTED
)
COMPACTION_OFFPEAK_END_HOUR = declare(
    "compaction.offpeak.end.hour", _HOUR, "-1", "Hour at which the quiet hours end; -1 means there are none.", ACTED
)
FULL_COMPACTION_DELTA_COMMITS = declare(
    "full-compaction.delta-commits", COUNT, None, "Commits after which a full compaction is due.", ACTED
)
FORCE_LOOKUP = declare(
    "force-lookup",
    BOOL,
    "false",
    "Whether every compaction takes all of level 0, and rows above it are whole, as with the changelog producer lookup.",
    ACTED,
    mutable=False,
)
COMPACTION_OPTIONS: tuple[Option[Any], ...] = (
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    COMPACTION_SIZE_RATIO,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_MIN_FILE_NUM,
    COMPACTION_DELETE_RATIO_THRESHOLD,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OFFPEAK_END_HOUR,
    FULL_COMPACTION_DELTA_COMMITS,
    declare(
        "compaction.file-num-limit", POSITIVE, "100000", "Most files of an append table that one compaction looks at."
    ),
    declare("sort-engine", one_of("min-heap", "loser-tree"), "loser-tree", "Algorithm that merges sorted inputs."),
    declare(
        "sort-compaction.range-strategy",
        one_of("SIZE", "QUANTITY"),
        "SIZE",
        "Whether sorting compaction gives its tasks equal bytes or equal rows.",
    ),
    declare(
        "sort-compaction.local-sample.magnification",
        POSITIVE,
        "1000",
        "Sampled rows per task from which sorting compaction takes its ranges.",
    ),
    declare("zorder.var-length-contribution", POSITIVE, "8", "Leading bytes of text that count in a z-order."),
    declare(
        "clustering.columns",
        COLUMNS,
        None,
        "Columns by which an engine sorts rows before writing them.",
        older_names=("sink.clustering.by-columns",),
    ),
    declare(
        "clustering.strategy",
        one_of("auto", "order", "zorder", "hilbert"),
        "auto",
        "Order in which several clustering columns are combined.",
        older_names=("sink.clustering.strategy",),
    ),
    declare("clustering.incremental", BOOL, "false", "Whether clustering goes on file by file as data arrives."),
    declare(
        "clustering.incremental.mode",
        one_of("global-sort", "local-sort"),
        "global-sort",
        "Whether incremental clustering sorts across files or within each.",
    ),
    declare("clustering.incremental.optimize-write", BOOL, "false", "Whether rows are clustered already when written."),
    declare(
        "clustering.history-partition.idle-to-full-sort",
        DURATION,
        None,
        "Quiet time after which a partition is clustered as a whole.",
    ),
    declare(
        "clustering.history-partition.limit", POSITIVE, "5", "Most quiet partitions that one run clusters as a whole."
    ),
    FORCE_LOOKUP,
    declare(
        "lookup-compact",
        one_of("RADICAL", "GENTLE"),
        "RADICAL",
        "Whether compaction with lookups runs at every chance or only now and then.",
    ),
    declare(
        "lookup-compact.max-interval", POSITIVE, None, "Most chances that gentle compaction with lookups lets pass."
    ),
    declare(
        "lookup-wait",
        BOOL,
        "true",
        "Whether a commit waits for compaction with lookups.",
        older_names=("changelog-producer.lookup-wait",),
    ),
    LOOKUP_CACHE_FILE_RETENTION,
    LOOKUP_CACHE_MAX_DISK_SIZE,
    LOOKUP_CACHE_MAX_MEMORY_SIZE,
    LOOKUP_CACHE_SPILL_COMPRESSION,
    LOOKUP_BLOOM_FILTER_ENABLED,
    LOOKUP_BLOOM_FILTER_FPP,
    declare(
        "lookup.cache.high-priority-pool-ratio",
        FLOAT,
        "0.25",
        "Share of the block cache that is kept for indexes and filters.",
    ),
    declare("lookup.hash-load-factor", FLOAT, "0.75", "How full the hash table of a lookup file gets."),
    declare("lookup.merge-buffer-size", SIZE, "8 mb", "Memory to merge the rows of one key in a lookup."),
    declare("lookup.merge-records-threshold", POSITIVE, "1024", "Rows of one key beyond which a lookup packs them."),
    declare("lookup.remote-file.enabled", BOOL, "false", "Whether lookup files are stored beside the data files."),
    declare(
        "lookup.remote-file.level-threshold",
        INT,
        "-2147483648",
        "Lowest level whose lookup files are stored beside the data files.",
    ),
)
