"""Python functions that write and read the rows of one Avro schema, compiled from the schema.

Place in the data path: below `few_rows`, which puts their bytes into containers. A tree of closures, one per field, spends
most of its time on calls: a manifest list of sixteen manifests has two hundred fields. So the source of one straight function is
built from the schema, numbers below 64 inlined, and compiled once per schema. For {"a": "int", "b": ["null", "bytes"]}:

    def write(out, row):
        a, b = row
        …

The schemas are constants of this program, and field names never reach the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from lakelet.errors import InternalError

WriteRow = Callable[[bytearray, Any], None]
ReadRow = Callable[[bytes, int], tuple[Any, int]]
_MORE = 0x80


class Unreadable(ValueError):
    """Bytes that are no value of the schema."""


def row_writer(schema: Any) -> WriteRow:
    """The function that appends a value of a schema to bytes; TypeError, ValueError or AttributeError where it is none."""
    names = (f"v{number}" for number in count())
    lines = ["def write(out, row):", *_indented(_write_lines(schema, "row", names))]
    scope: dict[str, Any] = {"write_rest": _write_rest}
    exec("\n".join(lines), scope)
    write: WriteRow = scope["write"]
    return write


def row_reader(schema: Any) -> ReadRow:
    """The function that reads a value at a position and returns it with the next one; it raises ValueError or IndexError."""
    names = (f"v{number}" for number in count())
    lines = ["def read(data, at):", *_indented([*_read_lines(schema, "row", names), "return row, at"])]
    scope: dict[str, Any] = {"read_rest": _read_rest, "unreadable": _unreadable}
    exec("\n".join(lines), scope)
    read: ReadRow = scope["read"]
    return read


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _write_lines(schema: Any, value: str, names: Iterator[str]) -> list[str]:
    """The statements that append the value of a variable."""
    match schema:
        case "int" | "long" | {"type": "int" | "long"}:
            number = next(names)
            return [f"{number} = ({value} << 1) ^ ({value} >> 63)", *_write_number(number)]
        case "bytes":
            return _write_sized(value, next(names))
        case "string":
            encoded = next(names)
            return [f"{encoded} = {value}.encode()", *_write_sized(encoded, next(names))]
        case ["null", kind]:
            inner = ["out.append(2)", *_write_lines(kind, value, names)]
            return [f"if {value} is None:", "    out.append(0)", "else:", *_indented(inner)]
        case {"type": "array", "items": items}:
            item = next(names)
            each = [f"for {item} in {value}:", *_indented(_write_lines(items, item, names))]
            return [*_write_array_size(value, next(names), each), "out.append(0)"]
        case {"type": "record", "fields": fields}:
            values = [next(names) for _ in fields]
            lines = [f"{', '.join(values)}, = {value}"]
            for name, field in zip(values, fields, strict=True):
                lines += _write_lines(field["type"], name, names)
            return lines
    raise InternalError(f"rows of the Avro type {schema!r} are not written one at a time")


def _write_number(name: str) -> list[str]:
    """Append a number that is zigzag encoded already."""
    return [f"if {name} < {_MORE}:", f"    out.append({name})", "else:", f"    write_rest(out, {name})"]


def _write_sized(value: str, size: str) -> list[str]:
    return [f"{size} = len({value}) << 1", *_write_number(size), f"out += {value}"]


def _write_array_size(value: str, size: str, each: list[str]) -> list[str]:
    return [f"{size} = len({value}) << 1", f"if {size}:", *_indented([*_write_number(size), *each])]


def _write_rest(out: bytearray, rest: int) -> None:
    while rest >= _MORE:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)


def _read_lines(schema: Any, target: str, names: Iterator[str]) -> list[str]:
    """The statements that assign the value at `at` to a variable and move `at` behind it."""
    match schema:
        case "int" | {"type": "int"}:
            in_range = [
                f"if not -2147483648 <= {target} <= 2147483647:",
                "    unreadable('a number of more than 32 bits')",
            ]
            return [*_read_number(target), *in_range]
        case "long" | {"type": "long"}:
            return _read_number(target)
        case "bytes":
            return _read_sized(target, next(names))
        case "string":
            return [*_read_sized(target, next(names)), f"{target} = {target}.decode()"]
        case ["null", kind]:
            branch = next(names)
            inner = _indented(_read_lines(kind, target, names))
            none = [f"if {branch} == 0:", f"    {target} = None", f"elif {branch} == 1:", *inner]
            return [*_read_number(branch), *none, "else:", "    unreadable('a branch that the union does not have')"]
        case {"type": "array", "items": items}:
            return _read_array(items, target, names)
        case {"type": "record", "fields": fields}:
            values = [next(names) for _ in fields]
            lines: list[str] = []
            for name, field in zip(values, fields, strict=True):
                lines += _read_lines(field["type"], name, names)
            return [*lines, f"{target} = ({', '.join(values)},)"]
    raise InternalError(f"rows of the Avro type {schema!r} are not read one at a time")


def _read_number(target: str) -> list[str]:
    return [
        f"{target} = data[at]",
        "at += 1",
        f"if {target} >= {_MORE}:",
        f"    {target}, at = read_rest(data, {target}, at)",
        f"{target} = ({target} >> 1) ^ -({target} & 1)",
    ]


def _read_sized(target: str, end: str) -> list[str]:
    check = [f"if {target} < 0 or {end} > len(data):", "    unreadable('bytes beyond the end')"]
    return [*_read_number(target), f"{end} = at + {target}", *check, f"{target} = data[at:{end}]", f"at = {end}"]


def _read_array(items: Any, target: str, names: Iterator[str]) -> list[str]:
    size, item, values = next(names), next(names), next(names)
    each = [*_read_lines(items, item, names), f"{values}.append({item})"]
    block = [
        *_read_number(size),
        f"if {size} == 0:",
        "    break",
        f"if {size} < 0 or {size} > len(data):",
        "    unreadable('an array in blocks with sizes, or too long')",
        f"while {size}:",
        *_indented([*each, f"{size} -= 1"]),
    ]
    return [f"{values} = []", "while True:", *_indented(block), f"{target} = tuple({values})"]


def _read_rest(data: bytes, first: int, at: int) -> tuple[int, int]:
    value, shift, byte = first & 0x7F, 7, first
    while byte >= _MORE:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise Unreadable("a number of more than 64 bits")
    return value, at


def _unreadable(why: str) -> None:
    raise Unreadable(why)
