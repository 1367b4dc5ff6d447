"""Manifests and manifest lists, of either format and side by side."""

import io
import json
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError
from lakelet.format.avro.encode import encode
from lakelet.format.manifest import manifest_avro
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, columns_to_entries, entries_to_columns
from lakelet.format.manifest.manifest_file import (
    ManifestFormat,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import EntryKind, ManifestEntry, ManifestFile

GOLDEN = Path(__file__).parents[3] / "golden"
PLAIN = DataFile(
    "data-0.parquet",
    100,
    10,
    EMPTY_ROW,
    EMPTY_ROW,
    NO_STATS,
    Stats(b"\x01" * 20, b"\x02" * 20, (0, None, 3)),
    0,
    9,
    0,
    0,
)
FULL = replace(
    PLAIN,
    name="data-é.orc",
    level=3,
    extra_files=("a", "b"),
    creation_ms=1_700_000_000_123,
    delete_row_count=2,
    embedded_index=b"\x00\xff",
    source=1,
    value_stats=Stats(b"x", b"y", None),
    value_stats_columns=("c", "d"),
    external_path="s3://elsewhere/x",
    first_row_id=5,
    write_columns=(),
)
ENTRIES = [
    ManifestEntry(EntryKind.ADD, EMPTY_ROW, 0, -1, replace(PLAIN, source=None)),
    ManifestEntry(EntryKind.DELETE, b"\x00\x00\x00\x01" + bytes(16), 2, 4, FULL),
]
MANIFESTS = [
    ManifestFile("manifest-0", 10, 1, 0, NO_STATS, 0),
    ManifestFile("manifest-1", 2**40, 3, 4, Stats(b"a", b"b", (1, None)), 7, 0, 3, 0, 5, 1, 2),
]
FORMATS = pytest.mark.parametrize("manifest_format", ["avro", "json"])


@FORMATS
@pytest.mark.parametrize("compression", ["zstd", "null", "snappy", "deflate"])
def test_round_trips(manifest_format: ManifestFormat, compression: str) -> None:
    data = encode_manifest(entries_to_columns(ENTRIES), manifest_format=manifest_format, compression=compression)
    assert columns_to_entries(decode_manifest(data, path="m")) == ENTRIES
    listed = encode_manifest_list(MANIFESTS, manifest_format=manifest_format, compression=compression)
    assert decode_manifest_list(listed, path="m") == MANIFESTS


@FORMATS
def test_empty_ones(manifest_format: ManifestFormat) -> None:
    data = encode_manifest(entries_to_columns([]), manifest_format=manifest_format, compression="zstd")
    assert decode_manifest(data, path="m").num_rows == 0
    assert (
        decode_manifest_list(encode_manifest_list([], manifest_format=manifest_format, compression="zstd"), path="m")
        == []
    )


@FORMATS
def test_some_columns(manifest_format: ManifestFormat) -> None:
    data = encode_manifest(entries_to_columns(ENTRIES), manifest_format=manifest_format, compression="zstd")
    found = decode_manifest(data, path="m", columns=["_FILE_NAME", "_KIND"])
    assert sorted(found.column_names) == ["_FILE_NAME", "_KIND"]
    assert found.column("_FILE_NAME").to_pylist() == ["data-0.parquet", "data-é.orc"]
    assert found.column("_KIND").to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("manifest", manifest_avro.ENTRY_AVRO),
        ("manifest-list", manifest_avro.LIST_AVRO),
        ("index-manifest", manifest_avro.INDEX_AVRO),
    ],
)
def test_the_avro_schemas_are_javas(name: str, schema: dict[str, object]) -> None:
    java = (GOLDEN / f"java-{name}.avsc").read_text()
    # Members in the same order too: the header of a file holds the same text.
    assert json.dumps(schema) == json.dumps(json.loads(java))


def test_another_reader_sees_the_same_rows() -> None:
    data = encode_manifest(entries_to_columns(ENTRIES), manifest_format="avro", compression="null")
    first, second = fastavro.reader(io.BytesIO(data))
    assert (first["_VERSION"], first["_KIND"], first["_TOTAL_BUCKETS"]) == (2, 0, -1)
    assert first["_FILE"]["_VALUE_STATS"] == {
        "_MIN_VALUES": b"\x01" * 20,
        "_MAX_VALUES": b"\x02" * 20,
        "_NULL_COUNTS": [0, None, 3],
    }
    assert first["_FILE"]["_CREATION_TIME"] is None
    assert second["_FILE"]["_CREATION_TIME"].timestamp() * 1000 == pytest.approx(1_700_000_000_123)
    assert second["_FILE"]["_WRITE_COLS"] == []


def test_members_of_other_writers() -> None:
    """pypaimon adds members and leaves optional ones out."""
    schema = json.loads(json.dumps(manifest_avro.LIST_AVRO))
    schema["fields"] = [
        field for field in schema["fields"] if not field["name"].startswith(("_MIN_R", "_MAX_R", "_MIN_L"))
    ]
    schema["fields"].append({"name": "_EXTRA", "type": ["null", "string"], "default": None})
    rows = manifest_avro.decode_list(
        encode_manifest_list(MANIFESTS, manifest_format="avro", compression="null"), path="m"
    )
    columns = {"_VERSION": pa.array([2, 2], pa.int32()), "_EXTRA": pa.array(["x", None])}
    columns |= {name: rows.column(name).combine_chunks() for name in rows.column_names}
    struct = pa.StructArray.from_arrays(
        [columns[field["name"]] for field in schema["fields"]], names=[field["name"] for field in schema["fields"]]
    )
    found = decode_manifest_list(encode(struct, schema), path="m")
    assert found == [replace(manifest, min_row_id=None, max_row_id=None, min_level=None) for manifest in MANIFESTS]


def test_a_newer_entry_version_is_refused() -> None:
    data = encode_manifest(entries_to_columns(ENTRIES), manifest_format="avro", compression="null")
    newer = data.replace(b"\x04\x00" + b"\x18" + EMPTY_ROW, b"\x06\x00" + b"\x18" + EMPTY_ROW)
    assert newer != data
    with pytest.raises(CorruptionError, match="dir/m: entry version 3 is newer than 2"):
        decode_manifest(newer, path="dir/m")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"Obj\x02",
        b"Obj\x01",
        b"{",
        b"{}",
        b'{"entries": 7}',
        b'{"entries": [{}]}',
        b'{"entries": [{"kind": "ADD", "minKey": "?"}]}',
    ],
)
def test_broken_manifests_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/m"):
        decode_manifest(data, path="dir/m")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Obj\x01\x00",
        b"{",
        b"{}",
        b'{"manifestFiles": ["a"], "manifests": []}',
        b'{"manifestFiles": ["a"], "manifests": [7]}',
    ],
)
def test_broken_lists_are_named(data: bytes) -> None:
    with pytest.raises(CorruptionError, match="dir/m"):
        decode_manifest_list(data, path="dir/m")


@FORMATS
def test_every_truncation_is_noticed(manifest_format: ManifestFormat) -> None:
    data = encode_manifest(entries_to_columns(ENTRIES), manifest_format=manifest_format, compression="null")
    header = data.index(data[-16:]) + 16 if manifest_format == "avro" else 0
    for size in range(len(data)):
        if size == header and manifest_format == "avro":
            continue  # A header alone is a file without rows.
        with pytest.raises(CorruptionError, match="dir/m"):
            decode_manifest(data[:size], path="dir/m")
