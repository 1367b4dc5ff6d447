"""Options of table features beyond plain rows: row tracking, blobs, vectors, variants, global indexes, and others."""

from typing import Any

from lakelet.options.kinds import BOOL, COLUMNS, FLOAT, POSITIVE, SIZE, STRING, integer, one_of
from lakelet.options.option import REFUSED, Option, declare

_REFRESH_MODE = one_of("CONTINUOUS", "FULL", "AUTOMATIC")

EXTENSION_OPTIONS: tuple[Option[Any], ...] = (
    declare(
        "row-tracking.enabled",
        BOOL,
        "false",
        "Whether every row of an append table has an id of its own.",
        REFUSED,
        mutable=False,
    ),
    declare(
        "data-evolution.enabled",
        BOOL,
        "false",
        "Whether columns of one row may lie in several files.",
        REFUSED,
        mutable=False,
    ),
    declare("chain-table.enabled", BOOL, "false", "Whether a state is merged from full and delta branches.", REFUSED),
    declare(
        "chain-table.chain-partition-keys",
        COLUMNS,
        None,
        "Partition columns along which branches are chained.",
        REFUSED,
    ),
    declare("blob-field", COLUMNS, None, "Columns whose bytes lie in blob files.", REFUSED, mutable=False),
    declare(
        "blob-descriptor-field",
        COLUMNS,
        None,
        "Columns that hold references to blobs.",
        REFUSED,
        mutable=False,
        older_names=("blob.stored-descriptor-fields",),
    ),
    declare(
        "blob-as-descriptor", BOOL, "false", "Whether reads and writes exchange references instead of bytes.", REFUSED
    ),
    declare(
        "blob-external-storage-field", COLUMNS, None, "Columns whose blobs lie outside the table's folder.", REFUSED
    ),
    declare("blob-external-storage-path", STRING, None, "Where blobs outside the table's folder lie.", REFUSED),
    declare("blob.split-by-file-size", BOOL, None, "Whether the size of blob files counts when splits are packed."),
    declare("blob.target-file-size", SIZE, None, "Size at which a blob file is closed; unset means as data files."),
    declare("vector-field", COLUMNS, None, "Array columns that are stored as vectors.", REFUSED),
    declare("vector.file.format", STRING, None, "Format of the separate files that vectors lie in.", REFUSED),
    declare("vector.target-file-size", SIZE, None, "Size at which a vector file is closed; unset means as data files."),
    declare(
        "variant.shreddingSchema",
        STRING,
        None,
        "Fields of VARIANT columns that are stored as columns.",
        REFUSED,
        older_names=("parquet.variant.shreddingSchema",),
    ),
    declare(
        "variant.inferShreddingSchema",
        BOOL,
        "false",
        "Whether the VARIANT fields to store as columns are found by looking at rows.",
        REFUSED,
    ),
    declare(
        "variant.shredding.maxInferBufferRow",
        POSITIVE,
        "4096",
        "Rows that are looked at to choose VARIANT fields to store as columns.",
    ),
    declare(
        "variant.shredding.maxSchemaDepth", POSITIVE, "50", "Depth to which VARIANT fields may be stored as columns."
    ),
    declare("variant.shredding.maxSchemaWidth", POSITIVE, "300", "Most VARIANT fields that are stored as columns."),
    declare(
        "variant.shredding.minFieldCardinalityRatio",
        FLOAT,
        "0.1",
        "Share of rows that must have a VARIANT field for it to be stored as a column.",
    ),
    declare("global-index.enabled", BOOL, "true", "Whether scans use indexes that span all files."),
    declare("global-index.external-path", STRING, None, "Where global indexes lie, if not in the table's folder."),
    declare(
        "global-index.row-count-per-shard",
        integer(1, 2**63 - 1),
        "100000",
        "Rows that one shard of a global index covers.",
    ),
    declare("global-index.build.max-shard", POSITIVE, "32", "Shards that a global index is preferably built in."),
    declare("global-index.build.max-parallelism", POSITIVE, "4096", "Most tasks that build a global index."),
    declare("global-index.thread-num", POSITIVE, None, "Threads that read a global index."),
    declare(
        "global-index.column-update-action",
        one_of("THROW_ERROR", "DROP_PARTITION_INDEX"),
        "THROW_ERROR",
        "What an update of a column with a global index does.",
    ),
    declare("materialized-table.definition-query", STRING, None, "Query that fills a materialized table.", REFUSED),
    declare(
        "materialized-table.interval-freshness",
        STRING,
        None,
        "How old the rows of a materialized table may be.",
        REFUSED,
    ),
    declare(
        "materialized-table.interval-freshness.time-unit",
        one_of("SECOND", "MINUTE", "HOUR", "DAY"),
        None,
        "Unit of the age that rows of a materialized table may reach.",
        REFUSED,
    ),
    declare(
        "materialized-table.logical-refresh-mode",
        _REFRESH_MODE,
        None,
        "How a materialized table was asked to be refreshed.",
        REFUSED,
    ),
    declare("materialized-table.refresh-mode", _REFRESH_MODE, None, "How a materialized table is refreshed.", REFUSED),
    declare(
        "materialized-table.refresh-status",
        one_of("INITIALIZING", "ACTIVATED", "SUSPENDED"),
        None,
        "Whether a materialized table is being refreshed.",
        REFUSED,
    ),
    declare(
        "materialized-table.refresh-handler-description",
        STRING,
        None,
        "What refreshes a materialized table, in words.",
        REFUSED,
    ),
    declare(
        "materialized-table.refresh-handler-bytes",
        STRING,
        None,
        "What refreshes a materialized table, in the engine's own encoding.",
        REFUSED,
    ),
    declare("format-table.implementation", one_of("paimon", "engine"), "paimon", "Who reads and writes format tables."),
    declare("format-table.file.compression", STRING, None, "Compression of the files of format tables."),
    declare(
        "format-table.partition-path-only-value",
        BOOL,
        "false",
        "Whether folders of format tables are named by the value alone.",
    ),
    declare("format-table.commit-hive-sync-url", STRING, None, "Hive metastore that format tables report to."),
)
