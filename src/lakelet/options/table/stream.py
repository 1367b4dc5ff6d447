"""Options of streams out of a table: where they begin, what they see, how much a batch reads.

Those that a table may store come first. The others belong to one stream and are never stored; Spark folds their names to lower
case, so that they are found whatever their case.
"""

from collections.abc import Mapping
from typing import Any

from lakelet.options.kinds import BOOL, DURATION, LONG, POSITIVE, POSITIVE_SIZE, STRING, one_of
from lakelet.options.option import ACTED, REFUSED, Option, declare

SCAN_BOUNDED_WATERMARK = declare(
    "scan.bounded.watermark",
    LONG,
    None,
    "Watermark at which a stream ends: before the first snapshot with a later one.",
    ACTED,
)
SCAN_CREATION_TIME_MILLIS = declare(
    "scan.creation-time-millis",
    LONG,
    None,
    "Time from which a stream reads: the changes since, or the files created since where no snapshot is as old.",
    REFUSED,
)
SCAN_FILE_CREATION_TIME_MILLIS = declare(
    "scan.file-creation-time-millis",
    LONG,
    None,
    "Creation time before which a stream of an append table leaves files out when it begins.",
    REFUSED,
)
STREAMING_READ_OVERWRITE = declare(
    "streaming-read-overwrite",
    BOOL,
    "false",
    "Whether a stream sees the changes of overwrites, and of deletes from append tables. Where it is unset, a stream with row "
    "kinds sees them, and one without stops at them.",
    ACTED,
)
STREAMING_READ_APPEND_OVERWRITE = declare(
    "streaming-read-append-overwrite",
    BOOL,
    "false",
    "Whether a stream of an append table sees the rows that overwrites add, without those that they remove.",
    ACTED,
)
STREAMING_READ_SNAPSHOT_DELAY = declare(
    "streaming.read.snapshot.delay", DURATION, None, "How long a stream holds back a new snapshot.", ACTED
)
CONTINUOUS_DISCOVERY_INTERVAL = declare(
    "continuous.discovery-interval",
    DURATION,
    "PT10S",
    "Pause between two looks of `table.follow` for snapshots; Spark's trigger decides for its streams.",
    ACTED,
)
CONSUMER_ID = declare(
    "consumer-id",
    STRING,
    None,
    "Name under which a stream stores how far it has read, and so holds back the snapshots it needs.",
    ACTED,
)
CONSUMER_MODE = declare(
    "consumer.mode",
    one_of("exactly-once", "at-least-once"),
    "exactly-once",
    "Whether a named stream stores its progress when a batch is confirmed, or as soon as the next one is looked for.",
    ACTED,
)
CONSUMER_IGNORE_PROGRESS = declare(
    "consumer.ignore-progress",
    BOOL,
    "false",
    "Whether a new stream begins where its scan mode says although its consumer has stored progress.",
    ACTED,
)
INCREMENTAL_BETWEEN = declare(
    "incremental-between", STRING, None, "Two snapshots or tags between which a stream reads changes.", REFUSED
)
INCREMENTAL_BETWEEN_TIMESTAMP = declare(
    "incremental-between-timestamp", STRING, None, "Two times between which a stream reads changes.", REFUSED
)

STREAMED_TABLE_OPTIONS: tuple[Option[Any], ...] = (
    SCAN_BOUNDED_WATERMARK,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    STREAMING_READ_OVERWRITE,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_SNAPSHOT_DELAY,
    CONTINUOUS_DISCOVERY_INTERVAL,
    CONSUMER_ID,
    CONSUMER_MODE,
    CONSUMER_IGNORE_PROGRESS,
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
)

READ_CHANGELOG = declare(
    "read.changelog", BOOL, "false", "Whether rows come with their kind in a first column, `_row_kind`.", ACTED
)
MAX_FILES_PER_TRIGGER = declare(
    "read.stream.maxFilesPerTrigger", POSITIVE, None, "Most files that one batch reads.", ACTED
)
MAX_BYTES_PER_TRIGGER = declare(
    "read.stream.maxBytesPerTrigger", POSITIVE_SIZE, None, "Most bytes of files that one batch reads.", ACTED
)
MAX_ROWS_PER_TRIGGER = declare(
    "read.stream.maxRowsPerTrigger", POSITIVE, None, "Most rows of files that one batch reads.", ACTED
)
MIN_ROWS_PER_TRIGGER = declare(
    "read.stream.minRowsPerTrigger", POSITIVE, None, "Rows below which a batch waits for more.", ACTED
)
MAX_TRIGGER_DELAY_MS = declare(
    "read.stream.maxTriggerDelayMs", POSITIVE, None, "Longest time that a batch waits for more rows.", ACTED
)
ON_EXPIRED = declare(
    "on-expired",
    one_of("error", "restart"),
    "error",
    "What a stream does whose position has expired: stop, or begin anew as its scan mode says.",
    ACTED,
)
MERGE_SCHEMA = declare(
    "merge-schema",
    BOOL,
    "false",
    "Whether a stream goes on past added columns, which it leaves out until it is restarted, rather than stop.",
    ACTED,
)

STREAM_OPTIONS: tuple[Option[Any], ...] = (
    READ_CHANGELOG,
    MAX_FILES_PER_TRIGGER,
    MAX_BYTES_PER_TRIGGER,
    MAX_ROWS_PER_TRIGGER,
    MIN_ROWS_PER_TRIGGER,
    MAX_TRIGGER_DELAY_MS,
    ON_EXPIRED,
    MERGE_SCHEMA,
)
_FOLDED: Mapping[str, Option[Any]] = {option.name.lower(): option for option in STREAM_OPTIONS}


def stream_option(key: str) -> Option[Any] | None:
    """The option of one stream that a key names, in whatever case."""
    return _FOLDED.get(key.lower())
