"""Follow a table: the changes of its snapshots, batch by batch, as they are committed.

    for batch in orders.follow(start=3):
        apply(batch.to_arrow())            # `_row_kind` and the columns
        save(batch.end)                    # where to go on: orders.follow(offset=…)

A batch goes from one position to another and can be read any number of times, as long as its snapshots exist. With a consumer the
position is stored once the next batch is asked for: what was taken before is processed then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.storage.home import TableHome
from lakelet.table.follow.change_source import ChangeSource, newest_schema
from lakelet.table.follow.consumer_progress import ConsumerProgress
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import StreamSettings, check_stream_options
from lakelet.table.read.change_reader import ChangeReader
from lakelet.table.read.change_unit import ChangeUnit, total_cost
from lakelet.table.read.changes import changes_schema, with_kinds
from lakelet.table.read.named_version import VersionLike, change_bound
from lakelet.table.usable import check_usable

Cancel = Callable[[], bool]


@dataclass(frozen=True)
class ChangeBatch:
    """The changes between two positions of a stream; `start` and `end` are JSON values."""

    start: Mapping[str, Any]
    end: Mapping[str, Any]
    schema: TableSchema
    changelog: bool
    units: tuple[ChangeUnit, ...]
    _home: TableHome

    @property
    def snapshot(self) -> int:
        """The snapshot that the batch leads to, or of which it is a part."""
        return int(self.end["snapshot"])

    @property
    def is_initial(self) -> bool:
        """Whether these are rows of the version with which the stream began."""
        return bool(self.end["initial"])

    @property
    def file_bytes(self) -> int:
        """Bytes of the files that are read for it."""
        return total_cost(self.units).size

    @property
    def arrow_schema(self) -> pa.Schema:
        """`_row_kind`, where the stream has it, and the columns."""
        found = changes_schema(self.schema)
        return found if self.changelog else pa.schema(list(found)[1:])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes, in the order of the snapshots; without row kinds the inserted and updated rows alone."""
        for kinds, rows in ChangeReader(self._home, self.schema).read(self.units):
            if self.changelog:
                yield with_kinds(kinds, rows)
                continue
            kept = rows.filter(upserts(kinds))
            if kept.num_rows:
                yield kept

    def to_arrow(self) -> pa.Table:
        """The changes as one table."""
        return pa.Table.from_batches(self.to_batches(), self.arrow_schema)


class ChangeStream:
    """An iterator over the batches of a table's changes; it waits for new snapshots unless it has an end."""

    def __init__(
        self, home: TableHome, settings: StreamSettings, *, offset: StreamOffset | None, cancel: Cancel | None = None
    ) -> None:
        self._home = home
        self._settings = settings
        self._schema = newest_schema(home)
        check_usable(self._schema)
        self._source = ChangeSource(home, self._schema, settings)
        self._progress = None if settings.consumer is None else ConsumerProgress(home, settings.consumer)
        self._cancel = cancel
        self._position = self._begin(offset)
        self._moved_ms = home.clock.now_ms()

    @property
    def offset(self) -> dict[str, Any]:
        """The position after the last batch that was given, as JSON values."""
        return self._position.encode()

    @property
    def behind(self) -> int:
        """How many snapshots are committed after the position."""
        return max(0, self._source.newest().snapshot - self._position.base)

    def poll(self) -> ChangeBatch | None:
        """The next batch, None where there is nothing to read as yet. Asking for it confirms the one before."""
        if self._progress is not None:
            self._progress.store(self._position)
        waited = self._home.clock.now_ms() - self._moved_ms
        start = self._position
        end = self._source.next(start, self._settings.limits, waited_ms=waited)
        if end == start:
            return None
        units = self._source.units(start, end)
        self._position, self._moved_ms = end, self._home.clock.now_ms()
        return ChangeBatch(start.encode(), end.encode(), self._schema, self._settings.changelog, units, self._home)

    def __iter__(self) -> Iterator[ChangeBatch]:
        while not self._is_cancelled():
            batch = self.poll()
            if batch is not None:
                # Snapshots that change no row advance the position without a batch.
                if batch.units:
                    yield batch
            elif self._source.is_finished(self._position):
                return
            else:
                self._home.clock.sleep(self._settings.interval_seconds)

    def release(self) -> None:
        """Delete the stream's consumer, and so let go the snapshots that it held."""
        if self._progress is not None:
            self._progress.release()

    def _begin(self, offset: StreamOffset | None) -> StreamOffset:
        found = offset if offset is not None else self._source.start(self._progress)
        self._source.history.check_table(found)
        if self._progress is not None:
            self._progress.store(found)
        return found

    def _is_cancelled(self) -> bool:
        return self._cancel is not None and self._cancel()


def follow_table(
    home: TableHome,
    start: VersionLike | None = None,
    end: VersionLike | None = None,
    *,
    offset: Mapping[str, Any] | None = None,
    changelog: bool = True,
    options: Mapping[str, str] | None = None,
    cancel: Cancel | None = None,
) -> ChangeStream:
    """A stream of changes; `start`, `end` and `offset` as `Table.follow` takes them."""
    given = {str(key): str(text) for key, text in (options or {}).items()}
    check_stream_options(given)
    if start is not None and offset is not None:
        raise InvalidError("a stream begins at one point; both start and offset were given")
    if end is not None:
        first = change_bound(home, start) if start is not None else 0
        given |= {"incremental-between": f"{first},{change_bound(home, end)}"}
    elif start is not None:
        number: object = change_bound(home, start)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise InvalidError(f"start {start!r}: expected the id of a snapshot, a tag or a time")
        given |= {"scan.mode": "from-snapshot", "scan.snapshot-id": str(number + 1)}
    schema = newest_schema(home)
    given |= {"read.changelog": str(changelog).lower()}
    settings = StreamSettings.of(schema.options, given, keyed=bool(schema.primary_keys))
    return ChangeStream(home, settings, offset=None if offset is None else StreamOffset.decode(offset), cancel=cancel)


def upserts(kinds: pa.Array) -> pa.Array:
    """A mask of the rows that were inserted or updated."""
    return pc.starts_with(kinds, "+")
