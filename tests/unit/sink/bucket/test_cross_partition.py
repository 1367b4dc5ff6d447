"""Keys that move between partitions: whatever the order and the batches, a table reads like a dictionary of keys."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.rows.binary_row import decode_row, encode_row
from lakelet.model.commit_message import CommitMessage
from lakelet.model.row_kind import RowKind
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.sink.bucket.cross_partition import CrossPartitionAssigner, LiveKeys
from lakelet.sink.bucket.placers import Placed
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on
from tests.tiers.examples import examples
from tests.unit.sink.keyed_tables import batch_of, keyed_schema

SNAPSHOT = Snapshot(7, 0, "b", "d", "u", 1, CommitKind.APPEND, 1, 0, 0)
# Key, partition, value, and whether the row deletes.
Row = tuple[int, int | None, int, bool]
ROW = st.tuples(
    st.integers(0, 5), st.sampled_from([None, 0, 1, 2]), st.integers(0, 99), st.sampled_from([False] * 3 + [True])
)
COMMITS = st.lists(st.lists(st.lists(ROW, max_size=12), max_size=3), max_size=3)


def schema_of(engine: str, **options: str) -> TableSchema:
    return keyed_schema(("k",), ("p",), {"merge-engine": engine, "dynamic-bucket.target-row-num": "2", **options})


@dataclass
class Store:
    """A table as its buckets hold it: the newest row of each key, by partition and bucket."""

    schema: TableSchema
    buckets: dict[tuple[bytes, int], dict[int, dict[str, Any]]] = field(default_factory=dict)
    scans: int = 0

    def apply(self, placed: Placed) -> None:
        extracted = placed.extracted
        assert extracted.buckets is not None
        kinds = [0] * placed.rows.num_rows if placed.kinds is None else placed.kinds.tolist()
        rows = zip(placed.rows.to_pylist(), extracted.partition_codes, extracted.buckets.tolist(), kinds, strict=True)
        for row, code, bucket, kind in rows:
            partition = extracted.partitions[code]
            assert decode_row(partition, self.schema.partition_types) == (row["p"],)
            rows_there = self.buckets.setdefault((partition, bucket), {})
            if kind == RowKind.DELETE:
                rows_there.pop(row["k"], None)
            else:
                rows_there[row["k"]] = row

    def scan(self, wanted: pa.Table) -> Iterator[LiveKeys]:
        self.scans += 1
        assert wanted.schema.names == ["k"]
        assert len(set(wanted.column("k").to_pylist())) == wanted.num_rows
        for (partition, bucket), rows in self.buckets.items():
            yield LiveKeys(partition, bucket, batch_of(self.schema, list(rows.values())).select(["k"]))

    def counts(self) -> dict[tuple[bytes, int], int]:
        return {place: len(rows) for place, rows in self.buckets.items()}

    def rows(self) -> dict[int, tuple[Any, Any]]:
        found: dict[int, tuple[Any, Any]] = {}
        for rows in self.buckets.values():
            for key, row in rows.items():
                assert key not in found, f"key {key} stands twice"
                found[key] = (row["p"], row["v"])
        return found


def batch(schema: TableSchema, rows: list[Row]) -> tuple[pa.RecordBatch, np.ndarray]:  # type: ignore[type-arg]
    table = batch_of(schema, [{"k": key, "p": partition, "s": "", "v": value} for key, partition, value, _ in rows])
    return table, np.array([RowKind.DELETE if gone else RowKind.INSERT for *_, gone in rows], np.int8)


def write(store: Store, batches: list[list[Row]], *, announced: bool = False) -> CrossPartitionAssigner:
    schema = store.schema
    # A scan shows the table as it was before the write.
    base = Store(schema, {place: dict(rows) for place, rows in store.buckets.items()})
    home = home_on(MemoryStore())
    assigner = CrossPartitionAssigner(home, schema, SNAPSHOT, scan=base.scan, counts=base.counts())
    if announced:
        assigner.announce(batch(schema, rows)[0] for rows in batches)
        assert base.scans <= 1
    scans = base.scans
    for rows in batches:
        store.apply(assigner.assign(*batch(schema, rows)))
    assert not announced or base.scans == scans
    return assigner


@settings(max_examples=examples(120))
@given(COMMITS, st.booleans())
def test_deduplicate_shows_the_last_row_of_each_key(commits: list[list[list[Row]]], announced: bool) -> None:
    store, model = Store(schema_of("deduplicate")), {}  # type: ignore[var-annotated]
    for batches in commits:
        write(store, batches, announced=announced)
        for key, partition, value, gone in (row for rows in batches for row in rows):
            model.pop(key, None)
            if not gone:
                model[key] = (partition, value)
        assert store.rows() == model


@settings(max_examples=examples(60))
@given(COMMITS)
def test_first_row_leaves_out_rows_for_other_partitions(commits: list[list[list[Row]]]) -> None:
    store, model = Store(schema_of("first-row")), {}  # type: ignore[var-annotated]
    for batches in commits:
        kept = [[(key, partition, value, False) for key, partition, value, _ in rows] for rows in batches]
        write(store, kept)
        for key, partition, value, _ in (row for rows in kept for row in rows):
            if model.get(key, (partition, None))[0] == partition:
                model[key] = (partition, value)
        assert store.rows() == model


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
@settings(max_examples=examples(60))
@given(commits=COMMITS)
def test_merged_rows_join_the_key_where_it_stands(engine: str, commits: list[list[list[Row]]]) -> None:
    store, model = Store(schema_of(engine)), {}  # type: ignore[var-annotated]
    for batches in commits:
        kept = [[(key, partition, value, False) for key, partition, value, _ in rows] for rows in batches]
        base = Store(store.schema, {place: dict(rows) for place, rows in store.buckets.items()})
        assigner = CrossPartitionAssigner(
            home_on(MemoryStore()), store.schema, SNAPSHOT, scan=base.scan, counts=base.counts()
        )
        for rows in kept:
            store.apply(assigner.assign(*batch(store.schema, rows)))
            for key, partition, value, _ in rows:
                model[key] = (model.get(key, (partition, 0))[0], value)
        assert store.rows() == model


@settings(max_examples=examples(60))
@given(st.lists(ROW, max_size=12), st.integers(0, 12))
def test_where_batches_end_does_not_change_the_places(rows: list[Row], cut: int) -> None:
    whole, parts = Store(schema_of("deduplicate")), Store(schema_of("deduplicate"))
    write(whole, [rows])
    write(parts, [rows[:cut], rows[cut:]])
    assert {place: rows for place, rows in whole.buckets.items() if rows} == {
        place: rows for place, rows in parts.buckets.items() if rows
    }


def test_a_move_is_a_delete_in_the_old_place_and_then_the_row() -> None:
    schema = schema_of("deduplicate")
    store = Store(schema)
    write(store, [[(1, 0, 10, False)]])
    assigner = CrossPartitionAssigner(home_on(MemoryStore()), schema, SNAPSHOT, scan=store.scan)
    placed = assigner.assign(*batch(schema, [(2, 1, 5, False), (1, 1, 20, False), (1, 0, 30, False)]))
    assert placed.kinds is not None
    shown = zip(placed.rows.to_pylist(), placed.kinds.tolist(), strict=True)
    assert [(row["k"], row["p"], row["v"], RowKind(kind).short) for row, kind in shown] == [
        (2, 1, 5, "+I"),
        (1, 0, 20, "-D"),
        (1, 1, 20, "+I"),
        (1, 1, 30, "-D"),
        (1, 0, 30, "+I"),
    ]


def test_rows_that_stay_are_passed_on_as_they_are() -> None:
    schema = schema_of("deduplicate")
    assigner = CrossPartitionAssigner(home_on(MemoryStore()), schema, None)
    rows, _ = batch(schema, [(1, 0, 1, False), (2, 1, 2, False), (1, 0, 3, False)])
    placed = assigner.assign(rows)
    assert placed.rows is rows
    assert placed.kinds is None
    empty = assigner.assign(rows.slice(0, 0))
    assert empty.extracted.buckets is not None
    assert len(empty.extracted.buckets) == 0
    assert assigner.total_buckets == -1


def test_new_keys_go_where_there_is_room() -> None:
    schema = schema_of("deduplicate")
    partition = encode_row([0], schema.partition_types)
    counts = {(partition, 0): 2, (partition, 1): 1, (EMPTY_ROW, 5): 9}
    assigner = CrossPartitionAssigner(home_on(MemoryStore()), schema, None, counts=counts)
    (placed,) = assigner.place(batch(schema, [(key, 0, 0, False) for key in range(4)])[0], None)
    assert placed.extracted.buckets is not None
    assert placed.extracted.buckets.tolist() == [1, 2, 2, 3]


def test_rule_6_messages_tell_when_and_by_whom_keys_were_looked_up() -> None:
    schema, home = schema_of("deduplicate"), home_on(MemoryStore())
    message = CommitMessage(EMPTY_ROW, 0, -1, ())
    (one,) = CrossPartitionAssigner(home, schema, SNAPSHOT).complete((message,))
    (two,) = CrossPartitionAssigner(home, schema, None).complete((message,))
    assert (one.assigned_at, two.assigned_at) == (7, 0)
    assert one.assigner is not None
    assert one.assigner != two.assigner
    fresh = CrossPartitionAssigner(home, schema, SNAPSHOT, fresh=True)
    assert fresh.complete((message,)) == (message,)


def test_a_fresh_assigner_looks_nothing_up() -> None:
    schema, store = schema_of("deduplicate"), Store(schema_of("deduplicate"))
    fresh = CrossPartitionAssigner(home_on(MemoryStore()), schema, SNAPSHOT, scan=store.scan, fresh=True)
    fresh.assign(*batch(schema, [(1, 0, 1, False)]))
    assert store.scans == 0


def test_partitions_that_only_lose_rows_are_not_written() -> None:
    schema = schema_of("deduplicate")
    store = Store(schema)
    write(store, [[(1, 0, 10, False), (2, 2, 10, False)]])
    assigner = write(store, [[(1, 1, 20, False)]])
    assert assigner.written_partitions == {encode_row([1], schema.partition_types)}


def test_deletes_may_not_be_ignored_where_rows_move() -> None:
    with pytest.raises(InvalidError, match="ignore-delete"):
        CrossPartitionAssigner(home_on(MemoryStore()), schema_of("deduplicate", **{"ignore-delete": "true"}), None)
