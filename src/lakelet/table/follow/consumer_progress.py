"""The progress of a stream as a consumer of its table, which holds back the snapshots that the stream still needs.

    everything of snapshot 6 is read       {"nextSnapshot": 7, "baseSnapshot": 6, "offset": {…}}
    the rows of snapshot 6 are being read  {"nextSnapshot": 6, "offset": {…}}

A new stream of the same name begins where the last one has got to. A consumer that was set by hand, or by another engine, has no
offset: its stream begins with the changes of the snapshot it names.
"""

from __future__ import annotations

from lakelet.commit.versions.consumers import delete_consumers, set_consumer, stored_progress
from lakelet.storage.home import TableHome
from lakelet.table.follow.history import TableHistory
from lakelet.table.follow.offset import StreamOffset
from lakelet.table.follow.settings import ConsumerSettings

_RENEWALS = 4
_LONGEST_MS = 60_000


class ConsumerProgress:
    """Stores how far a stream has got, under its consumer's name."""

    def __init__(self, home: TableHome, settings: ConsumerSettings) -> None:
        self._home = home
        self._settings = settings
        self._stored: StreamOffset | None = None
        self._stored_ms = 0

    def resumed(self, history: TableHistory) -> StreamOffset | None:
        """The position that is stored; None where there is none, or it is to be ignored."""
        found = None if self._settings.ignores_progress else stored_progress(self._home, self._settings.name)
        if found is None:
            return None
        if found.offset is not None:
            offset = StreamOffset.decode(found.offset)
            history.check_table(offset)
            history.snapshot_of(offset)
            return offset
        return history.whole(history.existing(found.next - 1) if found.next > 1 else None)

    def store(self, offset: StreamOffset) -> None:
        """Store a position: everything before it is processed. One that has not changed is only renewed, now and then."""
        now = self._home.clock.now_ms()
        if offset == self._stored and now - self._stored_ms < self._renewal_ms():
            return
        within_initial = offset.initial and not offset.is_whole
        set_consumer(
            self._home,
            self._settings.name,
            offset.base + 1,
            base=None if within_initial or not offset.base else offset.base,
            offset=offset.encode(),
        )
        self._stored, self._stored_ms = offset, now

    def release(self) -> None:
        """Delete the consumer, and so let go the snapshots that it held."""
        delete_consumers(self._home, [self._settings.name])
        self._stored = None

    def _renewal_ms(self) -> int:
        age = self._settings.expires_after_ms
        return _LONGEST_MS if age is None else min(_LONGEST_MS, age // _RENEWALS)
