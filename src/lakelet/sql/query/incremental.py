"""Changes between versions in a query: `changes('shop.orders', 3, 9)`.

SELECT * FROM changes('shop.orders', 3, 9)       `_row_kind` and the columns, changes of snapshots (3, 9]
SELECT * FROM changes('shop.orders', 3)          up to the newest
SELECT * FROM paimon_incremental_query('shop.orders', 3, 9)    the rows inserted or updated, without kinds, as in Paimon's Spark
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.lexer.word_reader import WordReader
from lakelet.sql.lexer.words import Word, words_of
from lakelet.sql.query.relation import Rows
from lakelet.sql.query.stand_in import stand_in

if TYPE_CHECKING:
    from lakelet.table import Table

_CHANGES = "CHANGES"
_PUT = "PAIMON_INCREMENTAL_QUERY"
_ROW_KIND = "_row_kind"


@dataclass(frozen=True, slots=True)
class Incremental:
    """A call in a query: the table, the start and end snapshots, and the name that replaces the call."""

    parts: tuple[str, ...]
    start: int
    end: int | None
    stand_in: str
    with_kinds: bool

    def relation(self, table: Table, system: str | None = None) -> Rows:
        """The changes as rows, or in the form of a system table about changes."""
        if system is not None:
            from lakelet.sql.system.change_log import changes_relation  # noqa: PLC0415 - few queries ask for it.

            return changes_relation(table, system, self.start, self.end)
        from lakelet.table.read.changes import changes_schema  # noqa: PLC0415 - few queries ask for changes.

        whole = changes_schema(table.schema)
        kept = whole if self.with_kinds else pa.schema([field for field in whole if field.name != _ROW_KIND])

        def read(columns: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
            names = kept.names if columns is None else [name for name in kept.names if name in columns]
            for batch in table.change_batches(self.start, self.end):
                found = batch
                if not self.with_kinds:
                    put = pc.is_in(batch.column(_ROW_KIND), pa.array(["+I", "+U"]))
                    found = batch.filter(put)
                yield found.select(names)

        return Rows(kept, read)


def incrementals(
    text: str, words: Sequence[Word], value_of: Callable[[str], object]
) -> tuple[list[Incremental], list[tuple[int, int, str]]]:
    """The calls in a query, and the edits (start, end, new text) that replace them by names."""
    found: list[Incremental] = []
    edits: list[tuple[int, int, str]] = []
    reader = WordReader(text, words)
    while not reader.at_end:
        begin = reader.take()
        if begin.keyword not in (_CHANGES, _PUT) or not reader.at("(") or reader.peek(1).keyword == ")":
            continue
        if reader.place > 1 and words[reader.place - 2].keyword not in ("FROM", "JOIN", ",", "LATERAL"):
            continue
        arguments = [value_of(one) for one in reader.listed(lambda: reader.expression(","))]
        name = stand_in(f"{begin.text.lower()}()", "@", words, [call.stand_in for call in found])
        found.append(_checked(arguments, name, begin, text))
        edits.append((begin.start, words[reader.place - 1].end, quoted(name)))
    return found, edits


def _checked(arguments: Sequence[object], stand_in: str, begin: Word, text: str) -> Incremental:
    name, *ids = arguments
    if not isinstance(name, str) or not 1 <= len(ids) <= 2 or not all(isinstance(one, int) for one in ids):
        raise SqlError(
            f"expected {begin.text.lower()}('database.table', start[, end]) with snapshot ids", text, begin.start
        )
    start, end = ids[0], ids[1] if len(ids) == 2 else None
    assert isinstance(start, int)
    assert end is None or isinstance(end, int)
    return Incremental(_parts(name, begin, text), start, end, stand_in, begin.keyword == _CHANGES)


def _parts(name: str, begin: Word, text: str) -> tuple[str, ...]:
    """Parse the name of a table given as a text."""
    try:
        reader = WordReader(name, words_of(name))
        parts = reader.name_parts("a table")
        reader.finish()
    except SqlError as error:
        raise SqlError(f"{name!r} is no name of a table: {error.reason}", text, begin.start) from error
    return parts
