"""$files, $file_key_ranges, $partitions, $buckets, $manifests, $table_indexes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.names import split_name
from lakelet.errors import InvalidError, NotFoundError
from lakelet.format.metadata.schema_json import encode_schema
from lakelet.sql.context import Context
from lakelet.sql.query.relation import Rows
from lakelet.sql.system import system_relation
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.sql.relation_rows import system_rows


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


def keyed(lake: Lake, **options: str) -> Table:
    return lake.create_table(
        "d.t",
        [("id", "BIGINT NOT NULL"), ("k", "STRING NOT NULL"), ("p", "DATE"), ("v", "DOUBLE")],
        primary_key=["id", "k", "p"],
        partitioned_by=["p"],
        options={"bucket": "1", "write-only": "true"} | options,
    )


def rows(ids: range, day: int, v: float | None) -> list[dict[str, Any]]:
    return [{"id": i, "k": f"k{i}", "p": date(2024, 1, day), "v": v} for i in ids]


def test_files_of_a_keyed_table(lake: Lake) -> None:
    table = keyed(lake)
    table.write([*rows(range(3), 1, 1.5), *rows(range(2), 2, None)])
    table.compact(full=True)
    table.write(rows(range(1), 2, 1e10), kinds=["-D"])
    found = sorted(system_rows(lake, "d.t$files"), key=lambda row: (row["partition"], row["level"]))
    assert [(row["partition"], row["bucket"], row["level"], row["record_count"]) for row in found] == [
        ("{2024-01-01}", 0, 5, 3),
        ("{2024-01-02}", 0, 0, 1),
        ("{2024-01-02}", 0, 5, 2),
    ]
    first, deleted, second = found
    paths = {f"{table.location.removesuffix('/d.db/t')}/{path}": file for path, file in table.files()}
    assert {row["file_path"] for row in found} == set(paths)
    file = paths[first["file_path"]]
    assert (first["min_key"], first["max_key"]) == ("[0, k0]", "[2, k2]")
    assert first["null_value_counts"] == "{id=0, k=0, p=0, v=0}"
    assert first["min_value_stats"] == "{id=0, k=k0, p=19723, v=1.5}"
    assert first["max_value_stats"] == "{id=2, k=k2, p=19723, v=1.5}"
    assert (first["file_size_in_bytes"], first["schema_id"], first["file_format"]) == (file.size, 0, "parquet")
    assert (first["min_sequence_number"], first["max_sequence_number"]) == (file.min_sequence, file.max_sequence)
    assert (first["deleteRowCount"], deleted["deleteRowCount"], deleted["file_source"]) == (0, 1, "APPEND")
    assert deleted["max_value_stats"] == "{id=0, k=k0, p=19724, v=1.0E10}"
    assert (second["null_value_counts"], second["min_value_stats"]) == (
        "{id=0, k=0, p=0, v=2}",
        "{id=0, k=k0, p=19724, v=null}",
    )
    shared = list(system_rows(lake, "d.t$file_key_ranges")[0])
    assert [{name: row[name] for name in shared} for row in system_rows(lake, "d.t$files")] == system_rows(
        lake, "d.t$file_key_ranges"
    )


def test_files_over_schemas_and_versions(lake: Lake) -> None:
    table = lake.create_table("d.t", [("a", "INT"), ("b", "DECIMAL(6, 2)"), ("c", "TIMESTAMP(3)")])
    table.write([{"a": 1, "b": Decimal("1.50"), "c": datetime(2024, 1, 2, 3, 4, 5)}])
    table.drop_column("c")
    table.change_type("a", "BIGINT")
    table.rename_column("b", "bb")
    table.add_column("a0", "STRING")
    table.write([{"a": 2**40, "bb": None, "a0": "x"}])
    old, new = system_rows(lake, "d.t$files")
    assert (old["min_value_stats"], old["null_value_counts"]) == ("{a=1, a0=null, bb=1.50}", "{a=0, a0=1, bb=0}")
    assert (new["max_value_stats"], new["null_value_counts"]) == (
        "{a=1099511627776, a0=x, bb=null}",
        "{a=0, a0=0, bb=1}",
    )
    assert (new["partition"], new["min_key"], new["schema_id"] > old["schema_id"]) == ("{}", None, True)
    (before,) = system_rows(lake, "d.t$files", version=1)
    assert before["max_value_stats"] == "{a=1, b=1.50, c=2024-01-02T03:04:05}"
    with pytest.raises(NotFoundError, match="snapshot 9"):
        system_rows(lake, "d.t$files", version=9)


def test_files_without_statistics(lake: Lake) -> None:
    table = lake.create_table("d.t", [("a", "INT"), ("s", "STRING")], options={"metadata.stats-mode": "none"})
    table.write([{"a": 1, "s": None}])
    (row,) = system_rows(lake, "d.t$files")
    assert row["null_value_counts"] == row["min_value_stats"] == "{a=null, s=null}"


def test_partitions_and_buckets(lake: Lake) -> None:
    table = keyed(lake, bucket="2")
    assert system_rows(lake, "d.t$partitions") == system_rows(lake, "d.t$buckets") == []
    table.write(rows(range(20), 2, 1.0))
    table.write([*rows(range(5), 1, 2.0), *rows(range(5), 2, 2.0)])
    files = [file for _, file in table.files()]
    found = system_rows(lake, "d.t$partitions")
    assert [(row["partition"], row["record_count"], row["total_buckets"], row["done"]) for row in found] == [
        ("p=2024-01-01", 5, 2, False),
        ("p=2024-01-02", 25, 2, False),
    ]
    assert sum(row["file_size_in_bytes"] for row in found) == sum(file.size for file in files)
    assert sum(row["file_count"] for row in found) == len(files)
    buckets = system_rows(lake, "d.t$buckets")
    assert [(row["partition"], row["bucket"]) for row in buckets] == [
        ("{2024-01-01}", 0),
        ("{2024-01-01}", 1),
        ("{2024-01-02}", 0),
        ("{2024-01-02}", 1),
    ]
    assert sum(row["record_count"] for row in buckets) == 30
    assert max(row["last_update_time"] for row in buckets) == max(row["last_update_time"] for row in found)
    assert [row["record_count"] for row in system_rows(lake, "d.t$partitions", version=1)] == [20]


def test_null_partition_and_no_partition(lake: Lake) -> None:
    table = lake.create_table(
        "d.t",
        [("a", "INT"), ("p", "STRING"), ("q", "BOOLEAN")],
        partitioned_by=["p", "q"],
        options={"partition.default-name": "NONE"},
    )
    table.write([{"a": 1, "p": None, "q": True}, {"a": 2, "p": "x/y", "q": None}])
    assert [row["partition"] for row in system_rows(lake, "d.t$partitions")] == ["p=NONE/q=true", "p=x/y/q=NONE"]
    assert [row["partition"] for row in system_rows(lake, "d.t$buckets")] == ["{null, true}", "{x/y, null}"]
    (manifest,) = system_rows(lake, "d.t$manifests")
    assert (manifest["min_partition_stats"], manifest["max_partition_stats"]) == ("{x/y, true}", "{x/y, true}")
    whole = lake.create_table("d.u", [("a", "INT")])
    whole.write([{"a": 1}])
    assert [row["partition"] for row in system_rows(lake, "d.u$partitions")] == [""]
    assert [row["partition"] for row in system_rows(lake, "d.u$buckets")] == ["{}"]


def test_deleted_rows(lake: Lake) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = lake.create_table("d.t", [("a", "INT")], primary_key=["a"], options=options)
    table.write([{"a": a} for a in range(1000)])
    table.compact(full=True)
    table.write([{"a": a} for a in range(3)])
    table.compact()
    (row,) = system_rows(lake, "d.t$partitions")
    assert (row["record_count"], row["deleted_record_count"]) == (1003, 3)
    (index,) = system_rows(lake, "d.t$table_indexes")
    (vector,) = index["dv_ranges"]
    assert (index["index_type"], index["row_count"], vector["_CARDINALITY"]) == ("DELETION_VECTORS", 1, 3)
    assert vector["f0"] == max((file for _, file in table.files()), key=lambda file: file.row_count).name


def test_manifests(lake: Lake) -> None:
    table = keyed(lake)
    assert system_rows(lake, "d.t$manifests") == []
    table.write(rows(range(3), 1, 1.0))
    table.write([*rows(range(3), 1, 1.0), *rows(range(3), 2, 1.0)])
    found = system_rows(lake, "d.t$manifests")
    assert [(row["num_added_files"], row["num_deleted_files"], row["max_partition_stats"]) for row in found] == [
        (1, 0, "{2024-01-01}"),
        (2, 0, "{2024-01-02}"),
    ]
    stored = {info.path.rsplit("/", 1)[-1]: info.size for info in table.home.store.list("d.db/t/manifest")}
    assert all(stored[row["file_name"]] == row["file_size"] for row in found)
    assert len(system_rows(lake, "d.t$manifests", version=1)) == 1


def test_rows_that_wait_for_a_bucket(lake: Lake) -> None:
    table = lake.create_table("d.t", [("id", "INT")], primary_key=["id"], options={"bucket": "-2"})
    table.write([{"id": 1}])
    assert [row["bucket"] for row in system_rows(lake, "d.t$buckets")] == [-2]
    assert system_rows(lake, "d.t$files") == system_rows(lake, "d.t$partitions") == []


def test_many_files_are_columns(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry of a manifest becomes an object."""
    table = keyed(lake)
    for step in range(3):
        table.write(rows(range(step, step + 2), 1 + step, 1.0))
    monkeypatch.setattr("lakelet.format.manifest.manifest_columns.columns_to_files", None)
    monkeypatch.setattr("lakelet.format.manifest.manifest_columns._data_file", None)
    assert len(system_rows(lake, "d.t$files")) == 3
    assert len(system_rows(lake, "d.t$partitions")) == 3


def test_a_version_that_expires_meanwhile(lake: Lake) -> None:
    table = keyed(lake)
    table.write(rows(range(2), 1, 1.0))
    relation = system_relation(Context(lake), split_name(["d", "t$files"], "d"))
    assert isinstance(relation, Rows)
    table.write(rows(range(2), 1, 2.0))
    table.compact(full=True)
    table.compact_manifests()
    table.expire_snapshots(1)
    with pytest.raises(NotFoundError, match=r"snapshot 1 was expired while it was read"):
        list(relation.read(None, None))


def test_tables_whose_rows_cannot_be_read(lake: Lake) -> None:
    """What files say of themselves can be looked at whatever the table's options ask for."""
    table = keyed(lake)
    table.write(rows(range(3), 1, 1.0))
    home, schema = table.home, table.schema
    stranger = replace(schema, id=1, options={**schema.options, "row-tracking.enabled": "true"})
    home.store.put(home.paths.schema(1), encode_schema(stranger))
    for name in ("files", "file_key_ranges", "partitions", "buckets", "manifests"):
        assert len(system_rows(lake, f"d.t${name}")) == 1, name
    for name in ("ro", "audit_log"):
        with pytest.raises(InvalidError, match=r"row-tracking\.enabled"):
            system_rows(lake, f"d.t${name}")
