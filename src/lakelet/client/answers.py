"""What a service answers, as values; points in time are in UTC."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.client.connections import HttpAnswer
from lakelet.errors import InvalidError, UnavailableError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

T = TypeVar("T")
# The last eight bytes of a whole Arrow stream. A reader takes a stream that was cut between two batches for a whole one.
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that was not written: its place among those that were given, from 0 on, and why."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """What a write has done: durable records, values that fit no column and are in `payload_rest`, refused records."""

    written: int
    rest_values: int = 0
    refused: tuple[RefusedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is stored; `timestamp` is None in an attached table that has none."""

    id: str
    timestamp: datetime | None
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A served table. `config` and `stats` have the members of the REST answer; a list has no config, a change no stats."""

    name: str
    status: str
    created_at: datetime | None
    last_write: datetime | None
    config: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """The state of a service: ok, degraded, starting or stopping; details for keys with all rights."""

    status: str
    details: Mapping[str, str]


class QueryAnswer:
    """The rows of a query, in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._rows.schema.names)

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as mappings of Python values; InvalidError where two columns have one name."""
        if len(set(self.columns)) < len(self.columns):
            raise InvalidError(f"columns: expected names that differ, found {', '.join(self.columns)}; use AS")
        found: list[dict[str, Any]] = self._rows.to_pylist()
        return found

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._rows

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The rows as a pandas frame."""
        from lakelet.table.read.data_frames import pandas_frame, require  # noqa: PLC0415 - it loads Arrow.

        require("pandas", "to_pandas()")
        return pandas_frame(self._rows, **options)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame."""
        from lakelet.table.read.data_frames import polars_frame, require  # noqa: PLC0415 - as above.

        require("polars", "to_polars()")
        return polars_frame(self._rows)


def decoded(answer: HttpAnswer, read: Callable[[Mapping[str, Any]], T]) -> T:
    """The value of a JSON answer; UnavailableError where it is not that of a service."""
    try:
        return read(json.loads(answer.body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        shown = answer.body[:200].decode(errors="replace")
        raise UnavailableError(f"expected an answer of a Lakelet service, found {shown!r} ({error!r})") from error


def decoded_rows(answer: HttpAnswer) -> QueryAnswer:
    """The rows of an Arrow answer."""
    import pyarrow as pa  # noqa: PLC0415 - most requests need no Arrow, and it is slow to load.

    if not answer.body.endswith(_END_OF_STREAM):
        raise UnavailableError(
            f"the answer ends after {len(answer.body)} bytes, before its last row: expected an Arrow stream"
        )
    try:
        with pa.ipc.open_stream(answer.body) as reader:
            return QueryAnswer(reader.read_all())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnavailableError(f"the answer does not decode as an Arrow stream: {error}") from error


def write_answer(document: Mapping[str, Any]) -> WriteAnswer:
    """The answer to a write."""
    refused = tuple(RefusedRecord(int(one["place"]), str(one["reason"])) for one in document.get("refused", ()))
    return WriteAnswer(int(document["written"]), int(document.get("rest_values", 0)), refused)


def record(document: Mapping[str, Any]) -> Record:
    """One record."""
    return Record(str(document["id"]), moment(document["timestamp"]), dict(document["payload"]))


def changed_table(document: Mapping[str, Any]) -> ServedTable:
    """A table as it is described, created or altered."""
    info = document["table_info"]
    return _table(info, dict(info["config"]), dict(document.get("stats", {})))


def listed_table(document: Mapping[str, Any]) -> ServedTable:
    """A table of a list."""
    own = ("name", "status", "created_at", "last_write")
    return _table(document, {}, {name: value for name, value in document.items() if name not in own})


def moment(text: str | None) -> datetime | None:
    """A point in time of RFC 3339; None for an empty text."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _table(info: Mapping[str, Any], config: dict[str, Any], stats: dict[str, Any]) -> ServedTable:
    return ServedTable(
        str(info["name"]), str(info["status"]), moment(info["created_at"]), moment(info["last_write"]), config, stats
    )
