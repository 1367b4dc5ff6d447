"""Options of retention: how long snapshots, changelogs and partitions are kept."""

from typing import Any

from lakelet.options.kinds import BOOL, DURATION, POSITIVE, STRING, one_of
from lakelet.options.option import ACTED, Option, declare

SNAPSHOT_TIME_RETAINED = declare(
    "snapshot.time-retained", DURATION, "PT1H", "Age up to which expiry keeps snapshots.", ACTED
)
SNAPSHOT_NUM_RETAINED_MIN = declare(
    "snapshot.num-retained.min", POSITIVE, "10", "Snapshots that expiry keeps whatever their age.", ACTED
)
SNAPSHOT_NUM_RETAINED_MAX = declare(
    "snapshot.num-retained.max",
    POSITIVE,
    "2147483647",
    "Most snapshots that expiry keeps whatever their age.",
    ACTED,
)
SNAPSHOT_EXPIRE_LIMIT = declare(
    "snapshot.expire.limit", POSITIVE, "50", "Most snapshots that the expiry after a write removes.", ACTED
)
SNAPSHOT_EXPIRE_EXECUTION_MODE = declare(
    "snapshot.expire.execution-mode",
    one_of("sync", "async"),
    "sync",
    "Whether a write waits for the expiry it starts.",
    ACTED,
)
SNAPSHOT_CLEAN_EMPTY_DIRECTORIES = declare(
    "snapshot.clean-empty-directories",
    BOOL,
    "false",
    "Whether expiry removes folders it leaves without files.",
    ACTED,
    older_names=("snapshot.expire.clean-empty-directories",),
)
CHANGELOG_TIME_RETAINED = declare(
    "changelog.time-retained",
    DURATION,
    None,
    "Age up to which expiry keeps changelogs; unset: as snapshots.",
    ACTED,
)
CHANGELOG_NUM_RETAINED_MIN = declare(
    "changelog.num-retained.min",
    POSITIVE,
    None,
    "Changelogs that expiry keeps whatever their age; unset: as snapshots.",
    ACTED,
)
CHANGELOG_NUM_RETAINED_MAX = declare(
    "changelog.num-retained.max",
    POSITIVE,
    None,
    "Most changelogs that expiry keeps whatever their age; unset: as snapshots.",
    ACTED,
)
CONSUMER_CHANGELOG_ONLY = declare(
    "consumer.changelog-only", BOOL, "false", "Whether consumers hold back only changelogs from expiry.", ACTED
)
CONSUMER_EXPIRATION_TIME = declare(
    "consumer.expiration-time", DURATION, None, "Age at which a consumer that nobody renews is dropped.", ACTED
)
PARTITION_EXPIRATION_TIME = declare(
    "partition.expiration-time",
    DURATION,
    None,
    "Age at which a partition is dropped, by the next write after the check interval or on request.",
    ACTED,
)
PARTITION_EXPIRATION_CHECK_INTERVAL = declare(
    "partition.expiration-check-interval",
    DURATION,
    "PT1H",
    "Pause between two looks of a writer for expired partitions.",
    ACTED,
)
PARTITION_EXPIRATION_STRATEGY = declare(
    "partition.expiration-strategy",
    STRING,
    "values-time",
    "Whether a partition's age comes from its values (values-time) or from its newest file (update-time).",
    ACTED,
)
PARTITION_EXPIRATION_MAX_NUM = declare(
    "partition.expiration-max-num", POSITIVE, "100", "Most partitions that one expiry drops.", ACTED
)
PARTITION_EXPIRATION_BATCH_SIZE = declare(
    "partition.expiration-batch-size", POSITIVE, None, "Partitions that are dropped in one commit.", ACTED
)
PARTITION_TIMESTAMP_FORMATTER = declare(
    "partition.timestamp-formatter", STRING, None, "Pattern by which partition text is read as a time.", ACTED
)
PARTITION_TIMESTAMP_PATTERN = declare(
    "partition.timestamp-pattern",
    STRING,
    None,
    "How a time is built from partition columns: $dt $hour:00:00; unset: the first one.",
    ACTED,
)
RETENTION_OPTIONS: tuple[Option[Any], ...] = (
    SNAPSHOT_TIME_RETAINED,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_EXPIRE_LIMIT,
    SNAPSHOT_EXPIRE_EXECUTION_MODE,
    SNAPSHOT_CLEAN_EMPTY_DIRECTORIES,
    CHANGELOG_TIME_RETAINED,
    CHANGELOG_NUM_RETAINED_MIN,
    CHANGELOG_NUM_RETAINED_MAX,
    CONSUMER_CHANGELOG_ONLY,
    CONSUMER_EXPIRATION_TIME,
    PARTITION_EXPIRATION_TIME,
    PARTITION_EXPIRATION_CHECK_INTERVAL,
    PARTITION_EXPIRATION_STRATEGY,
    PARTITION_EXPIRATION_MAX_NUM,
    PARTITION_EXPIRATION_BATCH_SIZE,
    PARTITION_TIMESTAMP_FORMATTER,
    PARTITION_TIMESTAMP_PATTERN,
    declare(
        "end-input.check-partition-expire", BOOL, "false", "Whether expired partitions are dropped when the input ends."
    ),
)
