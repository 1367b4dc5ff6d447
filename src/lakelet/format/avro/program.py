"""Compile a writer schema into a flat program and a tree of Arrow nodes.

Between the container and the kernels: the program is what the kernels interpret row by row, the tree is how the columns
they fill become Arrow arrays (and how Arrow arrays become columns to encode). Compiling is memoised per schema text and
projection, because a table has thousands of manifests with one schema. Nothing here reads rows.
`kernels` explains the instructions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.format.avro.kernels import (
    ARG,
    ARRAY,
    ARRAY_END,
    BOOLEAN,
    BRANCH,
    BYTES,
    ENUM,
    FIXED,
    INT,
    JUMP,
    LONG,
    RECORD,
    WIDTH,
)
from lakelet.format.metadata.stored_json import load_json

MAX_FIXED_BYTES = 1 << 16
"""A null of a fixed type takes that many bytes in Arrow, and one byte in a file."""

Schema = Any
"""A parsed Avro schema: a name, a list (union) or a dict."""

_LEAVES: dict[str, tuple[int, int, int, pa.DataType]] = {
    # name: (instruction, bytes per cell of the slot, least encoded bytes, Arrow type)
    "int": (INT, 4, 1, pa.int32()),
    "long": (LONG, 8, 1, pa.int64()),
    "bytes": (BYTES, 4, 1, pa.binary()),
    "string": (BYTES, 4, 1, pa.string()),
    "boolean": (BOOLEAN, 1, 1, pa.bool_()),
    "float": (FIXED, 4, 4, pa.float32()),
    "double": (FIXED, 8, 8, pa.float64()),
}


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the schema: where its columns are, and the Arrow type they make."""

    kind: str
    type: pa.DataType
    nullable: bool
    valid: int
    slot: int = -1
    aux: int = -1
    names: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """One column of cells: bytes per value, bytes per index step (1 for FIXED, whose values are byte runs), whether it
    holds offsets (then it begins with a zero), and whether its length is more than the number of rows can tell."""

    width: int
    unit: int
    offsets: bool
    growing: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A row takes at least `least_bytes`; arrays and maps are nested `depth` deep."""

    code: np.ndarray[Any, np.dtype[np.int64]]
    root: Node
    slots: tuple[Slot, ...]
    least_bytes: int
    depth: int


def compile_program(schema_text: str, columns: Collection[str] | None = None) -> Program:
    """The program that decodes the given columns (dotted paths, a prefix selects its subtree; None: all)."""
    return _compile(schema_text, None if columns is None else frozenset(columns), False)


def compile_encoder(schema_text: str) -> Program:
    """The program that encodes; every value has a validity slot, so that a null in a required one is noticed."""
    return _compile(schema_text, None, True)


@lru_cache(maxsize=256)
def _compile(schema_text: str, columns: frozenset[str] | None, encoder: bool) -> Program:
    schema = load_json(schema_text)
    record = row_record(schema)
    if record is None:
        raise InvalidError(f"the outermost Avro type must be a record, not {schema_text[:80]}")
    compiler = _Compiler(columns, encoder)
    branches = 0
    if isinstance(schema, list):
        compiler.emit(BRANCH, arg=schema.index(record))
        branches = 1
    root, least = compiler.record(record, "", "", columns is None, -1)
    return Program(
        code=np.array(compiler.code, np.int64),
        root=root,
        slots=tuple(compiler.slots),
        least_bytes=least + branches,
        depth=compiler.depth,
    )


def row_record(schema: Schema) -> dict[str, Any] | None:
    """The record that rows of a file are: the schema itself, or the one beside null in a union; None for anything else."""
    members = [member for member in schema if member != "null"] if isinstance(schema, list) else [schema]
    if len(members) == 1 and isinstance(members[0], dict) and members[0].get("type") == "record":
        return members[0]
    return None


class _Compiler:
    """One compilation: the instructions so far, the slots, and the named types met."""

    def __init__(self, columns: frozenset[str] | None, encoder: bool) -> None:
        self.columns = columns
        self.encoder = encoder
        self.code: list[int] = []
        self.slots: list[Slot] = []
        self.named: dict[str, Schema] = {}
        self.open: list[int] = []
        self.level = 0
        self.depth = 0

    def slot(self, width: int, unit: int, *, offsets: bool = False, growing: bool = False) -> int:
        self.slots.append(Slot(width, unit, offsets, growing or self.level > 0))
        return len(self.slots) - 1

    def emit(self, op: int, slot: int = -1, aux: int = -1, valid: int = -1, null: int = -1, arg: int = 0) -> int:
        at = len(self.code)
        self.code += [op, slot, aux, valid, null, arg, at + WIDTH, self.level]
        return at

    def selected(self, path: str) -> bool:
        """Whether the column itself or something that contains it is projected."""
        return self.columns is None or path in self.columns

    def reached(self, path: str) -> bool:
        """Whether something inside the column is projected."""
        return self.columns is None or any(column.startswith(path + ".") for column in self.columns)

    def holds_record(self, schema: Schema, space: str) -> bool:
        """Whether a dotted path can go on below this type."""
        if isinstance(schema, list):
            return any(self.holds_record(member, space) for member in schema)
        if not isinstance(schema, dict):
            known = self.named.get(f"{space}.{schema}", self.named.get(str(schema)))
            return known is not None and self.holds_record(known, space)
        kind = schema.get("type")
        return (
            kind == "record"
            or (kind == "array" and self.holds_record(schema["items"], space))
            or (isinstance(kind, dict) and self.holds_record(kind, space))
        )

    def value(self, schema: Schema, space: str, path: str, wanted: bool) -> tuple[Node, int]:
        """Compile one value; returns its node and the least bytes it takes."""
        if isinstance(schema, list):
            return self.union(schema, space, path, wanted)
        return self.plain(schema, space, path, wanted, -1)

    def union(self, members: list[Schema], space: str, path: str, wanted: bool) -> tuple[Node, int]:
        if len(members) == 1:
            self.emit(BRANCH)
            node, least = self.plain(members[0], space, path, wanted, -1)
            return node, least + 1
        if len(members) != 2 or members.count("null") != 1:
            raise InvalidError(f"Avro column {path}: only unions of null and one type are supported, not {members}")
        null = members.index("null")
        node, _ = self.plain(members[1 - null], space, path, wanted, null)
        return node, 1

    def plain(self, schema: Schema, space: str, path: str, wanted: bool, null: int) -> tuple[Node, int]:
        """Compile a value that is no union; `null` is the index of the null branch of the union around it."""
        kind = schema.get("type") if isinstance(schema, dict) else schema
        if isinstance(kind, dict):
            return self.plain(kind, space, path, wanted, null)
        if isinstance(kind, list):
            raise InvalidError(f"Avro column {path}: a union directly inside a union or type is not supported")
        if kind in ("record", "error"):
            return self.record(schema, space, path, wanted, null)
        if kind in ("array", "map"):
            return self.repeated(schema, kind, space, path, wanted, null)
        if kind in ("fixed", "enum"):
            self.define(schema, space)
            return self.sized(schema, kind, path, wanted, null)
        if kind == "null":
            return Node("null", pa.null(), True, -1, path=path), 0
        if kind in _LEAVES:
            op, width, least, arrow = _LEAVES[kind]
            return self.leaf(kind, op, width, least, arrow, path, wanted, null, width if op == FIXED else 0)
        return self.reference(kind, space, path, wanted, null)

    def reference(self, name: object, space: str, path: str, wanted: bool, null: int) -> tuple[Node, int]:
        for full in (f"{space}.{name}", str(name)):
            if full in self.named:
                schema, inner = self.named[full], full.rpartition(".")[0]
                if id(schema) in self.open:
                    raise InvalidError(f"Avro column {path}: the recursive type {full} is not supported")
                return self.plain(schema, inner, path, wanted, null)
        raise InvalidError(f"Avro column {path}: unknown type {name!r}")

    def define(self, schema: dict[str, Any], space: str) -> str:
        """Remember a named type; returns the namespace inside it."""
        name = schema.get("name")
        if not isinstance(name, str):
            raise InvalidError(f"an Avro {schema['type']} needs a name, found {name!r}")
        inner = name.rpartition(".")[0] or schema.get("namespace") or space
        self.named[f"{inner}.{name.rpartition('.')[2]}" if inner else name] = schema
        return str(inner)

    def record(self, schema: dict[str, Any], space: str, path: str, wanted: bool, null: int) -> tuple[Node, int]:
        inner = self.define(schema, space)
        self.open.append(id(schema))
        # A record is kept if it or anything inside it is projected; then its validity is kept too.
        kept = wanted or self.reached(path)
        valid = self.slot(1, 1) if kept and path and (null >= 0 or self.encoder) else -1
        at = self.emit(RECORD, valid=valid, null=null) if null >= 0 or valid >= 0 else -1
        names, children, least = [], [], 0
        for field in schema["fields"]:
            below = f"{path}.{field['name']}" if path else str(field["name"])
            chosen = wanted or self.selected(below)
            child, size = self.value(field["type"], inner, below, chosen)
            least += size
            if chosen or (self.reached(below) and self.holds_record(field["type"], inner)):
                names.append(str(field["name"]))
                children.append(child)
        if at >= 0:
            self.code[at + JUMP] = len(self.code)
        self.open.pop()
        arrow = pa.struct([pa.field(n, c.type, c.nullable) for n, c in zip(names, children, strict=True)])
        node = Node("record", arrow, null >= 0, valid, names=tuple(names), children=tuple(children), path=path)
        return node, 1 if null >= 0 else least

    def repeated(
        self, schema: dict[str, Any], kind: str, space: str, path: str, wanted: bool, null: int
    ) -> tuple[Node, int]:
        # A projection passes through an array into the records of it, and takes a map as a whole.
        kept = wanted or (kind == "array" and self.reached(path) and self.holds_record(schema["items"], space))
        valid = self.slot(1, 1) if kept and (null >= 0 or self.encoder) else -1
        slot = self.slot(4, 4, offsets=True) if kept else -1
        at = self.emit(ARRAY, slot, valid=valid, null=null)
        self.level += 1
        self.depth = max(self.depth, self.level)
        if kind == "map":
            key, least_key = self.plain("string", space, path, kept, -1)
            item, least = self.value(schema["values"], space, f"{path}.value", kept)
            least += least_key
            children: tuple[Node, ...] = (key, item)
            arrow = pa.map_(key.type, pa.field("value", item.type, item.nullable))
        else:
            item, least = self.value(schema["items"], space, path, wanted)
            children = (item,)
            arrow = pa.list_(pa.field("item", item.type, item.nullable))
        if least == 0:
            # Such a file could claim any number of items in a few bytes.
            raise InvalidError(f"Avro column {path}: an array of values without bytes is not supported")
        self.emit(ARRAY_END, slot, arg=at)
        self.level -= 1
        self.code[at + ARG] = least
        self.code[at + JUMP] = len(self.code)
        return Node(kind, arrow, null >= 0, valid, slot, children=children, path=path), 1

    def sized(self, schema: dict[str, Any], kind: str, path: str, wanted: bool, null: int) -> tuple[Node, int]:
        if kind == "enum":
            symbols = tuple(schema["symbols"])
            node, least = self.leaf("enum", ENUM, 4, 1, pa.string(), path, wanted, null, len(symbols))
            return Node("enum", pa.string(), node.nullable, node.valid, node.slot, names=symbols, path=path), least
        size = schema["size"]
        if not isinstance(size, int) or not 1 <= size <= MAX_FIXED_BYTES:
            raise InvalidError(f"Avro column {path}: a fixed has 1 to {MAX_FIXED_BYTES} bytes, not {size!r}")
        return self.leaf("fixed", FIXED, size, size, pa.binary(size), path, wanted, null, size)

    def leaf(
        self,
        kind: str,
        op: int,
        width: int,
        least: int,
        arrow: pa.DataType,
        path: str,
        wanted: bool,
        null: int,
        arg: int,
    ) -> tuple[Node, int]:
        valid = slot = aux = -1
        if wanted:
            valid = self.slot(1, 1) if null >= 0 or self.encoder else -1
            slot = self.slot(width, 1 if op == FIXED else width, offsets=op == BYTES)
            aux = self.slot(1, 1, growing=True) if op == BYTES else -1
        self.emit(op, slot, aux, valid, null, arg)
        return Node(kind, arrow, null >= 0, valid, slot, aux, path=path), 1 if null >= 0 else least
