"""The result of a statement: rows, in several forms.

    lake.sql("SELECT …").to_arrow()          .to_batches() .to_reader() .to_pandas() .to_polars() .rows() .show()

Rows stream: nothing is read before it is asked for, and a result can be read once, except small ones that are in memory.
Statements that change something have done so when they return; their result is one row that says what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.table.read.data_frames import pandas_frame, polars_frame, require

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# The result of INSERT, UPDATE, DELETE and MERGE: the last snapshot made (NULL if none was needed) and how many rows changed.
CHANGED = pa.schema([("snapshot_id", pa.int64()), ("rows", pa.int64())])


class SqlResult:
    """The rows of a statement."""

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        *,
        close: Callable[[], None] | None = None,
        once: bool = True,
        message: str | None = None,
        duck_types: Sequence[object] = (),
    ) -> None:
        self.schema = schema
        # DuckDB's types of the columns, which Arrow's do not determine; none where the rows are not DuckDB's.
        self.duck_types = tuple(duck_types)
        # A message for people about what was done. None where the rows are the result.
        self.message = message
        self._batches = batches
        self._close = close
        self._once = once
        self._read = False

    @classmethod
    def of_table(cls, table: pa.Table, message: str | None = None) -> Self:
        """A result of rows in memory."""
        return cls(table.schema, lambda: iter(table.to_batches()), once=False, message=message)

    @classmethod
    def of_rows(cls, columns: Mapping[str, pa.DataType], rows: Sequence[Sequence[object]]) -> Self:
        """A result of rows given one by one, for the small results of SHOW and its like."""
        names = list(columns)
        arrays = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(columns.values())]
        return cls.of_table(pa.table(arrays, names=names))

    @classmethod
    def done(cls, message: str) -> Self:
        """The result of a statement without rows: one row, `result`, with a message."""
        return cls.of_table(pa.table({"result": pa.array([message], pa.string())}), message)

    @classmethod
    def changed(cls, snapshot_id: int | None, rows: int) -> Self:
        """The result of a statement that changed rows."""
        table = pa.table([[snapshot_id], [rows]], schema=CHANGED)
        return cls.of_table(table, f"{rows:,} {'row' if rows == 1 else 'rows'} changed")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        if self._read and self._once:
            raise InvalidError("the rows of this result have been read; run the statement again, or keep to_arrow()")
        self._read = True
        try:
            yield from self._batches()
        finally:
            self.close()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that takes Arrow streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as Python values."""
        for batch in self.to_batches():
            if batch.num_columns:
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield from zip(*(_python_values(name, column) for name, column in columns), strict=True)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as Python values."""
        return list(self)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a pandas frame."""
        require("pandas", "to_pandas()")
        return pandas_frame(self.to_arrow(), **options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars frame."""
        require("polars", "to_polars()")
        return polars_frame(self.to_arrow())

    def close(self) -> None:
        """Release the resources of an unread result."""
        close, self._close = self._close, None
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqlResult({', '.join(f'{field.name} {field.type}' for field in self.schema)})"


def _python_values(name: str, column: pa.Array) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise InvalidError(
            f"column {name!r}, {column.type}, has a value that Python has none for ({error}); to_arrow() has it"
        ) from error
    return found
