"""Encoding, and both directions against fastavro over random schemas and values."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.format.avro import decode, encode, read_schema
from lakelet.format.avro.container import read_blocks, read_header
from tests.tiers.examples import examples

SYNC = b"0123456789abcdef"


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def by_reader(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def as_arrow(value: Any) -> Any:
    """The value as Arrow gives it back: maps are lists of pairs."""
    if isinstance(value, dict) and value.get("#", None) == "map":
        return [(key, as_arrow(item)) for key, item in value.items() if key != "#"]
    if isinstance(value, dict):
        return {key: as_arrow(item) for key, item in value.items()}
    return [as_arrow(item) for item in value] if isinstance(value, list) else value


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "#"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "string": st.text(max_size=8),
    "bytes": st.binary(max_size=8),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3, optional: bool = True) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema and the strategy of its values; a map's value is marked with the key "#"."""
    kinds = [*LEAVES, "fixed", "enum", *(["array", "map", "record"] if depth else []), *(["union"] if optional else [])]
    kind = draw(st.sampled_from(kinds))
    if kind in LEAVES:
        return kind, LEAVES[kind]
    name = "t"
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return {"type": "fixed", "name": name, "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "enum":
        symbols = [f"S{i}" for i in range(draw(st.integers(1, 3)))]
        return {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    if kind == "union":
        inner, values = draw(schemas(depth, False))
        shape = draw(st.sampled_from(["first", "last", "alone"]))
        if shape == "alone":
            return [inner], values
        return ["null", inner] if shape == "first" else [inner, "null"], st.none() | values
    if kind == "record":
        members = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
        fields = [{"name": f"f{i}", "type": schema} for i, (schema, _) in enumerate(members)]
        built = st.fixed_dictionaries({f"f{i}": values for i, (_, values) in enumerate(members)})
        return {"type": "record", "name": name, "fields": fields}, built
    inner, values = draw(schemas(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    entries = st.dictionaries(
        st.text(st.characters(min_codepoint=97, max_codepoint=122), max_size=3), values, max_size=3
    )
    return {"type": "map", "values": inner}, entries.map(lambda entries: {"#": "map", **entries})


def name_apart(schema: Any, numbers: Iterator[int]) -> None:
    """Give every named type a name of its own."""
    if isinstance(schema, list):
        for member in schema:
            name_apart(member, numbers)
    elif isinstance(schema, dict):
        if "name" in schema:
            schema["name"] = f"t{next(numbers)}"
        for inner in (schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields", []))):
            name_apart(inner, numbers)


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    members = draw(st.lists(schemas(), min_size=1, max_size=4))
    schema = record(**{f"c{i}": inner for i, (inner, _) in enumerate(members)})
    name_apart(schema, itertools.count())
    rows = st.lists(st.fixed_dictionaries({f"c{i}": values for i, (_, values) in enumerate(members)}), max_size=6)
    return schema, draw(rows)


@settings(
    deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(file=files(), codec=st.sampled_from(["null", "deflate", "zstandard"]), cut=st.integers(0, 3))
def test_both_directions_agree_with_fastavro(
    engine: str, file: tuple[dict[str, Any], list[dict[str, Any]]], codec: str, cut: int
) -> None:
    schema, marked = file
    rows, expected = without_marks(marked), as_arrow(marked)
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=64)
    array = decode(out.getvalue(), path="f")
    array.validate(full=True)
    assert array.to_pylist() == expected
    # Arrow's own builder, and a slice of it, must encode to the same rows as what was decoded.
    built = pa.array(expected, array.type)
    for source, kept in ((array, rows), (built, rows), (built.slice(cut), rows[cut:])):
        data = encode(source, schema, codec=codec, sync=SYNC, block_bytes=100)
        assert by_reader(data) == kept
        assert decode(data, path="f").to_pylist() == as_arrow(marked[len(rows) - len(kept) :])


def test_engines_write_the_same_bytes(
    engine: str, entry_schema: dict[str, Any], make_entries: Callable[..., Any], by_fastavro: Callable[..., bytes]
) -> None:
    entries = make_entries(300)
    array = decode(by_fastavro(entry_schema, entries), path="m")
    data = encode(array, entry_schema, sync=SYNC, codec="null", block_bytes=10_000)
    assert decode(data, path="m").equals(array)
    header = read_header(data, path="m")
    blocks = list(read_blocks(data, header, path="m"))
    assert len(blocks) > 5
    # fastavro writes these rows to the same bytes, so that both engines do.
    assert b"".join(block.data for block in blocks) == b"".join(
        block.data for block in _fastavro_blocks(by_fastavro(entry_schema, entries, codec="null"))
    )


def _fastavro_blocks(data: bytes) -> list[Any]:
    return list(read_blocks(data, read_header(data, path="m"), path="m"))


def test_a_file_is_the_same_bytes_for_the_same_sync_marker(engine: str) -> None:
    table = pa.table({"n": pa.array([1, -1], pa.int32())})
    data = encode(table, record(n="int"), codec="null", sync=SYNC, metadata={"k": b"v"})
    text = b'{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
    head = b"Obj\x01\x06\x14avro.codec\x08null\x16avro.schema\x82\x01" + text + b"\x02k\x02v\x00"
    assert data == head + SYNC + b"\x04\x04\x02\x01" + SYNC
    assert encode(table, record(n="int"), codec="null") != encode(table, record(n="int"), codec="null")


def test_rows_larger_than_a_block_get_a_block_each(engine: str) -> None:
    array = pa.array([{"s": "x" * 5000}, {"s": "y" * 20_000}, {"s": ""}])
    data = encode(array, record(s="string"), codec="null", block_bytes=100)
    assert [block.rows for block in _fastavro_blocks(data)] == [1, 1, 1]
    assert by_reader(data) == array.to_pylist()


def test_special_floats_survive(engine: str) -> None:
    table = pa.table(
        {"d": [math.nan, -0.0, math.inf, 5e-324], "f": pa.array([math.nan, -0.0, -math.inf, 1.5], pa.float32())}
    )
    back = decode(encode(table, record(d="double", f="float")), path="f")
    assert back.field("d").to_numpy().tobytes() == table["d"].to_numpy().tobytes()
    assert back.field("f").to_numpy().tobytes() == table["f"].to_numpy().tobytes()


def test_other_arrow_types_of_the_same_values_are_taken(engine: str) -> None:
    table = pa.table(
        {
            "i": pa.array([1, 2], pa.int8()),
            "l": pa.array([1, None], pa.uint32()),
            "s": pa.array(["a", "b"]).dictionary_encode(),
            "b": pa.array([b"ab", b"cd"], pa.binary(2)),
            "x": pa.array([b"ab", b"cd"], pa.large_binary()),
            "a": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)),
            "n": pa.nulls(2),
        }
    )
    fixed = {"type": "fixed", "name": "x", "size": 2}
    schema = record(
        i="int",
        l=["null", "long"],
        s="string",
        b="bytes",
        x=fixed,
        a={"type": "array", "items": "int"},
        n=["null", "int"],
    )
    data = encode(pa.concat_tables([table, table.slice(1)]), schema)
    assert by_reader(data) == table.to_pylist() + table.slice(1).to_pylist()


def test_optional_columns_may_be_missing(engine: str) -> None:
    schema = record(a="int", b=["null", {"type": "array", "items": "string"}])
    assert by_reader(encode(pa.table({"a": pa.array([1], pa.int32())}), schema)) == [{"a": 1, "b": None}]


def test_no_rows_and_no_columns(engine: str) -> None:
    assert by_reader(encode(pa.table({"a": pa.array([], pa.int32())}), record(a="int"))) == []
    empty = decode(encode(pa.array([{}, {}], pa.struct([])), record()), path="f")
    assert len(empty) == 2
    assert read_schema(encode(pa.table({}), record()), path="f").schema == record()


def test_a_schema_that_is_none_is_refused() -> None:
    for schema in ({"type": "record", "name": "r", "fields": [{"name": "a"}]}, {"type": "record", "fields": []}):
        with pytest.raises(InvalidError):
            encode(pa.table({"a": [1]}), schema)


def test_blocks_of_no_bytes_are_refused() -> None:
    with pytest.raises(InvalidError, match="block"):
        encode(pa.table({"a": [1]}), record(a="long"), block_bytes=0)


REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "null in a required column": (record(a="int"), [{"a": 1}, {"a": None}], "a is required, but row 1"),
    "null inside an array": (record(a={"type": "array", "items": "long"}), [{"a": [1, None]}], "a is required"),
    "missing column": (record(a="int", b="int"), [{"a": 1}], "b is required"),
    "unknown column": (record(a="long"), [{"a": 1, "b": 1}], "no column b"),
    "text for a number": (record(a="int"), [{"a": "1"}], "of type int"),
    "number for text": (record(a="string"), [{"a": 1}], "of type string"),
    "value too large": (record(a="int"), [{"a": 2**40}], "of type int"),
    "no symbol": (record(a={"type": "enum", "name": "e", "symbols": ["A"]}), [{"a": "B"}], "symbols"),
    "wrong width": (record(a={"type": "fixed", "name": "x", "size": 3}), [{"a": b"ab"}], "of type fixed"),
    "scalar for an array": (record(a={"type": "array", "items": "int"}), [{"a": 1}], "of type array"),
    "scalar for a record": (record(a=record(b="int")), [{"a": 1}], "record"),
    "value of a null column": (record(a="null"), [{"a": 1}], "type null"),
    "null row": (record(a=["null", "int"]), [None, {"a": 1}], "rows must not be null"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_rows_that_do_not_fit_are_refused(engine: str, name: str) -> None:
    schema, rows, message = REFUSED[name]
    with pytest.raises(InvalidError, match=message):
        encode(pa.array(rows), schema)


def test_null_records_hide_the_values_below_them(engine: str) -> None:
    inner = pa.StructArray.from_arrays([pa.array([1, None], pa.int32()), pa.array([[1], [2, 3]])], ["x", "l"])
    masked = pa.StructArray.from_arrays(list(inner.flatten()), ["x", "l"], mask=pa.array([False, True]))
    below = {
        "type": "record",
        "name": "below",
        "fields": [{"name": "x", "type": "int"}, {"name": "l", "type": {"type": "array", "items": "long"}}],
    }
    data = encode(pa.StructArray.from_arrays([masked], ["a"]), record(a=["null", below]))
    assert by_reader(data) == [{"a": {"x": 1, "l": [1]}}, {"a": None}]
