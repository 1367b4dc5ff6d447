"""A table of the demo whose engine folds: writes add to the rows that are there, the changelog tells of it, Iceberg reads it."""

from __future__ import annotations

from lakelet.catalog.lake import Lake
from lakelet.cli.output.output import Output

_FIRST = (("book", 2, 9), ("lamp", 1, 30))
_SECOND = (("book", 3, 12), ("desk", 1, 200))


def show_fold(lake: Lake, database: str, output: Output) -> None:
    """Writes sales twice, shows the sums, the changes that the second write made, and where the Iceberg table is."""
    sales = lake.create_table(
        f"{database}.sales",
        [("item", "STRING NOT NULL"), ("sold", "BIGINT"), ("best_price", "BIGINT")],
        primary_key=["item"],
        options={
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.sold.aggregate-function": "sum",
            "fields.best_price.aggregate-function": "max",
            "changelog-producer": "lookup",
            "metadata.iceberg.storage": "table-location",
            "metadata.iceberg.manifest-compression": "deflate",
        },
        comment="sums that writes add to",
    )
    before = 0
    for rows in (_FIRST, _SECOND):
        before = sales.snapshots()[-1].id if sales.snapshots() else 0
        sales.write([dict(zip(sales.schema.names, row, strict=True)) for row in rows])
    folded = sales.scan().to_arrow().sort_by("item")
    output.rows("after two writes", tuple(folded.column_names), [tuple(row.values()) for row in folded.to_pylist()])
    changes = sales.changes(before, sales.snapshots()[-1].id).to_pylist()
    shown = ("_row_kind", "item", "sold", "best_price")
    output.rows("what the second one changed", shown, [tuple(row[name] for name in shown) for row in changes])
    output.values(
        "as an Iceberg table", {"metadata": f"{sales.location}/metadata", "snapshots": len(sales.snapshots())}
    )
