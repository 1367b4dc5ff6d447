"""Check that a writer can serve a table: what it cannot merge in memory or store in a log is refused by name."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.lsm.changelog_producer import INPUT
from lakelet.lsm.engine.aggregate.functions import UNITED
from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.partial_update import PartialUpdateEngine
from lakelet.lsm.engine.removal import removes_rows
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    DELETION_VECTORS_ENABLED,
    FOLDING,
    MERGE_ENGINE,
    ROWKIND_FIELD,
    WRITE_ONLY,
    TableOptions,
)
from lakelet.scan.tree import hides_level0, takes_level0
from lakelet.table.usable import check_usable
from lakelet.table.write.writable import check_writable


def check_supported(schema: TableSchema) -> None:
    """InvalidError for a table whose rows a writer would read or store wrong."""
    check_usable(schema)
    check_writable(schema)
    options = TableOptions(schema.options)
    if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
        raise _refused(f"'{BUCKET.name}' = '-2': postponed rows cannot be read back before they have a bucket")
    if options.get(ROWKIND_FIELD) is not None:
        raise _refused(f"'{ROWKIND_FIELD.name}': put and delete say what a row does")
    if not schema.primary_keys:
        return
    if options.get(MERGE_ENGINE) in FOLDING:
        _check_folding(schema, options)
    if options.get(CHANGELOG_PRODUCER) == INPUT:
        raise _refused(
            f"'{CHANGELOG_PRODUCER.name}' = '{INPUT}': of the rows of a key the newest is kept until the flush, so that its "
            "changelog would lack the others"
        )
    if hides_level0(options) and options.get(WRITE_ONLY):
        raise _refused(
            f"'{WRITE_ONLY.name}' = 'true' whose level 0 is hidden ('{DELETION_VECTORS_ENABLED.name}', first-row): rows that "
            "were read through the writer would vanish at their flush until somebody compacts the table"
        )


def _check_folding(schema: TableSchema, options: TableOptions) -> None:
    if bucket_mode(schema) is not BucketMode.HASH_FIXED:
        raise _refused(
            f"'{MERGE_ENGINE.name}' = '{options.get(MERGE_ENGINE)}' and without a fixed number of buckets, in which rows "
            "in memory would be folded with the files of their keys"
        )
    engine = table_engine(schema)
    if removes_rows(engine) and takes_level0(options):
        raise _refused(
            f"'{MERGE_ENGINE.name}' = '{options.get(MERGE_ENGINE)}' whose deletes remove rows and whose flushes are compacted "
            "(deletion vectors, 'changelog-producer' = 'lookup'): a delete that one flush commits is gone before the rows of the "
            "next, which are to be folded with it"
        )
    for rule in engine.rules if isinstance(engine, AggregationEngine | PartialUpdateEngine) else ():
        if rule.function in UNITED:
            raise _refused(
                f"a column that is aggregated with '{rule.function}' ({rule.column!r}): bytes that are no such value would be "
                "found at the flush, when nobody can refuse them any longer"
            )


def _refused(what: str) -> InvalidError:
    return InvalidError(f"writer() does not support a table with {what}; use write()")
