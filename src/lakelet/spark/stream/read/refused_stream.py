"""A stream that cannot be read, which says why at the first call.

Spark 4.3 hides an error of `streamReader` itself behind one of its own ("cannot access local variable 'reader'").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from lakelet.errors import LakeletError
from lakelet.spark.workers import told_plainly


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the error for which there is no reader."""

    def __init__(self, error: LakeletError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        """Raises the error."""
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Raises the error."""
        self._refuse()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Raises the error."""
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:
        """Raises the error."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raises the error."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the error."""
        self._refuse()

    def stop(self) -> None:
        """Nothing is open."""

    def _refuse(self) -> NoReturn:
        with told_plainly():
            raise self._error


def stream_reader(make: Callable[[], DataSourceStreamReader]) -> DataSourceStreamReader:
    """The reader of a stream, or one that says why there is none."""
    try:
        return make()
    except LakeletError as error:
        return RefusedStream(error)
