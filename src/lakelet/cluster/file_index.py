"""The index of files: which data files may hold rows of an id or a bucket on a day."""

from __future__ import annotations

from typing import Protocol


class FileIndex(Protocol):
    """Answers with paths of data files, relative to the warehouse. A hint: a snapshot decides what a query reads."""

    async def id_files(self, table: str, id: str, day: str) -> frozenset[str]:
        """The files of an id and a day, of a table that is partitioned by both."""
        ...

    async def bucket_files(self, table: str, bucket: int, day: str) -> frozenset[str]:
        """The files of a bucket and a day; `-` is the day of a table that is not partitioned by days."""
        ...
