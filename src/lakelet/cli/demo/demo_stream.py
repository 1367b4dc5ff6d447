"""The stream of the demo: visits arrive as files, go into a table batch by batch, and its changes come out as a stream."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence

from lakelet.catalog.lake import Lake
from lakelet.cli.output.output import Output

_SCHEMA = "visitor BIGINT, page STRING"
# Who was where, hour by hour; visitors come again.
_HOURS = (
    [(1, "home"), (2, "home"), (3, "offers")],
    [(2, "basket"), (4, "home")],
)
_SHOWN = ("_row_kind", "visitor", "page")

# Writes what is new in a folder into a table, and returns the number of each batch, its rows and how long it took.
StreamRunner = Callable[[str, str, str, str], Sequence[tuple[int, int, int]]]


def show_stream(run: StreamRunner | None, lake: Lake, database: str, output: Output) -> None:
    """Runs the stream for two hours, each row once, and follows the table."""
    visits = lake.create_table(
        f"{database}.visits",
        [("visitor", "BIGINT NOT NULL"), ("page", "STRING")],
        primary_key=["visitor"],
        options={"bucket": "1"},
        comment="the last page of each visitor",
    )
    with tempfile.TemporaryDirectory(prefix="lakelet-demo-") as folder:
        source, checkpoint = os.path.join(folder, "visits"), os.path.join(folder, "checkpoint")
        os.mkdir(source)
        batches: list[tuple[object, ...]] = []
        for number, hour in enumerate(_HOURS):
            rows = [{"visitor": visitor, "page": page} for visitor, page in hour]
            if run is None:
                visits.write(rows)
                continue
            with open(os.path.join(source, f"hour-{number}.json"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            batches += run(source, _SCHEMA, visits.name, checkpoint)
    if run is not None:
        output.rows("batches, each committed once", ("batch", "rows", "milliseconds"), batches)
    newest = visits.latest_snapshot()
    assert newest is not None
    for batch in visits.follow(start=newest.id - 1, end=newest.id):
        changes = batch.to_arrow().select(list(_SHOWN)).sort_by([("visitor", "ascending"), ("_row_kind", "descending")])
        output.rows("the changes of the second hour", _SHOWN, [tuple(row.values()) for row in changes.to_pylist()])
