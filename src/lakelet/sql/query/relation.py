"""Relations that a query may name besides tables: lazily read rows and lazily planned tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.model.types import Field

if TYPE_CHECKING:
    from lakelet.sql.context import Context
    from lakelet.sql.iceberg.table_view import IcebergView
    from lakelet.table.read.table_scan import TableScan


@dataclass(frozen=True, slots=True)
class Rows:
    """Lazily read rows with a schema. `read` gets the projected columns (None for all) and a condition, which it may ignore, to
    skip rows; it returns batches of exactly these columns, in the order of the schema, and may be called again."""

    schema: pa.Schema
    read: Callable[[Sequence[str] | None, pc.Expression | None], Iterator[pa.RecordBatch]]


class Deferred(ABC):
    """A table that is planned when the conditions on it are known."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """The columns on which conditions can be pushed down."""

    @abstractmethod
    def view(self, context: Context, texts: Sequence[str]) -> IcebergView:
        """The view of the table pruned by the conditions, one of which every needed row satisfies."""


Relation: TypeAlias = "TableScan | Rows | pa.Table | Deferred"


def column_names(relation: object) -> Sequence[str]:
    """The names of a relation's columns, none where only DuckDB knows them."""
    if isinstance(relation, Deferred):
        return [one.name for one in relation.fields]
    if hasattr(relation, "collect_schema"):
        return list(relation.collect_schema().names())
    schema = getattr(relation, "schema", None)
    for names in (getattr(relation, "columns", ()), getattr(schema, "names", ())):
        # Columns of an Arrow table are arrays, a frame's may have numbers for names.
        found = [name for name in names if isinstance(name, str)] if isinstance(names, Iterable) else []
        if found:
            return found
    return ()


def as_arrow(frame: object, name: str) -> object:
    """Data that DuckDB can register; InvalidError for a value that is no table."""
    if frame is None or isinstance(frame, (str, bytes, int, float, list, tuple, dict, set)):
        raise InvalidError(
            f"{name!r}: expected an Arrow table or reader, a pandas or polars frame, a scan or a result, found "
            f"{type(frame).__name__}"
        )
    # A scan or a result of ours, among others.
    reader = getattr(frame, "to_reader", None)
    return frame if reader is None or isinstance(frame, pa.Table) else reader()
