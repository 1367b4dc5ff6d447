"""A query whose work is spread over several nodes, as the sandbox asks for it and as a node does its share.

Spread.run(work)     one fragment a node ── Sandbox.start(fragment.sql, fragment.tables) ── the rows of all, gathered
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import NotFoundError
from lakelet.sql.query.relation import Rows
from lakelet.sql.sandbox.sandbox_table import Overlay, SandboxTable, TableShare

_NOTHING = Overlay(None, None)
# Stands in no name of a table.
_BEHIND_TABLE = "\0"


class SpreadFailedError(Exception):
    """The work was not done by the nodes, for whatever reason: one node alone has to do it, or to say why it cannot be done."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one node runs: a query over its shares of tables, and over the rows of other fragments. `zone` is that of texts
    without one."""

    sql: str
    zone: str | None
    tables: tuple[SandboxTable, ...]
    given: tuple[GivenRows, ...] = ()

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
class GivenRows:
    """Rows that a query reads under a name: those of fragments, each run by a node."""

    name: str
    schema: pa.Schema
    shares: tuple[tuple[str, Fragment], ...]


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """A split of a table whose rows are shared out: its name, and the bytes of its files."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table whose rows are shared out: the conditions that prune it, what memory has of it, and its splits."""

    table: SandboxTable
    texts: tuple[str, ...]
    overlay: Overlay
    splits: tuple[PlannedSplit, ...]

    def share(self, names: Sequence[str], *, has_memory: bool) -> SandboxTable:
        """The rows of some splits, and those in memory or none of them."""
        overlay = self.overlay if has_memory else replace(self.overlay, rows=None)
        own = frozenset(name[len(self._prefix) :] for name in names if name.startswith(self._prefix))
        return replace(self.table, buffered=None, share=TableShare(self.texts, own, overlay))

    def named_splits(self) -> tuple[PlannedSplit, ...]:
        """The splits under names that no split of another table has."""
        return tuple(PlannedSplit(self._prefix + one.name, one.bytes) for one in self.splits)

    @property
    def _prefix(self) -> str:
        return f"{self.table.name}{_BEHIND_TABLE}"


@dataclass(frozen=True, slots=True)
class Work:
    """A query for several nodes: each runs `sql` over some of the splits of the tables `shared`, and all rows of `others`. What
    memory has of the shared ones goes to one of them."""

    sql: str
    zone: str | None
    schema: pa.Schema
    shared: tuple[SharedTable, ...]
    others: tuple[SandboxTable, ...]

    @property
    def splits(self) -> tuple[PlannedSplit, ...]:
        """The splits of all tables that are shared out."""
        return tuple(split for one in self.shared for split in one.named_splits())

    @property
    def memory_bytes(self) -> int:
        """The rows in memory of the tables that are shared out, which are for one node alone."""
        return sum(one.overlay.rows.nbytes for one in self.shared if one.overlay.rows is not None)

    @property
    def has_memory_rows(self) -> bool:
        """Whether memory has rows of a table that is shared out."""
        return any(one.overlay.rows is not None and one.overlay.rows.num_rows for one in self.shared)

    @property
    def sent_bytes(self) -> int:
        """What memory has of the tables for every node."""
        frames = [
            *(one.overlay.replaced for one in self.shared),
            *(frame for one in self.others if one.share is not None for frame in _frames(one.share.overlay)),
        ]
        return sum(frame.nbytes for frame in frames if frame is not None)

    def bare(self) -> Work:
        """The same for whoever is told names of splits, and reads no rows in memory of the tables that are shared out."""
        shared = tuple(replace(one, splits=(), overlay=replace(one.overlay, rows=None)) for one in self.shared)
        return replace(self, shared=shared)

    def fragment(self, splits: Sequence[str], *, has_memory: bool) -> Fragment:
        """The part with some splits, and with the rows in memory or without."""
        shares = (one.share(splits, has_memory=has_memory) for one in self.shared)
        return Fragment(self.sql, self.zone, (*shares, *self.others))


def _frames(overlay: Overlay) -> tuple[pa.Table | None, pa.Table | None]:
    return overlay.rows, overlay.replaced


@dataclass(frozen=True, slots=True)
class WholeWork:
    """A query for one other node: over all rows of `tables`, and over the rows of `parts`, which several nodes do, by the names
    that it reads them by."""

    sql: str
    zone: str | None
    schema: pa.Schema
    tables: tuple[SandboxTable, ...]
    parts: tuple[tuple[str, Work], ...]

    @property
    def sent_bytes(self) -> int:
        """What memory has of the tables."""
        frames = [frame for one in self.tables if one.share is not None for frame in _frames(one.share.overlay)]
        return sum(frame.nbytes for frame in frames if frame is not None)


def whole(table: SandboxTable, texts: tuple[str, ...], hidden: tuple[str, ...]) -> SandboxTable:
    """A table of which every node reads all rows."""
    overlay = table.overlay() if table.has_buffered_rows else _NOTHING
    return replace(table, hidden=hidden, buffered=None, share=TableShare(texts, None, overlay))


class Releasable(Protocol):
    """What a query holds until its end."""

    def close(self) -> None:
        """Release it."""


class Gathered(Releasable, Protocol):
    """The rows of all nodes, read once they are all there."""

    @property
    def row_bytes(self) -> float:
        """What a row takes in Arrow."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; may be called again."""


def rows_of(schema: pa.Schema, gathered: Gathered) -> Rows:
    """The rows as a query reads them."""

    def read(wanted: Sequence[str] | None, _: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        for batch in gathered.batches():
            yield batch if wanted is None else batch.select([name for name in batch.schema.names if name in wanted])

    return Rows(schema, read)


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

    def is_for_another(self, sizes: Sequence[int], *, is_split: bool) -> bool:
        """Whether another node combines what the nodes give for a query that reads splits of these bytes, or runs it where it
        is not split."""

    def can_take_whole(self, work: WholeWork) -> bool:
        """Whether what memory has of the tables is little enough to be sent to that node."""

    def told(self, work: Work) -> Sequence[Told]:
        """Who would do what."""

    def told_whole(self) -> str:
        """Which node that is."""

    def decline(self) -> None:
        """Told that the query cannot be split, and would run on one node; InvalidError where it may not."""

    def run(self, work: Work) -> Gathered:
        """Have it done. SpreadFailedError where it is not, unless the query has come to its end by an error of its own."""

    def run_whole(self, work: WholeWork) -> Gathered:
        """Have one other node do it. SpreadFailedError where none does."""
