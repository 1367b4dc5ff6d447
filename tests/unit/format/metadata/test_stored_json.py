"""JSON of a stranger's warehouse, and types, that are nested too deeply for Python: an error of ours, never a RecursionError."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lakelet
from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.metadata.schema_json import decode_schema
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.format.metadata.stored_json import load_json
from lakelet.format.metadata.tag_json import decode_tag
from lakelet.model.arrow.arrow_types import from_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import MAX_DEPTH

DEEP = b"[" * 200_000 + b"]" * 200_000


def test_what_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(json.JSONDecodeError, match="too deeply"):
        load_json(DEEP)


@pytest.mark.parametrize("member", ["properties", "statistics", "id"])
def test_deep_snapshots_and_tags_are_corruption(member: str) -> None:
    data = b'{"version": 3, "%s": %s}' % (member.encode(), DEEP)
    with pytest.raises(CorruptionError, match="t/snapshot-1"):
        decode_snapshot(data, path="t/snapshot-1")
    with pytest.raises(CorruptionError, match="t/tag-a"):
        decode_tag(data, name="a", path="t/tag-a")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
def test_deep_types_of_schemas(depth: int) -> None:
    inner = b'{"type": "ARRAY", "element": ' * depth + b'"INT"' + b"}" * depth
    field = b'{"id": 0, "name": "a", "type": %s}' % inner
    data = (
        b'{"version": 3, "id": 0, "fields": [%s], "highestFieldId": 0, "partitionKeys": [], "primaryKeys": [], "options": {}, '
        b'"timeMillis": 0}' % field
    )
    with pytest.raises(LakeletError, match="t/schema-0"):
        decode_schema(data, path="t/schema-0")


@pytest.mark.parametrize("depth", [MAX_DEPTH, 900, 100_000])
def test_deep_types_of_text(depth: int) -> None:
    with pytest.raises(InvalidError, match="inside one another"):
        parse_type("ARRAY<" * depth + "INT" + ">" * depth)


def test_deep_types_of_arrow() -> None:
    kind = pa.int32()
    for _ in range(MAX_DEPTH):
        kind = pa.list_(kind)
    with pytest.raises(InvalidError, match="inside one another"):
        from_arrow(kind)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_the_deepest_type_works(tmp_path: Path, file_format: str) -> None:
    depth = MAX_DEPTH - 1
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    text = "ARRAY<" * depth + "INT" + ">" * depth
    table = lake.create_table("d.t", [("c", text)], options={"file.format": file_format})
    value = json.loads("[" * depth + "7" + "]" * depth)
    table.write([{"c": value}])
    assert lakelet.connect(str(tmp_path)).table("d.t").scan().to_arrow()["c"].to_pylist() == [value]
