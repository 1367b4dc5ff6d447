"""Tables whose rows get other buckets again and again hold what the model holds.

One table has fixed buckets and is rescaled, now and then one partition after the other; one has postponed buckets and shows its
rows when it is compacted. Both take the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet import InvalidError, Lake, Table
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock
from tests.property import keyed_strategies
from tests.property.keyed_model import KeyedModel, same, shown
from tests.property.table_model import Row, Struct, plain
from tests.tiers.examples import examples

_KINDS = ["+I", "+U", "-D", "-U"]


@settings(deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_stay_the_same_in_whatever_buckets(data: st.DataObject) -> None:
    layout = data.draw(keyed_strategies.layouts().filter(lambda layout: not layout.crosses), label="layout")
    columns = Struct(layout.columns)
    keys = [columns.named(name) for name in layout.keys]
    kind_column = columns.named("op") if "rowkind.field" in layout.options else None
    model = KeyedModel(
        columns,
        layout.partition_keys,
        keys=keys,
        sequence=[columns.named(name) for name in layout.sequence],
        descending=layout.options.get("sequence.field.sort-order") == "descending",
        ignored=layout.ignored,
    )
    lake = Lake(MemoryStore(), clock=SteppingClock())
    lake.create_database("d")
    fixed, waiting = (
        keyed_strategies.make_table(lake, name, layout, options)
        for name, options in (
            ("d.fixed", layout.options | data.draw(keyed_strategies.stored_options()) | {"bucket": "2"}),
            ("d.waiting", layout.options | data.draw(keyed_strategies.stored_options()) | {"bucket": "-2"}),
        )
    )
    lake.table("d.waiting").set_options({"postpone.default-bucket-num": data.draw(st.sampled_from(["1", "3"]))})
    for _ in range(data.draw(st.integers(1, 4), label="steps")):
        rows = data.draw(keyed_strategies.rows(columns, keys, kind_column, least=1), label="rows")
        # A delete that compaction has dropped is forgotten, and a row with a lesser sequence would come back.
        kinds = None
        if kind_column is not None:
            rows = [{**row, kind_column.identity: "+I"} for row in rows]
        elif not layout.sequence:
            kinds = [data.draw(st.sampled_from(_KINDS)) for _ in rows]
        for table in (fixed, waiting):
            _write(table, columns, rows, kinds)
        model.apply(rows, kinds)
        if data.draw(st.booleans(), label="rescale"):
            fixed.rescale(data.draw(st.integers(1, 5), label="buckets"))
        if data.draw(st.booleans(), label="compact"):
            waiting.compact(full=data.draw(st.booleans(), label="full"))
            same(shown(waiting.scan().to_arrow(), columns), model.shown())
            if data.draw(st.booleans(), label="rescale the postponed"):
                waiting.rescale(data.draw(st.integers(1, 4), label="buckets of partitions"))
        same(shown(fixed.scan().to_arrow(), columns), model.shown())
    waiting.compact()
    for table in (fixed, waiting):
        same(shown(table.scan().to_arrow(), columns), model.shown())
        assert table.scan().count() == len(model.live)
        wanted = [{column.name: plain(row[column.identity], column.type) for column in keys} for row in model.live]
        if wanted:
            assert table.get_many(wanted).num_rows == len(wanted)


@settings(deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_partitions_are_rescaled_one_by_one(data: st.DataObject) -> None:
    """A dict is the model. A partition that is left behind is read, and refuses rows until its turn comes."""
    lake = Lake(MemoryStore(), clock=SteppingClock())
    lake.create_database("d")
    extra = data.draw(st.sampled_from([{}, {"deletion-vectors.enabled": "true"}, {"write-only": "true"}]))
    columns = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
    table = lake.create_table(
        "d.t", columns, primary_key=["id", "p"], partitioned_by=["p"], options={"bucket": "2", **extra}
    )
    model: dict[tuple[str, int], int] = {}
    numbers: dict[str, int] = {}
    buckets = 2
    for step in range(data.draw(st.integers(2, 8), label="steps")):
        action = data.draw(st.sampled_from(["write", "write", "rescale", "compact"]), label="action")
        partition = data.draw(st.sampled_from("abc"), label="partition")
        if action == "write":
            ids = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True), label="ids")
            rows = pa.table({"id": ids, "p": [partition] * len(ids), "v": [step] * len(ids)})
            if numbers.get(partition, buckets) != buckets:
                with pytest.raises(InvalidError, match="rescale or overwrite them first"):
                    table.write(rows)
                continue
            table.write(rows)
            model |= {(partition, id_): step for id_ in ids}
            numbers[partition] = buckets
        elif action == "rescale":
            buckets = data.draw(st.integers(1, 4), label="buckets")
            alone = data.draw(st.booleans(), label="one partition")
            table.rescale(buckets, {"p": partition} if alone else None)
            numbers |= {p: buckets for p in numbers if p == partition or not alone}
        else:
            table.compact(full=data.draw(st.booleans(), label="full"))
        if not extra.get("write-only"):
            found = table.scan().to_arrow().to_pylist()
            assert {(row["p"], row["id"]): row["v"] for row in found} == model
            assert len(found) == len(model)
    assert {(row["p"], row["id"]): row["v"] for row in table.scan().to_arrow().to_pylist()} == model


def _write(table: Table, columns: Struct, rows: Sequence[Row], kinds: list[str] | None) -> None:
    lines: list[dict[str, Any]] = [{c.name: plain(row[c.identity], c.type) for c in columns.columns} for row in rows]
    table.write(pa.Table.from_pylist(lines, schema=table.scan().arrow_schema), kinds=kinds)
