"""The position of a stream in a table's history.

{"snapshot": 7, "index": 3, "units": 12, "initial": false, "mark": "manifest-list-…-1", "table": "…"}

snapshot   the snapshot that is being read, or was the last to be; 0 is before the first
index      how many of its change units are read; null: all of them
units      how many there are, where `index` is a number: a plan with another number is not the one the index counts in
initial    whether its visible rows are read, rather than its changes
since      with `initial`: only files created from this time on are read, in milliseconds
mark       the snapshot's delta manifest list: a rollback reuses ids, but never this name
table      the table's UUID, which a table created again under the name does not have
anew       whether the stream began anew at this position, whatever it had read before
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.errors import InvalidError

_MEMBERS = ("snapshot", "index", "units", "initial", "since", "mark", "table", "anew")


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Everything up to a snapshot is read, and of the snapshot `index` units, or all of them."""

    snapshot: int
    index: int | None = None
    units: int | None = None
    initial: bool = False
    since_ms: int | None = None
    mark: str = ""
    table: str | None = None
    anew: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether everything of the snapshot is read."""
        return self.index is None

    @property
    def base(self) -> int:
        """The last snapshot of which everything is read."""
        return self.snapshot if self.is_whole else self.snapshot - 1

    def encode(self) -> dict[str, Any]:
        """The offset as JSON values."""
        found: dict[str, Any] = {"snapshot": self.snapshot, "index": self.index}
        if self.units is not None:
            found["units"] = self.units
        found |= {"initial": self.initial, "mark": self.mark, "table": self.table}
        if self.since_ms is not None:
            found["since"] = self.since_ms
        if self.anew:
            found["anew"] = True
        return found

    @staticmethod
    def decode(given: object) -> StreamOffset:
        """An offset that was encoded; InvalidError for anything else, such as the offset of another source."""
        if not isinstance(given, Mapping) or not {"snapshot", "index", "mark"} <= given.keys() <= {*_MEMBERS}:
            raise InvalidError(f"offset {given!r}: expected the offset of a stream out of a Lakelet table")
        found = StreamOffset(
            given["snapshot"],
            given["index"],
            given.get("units"),
            given.get("initial", False),
            given.get("since"),
            given["mark"],
            given.get("table"),
            given.get("anew", False),
        )
        numbers = (found.snapshot, found.index, found.units, found.since_ms)
        if not all(number is None or (type(number) is int and number >= 0) for number in numbers):
            raise InvalidError(f"offset {given!r}: expected whole numbers from 0 on")
        return found
