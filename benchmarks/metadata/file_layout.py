"""The layout that plans are measured on: many files in many partitions, described but not written.

Every file belongs to one day (the partition column `dt`), has its own range of ids, and statistics of all columns. Commits
come in one of two orders:

    by_day   a commit fills some days and never comes back to them, as a daily load does
    mixed    every commit adds a file to every day, as late data does: no manifest can be skipped
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

SEED = 20261115
ROWS_PER_FILE = 10_000
BYTES_PER_FILE = 400_000
FIRST_DAY = date(2024, 1, 1)


@dataclass(frozen=True)
class Layout:
    """How many files there are, of how many days, in how many commits, in which order."""

    days: int
    files_per_day: int
    commits: int
    order: str

    @property
    def files(self) -> int:
        """Files in all."""
        return self.days * self.files_per_day

    def day(self, number: int) -> str:
        """The partition value of a day."""
        return (FIRST_DAY + timedelta(days=number)).isoformat()

    def commit(self, number: int) -> Iterator[PlannedFile]:
        """The files of one commit."""
        names = random.Random(SEED + number)
        size = self.files // self.commits
        for index in range(number * size, (number + 1) * size):
            day = index // self.files_per_day if self.order == "by_day" else index % self.days
            yield PlannedFile(
                self.day(day), f"data-{uuid.UUID(int=names.getrandbits(128))}-0.parquet", index * ROWS_PER_FILE
            )


@dataclass(frozen=True)
class PlannedFile:
    """A file of `ROWS_PER_FILE` rows with consecutive ids."""

    day: str
    name: str
    first_id: int
