"""Metadata files field by field: what Lakelet writes is what Java writes for the same rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lakelet.format import avro
from lakelet.format.avro.container import read_header
from lakelet.format.manifest.index_manifest import decode_index_manifest, encode_index_manifest
from lakelet.format.rows.binary_row import decode_row
from tests.conformance import every_type
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Rows, Warehouse

COLUMNS = [("id", "INT"), ("text", "STRING"), ("p", "STRING"), ("n", "INT")]


def rows(first: int) -> Rows:
    return [
        {"id": first + step, "text": f"text {step}" * step, "p": ["a", None, "b"][step % 3], "n": step % 2}
        for step in range(6)
    ]


def both(warehouse: Warehouse, **layout: Any) -> None:
    """The same history by Java and by Lakelet: appends, an overwrite of a partition, an overwrite of all."""
    for writer in (JAVA, LAKELET):
        warehouse.create(writer, writer, COLUMNS, **layout)
        warehouse.write(writer, writer, rows(0))
        warehouse.write(writer, writer, rows(10))
        if layout.get("partitioned_by"):
            warehouse.write(
                writer, writer, [{"id": 99, "text": None, "p": "a", "n": 0}], overwrite={"p": "a", "n": "0"}
            )
        warehouse.write(writer, writer, rows(20), overwrite={})


LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partitioned_by": ["p", "n"]},
    "buckets": {"partitioned_by": ["p", "n"], "options": {"bucket": "3", "bucket-key": "id", "write-only": "true"}},
}


def files(warehouse: Warehouse, writer: str, pattern: str) -> list[Path]:
    return sorted(
        warehouse.path(writer).glob(pattern), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]
    )


def snapshots(warehouse: Warehouse, writer: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in files(warehouse, writer, "snapshot/snapshot-*")]


def records(path: Path) -> list[dict[str, Any]]:
    decoded: list[dict[str, Any]] = avro.decode(path.read_bytes(), path=str(path)).to_pylist()
    return decoded


def live_entries(warehouse: Warehouse, writer: str, snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """The manifest entries of a snapshot's delta, without what differs by nature, in one order."""
    folder = warehouse.path(writer) / "manifest"
    found = []
    for manifest in records(folder / snapshot["deltaManifestList"]):
        for entry in records(folder / manifest["_FILE_NAME"]):
            for name in ("_FILE_NAME", "_FILE_SIZE", "_CREATION_TIME"):
                entry["_FILE"].pop(name)
            found.append(entry)
    return sorted(
        found, key=lambda entry: (entry["_KIND"], entry["_PARTITION"], entry["_BUCKET"], entry["_FILE"]["_ROW_COUNT"])
    )


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_snapshots_and_schemas(warehouse: Warehouse, layout: str) -> None:
    both(warehouse, **LAYOUTS[layout])
    theirs, ours = snapshots(warehouse, JAVA), snapshots(warehouse, LAKELET)
    random = {
        "baseManifestList",
        "deltaManifestList",
        "baseManifestListSize",
        "deltaManifestListSize",
        "commitUser",
        "timeMillis",
    }
    for their, our in zip(theirs, ours, strict=True):
        assert list(our) == list(their)
        assert {key: value for key, value in our.items() if key not in random} == {
            key: value for key, value in their.items() if key not in random
        }
        for kind in ("base", "delta"):
            path = warehouse.path(LAKELET) / "manifest" / our[f"{kind}ManifestList"]
            assert path.stat().st_size == our[f"{kind}ManifestListSize"]
            assert re.fullmatch(r"manifest-list-[0-9a-f-]{36}-\d+", path.name)
    (their_schema,), (our_schema,) = (
        [json.loads(path.read_text()) for path in files(warehouse, writer, "schema/*")] for writer in (JAVA, LAKELET)
    )
    assert list(our_schema) == list(their_schema)
    assert {**our_schema, "timeMillis": 0} == {**their_schema, "timeMillis": 0}
    latest = [(warehouse.path(writer) / "snapshot" / "LATEST").read_text() for writer in (JAVA, LAKELET)]
    assert latest[0] == latest[1]


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_manifest_lists_and_entries(warehouse: Warehouse, layout: str) -> None:
    both(warehouse, **LAYOUTS[layout])
    for their, our in zip(snapshots(warehouse, JAVA), snapshots(warehouse, LAKELET), strict=True):
        assert live_entries(warehouse, LAKELET, our) == live_entries(warehouse, JAVA, their), our["id"]
        lists = []
        for writer, snapshot in ((JAVA, their), (LAKELET, our)):
            found = records(warehouse.path(writer) / "manifest" / snapshot["deltaManifestList"])
            for manifest in found:
                path = warehouse.path(writer) / "manifest" / manifest.pop("_FILE_NAME")
                assert path.stat().st_size == manifest.pop("_FILE_SIZE")
            lists.append(found)
        assert lists[1] == lists[0], our["id"]


def test_avro_schemas_are_those_of_java(warehouse: Warehouse) -> None:
    both(warehouse, partitioned_by=["p", "n"])
    for pattern in ("manifest/manifest-list-*", "manifest/manifest-[0-9a-f]*"):
        theirs, ours = (
            [read_header(path.read_bytes(), path=path.name) for path in warehouse.path(writer).glob(pattern)]
            for writer in (JAVA, LAKELET)
        )
        assert theirs
        assert ours
        for header in ours:
            assert json.loads(header.schema_text) == json.loads(theirs[0].schema_text)
            assert header.codec == theirs[0].codec


def test_avro_schema_of_index_manifests(warehouse: Warehouse) -> None:
    """Java makes one for a table with dynamic buckets."""
    warehouse.java.create(warehouse.folder, f"{DATABASE}.keyed", [("id", "INT"), ("v", "STRING")], primary_key=["id"])
    warehouse.java.write(warehouse.folder, f"{DATABASE}.keyed", [{"id": 1, "v": "a"}])
    (path,) = (warehouse.path("keyed") / "manifest").glob("index-manifest-*")
    entries = decode_index_manifest(path.read_bytes(), path=path.name)
    assert [entry.file.index_type for entry in entries] == ["HASH"]
    ours = read_header(encode_index_manifest(entries, codec="zstandard"), path="ours")
    theirs = read_header(path.read_bytes(), path=path.name)
    assert json.loads(ours.schema_text) == json.loads(theirs.schema_text)
    assert ours.codec == theirs.codec
    ours_again = decode_index_manifest(encode_index_manifest(entries, codec="zstandard"), path="ours")
    assert ours_again == entries


def statistics(warehouse: Warehouse, name: str) -> dict[str, list[Any]]:
    """Minimum, maximum and count of NULLs of every column of a table's only file."""
    (entry,) = live_entries(warehouse, name, snapshots(warehouse, name)[0])
    stats, named = entry["_FILE"]["_VALUE_STATS"], entry["_FILE"]["_VALUE_STATS_COLS"]
    fields = [field for field in warehouse.table(name).schema.fields if named is None or field.name in named]
    types = [field.type for field in fields]
    low, high = (decode_row(stats[key], types) for key in ("_MIN_VALUES", "_MAX_VALUES"))
    return {field.name: found for field, *found in zip(fields, low, high, stats["_NULL_COUNTS"], strict=True)}


NESTED = {name for name, text, _ in every_type.columns("parquet") if "<" in text}
# Where the statistics differ from Java's. Java keeps none of nested columns and no bounds of INT96 in Parquet files; in
# ORC files it pads CHAR, and takes NaN for the minimum as well.
EXCEPTIONS = {"parquet": {*NESTED, "ts9", "ltz9"}, "orc": {"float", "double", "char"}, "avro": set()}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_statistics_are_those_of_java(warehouse: Warehouse, file_format: str) -> None:
    chosen = every_type.columns(file_format)
    for writer in (JAVA, LAKELET):
        columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
        warehouse.create(writer, writer, columns, options={"file.format": file_format})
        warehouse.write(writer, writer, every_type.rows(chosen))
    theirs, ours = statistics(warehouse, JAVA), statistics(warehouse, LAKELET)
    different = {name for name in ours if repr(ours[name]) != repr(theirs.get(name))}
    assert different == EXCEPTIONS[file_format]
    assert all(low is None and high is None for name, (low, high, _) in ours.items() if name in NESTED)


def test_bytes_of_statistics_are_those_of_java(warehouse: Warehouse) -> None:
    chosen = [column for column in every_type.columns("parquet") if column[0] not in EXCEPTIONS["parquet"]]
    found = {}
    for writer in (JAVA, LAKELET):
        columns = [("id", "INT"), *((name, text) for name, text, _ in chosen)]
        warehouse.create(writer, writer, columns)
        warehouse.write(writer, writer, every_type.rows(chosen))
        (entry,) = live_entries(warehouse, writer, snapshots(warehouse, writer)[0])
        found[writer] = entry
    assert found[LAKELET] == found[JAVA]
