"""The index of files of a service that has one node: answered from the tables' metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.table_record import table_record
from lakelet.table import Table

_KEYS = ClusterKeys()


class EmbeddedFileIndex:
    """Reads the newest snapshot of a table at every question."""

    def __init__(self, open_table: Callable[[str], Table]) -> None:
        self._open_table = open_table

    async def id_files(self, table: str, id: str, day: str) -> frozenset[str]:
        """The files of an id and a day."""
        return await self._files(table, _KEYS.id_files(table, id, day))

    async def bucket_files(self, table: str, bucket: int, day: str) -> frozenset[str]:
        """The files of a bucket and a day."""
        return await self._files(table, _KEYS.bucket_files(table, bucket, day))

    async def _files(self, table: str, key: str) -> frozenset[str]:
        record = await asyncio.to_thread(lambda: table_record(self._open_table(table), table, _KEYS))
        return frozenset(path for found, path in record.files if found == key)
