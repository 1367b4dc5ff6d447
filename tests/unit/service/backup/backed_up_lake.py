"""A lake and its backup in two memory stores, with tables as the service makes them."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.service.backup.backups import Backups
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from tests.crash.warehouse import CountedIds, SteppingClock

TABLE = "default.events"
FIRST = date(2026, 1, 1)
COLUMNS = [
    ("id", "STRING NOT NULL"),
    ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("payload_rest", "STRING"),
    ("dt", "DATE"),
]
BY_DAY = {"partitioned_by": ["dt"], "options": {"bucket": "2", "bucket-key": "id"}}


class BackedUpLake:
    """Two lakes over two stores, which outlive it: made again it is a restart."""

    def __init__(self, primary: ObjectStore | None = None, backup: ObjectStore | None = None, run: str = "0") -> None:
        self.primary = MemoryStore() if primary is None else primary
        self.copy = MemoryStore() if backup is None else backup
        clock = SteppingClock()
        self.lake = Lake(self.primary, clock=clock, ids=CountedIds(f"p{run}"))
        self.mirror = Lake(self.copy, clock=clock, ids=CountedIds(f"b{run}"))
        self.backups = Backups(self.lake, self.mirror)

    def create(self, **layout: object) -> Table:
        self.lake.create_database("default", if_not_exists=True)
        return self.lake.create_table(TABLE, COLUMNS, **{**BY_DAY, **layout})

    @property
    def table(self) -> Table:
        return self.lake.table(TABLE)

    def rows(self, lake: Lake | None = None) -> list[dict[str, object]]:
        found = (lake or self.lake).table(TABLE).scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: (str(row["id"]), str(row["timestamp"]), repr(row)))

    def mirrored(self) -> list[dict[str, object]]:
        return self.rows(self.mirror)

    def wipe(self, folder: str = "default.db/events") -> None:
        self.primary.delete_folder(folder)


def events(*ids: str, day: int = 0, note: str | None = None) -> pa.Table:
    """A row for each id on a day after the first."""
    at = datetime(2026, 1, 1, 10, tzinfo=UTC) + timedelta(days=day)
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "timestamp": pa.array([at] * len(ids), pa.timestamp("us", "UTC")),
            "payload_rest": pa.array([note] * len(ids), pa.string()),
            "dt": pa.array([FIRST + timedelta(days=day)] * len(ids), pa.date32()),
        }
    )
