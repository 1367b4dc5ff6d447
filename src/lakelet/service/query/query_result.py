"""The rows of a query of the service, read once: as JSON text or as Arrow, within the limits of rows and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from types import TracebackType
from typing import Self

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.service.query.query_limits import QueryLimitError, QueryLimits
from lakelet.service.query.query_run import QueryRun
from lakelet.sql.sandbox.json_rows import as_array
from lakelet.sql.sandbox.sandbox import RunningQuery


class QueryResult:
    """Rows that stream. `close` it where they are not read to the end, or use it in a `with`."""

    def __init__(
        self,
        query: RunningQuery,
        run: QueryRun,
        limits: QueryLimits,
        location: str,
        finished: Callable[[QueryRun, int, BaseException | None], None],
    ) -> None:
        self._query = query
        self._run = run
        self._limits = limits
        self._location = location
        self._finished = finished
        self._rows = 0
        self._bytes = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of `batches`."""
        return self._arrow.schema

    def json(self) -> bytes:
        """All rows as a JSON array of objects."""
        return b"".join(self.json_parts())

    def json_parts(self) -> Iterator[bytes]:
        """The bytes of the JSON array, part by part."""
        return as_array(self._counted_json())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow, batch by batch."""
        with self._reading():
            for batch in self._arrow.to_batches():
                self._count(batch.num_rows, batch.nbytes)
                yield batch

    def reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def close(self) -> None:
        """Release what the query holds."""
        self._end(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    @cached_property
    def _arrow(self) -> SqlResult:
        with self._run.errors(self._location):
            return self._query.arrow()

    def _counted_json(self) -> Iterator[bytes]:
        with self._reading():
            for rows, part in self._query.json_parts():
                self._count(rows, len(part))
                yield part

    def _count(self, rows: int, size: int) -> None:
        self._run.check()
        self._rows += rows
        self._bytes += size
        if self._rows > self._limits.rows:
            raise QueryLimitError(
                f"the result has more than {self._limits.rows} rows; LIMIT, or an aggregate, gives fewer"
            )
        if self._bytes > self._limits.bytes:
            raise QueryLimitError(
                f"the result has more than {self._limits.bytes} bytes; LIMIT, or fewer columns, give less"
            )

    def _reading(self) -> _Reading:
        return _Reading(self._run, self._location, self._end)

    def _end(self, error: BaseException | None) -> None:
        self._query.close()
        self._finished(self._run, self._rows, error)


class _Reading:
    """Ends a query with its last row, or the error that its rows end with."""

    def __init__(self, run: QueryRun, location: str, end: Callable[[BaseException | None], None]) -> None:
        self._errors = run.errors(location)
        self._end = end

    def __enter__(self) -> None:
        self._errors.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._end(None if kind is GeneratorExit else error)
        return self._errors.__exit__(kind, error, trace)
