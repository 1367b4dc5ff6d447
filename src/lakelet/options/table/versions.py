"""Options of tags, branches and consumers: automatic tags, fallback branches, consumer expiry."""

from typing import Any

from lakelet.options.kinds import BOOL, DURATION, POSITIVE, STRING, one_of
from lakelet.options.option import ACTED, Option, declare

_TAG_MODES = one_of("none", "process-time", "watermark", "batch")

TAG_AUTOMATIC_CREATION = declare(
    "tag.automatic-creation",
    _TAG_MODES,
    "none",
    "What makes tags by itself after a write: the clock or the watermark, one for each period, or every batch write.",
    ACTED,
)
TAG_AUTOMATIC_COMPLETION = declare(
    "tag.automatic-completion", BOOL, "false", "Whether tags of periods that were missed are made later.", ACTED
)
TAG_CREATION_PERIOD = declare(
    "tag.creation-period",
    one_of("daily", "hourly", "two-hours"),
    "daily",
    "Period of an automatic tag.",
    ACTED,
)
TAG_CREATION_PERIOD_DURATION = declare(
    "tag.creation-period-duration",
    DURATION,
    None,
    "Period of any length, in place of tag.creation-period.",
    ACTED,
)
TAG_CREATION_DELAY = declare(
    "tag.creation-delay", DURATION, "PT0S", "How long an automatic tag waits for late rows after its period.", ACTED
)
TAG_PERIOD_FORMATTER = declare(
    "tag.period-formatter",
    one_of("with_dashes", "without_dashes", "without_dashes_and_spaces"),
    "with_dashes",
    "How the period is spelled in an automatic tag's name.",
    ACTED,
)
TAG_BATCH_CUSTOMIZED_NAME = declare(
    "tag.batch.customized-name", STRING, None, "Name of the tag that a batch write creates.", ACTED
)
TAG_NUM_RETAINED_MAX = declare("tag.num-retained-max", POSITIVE, None, "Most automatic tags that are kept.", ACTED)
TAG_DEFAULT_TIME_RETAINED = declare(
    "tag.default-time-retained", DURATION, None, "Age at which a tag expires if it was made without one.", ACTED
)
TAG_TIME_EXPIRE_ENABLED = declare(
    "tag.time-expire-enabled", BOOL, "true", "Whether writers remove tags past their age.", ACTED
)
TAG_CREATE_SUCCESS_FILE = declare(
    "tag.create-success-file", BOOL, "false", "Whether a marker file is left for each new tag.", ACTED
)
SINK_PROCESS_TIME_ZONE = declare(
    "sink.process-time-zone",
    STRING,
    None,
    "Time zone in which automatic tags read the clock; unset means that of the machine.",
    ACTED,
)
SINK_WATERMARK_TIME_ZONE = declare(
    "sink.watermark-time-zone", STRING, "UTC", "Time zone in which automatic tags read watermarks.", ACTED
)
SCAN_FALLBACK_BRANCH = declare(
    "scan.fallback-branch", STRING, None, "Branch that gives the partitions this one lacks.", ACTED
)

VERSION_OPTIONS: tuple[Option[Any], ...] = (
    TAG_AUTOMATIC_CREATION,
    TAG_AUTOMATIC_COMPLETION,
    TAG_CREATION_PERIOD,
    TAG_CREATION_PERIOD_DURATION,
    TAG_CREATION_DELAY,
    TAG_PERIOD_FORMATTER,
    TAG_BATCH_CUSTOMIZED_NAME,
    TAG_NUM_RETAINED_MAX,
    TAG_DEFAULT_TIME_RETAINED,
    TAG_TIME_EXPIRE_ENABLED,
    TAG_CREATE_SUCCESS_FILE,
    SINK_PROCESS_TIME_ZONE,
    SINK_WATERMARK_TIME_ZONE,
    SCAN_FALLBACK_BRANCH,
)
