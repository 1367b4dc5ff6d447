"""Which buckets lookups read, and that no lookup reads files of another snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import NotFoundError
from lakelet.format.rows.binary_row_columns import bucket_of, hash_rows
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.snapshot import Snapshot
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.testing.instrumented_stores import CountingStore
from tests.unit.scan.keyed_manifests import KeyedManifests


def schema(key: Sequence[str] = ("id",), partition: Sequence[str] = (), **options: str) -> TableSchema:
    fields = [Field(0, name, parse_type(text)) for name, text in {"id": "BIGINT", "day": "INT", "v": "INT"}.items()]
    named = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return new_schema(
        fields, partition_keys=partition, primary_keys=key, options={"bucket": "2", **named}, comment=None, time_ms=0
    )


def planned(table: KeyedManifests, snapshot: Snapshot, keys: Mapping[str, Sequence[Any]]) -> dict[str, list[int]]:
    """The places of the keys that are looked for in each file."""
    asked = pa.table({name: pa.array(column, to_arrow(table.schema.field(name).type)) for name, column in keys.items()})
    found: dict[str, list[int]] = {}
    for split, places in table.planner().plan_keys(snapshot, asked):
        assert split.snapshot_id == snapshot.id
        for file in split.files:
            assert file.name not in found
            found[file.name] = sorted(places.tolist())
    return found


def homes(keys: Sequence[int], buckets: int) -> list[int]:
    found: list[int] = bucket_of(hash_rows([pa.array(keys, pa.int64())], [parse_type("BIGINT")]), buckets).tolist()
    return found


def in_bucket(table: KeyedManifests, bucket: int, buckets: int, name: str, **more: Any) -> ManifestEntry:
    return table.entry(name, [0], [99], bucket=bucket, buckets=buckets, **more)


def test_fixed_buckets_are_told_by_the_hash() -> None:
    table = KeyedManifests(schema(bucket="3"))
    snapshot = table.commit(*(in_bucket(table, b, 3, f"{b}{run}") for b in range(3) for run in "xy"))
    keys = list(range(20))
    expected = {f"{b}{run}": [k for k in keys if homes(keys, 3)[k] == b] for b in range(3) for run in "xy"}
    assert planned(table, snapshot, {"id": keys}) == expected
    only = homes([7], 3)[0]
    assert planned(table, snapshot, {"id": [7]}) == {f"{only}x": [0], f"{only}y": [0]}
    assert planned(table, snapshot, {"id": []}) == {}


def test_files_of_two_numbers_of_buckets_are_looked_up_by_each() -> None:
    table = KeyedManifests(schema())
    snapshot = table.commit(
        *(in_bucket(table, b, 2, f"old{b}") for b in range(2)),
        *(in_bucket(table, b, 5, f"new{b}") for b in range(2, 5)),
    )
    keys = list(range(30))
    found = planned(table, snapshot, {"id": keys})
    for key, old, new in zip(keys, homes(keys, 2), homes(keys, 5), strict=True):
        assert key in found[f"old{old}"]
        assert new < 2 or key in found[f"new{new}"]


@pytest.mark.parametrize("bucket", ["-1", "-2"])
def test_where_the_hash_does_not_tell_all_buckets_are_searched(bucket: str) -> None:
    table = KeyedManifests(replace(schema(), options={"bucket": bucket}))
    snapshot = table.commit(*(in_bucket(table, b, int(bucket), str(b)) for b in range(3)))
    assert planned(table, snapshot, {"id": [5, 6]}) == {"0": [0, 1], "1": [0, 1], "2": [0, 1]}


def test_only_the_partitions_of_the_keys_are_searched() -> None:
    table = KeyedManifests(schema(["id", "day"], ["day"], bucket="1"))
    snapshot = table.commit(*(table.entry(f"d{day}", [0], [9], partition=[day]) for day in (1, 2, 3)))
    assert planned(table, snapshot, {"id": [5, 6, 7, 8], "day": [3, 1, 3, 9]}) == {"d1": [1], "d3": [0, 2]}


def test_a_key_without_its_partition_is_searched_in_all() -> None:
    table = KeyedManifests(schema(["id"], ["day"], bucket="-1"))
    snapshot = table.commit(
        *(table.entry(f"d{day}", [0], [9], partition=[day], bucket=day, buckets=-1) for day in (1, 2))
    )
    assert planned(table, snapshot, {"id": [5, 6]}) == {"d1": [0, 1], "d2": [0, 1]}


def test_what_scans_do_not_see_lookups_do_not_see() -> None:
    table = KeyedManifests(schema(bucket="1", deletion__vectors_enabled="true"))
    table.vectors = {"b": 1}
    snapshot = table.commit(
        table.entry("a", [0], [9]), table.entry("b", [0], [9], level=1), table.entry("c", [0], [9], bucket=-2)
    )
    assert planned(table, snapshot, {"id": [1]}) == {"b": [0]}
    ((split, _),) = table.planner().plan_keys(snapshot, pa.table({"id": [1]}))
    assert [vector and vector.place.cardinality for vector in split.deletion_vectors] == [1]


def test_an_empty_table_has_nothing_to_search() -> None:
    table = KeyedManifests(schema(bucket="1"))
    assert planned(table, table.commit(), {"id": [1]}) == {}


class TestCaching:
    @pytest.fixture
    def store(self) -> CountingStore:
        return CountingStore(MemoryStore())

    @pytest.fixture
    def table(self, store: CountingStore) -> KeyedManifests:
        return KeyedManifests(schema(bucket="1"), TableHome(store, TablePaths.of("d", "t")))

    def test_a_snapshot_is_read_once_and_the_next_one_only_where_it_is_new(
        self, table: KeyedManifests, store: CountingStore
    ) -> None:
        for number in range(5):
            snapshot = table.commit(table.entry(str(number), [0], [9]))
        before = store.counts()["get"]
        assert len(planned(table, snapshot, {"id": [1]})) == 5
        # Two manifest lists and five manifests.
        assert store.counts()["get"] == before + 7
        assert len(planned(table, snapshot, {"id": [2]})) == 5
        assert store.counts()["get"] == before + 7
        snapshot = table.commit(table.entry("5", [0], [9]), table.entry("0", [0], [9], kind=EntryKind.DELETE))
        assert set(planned(table, snapshot, {"id": [1]})) == {"1", "2", "3", "4", "5"}
        assert store.counts()["get"] == before + 10

    def test_rule_10_an_id_used_again_after_a_rollback_is_another_snapshot(self, table: KeyedManifests) -> None:
        table.commit(table.entry("a", [0], [9]))
        first = table.commit(table.entry("b", [0], [9]))
        assert set(planned(table, first, {"id": [1]})) == {"a", "b"}
        table.manifests.pop()
        table.snapshots = 1
        again = table.commit(table.entry("c", [0], [9]))
        assert again.id == first.id
        assert set(planned(table, again, {"id": [1]})) == {"a", "c"}
        assert set(planned(table, first, {"id": [1]})) == {"a", "b"}

    def test_a_snapshot_that_expired_is_named(self, table: KeyedManifests, store: CountingStore) -> None:
        snapshot = table.commit(table.entry("a", [0], [9]))
        paths = table.home.paths
        store.delete([paths.manifest(snapshot.base_manifest_list), paths.manifest(snapshot.delta_manifest_list)])
        with pytest.raises(NotFoundError, match=r"snapshot 1 was expired"):
            planned(table, snapshot, {"id": [1]})

    def test_threads_may_ask_at_once(self, table: KeyedManifests) -> None:
        from concurrent.futures import ThreadPoolExecutor

        snapshots = [table.commit(table.entry(str(number), [0], [9])) for number in range(4)]
        with ThreadPoolExecutor(4) as pool:
            asked = [snapshots[number] for number in np.arange(80) % 4]
            found = list(pool.map(lambda snapshot: len(planned(table, snapshot, {"id": [1]})), asked))
        assert found == [snapshot.id for snapshot in asked]
