"""Check that rows can be written into a table: before a write, and before a table gets a schema that forbids every write."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.format.index.file.settings import check_file_indexes
from lakelet.lsm.changelog_producer import LOOKUP, check_changelog, check_new_changelog
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.model.schema import TableSchema
from lakelet.options import CHANGELOG_PRODUCER, FOLDING, ICEBERG_STORAGE, MERGE_ENGINE, TableOptions


def check_writable(schema: TableSchema) -> None:
    """Reject tables whose rows would be written without what other engines rely on."""
    if not schema.primary_keys:
        return
    check_changelog(schema)


def check_new_schema(schema: TableSchema) -> None:
    """Reject a schema under which no row could ever be written."""
    from lakelet.sink.rows.defaults import check_default_expressions  # noqa: PLC0415 - as the next line.
    from lakelet.sink.write.trial_file import check_files  # noqa: PLC0415 - it loads all that writes files.

    check_writable(schema)
    check_new_changelog(schema)
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
    _check_whole_rows(old, changed)
    reason = _reason(changed)
    if reason is not None and str(_reason(old)) != str(reason):
        raise reason


def _check_whole_rows(old: TableSchema, changed: TableSchema) -> None:
    """Only with the lookup producer rows above level 0 are whole, which decides how Java merges those of several levels."""
    was, now = (TableOptions(schema.options).get(CHANGELOG_PRODUCER) for schema in (old, changed))
    engine = TableOptions(changed.options).get(MERGE_ENGINE)
    if was != now and LOOKUP in (was, now) and engine in FOLDING:
        raise InvalidError(
            f"'{CHANGELOG_PRODUCER.name}' = '{now}': with 'merge-engine' = '{engine}' it cannot change between '{LOOKUP}' and "
            f"others, found '{was}' before: create another table and copy the rows"
        )


def _reason(schema: TableSchema) -> InvalidError | None:
    try:
        check_new_schema(schema)
    except InvalidError as error:
        return error
    return None
