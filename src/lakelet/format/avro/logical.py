"""Logical types of Avro data files, as Java Paimon writes them.

Above `decode` and `encode`, below the data-file layer. It owns the mapping between Arrow types and the Avro types that
Java Paimon writes, both ways; it knows nothing of tables, so a column that a file lacks, or whose Arrow type is
narrower than what Avro can say (int8 is stored as int), is for the caller to add or cast.

    Arrow                 Avro                          Arrow                 Avro
    bool                  boolean                       date32                int / date
    int8, int16, int32    int                           time32[ms]            int / time-millis
    int64                 long                          timestamp[s, ms]      long / timestamp-millis
    float, double         float, double                 timestamp[us]         long / timestamp-micros
    string                string                        timestamp[.., tz]     long / local-timestamp-...
    binary                bytes                         decimal128(p, s)      bytes / decimal
    list                  array                         struct                record
    map, string keys      map                           map, other keys       array / map, of records (key, value)

Two things differ from what the Avro specification suggests, and are as Java Paimon does them: a timestamp without a
zone is `timestamp-*` and one with a zone is `local-timestamp-*`; and a nullable value is the union [null, X] with
default null. Nanoseconds have no Avro type there, so they are refused. So are null keys of maps, which Paimon may have
and Arrow may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro.decode import BATCH_BYTES, decode_batches, read_schema
from lakelet.format.avro.encode import encode, item_span
from lakelet.format.avro.program import Schema

RECORD_NAME = "record"
NAMESPACE = "org.apache.paimon.avro.generated"

_TIMES: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "local-timestamp-micros"): pa.timestamp("us", "UTC"),
}

_DECIMAL_BYTES = 64
"""More bytes than any writer pads a decimal of at most 38 digits to."""


def read_table(
    data: bytes, *, path: str, columns: Sequence[str] | None = None, batch_bytes: int = BATCH_BYTES
) -> pa.Table:
    """The rows of a data file with logical types; top-level columns in the order asked for, absent ones left out."""
    tables = list(read_tables(data, path=path, columns=columns, batch_bytes=batch_bytes))
    if tables[0].num_columns:
        return pa.concat_tables(tables)
    # A table without columns knows its number of rows, but concatenation loses it.
    return _only_rows(sum(table.num_rows for table in tables))


def _only_rows(count: int) -> pa.Table:
    return pa.table({"rows": pa.nulls(count)}).select([])


def read_tables(
    data: bytes, *, path: str, columns: Sequence[str] | None = None, batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.Table]:
    """The same, a table per `batch_bytes` of encoded rows; at least one."""
    schema = read_schema(data, path=path).schema
    fields = {str(field["name"]): field["type"] for field in schema["fields"]}
    order = list(fields) if columns is None else [name for name in columns if name in fields]
    named: dict[str, Schema] = {}
    _collect_named(schema, str(schema.get("namespace", "")), named)
    for batch in decode_batches(data, path=path, columns=columns, batch_bytes=batch_bytes):
        if not order:
            yield _only_rows(len(batch))
            continue
        arrays: list[pa.Array] = []
        for name in order:
            try:
                arrays.append(_from_storage(batch.field(name), fields[name], named))
            except InvalidError as error:
                raise InvalidError(f"{path}: Avro column {name}: {error}") from error
            except pa.ArrowInvalid as error:
                raise CorruptionError(f"{path}: Avro column {name}: {error}") from error
        kinds = [
            pa.field(name, array.type, _is_nullable(fields[name])) for name, array in zip(order, arrays, strict=True)
        ]
        yield pa.table(arrays, schema=pa.schema(kinds))


def write_table(
    table: pa.Table,
    schema: dict[str, Any] | None = None,
    *,
    codec: str = "zstandard",
    codec_level: int | None = None,
    metadata: Mapping[str, bytes] | None = None,
    sync: bytes | None = None,
) -> bytes:
    """A data file with the rows of a table; `schema` is `avro_schema` of the table's unless given."""
    avro = avro_schema(table.schema) if schema is None else schema
    named: dict[str, Schema] = {}
    _collect_named(avro, str(avro.get("namespace", "")), named)
    fields = {str(field["name"]): field["type"] for field in avro["fields"]}
    if unknown := [name for name in table.column_names if name not in fields]:
        raise InvalidError(f"the Avro schema has no column {', '.join(unknown)}")
    columns = []
    for name in table.column_names:
        chunks = table.column(name).chunks or [pa.array([], table.schema.field(name).type)]
        try:
            columns.append(pa.chunked_array([_to_storage(chunk, fields[name], named) for chunk in chunks]))
        except (InvalidError, pa.ArrowInvalid) as error:
            raise InvalidError(f"Avro column {name}: {error}") from error
    storage = pa.table(columns, names=table.column_names)
    return encode(storage, avro, codec=codec, codec_level=codec_level, metadata=metadata, sync=sync)


def avro_schema(arrow_schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema that Java Paimon gives a data file with these columns."""
    fields = [_avro_field(field, RECORD_NAME) for field in arrow_schema]
    return {"type": "record", "name": RECORD_NAME, "namespace": NAMESPACE, "fields": fields}


def _avro_field(field: pa.Field, name: str) -> dict[str, Any]:
    plain = _avro_type(field.type, f"{name}_{field.name}")
    if not field.nullable:
        return {"name": field.name, "type": plain}
    return {"name": field.name, "type": ["null", plain], "default": None}


def _avro_value(field: pa.Field, name: str) -> Schema:
    plain = _avro_type(field.type, name)
    return ["null", plain] if field.nullable else plain


def _avro_type(arrow: pa.DataType, name: str) -> Schema:
    """The Avro type of an Arrow type; `name` is for the record that it may need."""
    types = pa.types
    if types.is_struct(arrow):
        fields = [_avro_field(arrow.field(i), name) for i in range(arrow.num_fields)]
        return {"type": "record", "name": name, "fields": fields}
    if types.is_map(arrow):
        if types.is_string(arrow.key_type) or types.is_large_string(arrow.key_type):
            return {"type": "map", "values": _avro_value(arrow.item_field, name)}
        value = _avro_field(arrow.item_field.with_name("value"), name)
        fields = [{"name": "key", "type": _avro_value(arrow.key_field, f"{name}_key")}, value]
        return {"type": "array", "items": {"type": "record", "name": name, "fields": fields}, "logicalType": "map"}
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return {"type": "array", "items": _avro_value(arrow.value_field, name)}
    if types.is_decimal128(arrow):
        return {"type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
    if types.is_timestamp(arrow):
        if arrow.unit == "ns":
            raise InvalidError(f"Avro data files hold timestamps of at most microseconds, not {arrow} ({name})")
        logical = ("timestamp" if arrow.tz is None else "local-timestamp") + (
            "-micros" if arrow.unit == "us" else "-millis"
        )
        return {"type": "long", "logicalType": logical}
    if types.is_date32(arrow):
        return {"type": "int", "logicalType": "date"}
    if types.is_time32(arrow):
        return {"type": "int", "logicalType": "time-millis"}
    return _avro_primitive(arrow, name)


def _avro_primitive(arrow: pa.DataType, name: str) -> str:
    types = pa.types
    for matches, avro in (
        (types.is_boolean, "boolean"),
        (types.is_int8, "int"),
        (types.is_int16, "int"),
        (types.is_int32, "int"),
        (types.is_int64, "long"),
        (types.is_float32, "float"),
        (types.is_float64, "double"),
        (types.is_string, "string"),
        (types.is_large_string, "string"),
        (types.is_binary, "bytes"),
        (types.is_large_binary, "bytes"),
        (types.is_fixed_size_binary, "bytes"),
    ):
        if matches(arrow):
            return avro
    raise InvalidError(f"Avro data files cannot hold Arrow type {arrow} ({name})")


def _is_nullable(schema: Schema) -> bool:
    return isinstance(schema, list) and "null" in schema


def _collect_named(schema: Schema, space: str, named: dict[str, Schema]) -> None:
    """Every named type of a schema, by its full name and by its short one where that is free."""
    if isinstance(schema, list):
        for member in schema:
            _collect_named(member, space, named)
    elif isinstance(schema, dict):
        name = schema.get("name")
        if isinstance(name, str) and schema.get("type") in ("record", "fixed", "enum"):
            named[name if "." in name else f"{schema.get('namespace', space)}.{name}"] = schema
            named.setdefault(name.rpartition(".")[2], schema)
        for field in schema.get("fields", ()):
            _collect_named(field["type"], space, named)
        for inside in ("type", "items", "values"):
            if isinstance(schema.get(inside), (dict, list)):
                _collect_named(schema[inside], space, named)


def _resolve(schema: Schema, named: Mapping[str, Schema]) -> tuple[str, dict[str, Any]]:
    """The kind of a value and the attributes beside it, below its union, its name and its wrapping."""
    if isinstance(schema, list):
        return _resolve(next(member for member in schema if member != "null" or len(schema) == 1), named)
    if isinstance(schema, dict):
        return (schema["type"], schema) if isinstance(schema["type"], str) else _resolve(schema["type"], named)
    return _resolve(named[schema], named) if schema in named else (schema, {})


def _from_storage(array: pa.Array, schema: Schema, named: Mapping[str, Schema]) -> pa.Array:
    """Give decoded values their logical type."""
    kind, attributes = _resolve(schema, named)
    logical = str(attributes.get("logicalType"))
    if (kind, logical) in _TIMES:
        return array.view(_TIMES[kind, logical])
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimals(array, attributes["precision"], attributes.get("scale", 0))
    if kind == "record":
        children = [
            _from_storage(array.field(str(field["name"])), field["type"], named) for field in attributes["fields"]
        ]
        fields = [
            pa.field(str(field["name"]), child.type, _is_nullable(field["type"]))
            for field, child in zip(attributes["fields"], children, strict=True)
        ]
        return _rebuild(array, pa.struct(fields), children)
    if kind == "map":
        items = _from_storage(array.items, attributes["values"], named)
        return _as_map(array, array.keys, items, _is_nullable(attributes["values"]))
    if kind == "array" and logical == "map":
        key, value = _resolve(attributes["items"], named)[1]["fields"]
        entries = array.values
        keys = _from_storage(entries.field(str(key["name"])), key["type"], named)
        items = _from_storage(entries.field(str(value["name"])), value["type"], named)
        if keys.null_count:
            raise InvalidError("a map has a null key, which Arrow maps cannot hold")
        return _as_map(array, keys, items, _is_nullable(value["type"]))
    if kind == "array":
        values = _from_storage(array.values, attributes["items"], named)
        return _rebuild(array, pa.list_(pa.field("item", values.type, _is_nullable(attributes["items"]))), [values])
    return array


def _to_storage(array: pa.Array, schema: Schema, named: Mapping[str, Schema]) -> pa.Array:
    """Take the logical type from values, for `encode`."""
    kind, attributes = _resolve(schema, named)
    logical = str(attributes.get("logicalType"))
    if (kind, logical) in _TIMES:
        return _times_to_storage(array, _TIMES[kind, logical])
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal_bytes(array, attributes, kind)
    if kind == "record" and pa.types.is_struct(array.type):
        types = {str(field["name"]): field["type"] for field in attributes["fields"]}
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        children = [
            _to_storage(array.field(i), types[name], named) if name in types else array.field(i)
            for i, name in enumerate(names)
        ]
        fields = [pa.field(name, child.type) for name, child in zip(names, children, strict=True)]
        return _rebuild(array, pa.struct(fields), children)
    if kind == "map" and pa.types.is_map(array.type):
        _, begin, length = item_span(array)
        items = _to_storage(array.items.slice(begin, length), attributes["values"], named)
        return _as_map(array, array.keys.slice(begin, length), items, True)
    if kind == "array" and logical == "map" and pa.types.is_map(array.type):
        key, value = _resolve(attributes["items"], named)[1]["fields"]
        _, begin, length = item_span(array)
        keys = _to_storage(array.keys.slice(begin, length), key["type"], named)
        items = _to_storage(array.items.slice(begin, length), value["type"], named)
        entries = pa.StructArray.from_arrays([keys, items], [str(key["name"]), str(value["name"])])
        return _rebuild(array, pa.list_(entries.type), [entries])
    if kind == "array":
        if pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
            array = array.cast(pa.list_(array.type.value_field))
        if pa.types.is_list(array.type):
            _, begin, length = item_span(array)
            values = _to_storage(array.values.slice(begin, length), attributes["items"], named)
            return _rebuild(array, pa.list_(values.type), [values])
    return array


def _times_to_storage(array: pa.Array, target: pa.DataType) -> pa.Array:
    storage = pa.int32() if target.bit_width == 32 else pa.int64()
    if array.type.id != target.id and not pa.types.is_null(array.type):
        raise InvalidError(f"an Avro column of {target} was given {array.type}")
    if pa.types.is_timestamp(array.type) and (array.type.tz is None) != (target.tz is None):
        raise InvalidError(f"an Avro column of {target} was given {array.type}: both or none must have a zone")
    return array.cast(target).view(storage)


def _rebuild(array: pa.Array, arrow: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """The struct, list or map array with other children: those of its own rows only, whatever it is a slice of."""
    buffers = [_validity(array)]
    if not pa.types.is_struct(arrow):
        buffers.append(pa.py_buffer(item_span(array)[0]))
    return pa.Array.from_buffers(arrow, len(array), buffers, array.null_count, 0, children)


def _as_map(array: pa.Array, keys: pa.Array, items: pa.Array, nullable: bool) -> pa.Array:
    arrow = pa.map_(keys.type, pa.field("value", items.type, nullable))
    entries = pa.StructArray.from_arrays([keys, items], fields=[arrow.key_field, arrow.item_field])
    return _rebuild(array, arrow, [entries])


def _validity(array: pa.Array) -> pa.Buffer | None:
    """The validity of an array from its first row on, whatever its offset in the bitmap."""
    if not array.null_count:
        return None
    return pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))


def _decimals(array: pa.Array, precision: int, scale: int) -> pa.Array:
    """Big-endian two's complement numbers of any length into decimals."""
    if not 1 <= precision <= 38:
        raise InvalidError(f"Avro decimals have a precision of 1 to 38 here, not {precision}")
    lengths, ends, data = _byte_runs(array)
    longest = max(16, int(lengths.max(initial=0)))
    if longest > _DECIMAL_BYTES:
        raise pa.ArrowInvalid(f"a decimal of precision {precision} should not have {longest} bytes")
    # Column k of the matrix is byte k from the right, so that rows are little-endian; what a number lacks is its sign.
    reach = np.arange(longest)
    inside = reach < lengths[:, None]
    first = np.where(lengths > 0, data[np.minimum(ends - lengths, len(data) - 1)], 0)
    sign = np.where(first & 0x80, 0xFF, 0).astype(np.uint8)
    wide = np.where(inside, data[np.maximum(ends[:, None] - 1 - reach, 0)], sign[:, None]).astype(np.uint8)
    if (wide[:, 16:] != np.where(wide[:, 15:16] & 0x80, 0xFF, 0)).any():
        raise pa.ArrowInvalid(f"a decimal of precision {precision} does not fit into 128 bits")
    buffers = [_validity(array), pa.py_buffer(np.ascontiguousarray(wide[:, :16]))]
    decimals = pa.Array.from_buffers(pa.decimal128(precision, scale), len(array), buffers, array.null_count)
    decimals.validate(full=True)
    return decimals


def _byte_runs(array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The length and end of every value of a binary array, and the bytes they are in (never none)."""
    buffers = array.buffers()
    data = np.frombuffer(buffers[-1] or b"", np.uint8)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        ends = (np.arange(len(array), dtype=np.int64) + array.offset + 1) * width
        lengths = np.full(len(array), width, np.int64)
    else:
        offsets = np.frombuffer(buffers[1] or bytes(4), np.int32).astype(np.int64)
        ends = offsets[array.offset + 1 : array.offset + 1 + len(array)]
        lengths = ends - offsets[array.offset : array.offset + len(array)]
    return lengths, ends, data if len(data) else np.zeros(1, np.uint8)


def _decimal_bytes(array: pa.Array, attributes: Mapping[str, Any], kind: str) -> pa.Array:
    """Decimals into big-endian two's complement: as short as can be, or of the width of the fixed."""
    if not pa.types.is_decimal(array.type) and not pa.types.is_null(array.type):
        raise InvalidError(f"an Avro decimal column was given {array.type}")
    array = array.cast(pa.decimal128(attributes["precision"], attributes.get("scale", 0)))
    # A buffer may be longer than its values, and that of no values of any length at all.
    stored = array.buffers()[1] if len(array) else None
    data = np.zeros((0, 16), np.uint8)
    if stored is not None:
        data = np.frombuffer(stored, np.uint8, 16 * len(array), 16 * array.offset).reshape(-1, 16)
    big = data[:, ::-1]
    sign = np.where(big[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    # A leading byte can go if it is all sign and the next one has the same sign.
    spare = (big[:, :-1] == sign) & ((big[:, 1:] & 0x80) == (sign & 0x80))
    lengths = 16 - np.cumprod(spare, axis=1).sum(axis=1)
    lengths[~array.is_valid().to_numpy(zero_copy_only=False)] = 0
    if kind == "fixed":
        width = int(attributes["size"])
        if len(lengths) and int(lengths.max()) > width:
            raise InvalidError(f"a decimal of {int(lengths.max())} bytes does not fit into an Avro fixed of {width}")
        wide = np.concatenate([np.repeat(sign, max(width - 16, 0), axis=1), big[:, max(16 - width, 0) :]], axis=1)
        buffers = [_validity(array), pa.py_buffer(np.ascontiguousarray(wide))]
        return pa.Array.from_buffers(pa.binary(width), len(array), buffers, array.null_count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    kept = big[np.arange(16) >= (16 - lengths)[:, None]]
    buffers = [_validity(array), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(kept))]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers, array.null_count)
