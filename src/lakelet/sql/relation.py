"""Things that a query may name besides tables: rows that are read when the query asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from lakelet.table.scanning import TableScan


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with a schema. `read` gets the columns that the query needs (None for all) and a condition that spares work where
    it is heeded; it gives batches of exactly these columns, in the order of the schema, and may be called again."""

    schema: pa.Schema
    read: Callable[[Sequence[str] | None, pc.Expression | None], Iterator[pa.RecordBatch]]


Relation: TypeAlias = "TableScan | Rows | pa.Table"
