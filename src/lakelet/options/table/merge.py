"""Options of the merge in primary-key tables: merge engine, deletes, sequence fields, changelogs.

Ignoring one of these gives other rows, so each that Lakelet does not act on is refused.
"""

from typing import Any

from lakelet.options.kinds import BOOL, COLUMNS, DURATION, POSITIVE, STRING, one_of
from lakelet.options.option import ACTED, REFUSED, Option, declare

IGNORE_DELETE = declare(
    "ignore-delete",
    BOOL,
    "false",
    "Whether delete rows are dropped instead of applied; once on, it stays on.",
    ACTED,
    older_names=("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
)
IGNORE_UPDATE_BEFORE = declare(
    "ignore-update-before",
    BOOL,
    "false",
    "Whether rows that carry the state before an update are dropped; once on, it stays on.",
    ACTED,
)

FIRST_ROW = "first-row"
FOLDING = ("partial-update", "aggregation")
"""The merge engines that compute a row from all rows of its key."""
MERGE_ENGINE = declare(
    "merge-engine",
    one_of("deduplicate", *FOLDING, FIRST_ROW),
    "deduplicate",
    "How rows of one primary key become one row.",
    ACTED,
    mutable=False,
)
SEQUENCE_FIELD = declare(
    "sequence.field",
    COLUMNS,
    None,
    "Columns that tell which of two rows of a key is newer, before the order of arrival.",
    ACTED,
    mutable=False,
)
SEQUENCE_FIELD_SORT_ORDER = declare(
    "sequence.field.sort-order",
    one_of("ascending", "descending"),
    "ascending",
    "Whether the greater or the smaller sequence is the newer row.",
    ACTED,
    mutable=False,
)
ROWKIND_FIELD = declare(
    "rowkind.field",
    STRING,
    None,
    "Column whose text says whether a row inserts, updates or deletes.",
    ACTED,
    mutable=False,
)
AGGREGATION_REMOVE_RECORD_ON_DELETE = declare(
    "aggregation.remove-record-on-delete",
    BOOL,
    "false",
    "Whether a delete removes the aggregated row as a whole.",
    ACTED,
    mutable=False,
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE = declare(
    "partial-update.remove-record-on-delete",
    BOOL,
    "false",
    "Whether a delete removes the partially updated row as a whole.",
    ACTED,
    mutable=False,
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP = declare(
    "partial-update.remove-record-on-sequence-group",
    COLUMNS,
    None,
    "Sequence columns of the groups in which a delete removes the row as a whole.",
    ACTED,
    mutable=False,
)
DEFAULT_AGGREGATE_FUNCTION = declare(
    "fields.default-aggregate-function",
    STRING,
    None,
    "Aggregate function of the columns that name none.",
    ACTED,
    mutable=False,
)
AGGREGATE_FUNCTION = declare(
    "fields.<column>.aggregate-function",
    STRING,
    None,
    "How the values of one column are combined.",
    ACTED,
    mutable=False,
)
IGNORE_RETRACT = declare(
    "fields.<column>.ignore-retract",
    BOOL,
    "false",
    "Whether retractions leave one column unchanged.",
    ACTED,
    mutable=False,
)
SEQUENCE_GROUP = declare(
    "fields.<column>.sequence-group",
    COLUMNS,
    None,
    "Columns that are updated together when the sequence columns in the name, separated by commas, do not shrink.",
    ACTED,
    mutable=False,
)
NESTED_KEY = declare(
    "fields.<column>.nested-key",
    COLUMNS,
    None,
    "Key of the rows in a column that is aggregated with nested_update or nested_partial_update.",
    ACTED,
    mutable=False,
)
COUNT_LIMIT = declare(
    "fields.<column>.count-limit",
    POSITIVE,
    None,
    "Number of rows from which nested_update adds no more.",
    ACTED,
    mutable=False,
)
DISTINCT = declare(
    "fields.<column>.distinct",
    BOOL,
    "false",
    "Whether collect and listagg keep equal values once.",
    ACTED,
    mutable=False,
)
LIST_AGG_DELIMITER = declare(
    "fields.<column>.list-agg-delimiter",
    STRING,
    ",",
    "Text between the values that listagg joins.",
    ACTED,
    mutable=False,
)
TIME_FIELD = declare(
    "fields.<column>.ts-field",
    STRING,
    None,
    "Field of the rows in a map by which merge_map_with_keytime knows the newest; by default the last.",
    ACTED,
    mutable=False,
)
FUNCTION_OPTIONS: tuple[Option[Any], ...] = (
    AGGREGATE_FUNCTION,
    IGNORE_RETRACT,
    NESTED_KEY,
    COUNT_LIMIT,
    DISTINCT,
    LIST_AGG_DELIMITER,
    TIME_FIELD,
)
"""The families of options that say how the values of one column merge."""
CHANGELOG_PRODUCER = declare(
    "changelog-producer",
    one_of("none", "input", "full-compaction", "lookup"),
    "none",
    "How the changelog that streaming readers follow is made.",
    ACTED,
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE = declare(
    "changelog-producer.row-deduplicate",
    BOOL,
    "false",
    "Whether updates that change nothing are left out of the changelog that compaction makes.",
    ACTED,
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS = declare(
    "changelog-producer.row-deduplicate-ignore-fields",
    COLUMNS,
    None,
    "Columns that the changelog ignores when it checks whether an update changed anything.",
    ACTED,
)
RECORD_LEVEL_EXPIRE_TIME = declare(
    "record-level.expire-time",
    DURATION,
    None,
    "Age at which compaction drops single rows of a primary-key table; until then they are read as before.",
    ACTED,
)
RECORD_LEVEL_TIME_FIELD = declare(
    "record-level.time-field",
    STRING,
    None,
    "Column that tells the age of a row: INT in seconds, BIGINT in seconds or milliseconds, or TIMESTAMP. NULL never expires.",
    ACTED,
)
MERGING_OPTIONS: tuple[Option[Any], ...] = (
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    MERGE_ENGINE,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
    ROWKIND_FIELD,
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    DEFAULT_AGGREGATE_FUNCTION,
    AGGREGATE_FUNCTION,
    IGNORE_RETRACT,
    SEQUENCE_GROUP,
    NESTED_KEY,
    COUNT_LIMIT,
    DISTINCT,
    LIST_AGG_DELIMITER,
    TIME_FIELD,
    declare(
        "fields.<column>.nested-key-null-strategy",
        STRING,
        None,
        "What happens to nested rows whose key is NULL.",
        REFUSED,
    ),
    declare(
        "fields.<column>.nested-sequence-field", COLUMNS, None, "Which of two nested rows of a key is newer.", REFUSED
    ),
    declare(
        "fields.<column>.default-value", STRING, None, "Value that earlier versions read in place of NULL.", REFUSED
    ),
    CHANGELOG_PRODUCER,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
    declare(
        "delete.force-produce-changelog", BOOL, "false", "Whether SQL deletes always write changelog rows.", REFUSED
    ),
    RECORD_LEVEL_EXPIRE_TIME,
    RECORD_LEVEL_TIME_FIELD,
    declare(
        "pk-clustering-override",
        BOOL,
        "false",
        "Whether files of a primary-key table are sorted by clustering columns instead of the key.",
        REFUSED,
        mutable=False,
    ),
    declare(
        "upsert-key",
        COLUMNS,
        None,
        "Columns by which an insert into a table without primary key replaces earlier rows.",
        REFUSED,
        mutable=False,
    ),
)
