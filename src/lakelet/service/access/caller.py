"""A caller of the service and the rights it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.errors import PermissionDeniedError

READ, WRITE, ADMIN = "read", "write", "admin"
RIGHTS = (READ, WRITE, ADMIN)
EVERY_TABLE = "*"


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who sends requests: a name for logs, and rights by table; `*` is every table.

    `write` includes `read`; `admin` includes both, and creates, changes and drops the table. `key_id` is that of its API key,
    empty for callers without one; limits that are None are those of the service (`rate_limits`).
    """

    name: str
    rights: Mapping[str, str] = field(default_factory=dict)
    key_id: str = ""
    requests_per_second: int | None = None
    bytes_per_second: int | None = None

    def may(self, right: str, table: str) -> bool:
        """Whether the caller has a right on a table."""
        granted = [self.rights[name] for name in (table, EVERY_TABLE) if name in self.rights]
        return any(RIGHTS.index(one) >= RIGHTS.index(right) for one in granted)

    def check(self, right: str, table: str) -> None:
        """PermissionDeniedError unless the caller has a right on a table."""
        if not self.may(right, table):
            raise PermissionDeniedError(f"{self.name} has no right to {right} table {table!r}")

    @property
    def is_admin(self) -> bool:
        """Whether the caller has every right on every table."""
        return self.may(ADMIN, EVERY_TABLE)


# The caller where the service asks for no keys: bound to a loopback address, everybody on the machine may do everything.
ANYBODY = Caller("anybody", {EVERY_TABLE: ADMIN})
