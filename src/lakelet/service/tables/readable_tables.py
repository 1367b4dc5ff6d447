"""The tables that one caller's queries may read."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import NotFoundError
from lakelet.service.access.caller import READ, Caller
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.served_table import OpenTable


@dataclass(frozen=True, slots=True)
class ReadableTables:
    """The served tables without those that the caller has no right to read: for it they do not exist."""

    registry: TableRegistry
    caller: Caller

    def names(self) -> list[str]:
        """Their names, with those that could not be opened at the start: opening such a one is an UnavailableError."""
        names = {*self.registry.names(), *self.registry.left_out()}
        return [name for name in sorted(names) if self.caller.may(READ, name)]

    def open(self, name: str) -> OpenTable:
        """One of them, by its exact name; NotFoundError where there is none, or another process has dropped it."""
        opened = self.registry.open(name) if self.caller.may(READ, name) else None
        if opened is None or (opened.is_due() and not opened.look()):
            raise NotFoundError(f"table {name!r} is not served here")
        return opened
