"""The pipeline of the demo: returned orders arrive as files, and are added to a table that a view joins with the orders."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence

from lakelet.cli.output.output import Output
from lakelet.pipeline import Graph, Pipeline, parse_pipeline
from lakelet.pipeline.picture.terminal import terminal

_TEXT = """\
name: demo
database: {database}
sources:
  arrived: {{format: json, path: {folder}, schema: "order_id BIGINT, reason STRING"}}
tables:
  returns: {{source: arrived, expectations: {{has_reason: {{condition: reason IS NOT NULL, action: quarantine}}}}}}
materialized_views:
  returned:
    sql: |
      SELECT o.country, count(*) AS returns, sum(o.amount) AS amount
      FROM returns r JOIN orders o ON o.order_id = r.order_id GROUP BY o.country
"""
# The orders that come back on the first and on the second day, and one without a reason.
_DAYS = (range(10, 40), range(40, 60))
_COLUMNS = ("flow", "outcome", "rows", "unmet expectations")

# Runs a pipeline and returns a row for each flow.
Runner = Callable[[Pipeline], Sequence[Sequence[object]]]


def show_pipeline(run: Runner, database: str, output: Output) -> None:
    """Runs the pipeline for two days; the second run takes what is new."""
    with tempfile.TemporaryDirectory(prefix="lakelet-demo-") as folder:
        text = _TEXT.format(database=database, folder=json.dumps(folder))
        # A table of the database that the pipeline does not fill is named with the database.
        pipeline = parse_pipeline(text.replace("JOIN orders", f"JOIN {database}.orders"), "demo.yaml")
        if not output.for_programs:
            print(terminal(Graph.of(pipeline)), end="")
        for number, orders in enumerate(_DAYS, 1):
            lines = [f'{{"order_id": {order}, "reason": "too small"}}\n' for order in orders]
            with open(os.path.join(folder, f"day-{number}.json"), "w", encoding="utf-8") as file:
                file.writelines([*lines, f'{{"order_id": {number}}}\n'])
            output.rows(f"run {number}", _COLUMNS, run(pipeline))
