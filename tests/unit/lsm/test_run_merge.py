"""Merging streams of batches: against a dict, for all sizes of batches and steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.lsm.engine.fold import fold_groups
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.run_merge import grouped_rows, merge_runs, surviving_rows
from lakelet.model.type_parser import parse_type
from tests.tiers.examples import examples
from tests.unit.lsm.engine.column_fold import ColumnFold, Values, folded_row

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("_SEQUENCE_NUMBER", pa.int64()),
        ("_VALUE_KIND", pa.int8()),
        ("version", pa.int32()),
        ("row", pa.int64()),
    ]
)
KEY = (("k", parse_type("STRING NOT NULL")),)
VERSIONS = (("version", parse_type("INT")),)
Row = tuple[str, int, int, int | None]


def batches(rows: list[tuple[Any, ...]], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        columns = [pa.array([row[place] for row in part], SCHEMA.types[place]) for place in range(len(SCHEMA))]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def expected(runs: list[list[Row]], spec: MergeSpec) -> dict[str, int]:
    """The number of the row that counts for each key."""
    best: dict[str, tuple[Any, int, int]] = {}
    number = 0
    for run in runs:
        for key, sequence, kind, version in run:
            rank = (sequence,)
            if spec.versions:
                newer = None if version is None else -version if spec.descending else version
                rank = ((newer is not None, newer or 0), sequence)  # type: ignore[assignment]
            taken = spec.ignore_delete and kind & 1
            if not taken and (key not in best or rank >= best[key][0]):
                best[key] = (rank, kind, number)
            number += 1
    return {
        key: row
        for key, (_, kind, row) in sorted(best.items(), key=lambda item: item[0].encode())
        if not (kind & 1 and spec.drop_deletes)
    }


rows = st.tuples(
    st.sampled_from(["", "a", "aa", "b", "c", "c" * 9, "d", "long " * 20, "ü"]),
    st.integers(0, 6),
    st.sampled_from([0, 0, 1, 2, 3]),
    st.one_of(st.none(), st.integers(0, 2)),
)


@settings(max_examples=examples(200), deadline=None)
@given(
    runs=st.lists(st.lists(rows, max_size=15), min_size=1, max_size=6),
    batch_rows=st.integers(1, 6),
    step_rows=st.integers(1, 40),
    versions=st.booleans(),
    descending=st.booleans(),
    ignore_delete=st.booleans(),
    drop_deletes=st.booleans(),
    ordered=st.booleans(),
)
def test_what_comes_out_is_what_a_dict_holds(
    runs: list[list[Row]],
    batch_rows: int,
    step_rows: int,
    versions: bool,
    descending: bool,
    ignore_delete: bool,
    drop_deletes: bool,
    ordered: bool,
) -> None:
    runs = [sorted(run, key=lambda row: row[0].encode()) for run in runs]
    spec = MergeSpec(KEY, VERSIONS if versions else (), descending, ignore_delete, drop_deletes)
    wanted = list(expected(runs, spec).values())
    numbered, number = [], 0
    for run in runs:
        numbered.append([(*row, number + place) for place, row in enumerate(run)])
        number += len(run)
    streams = [batches(run, batch_rows) for run in numbered]
    merged = merge_runs(streams, spec, ordered=ordered, columns=["row"], step_rows=step_rows)
    found = [row for batch in merged for row in batch.column("row").to_pylist()]
    assert found == wanted if ordered else sorted(found) == sorted(wanted)
    tables = [pa.Table.from_batches(batches(run, 4), SCHEMA) for run in numbered]
    held = surviving_rows(tables, spec, ordered=ordered).tolist()
    assert held == (wanted if ordered else sorted(wanted))


@settings(max_examples=examples(200), deadline=None)
@given(
    runs=st.lists(st.lists(rows, max_size=15), min_size=1, max_size=6),
    batch_rows=st.integers(1, 6),
    step_rows=st.integers(1, 40),
    versions=st.booleans(),
    ignore_delete=st.booleans(),
    removes_zeros=st.booleans(),
    drop_deletes=st.booleans(),
)
def test_what_is_folded_is_what_a_dict_adds_up(
    runs: list[list[Row]],
    batch_rows: int,
    step_rows: int,
    versions: bool,
    ignore_delete: bool,
    removes_zeros: bool,
    drop_deletes: bool,
) -> None:
    runs = [sorted(run, key=lambda row: row[0].encode()) for run in runs]
    engine = ColumnFold(("row",), removes_zeros=removes_zeros)
    spec = MergeSpec(KEY, VERSIONS if versions else (), False, ignore_delete, drop_deletes, engine)
    groups: dict[str, list[tuple[Any, int, Values]]] = {}
    numbered: list[list[tuple[Any, ...]]] = []
    for number, run in enumerate(runs):
        numbered.append([])
        for place, (key, sequence, kind, version) in enumerate(run):
            value = sequence - 2
            numbered[-1].append((key, sequence, kind, version, value))
            if not (ignore_delete and kind & 1):
                newer = (version is not None, version or 0) if versions else ()
                rank = (newer, sequence, number, place)
                groups.setdefault(key, []).append((rank, kind, {"k": key, "version": version, "row": value}))
    wanted = []
    for key, members in sorted(groups.items(), key=lambda item: item[0].encode()):
        state = folded_row(engine, [(kind, row) for _, kind, row in sorted(members, key=lambda one: one[0])], ["k"])
        if state is not None or not drop_deletes:
            wanted.append((key, 0 if state is not None else 3, state))
    streams = [batches(run, batch_rows) for run in numbered]
    merged = merge_runs(streams, spec, ordered=True, step_rows=step_rows)
    found = [row for batch in merged for row in batch.to_pylist()]
    assert [(row["k"], row["_VALUE_KIND"]) for row in found] == [(key, kind) for key, kind, _ in wanted]
    for row, (_, _, state) in zip(found, wanted, strict=True):
        assert state is None or {name: row[name] for name in state} == state
    tables = [pa.Table.from_batches(batches(run, 4), SCHEMA) for run in numbered]
    held = [row for part in grouped_rows(tables, spec, 5) for row in fold_groups(part, engine, spec).to_pylist()]
    assert held == found


def plain(keys: list[str], *, first: int = 0) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.string()), pa.array(range(first, first + len(keys)), pa.int64())], names=["k", "row"]
    )


def test_without_sequences_and_kinds_the_later_run_is_newer() -> None:
    streams = [iter([plain(["a", "c"])]), iter([plain(["a", "b"], first=10)])]
    (batch,) = merge_runs(streams, MergeSpec(KEY), ordered=True)
    assert batch.column("row").to_pylist() == [10, 11, 1]
    assert batch.schema.names == ["k", "row"]


def test_runs_without_rows() -> None:
    assert list(merge_runs([iter([]), iter([])], MergeSpec(KEY), ordered=True)) == []
    streams = [iter([]), iter([plain([]), plain(["a"])]), iter([plain([])])]
    (batch,) = merge_runs(streams, MergeSpec(KEY), ordered=False)
    assert batch.to_pylist() == [{"k": "a", "row": 0}]


@pytest.mark.parametrize("ordered", [False, True])
def test_one_key_through_many_batches(ordered: bool) -> None:
    def one_key(first: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, 50, 5):
            yield plain(["same"] * 5, first=first + start)
        yield plain(["z"], first=first + 50)

    merged = merge_runs([one_key(0), one_key(100)], MergeSpec(KEY), ordered=ordered, step_rows=4)
    assert [row for batch in merged for row in batch.column("row").to_pylist()] == [149, 150]


def test_a_run_is_not_read_far_ahead() -> None:
    taken = [0, 0]

    def counted(place: int, step: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, 200_000, 1_000):
            taken[place] += 1
            yield plain([f"{key * step:010d}" for key in range(start, start + 1_000)])

    merged = merge_runs([counted(0, 1), counted(1, 1000)], MergeSpec(KEY), ordered=True, step_rows=40_000)
    assert next(merged).num_rows >= 16_384
    assert taken == [21, 21]
    assert next(merged).num_rows >= 16_384
    # The second run was hardly used up, so nothing more of it was asked for.
    assert 40 < taken[0] < 80
    assert taken[1] == 21


def test_batches_are_of_a_good_size() -> None:
    def run(place: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, 60_000, 500):
            yield plain([f"{key * 3 + place:08d}" for key in range(start, start + 500)])

    sizes = [
        batch.num_rows for batch in merge_runs([run(0), run(1), run(2)], MergeSpec(KEY), ordered=False, step_rows=3000)
    ]
    assert sum(sizes) == 180_000
    assert min(sizes[:-1]) >= 16_384
