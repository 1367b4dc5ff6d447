"""`lakelet tables` and `lakelet describe`."""

from __future__ import annotations

from lakelet.catalog import Lake
from lakelet.catalog.names import LakeNames
from lakelet.cli.output.output import Output
from lakelet.clock import shown_time
from lakelet.model.default_expressions import default_of
from lakelet.model.schema import TableSchema
from lakelet.table import Table


def list_tables(lake: Lake, output: Output, database: str | None) -> None:
    """The tables with their size, and the views."""
    rows: list[tuple[str, str, int | None, int | None]] = []
    for name in [LakeNames(lake).database(database)] if database is not None else lake.databases():
        for table in lake.tables(name):
            snapshot = lake.table(f"{name}.{table}").latest_snapshot()
            rows.append(
                (name, table, snapshot.id if snapshot else None, snapshot.total_record_count if snapshot else 0)
            )
        # Views have neither a snapshot nor a record count.
        rows += [(name, view, None, None) for view in lake.views(name)]
    output.rows(f"Tables of {lake.location}", ("database", "table", "snapshot", "records"), rows)


def describe_table(table: Table, output: Output) -> None:
    """The columns, keys, options and size of a table; for programs in one object."""
    described = table.describe()
    if output.for_programs:
        output.values(table.name, described)
        return
    schema = table.schema
    rows = [
        (field.name, str(field.type), _role(field.name, schema), default_of(field, schema), field.description)
        for field in schema.fields
    ]
    title = f"{table.name}: {schema.comment}" if schema.comment else table.name
    output.rows(title, ("column", "type", "role", "default", "comment"), rows)
    snapshot = table.latest_snapshot()
    files = table.files()
    output.values(
        "table",
        {
            "location": table.location,
            "primary key": ", ".join(schema.primary_keys) or "none",
            "partitioned by": ", ".join(schema.partition_keys) or "nothing",
            "schema": schema.id,
            "snapshot": "none yet" if snapshot is None else f"{snapshot.id}, {shown_time(snapshot.time_ms)}",
            "records in files": described["record_count"],
            "files": len(files),
            "bytes": sum(file.size for _, file in files),
        },
    )
    if schema.options:
        output.values("options", dict(sorted(schema.options.items())))


def _role(column: str, schema: TableSchema) -> str:
    roles = [
        name
        for name, columns in (("primary key", schema.primary_keys), ("partition", schema.partition_keys))
        if column in columns
    ]
    return ", ".join(roles)
