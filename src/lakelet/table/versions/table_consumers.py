"""The consumer API of a table: `orders.consumers.set("dashboard", 7)`."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.versions.consumers import (
    Consumer,
    all_consumers,
    delete_consumers,
    expire_consumers,
    next_snapshot,
    set_consumer,
)
from lakelet.options import CONSUMER_EXPIRATION_TIME, TableOptions
from lakelet.storage.home import TableHome
from lakelet.table.time_arguments import Length, length

Names = list[str]


@dataclass(frozen=True, slots=True)
class TableConsumers:
    """Readers that hold snapshots back from expiry, each from the one it needs next."""

    _home: TableHome

    def set(self, consumer: str, next_snapshot: int) -> None:
        """Store the snapshot that a consumer needs next."""
        set_consumer(self._home, consumer, next_snapshot)

    def get(self, consumer: str) -> int:
        """The snapshot that a consumer needs next."""
        return next_snapshot(self._home, consumer)

    def list(self) -> list[Consumer]:
        """All consumers, by id."""
        return all_consumers(self._home)

    def reset(self, consumer: str, next_snapshot: int) -> None:
        """Move an existing consumer to another snapshot."""
        self.get(consumer)
        set_consumer(self._home, consumer, next_snapshot)

    def delete(self, consumer: str, *, if_exists: bool = False) -> None:
        """Delete a consumer, and so release the snapshots it held."""
        if not if_exists:
            self.get(consumer)
        delete_consumers(self._home, [consumer])

    def expire(self, older_than: Length | None = None) -> Names:
        """Delete the consumers that were not renewed for that time, by default 'consumer.expiration-time'; their ids."""
        options = TableOptions(latest_schema(self._home).options)
        age = options.get(CONSUMER_EXPIRATION_TIME) if older_than is None else length(older_than, "older_than")
        if age is None:
            return []
        return expire_consumers(self._home, self._home.clock.now_ms() - int(age.total_seconds() * 1000))
