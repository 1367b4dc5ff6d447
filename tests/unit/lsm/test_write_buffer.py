"""The write buffer: rows in order of arrival in, rows in key order with sequence numbers out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.write_buffer import WriteBuffer
from lakelet.model.type_parser import parse_type
from tests.unit.lsm.engine.column_fold import ColumnFold, Values, folded_row

SPEC = MergeSpec(key=(("id", parse_type("INT")),), drop_deletes=False)
FOLD = ColumnFold(("v",))
ONE, TWO = (b"one", 0), (b"two", 3)


def batch(*ids: int, first: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int32()), "v": pa.array(range(first, first + len(ids)))})


def rows(batches: Any) -> list[tuple[int, int, int, int]]:
    return [tuple(row.values()) for part in batches for row in part.to_pylist()]


def test_buckets_are_numbered_apart_in_order_of_arrival() -> None:
    buffer = WriteBuffer(SPEC, {ONE: 10, TWO: 0}.__getitem__)
    buffer.add(batch(5, 1, 4), None, [(ONE, np.array([0, 2])), (TWO, np.array([1]))])
    buffer.add(batch(3, 5, first=3), None, [(ONE, None)])
    drained = buffer.drain()
    assert set(drained.places) == {ONE, TWO}
    assert rows(drained.sorted(ONE, 100)) == [(12, 0, 3, 3), (11, 0, 4, 2), (13, 0, 5, 4)]
    assert rows(drained.sorted(TWO, 100)) == [(0, 0, 1, 1)]


def test_numbers_go_on_after_the_buffer_was_emptied() -> None:
    asked: list[object] = []

    def first(place: object) -> int:
        asked.append(place)
        return 7

    buffer = WriteBuffer(SPEC, first)
    buffer.add(batch(1, 1), None, [(ONE, None)])
    buffer.drain()
    assert buffer.bytes == 0
    assert not buffer.drain().places
    buffer.add(batch(2), None, [(ONE, None)])
    assert rows(buffer.drain().sorted(ONE, 100)) == [(9, 0, 2, 0)]
    assert asked == [ONE]


def test_kinds_go_with_their_rows() -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    buffer.add(batch(9, 8), None, [(ONE, None)])
    buffer.add(batch(7, 6), np.array([3, 2], np.int8), [(ONE, None)])
    assert rows(buffer.drain().sorted(ONE, 100)) == [(3, 2, 6, 1), (2, 3, 7, 0), (1, 0, 8, 1), (0, 0, 9, 0)]


def test_batches_have_the_size_asked_for() -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    buffer.add(batch(*range(10, 0, -1)), None, [(ONE, None)])
    drained = buffer.drain()
    assert [part.num_rows for part in drained.sorted(ONE, 4)] == [4, 4, 2]
    assert [row[2] for row in rows(drained.sorted(ONE, 4))] == list(range(1, 11))


def test_rows_in_key_order_are_not_copied() -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    source = batch(*range(100))
    buffer.add(source, None, [(ONE, None)])
    (part,) = buffer.drain().sorted(ONE, 1000)
    assert part.column("v").buffers()[1].address == source.column("v").buffers()[1].address


def test_rows_as_they_came() -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    buffer.add(batch(5, 1, 5), np.array([0, 1, 3], np.int8), [(ONE, np.array([0, 2])), (TWO, np.array([1]))])
    assert rows(buffer.drain().as_they_came(ONE, 100, -1)) == [(-1, 0, 5, 0), (-1, 3, 5, 2)]


def test_bytes_are_those_of_the_rows_alone() -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    buffer.add(batch(*range(1000)).slice(10, 5), None, [(ONE, None)])
    assert 5 * (4 + 8) < buffer.bytes < 1000 * 4
    buffer.clear()
    assert buffer.bytes == 0
    assert not buffer.drain().places


@pytest.mark.parametrize("parts", [1, 3])
def test_nan_columns(parts: int) -> None:
    buffer = WriteBuffer(SPEC, lambda place: 0)
    for number in range(parts):
        x, y = pa.array([1.0, float("nan")]), pa.array([None, 1.0])
        made = pa.record_batch({"id": pa.array([number, number + 9], pa.int32()), "x": x, "y": y})
        buffer.add(made, None, [(ONE, None)])
    assert buffer.drain().nan_columns == {"x"}


@given(
    batches=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0, 1, 3]), st.none() | st.integers(-3, 3)),
            min_size=1,
            max_size=6,
        ),
        min_size=1,
        max_size=4,
    ),
    versions=st.booleans(),
    batch_rows=st.integers(1, 8),
)
def test_a_fold_engine_folds_the_rows_of_each_key(
    batches: list[list[tuple[int, int, int, int | None]]], versions: bool, batch_rows: int
) -> None:
    spec = replace(SPEC, engine=FOLD, versions=(("version", parse_type("INT")),) if versions else ())
    buffer = WriteBuffer(spec, lambda place: 100)
    model: dict[int, list[tuple[int, int, int, Values]]] = {}
    arrived = 100
    for part in batches:
        columns = {
            "id": pa.array([row[0] for row in part], pa.int32()),
            "version": pa.array([row[1] for row in part], pa.int32()),
            "v": pa.array([row[3] for row in part], pa.int32()),
        }
        kinds = np.array([row[2] for row in part], np.int8)
        # The row in the middle goes to another bucket.
        own = np.delete(np.arange(len(part)), len(part) // 2)
        buffer.add(pa.record_batch(columns), kinds, [(ONE, own), (TWO, np.array([len(part) // 2]))])
        for number in own.tolist():
            key, version, kind, value = part[number]
            values = {"id": key, "version": version, "v": value}
            model.setdefault(key, []).append((version if versions else 0, arrived, kind, values))
            arrived += 1
    wanted = []
    for key in sorted(model):
        members = sorted(model[key], key=lambda one: one[:2])
        state = folded_row(FOLD, [(kind, values) for _, _, kind, values in members], ["id"])
        assert state is not None
        wanted.append((members[-1][1], 0, key, state["version"], state["v"]))
    drained = buffer.drain()
    assert rows(drained.sorted(ONE, batch_rows)) == wanted
    repeated = sum(len(members) - 1 for members in model.values())
    assert len(drained.repeated(ONE, 100)) == repeated
