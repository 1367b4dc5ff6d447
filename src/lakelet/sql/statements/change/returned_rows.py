"""RETURNING: the result rows of a statement that inserted, updated or deleted rows.

    rows of one batch ─ the expressions of RETURNING, by DuckDB ─ kept until the commit is made ─ the statement's result

Expressions see the target's columns as they are written, for deleted rows as they were; in a MERGE also `merge_action`, which is
no part of `*`. They are evaluated before the commit: a statement whose RETURNING fails changes nothing. Results that are too
large for memory are spilled to local disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakelet.catalog.names import matching
from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import UnavailableError
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.types import Field
from lakelet.sql.context import Context
from lakelet.sql.engine.duck_types import duck_type
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.statement import Statement
from lakelet.sql.statements.change.row_expressions import QUERIES, check_row_expressions
from lakelet.sql.statements.text.internal_names import InternalNames
from lakelet.sql.statements.text.query_text import QueryText, Span
from lakelet.storage.spill_folder import SpillFolder, spill_root

MERGE_ACTION = "merge_action"
_MEMORY_BYTES = 64 << 20


@dataclass(slots=True)
class ReturnedRows:
    """The RETURNING rows of a statement on a table with these columns; `has_action` adds the action of each row."""

    context: Context
    statement: Statement
    span: Span
    alias: str
    qualifier: Sequence[str]
    fields: Sequence[Field]
    has_action: bool = False
    _names: InternalNames = field(init=False)
    _kept: KeptBatches = field(init=False)
    _text: QueryText = field(init=False)

    def __post_init__(self) -> None:
        columns = [one.name for one in self.fields]
        self.has_action = self.has_action and matching(MERGE_ACTION, columns) is None
        self._names = InternalNames.beside(self.statement.reader.text, columns)
        words = self.statement.reader.words
        for place in range(self.span.first, self.span.behind - 1):
            if words[place].keyword == "(" and words[place + 1].keyword in QUERIES:
                message = "a query cannot stand in RETURNING"
                raise SqlError(message, self.statement.reader.text, words[place].start)
        self._text = self._query()
        check_row_expressions(self.context, self.statement, [self.span], "RETURNING", stars=True)
        empty = pa.RecordBatch.from_pylist([], arrow_schema(self.fields))
        self._kept = KeptBatches(self._run(empty, "").schema)

    def add(self, rows: pa.RecordBatch, action: str = "") -> None:
        """Evaluates RETURNING on changed rows, which have all columns."""
        if rows.num_rows:
            for batch in self._run(rows, action).to_batches():
                self._kept.add(batch)

    def result(self) -> SqlResult:
        """The result of the statement."""
        kept = self._kept
        return SqlResult(kept.schema, kept.batches, close=kept.close, once=True)

    def close(self) -> None:
        """Releases the buffered rows."""
        self._kept.close()

    def _run(self, rows: pa.RecordBatch, action: str) -> pa.Table:
        columns = {name: rows.column(name) for name in rows.schema.names}
        if self.has_action:
            columns[MERGE_ACTION] = pa.repeat(action, rows.num_rows)
        return self._text.run(self.context, {self._names.target: pa.table(columns)}).to_arrow()

    def _query(self) -> QueryText:
        text = QueryText(self.statement, self.qualifier).add("SELECT ")
        self._add_items(text)
        items = [f"CAST({quoted(one.name)} AS {duck_type(one.type)}) AS {quoted(one.name)}" for one in self.fields]
        items += [MERGE_ACTION] if self.has_action else []
        return text.add(f" FROM (SELECT {', '.join(items)} FROM {self._names.target}) AS {quoted(self.alias)}")

    def _add_items(self, text: QueryText) -> None:
        """Adds the items as they were written, with the action excluded from stars."""
        words, start = self.statement.reader.words, self.span.first
        for place in range(self.span.first, self.span.behind) if self.has_action else ():
            before = words[place - 1].keyword
            if words[place].keyword != "*" or before not in ("RETURNING", ",", "."):
                continue
            text.add_span(Span(start, place + 1)).add(f" EXCLUDE ({MERGE_ACTION}")
            start = place + 1
            if start < self.span.behind and words[start].keyword in ("EXCLUDE", "EXCEPT"):
                listed = start + 1 < self.span.behind and words[start + 1].keyword == "("
                start += 2 if listed else 1
                text.add(", ")
                if listed:
                    continue
                text.add_span(Span(start, start + 1))
                start += 1
            text.add(") ")
        if start < self.span.behind:
            text.add_span(Span(start, self.span.behind))


class KeptBatches:
    """A buffer of batches, in memory while small, else spilled to disk."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: SpillFolder | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffers a batch."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > _MEMORY_BYTES:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches in their order."""
        if self._writer is None or self._folder is None:
            yield from self._batches
            return
        self._spill()
        self._writer.close()
        with pa.memory_map(str(self._path())) as source, pa.ipc.open_stream(source) as reader:
            yield from reader

    def close(self) -> None:
        """Deletes the spilled files."""
        self._batches = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "rows.arrow"

    def _spill(self) -> None:
        try:
            if self._writer is None:
                self._folder = SpillFolder("lakelet-returning-")
                options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
                self._writer = pa.ipc.new_stream(str(self._path()), self.schema, options=options)
            for batch in self._batches:
                self._writer.write_batch(batch)
        except OSError as error:
            folder = spill_root()
            raise UnavailableError(
                f"rows of RETURNING cannot be kept in the temporary folder {folder}: {error}"
            ) from error
        self._batches, self._bytes = [], 0
