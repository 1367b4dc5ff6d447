"""Check that rows can be written into a table: before a write, and before a table gets a schema that forbids every write."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.format.index.file.settings import check_file_indexes
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.schema import TableSchema
from lakelet.options import CHANGELOG_PRODUCER, ICEBERG_STORAGE, TableOptions


def check_writable(schema: TableSchema) -> None:
    """Reject tables whose rows would be written without what other engines rely on."""
    if not schema.primary_keys:
        return
    producer = TableOptions(schema.options).get(CHANGELOG_PRODUCER)
    if producer != "none":
        raise InvalidError(
            f"a table with '{CHANGELOG_PRODUCER.name}' = '{producer}' can be read but not written: its changelog would be missing"
        )


def check_new_schema(schema: TableSchema) -> None:
    """Reject a schema under which no row could ever be written."""
    from lakelet.sink.rows.defaults import check_default_expressions  # noqa: PLC0415 - as the next line.
    from lakelet.sink.write.trial_file import check_files  # noqa: PLC0415 - it loads all that writes files.

    check_writable(schema)
    if schema.primary_keys:
        table_engine(schema)
    check_default_expressions(schema)
    check_files(schema)
    check_file_indexes(TableOptions(schema.options), schema.fields)
    if ICEBERG_STORAGE.name in schema.options:
        from lakelet.callbacks.iceberg.published_schema import check_published  # noqa: PLC0415 - for those tables only.

        check_published(schema)


def check_changed_schema(old: TableSchema, changed: TableSchema) -> None:
    """Reject a change after which rows can no longer be written. A table that could not be written before, as another
    engine may have made it, can be changed as long as the reason stays the same."""
    if ICEBERG_STORAGE.name in changed.options:
        from lakelet.callbacks.iceberg.published_schema import check_readable_change  # noqa: PLC0415 - as below.

        check_readable_change(old, changed)
    reason = _reason(changed)
    if reason is not None and str(_reason(old)) != str(reason):
        raise reason


def _reason(schema: TableSchema) -> InvalidError | None:
    try:
        check_new_schema(schema)
    except InvalidError as error:
        return error
    return None
