"""A table that is published as an Iceberg table: stopped at any storage call, its readers see a whole version of it,
and the next commit publishes what was missed."""

from __future__ import annotations

import json

import pytest

from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.format.avro.decode import decode
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import CrashStore, SimulatedCrash
from tests.crash.warehouse import TABLE, copied, home_on, lake_on, prepared

FOLDER = "iceberg/d/t/metadata"
CHANGES = ("put", "put_if_absent", "delete", "sync", "open_output")
OPTIONS = {
    "metadata.iceberg.storage": "hadoop-catalog",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "2",
}
VECTORS = {
    **OPTIONS,
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}


def begin(lake: object, options: dict[str, str] = OPTIONS) -> None:
    lake.create_database("d")  # type: ignore[attr-defined]
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("v", "INT")], options=options)  # type: ignore[attr-defined]
    for id_ in range(2):
        table.write([{"id": id_, "v": id_}])


def begin_with_vectors(lake: object) -> None:
    begin(lake, VECTORS)
    table = lake.table(TABLE)  # type: ignore[attr-defined]
    table.write([{"id": 100, "v": 1}, {"id": 101, "v": 1}])
    table.delete(where="id = 100")


def published_rows(store: ObjectStore) -> int | None:
    """The rows of the published table, all of whose metadata and data files are there; None where none is published."""
    if store.head(f"{FOLDER}/version-hint.text") is None:
        return None
    number = store.get(f"{FOLDER}/version-hint.text").decode()
    metadata = json.loads(store.get(f"{FOLDER}/v{number}.metadata.json"))
    root = metadata["location"].removesuffix("d.db/t")

    def named(location: str) -> str:
        assert location.startswith(root)
        return location.removeprefix(root)

    total = deleted = 0
    newest = metadata["snapshots"][-1]
    path = named(newest["manifest-list"])
    for manifest in decode(store.get(path), path=path).to_pylist():
        path = named(manifest["manifest_path"])
        for entry in decode(store.get(path), path=path).to_pylist():
            if entry["status"] != 2:
                file = entry["data_file"]
                assert store.head(named(file["file_path"])) is not None
                if file["content"] == 0:
                    total += file["record_count"]
                else:
                    assert store.head(named(file["referenced_data_file"])) is not None
                    deleted += file["record_count"]
    assert total == int(newest["summary"]["total-records"])
    assert deleted == int(newest["summary"]["total-position-deletes"])
    return total - deleted


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.deep), True])
@pytest.mark.parametrize("vectors", [False, True], ids=["files", "vectors"])
def test_readers_see_a_whole_version_whenever_a_writer_dies(vectors: bool, after: bool) -> None:
    start = prepared(begin_with_vectors if vectors else begin)
    more = int(vectors)
    call = 0
    while True:
        call += 1
        store = copied(start)
        # Published anew for the copy, which is elsewhere, so that what is stopped continues a version.
        lake_on(store, "before").table(TABLE).write([{"id": 3, "v": 3}])
        crashing = CrashStore(store, crash_at=call, after=after, only=lambda name, _: name in CHANGES)
        try:
            table = lake_on(crashing, "run").table(TABLE)
            table.write([{"id": 10, "v": 1}])
            table.delete(where="id = 1")
        except SimulatedCrash:
            pass
        if not crashing.crashed:
            break
        assert published_rows(store) in (3 + more, 4 + more), (call, crashing.struck)
        table = lake_on(store, "next").table(TABLE)
        table.write([{"id": 20, "v": 1}])
        assert published_rows(store) == table.scan().to_arrow().num_rows, (call, crashing.struck)
        snapshot = latest_snapshot(home_on(store))
        assert snapshot is not None
        assert store.get(f"{FOLDER}/version-hint.text").decode() == str(snapshot.id)
    assert call > 20
    assert published_rows(store) == 3 + more
