"""Statistics of a table's rows, for the cardinality estimates of query planners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column; None is unknown.

    `minimum` and `maximum` are values as Arrow gives them, of a TIMESTAMP with a precision over 6 nanoseconds since 1970. Lengths
    are characters of text, bytes of binaries, and for other types the size of a value.
    """

    column_id: int
    distinct_count: int | None = None
    minimum: object = None
    maximum: object = None
    null_count: int | None = None
    average_length: int | None = None
    maximum_length: int | None = None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows and bytes of a snapshot after the merge, and columns by their names in a schema version."""

    snapshot_id: int
    schema_id: int
    record_count: int | None = None
    record_bytes: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
