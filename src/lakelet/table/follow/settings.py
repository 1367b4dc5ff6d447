"""The settings of one stream, from the table's options and those given to the stream.

    scan.mode                  begins with                                    needs
    latest-full, full          the rows of the newest version                 (the default)
    latest                     the changes after the newest version
    compacted-full             the rows of the newest compacted version
    from-snapshot              the changes of a snapshot                      scan.snapshot-id
    from-snapshot-full         the rows of a snapshot                         scan.snapshot-id
    from-timestamp             the changes from a time on                     scan.timestamp-millis or scan.timestamp
    from-file-creation-time    the rows of files created from a time on       scan.file-creation-time-millis
    from-creation-timestamp    one of the two above, as far back as is known  scan.creation-time-millis
    incremental                the changes between two versions, and ends     incremental-between(-timestamp)

`default` is the mode of the one option of the last column that is given, else latest-full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.errors import InvalidError
from lakelet.options import (
    CONSUMER_EXPIRATION_TIME,
    CONSUMER_ID,
    CONSUMER_IGNORE_PROGRESS,
    CONSUMER_MODE,
    CONTINUOUS_DISCOVERY_INTERVAL,
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    MAX_BYTES_PER_TRIGGER,
    MAX_FILES_PER_TRIGGER,
    MAX_ROWS_PER_TRIGGER,
    MAX_TRIGGER_DELAY_MS,
    MERGE_SCHEMA,
    MIN_ROWS_PER_TRIGGER,
    ON_EXPIRED,
    READ_CHANGELOG,
    SCAN_BOUNDED_WATERMARK,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    STREAMED_TABLE_OPTIONS,
    STREAMING_READ_APPEND_OVERWRITE,
    STREAMING_READ_OVERWRITE,
    STREAMING_READ_SNAPSHOT_DELAY,
    Option,
    TableOptions,
    stream_option,
)
from lakelet.table.follow.admission import ReadLimits
from lakelet.table.read.change_plan import OverwritePolicy
from lakelet.table.time_arguments import milliseconds

_SCAN = (SCAN_MODE, SCAN_SNAPSHOT_ID, SCAN_TIMESTAMP, SCAN_TIMESTAMP_MILLIS)
_STORED = {option.name: option for option in (*STREAMED_TABLE_OPTIONS, *_SCAN, CONSUMER_EXPIRATION_TIME)}
# The options of which a mode needs one, in the order in which they decide the default mode.
_NEEDS: Mapping[str, tuple[Option[Any], ...]] = {
    "from-snapshot": (SCAN_SNAPSHOT_ID,),
    "from-snapshot-full": (SCAN_SNAPSHOT_ID,),
    "from-timestamp": (SCAN_TIMESTAMP_MILLIS, SCAN_TIMESTAMP),
    "from-file-creation-time": (SCAN_FILE_CREATION_TIME_MILLIS,),
    "from-creation-timestamp": (SCAN_CREATION_TIME_MILLIS,),
    "incremental": (INCREMENTAL_BETWEEN, INCREMENTAL_BETWEEN_TIMESTAMP),
}
_POINTS = tuple(dict.fromkeys(option for options in _NEEDS.values() for option in options))


@dataclass(frozen=True, slots=True)
class ScanStart:
    """Where a stream begins: its mode, and the snapshot, time or two bounds that the mode needs."""

    mode: str = "latest-full"
    snapshot: int | None = None
    time_ms: int | None = None
    bounds: tuple[str, str] | None = None
    bounds_are_times: bool = False


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The name under which a stream stores its progress, and when it does."""

    name: str
    at_least_once: bool = False
    ignores_progress: bool = False
    expires_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Everything that decides what a stream reads, and when."""

    start: ScanStart
    limits: ReadLimits
    changelog: bool
    overwrites: OverwritePolicy
    consumer: ConsumerSettings | None = None
    delay_ms: int = 0
    bounded_watermark: int | None = None
    interval_seconds: float = 10.0
    restarts_expired: bool = False
    merges_schema: bool = False

    @staticmethod
    def of(stored: Mapping[str, str], given: Mapping[str, str], *, keyed: bool) -> StreamSettings:
        """The settings that a table's stored options and those given to the stream make; the given ones go first.

        A table's own scan options say which version a batch reads; a stream that is given any of them follows those alone.
        """
        named = {key: text for key, text in stored.items() if key in _STORED and _STORED[key] not in _SCAN}
        options = TableOptions({**named, **{key: text for key, text in given.items() if key in _STORED}})
        own = {option.name: text for key, text in given.items() if (option := stream_option(key)) is not None}
        stream = TableOptions(own)
        changelog = stream.get(READ_CHANGELOG)
        delay = options.get(STREAMING_READ_SNAPSHOT_DELAY)
        return StreamSettings(
            _start(options),
            _limits(stream),
            changelog,
            _overwrites(options, changelog=changelog, keyed=keyed),
            _consumer(options),
            0 if delay is None else round(delay.total_seconds() * 1000),
            options.get(SCAN_BOUNDED_WATERMARK),
            options.get(CONTINUOUS_DISCOVERY_INTERVAL).total_seconds(),
            stream.get(ON_EXPIRED) == "restart",
            stream.get(MERGE_SCHEMA),
        )


def is_stream_option(key: str) -> bool:
    """Whether a key is one that a stream understands beside those of connection and table."""
    return key in _STORED or stream_option(key) is not None


def check_stream_options(given: Mapping[str, str]) -> None:
    """InvalidError for a key that no stream understands."""
    unknown = sorted(key for key in given if not is_stream_option(key))
    if unknown:
        raise InvalidError(f"unknown option '{unknown[0]}' of a stream (docs/streaming-reads.md lists them)")


def _start(options: TableOptions) -> ScanStart:
    mode = options.get(SCAN_MODE)
    points = [option for option in _POINTS if options.is_set(option)]
    if mode == "default":
        modes = [name for name, needs in _NEEDS.items() if name != "from-snapshot-full" and {*needs} & {*points}]
        if len(modes) > 1:
            raise InvalidError(f"a stream begins at one point; found '{points[0].name}' and '{points[1].name}'")
        mode = modes[0] if modes else "latest-full"
    needs = _NEEDS.get(mode, ())
    wrong = [option.name for option in points if option not in needs]
    if wrong:
        raise InvalidError(f"scan.mode '{mode}' does not take the option '{wrong[0]}'")
    if needs and len(points) != 1:
        names = " or ".join(f"'{option.name}'" for option in needs)
        raise InvalidError(f"scan.mode '{mode}' needs one option {names}, found {len(points)}")
    if not needs:
        return ScanStart("latest-full" if mode == "full" else mode)
    value = options.get(points[0])
    if mode == "incremental":
        return ScanStart(
            mode, bounds=_two(points[0], str(value)), bounds_are_times=points[0] is INCREMENTAL_BETWEEN_TIMESTAMP
        )
    if points[0] is SCAN_SNAPSHOT_ID:
        return ScanStart(mode, snapshot=int(value))
    return ScanStart(mode, time_ms=milliseconds(value))


def _two(option: Option[Any], text: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidError(f"option '{option.name}': expected two versions separated by a comma, found '{text}'")
    return parts[0], parts[1]


def _limits(options: TableOptions) -> ReadLimits:
    least, longest = options.get(MIN_ROWS_PER_TRIGGER), options.get(MAX_TRIGGER_DELAY_MS)
    if (least is None) != (longest is None):
        raise InvalidError(
            f"'{MIN_ROWS_PER_TRIGGER.name}' and '{MAX_TRIGGER_DELAY_MS.name}' go together: rows wait for more, but not for ever"
        )
    most = options.get(MAX_ROWS_PER_TRIGGER)
    if least is not None and most is not None and least > most:
        raise InvalidError(
            f"'{MIN_ROWS_PER_TRIGGER.name}' = {least} is more than '{MAX_ROWS_PER_TRIGGER.name}' = {most}"
        )
    return ReadLimits(options.get(MAX_FILES_PER_TRIGGER), options.get(MAX_BYTES_PER_TRIGGER), most, least, longest)


def _overwrites(options: TableOptions, *, changelog: bool, keyed: bool) -> OverwritePolicy:
    if options.get(STREAMING_READ_OVERWRITE):
        return OverwritePolicy.CHANGES
    if not keyed and options.get(STREAMING_READ_APPEND_OVERWRITE):
        return OverwritePolicy.ADDED
    if any(options.is_set(option) for option in (STREAMING_READ_OVERWRITE, STREAMING_READ_APPEND_OVERWRITE)):
        return OverwritePolicy.NOTHING
    return OverwritePolicy.CHANGES if changelog else OverwritePolicy.REFUSED


def _consumer(options: TableOptions) -> ConsumerSettings | None:
    name = options.get(CONSUMER_ID)
    if name is None:
        return None
    age = options.get(CONSUMER_EXPIRATION_TIME)
    return ConsumerSettings(
        name,
        options.get(CONSUMER_MODE) == "at-least-once",
        options.get(CONSUMER_IGNORE_PROGRESS),
        None if age is None else round(age.total_seconds() * 1000),
    )
