"""Crashes of UPDATE and MERGE, alone and against a concurrent commit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet.catalog.lake import Lake
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.storage.decorated import DecoratedStore
from lakelet.table import Table
from lakelet.table.change.looked_up_change import LookedUpChange
from lakelet.table.change.row_changes import RowChanges, prepare_changes
from lakelet.table.read.located_rows import FILE, ROW, LocatedRows
from tests.crash.commit.test_crash import crash_everywhere
from tests.crash.operations import USER, Action, Operation
from tests.crash.warehouse import TABLE, CountedIds, lake_on, prepared
from tests.unit.hooked_store import HookedStore


def _merge(schema: TableSchema, snapshot: Snapshot | None, located: LocatedRows) -> Iterator[RowChanges]:
    """Row 1 goes to partition z, row 2 goes, row 20 comes unless it is there."""
    found = pa.Table.from_batches(located.read(), located.schema)
    moved = found.filter(pc.equal(found.column("id"), 1))
    gone = found.filter(pc.equal(found.column("id"), 2))
    columns = arrow_schema(schema.fields)

    def batch(table: pa.Table) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [table.column(name).combine_chunks() for name in columns.names], schema=columns
        )

    new = {"id": 20, "p": "z", "v": 1}
    there = pc.any(pc.equal(found.column("id"), 20)).as_py()
    coming = pa.RecordBatch.from_pylist([] if there else [{name: new[name] for name in columns.names}], columns)
    if schema.primary_keys:
        yield RowChanges(batch(gone), np.full(gone.num_rows, RowKind.DELETE, np.int8))
        place = moved.column_names.index("v")
        changed = moved.set_column(place, "v", pc.add(moved.column("v"), 100))
        yield RowChanges(batch(changed), np.full(moved.num_rows, RowKind.UPDATE_AFTER, np.int8))
        yield RowChanges(coming, np.full(coming.num_rows, RowKind.INSERT, np.int8))
        return
    touched = pa.concat_tables([moved, gone])
    place = moved.column_names.index("p")
    changed = moved.set_column(place, "p", pa.array(["z"] * moved.num_rows, pa.string()))
    yield RowChanges(
        batch(changed), None, touched.column(FILE).to_numpy().astype(np.int32), touched.column(ROW).to_numpy()
    )
    yield RowChanges(coming)


def _change(table: Table) -> object:
    prepare = prepare_changes(table.home, _merge)
    return LookedUpChange(table.home, table.new_commit(USER, 7), prepare, rests_on_all=True).run()


def _run(lake: Lake) -> object:
    return _change(lake.table(TABLE))


def _rival(lake: Lake) -> object:
    """Changes row 1 and brings row 20, which our change then finds."""
    rows = [{"id": 20, "p": "z", "v": 7}] + (
        [{"id": 1, "p": "a", "v": 50}] if lake.table(TABLE).schema.primary_keys else []
    )
    return lake.table(TABLE).write(rows, commit_user="rival", commit_identifier=1)


def _raced(lake: Lake) -> object:
    """Our change, with the rival before our snapshot; crashes pass the rival by."""
    hooked = HookedStore(lake._store)
    hooked.when = lambda call, path: call == "put" and "manifest-list" in path

    def step_in() -> None:
        store = lake._store._store if isinstance(lake._store, DecoratedStore) else lake._store
        _rival(Lake(store, clock=lake._clock, ids=CountedIds("rival")))

    hooked.after = step_in
    return _run(Lake(hooked, clock=lake._clock, ids=lake._ids))


def _filled(**arguments: Any) -> Action:
    def fill(lake: Lake) -> None:
        lake.create_database("d")
        table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")], **arguments)
        table.write([{"id": number, "p": "ab"[number % 2], "v": number} for number in (1, 2, 3)])
        table.write([{"id": 4, "p": "a", "v": 4}])

    return fill


_KEYED: dict[str, Any] = {"primary_key": ["id", "p"], "partitioned_by": ["p"]}
OPERATIONS = (
    Operation("append", _filled(partitioned_by=["p"]), _run),
    Operation("dynamic", _filled(**_KEYED), _run),
    Operation("append_again", _filled(), _raced, between=(_rival,)),
    Operation("fixed_again", _filled(**_KEYED, options={"bucket": "1"}), _raced, between=(_rival,)),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_crash_at_any_call_leaves_all_or_nothing(operation: Operation) -> None:
    crash_everywhere(operation, prepared(operation.prepare))


def test_the_rival_comes_in() -> None:
    """Otherwise the races above would be none."""
    for operation in OPERATIONS[-2:]:
        store = prepared(operation.prepare)
        operation.run(lake_on(store))
        found = {row["id"]: row["v"] for row in lake_on(store).table(TABLE).scan().to_arrow().to_pylist()}
        assert found[20] == 7
        assert sorted(found) == [1, 3, 4, 20]
