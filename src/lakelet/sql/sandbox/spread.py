"""A query whose work is spread over several nodes, as the sandbox asks for it and as a node does its share.

Spread.run(work)     one fragment a node ── Sandbox.start(fragment.sql, fragment.tables) ── the rows of all, gathered
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from lakelet.errors import NotFoundError
from lakelet.sql.sandbox.sandbox_table import Overlay, SandboxTable, TableShare

_NOTHING = Overlay(None, None)


class SpreadFailedError(Exception):
    """The work was not done by the nodes, for whatever reason: one node alone has to do it, or to say why it cannot be done."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one node runs: a query over its shares of tables. `zone` is that of texts without one."""

    sql: str
    zone: str | None
    tables: tuple[SandboxTable, ...]

    def names(self) -> list[str]:
        """The names of the tables."""
        return [table.name for table in self.tables]

    def open(self, name: str) -> SandboxTable:
        """One of the tables."""
        for table in self.tables:
            if table.name == name:
                return table
        raise NotFoundError(name)


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """A split of the table whose rows are shared out: its name, and the bytes of its files."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Work:
    """A query for several nodes: each runs `sql` over some of the `splits` of the table `split`, and all rows of `others`. What
    memory has of the table goes to one of them."""

    sql: str
    zone: str | None
    schema: pa.Schema
    split: SandboxTable
    texts: tuple[str, ...]
    overlay: Overlay
    others: tuple[SandboxTable, ...]
    splits: tuple[PlannedSplit, ...]

    @property
    def sent_bytes(self) -> int:
        """What memory has of the tables for every node; the rows of the split one are for one node alone."""
        shares = [
            replace(self.overlay, rows=None),
            *(one.share.overlay for one in self.others if one.share is not None),
        ]
        return sum(frame.nbytes for one in shares for frame in (one.rows, one.replaced) if frame is not None)

    def fragment(self, splits: Sequence[str], *, has_memory: bool) -> Fragment:
        """The part with some splits, and with the rows in memory or without."""
        overlay = self.overlay if has_memory else replace(self.overlay, rows=None)
        share = TableShare(self.texts, frozenset(splits), overlay)
        return Fragment(self.sql, self.zone, (replace(self.split, buffered=None, share=share), *self.others))


def whole(table: SandboxTable, texts: tuple[str, ...], hidden: tuple[str, ...]) -> SandboxTable:
    """A table of which every node reads all rows."""
    overlay = table.overlay() if table.has_buffered_rows else _NOTHING
    return replace(table, hidden=hidden, buffered=None, share=TableShare(texts, None, overlay))


class Gathered(Protocol):
    """The rows of all nodes, read once they are all there."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; may be called again."""

    def close(self) -> None:
        """Release them."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one node would do, for people."""

    node: str
    splits: int
    bytes: int


class Spread(Protocol):
    """The nodes that a query may be spread over."""

    def is_worthwhile(self, sizes: Sequence[int]) -> bool:
        """Whether a table with splits of these bytes is read by several nodes."""

    def can_take(self, work: Work) -> bool:
        """Whether what memory has of the tables is little enough to be sent along."""

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""

    def decline(self) -> None:
        """Told that the query cannot be split, and would run on one node; InvalidError where it may not."""

    def run(self, work: Work) -> Gathered:
        """Have it done. SpreadFailedError where it is not, unless the query has come to its end by an error of its own."""
