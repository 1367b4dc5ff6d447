"""Check that a writer can serve a table: what it cannot merge in memory or store in a log is refused by name."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.lsm.engine.merge_engine import DEDUPLICATE
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.model.types import Atomic
from lakelet.options import (
    BUCKET,
    DELETION_VECTORS_ENABLED,
    IGNORE_DELETE,
    MERGE_ENGINE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TableOptions,
)
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
    for field in schema.fields:
        if not isinstance(field.type, Atomic):
            raise _refused(f"column {field.name!r} of type {field.type}: logs hold no nested values yet")
    if not schema.primary_keys:
        return
    if options.get(MERGE_ENGINE) != DEDUPLICATE.name:
        raise _refused(f"'{MERGE_ENGINE.name}' = '{options.get(MERGE_ENGINE)}'")
    if options.get(SEQUENCE_FIELD):
        raise _refused(f"'{SEQUENCE_FIELD.name}': a memtable keeps the row that came last")
    if options.get(IGNORE_DELETE):
        raise _refused(f"'{IGNORE_DELETE.name}' = 'true'")
    if options.get(DELETION_VECTORS_ENABLED):
        raise _refused(f"'{DELETION_VECTORS_ENABLED.name}' = 'true': flushed rows are hidden until they are compacted")


def _refused(what: str) -> InvalidError:
    return InvalidError(f"writer() does not support a table with {what}; use write()")
