"""`lakelet tables` and `lakelet inspect`."""

from __future__ import annotations

from datetime import UTC, datetime

from lakelet.catalog import Lake
from lakelet.cli.output import Output
from lakelet.table import Table


def list_tables(lake: Lake, output: Output, database: str | None) -> None:
    """The tables with their size."""
    rows = []
    for name in [database] if database else lake.databases():
        for table in lake.tables(name):
            snapshot = lake.table(f"{name}.{table}").latest_snapshot()
            rows.append(
                (name, table, snapshot.id if snapshot else None, snapshot.total_record_count if snapshot else 0)
            )
    output.rows(f"Tables of {lake.location}", ("database", "table", "snapshot", "records"), rows)


def show_table(table: Table, output: Output, what: str) -> None:
    """One aspect of a table."""
    {
        "schema": _schema,
        "snapshots": _snapshots,
        "files": _files,
        "options": _options,
        "tags": _tags,
        "branches": _branches,
    }[what](table, output)


def _schema(table: Table, output: Output) -> None:
    schema = table.schema
    rows = [(field.id, field.name, str(field.type), field.default, field.description) for field in schema.fields]
    output.rows(f"{table.name}, schema {schema.id}", ("id", "column", "type", "default", "comment"), rows)
    output.values("keys", {"partition": ", ".join(schema.partition_keys), "primary": ", ".join(schema.primary_keys)})


def _snapshots(table: Table, output: Output) -> None:
    rows = [
        (
            s.id,
            s.commit_kind.value,
            _time(s.time_ms),
            s.total_record_count,
            s.delta_record_count,
            s.schema_id,
            s.commit_user,
        )
        for s in table.snapshots()
    ]
    output.rows(table.name, ("snapshot", "kind", "time", "records", "change", "schema", "user"), rows)


def _files(table: Table, output: Output) -> None:
    rows = [(path, file.row_count, file.size, file.level, file.schema_id) for path, file in table.files()]
    output.rows(table.name, ("file", "rows", "bytes", "level", "schema"), rows)


def _options(table: Table, output: Output) -> None:
    output.values(table.name, table.options)


def _tags(table: Table, output: Output) -> None:
    output.rows(table.name, ("tag",), [(name,) for name in table.tag_names()])


def _branches(table: Table, output: Output) -> None:
    output.rows(table.name, ("branch",), [(name,) for name in table.branch_names()])


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
