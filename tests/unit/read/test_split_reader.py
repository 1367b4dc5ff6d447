"""Reading splits: deletion vectors, files that are missing or broken, formats side by side."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet import CorruptionError, Lake, NotFoundError, Table
from lakelet.format.index import deletion_vectors
from lakelet.format.manifest.index_manifest import encode_index_manifest
from lakelet.format.manifest.manifest_columns import EMPTY_ROW
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.data_file import DeletionVectorRange, IndexFile
from lakelet.model.manifest import EntryKind, IndexManifestEntry
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def make(store: MemoryStore, **options: str) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], options=options)


def ids(scan: Any) -> list[int]:
    found: list[int] = scan.to_arrow().column("id").to_pylist()
    return found


def data_paths(table: Table) -> list[str]:
    return [path for path, _ in table.files()]


def delete_rows(table: Table, positions: dict[str, list[int]], cardinality: bool = True) -> None:
    """Puts deletion vectors beside the newest snapshot, as another writer would."""
    home, snapshot = table.scan().home, table.latest_snapshot()
    assert snapshot is not None
    data, places = b"\x01", []
    for name, rows in positions.items():
        vector = deletion_vectors.encode(np.array(rows, np.int64))
        places.append(DeletionVectorRange(name, len(data), len(vector) - 8, len(rows) if cardinality else None))
        data += vector
    home.store.put(home.paths.index("index-x-0"), data)
    file = IndexFile("DELETION_VECTORS", "index-x-0", len(data), len(places), tuple(places))
    manifest = encode_index_manifest([IndexManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, file)], codec="null")
    home.store.put(home.paths.manifest("index-manifest-x-0"), manifest)
    from dataclasses import replace

    home.store.put(
        home.paths.snapshot(snapshot.id), encode_snapshot(replace(snapshot, index_manifest="index-manifest-x-0"))
    )


class TestDeletionVectors:
    @pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
    @pytest.mark.parametrize("cardinality", [True, False])
    def test_deleted_rows_do_not_come_out(self, store: MemoryStore, file_format: str, cardinality: bool) -> None:
        table = make(store, **{"file.format": file_format})
        table.write(pa.table({"id": range(10), "s": [str(number) for number in range(10)]}))
        table.write(pa.table({"id": range(10, 20)}))
        first, _ = (file.name for _, file in table.files())
        delete_rows(table, {first: [0, 3, 9]}, cardinality)
        kept = [number for number in range(20) if number not in (0, 3, 9)]
        assert ids(table.scan()) == kept
        assert table.scan().count() == 17
        assert ids(table.scan(where="id < 5")) == [1, 2, 4]
        assert table.scan(where="id < 5").count() == 3
        assert ids(table.scan(where="s = '3'")) == []
        assert ids(table.scan(limit=8)) == kept[:8]
        assert [row["id"] for batch in table.scan().to_batches() for row in batch.to_pylist()] == kept

    def test_vectors_are_changes(self, store: MemoryStore) -> None:
        table = make(store)
        table.write(pa.table({"id": range(10)}))
        ((_, first),) = table.files()
        table.write(pa.table({"id": [10]}))
        delete_rows(table, {first.name: [2, 3]})
        table.write(pa.table({"id": [5]}), mode="overwrite")

        def changed(start: int, end: int) -> list[tuple[str, int]]:
            return sorted((row["_row_kind"], row["id"]) for row in table.changes(start, end).to_pylist())

        assert changed(1, 2) == [("+I", 10), ("-D", 2), ("-D", 3)]
        assert changed(2, 3) == [("-D", number) for number in (0, 1, 4, 6, 7, 8, 9, 10)]

    def test_a_delete_rewrites_what_is_left(self, store: MemoryStore) -> None:
        table = make(store)
        table.write(pa.table({"id": range(10)}))
        ((_, file),) = table.files()
        delete_rows(table, {file.name: [0, 9]})
        table.delete(where="id = 5")
        assert sorted(ids(table.scan())) == [1, 2, 3, 4, 6, 7, 8]
        assert table.scan().count() == 7

    def test_a_broken_index_file_is_named(self, store: MemoryStore) -> None:
        table = make(store)
        table.write(pa.table({"id": range(10)}))
        ((_, file),) = table.files()
        delete_rows(table, {file.name: [1]})
        path = table.scan().home.paths.index("index-x-0")
        whole = store.get(path)
        store.put(path, whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(CorruptionError, match="index-x-0"):
            table.scan().to_arrow()
        store.put(path, whole[:10])
        with pytest.raises(CorruptionError, match="index-x-0"):
            table.scan().to_arrow()
        store.delete([path])
        with pytest.raises((CorruptionError, NotFoundError), match="index-x-0"):
            table.scan().to_arrow()


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
class TestBrokenFiles:
    def broken(self, store: MemoryStore, file_format: str) -> tuple[Table, str]:
        table = make(store, **{"file.format": file_format})
        for start in (0, 100, 200):
            table.write(pa.table({"id": range(start, start + 50)}))
        return table, data_paths(table)[1]

    def check(self, table: Table, name: str, kind: type[Exception], *reasons: str) -> None:
        for read in (
            table.scan().to_arrow,
            lambda: list(table.scan().to_batches()),
            table.scan(where="id >= 0").to_arrow,
        ):
            with pytest.raises(kind) as caught:
                read()
            assert name in str(caught.value)
            for reason in reasons:
                assert reason in str(caught.value)

    def test_missing(self, store: MemoryStore, file_format: str) -> None:
        table, path = self.broken(store, file_format)
        store.delete([path])
        self.check(table, path, CorruptionError, "missing", "snapshot 3")

    def test_missing_because_the_snapshot_expired(self, store: MemoryStore, file_format: str) -> None:
        table, path = self.broken(store, file_format)
        scan = table.scan()
        store.delete([path, *(scan.home.paths.snapshot(number) for number in (1, 2, 3))])
        with pytest.raises(NotFoundError, match="snapshot 3 was expired while it was read"):
            scan.to_arrow()

    def test_truncated(self, store: MemoryStore, file_format: str) -> None:
        table, path = self.broken(store, file_format)
        whole = store.get(path)
        for size in (0, 3, len(whole) // 2, len(whole) - 1):
            store.put(path, whole[:size])
            self.check(table, path, CorruptionError)

    def test_other_bytes(self, store: MemoryStore, file_format: str) -> None:
        table, path = self.broken(store, file_format)
        store.put(path, bytes(len(store.get(path))))
        self.check(table, path, CorruptionError)


def test_formats_and_schemas_side_by_side_keep_their_order(store: MemoryStore) -> None:
    table = make(store)
    wanted = []
    for index, file_format in enumerate(["parquet", "orc", "avro", "parquet", "avro", "orc"]):
        table.set_options({"file.format": file_format})
        if index == 3:
            table.add_column("n", "INT", first=True)
        table.write([{"id": index, "s": file_format}, {"id": index + 10, "s": None}])
        wanted += [index, index + 10]
    assert ids(table.scan()) == wanted
    assert ids(table.scan(where="s IS NOT NULL")) == [0, 1, 2, 3, 4, 5]
    assert table.scan(columns=["n"]).to_arrow().column("n").null_count == 12
    # A column that no older file has still gives one row per row.
    assert table.scan(columns=["n"], where="n IS NULL").count() == 12


def test_a_column_named_like_a_removed_one_does_not_read_it(store: MemoryStore) -> None:
    table = make(store)
    table.write([{"id": 1, "s": "old"}])
    table.rename_column("s", "t")
    table.add_column("s", "STRING")
    table.write([{"id": 2, "s": "new", "t": "x"}])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "t": "old", "s": None}, {"id": 2, "t": "x", "s": "new"}]
    assert ids(table.scan(where="s = 'new'")) == [2]
    assert ids(table.scan(where="t = 'old'")) == [1]
