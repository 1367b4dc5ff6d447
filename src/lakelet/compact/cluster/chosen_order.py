"""The order of rows that a clustering makes: `order_strategy` and `order_by`, as Paimon names them.

order      by the columns, the first first; NULL before everything
zorder     along a Z-order curve through the columns: each of them prunes, the more so the fewer there are
hilbert    along a Hilbert curve: the same, and neighbours on the curve are neighbours in every column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic

NONE, ORDER, ZORDER, HILBERT = STRATEGIES = ("none", "order", "zorder", "hilbert")
_MOST_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class RowOrdering:
    """A strategy and the columns that it orders by. Picklable."""

    strategy: str
    columns: tuple[str, ...]

    @staticmethod
    def of(strategy: str | None, columns: Sequence[str] | None) -> RowOrdering | None:
        """The ordering that these arguments ask for, None for none; InvalidError where they do not go together."""
        chosen = (strategy or NONE).lower()
        names = tuple(columns or ())
        if chosen not in STRATEGIES:
            raise InvalidError(f"order_strategy {strategy!r}: expected {', '.join(STRATEGIES)}")
        if chosen == NONE:
            if names:
                raise InvalidError(f"order_by names columns: order_strategy is to be {', '.join(STRATEGIES[1:])}")
            return None
        if not names:
            raise InvalidError(f"order_strategy {chosen!r} needs order_by, the columns to order rows by")
        if len(set(names)) < len(names) or len(names) > _MOST_COLUMNS:
            raise InvalidError(f"order_by {', '.join(names)}: expected 1 to {_MOST_COLUMNS} columns, each once")
        return RowOrdering(chosen, names)

    def check(self, schema: TableSchema, where: str) -> None:
        """InvalidError unless the rows of a table can be put into this order."""
        if schema.primary_keys:
            raise InvalidError(f"{where} has a primary key, by which its rows are sorted: order_strategy is for others")
        if bucket_mode(schema) is not BucketMode.BUCKET_UNAWARE:
            raise InvalidError(
                f"{where} has buckets, whose rows keep their order: order_strategy needs 'bucket' = '-1'"
            )
        for name in self.columns:
            if name not in schema.names:
                raise InvalidError(
                    f"order_by {name!r}: {where} has no such column; there are {', '.join(schema.names)}"
                )
            kind = schema.field(name).type
            if not isinstance(kind, Atomic):
                raise InvalidError(f"order_by {name!r}: rows cannot be ordered by a column of type {kind}")
