"""Tables with postponed buckets: whatever is written waits for compaction, and no reader shows it."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet import Lake
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock
from tests.property import keyed_strategies
from tests.property.table_model import Struct, plain
from tests.tiers.examples import examples


@settings(deadline=None, max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_postponed_rows_are_never_seen(data: st.DataObject) -> None:
    """Whatever is written to a table with postponed buckets, no reader shows it, and each write is a version."""
    layout = data.draw(keyed_strategies.layouts().filter(lambda layout: not layout.crosses), label="layout")
    columns = Struct(layout.columns)
    kind_column = columns.named("op") if "rowkind.field" in layout.options else None
    lake = Lake(MemoryStore(), clock=SteppingClock())
    lake.create_database("d")
    options = layout.options | data.draw(keyed_strategies.stored_options(), label="options")
    table = keyed_strategies.make_table(lake, "d.t", layout, {**options, "bucket": "-2"})
    keys = [columns.named(name) for name in layout.keys]
    written = 0
    for _ in range(data.draw(st.integers(1, 3), label="writes")):
        rows = data.draw(keyed_strategies.rows(columns, keys, kind_column, least=1), label="rows")
        if kind_column is not None:
            rows = [{**row, kind_column.identity: "+I"} for row in rows]
        lines = [{c.name: plain(row[c.identity], c.type) for c in columns.columns} for row in rows]
        made = table.write(pa.Table.from_pylist(lines, schema=table.scan().arrow_schema))
        assert made is not None
        written += len(rows)
        assert sum(file.row_count for _, file in table.files()) == written == made.total_record_count
        assert table.scan().count() == table.scan().to_arrow().num_rows == 0
        assert table.get_many([{name: lines[0][name] for name in layout.keys}]).num_rows == 0
        assert table.changes(0).num_rows == 0
