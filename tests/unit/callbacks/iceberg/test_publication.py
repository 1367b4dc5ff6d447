"""A table is published as an Iceberg table: which files there are, what is caught up, and what is never touched."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, UnavailableError
from lakelet.format.avro.decode import decode
from lakelet.storage.memory import MemoryStore
from lakelet.table.table import Table
from tests.crash.warehouse import lake_on

STORAGE = "metadata.iceberg.storage"
REST = "metadata.iceberg.rest.uri"
FOLDER = "iceberg/d/t/metadata"
HINT = f"{FOLDER}/version-hint.text"


class Flaky(MemoryStore):
    """A store that refuses to write Iceberg manifests while it is told to."""

    broken = False

    def put(self, path: str, data: bytes, *, deferred: bool = False) -> None:
        if self.broken and path.endswith(".avro") and path.startswith("iceberg/"):
            raise UnavailableError(f"{path}: the store is silent")
        super().put(path, data, deferred=deferred)


@pytest.fixture
def store() -> Flaky:
    return Flaky()


@pytest.fixture
def lake(store: Flaky) -> Lake:
    made = lake_on(store)
    made.create_database("d")
    return made


def table_of(lake: Lake, name: str = "d.t", *, keyed: bool = False, **options: str) -> Table:
    settings = {STORAGE: "hadoop-catalog", **options}
    keys = {"primary_key": ["id"]} if keyed else {}
    if keyed:
        settings.setdefault("bucket", "1")
    return lake.create_table(name, [("id", "BIGINT"), ("s", "STRING")], options=settings, **keys)


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": id_, "s": f"s{id_}"} for id_ in ids]


def published(store: MemoryStore) -> dict[str, Any]:
    """The metadata that the hint names."""
    number = store.get(HINT).decode()
    found: dict[str, Any] = json.loads(store.get(f"{FOLDER}/v{number}.metadata.json"))
    assert found["current-snapshot-id"] == int(number)
    return found


def total(store: MemoryStore) -> int:
    """The rows of the newest Iceberg snapshot."""
    return int(published(store)["snapshots"][-1]["summary"]["total-records"])


def names(store: MemoryStore, folder: str = FOLDER) -> list[str]:
    return [info.path.rsplit("/", 1)[-1] for info in store.list(folder)]


def test_each_commit_is_published(store: Flaky, lake: Lake) -> None:
    table = table_of(lake)
    assert names(store) == []
    table.write(rows(1, 2))
    table.write(rows(3))
    found = published(store)
    assert [one["snapshot-id"] for one in found["snapshots"]] == [1, 2]
    assert found["snapshots"][1]["parent-snapshot-id"] == 1
    assert total(store) == 3
    assert found["location"] == f"{store.location}/d.db/t"
    assert [name for name in names(store) if name.startswith("v")] == ["v2.metadata.json", "version-hint.text"]


def test_older_metadata_files_stay_as_asked(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, **{"metadata.iceberg.previous-versions-max": "2", "write-only": "true"})
    for id_ in range(5):
        table.write(rows(id_))
    assert [name for name in names(store) if name.endswith(".json")] == [f"v{n}.metadata.json" for n in (3, 4, 5)]
    table.set_options({"metadata.iceberg.delete-after-commit.enabled": "false"})
    for id_ in range(5):
        table.write(rows(id_))
    assert len([name for name in names(store) if name.endswith(".json")]) == 8


def test_a_failure_fails_no_commit_and_is_caught_up(store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(lake)
    table.write(rows(1))
    store.broken = True
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        table.write(rows(2))
        table.write(rows(3))
    assert "the store is silent" in caplog.text
    assert published(store)["current-snapshot-id"] == 1
    store.broken = False
    table.write(rows(4))
    assert [one["snapshot-id"] for one in published(store)["snapshots"]] == [1, 4]
    assert total(store) == 4


def test_a_rollback_is_published_and_its_ids_are_not_confused(store: Flaky, lake: Lake) -> None:
    table = table_of(lake)
    for id_ in range(4):
        table.write(rows(id_))
    uuid = published(store)["table-uuid"]
    table.rollback(2)
    assert total(store) == 2
    assert [name for name in names(store) if name.endswith(".json")] == ["v2.metadata.json"]
    table.write(rows(7, 8, 9))
    assert published(store)["current-snapshot-id"] == 3
    assert total(store) == 5
    assert published(store)["table-uuid"] != uuid


def test_a_rollback_that_could_not_be_published_is_caught_up(store: Flaky, lake: Lake) -> None:
    table = table_of(lake)
    for id_ in range(4):
        table.write(rows(id_))
    store.broken = True
    table.rollback(2)
    assert published(store)["current-snapshot-id"] == 4
    store.broken = False
    table.write(rows(7, 8, 9))
    assert published(store)["current-snapshot-id"] == 3
    assert total(store) == 5
    assert [name for name in names(store) if name.endswith(".json")] == ["v3.metadata.json"]


def test_only_the_top_level_of_a_keyed_table_is_published(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, keyed=True)
    table.write(rows(1, 2))
    table.write(rows(2, 3))
    assert total(store) == 0
    table.compact(full=True)
    assert total(store) == 3
    table.delete(where="id = 1")
    assert total(store) == 3
    table.compact(full=True)
    assert total(store) == 2


def test_fewer_levels_never_publish_a_level_in_between(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, keyed=True)
    table.write(rows(*range(50)))
    table.compact(full=True)
    assert total(store) == 50
    table.set_options({"num-sorted-run.compaction-trigger": "2"})
    table.write(rows(*range(3)))
    table.write(rows(*range(3)))
    assert total(store) == 50
    assert published(store)["snapshots"][-1]["summary"]["lakelet.published-levels"] in ("mixed", "2")
    table.compact(full=True)
    assert total(store) == 50


def test_tags_follow(store: Flaky, lake: Lake) -> None:
    table = table_of(lake)
    table.write(rows(1))
    table.tags.create("first")
    assert published(store)["refs"]["first"]["snapshot-id"] == 1
    table.write(rows(2))
    assert published(store)["refs"]["first"] == {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 2**63 - 1}
    table.tags.rename("first", "one")
    assert set(published(store)["refs"]) == {"one"}
    table.tags.delete("one")
    assert published(store)["refs"] == {}


def test_expired_snapshots_go_but_for_tagged_ones(store: Flaky, lake: Lake) -> None:
    retained = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "compaction.min.file-num": "100"}
    table = table_of(lake, **retained)
    for id_ in range(6):
        table.write(rows(id_))
        if id_ == 1:
            table.tags.create("second")
    found = published(store)
    assert [one["snapshot-id"] for one in found["snapshots"]] == [2, 5, 6]
    lists = {one["manifest-list"].rsplit("/", 1)[-1] for one in found["snapshots"]}
    assert {name for name in names(store) if name.startswith("snap-")} == lists


VECTORS = {
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}


def summary(store: MemoryStore) -> tuple[int, int, int]:
    """Rows, deletion vectors and deleted rows of the newest Iceberg snapshot."""
    found = published(store)["snapshots"][-1]["summary"]
    return int(found["total-records"]), int(found["total-delete-files"]), int(found["total-position-deletes"])


def test_superseded_rows_of_a_keyed_table_are_published_as_vectors(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, keyed=True, **VECTORS)
    table.write(rows(*range(2000)))
    table.compact(full=True)
    table.write(rows(2, 3, 2000))
    assert summary(store) == (2003, 1, 2)
    table.delete(where="id = 4")
    assert summary(store)[0] - summary(store)[2] == 2000
    table.compact(full=True)
    assert summary(store) == (2000, 0, 0)
    assert published(store)["format-version"] == 3


def test_each_row_gets_a_number_once(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, **VECTORS, **{"metadata.iceberg.compaction.max.file-num": "2"})
    for id_ in range(6):
        table.write(rows(2 * id_, 2 * id_ + 1))
    table.delete(where="id = 3")
    found = published(store)
    assert found["next-row-id"] >= 12
    snapshots = found["snapshots"]
    assert [one["first-row-id"] for one in snapshots[1:]] == [
        one["first-row-id"] + one["added-rows"] for one in snapshots[:-1]
    ]
    path = snapshots[-1]["manifest-list"].removeprefix(f"{store.location}/")
    numbers: list[int] = []
    for manifest in decode(store.get(path), path=path).to_pylist():
        own = manifest["manifest_path"].removeprefix(f"{store.location}/")
        first = manifest["first_row_id"]
        for entry in decode(store.get(own), path=own).to_pylist():
            file = entry["data_file"]
            if manifest["content"] == 0 and entry["status"] != 2:
                if file["first_row_id"] is None:
                    file["first_row_id"], first = first, first + file["record_count"]
                numbers += range(file["first_row_id"], file["first_row_id"] + file["record_count"])
    assert len(numbers) == len(set(numbers)) == 12
    assert max(numbers) < found["next-row-id"]


def test_puffin_files_go_with_the_snapshots_that_name_them(store: Flaky, lake: Lake) -> None:
    retained = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    table = table_of(lake, **VECTORS, **retained)
    table.write(rows(*range(10)))
    for id_ in range(6):
        table.delete(where=f"id = {id_}")
        # One of each of the two snapshots.
        assert len([name for name in names(store) if name.endswith(".puffin")]) == min(id_ + 1, 2)
    assert summary(store) == (10, 1, 6)
    table.compact(full=True)
    table.write(rows(20))
    table.write(rows(21))
    assert [name for name in names(store) if name.endswith(".puffin")] == []


def test_unchanged_vectors_are_not_copied_again(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, **VECTORS)
    table.write(rows(*range(10)))
    table.delete(where="id = 1")
    before = [name for name in names(store) if name.endswith(".puffin")]
    table.write(rows(20))
    assert [name for name in names(store) if name.endswith(".puffin")] == before
    assert summary(store) == (11, 1, 1)


def test_vectors_of_32_bits_are_not_published(store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], options={"deletion-vectors.enabled": "true"})
    table.write(rows(1, 2))
    table.delete(where="id = 1")
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        table.set_options({STORAGE: "hadoop-catalog", **VECTORS})
        table.write(rows(3))
    assert "has 32 bits" in caplog.text
    assert HINT not in [info.path for info in store.list("iceberg")]
    table.compact(full=True)
    assert summary(store) == (2, 0, 0)


def test_vectors_left_behind_are_never_hidden(store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """They still count where no new ones are made, so that a table of version 2 with some is not published."""
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
    table = lake.create_table("d.t", [("id", "BIGINT"), ("s", "STRING")], options=options)
    table.write(rows(1, 2))
    table.delete(where="id = 1")
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        table.set_options({"deletion-vectors.enabled": "false", STORAGE: "hadoop-catalog"})
        table.write(rows(3))
    assert "cannot be published" in caplog.text or "has deletion vectors" in caplog.text
    assert HINT not in [info.path for info in store.list("iceberg")]


def test_many_manifests_are_merged(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, **{"metadata.iceberg.compaction.max.file-num": "10"})
    for id_ in range(25):
        table.write(rows(id_))
    assert total(store) == 25
    assert len([name for name in names(store) if "-m" in name]) < 40


def test_a_foreign_table_in_the_folder_is_not_touched(
    store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    store.put(f"{FOLDER}/00000-abc.metadata.json", b"{}")
    store.put(f"{FOLDER}/0e0e-m0.avro", b"theirs")
    table = table_of(lake)
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        table.write(rows(1))
    assert "belongs to another Iceberg table" in caplog.text
    assert names(store) == ["00000-abc.metadata.json", "0e0e-m0.avro"]


def test_metadata_of_another_location_is_not_touched(
    store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = json.dumps({"location": "s3://elsewhere/t", "snapshots": []}).encode()
    store.put(f"{FOLDER}/v1.metadata.json", theirs)
    table = table_of(lake)
    with caplog.at_level(logging.WARNING, "lakelet.commit.callbacks"):
        table.write(rows(1))
    assert "belongs to another Iceberg table" in caplog.text
    assert store.get(f"{FOLDER}/v1.metadata.json") == theirs


@pytest.mark.parametrize("kept", [0, 14, 60, 200, 100_000])
def test_damaged_metadata_is_made_anew(store: Flaky, lake: Lake, kept: int) -> None:
    table = table_of(lake)
    table.write(rows(1))
    whole = published(store)
    for key in [*whole][kept // 20 :] if kept < 100_000 else ["snapshots"]:
        if key != "location":
            whole[key] = [None] if kept == 100_000 else None
    data = json.dumps(whole).encode()
    store.put(f"{FOLDER}/v1.metadata.json", data[:kept] if kept < 60 else data)
    table.write(rows(2))
    assert total(store) == 2


def test_a_manifest_list_elsewhere_is_not_followed(store: Flaky, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(lake)
    table.write(rows(1))
    found = published(store)
    found["snapshots"][-1]["manifest-list"] = f"{store.location}/d.db/other/secret.avro"
    store.put(f"{FOLDER}/v1.metadata.json", json.dumps(found).encode())
    with caplog.at_level(logging.WARNING, "lakelet.callbacks"):
        table.write(rows(2))
    assert "is no file of it" in caplog.text
    assert total(store) == 2


def test_a_renamed_table_is_published_under_its_new_name(store: Flaky, lake: Lake) -> None:
    table_of(lake).write(rows(1))
    lake.rename_table("d.t", "d.u")
    assert names(store) == []
    assert "version-hint.text" in names(store, "iceberg/d/u/metadata")


def test_a_dropped_table_is_withdrawn(store: Flaky, lake: Lake) -> None:
    table_of(lake).write(rows(1))
    lake.drop_table("d.t")
    assert names(store) == []
    table_of(lake).write(rows(5, 6))
    assert total(store) == 2


def test_branches_are_not_published(store: Flaky, lake: Lake) -> None:
    table = table_of(lake)
    table.write(rows(1))
    table.branches.create("dev")
    table.on_branch("dev").write(rows(2, 3))
    assert total(store) == 1
    table.branches.fast_forward("dev")
    assert total(store) == table.scan().to_arrow().num_rows == 2


def test_metadata_in_the_table_leaves_no_identity_file(store: Flaky, lake: Lake) -> None:
    table = table_of(lake, **{STORAGE: "table-location"})
    assert store.head("d.db/t/metadata") is None
    table.write(rows(1))
    assert store.get("d.db/t/metadata/version-hint.text") == b"1"
    assert lake.table("d.t").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({STORAGE: "hive-catalog"}, "hive-catalog is not published to"),
        ({STORAGE: "rest-catalog"}, "needs 'metadata.iceberg.rest.uri'"),
        ({STORAGE: "rest-catalog", REST: "ftp://h"}, "begins with http:// or https://, found 'ftp://h'"),
        ({STORAGE: "rest-catalog", REST: "http://h:port"}, "begins with http:// or https://, found 'http://h:port'"),
        ({STORAGE: "rest-catalog", REST: "http://me:word@h"}, "an address without a user and parameters"),
        ({STORAGE: "rest-catalog", REST: "http://h"}, "http://h, which is not among those of this program"),
        ({"metadata.iceberg.rest.token": "t"}, "pass 'catalog.<name>.token' to connect()"),
        ({"metadata.iceberg.rest.io-impl": "java.lang.Runtime"}, "pass 'catalog.<name>.io-impl' to connect()"),
        ({STORAGE: "table-location", "file.format": "orc"}, "the format orc"),
        ({STORAGE: "table-location", "file.format.per.level": "5:avro"}, "the format avro"),
        ({STORAGE: "table-location", "deletion-vectors.enabled": "true"}, "'metadata.iceberg.format-version' = '3'"),
        (
            {
                STORAGE: "table-location",
                "deletion-vectors.enabled": "true",
                "metadata.iceberg.format-version": "3",
            },
            "'deletion-vectors.bitmap64' = 'true'",
        ),
    ],
)
def test_what_cannot_be_published_is_refused_by_name(lake: Lake, options: dict[str, str], expected: str) -> None:
    with pytest.raises(InvalidError, match=expected):
        lake.create_table("d.bad", [("id", "BIGINT")], primary_key=["id"], options=options)


@pytest.mark.parametrize("kind", ["TIME", "TIMESTAMP(0)", "TIMESTAMP(9)", "MULTISET<INT>", "ARRAY<TIME>"])
def test_types_without_an_iceberg_type_are_refused(lake: Lake, kind: str) -> None:
    with pytest.raises(InvalidError, match="no type in the Iceberg format"):
        lake.create_table("d.bad", [("id", "BIGINT"), ("x", kind)], options={STORAGE: "hadoop-catalog"})
    table = table_of(lake)
    with pytest.raises(InvalidError, match="no type in the Iceberg format"):
        table.add_column("x", kind)


def test_a_table_with_an_identity_cannot_have_metadata_in_its_place(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "BIGINT")])
    with pytest.raises(InvalidError, match="use hadoop-catalog"):
        table.set_options({STORAGE: "table-location"})
    table.set_options({STORAGE: "table-location", f"{STORAGE}-location": "catalog-location"})


def test_a_wider_type_is_published_and_one_that_iceberg_cannot_read_is_refused(store: Flaky, lake: Lake) -> None:
    options = {STORAGE: "hadoop-catalog"}
    table = lake.create_table("d.t", [("a", "INT"), ("b", "INT")], options=options)
    table.write([{"a": 1, "b": 1}])
    table.change_type("a", "BIGINT")
    with pytest.raises(InvalidError, match="Iceberg's readers"):
        table.change_type("b", "DOUBLE")
    table.write([{"a": 2**40, "b": 1}])
    assert total(store) == 2
    assert [field["type"] for field in published(store)["schemas"][-1]["fields"]] == ["long", "int"]
