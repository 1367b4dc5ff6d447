"""Options of a table's layout: keys, partitions, buckets, paths, deletion vectors.

Most of them are immutable once there is data, for the paths of existing files are computed from them.
"""

from typing import Any

from lakelet.options.kinds import (
    BOOL,
    COLUMNS,
    DURATION,
    FILE_NAME_PART,
    POSITIVE,
    RELATIVE_PATH,
    SIZE,
    STRING,
    integer,
    one_of,
)
from lakelet.options.option import ACTED, REFUSED, Option, declare

TYPE = declare(
    "type",
    one_of("table", "format-table", "materialized-table", "object-table", "lance-table", "iceberg-table"),
    "table",
    "What kind of table this is; Lakelet takes only plain tables.",
    ACTED,
    mutable=False,
    supported=("table",),
)
PATH = declare(
    "path",
    STRING,
    None,
    "Where the table's folder is, as other engines store it; refused for a new table, whose folder follows from its name.",
    ACTED,
    mutable=False,
)
BRANCH = declare("branch", FILE_NAME_PART, "main", "Branch that is read and written.", REFUSED)
PRIMARY_KEY = declare(
    "primary-key", COLUMNS, None, "Primary key columns, for those who cannot name them otherwise.", ACTED, mutable=False
)
PARTITION = declare(
    "partition", COLUMNS, None, "Partition columns, for those who cannot name them otherwise.", ACTED, mutable=False
)
BUCKET = declare(
    "bucket",
    integer(-2, but_not=(0,)),
    "-1",
    "Buckets per partition: a fixed number, -1 for none (append tables) or dynamic ones (primary keys), "
    "-2 to postpone the choice; changing it means rewriting the table.",
    ACTED,
    mutable=False,
)
BUCKET_KEY = declare(
    "bucket-key",
    COLUMNS,
    None,
    "Columns whose hash chooses the bucket; unset means the primary key, and append tables with buckets need it.",
    ACTED,
    mutable=False,
)
POSTPONE_DEFAULT_BUCKET_NUM = declare(
    "postpone.default-bucket-num",
    POSITIVE,
    "1",
    "Buckets that the first compaction gives a postponed partition.",
    ACTED,
)
PARTITION_DEFAULT_NAME = declare(
    "partition.default-name",
    FILE_NAME_PART,
    "__DEFAULT_PARTITION__",
    "Folder name of a NULL or blank partition value.",
    ACTED,
    mutable=False,
)
PARTITION_LEGACY_NAME = declare(
    "partition.legacy-name",
    BOOL,
    "true",
    "Whether folder names show dates and times as their internal numbers (true) or as readable text (false).",
    ACTED,
    mutable=False,
)
# Folders of a table's metadata, where data files must not be.
TABLE_FOLDERS = frozenset(
    (
        "branch",
        "callback",
        "changelog",
        "commit-users",
        "consumer",
        "expiring",
        "index",
        "manifest",
        "metadata",
        "schema",
        "snapshot",
        "statistics",
        "tag",
    )
)
DATA_FILE_PATH_DIRECTORY = declare(
    "data-file.path-directory",
    RELATIVE_PATH,
    None,
    "Folder below the table's that data files go to; unset means the table's own. No name of it begins with a dot.",
    ACTED,
    mutable=False,
)
DELETION_VECTORS_ENABLED = declare(
    "deletion-vectors.enabled",
    BOOL,
    "false",
    "Whether deleted rows are marked in bitmaps beside the data files instead of being merged away at each read; "
    "changeable only where deletion-vectors.modifiable says so.",
    ACTED,
    mutable=False,
)
DELETION_VECTORS_BITMAP64 = declare(
    "deletion-vectors.bitmap64",
    BOOL,
    "false",
    "Whether new deletion bitmaps have 64-bit positions, the form Iceberg shares; either form is read.",
    ACTED,
)
DELETION_VECTOR_INDEX_FILE_TARGET_SIZE = declare(
    "deletion-vector.index-file.target-size",
    SIZE,
    "2 mb",
    "Size at which a file of deletion bitmaps is closed, in tables without buckets; a bucket has one file.",
    ACTED,
)
DELETION_VECTORS_MODIFIABLE = declare(
    "deletion-vectors.modifiable",
    BOOL,
    "false",
    "Whether deletion-vectors.enabled may be switched on a live table.",
    ACTED,
)
ADD_COLUMN_BEFORE_PARTITION = declare(
    "add-column-before-partition",
    BOOL,
    "false",
    "Whether a column added without a position goes before the partition columns rather than to the end.",
    ACTED,
)
ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED = declare(
    "alter-column-null-to-not-null.disabled",
    BOOL,
    "true",
    "Whether other engines refuse to make a nullable column NOT NULL; Lakelet always does.",
)
DISABLE_EXPLICIT_TYPE_CASTING = declare(
    "disable-explicit-type-casting",
    BOOL,
    "false",
    "Whether other engines refuse to change a column's type by a cast that can lose values; Lakelet only ever widens.",
)

DYNAMIC_BUCKET_TARGET_ROW_NUM = declare(
    "dynamic-bucket.target-row-num",
    integer(1, 2**63 - 1),
    "2000000",
    "Rows after which a dynamic bucket is full and the next one is opened.",
    ACTED,
)
DYNAMIC_BUCKET_INITIAL_BUCKETS = declare(
    "dynamic-bucket.initial-buckets",
    POSITIVE,
    None,
    "Buckets that each assigner of a dynamic-bucket table opens first.",
    ACTED,
    mutable=False,
)
DYNAMIC_BUCKET_MAX_BUCKETS = declare(
    "dynamic-bucket.max-buckets",
    integer(-1, but_not=(0,)),
    "-1",
    "Most dynamic buckets in one partition; -1 sets no bound.",
    ACTED,
)
DYNAMIC_BUCKET_ASSIGNER_PARALLELISM = declare(
    "dynamic-bucket.assigner-parallelism",
    POSITIVE,
    None,
    "Tasks that assign rows to dynamic buckets in an engine.",
    ACTED,
)
NUM_LEVELS = declare(
    "num-levels",
    integer(2),
    None,
    "Levels of the LSM tree; unset means one more than the sorted runs that trigger compaction.",
    ACTED,
)
LAYOUT_OPTIONS: tuple[Option[Any], ...] = (
    TYPE,
    PATH,
    BRANCH,
    PRIMARY_KEY,
    PARTITION,
    BUCKET,
    BUCKET_KEY,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    DATA_FILE_PATH_DIRECTORY,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MODIFIABLE,
    ADD_COLUMN_BEFORE_PARTITION,
    ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED,
    DISABLE_EXPLICIT_TYPE_CASTING,
    declare("auto-create", BOOL, "false", "Whether an engine makes the table's folder when it first uses the table."),
    declare(
        "bucket-function.type",
        one_of("default", "mod", "hive"),
        "default",
        "How a bucket key becomes a bucket number.",
        REFUSED,
        mutable=False,
    ),
    declare("bucket-append-ordered", BOOL, "true", "Whether rows within a bucket of an append table keep their order."),
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_ASSIGNER_PARALLELISM,
    declare(
        "cross-partition-upsert.bootstrap-parallelism",
        POSITIVE,
        "10",
        "Threads of one task that load the key index of a table whose key lacks partition columns.",
    ),
    declare(
        "cross-partition-upsert.index-ttl",
        DURATION,
        None,
        "Age at which an engine may forget a key's partition to save index space; Lakelet never forgets one.",
    ),
    declare(
        "postpone.batch-write-fixed-bucket",
        BOOL,
        "true",
        "Whether other engines' batch writes to a postponed-bucket table go to real buckets and are readable at once; Lakelet's "
        "rows always wait for compaction.",
    ),
    declare(
        "postpone.batch-write-fixed-bucket.max-parallelism",
        POSITIVE,
        "2048",
        "Most real buckets that a batch write chooses for a partition of a postponed-bucket table.",
    ),
    POSTPONE_DEFAULT_BUCKET_NUM,
    declare(
        "data-file.external-paths",
        STRING,
        None,
        "Locations outside the table's folder that take its data files.",
        REFUSED,
    ),
    declare(
        "data-file.external-paths.strategy",
        one_of("none", "specific-fs", "round-robin", "entropy-inject", "weight-robin"),
        "none",
        "How one of several external locations is chosen for a new file.",
        REFUSED,
    ),
    declare("data-file.external-paths.specific-fs", STRING, None, "URL scheme of the external location to prefer."),
    declare("data-file.external-paths.weights", STRING, None, "Share of new files for each external location."),
    declare(
        "index-file-in-data-file-dir",
        BOOL,
        "false",
        "Whether index files lie in the bucket folders beside the data they describe.",
        REFUSED,
        mutable=False,
    ),
    DELETION_VECTOR_INDEX_FILE_TARGET_SIZE,
    DELETION_VECTORS_BITMAP64,
    NUM_LEVELS,
)
