"""The merge specification of a table: the columns that order the rows of a key, retracts, and the merge engine."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.lsm.engine.merge_engine import DEDUPLICATE, MergeEngine
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.schema import TableSchema
from lakelet.model.types import DataType
from lakelet.options import IGNORE_DELETE, SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER, TableOptions


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """The columns that order rows, as (name, type), and how those of a key become one.

    `versions` are the columns of `sequence.field`, `partition` those that are the same in all rows of a bucket. Where a run
    has no `_SEQUENCE_NUMBER`, its rows are older than those of every later run; where it has no `_VALUE_KIND`, it holds no
    retracts. `ignore_delete` leaves retracts out before the merge, `drop_deletes` leaves results out that are retracts.
    """

    key: tuple[tuple[str, DataType], ...]
    versions: tuple[tuple[str, DataType], ...] = ()
    descending: bool = False
    ignore_delete: bool = False
    drop_deletes: bool = True
    engine: MergeEngine = DEDUPLICATE
    partition: tuple[str, ...] = ()

    @staticmethod
    def of(schema: TableSchema, *, drop_deletes: bool = True) -> MergeSpec:
        """The specification of a table, by its key and its options."""
        options = TableOptions(schema.options)
        versions = options.get(SEQUENCE_FIELD) or ()
        return MergeSpec(
            key=tuple((field.name, field.type) for field in schema.trimmed_key_fields),
            versions=tuple((name, schema.field(name).type) for name in versions),
            descending=options.get(SEQUENCE_FIELD_SORT_ORDER) == "descending",
            ignore_delete=options.get(IGNORE_DELETE),
            drop_deletes=drop_deletes,
            engine=table_engine(schema),
            partition=tuple(schema.partition_keys),
        )

    @property
    def deciding(self) -> tuple[str, ...]:
        """The columns of the table that order rows."""
        return tuple(dict.fromkeys(name for name, _ in (*self.key, *self.versions)))
