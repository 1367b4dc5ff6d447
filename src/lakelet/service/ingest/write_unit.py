"""The records of one request on their way to the log: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.service.ingest.arrow_records import records_of_arrow
from lakelet.service.ingest.request_keys import UnitKey
from lakelet.service.values import Record, RefusedRecord, WriteResult


@dataclass(frozen=True, slots=True, eq=False)
class WriteUnit:
    """Records, or rows in Arrow; the key of their request, the records of it that were refused before, and whether others may be
    refused, too."""

    records: Sequence[Record] | pa.Table
    key: UnitKey | None = None
    refused: tuple[RefusedRecord, ...] = ()
    partial: bool = False

    @property
    def given_records(self) -> Sequence[Record]:
        """The records, those of Arrow rows made."""
        return records_of_arrow(self.records) if isinstance(self.records, pa.Table) else self.records

    def without(self, reasons: Mapping[int, str]) -> WriteUnit:
        """The unit without some of its records, which are refused; their places are those in the request."""
        given, before = self.given_records, {one.place for one in self.refused}
        places = [place for place in range(len(given) + len(before)) if place not in before]
        more = [RefusedRecord(places[place], reason) for place, reason in reasons.items()]
        kept = [record for place, record in enumerate(given) if place not in reasons]
        return WriteUnit(kept, self.key, tuple(sorted((*self.refused, *more), key=lambda one: one.place)))

    def result(self, rest_values: int) -> WriteResult:
        """The answer to the request once it is written."""
        return WriteResult(len(self.records), rest_values, self.refused)
