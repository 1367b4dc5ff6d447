"""The codec of a catalog's cached metadata: how its values become bytes and are put back. It knows the format of the tables; the
cache does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakelet.cache.keys import TableCacheKey
from lakelet.cache.upkeep.persisted_file import Piece


class TableCodec(Protocol):
    """Encodes what is cached of a table, its branches included, and puts decoded values back into the cache."""

    def encode(self, table: TableCacheKey) -> list[Piece]:
        """The values of a table that are worth keeping; none where there are none."""
        ...

    def restore(self, table: TableCacheKey, pieces: Sequence[Piece]) -> None:
        """Put values back. Pointers are put as unchecked, so that their first use revalidates them, in every mode;
        CorruptionError, with nothing put, where a piece cannot be decoded."""
        ...
