"""Parse the options of `spark.read.format("lakelet")` and `df.write.format("lakelet")`.

    warehouse                            the folder or bucket, required
    table, branch, version …             as `given_options` has them
    commit-user, commit-identifier       idempotency key: a write repeated under both is applied once
    commit.user, resume                  of a stream's writes: the user whose batches they are (`stream/write/stream_writer`)
    read.stream.…, read.changelog …      how a stream reads (`table/follow/settings`)

Everything else is an option of the connection (`s3.endpoint`) or of the table, for this job alone; unknown names are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.options import STREAMED_TABLE_OPTIONS, stream_option
from lakelet.spark.opened_table import OpenedTable, open_table
from lakelet.spark.source.given_options import CHECKPOINT, STREAM_WRITE, GivenOptions, lower_case
from lakelet.table.follow.settings import is_stream_option

_WRITE = ("commit-user", "commit-identifier", *STREAM_WRITE)
_STREAMED = frozenset(option.name for option in STREAMED_TABLE_OPTIONS)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one use of the source, checked; `given` are its own, `others` those of connection and table."""

    warehouse: str
    table: str
    given: GivenOptions
    # What a stream out of the table is given.
    stream: Mapping[str, str]
    # Credentials may be among them.
    others: Mapping[str, str] = field(repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> SourceOptions:
        """Parses the options that Spark passes; InvalidError for missing ones."""
        own = GivenOptions.of(given, writes=_WRITE)
        warehouse = (own.get("warehouse") or "").strip()
        if not warehouse:
            raise InvalidError(
                "the lakelet source needs the option 'warehouse', the folder or bucket of the lake; a table made by "
                "CREATE TABLE … USING lakelet passes no options: use CREATE TEMPORARY VIEW … USING lakelet OPTIONS (…)"
            )
        if not own.tables:
            raise InvalidError("the lakelet source needs the option 'table', or load(\"database.table\")")
        if len(own.tables) > 1:
            raise InvalidError(f"the lakelet source reads one table; found {' and '.join(own.tables)}")
        # Spark adds the checkpoint's place to the options of every stream.
        known = {CHECKPOINT, *own.values}
        others = {name: text for name, text in lower_case(given).items() if name not in known}
        stream = {name: text for name, text in others.items() if is_stream_option(name)}
        return SourceOptions(warehouse, own.tables[0], own, stream, others)

    def open(self) -> OpenedTable:
        """The table, on the branch."""
        return open_table(self.warehouse, self.table, self._batch_options(), self.given.get("branch"))

    @property
    def streams(self) -> bool:
        """Whether options are given that mean nothing but to a stream."""
        return any(stream_option(name) is not None or name in _STREAMED for name in self.stream)

    @property
    def begins(self) -> bool:
        """Whether options are given that say where a stream begins, or which version a batch reads."""
        return bool(self.stream)

    def open_stream(self) -> OpenedTable:
        """The table, on the branch, for a stream, which has options of its own."""
        others = {name: text for name, text in self.others.items() if name not in self.stream}
        return open_table(self.warehouse, self.table, others, self.given.get("branch"))

    def _batch_options(self) -> Mapping[str, str]:
        """The options of connection and table; InvalidError for those that mean nothing but to a stream."""
        wrong = sorted(option.name for name in self.stream if (option := stream_option(name)) is not None)
        if wrong:
            raise InvalidError(f"option {wrong[0]!r} is for streams (spark.readStream) and means nothing to a batch")
        return self.others

    @property
    def commit_identity(self) -> tuple[str | None, int | None]:
        """The user and identifier of the commit."""
        number = self.given.get("commit-identifier")
        if number is not None and not number.isdigit():
            raise InvalidError(f"option 'commit-identifier': expected a whole number from 0 on, found {number!r}")
        return self.given.get("commit-user"), None if number is None else int(number)
